"""What a framework moved is found in its sources, without importing it."""

from __future__ import annotations

import textwrap

import pytest
from opatlas.interface import check
from opatlas.interface.sources import Package
from opatlas.interface.uses import ANY, Use, cited, declaration, seen, uses_of

SOURCES = {
    "__init__.py": "from .version import __version__\n",
    "version.py": "__version__ = '1.0'\n",
    "platforms.py": "HERE = object()\n",
    "config.py": """
        from dataclasses import dataclass

        @dataclass
        class Base:
            seed: int = 0

        @dataclass
        class Config(Base):
            name: str = ""
            size: int = 1

            def engine(self, context): ...
    """,
    "layers/__init__.py": "from fake.layers.linear import Linear\n",
    "layers/linear.py": """
        from fake.platforms import HERE
        if HERE:
            from fake.kernels import run, stop
        else:
            def run(x): ...
        class Method:
            def apply(self, layer, x, bias=None): ...
        class Linear(Method):
            WIDTH = 8
            def __init__(self, n, k, *, bias=True, prefix):
                self.weight = n * k
            @staticmethod
            def make(n): ...
    """,
    "kernels.py": """
        def run(x, *, scale, out=None): ...
        def stop(*args, **kwargs): ...
    """,
}

RUNNER = """
    import fake
    from fake.config import Config
    from fake.layers import Linear
    from fake.layers.linear import run, stop

    # as fake/layers/linear.py, Linear.__init__, does, and
    # fake/kernels.py, stop
    def build(x):
        layer = Linear(n=1, k=2, prefix="p")
        run(x, scale=1)
        stop(1, 2, three=3)
        Linear.make(1)
        return Config(name="c", size=2), fake.__version__, Linear.WIDTH, layer
"""


def tree(tmp_path, **changes):
    """The fake package, with (old, new) replaced in the files named (`/` is __)."""
    for name, text in SOURCES.items():
        file = tmp_path / "fake" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        text = textwrap.dedent(text)
        for old, new in changes.get(name.removesuffix(".py").replace("/", "__"), ()):
            assert old in text
            text = text.replace(old, new)
        file.write_text(text)
    return Package("fake", tmp_path / "fake")


def moved(package):
    text = textwrap.dedent(RUNNER)
    return check.misfits(package, [*seen(text, "gemm.py", "fake"), *cited(text, "gemm.py", "fake")])


def test_what_is_used_is_found(tmp_path):
    uses = seen(textwrap.dedent(RUNNER), "gemm.py", "fake")
    assert Use("gemm.py:10", "fake.layers", "Linear", 0, ("n", "k", "prefix")) in uses
    assert Use("gemm.py:14", "fake", "__version__") in uses
    places = [(use.module, use.path) for use in cited(textwrap.dedent(RUNNER), "gemm.py", "fake")]
    assert places == [("fake.layers.linear", "Linear.__init__"), ("fake.kernels", "stop")]


def test_a_tree_that_fits(tmp_path):
    assert moved(tree(tmp_path)) == []


@pytest.mark.parametrize(
    ("changes", "lines"),
    [
        ({"layers__linear": [("class Linear", "class Dense")]}, ["fake.layers has no Linear"]),
        ({"kernels": [("scale,", "factor,")]}, ["run takes no 'scale'"]),
        ({"kernels": [("(x, *", "(x, y, *")]}, ["run needs 'y' too"]),
        ({"layers__linear": [("n, k, *", "k, *")]}, ["Linear takes no 'n'"]),
        ({"layers__linear": [("def make(n)", "def make()")]}, ["takes 0 positional arguments"]),
        ({"layers__linear": [("WIDTH = 8", "pass")]}, ["Linear.WIDTH is gone: Linear has no WIDTH"]),
        ({"config": [("size: int = 1", "width: int = 1")]}, ["Config takes no 'size'"]),
        ({"kernels": [("def stop", "def halt")]}, ["fake.layers.linear:stop is gone", "fake.kernels:stop"]),
        ({"__init__": [("__version__", "version")]}, ["fake:__version__ is gone"]),
    ],
    ids=[
        "moved symbol", "removed keyword", "new argument", "renamed parameter", "fewer arguments",
        "moved attribute", "renamed field", "cited place", "version",
    ],
)  # fmt: skip
def test_what_moved_is_told_with_its_place(tmp_path, changes, lines):
    found = moved(tree(tmp_path, **changes))
    assert found
    for line in lines:
        assert any(line in one for one in found), found
    assert all(one.startswith("gemm.py:") for one in found)


def test_a_module_that_is_gone(tmp_path):
    package = tree(tmp_path)
    (tmp_path / "fake" / "config.py").unlink()
    assert "gemm.py:3: fake.config:Config is gone: there is no such module" in moved(package)


def test_declared_uses_of_objects(tmp_path):
    (tmp_path / "uses.py").write_text(
        'PACKAGE = "fake"\nUSES = (("fake.layers.linear:Linear.apply", 2, "bias"),'
        '("fake.layers.linear:Linear.weight",), ("fake.config:Config.engine", 1))\n'
    )
    name, uses = declaration(tmp_path)
    assert (name, [use.positional for use in uses]) == ("fake", [2, ANY, 1])
    assert check.misfits(tree(tmp_path), uses) == []
    changed = tree(tmp_path, layers__linear=[("layer, x, bias=None", "x")], config=[("context", "")])
    found = check.misfits(changed, uses)
    assert [line.split(" ", 2)[2] for line in found] == [
        "fake.layers.linear:Linear.apply takes 1 positional arguments, and 2 are given",
        "fake.config:Config.engine takes 0 positional arguments, and 1 are given",
    ]


def test_the_command_reports_and_refuses(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(check, "BACKENDS", tmp_path / "backends")
    folder = tmp_path / "backends" / "some"
    folder.mkdir(parents=True)
    (folder / "gemm.py").write_text(textwrap.dedent(RUNNER))
    (folder / "uses.py").write_text('PACKAGE = "fake"\nUSES = ()\n')
    tree(tmp_path)
    arguments = ["some", "--sources", str(tmp_path / "fake"), "--out", str(tmp_path / "deep" / "proof.json")]
    assert check.main(arguments) == 0
    assert (tmp_path / "deep" / "proof.json").is_file()
    (tmp_path / "deep" / "proof.json").unlink()
    tree(tmp_path, kernels=[("def stop", "def halt")])
    assert check.main(arguments) == 1
    said = capsys.readouterr().out
    assert "workflow/opatlas/backends/some/gemm.py:5: fake.layers.linear:stop is gone" in said
    assert not (tmp_path / "deep" / "proof.json").exists()
    assert check.main(["some"]) == 1
    assert "fake is not installed here" in capsys.readouterr().out


def test_vllms_runners_fit_the_pinned_vllm():
    package = Package.installed("vllm")
    if package is None:
        pytest.skip("needs vLLM's sources, and vLLM is not installed")
    folder = check.BACKENDS / "vllm"
    name, declared = declaration(folder)
    assert check.misfits(package, uses_of(folder, name) + declared) == []


def test_each_call_of_vllm_names_its_arguments():
    """Positions can change their meaning unseen; names cannot. One argument may go without."""
    calls = [use for use in uses_of(check.BACKENDS / "vllm", "vllm") if use.called]
    assert calls
    many = [use for use in calls if use.positional > 1 and use.path != "ModelRegistry.register_model"]
    assert many == []
