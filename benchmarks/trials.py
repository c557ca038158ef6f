"""Simulated experiments whose truth is known: how often each method decides rightly, and whether intervals hold.

    python -m benchmarks.trials --tests 200 --hidden-tests 50 --users 4000 --days 14 --seed 0

For every setting: the bias of the naive difference, the surrogate index, differences in Q and the long run; how often
the 95 % interval of each holds the truth, and how often it decides rightly (better, worse, or unclear where there is no
effect) and wrongly; how often the verdict is trustworthy, and coverage there. Then the same where the state misses a
column: how often that is flagged, in all tests and in those whose interval misses the truth. Tables of users who stay
away have no rows of the days on which nobody came; hidden are then the *absences*: nobody says what they mean.

Every test is appended to benchmarks/results/trials.csv as it ends; a rerun goes on where it stopped.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from benchmarks.resuming import Results
from benchmarks.tables import markdown

import mixope
from mixope.worlds import engagement

WORDS = {"arm": "variant", "control": "A", "unit": "user", "time": "day", "metric": "revenue"}
TESTS, HIDDEN_TESTS, USERS, DAYS = 200, 50, 4000, 14
LONG_RUN = "dr"
METHODS = ("naive", "surrogate", "dq", LONG_RUN)
WHOLE = ("lift", "seasonal", "null", "novelty", "habit", "investment", "wear-out", "opposite", "churn")
ABSENCES = "absences"
HIDDEN = (
    ("wear-out", "fatigue"),
    ("opposite", "fatigue"),
    ("novelty", "novelty"),
    ("habit", "level"),
    ("investment", "level"),
    ("wear-out", "level"),
    ("opposite", "plan"),
    ("seasonal", "weekday"),
    ("churn", ABSENCES),
)
KEYS = ("setting", "hidden", "users", "days", "seed")
FIELDS = (*KEYS, "method", "estimator", "value", "low", "high", "truth", "verdict", "flags")
RESULTS = Results("trials.csv", FIELDS)


@dataclass(frozen=True)
class Ask:
    """One simulated test; ``hidden`` is a column that its table does not have, the absences, or nothing."""

    setting: str
    hidden: str
    users: int
    days: int
    seed: int

    @property
    def key(self) -> tuple[str, ...]:
        return tuple(str(getattr(self, name)) for name in KEYS)


def one(ask: Ask) -> list[dict[str, Any]]:
    """All methods on one test, a line each."""
    hidden = (ask.hidden,) if ask.hidden not in ("", ABSENCES) else ()
    world = engagement.make(ask.setting, hidden=hidden)
    table = engagement.draw(world, users=ask.users, days=ask.days, seed=ask.seed)
    states = [name for name in table.column_names if name in world.columns]
    said = not world.here.all() and ask.hidden != ABSENCES
    found = mixope.experiment(table, **WORDS, state=states, absent="zero" if said else None).main
    flags = " ".join(check.name.replace(" ", "-") for check in found.long_run.checks if check.status != "pass")
    return [
        {
            **dict(zip(KEYS, ask.key, strict=True)),
            "method": line.name if line.name in METHODS else LONG_RUN,
            "estimator": line.name,
            "value": f"{line.effect.difference:.6g}",
            "low": f"{line.effect.interval.low:.6g}",
            "high": f"{line.effect.interval.high:.6g}",
            "truth": f"{engagement.effect(ask.setting):.6g}",
            "verdict": str(found.long_run.verdict),
            "flags": flags,
        }
        for line in found.lines
    ]


@dataclass(frozen=True)
class Summary:
    """Tests of one case by one method."""

    rows: Sequence[dict[str, str]]

    def _numbers(self, name: str) -> Any:
        return np.array([float(row[name]) for row in self.rows])

    @property
    def truth(self) -> float:
        return float(self.rows[0]["truth"])

    @property
    def bias(self) -> float:
        return float(self._numbers("value").mean() - self.truth)

    @property
    def held(self) -> Any:
        return (self._numbers("low") <= self.truth) & (self.truth <= self._numbers("high"))

    @property
    def green(self) -> Any:
        return np.array([row["verdict"] == "trustworthy" for row in self.rows])

    @property
    def decides(self) -> tuple[float, float]:
        """Shares of right and of wrong decisions; to leave it open is right where there is no effect."""
        low, high = self._numbers("low"), self._numbers("high")
        sign = np.where(low > 0, 1, np.where(high < 0, -1, 0))
        truth = np.sign(self.truth)
        return float(np.mean(sign == truth)), float(np.mean((sign != truth) & (sign != 0)))


def error_table(rows: Sequence[dict[str, str]]) -> str:
    """Bias and coverage of every method; then what the verdict says of the long run."""
    head = ["setting", "truth", *(f"`{name}`" for name in METHODS), "green, hold"]
    lines = []
    for setting, by in _by_setting(rows).items():
        last = by[LONG_RUN]
        cells = [f"{found.bias:+.4f}, {found.held.mean():.0%}" if found.rows else "–" for found in by.values()]
        trusted = f"{last.green.mean():.0%}, {last.held[last.green].mean():.0%}"
        lines.append([setting, f"{last.truth:+.4f}", *cells, trusted])
    return markdown(head, lines)


def decision_table(rows: Sequence[dict[str, str]]) -> str:
    """Right and wrong decisions of every method."""
    head = ["setting", "truth", *(f"`{name}`" for name in METHODS)]
    lines = []
    for setting, by in _by_setting(rows).items():
        cells = ["{:.0%} / {:.0%}".format(*found.decides) if found.rows else "–" for found in by.values()]
        lines.append([setting, f"{by[LONG_RUN].truth:+.4f}", *cells])
    return markdown(head, lines)


def _by_setting(rows: Sequence[dict[str, str]]) -> dict[str, dict[str, Summary]]:
    """The tests with the whole state, by setting and method."""
    whole = [row for row in rows if not row["hidden"]]
    return {
        setting: {
            name: Summary([row for row in whole if row["setting"] == setting and row["method"] == name])
            for name in METHODS
        }
        for setting in dict.fromkeys(row["setting"] for row in whole)
    }


def hidden_table(rows: Sequence[dict[str, str]]) -> str:
    """What a missing column does to the long run, and how often that is flagged."""
    head = ["setting", "hidden", "bias", "interval holds", "wrong decisions", "flagged", "flagged where it misses"]
    lines = []
    for setting, hidden in dict.fromkeys((row["setting"], row["hidden"]) for row in rows if row["hidden"]):
        mine = [r for r in rows if (r["setting"], r["hidden"], r["method"]) == (setting, hidden, LONG_RUN)]
        found = Summary(mine)
        flagged = [f"{(~found.green).mean():.0%}", _share(~found.green[~found.held])]
        shares = [f"{found.held.mean():.0%}", f"{found.decides[1]:.0%}"]
        lines.append([setting, hidden, f"{found.bias:+.4f}", *shares, *flagged])
    return markdown(head, lines)


def _share(which: Any) -> str:
    return f"{which.mean():.0%} of {len(which)}" if len(which) else "–"


TABLES = (error_table, decision_table, hidden_table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tests", type=int, default=TESTS)
    parser.add_argument("--hidden-tests", type=int, default=HIDDEN_TESTS)
    parser.add_argument("--users", type=int, default=USERS)
    parser.add_argument("--days", type=int, default=DAYS)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    said = parser.parse_args()
    cases = [(setting, "", said.tests) for setting in WHOLE] + [(*case, said.hidden_tests) for case in HIDDEN]
    asks = [
        Ask(setting, hidden, said.users, said.days, said.seed + k)
        for setting, hidden, tests in cases
        for k in range(tests)
    ]
    known = RESULTS.known(*KEYS)
    with ProcessPoolExecutor(said.jobs) as pool:
        for lines in pool.map(one, [ask for ask in asks if ask.key not in known]):
            RESULTS.append(lines)
    wanted = {ask.key for ask in asks}
    rows = [row for row in RESULTS.read() if tuple(row[name] for name in KEYS) in wanted]
    print(*(table(rows) for table in TABLES), sep="\n\n")


if __name__ == "__main__":
    main()
