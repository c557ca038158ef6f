"""Reports: records in, something to read out.

    text       what ``print`` shows
    document   what a report shows, as one record; from it come
    html       a page or a notebook cell
    console    a terminal

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

    from mixope.estimate import Comparison, Estimate

__all__ = ["comparison_text", "estimate_text", "html_fragment", "terminal", "write_html"]


def write_html(
    record: Estimate | Comparison,
    path: str | os.PathLike[str],
    *,
    command: str | None = None,
    backtest: Any = None,
    band: Any = None,
    truth: float | Mapping[str, float] | None = None,
    coverage: Any = None,
) -> Path:
    """Write the report of a result as one self-contained page.

    ``backtest`` has rows with label, predicted, low, high, earned and covered; ``band`` has low and high; ``coverage``
    is what an inspection found. Of a comparison, ``band`` and ``truth`` may be mappings from targets.
    """
    from mixope.report import html
    from mixope.report.document import document

    shown = document(record, command=command, backtest=backtest, band=band, truth=truth, coverage=coverage)
    return html.write(shown, path)


def html_fragment(record: Estimate | Comparison) -> str:
    """The report as a notebook shows it."""
    from mixope.report import html
    from mixope.report.document import document

    return html.fragment(document(record))


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
