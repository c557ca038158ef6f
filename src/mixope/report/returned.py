"""Distributions of returns on a terminal: the mean and the worst of every target, then the quantiles."""

from __future__ import annotations

from rich.console import Group
from rich.text import Text

from mixope.diagnostics import Verdict
from mixope.distributions import Amount, Returns
from mixope.errors import Phrase, in_python
from mixope.report.layout import STYLE, Pieces, heading, notes, remarks, table
from mixope.report.words import rounded

MOST = 4
"""Targets whose quantiles stand side by side; the tables of the record have all."""
KINDS = {
    Verdict.TRUSTWORTHY: "good",
    Verdict.CAUTION: "caution",
    Verdict.UNSUPPORTED: "bad",
    Verdict.REFERENCE: "reference",
}


def amount_words(amount: Amount) -> str:
    """A number with its interval."""
    if amount.interval is None:
        return rounded(amount.value)
    half = amount.interval.width / 2 or None
    low, high = (rounded(end, half) for end in (amount.interval.low, amount.interval.high))
    return f"{rounded(amount.value, half)} ({low} to {high})"


def returns_view(found: Returns, phrase: Phrase = in_python) -> Group:
    """Means and tails of all targets, then their quantiles."""
    head = f"{found.estimand}, {found.estimand.unit}; intervals at {found.level:.4g}; {found.n_episodes:,} episodes"
    rows = [
        (
            each.target,
            amount_words(each.mean),
            amount_words(each.tail),
            f"{each.effective_episodes:,.0f}",
            Text(str(each.verdict), style=STYLE[KINDS[each.verdict]]),
        )
        for each in found.targets
    ]
    names = ("target", "mean", found.main.tail.name, "#effective episodes", "verdict")
    pieces: Pieces = [Text(head), table(names, rows, folded=("target", "verdict"))]
    by_share = [
        (share.name.removeprefix("quantile "), *(amount_words(each.quantiles[k]) for each in found.targets[:MOST]))
        for k, share in enumerate(found.main.quantiles)
    ]
    heads = ("share of episodes", *(each.target for each in found.targets[:MOST]))
    pieces += [heading("return at most so much"), table(heads, by_share, folded=heads[1:])]
    bad = [f"{each.target}: {c.sentence}" for each in found.targets for c in each.checks if c.status != "pass"]
    return Group(*pieces, *remarks(notes(bad), phrase))


def headline(found: Returns) -> str:
    """Who is best on average, and who in the worst episodes."""
    means, tails = (max(found.targets, key=lambda t: getattr(t, what).value) for what in ("mean", "tail"))
    if len(found.targets) == 1:
        return f"{amount_words(found.main.mean)} on average, {amount_words(found.main.tail)} in the worst episodes"
    if means is tails:
        return f"{means.target} has the highest mean, and the highest in the worst {found.alpha:.3g} of episodes"
    return f"{means.target} has the highest mean; {tails.target} the highest in the worst {found.alpha:.3g} of episodes"
