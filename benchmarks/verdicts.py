"""Does the verdict warn when the interval is wrong, and is it quiet when all is well?

    python benchmarks/verdicts.py                 # the published size; resumes where it stopped
    python benchmarks/verdicts.py --quick         # one repetition of the small worlds, kept nowhere
    python benchmarks/verdicts.py --summarise     # the tables again, from the results that are there
    python benchmarks/verdicts.py --episodic      # worlds whose episodes end, in a file of their own

Logs are simulated where the truth is known, healthy ones and ones that are broken on purpose (:mod:`broken_logs`,
:mod:`broken_episodes`), and evaluated. A *miss* is an interval at 95 % that does not hold the truth; a *warning* is any
verdict but ``trustworthy``, or a refusal. Printed for every setting are how often the interval misses, which part of
the misses came with a warning, and how often there was a warning though the interval holds the truth. On healthy logs
an interval at 95 % misses now and then by chance, which no warning can foresee; a *far* miss is half as far off again
as the interval reaches, which chance hardly makes.

The value of every check is kept, a column each, so that thresholds can be judged from the file: the second table moves
one threshold at a time and leaves the others as they are.
"""

from __future__ import annotations

import argparse
import csv
import time
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import broken_episodes
import broken_logs
import mixope
from broken_logs import CONTINUING, ENDING, NOT_ON_TAXI, ON_VECTORS, TIMES, Case, World, world
from mixope.base.errors import MixopeError
from tables import markdown

HEALTHY = {**broken_logs.HEALTHY, **broken_episodes.HEALTHY}
BROKEN = {**broken_logs.BROKEN, **broken_episodes.BROKEN}
SETTINGS = {**HEALTHY, **BROKEN}
INVISIBLE = broken_logs.INVISIBLE | broken_episodes.INVISIBLE
RESULTS = Path(__file__).parent / "results"
LEVEL = 0.95
NEW = (
    "value over episodes",
    "value over steps",
    "world over episodes",
    "rewards over steps",
    "rewards by episode",
    "coverage bias",
    "episodes agree",
    "rewards in step",
    "rewards seen",
    "episode lengths",
    "ends over steps",
    "unmarked stops",
)
"""Checks that came last: what the verdict was without them is shown beside."""
SWEEPS = {
    "uncovered mass": (0.001, 0.0025, 0.005, 0.01, 0.02),
    "behaviour fit": (2.5, 3.0, 4.0, 5.0, 6.0),
    "loggers agree": (2.5, 3.0, 3.5, 4.0, 5.0),
    "episodes agree": (2.5, 3.0, 3.5, 4.0, 5.0),
    "rewards in step": (2.0, 3.0, 4.0, 5.0, 6.0),
    "episode lengths": (1.5, 2.0, 2.25, 2.5, 3.0),
    "ends over steps": (2.0, 2.5, 3.0, 3.5, 4.0),
    "unmarked stops": (0.0, 0.01, 0.05, 0.1, 0.2),
    "value over episodes": (2.0, 2.5, 3.0, 3.5, 4.0),
    "value over steps": (2.0, 2.5, 3.0, 3.5, 4.0),
    "world over episodes": (2.0, 2.5, 3.0, 3.5, 4.0),
    "rewards over steps": (2.0, 2.5, 3.0, 3.5, 4.0),
    "rewards by episode": (1.5, 2.0, 2.5, 3.0, 3.5),
    "coverage bias": (0.1, 0.2, 0.5, 1.0, 2.0),
}
CHECKS = ("effective sample size", "mass outside", "largest weight", *SWEEPS)
FIXED = ("setting", "environment", "episodes", "repetition", "truth", "value", "low", "high", "verdict", "reasons")


@dataclass(frozen=True)
class Settings:
    environments: tuple[str, ...] = ("gridworld-slip", "singlepath", "walk", "taxi", "taxi-factors")
    episodes: tuple[int, ...] = (40, 160, 640)
    repetitions: int = 12
    slow_repetitions: int = 3
    """On vectors, and on Taxi with its two thousand states; with factors, which `dr` completes, up to 160 episodes."""
    seed: int = 0
    minutes: float = 20.0


