"""The figures of an experiment's page."""

from __future__ import annotations

from functools import partial

from mixope.experiments.records import ArmResult, Experiment
from mixope.report import trial_graphs as graphs
from mixope.report.difference_words import amount
from mixope.report.drawings import Figures, sized
from mixope.report.graphs import HEIGHT, bounds


def of_experiment(found: Experiment, prefix: str = "") -> Figures:
    """The path of every arm, and the bounds where there are any."""
    made: Figures = {}
    for k, arm in enumerate(found.arms):
        unit = f"{arm.metric}, {arm.arm} less {found.control}"
        path = partial(graphs.path, days=arm.days, unit=unit, period=f"{found.period} since entry")
        name = f"path-{k}"
        made[name] = sized(path, HEIGHT[False], HEIGHT[True], prefix + name, _caption(found), _says(found, arm))
        if arm.sensitivity is not None:
            name = f"flip-{k}"
            drawn = partial(bounds, points=arm.sensitivity.curve, unit=unit, factor=ODDS, line=0.0)
            said = " ".join(one.sentence for one in arm.sensitivity.robustness)
            made[name] = sized(drawn, HEIGHT[False], HEIGHT[True], prefix + name, BOUNDS, said)
        if arm.sensitivity is not None and arm.sensitivity.memory_curve:
            name = f"memory-{k}"
            drawn = partial(bounds, points=arm.sensitivity.memory_curve, unit=unit, factor=STEPS, line=0.0)
            said = arm.sensitivity["markov"].sentence
            made[name] = sized(drawn, HEIGHT[False], HEIGHT[True], prefix + name, MEMORY, said)
    return made


BOUNDS = (
    "The shade is what the difference may be if hidden reasons changed the odds of an arm by up to that factor in every"
    " state and period; the dashed lines count chance too."
)
ODDS = "factor on the odds of an arm"
STEPS = "factor on how likely steps are"
MEMORY = (
    "The same if what the state leaves out made steps that many times as likely, or as rare, as they were seen: what a"
    " part that stays hidden with a unit can do."
)


def _caption(found: Experiment) -> str:
    return (
        f"Dots are what was seen on each {found.period} of the test, with two standard errors. The line is what arms"
        " predict from how units went from state to state, with its interval; right of the dotted line nobody was"
        " watched."
    )


def _says(found: Experiment, arm: ArmResult) -> str:
    first, last = arm.days[0], arm.days[-1]
    return (
        f"The difference by {found.period}: {amount(first.predicted, None)} on the first,"
        f" {amount(last.predicted, None)} on number {last.day + 1}."
    )
