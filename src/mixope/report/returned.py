"""Distributions of returns on a terminal: the mean and the worst of every target, then the quantiles."""

from __future__ import annotations

from rich.console import Group
from rich.table import Table
from rich.text import Text

from mixope.base.errors import Advice, Phrase, in_python
from mixope.checks import Verdict
from mixope.distributions import Amount, Returns
from mixope.report.layout import STYLE, Pieces, bullets, heading, notes, remarks, table
from mixope.report.words import by_urgency, rounded

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
    pieces: Pieces = [Text(subject(found)), _means_and_tails(found)]
    by_share = [
        (share.name.removeprefix("quantile "), *(amount_words(each.quantiles[k]) for each in found.targets[:MOST]))
        for k, share in enumerate(found.main.quantiles)
    ]
    heads = ("share of episodes", *(each.target for each in found.targets[:MOST]))
    pieces += [heading("return at most so much"), table(heads, by_share, folded=heads[1:])]
    bad = [f"{each.target}: {c.sentence}" for each in found.targets for c in each.checks if c.status != "pass"]
    return Group(*pieces, *remarks(notes([*refusals(found), *bad]), phrase))


def subject(found: Returns) -> str:
    """What is asked, and of how many episodes."""
    return f"{found.estimand}, {found.estimand.unit}; intervals at {found.level:.4g}; {found.n_episodes:,} episodes"


def _means_and_tails(found: Returns) -> Table:
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
    return table(names, rows, folded=("target", "verdict"))


def refusals(found: Returns) -> list[str]:
    """The targets that are left out, each with the reason."""
    return [Advice(f"{name} is left out: ", reason) for name, reason in found.refused]


def doubts(found: Returns) -> list[str]:
    """Of every target that is not trustworthy, the check that weighs most."""
    first = [(each.target, by_urgency(each.checks)[0]) for each in found.targets]
    return [Advice(f"{target}: ", check.sentence) for target, check in first if check.status != "pass"]


def risk_pieces(found: Returns | None, because: str | None, phrase: Phrase) -> Pieces:
    """Risk and return of compared targets: who leads, a table, what is in doubt; or why there is none."""
    if found is None:
        return remarks(notes([Advice(NO_RISK, because)]), phrase) if because else []
    said = f"risk and return: {subject(found)}, for one look"
    remarked = remarks(notes([*refusals(found), *doubts(found)]), phrase)
    return [heading(said), bullets([headline(found)]), _means_and_tails(found), *remarked]


NO_RISK = "no risk against return: "


def headline(found: Returns) -> str:
    """Who is best on average, and who in the worst episodes; what the logs do not support never leads."""
    if len(found.targets) == 1:
        return f"{amount_words(found.main.mean)} on average, {amount_words(found.main.tail)} in the worst episodes"
    sound = [each for each in found.targets if each.verdict is not Verdict.UNSUPPORTED]
    if not sound:
        return "these logs support no answer on any target's episodes"
    means, tails = (max(sound, key=lambda t: getattr(t, what).value) for what in ("mean", "tail"))
    of = "" if len(sound) == len(found.targets) else f" of the {len(sound)} that are supported"
    worst = f"in the worst {found.alpha:.3g} of episodes"
    if means is tails:
        return f"{means.target} has the highest mean{of}, and the highest {worst}"
    return f"{means.target} has the highest mean{of}; {tails.target} the highest {worst}"
