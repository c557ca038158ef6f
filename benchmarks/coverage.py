"""How often every interval holds the truth, where the truth is exact.

    python benchmarks/coverage.py                        # the published size, about 20 minutes on two free cores
    python benchmarks/coverage.py --quick                # a few repetitions, to see that it runs

For each environment and number of episodes, independent logs are simulated, and each estimator is given every
interval at 95 %. Printed are the share of intervals that hold the truth (with its binomial error), their mean width,
and how far the estimate is off on average, in its own standard errors: an interval cannot cover what bias has moved.

    t, normal      scores clustered by episode
    likelihood     empirical likelihood over episodes
    bca, percentile    refits on resampled episodes, in fewer repetitions
    blocks         batch means, one long episode (as many rows as the episodes together)
    pair           the difference between the target and one near it, t

Trajectory weights estimate the mean of the first steps, so their truth is that one, not the long run. Each log is
appended to ``--output`` when it is done; what is there already is not run again.
"""

from __future__ import annotations

import argparse
import csv
import os
import tempfile
import zlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass, fields, replace
from functools import lru_cache
from multiprocessing import get_context
from pathlib import Path

import numpy as np

import mixope
from mixope import environments
from mixope.differences import JointScores, pairwise
from mixope.errors import MixopeError
from mixope.estimand import Estimand
from mixope.estimators import REGISTRY
from mixope.intervals import Interval, clustered_interval, likelihood_interval
from mixope.resampling import Refit, count_episodes, influence, one_episode_interval, order_rows, prepare, resample
from mixope.tabular import Counted, count
from tables import markdown

RESULTS = Path(__file__).parent / "results"
LEVEL = 0.95
CHEAP = ("t", "normal", "likelihood")
REFITS = ("bca", "percentile")
REFITTED = ("emp", "bch-pooled", "wis-step")
"""Estimators that are refitted on resampled episodes; ``dr`` takes too long to be repeated so often."""
PAIR, BLOCKS = "pair", "blocks"
KINDS = (*CHEAP, *REFITS, BLOCKS, PAIR)


@dataclass(frozen=True)
class World:
    """An environment, how it is logged, and how often; sizes are numbers of episodes."""

    environment: str
    horizon: int
    loggers: int
    sizes: tuple[int, ...]
    estimators: tuple[str, ...]
    repetitions: int
    bootstraps: int
    blocks: int = 0


WORLDS = (
    World("singlepath", 20, 2, (10, 100), ("emp", "bch-pooled", "wis-step", "is-step"), 500, 50, 100),
    World("walk", 30, 2, (10, 100), ("emp", "bch-pooled", "wis-step", "is-step"), 500, 50),
    World("gridworld-slip", 50, 4, (12, 200), ("emp", "bch-pooled", "wis-step"), 500, 30, 50),
    World("gridworld-slip", 50, 4, (12,), ("dr",), 100, 0),
    World("taxi", 200, 4, (50, 200), ("emp", "bch-pooled", "dr"), 50, 0),
)


@dataclass(frozen=True)
class Settings:
    worlds: tuple[World, ...] = WORLDS
    parts: tuple[str, ...] = ("scores", "dr", "refits", BLOCKS)
    replicates: int = 200
    seed: int = 0
    jobs: int = 2


@dataclass(frozen=True)
class Case:
    """One simulated log."""

    environment: str
    episodes: int
    repetition: int
    part: str

    def simulation_seed(self, seed: int) -> int:
        name = zlib.crc32(f"{self.environment} {self.part}".encode())
        return int(np.random.SeedSequence([seed, name, self.episodes, self.repetition]).generate_state(1)[0])


@dataclass(frozen=True)
class Outcome:
    """One interval of one log; NaN where there is none."""

    environment: str
    episodes: int
    repetition: int
    part: str
    estimator: str
    kind: str
    truth: float
    value: float
    standard_error: float
    low: float
    high: float


@dataclass(frozen=True)
class Summary:
    """One line of the published table."""

    environment: str
    episodes: int
    estimator: str
    kind: str
    repetitions: int
    coverage: float
    coverage_error: float
    width: float
    bias_over_error: float


@lru_cache(maxsize=8)
def policies(name: str, loggers: int) -> tuple[environments.Model, np.ndarray, np.ndarray, list[np.ndarray]]:
    """The model, the target, one near it, and the loggers' policies."""
    model = environments.make(name)
    target, logging = environments.target(model), environments.stages(model, loggers)
    return model, target, 0.9 * target + 0.1 * logging[0], logging


@lru_cache(maxsize=64)
def truth_of(name: str, loggers: int, steps: int | None) -> tuple[float, float]:
    """Of the target and of the one near it: the long run, or the mean of the first steps."""
    model, target, near, _ = policies(name, loggers)
    laws = (target, near)
    if steps is None:
        first, second = (environments.truth.average(model, law) for law in laws)
    else:
        first, second = (environments.truth.horizon(model, law, steps) for law in laws)
    return first, second


def policy(model: environments.Model, law: np.ndarray) -> mixope.TabularPolicy:
    if not model.factors:
        return mixope.TabularPolicy(law)
    return mixope.TabularPolicy(law, np.stack(list(model.factors.values()), 1), factors=list(model.factors))


def simulated(world: World, case: Case, seed: int, *, one: bool = False) -> Counted:
    model, _, _, loggers = policies(world.environment, world.loggers)
    episodes, horizon = (1, case.episodes * world.horizon) if one else (case.episodes, world.horizon)
    return count(
        environments.simulate(
            model,
            loggers[-1:] if one else loggers,
            episodes,
            horizon,
            seed=case.simulation_seed(seed),
            observed="factors" if model.factors else "id",
        )
    )


def estimand_of(world: World, estimator: str) -> Estimand:
    """Trajectory weights see the first steps only."""
    return Estimand("horizon", horizon=world.horizon) if _by_trajectory(estimator) else Estimand()


def _by_trajectory(estimator: str) -> bool:
    return REGISTRY[estimator].family == "trajectory weights"


def run_case(world: World, case: Case, settings: Settings) -> list[Outcome]:
    """All intervals of all estimators on one log."""
    model, target, near, _ = policies(world.environment, world.loggers)
    if case.part == BLOCKS:
        return list(_blocks(world, case, settings))
    counted = simulated(world, case, settings.seed)
    counts = count_episodes(counted)
    rows = order_rows(counted) if any(map(_by_trajectory, world.estimators)) else None
    found = []
    for name in world.estimators:
        steps = world.horizon if _by_trajectory(name) else None
        first, second = truth_of(world.environment, world.loggers, steps)
        estimand = estimand_of(world, name)
        if case.part == "refits" and name not in REFITTED:
            continue

        def ask(law: np.ndarray, name: str = name, estimand: Estimand = estimand) -> Refit:
            shared = {"seed": case.repetition, "counts": counts, "rows": rows}
            return prepare(counted, policy(model, law), name, estimand=estimand, **shared)

        try:
            refit = ask(target)
            found += _intervals(case, name, refit, first, settings)
            if case.part != "refits":
                found.append(_pair(case, name, refit, ask(near), first - second))
        except MixopeError:
            found.append(_outcome(case, name, "refused", first, float("nan"), float("nan"), None))
    return found


def _pair(case: Case, name: str, first: Refit, second: Refit, truth: float) -> Outcome:
    scores = [influence(first), influence(second)]
    assert scores[0] is not None
    assert scores[1] is not None
    values = np.array([first.whole.value, second.whole.value])
    (pair,) = pairwise(JointScores(("target", "near"), values, np.stack(scores, axis=1)), LEVEL)
    return _outcome(case, name, PAIR, truth, pair.value, pair.standard_error, pair.interval)


def _intervals(case: Case, name: str, refit: Refit, truth: float, settings: Settings) -> Iterator[Outcome]:
    value, scores = refit.whole.value, influence(refit)
    error = float(np.sqrt(np.sum(scores**2))) if scores is not None else float("nan")
    made: dict[str, Interval | None] = {}
    if case.part == "refits":
        sample = resample(refit, settings.replicates, jobs=1)
        made = {"bca": sample.interval(LEVEL, "bca"), "percentile": sample.interval(LEVEL, "percentile")}
    elif scores is not None:
        made = {
            "t": clustered_interval(value, scores, LEVEL),
            "normal": clustered_interval(value, scores, LEVEL, "normal"),
            "likelihood": likelihood_interval(value, scores, LEVEL),
        }
    for kind, interval in made.items():
        yield _outcome(case, name, kind, truth, value, error, interval)


def _blocks(world: World, case: Case, settings: Settings) -> Iterator[Outcome]:
    model, target, _, _ = policies(world.environment, world.loggers)
    counted = simulated(world, case, settings.seed, one=True)
    first, _ = truth_of(world.environment, world.loggers, None)
    for name in (n for n in world.estimators if not _by_trajectory(n)):
        interval = one_episode_interval(counted, policy(model, target), name, level=LEVEL)
        value = float("nan") if interval is None else 0.5 * (interval.low + interval.high)
        yield _outcome(case, name, BLOCKS, first, value, float("nan"), interval)


def _outcome(
    case: Case, name: str, kind: str, truth: float, value: float, error: float, interval: Interval | None
) -> Outcome:
    low, high = (interval.low, interval.high) if interval else (float("nan"), float("nan"))
    return Outcome(
        **asdict(case), estimator=name, kind=kind, truth=truth, value=value, standard_error=error, low=low, high=high
    )


def wanted(world: World) -> dict[str, int]:
    """Logs of each kind; those of ``dr`` are apart, because there are fewer."""
    scores = "dr" if world.estimators == ("dr",) else "scores"
    return {scores: world.repetitions, "refits": world.bootstraps, BLOCKS: world.blocks}


def cases(world: World) -> Iterator[Case]:
    """The logs of one world, by repetition."""
    for repetition in range(max(world.repetitions, world.bootstraps, world.blocks)):
        for size in world.sizes:
            for part, repetitions in wanted(world).items():
                if repetition < repetitions:
                    yield Case(world.environment, size, repetition, part)


def measure(settings: Settings, path: Path) -> list[Outcome]:
    """Run what is not in the file yet."""
    done = read(path)
    seen = {(o.environment, o.episodes, o.repetition, o.part) for o in done}
    todo = [
        (world, case)
        for world in settings.worlds
        for case in cases(world)
        if case.part in settings.parts and (case.environment, case.episodes, case.repetition, case.part) not in seen
    ]
    todo.sort(key=lambda item: item[1].repetition / wanted(item[0])[item[1].part])  # cut short: some of everything
    with ProcessPoolExecutor(settings.jobs, mp_context=get_context("spawn")) as pool:
        waiting = [pool.submit(run_case, world, case, settings) for world, case in todo]
        for k, future in enumerate(as_completed(waiting), start=1):
            outcomes = future.result()
            append(path, outcomes)
            done += outcomes
            if k % 50 == 0:
                print(f"{k}/{len(todo)} logs", flush=True)
    return done


def read(path: Path) -> list[Outcome]:
    if not path.exists():
        return []
    kinds = {f.name: {"int": int, "float": float}.get(str(f.type), str) for f in fields(Outcome)}
    with path.open(newline="") as file:
        return [Outcome(**{key: kinds[key](value) for key, value in row.items()}) for row in csv.DictReader(file)]


def append(path: Path, outcomes: Sequence[Outcome]) -> None:
    names = [f.name for f in fields(Outcome)]
    new = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, names, lineterminator="\n")
        if new:
            writer.writeheader()
        for outcome in outcomes:
            row = asdict(outcome)
            writer.writerow({k: f"{v:.7g}" if isinstance(v, float) else v for k, v in row.items()})


def summarise(outcomes: Sequence[Outcome]) -> list[Summary]:
    found = []
    groups: dict[tuple[str, int, str, str], list[Outcome]] = {}
    for outcome in outcomes:
        groups.setdefault((outcome.environment, outcome.episodes, outcome.estimator, outcome.kind), []).append(outcome)
    for key, all_of in groups.items():
        good = [o for o in all_of if np.isfinite(o.low)]
        if not good:
            continue
        hits = np.array([o.low <= o.truth <= o.high for o in good])
        bias = np.mean([o.value - o.truth for o in good])
        spread = np.sqrt(np.mean([o.standard_error**2 for o in good]))
        rate = float(hits.mean())
        error = float(np.sqrt(max(rate * (1 - rate), 0.25 / len(hits)) / len(hits)))
        width = float(np.mean([o.high - o.low for o in good]))
        found.append(Summary(*key, len(good), rate, error, width, float(bias / spread) if spread > 0 else float("nan")))
    return sorted(found, key=lambda s: (s.environment, s.estimator, s.episodes, KINDS.index(s.kind)))


def write(summaries: Sequence[Summary], path: Path) -> None:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, [f.name for f in fields(Summary)], lineterminator="\n")
        writer.writeheader()
        for summary in summaries:
            row = asdict(summary)
            writer.writerow({k: f"{v:.4g}" if isinstance(v, float) else v for k, v in row.items()})


def tables(summaries: Sequence[Summary]) -> Iterator[str]:
    for environment in dict.fromkeys(s.environment for s in summaries):
        mine = [s for s in summaries if s.environment == environment]
        kinds = [k for k in KINDS if any(s.kind == k for s in mine)]
        lines = []
        for estimator, episodes in dict.fromkeys((s.estimator, s.episodes) for s in mine):
            by_kind = {s.kind: s for s in mine if (s.estimator, s.episodes) == (estimator, episodes)}
            plain = by_kind.get("t")
            off = f"{plain.bias_over_error:+.2f}" if plain else "–"
            width = f"{plain.width:.3g}" if plain else "–"
            lines.append([f"`{estimator}`", str(episodes), *(_cell(by_kind.get(k)) for k in kinds), width, off])
        yield f"\n### {environment}\n\n" + markdown(
            ["estimator", "episodes", *kinds, "mean width (t)", "bias ÷ se"], lines
        )


def _cell(summary: Summary | None) -> str:
    return "–" if summary is None else f"{100 * summary.coverage:.1f} ({summary.repetitions})"


def arguments() -> tuple[Settings, Path]:
    default = Settings()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--environments", default=",".join(w.environment for w in default.worlds))
    parser.add_argument("--parts", default=",".join(default.parts), help="which logs: scores, dr, refits, blocks")
    parser.add_argument("--replicates", type=int, default=default.replicates)
    parser.add_argument("--seed", type=int, default=default.seed)
    parser.add_argument("--jobs", type=int, default=default.jobs)
    parser.add_argument("--output", type=Path, default=RESULTS / "coverage.csv", help="one line an interval")
    parser.add_argument("--summary", action="store_true", help="only summarise what is in the file")
    parser.add_argument("--quick", action="store_true", help="3 repetitions, kept nowhere")
    given = parser.parse_args()
    names = given.environments.split(",")
    worlds = [w for w in default.worlds if w.environment in names]
    if given.quick:
        worlds = [
            replace(w, sizes=w.sizes[:1], repetitions=3, bootstraps=min(w.bootstraps, 1), blocks=min(w.blocks, 1))
            for w in worlds
        ]
    if given.summary:
        worlds = []
    path = Path(tempfile.mkdtemp()) / "coverage.csv" if given.quick else given.output
    parts = tuple(given.parts.split(","))
    return Settings(tuple(worlds), parts, given.replicates, given.seed, given.jobs), path


def main() -> None:
    os.environ["OMP_NUM_THREADS"] = "1"  # inherited by the worker processes: one core a job
    settings, path = arguments()
    summaries = summarise(measure(settings, path))
    write(summaries, path.with_name(f"{path.stem}-summary.csv"))
    print("\nshare of 95 % intervals that hold the truth, in per cent (logs)")
    for table in tables(summaries):
        print(table)


if __name__ == "__main__":
    main()
