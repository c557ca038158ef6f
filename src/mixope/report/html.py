"""A document as HTML: one file with nothing outside it, or a fragment for a notebook.

Everything from the record is escaped by the templates (autoescape); only the package's own style sheet and the
drawings, whose text was escaped when they were made, are put in as they are.
There is no script, and the page forbids any.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from mixope.report.answer import SYMBOL
from mixope.report.document import AnyDocument, Document
from mixope.report.figures import figures
from mixope.report.text import number
from mixope.report.words import percent, whole
from mixope.version import __version__


def render(document: AnyDocument) -> str:
    """The whole page."""
    return _fill("page.html.j2", document, top=1, prefix="")


def fragment(document: AnyDocument) -> str:
    """The same content without a page around it; its identifiers carry a hash, so that several fit one notebook."""
    mark = hashlib.sha256(document.to_json(None).encode()).hexdigest()[:8]
    return _fill("fragment.html.j2", document, top=3, prefix=f"mx-{mark}-")


def write(document: AnyDocument, path: str | os.PathLike[str]) -> Path:
    """The page as a file, whole or not at all: it is written beside its place and then renamed."""
    target = Path(path)
    page = render(document).encode()
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".part", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(page)
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, target)
    except BaseException:
        os.unlink(temporary)
        raise
    return target


def _fill(template: str, document: AnyDocument, **options: Any) -> str:
    drawn = figures(document, options["prefix"])
    shown: Mapping[str, Any] = {
        name: {"wide": Markup(d.wide), "narrow": Markup(d.narrow), "caption": d.caption} for name, d in drawn.items()
    }
    body = "report.html.j2" if isinstance(document, Document) else "backtest_report.html.j2"
    filled = _environment().get_template(template).render(document=document, figures=shown, body=body, **options)
    return "\n".join(line for line in filled.splitlines() if line.strip()) + "\n"


@cache
def _environment() -> Environment:
    made = Environment(
        loader=FunctionLoader(_source),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals.update(
        css=Markup(_source("report.css")),
        number=number,
        percent=percent,
        symbol=SYMBOL,
        version=__version__,
        whole=whole,
    )
    return made


def _source(name: str) -> str:
    return files("mixope.report").joinpath("templates", name).read_text(encoding="utf-8")


def _umask() -> int:
    """The permissions that new files must not have; it can only be read by setting it."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
