"""Reports: records in, something to read out. Records know nothing of it (:mod:`mixope.rendering` finds it for them).

    words      numbers and sentences
    terminal   what ``print`` and the command line show
    document   what a page shows; html, figures, plots and svg make it

The libraries behind the page and the terminal are loaded when they are first asked for.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mixope.rendering import Record, ReportedRecord

__all__ = ["html_fragment", "text", "write_html"]


def text(record: Record) -> str:
    """What ``print`` shows: the terminal's rendering without colours, on lines of a fixed width."""
    from mixope.report import terminal

    return terminal.text(record)


def html_fragment(record: ReportedRecord) -> str:
    """The report as a notebook shows it."""
    from mixope.report import html
    from mixope.report.document import document

    return html.fragment(document(record))


def write_html(record: ReportedRecord, path: str | os.PathLike[str], **extras: Any) -> Path:
    """Write the report of a result as one self-contained page; it appears whole or not at all.

    Any record takes the ``command`` that made it and a ``phrase``, the words for what the reader could set. An estimate
    or a comparison also takes a ``backtest``, the outer ``band`` (low and high), the ``coverage`` that an inspection
    found, and the ``truth`` where it is known; of a comparison the last three may be mappings from targets.
    """
    from mixope.files import write_whole
    from mixope.report import html
    from mixope.report.document import document

    return write_whole(path, html.render(document(record, **extras)).encode())