@dataclass(frozen=True)
class Outcome:
    """What was said of one log, and what was true; ``values`` are those of the checks."""

    setting: str
    environment: str
    episodes: int
    repetition: int
    truth: float
    value: float
    low: float
    high: float
    verdict: str
    reasons: tuple[str, ...]
    values: dict[str, float]

    @property
    def key(self) -> tuple[str, str, int, int]:
        return self.setting, self.environment, self.episodes, self.repetition

    @property
    def miss(self) -> bool:
        return not self.low <= self.truth <= self.high

    @property
    def far(self) -> bool:
        """A miss that chance hardly makes: half as far again as the interval reaches."""
        return self.miss and abs(self.value - self.truth) > 1.5 * (self.high - self.low) / 2

    @property
    def warned(self) -> bool:
        return self.verdict != "trustworthy"

    def warned_without(self, checks: Sequence[str]) -> bool:
        """Whether anything else speaks up."""
        return bool(set(self.reasons) - set(checks))

    def warned_at(self, check: str, threshold: float) -> bool:
        """Whether there is a warning if one check has another threshold."""
        return self.warned_without([check]) or self.values[check] > threshold


def evaluate(setting: str, name: str, episodes: int, repetition: int, seed: int) -> Outcome:
    words = f"{setting}/{name}".encode()
    sequence = np.random.SeedSequence([seed, zlib.crc32(words), episodes, repetition])
    case = SETTINGS[setting](name, episodes, int(sequence.generate_state(1)[0]))
    key = (setting, name, episodes, repetition)
    try:
        return judge(case, world(name), key)
    except MixopeError as error:
        reasons = (str(error).splitlines()[0],)
        nothing = dict.fromkeys(CHECKS, float("nan"))
        return Outcome(*key, case.truth, float("nan"), -np.inf, np.inf, "refused", reasons, nothing)


def judge(case: Case, here: World, key: tuple[str, str, int, int]) -> Outcome:
    target = here.policy(here.target if case.target is None else case.target)
    asked = here.estimand
    found = mixope.evaluate(
        case.columns,
        target,
        case.estimator,
        estimand=asked.kind,
        gamma=asked.gamma,
        horizon=asked.horizon,
        level=LEVEL,
        loggers=case.known,
    )
    low, high = (-np.inf, np.inf) if found.interval is None else (found.interval.low, found.interval.high)
    values = {d.name: d.value for d in found.diagnostics}
    return Outcome(
        *key,
        truth=case.truth,
        value=found.value,
        low=low,
        high=high,
        verdict=str(found.verdict),
        reasons=tuple(d.name for d in found.diagnostics if d.status != "pass"),
        values={name: values.get(name, float("nan")) for name in CHECKS},
    )


def wanted(settings: Settings) -> Iterator[tuple[str, str, int, int]]:
    """Repetition by repetition, so that a run that is cut short is still balanced."""
    most = dict.fromkeys(("taxi", "taxi-factors", "cartpole-discounted"), settings.slow_repetitions)
    for repetition in range(settings.repetitions):
        for name in settings.environments:
            for episodes in (TIMES.get(name, 1) * size for size in settings.episodes):
                for setting in settings_of(name):
                    left_out = name == "taxi-factors" and episodes > 160
                    if not left_out and repetition < most.get(name, settings.repetitions):
                        yield setting, name, episodes, repetition


def settings_of(name: str) -> list[str]:
    """What makes sense in a world: ends can be broken where there are some."""
    ending = {**broken_episodes.HEALTHY, **broken_episodes.BROKEN}
    if name not in ENDING:
        return [s for s in SETTINGS if s not in ending and not (name.startswith("taxi") and s in NOT_ON_TAXI)]
    if world(name).model is None:
        return [s for s in SETTINGS if s in ON_VECTORS or (s in ending and s not in broken_episodes.NOT_ON_VECTORS)]
    return [s for s in SETTINGS if s not in CONTINUING]


