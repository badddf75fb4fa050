"""The clean room a worker runs in: its environment variables and a node-local folder of the job."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import opatlas
from opatlas.errors import UserError
from opatlas.harness import linux

# On the host nothing else of the caller's environment reaches the worker. In an image the environment is the
# image's own (the container runtime starts it clean), and only what belongs to the caller is taken out.
HOST_KEEPS = (
    "PATH", "LD_LIBRARY_PATH", "CC", "CXX", "TZ",
    "CUDA_HOME", "CUDA_PATH", "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER",
    "NVIDIA_VISIBLE_DEVICES", "NVIDIA_DRIVER_CAPABILITIES",
)  # fmt: skip
IMAGE_DROPS = (
    "PYTHON", "SLURM_", "SBATCH_", "SRUN_", "PMI", "OMPI_", "HF_", "HUGGING", "TRANSFORMERS_",
    "XDG_", "CONDA", "PIP_", "SSH_", "DBUS_",
)  # fmt: skip
PASSED = ("OPATLAS_", "APPTAINER_", "SINGULARITY_")

FIXED = {
    "LANG": "C.UTF-8",
    "LC_ALL": "C.UTF-8",
    # Looking a user up fails for a uid without a passwd entry, so the names are given.
    "USER": "opatlas",
    "LOGNAME": "opatlas",
    "PYTHONNOUSERSITE": "1",
    "PYTHONSAFEPATH": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONUNBUFFERED": "1",
    "PYTHONHASHSEED": "0",
    "HF_HUB_OFFLINE": "1",
    "HF_DATASETS_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
    "TOKENIZERS_PARALLELISM": "false",
}

# Variable -> folder below the worker's own.
FOLDERS = {
    "HOME": "home",
    "TMPDIR": "tmp",
    "XDG_CACHE_HOME": "cache",
    "XDG_CONFIG_HOME": "config",
    "XDG_DATA_HOME": "data",
    "XDG_STATE_HOME": "state",
    "XDG_RUNTIME_DIR": "runtime",
    "HF_HOME": "cache/huggingface",
    "TORCH_HOME": "cache/torch",
    "TORCH_EXTENSIONS_DIR": "cache/torch_extensions",
    "TORCHINDUCTOR_CACHE_DIR": "cache/inductor",
    "TRITON_HOME": "cache/triton-home",
    "TRITON_CACHE_DIR": "cache/triton",
    "CUDA_CACHE_PATH": "cache/cuda",
    "FLASHINFER_WORKSPACE_BASE": "cache/flashinfer",
    "DG_JIT_CACHE_DIR": "cache/deep_gemm",
    "TRTLLM_DG_CACHE_DIR": "cache/trtllm_deep_gemm",
    "TILELANG_CACHE_DIR": "cache/tilelang",
    "CUTE_DSL_CACHE_DIR": "cache/cute_dsl",
    "VLLM_CACHE_ROOT": "cache/vllm",
    "VLLM_CONFIG_ROOT": "config/vllm",
    "SGLANG_CACHE_DIR": "cache/sglang",
    "NUMBA_CACHE_DIR": "cache/numba",
    "MPLCONFIGDIR": "config/matplotlib",
}

PREFIX = "opatlas-"
# Names the supervisor of a worker, and of all that the worker starts.
SUPERVISOR = "OPATLAS_SUPERVISOR"
# Names a folder of kernels compiled before: each worker's caches begin as a copy of it.
WARM_CACHES = "OPATLAS_WARM_CACHES"
SECRET = ("TOKEN", "SECRET", "PASSWORD", "CREDENTIAL", "KEY")


def clean(outer: Mapping[str, str], image: bool, folder: Path) -> dict[str, str]:
    """The worker's whole environment; makes the folders that it names."""

    def kept(name: str) -> bool:
        return name.startswith(PASSED) or (not name.startswith(IMAGE_DROPS) if image else name in HOST_KEEPS)

    environment = {name: value for name, value in outer.items() if kept(name)}
    environment.update(FIXED)
    environment[SUPERVISOR] = linux.identity()
    environment["PYTHONPATH"] = str(Path(opatlas.__file__).parents[1])
    for name, below in FOLDERS.items():
        path = folder / below
        path.mkdir(parents=True, exist_ok=True, mode=0o700)
        environment[name] = str(path)
    if warm := outer.get(WARM_CACHES):
        _copy_caches(Path(warm), folder / "cache")
    return environment


def _copy_caches(warm: Path, cache: Path) -> None:
    if not warm.is_dir():
        raise UserError(f"{WARM_CACHES}: {warm} is not a folder")
    shutil.copytree(warm, cache, dirs_exist_ok=True)


def recorded(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment as a journal keeps it: without what may be a secret."""
    return {name: value for name, value in sorted(environment.items()) if not any(s in name for s in SECRET)}


@contextmanager
def scratch(outer: Mapping[str, str]) -> Iterator[Path]:
    """A node-local folder of this job, removed at the end."""
    folder = _local(outer) / f"{PREFIX}{linux.identity()}"
    folder.mkdir(mode=0o700)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def remove_leftovers(outer: Mapping[str, str]) -> None:
    """Ends processes and removes folders here that supervisors left which were killed."""
    linux.kill_leftovers(SUPERVISOR)
    for folder in _local(outer).glob(f"{PREFIX}*"):
        if linux.is_dead(folder.name.removeprefix(PREFIX)):
            shutil.rmtree(folder, ignore_errors=True)


def _local(outer: Mapping[str, str]) -> Path:
    return Path(outer.get("SLURM_TMPDIR") or outer.get("TMPDIR") or tempfile.gettempdir())
