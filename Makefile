# Everything sets itself up: the environment in .venv, then what is asked for.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: help demo test test-cluster lint fix clean

help:
	@echo "make demo   measure and publish a real dataset on this machine's CPU"
	@echo "make test   all tests that need no root"
	@echo "make test-cluster   tests with a real SLURM; needs root and Debian's slurm-wlm"
	@echo "make lint   ruff, snakefmt, snakemake --lint, mypy"
	@echo "make fix    format and mend what can be mended"

# Fails early, with a sentence, where Python is too old or cannot make environments.
$(VENV)/.base: pyproject.toml
	@$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(None if v >= (3, 11) else f"opatlas needs Python 3.11 or newer, found {v.major}.{v.minor}: set PYTHON=python3.11")'
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { echo "Python cannot make virtual environments: install python3-venv"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade pip
	$(BIN)/pip install --quiet --editable '.[torch]'
	@touch $@

$(VENV)/.dev: $(VENV)/.base
	$(BIN)/pip install --quiet --editable '.[torch,dev]'
	@touch $@

demo: $(VENV)/.base
	$(BIN)/snakemake --quiet rules progress --cores all -- results/torch/2.13.0/cpu
	@$(BIN)/python -m opatlas show torch/2.13.0/cpu

test: $(VENV)/.dev
	$(BIN)/pytest -n 2 --dist loadscope

# A SLURM of the tests' own, whose daemons run as root; what it needs is installed first.
SUDO := $(shell [ "$$(id -u)" -eq 0 ] || echo sudo)
test-cluster: $(VENV)/.dev
	@command -v slurmctld >/dev/null || $(SUDO) apt-get install -q -y --no-install-recommends slurm-wlm munge
	$(SUDO) $(BIN)/pytest -n 0 tests/cluster

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/snakefmt --check workflow
	$(BIN)/snakemake --lint
	$(BIN)/mypy

fix: $(VENV)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/snakefmt workflow

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis
