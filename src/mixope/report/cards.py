"""What a notebook shows of a record: a card with the answer, what matters most about it, a picture, and details folded.

    a record  →  its sheet and its picture  →  HTML (card.html.j2)

A card holds words only; they are made safe to show and escaped where they are put out, as on a page.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from itertools import count

from mixope.base.errors import Phrase, in_python
from mixope.differences import Comparison, Differences, Selection
from mixope.report.charts import Chart, chart
from mixope.report.sheet import CARD, CardLine, Chapter, Sheet
from mixope.report.sheets import sheet

MOST_DRAWN = 6
_serial = count(1)


@dataclass(frozen=True)
class Card:
    """What a card shows."""

    sheet: Sheet
    chart: Chart | None
    phrase: Phrase = in_python

    @property
    def kind(self) -> str:
        """How the answer came out."""
        return self.sheet.headline.kind

    @property
    def word(self) -> str:
        """The verdict."""
        return self.sheet.headline.word

    @property
    def checks(self) -> tuple[CardLine, ...]:
        """What matters most."""
        return self.sheet.urgent

    @property
    def folds(self) -> tuple[Chapter, ...]:
        """The details."""
        return self.sheet.on(CARD)

    @property
    def mark(self) -> str:
        """Tells this card from all others of a notebook, also from the same one shown twice."""
        said = repr((self.sheet.headline, self.sheet.brief, self.checks)).encode("utf-8", "replace")
        return f"mx-{hashlib.sha256(said).hexdigest()[:8]}-{next(_serial)}"


def card(record: object) -> Card:
    """The card of a record."""
    return Card(sheet(record), chart(drawn(record), _rows(record)))


def drawn(record: object) -> object:
    """What the picture shows: of several targets, the estimates that are ranked."""
    if isinstance(record, Comparison) and record.selections and len({e.target for e in record.estimates}) > 1:
        by = record.selections[0].estimator
        return replace(record, estimates=tuple(e for e in record.estimates if e.estimator == by))
    return record


def _rows(record: object) -> int:
    return 2 * MOST_DRAWN if isinstance(record, (Selection, Differences)) else MOST_DRAWN
