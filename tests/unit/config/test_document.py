"""Strict YAML: every mistake is found at once, each with file, line and key."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opatlas.config.document import Section, read_yaml
from opatlas.errors import Problems, UserError


def section(text: str, tmp_path: Path) -> tuple[Section, Problems]:
    path = tmp_path / "file.yaml"
    path.write_text(text, encoding="utf-8")
    problems = Problems()
    return Section.read(path, problems, "file.yaml"), problems


def messages(problems: Problems) -> list[str]:
    with pytest.raises(UserError) as caught:
        problems.raise_if_any()
    return str(caught.value).splitlines()


def test_all_mistakes_are_found_in_one_pass(tmp_path: Path) -> None:
    top, problems = section("name: 0.20\ncount: many\nflag: 1\nlist: [1, two]\nodd: x\n", tmp_path)
    top.text("name")
    top.integer("count")
    top.flag("flag")
    top.integers("list")
    top.text("lost")
    top.done()
    assert messages(problems) == [
        "file.yaml:1: name: expected a text, found number 0.2: write it in quotes",
        "file.yaml:2: count: expected a whole number, found text 'many'",
        "file.yaml:3: flag: expected true or false, found number 1",
        "file.yaml:4: list: expected a list of whole numbers, found text 'two'",
        "file.yaml: lost: is missing",
        "file.yaml:5: odd: is not a known key; known keys: count, flag, list, lost, name",
    ]


def test_an_unquoted_version_is_named_as_a_key(tmp_path: Path) -> None:
    _, problems = section("0.20: {}\n", tmp_path)
    assert messages(problems) == ["file.yaml:1: 0.2: is read as the number 0.2: write it in quotes"]


def test_a_misspelt_key_gets_a_hint(tmp_path: Path) -> None:
    top, problems = section("runtme: host\n", tmp_path)
    top.text("runtime", None)
    top.done()
    assert messages(problems) == ["file.yaml:1: runtme: is not a known key; did you mean runtime?"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: [1, 2", "is not valid YAML"),
        ("a: 1\na: 2\n", "'a' stands twice"),
        ("[1]: 2\n", "a key must be a plain word"),
        ("a: !!python/object:os.system x\n", "is not valid YAML"),
        ("\ta: 1\n", "is not valid YAML"),
    ],
)
def test_what_is_no_yaml_is_said_to_be_none(text: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UserError, match=r"x\.yaml") as caught:
        read_yaml(path, "x.yaml")
    assert words in str(caught.value)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such file"):
        read_yaml(tmp_path / "none.yaml")
    (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UserError, match="cannot be read"):
        read_yaml(tmp_path / "binary.yaml")


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as folder:
        path = Path(folder) / "any.yaml"
        path.write_bytes(text.encode("utf-8", errors="surrogatepass"))
        problems = Problems()
        top = Section.read(path, problems, "any.yaml")
        top.text("a", None)
        top.done()


@pytest.mark.parametrize(
    "number", ["4294967296", str(2**63), str(2**64), str(-(2**70)), str(10**400), "0x" + "f" * 5000]
)
@pytest.mark.parametrize("text", ["size: {}\n", "size: [1, {}]\n"])
def test_whole_numbers_beyond_what_tables_hold_are_refused(text: str, number: str, tmp_path: Path) -> None:
    top, problems = section(text.format(number), tmp_path)
    top.integers("size") if "[" in text else top.integer("size")
    (message,) = messages(problems)
    assert message.startswith("file.yaml:1: size: must be at most 4294967295, found ")
    assert len(message) < 100


@pytest.mark.parametrize("text", [".inf", "-.inf", ".nan", str(10**400)])
def test_numbers_are_finite(text: str, tmp_path: Path) -> None:
    top, problems = section(f"share: {text}\n", tmp_path)
    top.number("share", above=0)
    (message,) = [line for line in messages(problems) if "finite" in line]
    assert message.startswith("file.yaml:1: share: must be a finite number, found ")
