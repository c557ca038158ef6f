"""Reports: records in, something to read out.

    text       what ``print`` shows
    document   what a report shows, as one record (of parts: answer, contest, coverage, predictions, manifest)
    html       from it, a page or a notebook cell
    console    from it, a terminal

The page and the terminal are loaded when they are first asked for.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mixope.report.text import comparison_text, estimate_text

if TYPE_CHECKING:
    from rich.console import RenderableType

    from mixope.backtesting import Backtest
    from mixope.estimate import Comparison, Estimate
    from mixope.report.document import AnyDocument

__all__ = ["comparison_text", "estimate_text", "html_fragment", "terminal", "write_html"]


def write_html(
    record: Estimate | Comparison | Backtest,
    path: str | os.PathLike[str],
    **extras: Any,
) -> Path:
    """Write the report of a result as one self-contained page; a backtest takes a ``command`` only.

    ``backtest`` has rows with label, predicted, low, high, earned and covered; ``band`` has low and high; ``coverage``
    is what an inspection found. Of a comparison, ``band``, ``coverage`` and ``truth`` may be mappings from targets.
    """
    from mixope.report import html

    return html.write(_document(record, **extras), path)


def html_fragment(record: Estimate | Comparison | Backtest) -> str:
    """The report as a notebook shows it."""
    from mixope.report import html

    return html.fragment(_document(record))


def _document(record: Estimate | Comparison | Backtest, **extras: Any) -> AnyDocument:
    """A backtest is known by its rows: its type belongs to a layer above."""
    from mixope.report.document import backtest_document, document

    if hasattr(record, "rows"):
        return backtest_document(record, **extras)  # type: ignore[arg-type]
    return document(record, **extras)


def terminal(
    record: Estimate | Comparison,
    *,
    command: str | None = None,
    backtest: Any = None,
    band: Any = None,
    truth: float | Mapping[str, float] | None = None,
    coverage: Any = None,
) -> RenderableType:
    """The report for a terminal, to be printed by a ``rich`` console."""
    from mixope.report.console import view
    from mixope.report.document import document

    return view(document(record, command=command, backtest=backtest, band=band, truth=truth, coverage=coverage))
