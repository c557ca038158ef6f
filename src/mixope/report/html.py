"""A document as HTML: one file with nothing outside it; and a card as a fragment for a notebook.

Everything from a record is made safe to show when it is put out (``finalize``) and escaped (``autoescape``); only the
package's own style sheet and the drawings, whose text was escaped when they were made, are put in as they are.
There is no script, and the page forbids any.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined, pass_context
from jinja2.runtime import Context
from markupsafe import Markup

from mixope.base.errors import clean, phrased
from mixope.report import words
from mixope.report.cards import Card
from mixope.report.document import Document
from mixope.report.figures import figures
from mixope.report.sheet import ChapterPart, ChecksMade, SheetTable
from mixope.version import __version__

_WORDS = ("demand", "kind", "outcome", "whole")
"""What templates say about a record, by the name of the function in :mod:`mixope.report.words`."""
MOST_LISTED = 100
"""Rows of a table in a card; the JSON has all."""


def render(document: Document) -> str:
    """The whole page."""
    return _filled("page.html.j2", document, top=1, prefix="", figures=figures(document))


def fragment(card: Card) -> str:
    """A card with its own style, which touches nothing else in the notebook."""
    drawing = Markup(card.chart.svg(card.mark)) if card.chart else None
    style = f"<style>\n{_source('card.css')}</style>\n"
    return style + _filled("card.html.j2", card, drawing=drawing)


def _filled(template: str, document: Document | Card, **options: Any) -> str:
    filled = _environment().get_template(template).render(document=document, **options)
    return "\n".join(line for line in filled.splitlines() if line.strip()) + "\n"


@cache
def _environment() -> Environment:
    made = Environment(
        loader=FunctionLoader(_source),
        autoescape=True,
        finalize=_safe,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["capital"] = _capital
    made.globals.update({name: getattr(words, name) for name in _WORDS})
    made.globals.update(css=Markup(_source("report.css")), symbol=words.SYMBOL, next_step=words.NEXT)
    made.globals.update(version=__version__, sort=_sort, checks_table=_checks_table, most=MOST_LISTED)
    return made


def _capital(text: str) -> str:
    """The same with a capital at its beginning."""
    return f"{text[:1].upper()}{text[1:]}"


def _sort(part: ChapterPart) -> str:
    """Which kind of part it is: templates know no classes."""
    return type(part).__name__


def _checks_table(found: ChecksMade) -> SheetTable:
    """All checks in one table, as a card has room for them."""
    every = words.by_urgency(found.made)
    rows = [(words.outcome(d), d.name, d.sentence, d.remedy or "", words.demand(d)) for d in every]
    return SheetTable("", ("", "check", "in words", words.NEXT, "value and threshold"), tuple(rows))


@pass_context
def _safe(context: Context, value: Any) -> Any:
    """What is put out: remedies in the words of the surface that asked for the page, nothing that cannot be shown."""
    return value if isinstance(value, Markup) else clean(phrased(value, context["document"].phrase))


def _source(name: str) -> str:
    return files("mixope.report").joinpath("templates", name).read_text(encoding="utf-8")