def measure(settings: Settings, path: Path | None) -> list[Outcome]:
    """All that is wanted and not in the file yet, a line at a time."""
    outcomes = read(path) if path is not None and path.exists() else []
    done, end = {o.key for o in outcomes}, time.monotonic() + 60 * settings.minutes
    for key in wanted(settings):
        if key in done:
            continue
        if time.monotonic() > end:
            print(f"stopped after {settings.minutes:g} minutes, in repetition {key[-1]}\n")
            break
        outcomes.append(evaluate(*key, settings.seed))
        if path is not None:
            append(outcomes[-1], path)
    return outcomes


def append(outcome: Outcome, path: Path) -> None:
    fresh = not path.exists()
    if not fresh and path.open().readline().rstrip("\n") != ",".join([*FIXED, *CHECKS]):
        raise SystemExit(f"{path} was written before some checks existed; give another --output")
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        if fresh:
            writer.writerow([*FIXED, *CHECKS])
        fixed = [getattr(outcome, name) for name in FIXED[:-1]]
        numbers = [*fixed, "; ".join(outcome.reasons), *(outcome.values[name] for name in CHECKS)]
        writer.writerow([f"{v:.6g}" if isinstance(v, float) else v for v in numbers])


def read(path: Path) -> list[Outcome]:
    with path.open(newline="") as lines:
        return [_outcome(line) for line in csv.DictReader(lines)]


def _outcome(line: dict[str, str]) -> Outcome:
    return Outcome(
        line["setting"],
        line["environment"],
        int(line["episodes"]),
        int(line["repetition"]),
        *(float(line[name]) for name in ("truth", "value", "low", "high")),
        verdict=line["verdict"],
        reasons=tuple(reason for reason in line["reasons"].split("; ") if reason),
        values={name: float(line.get(name, "nan")) for name in CHECKS},
    )


def table(outcomes: Sequence[Outcome]) -> str:
    """How often each setting misses, and how often the verdict says so, without and with the checks in ``NEW``."""
    groups = {setting: [o for o in outcomes if o.setting == setting] for setting in SETTINGS}
    groups["**all healthy**"] = [o for o in outcomes if o.setting in HEALTHY]
    groups["**all broken**"] = [o for o in outcomes if o.setting in BROKEN]
    seen = set(BROKEN) - INVISIBLE
    groups["**all broken that logs can tell**"] = [o for o in outcomes if o.setting in seen]
    head = ["logs", "runs", "interval misses", "misses flagged", "before", "far misses flagged"]
    head += ["flagged though it holds", "before"]
    return markdown(head, [_line(name, mine) for name, mine in groups.items() if mine])


def _line(name: str, mine: Sequence[Outcome]) -> list[str]:
    missed, held = [o for o in mine if o.miss], [o for o in mine if not o.miss]
    return [
        name,
        f"{len(mine)}",
        share(len(missed), len(mine)),
        share(sum(o.warned for o in missed), len(missed)),
        share(sum(o.warned_without(NEW) for o in missed), len(missed)),
        share(sum(o.warned for o in missed if o.far), sum(o.far for o in missed)),
        share(sum(o.warned for o in held), len(held)),
        share(sum(o.warned_without(NEW) for o in held), len(held)),
    ]


def by_size(outcomes: Sequence[Outcome]) -> str:
    """Both rates by environment and size: misses on logs that can tell, alarms on healthy logs whose interval holds."""
    rows = []
    for name, episodes in dict.fromkeys(
        (o.environment, o.episodes) for o in sorted(outcomes, key=lambda o: o.key[1:3])
    ):
        mine = [o for o in outcomes if (o.environment, o.episodes) == (name, episodes)]
        missed, held = _judged(mine)
        rows.append([name, str(episodes), *(share(sum(o.warned for o in part), len(part)) for part in (missed, held))])
    return markdown(["environment", "episodes", "misses flagged, broken", "false alarms, healthy"], rows)


