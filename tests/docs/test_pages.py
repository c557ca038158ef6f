"""The documents hold together: links lead somewhere, tables list what the code has, and nothing is left out."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from documents import PAGES, ROOT, anchors, first_cells, links, page_name

import mixope
from mixope.checks import CHECKS, checks
from mixope.estimators import REGISTRY
from mixope.logs import CANONICAL
from mixope.logs.names import ALIASES
from mixope.logs.sources.endings import FORMATS
from mixope.worlds import BUILDERS, CONTINUOUS

DOCS = ROOT / "docs"


def _navigation() -> list[str]:
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    return re.findall(r"^\s+- [^:\n]+: (\S+\.md)$", text.split("\nnav:\n", 1)[1], re.MULTILINE)


def test_every_entry_of_the_navigation_is_a_page() -> None:
    missing = [name for name in _navigation() if not (DOCS / name).is_file()]
    assert not missing


def test_every_page_is_in_the_navigation() -> None:
    assert {page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md")} <= set(_navigation())


@pytest.mark.parametrize("page", [*PAGES, ROOT / "SECURITY.md"], ids=page_name)
def test_links_lead_somewhere(page: Path) -> None:
    for link in links(page):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), f"{page.name} links to {link}"
        if anchor and target.suffix == ".md":
            assert anchor in anchors(target), f"{page.name} links to {link}; there are {sorted(anchors(target))}"


@pytest.mark.parametrize("page", [ROOT / "README.md", DOCS / "estimators.md"], ids=lambda page: page.name)
def test_the_table_of_estimators_is_the_registry(page: Path) -> None:
    assert first_cells(page, "## Estimators") == list(REGISTRY)


def _rows(page: Path) -> list[tuple[str, ...]]:
    """The cells of the table of estimators as words."""
    text = page.read_text(encoding="utf-8").split("\n## Estimators\n")[1].split("\n## ")[0]
    lines = [line for line in text.splitlines() if line.startswith("| `")]
    return [tuple(cell.strip().replace("`", "") for cell in line.split("|")[1:-1]) for line in lines]


def test_the_tables_of_estimators_have_the_words_of_the_registry() -> None:
    words = {name: (entry.needs or "no", entry.when) for name, entry in REGISTRY.items()}
    assert _rows(ROOT / "README.md") == [(name, *rest) for name, rest in words.items()]
    vectors = {name: "yes" if "features" in entry.takes else "no" for name, entry in REGISTRY.items()}
    expected = [(name, REGISTRY[name].family, vectors[name], *rest) for name, rest in words.items()]
    assert _rows(DOCS / "estimators.md") == expected


def test_the_table_of_columns_is_the_schema() -> None:
    assert set(first_cells(DOCS / "data.md", "## Columns")) == set(CANONICAL)


def test_every_alias_is_listed_and_no_other() -> None:
    text = (DOCS / "data.md").read_text(encoding="utf-8").split("\n## Names that are understood\n")[1].split("\n## ")[0]
    rows = [line.split("|")[1:3] for line in text.splitlines() if line.startswith("| `")]
    listed = {left.strip(" `"): tuple(re.findall(r"`([^`]+)`", right)) for left, right in rows}
    assert listed == {name: tuple(aliases) for name, aliases in ALIASES.items()}


def test_every_file_format_is_listed() -> None:
    text = (DOCS / "data.md").read_text(encoding="utf-8")
    assert [ending for endings in FORMATS.values() for ending in endings if f"`{ending}`" not in text] == []


def test_every_format_of_the_table_names_a_test() -> None:
    text = (DOCS / "data.md").read_text(encoding="utf-8").split("\n## Formats\n")[1].split("\n## ")[0]
    rows = [line for line in text.splitlines() if line.startswith("| ") and not line.startswith("| format")]
    named = [re.findall(r"`(tests/\S+\.py)`", row) for row in rows]
    assert rows
    assert all(named)
    assert [
        path
        for paths in (*named, re.findall(r"`(tests/\S+\.py)`", text))
        for path in paths
        if not (ROOT / path).is_file()
    ] == []


def test_every_environment_is_listed() -> None:
    assert first_cells(DOCS / "environments.md", "## What there is") == list(BUILDERS)
    text = (DOCS / "environments.md").read_text(encoding="utf-8")
    assert [name for name in CONTINUOUS if f"\n| `{name}` |" not in text] == []


def test_the_table_of_estimators_says_who_takes_vectors() -> None:
    text = (DOCS / "estimators.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([^`]+)` \| [^|]+ \| (yes|no) \|", text, re.MULTILINE)
    assert dict(rows) == {name: "yes" if "features" in entry.takes else "no" for name, entry in REGISTRY.items()}


def test_the_reference_has_every_public_name_once() -> None:
    pages = "\n".join(page.read_text(encoding="utf-8") for page in (DOCS / "reference").glob("*.md"))
    shown = re.findall(r"^::: mixope\.(\w+)$", pages, re.MULTILINE)
    assert sorted(shown) == sorted(set(mixope.__all__) - {"__version__"})


def _checks_of(page: Path) -> dict[str, tuple[str, str]]:
    """Of every check that a table of the page lists: the anchor of the heading above it, and the last cell."""
    found: dict[str, tuple[str, str]] = {}
    anchor = ""
    for line in page.read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            anchor = re.sub(r"\s+", "-", re.sub(r"[^\w\s-]", "", line.lstrip("# ").lower()))
        elif line.startswith("| "):
            cells = [cell.strip() for cell in line.strip("|").split(" | ")]
            found.setdefault(cells[0].strip(), (anchor, cells[-1].strip()))
    return found


def _said(words: str) -> str:
    """Without links and without marks of code."""
    return re.sub(r"[`'\"]", "", re.sub(r"\[([^\]]+)\]\([^)]+\)", r"\1", words))


def test_every_check_is_listed_with_its_remedy_where_it_says() -> None:
    listed = _checks_of(DOCS / "verdicts.md")
    assert [name for name in checks() if name not in listed] == []
    anchors_of = anchors(DOCS / "verdicts.md")
    for name, check in checks().items():
        anchor, words = listed[name]
        page, _, place = check.page.partition("#")
        assert (ROOT / page).is_file()
        assert place in anchors_of
        assert place == anchor or name in place.replace("-", " "), f"{name} is under {anchor}"
        assert _said(words).startswith(_said(check.remedy)), (
            f"{name}: the page says {words!r}, the check {check.remedy!r}"
        )


def test_every_check_of_an_estimate_is_listed_with_its_thresholds() -> None:
    text = (DOCS / "results.md").read_text(encoding="utf-8")
    assert [name for name in CHECKS if f"\n| {name} |" not in text] == []


def test_every_benchmark_is_listed() -> None:
    folder = ROOT / "benchmarks"
    listed = set(first_cells(folder / "README.md", "## What there is"))
    suites = {f"{path.parent.name}/" for path in folder.glob("*/__init__.py")}
    assert listed == suites | {path.name for path in folder.glob("*.py")}


def test_the_licence_is_whole() -> None:
    text = (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert "Version 2.0, January 2004" in text
    assert "END OF TERMS AND CONDITIONS" in text
