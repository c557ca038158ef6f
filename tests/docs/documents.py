"""The documents as the tests see them: pages, their code blocks, their links and their headings."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]

_FENCE = re.compile(r"^```(?P<language>\w*)[^\n]*\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\((?P<target>[^)\s]+)\)")


def page_name(page: Path) -> str:
    """The page as its folder names it: ``docs/gallery/shop.md``."""
    return page.relative_to(ROOT).as_posix()


@dataclass(frozen=True)
class Block:
    """One fenced block: its language, its text, the line on which it begins, and whether it follows another at once."""

    page: Path
    language: str
    text: str
    line: int
    follows: bool


def blocks(page: Path) -> list[Block]:
    """All fenced blocks of a page, in order."""
    text, found, end = page.read_text(encoding="utf-8"), [], 0
    for match in _FENCE.finditer(text):
        follows = bool(found) and not text[end : match.start()].strip()
        found.append(Block(page, match["language"], match["text"], text.count("\n", 0, match.start("text")), follows))
        end = match.end()
    return found


def prose(page: Path) -> str:
    """The page without its fenced blocks."""
    return _FENCE.sub("", page.read_text(encoding="utf-8"))


def links(page: Path) -> list[str]:
    """What the page links to inside the repository: paths, perhaps with an anchor."""
    found = [match["target"] for match in _LINK.finditer(prose(page))]
    return [target for target in found if not target.startswith(("http://", "https://", "mailto:"))]


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings."""
    headings = re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)
    plain = [re.sub(r"[^\w\s-]", "", heading.lower()) for heading in headings]
    return {re.sub(r"[\s]+", "-", heading.strip()) for heading in plain}


def first_cells(page: Path, heading: str) -> list[str]:
    """The code words in the first cells of the first table under a heading."""
    section = page.read_text(encoding="utf-8").split(f"\n{heading}\n", 1)[1]
    table = re.search(r"(?:^\|.*\n)+", section, re.MULTILINE)
    assert table is not None, f"no table under {heading!r} of {page.name}"
    rows = table.group().splitlines()[2:]
    return [name for row in rows for name in re.findall(r"`([^`]+)`", row.split("|")[1])]
