"""A difference in words: with its interval, and how likely it is that the first is better."""

from __future__ import annotations

from mixope.answers.estimate import Earned
from mixope.report.words import NO_CONCLUSION, around, rounded
from mixope.uncertainty import Difference, probability_words


def difference_words(found: Earned) -> str:
    """The target less somebody, with its interval; or a dash."""
    return "–" if found.difference is None else around(found.difference.value, found.difference.interval)


def advantage_words(found: Earned) -> str:
    """The same with how likely it is that the target is better."""
    if found.difference is None:
        return "–"
    chance = found.difference.probability_better
    return f"{difference_words(found)}, {NO_CONCLUSION if chance is None else chance_words('better', chance)}"


def chance_words(what: str, chance: float | None) -> str:
    """The probability of something, as a formula."""
    words = probability_words(chance)
    return f"P({what}) {words if words.startswith(('<', '>')) else f'= {words}'}"


def chance_sentence(what: str, chance: float) -> str:
    """The same, as a sentence."""
    words = probability_words(chance).replace("<", "below").replace(">", "above")
    return f"the probability that {what} is {words}"


def effect_words(effect: Difference) -> str:
    """A difference with its sign, its interval and the level."""
    return f"{amount(effect.value, effect.standard_error)} ({reach(effect)} at {effect.interval.level:.4g})"


def amount(value: float, error: float | None) -> str:
    """A difference with its sign, to the digits that its standard error leaves it."""
    said = rounded(value, error)
    return said if said.startswith(("-", "−")) else f"+{said}"


def reach(effect: Difference) -> str:
    """The interval of a difference, with signs."""
    sure, error = effect.interval, effect.standard_error
    return f"{amount(sure.low, error)} to {amount(sure.high, error)}"
