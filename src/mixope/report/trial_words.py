"""What an experiment found, in sentences that need no table."""

from __future__ import annotations

from mixope.base.estimand import Estimand
from mixope.checks import Verdict
from mixope.experiments.records import ArmResult, Experiment, Guardrail, Sensitivity
from mixope.report.difference_words import amount, chance_sentence, effect_words

IN_THE_LONG_RUN = "in the long run"


_KIND = {Verdict.TRUSTWORTHY: "good", Verdict.CAUTION: "caution", Verdict.UNSUPPORTED: "bad"}


def kind(arm: ArmResult) -> str:
    """How the answer came out: good, caution or bad."""
    return _KIND.get(arm.long_run.verdict, "reference")


def headline(found: Experiment, arm: ArmResult) -> str:
    """The decision, by how much, how sure; and whether the test looked otherwise."""
    effect, per = arm.long_run.effect, f"per {found.unit} and {found.period}"
    if arm.decision == "not supported":
        return f"{_asked(f'These data do not support an answer on {arm.arm} against {found.control}', arm)}."
    said = _asked(_verb(found, arm), arm)
    return f"{said}: {effect_words(effect)} {per}{_otherwise(arm)}{_broken(found, arm)}."


def _asked(said: str, arm: ArmResult) -> str:
    """With what was asked for: the long run, or something else by its name."""
    when = _when(arm)
    return f"{said} {when}" if when == IN_THE_LONG_RUN else f"{said.rstrip(',')}, {when}"


def _when(arm: ArmResult) -> str:
    asked = arm.long_run.estimand
    return IN_THE_LONG_RUN if asked == str(Estimand()) else asked


def _verb(found: Experiment, arm: ArmResult) -> str:
    """More, less, or not to be told apart; of a cost it is also said which of them is better."""
    if arm.decision == "unclear":
        return f"{arm.arm} and {found.control} cannot be told apart on {arm.metric}"
    more = "more" if arm.long_run.effect.value > 0 else "less"
    if arm.less_is_better:
        return f"{arm.arm} is {arm.decision} than {found.control}, with {more} {arm.metric},"
    return f"{arm.arm} earns {more} {arm.metric} than {found.control}"


def _broken(found: Experiment, arm: ArmResult) -> str:
    """The guardrails that an arm breaks."""
    names = [rail.metric for rail in found.guardrails if rail.arm == arm.arm and rail.status == "broken"]
    return f"; it breaks the guardrail on {' and '.join(names)}" if names else ""


def _otherwise(arm: ArmResult) -> str:
    """Where the plain difference would have led elsewhere."""
    seen = arm.naive
    looked = arm.says(seen)
    if looked == arm.decision:
        return ""
    said = {"better": "it looked better", "worse": "it looked worse", "unclear": "no difference was sure"}[looked]
    return f", though {said} during the test ({amount(seen.value, seen.standard_error)})"


def chance(arm: ArmResult) -> str:
    """How likely it is that treatment is better."""
    p = arm.long_run.effect.probability_better
    if p is None or arm.decision == "not supported":
        return f"these data do not tell whether {arm.arm} is better"
    return chance_sentence(f"{arm.arm} is better", p)


def parts(arm: ArmResult) -> str:
    """How the long-run difference comes about; nothing where there is none to believe."""
    if arm.decision == "not supported":
        return ""
    once, carried = arm.at_once, arm.carried
    return (
        f"{amount(once.value, once.standard_error)} is earned at once, in the same states, and"
        f" {amount(carried.value, carried.standard_error)} comes from units that are elsewhere in the long run"
    )


def sentence(words: str) -> str:
    """With a capital at the beginning and a full stop."""
    return f"{words[:1].upper()}{words[1:]}."


def trust(arm: ArmResult) -> str:
    """What the verdict rests on."""
    checks = arm.long_run.checks
    bad = [check for check in checks if check.status != "pass"]
    if not bad:
        return f"all {len(checks)} checks passed"
    return f"{len(bad)} of {len(checks)} checks did not pass: {', '.join(check.name for check in bad)}"


def compared(found: Sensitivity) -> list[str]:
    """What a factor of hidden reasons may be held against."""
    if found.logged_factor is None:
        return []
    return [f"For comparison: the state that is logged moves the odds of the arm by up to {found.logged_factor:.3g}."]


_RAIL_KIND = {"held": "good", "open": "caution", "broken": "bad"}


def rail_kind(rail: Guardrail) -> str:
    """How a guardrail came out: good, caution or bad."""
    return _RAIL_KIND[rail.status]


def who(found: Experiment) -> str:
    """How large the experiment is."""
    arms = ", ".join(f"{units:,} {name}" for name, units in found.shares.items())
    return f"{found.units:,} units ({arms}), {found.rows:,} rows, up to {found.tested} {found.period}s"


def moments(found: Experiment, arm: ArmResult) -> list[int]:
    """The days of the path that are worth a line: a few in the test, its end, a few beyond."""
    last = arm.days[-1].day
    wanted = {0, 1, 2, 6, found.tested - 1, 29, 59, 89, 179, 364, last}
    return sorted(day for day in wanted if 0 <= day <= last)
