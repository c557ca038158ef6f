"""The stories of the gallery as notebooks, from the same pages: ``python docs/gallery/notebooks.py``.

Text becomes a cell of text, a ``python`` block a cell of code, a ``$ mixope …`` line a cell with ``!mixope …``, and the
``text`` block after either of them its output. Nothing is run: the tests run the pages, and check that the notebooks
are what this makes of them.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
FENCE = re.compile(r"^```(?P<language>\w*)[^\n]*\n(?P<text>.*?)^```$\n?", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?:|#)(?P<path>[^)\s]+)\)")
COMMENT = re.compile(r"^<!--.*?-->\n", re.MULTILINE)


def cells(page: str) -> list[dict[str, Any]]:
    """The cells of a page, in order."""
    found: list[dict[str, Any]] = []
    end = 0
    for match in FENCE.finditer(page):
        between = page[end : match.start()].strip()
        found += [_text(between)] if between else []
        if match["language"] == "python":
            found.append(_code(match["text"]))
        elif match["language"] == "console":
            found += [_code(f"!{command}") for command in match["text"].removeprefix("$ ").split("\n$ ")]
        elif match["language"] == "text" and not between and found and found[-1]["cell_type"] == "code":
            found[-1]["outputs"] = [{"output_type": "stream", "name": "stdout", "text": _lines(match["text"])}]
        else:
            found.append(_text(match.group().strip()))
        end = match.end()
    rest = page[end:].strip()
    return found + ([_text(rest)] if rest else [])


def notebook(page: str) -> str:
    """A page as the JSON of a notebook (nbformat 4)."""
    made = cells(COMMENT.sub("", page))
    for number, cell in enumerate(made):
        cell["id"] = f"cell-{number}"
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    whole = {"cells": made, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(whole, indent=1, ensure_ascii=False) + "\n"


def paths() -> dict[Path, Path]:
    """Every story, and the notebook that belongs to it."""
    stories = sorted(page for page in HERE.glob("*.md") if page.name != "index.md")
    return {page: HERE / "notebooks" / f"{page.stem}.ipynb" for page in stories}


def _text(text: str) -> dict[str, Any]:
    below = LINK.sub(lambda match: f"](../{match['path']})", text)  # notebooks lie one folder deeper
    return {"cell_type": "markdown", "metadata": {}, "source": _lines(below)}


def _code(text: str) -> dict[str, Any]:
    source = _lines(text.rstrip("\n"))
    return {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": [], "source": source}


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


if __name__ == "__main__":
    for story, path in paths().items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(notebook(story.read_text(encoding="utf-8")), encoding="utf-8")
        print(path.relative_to(HERE))
