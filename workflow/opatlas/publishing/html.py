"""The few elements that a report is made of: a page, sections, tables. All text is escaped here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

STYLE = """
:root { --ink: #1c2430; --soft: #5c6773; --line: #dfe4ea; --paper: #fff;
  --bad: #b3261e; --bad-tint: #fdecea; --warn: #8a5a00; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e9ef; --soft: #9aa7b4; --line: #303a45;
  --paper: #14191f; --bad: #ff9389; --bad-tint: #3a1d1b; --warn: #e0b45c; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 68rem; padding: 2.5rem 1.25rem 4rem;
  background: var(--paper); color: var(--ink); font: 16px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.7rem; margin: 0; letter-spacing: -.01em; overflow-wrap: anywhere; }
h2 { font-size: 1.1rem; margin: 2.6rem 0 .6rem; padding-top: 1rem; border-top: 1px solid var(--line); }
p { margin: .4rem 0 .8rem; max-width: 48rem; overflow-wrap: anywhere; }
.soft { color: var(--soft); }
.notice { background: var(--bad-tint); border-left: 4px solid var(--bad); padding: .7rem 1rem;
  margin: 1.2rem 0; }
.notice ul { margin: .3rem 0 0; padding-left: 1.2rem; }
dl { display: grid; grid-template-columns: repeat(auto-fit, minmax(13rem, 1fr)); gap: .8rem 1.5rem;
  margin: 1.4rem 0; }
dt { color: var(--soft); font-size: .8rem; }
dd { margin: 0; font-weight: 600; overflow-wrap: anywhere; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: .9rem; }
th { text-align: left; color: var(--soft); font-weight: 500; }
th, td { padding: .35rem .9rem .35rem 0; vertical-align: top; border-bottom: 1px solid var(--line); }
.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.blocking { color: var(--bad); font-weight: 600; }
.advisory { color: var(--warn); }
.code { font-family: ui-monospace, monospace; font-size: .85em; overflow-wrap: anywhere; }
td > span.code { white-space: nowrap; }
"""
HEAD = '<meta charset="utf-8"><meta name="viewport" content="width=device-width">'


class Markup(str):
    """Text that is markup already."""


def page(title: str, parts: Iterable[Markup]) -> str:
    """A whole document that needs no other file."""
    head = f"{HEAD}<title>{escape(title)}</title><style>{STYLE}</style>"
    body = "\n".join(parts)
    return f'<!doctype html>\n<html lang="en"><head>{head}</head>\n<body>\n{body}\n</body></html>\n'


def text(value: Any) -> Markup:
    return value if isinstance(value, Markup) else Markup(escape(str(value)))


def element(name: str, content: Any, kind: str = "") -> Markup:
    """An element with text or markup in it."""
    kinds = f' class="{kind}"' if kind else ""
    return Markup(f"<{name}{kinds}>{text(content)}</{name}>")


def join(parts: Iterable[Any]) -> Markup:
    return Markup("".join(map(text, parts)))


def facts(pairs: Iterable[tuple[str, Any]]) -> Markup:
    """Names with their values, as cards."""
    cards = (element("div", join([element("dt", name), element("dd", value)])) for name, value in pairs)
    return element("dl", join(cards))


def table(head: Sequence[str], rows: Iterable[Sequence[Any]], numbers: Iterable[int] = ()) -> Markup:
    """A table; `numbers` are the columns that hold numbers."""
    kinds = ["number" if index in set(numbers) else "" for index in range(len(head))]
    top = join(element("th", name, kind) for name, kind in zip(head, kinds, strict=True))
    body = join(
        element("tr", join(element("td", cell, kind) for cell, kind in zip(row, kinds, strict=True)))
        for row in rows
    )
    whole = element("table", join([element("thead", element("tr", top)), element("tbody", body)]))
    return element("div", whole, "scroll")


def section(title: str, *parts: Markup) -> Markup:
    return join([element("h2", title), *parts])