def by_check(outcomes: Sequence[Outcome]) -> str:
    """Which checks warn of healthy logs whose interval holds, and which of broken logs whose interval misses."""
    missed, held = _judged(outcomes)
    names = dict.fromkeys(reason for o in (*held, *missed) for reason in o.reasons)
    rows = []
    for name in names:
        alarms = [o for o in held if name in o.reasons]
        alone = sum(o.reasons == (name,) for o in missed)
        where = ", ".join(sorted({o.environment for o in alarms})) or "–"
        found = sum(name in o.reasons for o in missed)
        rows.append([name, share(len(alarms), len(held)), where, share(found, len(missed)), str(alone)])
    head = ["check", "false alarms, healthy", "in", "misses flagged, broken", "by it alone"]
    return markdown(head, rows)


def sweep(outcomes: Sequence[Outcome]) -> str:
    """Both rates if one threshold is moved: misses on broken logs that can tell, alarms on healthy logs."""
    missed, held = _judged(outcomes)
    rows = []
    for check, thresholds in SWEEPS.items():
        cells = []
        for threshold in thresholds:
            flagged, alarms = (sum(o.warned_at(check, threshold) for o in part) for part in (missed, held))
            cells.append(f"{threshold:g}: {flagged / max(len(missed), 1):.1%} / {alarms / max(len(held), 1):.1%}")
        applies = [o.values[check] for o in held if np.isfinite(o.values[check])]
        rows.append([check, *cells, f"{np.quantile(applies, 0.99):.2g}" if applies else "–"])
    head = ["warns above: misses flagged / false alarms", *[""] * 5, "99 % of healthy logs are below"]
    return markdown(head, rows)


def _judged(outcomes: Sequence[Outcome]) -> tuple[list[Outcome], list[Outcome]]:
    missed = [o for o in outcomes if o.miss and o.setting in set(BROKEN) - INVISIBLE]
    return missed, [o for o in outcomes if not o.miss and o.setting in HEALTHY and o.verdict != "refused"]


def share(part: int, whole: int) -> str:
    return f"{part / whole:.0%} ({part} of {whole})" if whole else "–"


def arguments() -> tuple[Settings, argparse.Namespace]:
    default = Settings()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--episodic", action="store_true", help="only worlds whose episodes end")
    parser.add_argument("--environments", help="names with commas between")
    parser.add_argument("--episodes", help="numbers with commas between")
    parser.add_argument("--repetitions", type=int, default=default.repetitions)
    parser.add_argument("--slow-repetitions", type=int, default=default.slow_repetitions)
    parser.add_argument("--seed", type=int, default=default.seed)
    parser.add_argument("--minutes", type=float, default=default.minutes, help="stop after this long")
    parser.add_argument("--output", type=Path)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--summarise", action="store_true")
    given = parser.parse_args()
    names, sizes = (tuple(ENDING), (100, 400)) if given.episodic else (default.environments, default.episodes)
    names = tuple(given.environments.split(",")) if given.environments else names[:3] if given.quick else names
    given.output = given.output or RESULTS / ("verdicts-episodic.csv" if given.episodic else "verdicts.csv")
    settings = Settings(
        environments=names,
        episodes=tuple(int(m) for m in given.episodes.split(",")) if given.episodes else sizes,
        repetitions=1 if given.quick else given.repetitions,
        slow_repetitions=given.slow_repetitions,
        seed=given.seed,
        minutes=given.minutes,
    )
    return settings, given


def main() -> None:
    settings, given = arguments()
    outcomes = read(given.output) if given.summarise else measure(settings, None if given.quick else given.output)
    for shown in (table, by_size, by_check, sweep):
        print(shown(outcomes), end="\n\n")
    print(f"{len(outcomes)} logs, seed {settings.seed}, level {LEVEL}")


if __name__ == "__main__":
    main()
