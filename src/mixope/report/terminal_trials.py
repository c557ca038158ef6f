"""An experiment on a terminal: the decision first, then how the difference goes on from what was seen."""

from __future__ import annotations

from rich.console import Group
from rich.table import Table
from rich.text import Text

from mixope.base.errors import Phrase, phrased
from mixope.experiments.records import ArmResult, Day, Experiment, Line
from mixope.report import trial_words as say
from mixope.report.difference_words import amount, reach
from mixope.report.layout import STYLE, Cell, Pieces, advice, facts, heading, notes, remarks, status, table
from mixope.report.words import percent, remedies, rounded
from mixope.uncertainty import probability_words


def experiment_view(found: Experiment, phrase: Phrase) -> Group:
    """Every arm on every metric, then what all of them rest on."""
    pieces: Pieces = []
    for arm in found.arms:
        pieces += _arm(found, arm, phrase)
    pieces += [*_rails(found), *_groups(found)]
    return Group(
        *pieces, Text(f"\n{say.who(found)}; state: {', '.join(found.states)}"), *remarks(notes(found.notes), phrase)
    )


def _rails(found: Experiment) -> Pieces:
    rows = [(status(how), whose, words) for how, whose, words in say.rails(found)]
    return [heading("guardrails"), table(("", "metric", "in words"), rows, folded=("in words",))] if rows else []


def _groups(found: Experiment) -> Pieces:
    rows = []
    for group in found.subgroups:
        effect, plain = group.long_run.effect, group.naive
        seen = amount(plain.value, plain.standard_error)
        value = amount(effect.value, effect.standard_error)
        whose = f"{group.arm}, {group.metric}"
        rows.append((group.value, f"{group.units:,}", whose, seen, value, reach(effect), str(group.long_run.verdict)))
    if not rows:
        return []
    head = (found.subgroups[0].column, "#units", "of", "#seen", "#long run", "interval", "verdict")
    return [heading(f"by {found.subgroups[0].column} at entry"), table(head, rows)]


def _arm(found: Experiment, arm: ArmResult, phrase: Phrase) -> Pieces:
    verdict = arm.long_run.verdict
    lines: list[tuple[str, Cell]] = [
        ("verdict", Text(str(verdict), style=STYLE[say.kind(arm)])),
        ("how sure", say.chance(arm)),
        *([("why", said)] if (said := say.parts(arm)) else []),
        *(("refused", phrased(check.sentence, phrase)) for check in arm.long_run.checks if check.status == "fail"),
        ("checks", say.trust(arm)),
    ]
    pieces: Pieces = [Text(f"\n{say.headline(found, arm)}", style="bold"), facts(lines)]
    head = ("method", "#difference", "interval", f"#P({arm.arm} better)", "what it is")
    pieces.append(table(head, [_line(line) for line in arm.lines], folded=("what it is",)))
    pieces += [heading(f"{arm.arm} less {found.control}, by {found.period} since entry"), _path(found, arm)]
    pieces += [heading("the states behind it"), _drivers(found, arm)]
    if arm.sensitivity is not None:
        flips = [(each.assumption, each.sentence) for each in arm.sensitivity.robustness]
        pieces += [heading("what would flip it"), table(("assumption", "in words"), flips, folded=("in words",))]
        pieces += [Text(said) for said in say.compared(arm.sensitivity)]
    bad = [check for check in arm.long_run.checks if check.status != "pass"]
    if bad:
        checks = [(status(check.status), check.name, phrased(check.sentence, phrase)) for check in bad]
        pieces.append(table(("", "check", "in words"), checks, folded=("in words",)))
        pieces += advice(remedies(bad), phrase)
    return pieces


def _line(line: Line) -> tuple[Cell, ...]:
    found = line.effect
    value = amount(found.value, found.standard_error)
    return line.name, value, reach(found), probability_words(found.probability_better), line.meaning


def _path(found: Experiment, arm: ArmResult) -> Table:
    days = {day.day: day for day in arm.days}
    rows = [_day(days[moment]) for moment in say.moments(found, arm)]
    return table((f"#{found.period}", "#seen", "#predicted", "interval"), rows)


def _day(day: Day) -> tuple[Cell, ...]:
    error = (day.high - day.low) / 4
    seen = ""
    if day.seen is not None:
        seen = f"{amount(day.seen, day.seen_error)} ± {rounded(day.seen_error, day.seen_error)}"
    reach = f"{amount(day.low, error)} to {amount(day.high, error)}"
    return str(day.day + 1), seen, amount(day.predicted, error), reach


def _drivers(found: Experiment, arm: ArmResult) -> Table:
    rows, error = [], arm.long_run.effect.standard_error
    for driver in arm.drivers:
        state = ", ".join(f"{name} {value}" for name, value in driver.state.items())
        shares = percent(driver.control_share, 1), percent(driver.treatment_share, 1)
        rows.append((state, *shares, amount(driver.at_once, error), amount(driver.carried, error)))
    head = ("state", f"#share under {found.control}", f"#under {arm.arm}", "#at once", "#carried over")
    return table(head, rows)
