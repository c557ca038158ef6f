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
from mixope.report import returned, trial_words, words
from mixope.report.cards import Card
from mixope.report.decision import decision
from mixope.report.difference_words import amount, reach
from mixope.report.document import Document, versions
from mixope.report.figures import figures
from mixope.uncertainty import probability_words
from mixope.version import __version__

_WORDS = (
    *("demand", "interval_words", "judged", "kind", "level_words", "meaning", "number", "outcome", "percent", "signed"),
    *("span", "standing", "state_words", "times", "unanswered", "whole", "why"),
)
"""What templates say about a record, by the name of the function in :mod:`mixope.report.words`."""


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
    made.globals.update({name: getattr(words, name) for name in _WORDS})
    made.globals.update(probability_words=probability_words, decision=decision, versions=versions, version=__version__)
    made.globals.update(no_conclusion=words.NO_CONCLUSION, next_step=words.NEXT)
    made.globals.update(trial=trial_words, risk_words=returned, amount=amount, reach=reach)
    made.globals.update(css=Markup(_source("report.css")), symbol=words.SYMBOL)
    return made


@pass_context
def _safe(context: Context, value: Any) -> Any:
    """What is put out: remedies in the words of the surface that asked for the page, nothing that cannot be shown."""
    return value if isinstance(value, Markup) else clean(phrased(value, context["document"].phrase))


def _source(name: str) -> str:
    return files("mixope.report").joinpath("templates", name).read_text(encoding="utf-8")
