"""What the golden values are of: every estimator × estimand × contract world, intervals of every kind, backtests.

A case gives numbers by name, words that must stay as they are (verdict, status of every check, or "refused"), and how
often it read the logs. Worlds are those of the contract, and one whose episodes were cut so that nobody knows what came
after their last rows.
"""

from dataclasses import asdict, dataclass, replace
from functools import cache

import numpy as np
import pytest

import mixope
from contract import worlds
from contract.worlds import ESTIMANDS, LABELS
from mixope.base.errors import MixopeError
from mixope.behaviours import known
from rounds.worlds import Watching

CUT = "ids that are cut"
SLOW = ("kernel", "fqe")
"""Estimators that take seconds: their cases are long."""
INTERVALS = {
    "blocks": {"interval": "blocks"},
    "likelihood": {"interval": "likelihood"},
    "sequence": {"interval": "sequence"},
    "bca": {"interval": "bca", "replicates": 20, "jobs": 1},
}


STEADY = ("value", "standard_error", "interval.low", "interval.high", "logs", "predicted", "earned", "low", "high")


@dataclass(frozen=True)
class Case:
    """One run: a world, and what is asked of it. ``exact`` where states are counted."""

    kind: str
    world: str
    estimand: str
    what: str = ""

    @property
    def name(self):
        return " · ".join(part for part in (self.kind, self.world, self.estimand, self.what) if part)

    @property
    def exact(self):
        return world(self.world).kind == "counts"

    def keeps(self, name):
        """Of vectors, what must not move by a thousandth of a half-width; other numbers differ by processor."""
        return self.exact or name[1] in STEADY

    def run(self):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(known, "BY_ROWS", {})  # as in the contract
            return RUNS[self.kind](self)


@cache
def world(name):
    return cut() if name == CUT else worlds.world(name)


def cut():
    """The last row of every other episode leads nobody knows where."""
    made = worlds.world("ids")
    columns = {name: np.array(values) for name, values in made.columns.items()}
    last = np.append(columns["episode_id"][1:] != columns["episode_id"][:-1], True)
    gone = last & (columns["episode_id"] % 2 == 0)
    following = columns["next_observation"].astype(object)
    following[gone] = None
    return replace(made, columns={**columns, "next_observation": following.tolist(), "truncated": last})


NAMES = (*worlds.WORLDS, CUT)


def cases():
    """All of them; making their worlds takes seconds."""
    found = []
    for name in NAMES:
        here = world(name)
        for estimand in here.estimands:
            found.append(Case("estimates", name, estimand))
            if name == worlds.TINY:
                found += [Case("estimates", name, estimand, slow) for slow in SLOW]
        found += [Case("intervals", name, here.estimands[0], kind) for kind in INTERVALS]
        found += [Case("backtest", name, asked) for asked in here.estimands[:2]]
        found.append(Case("differences", name, here.estimands[0]))
    return found


def _asked(case):
    here = world(case.world)
    target, *loggers = here.policies({})
    given = dict(zip(LABELS, loggers, strict=True))
    logs = mixope.read(here.columns, missing=here.missing)
    options = {"features": here.features, "engine": Watching(threads=1)}
    return here, logs, target, {"loggers": given, **options, **ESTIMANDS[case.estimand]}


def estimates(case):
    """Every quick estimator, or one slow one, in one run."""
    here, logs, target, options = _asked(case)
    fast = [name for name in worlds.takers(case.world if case.world != CUT else "ids") if name not in SLOW]
    names = [case.what] if case.what else fast
    try:
        found = mixope.compare(logs, {"new": target}, [here.estimator(name) for name in names], **options)
    except MixopeError as refusal:
        return {}, {case.what: _refused(refusal)}, options["engine"].passes
    numbers, words, passes = _told(found.estimates, options["engine"])
    return numbers, {**words, **{name: "refused" for name, _ in found.skipped}}, passes


def intervals(case):
    """Of the default estimator."""
    here, logs, target, options = _asked(case)
    try:
        found = mixope.evaluate(logs, target, here.estimator("dr"), **INTERVALS[case.what], **options)
    except MixopeError as refusal:
        return {}, {"dr": _refused(refusal)}, options["engine"].passes
    return _told([found], options["engine"])


def backtests(case):
    """Of every logger from the others."""
    here, logs, _, options = _asked(case)
    try:
        found = mixope.backtest(logs, estimator=here.estimator("emp"), **options)
    except MixopeError as refusal:
        return {}, {"emp": _refused(refusal)}, options["engine"].passes
    numbers = {(row.label, name): value for row in found.rows for name, value in _numbers(asdict(row)).items()}
    return numbers, {row.label: str(row.verdict) for row in found.rows}, options["engine"].passes


def differences(case):
    """Of the target and the loggers, by one estimator."""
    here, logs, target, options = _asked(case)
    targets = {"new": target, **options["loggers"]}
    found = mixope.compare(logs, targets, [here.estimator("emp")], interval="t", **options)
    numbers, words, passes = _told(found.estimates, options["engine"], by_target=True)
    for each in found.differences:
        for pair in (*each.pairs, *each.loggers):
            numbers |= {
                (f"{pair.first} − {pair.second}", key): value for key, value in _numbers(pair.to_dict()).items()
            }
    return numbers, words, passes


RUNS = {"estimates": estimates, "intervals": intervals, "backtest": backtests, "differences": differences}


def _refused(refusal):
    return f"refused {type(refusal).__name__}"


def _numbers(record, prefix=""):
    found = {}
    for name, value in record.items():
        if isinstance(value, dict):
            found |= _numbers(value, f"{prefix}{name}.")
        elif isinstance(value, int | float) and not isinstance(value, bool):
            found[f"{prefix}{name}"] = float(value)
    return found


def _told(found, engine, by_target=False):
    numbers, words = {}, {}
    for one in found:
        name = f"{one.target} {one.estimator}" if by_target else one.estimator
        numbers |= {(name, key): value for key, value in _of(one).items()}
        checks = "; ".join(f"{check.name}: {check.status}" for check in one.diagnostics)
        words[name] = f"{one.verdict} | {checks}"
    return numbers, words, engine.passes


def _of(one):
    """The numbers of an estimate that stand for all others."""
    record = one.to_dict()
    against = record["against_logs"]
    kept = {name: record[name] for name in ("value", "standard_error", "interval", "outer_band", "uncovered_mass")}
    kept |= {name: record[name] for name in ("outside_mass", "effective_sample_size", "measures")}
    gain = against["difference"] or {}
    kept |= {"logs": against["value"], "gain": gain.get("standard_error"), "better": gain.get("probability_better")}
    found = {name: value for name, value in kept.items() if value is not None}
    for logger in record["loggers"]:
        found[logger["label"]] = {name: logger[name] for name in ("value", "weight_share") if logger[name] is not None}
    scores = one.scores
    if scores is not None:
        weight = np.cos(np.arange(len(scores)))
        found["scores"] = float(weight @ scores)
    if one.step_scores is not None:
        found["step scores"] = float(np.cos(np.arange(len(one.step_scores))) @ one.step_scores)
    return {name: value for name, value in _numbers(found).items() if np.isfinite(value)}
