"""How close to the efficiency bound every estimator comes, where the truth is exact.

    python benchmarks/efficiency.py                      # the published size, about 25 minutes on two cores
    python benchmarks/efficiency.py --quick              # a few repetitions, to see that it runs

For each environment, number of loggers and number of episodes, independent logs are simulated and every registered
estimator is run on them. Printed are, over repetitions,

    MSE ÷ bound     Σ (value − truth)² / R ÷ (V_eff / rows); 1 is the best a regular estimator can do
    bias ÷ √bound   mean error in units of the best standard error
    coverage        share of 95 % intervals that hold the truth
    seconds         median time of an evaluation by itself: count, solve, interval, diagnostics

Taxi and Gridworld are logged as factors of the state, so that ``dr``, ``lstdq`` and the classifier mixture can use
them; ``emp (id)`` sees Taxi's states as opaque ids. Each repetition is appended to ``--output`` when it is done; what
is there already is not run again.
"""

from __future__ import annotations

import argparse
import csv
import os
import tempfile
import time
import zlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass, fields
from functools import lru_cache
from multiprocessing import get_context
from pathlib import Path

import numpy as np

import mixope
from mixope import worlds
from mixope.answers.answering import answer as run
from mixope.base.errors import MixopeError
from mixope.base.estimand import Estimand
from mixope.behaviours import ClassifierMixture
from mixope.estimators import REGISTRY, Estimator, state_ratio
from mixope.session.session import count
from tables import markdown

RESULTS = Path(__file__).parent / "results"
CLASSIFIER, OPAQUE = "emp (classifier mixture)", "emp (id)"
ESTIMATORS = (*REGISTRY, CLASSIFIER, OPAQUE)
LEVEL = 0.95
TIMED = 5
"""Repetitions in which every estimator is evaluated by itself and timed; the others share the scans."""
NO_BOUND = 1e-12
"""Below this the dynamics are deterministic: the bound is 0 and there is nothing to divide by."""


@dataclass(frozen=True)
class Settings:
    environments: tuple[str, ...] = ("taxi", "gridworld-slip", "singlepath")
    loggers: tuple[int, ...] = (1, 4)
    episodes: tuple[int, ...] = (50, 200, 800)
    estimators: tuple[str, ...] = ESTIMATORS
    horizon: int = 200
    repetitions: int = 50
    classifier_repetitions: int = 20
    """Of the classifier mixture, which is slow."""
    seed: int = 0
    jobs: int = 2


@dataclass(frozen=True)
class Case:
    """One simulated log: which environment, how many loggers and episodes, which repetition."""

    environment: str
    loggers: int
    episodes: int
    horizon: int
    seed: int
    repetition: int

    @property
    def simulation_seed(self) -> int:
        name = zlib.crc32(self.environment.encode())
        sequence = np.random.SeedSequence([self.seed, name, self.loggers, self.episodes, self.repetition])
        return int(sequence.generate_state(1)[0])


@dataclass(frozen=True)
class Outcome:
    """What one estimator said of one log; NaN where it gave nothing."""

    environment: str
    loggers: int
    episodes: int
    horizon: int
    seed: int
    repetition: int
    estimator: str
    value: float
    low: float
    high: float
    seconds: float
    verdict: str
    refusal: str

    @property
    def key(self) -> tuple[Case, str]:
        case = Case(self.environment, self.loggers, self.episodes, self.horizon, self.seed, self.repetition)
        return case, self.estimator


@dataclass(frozen=True)
class Summary:
    """One line of the published table."""

    environment: str
    loggers: int
    episodes: int
    estimator: str
    repetitions: int
    refused: int
    mse_over_bound: float
    mse_over_bound_error: float
    bias_over_root_bound: float
    rmse: float
    coverage: float
    seconds: float


@lru_cache(maxsize=16)
def world(name: str, n_loggers: int, seed: int) -> tuple[worlds.Model, np.ndarray, list[np.ndarray]]:
    """The model, the target and the loggers' policies."""
    model = worlds.make(name)
    return model, worlds.target(model, seed=seed), worlds.stages(model, n_loggers, seed=seed)


@lru_cache(maxsize=64)
def truth_and_bound(name: str, n_loggers: int, horizon: int, seed: int) -> tuple[float, float]:
    """The exact average of the target, and V_eff."""
    model, target, loggers = world(name, n_loggers, seed)
    return worlds.truth.average(model, target), worlds.efficiency_bound(model, target, loggers, horizon=horizon)


def policy(model: worlds.Model, probabilities: np.ndarray, opaque: bool) -> mixope.TabularPolicy:
    if opaque or not model.factors:
        return mixope.TabularPolicy(probabilities)
    return mixope.TabularPolicy(probabilities, np.stack(list(model.factors.values()), 1), factors=list(model.factors))


def make(name: str) -> str | Estimator:
    if name == CLASSIFIER:
        return state_ratio.emp(behaviour=ClassifierMixture())
    return "emp" if name == OPAQUE else name


def evaluate_all(case: Case, names: Sequence[str]) -> list[Outcome]:
    """Every named estimator on one log."""
    plain = [name for name in names if name != OPAQUE]
    return [*_on_log(case, plain, opaque=False), *_on_log(case, [n for n in names if n == OPAQUE], opaque=True)]


def _on_log(case: Case, names: Sequence[str], *, opaque: bool) -> Iterator[Outcome]:
    if not names:
        return
    model, target, loggers = world(case.environment, case.loggers, case.seed)
    observed = "id" if opaque or not model.factors else "factors"
    logs = worlds.simulate(model, loggers, case.episodes, case.horizon, seed=case.simulation_seed, observed=observed)
    new = {"target": policy(model, target, opaque)}
    known = {f"logger-{j}": policy(model, logger, opaque) for j, logger in enumerate(loggers)}
    start = time.perf_counter()
    counted = count(logs)
    counting = time.perf_counter() - start

    def solve(batch: Sequence[str]) -> list[mixope.Estimate]:
        return run(counted, new, list(map(make, batch)), estimand=Estimand("average"), level=LEVEL, loggers=known)

    together = [name for name in names if name != CLASSIFIER and case.repetition >= TIMED]
    if together:
        for name, estimate in zip(together, solve(together), strict=True):
            yield _outcome(case, name, estimate, float("nan"))
    for name in names:
        if name in together:
            continue
        start = time.perf_counter()
        try:
            (estimate,) = solve([name])
        except MixopeError as error:
            yield _outcome(case, name, None, float("nan"), refusal=str(error).splitlines()[0])
        else:
            yield _outcome(case, name, estimate, counting + time.perf_counter() - start)


def _outcome(case: Case, name: str, estimate: mixope.Estimate | None, seconds: float, refusal: str = "") -> Outcome:
    interval = estimate.interval if estimate else None
    return Outcome(
        **asdict(case),
        estimator=name,
        value=estimate.value if estimate else float("nan"),
        low=interval.low if interval else float("nan"),
        high=interval.high if interval else float("nan"),
        seconds=seconds,
        verdict=str(estimate.verdict) if estimate else "",
        refusal=refusal,
    )


def wanted(settings: Settings) -> Iterator[tuple[Case, tuple[str, ...]]]:
    """All cases, repetition by repetition, with the estimators to run on each."""
    for repetition in range(settings.repetitions):
        for environment in settings.environments:
            for loggers in settings.loggers:
                for episodes in settings.episodes:
                    case = Case(environment, loggers, episodes, settings.horizon, settings.seed, repetition)
                    names = settings.estimators
                    if environment != "taxi":
                        names = tuple(name for name in names if name != OPAQUE)
                    if repetition >= settings.classifier_repetitions:
                        names = tuple(name for name in names if name != CLASSIFIER)
                    yield case, names


def read(path: Path) -> dict[tuple[Case, str], Outcome]:
    """The outcomes written so far; a line cut short by an interruption is left out."""
    if not path.exists():
        return {}
    kinds = {"value": float, "low": float, "high": float, "seconds": float}
    kinds |= dict.fromkeys(("loggers", "episodes", "horizon", "seed", "repetition"), int)
    found = {}
    with path.open(newline="") as lines:
        for line in csv.DictReader(lines):
            if None in line.values():
                continue
            outcome = Outcome(**{name: kinds.get(name, str)(text) for name, text in line.items()})
            found[outcome.key] = outcome
    return found


def measure(settings: Settings, path: Path) -> list[Outcome]:
    """Run what is missing, append it as it comes, give back all that the settings ask for."""
    done = read(path)
    plan = list(wanted(settings))
    missing = [(case, [n for n in names if (case, n) not in done]) for case, names in plan]
    missing = [(case, names) for case, names in missing if names]
    print(f"{len(plan)} logs, {len(missing)} to run", flush=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = not path.exists()
    with path.open("a", newline="") as file, ProcessPoolExecutor(settings.jobs, get_context("spawn")) as pool:
        writer = csv.DictWriter(file, [field.name for field in fields(Outcome)])
        if fresh:
            writer.writeheader()
        for future in as_completed([pool.submit(evaluate_all, case, names) for case, names in missing]):
            for outcome in future.result():
                done[outcome.key] = outcome
                writer.writerow(asdict(outcome))
            file.flush()
    return [done[case, name] for case, names in plan for name in names]


def summarise(outcomes: Sequence[Outcome]) -> list[Summary]:
    groups: dict[tuple[str, int, int, str], list[Outcome]] = {}
    for outcome in outcomes:
        key = outcome.environment, outcome.loggers, outcome.episodes, outcome.estimator
        groups.setdefault(key, []).append(outcome)
    return [_summary(*key, group) for key, group in groups.items()]


def _summary(environment: str, loggers: int, episodes: int, estimator: str, group: list[Outcome]) -> Summary:
    first = group[0]
    truth, variance = truth_and_bound(environment, loggers, first.horizon, first.seed)
    bound = variance / (episodes * first.horizon) if variance > NO_BOUND else float("nan")
    error = np.array([outcome.value - truth for outcome in group if not outcome.refusal])
    ratio = error**2 / bound
    held = [o.low <= truth <= o.high for o in group if np.isfinite(o.low) and np.isfinite(o.high)]
    timed = [outcome.seconds for outcome in group if np.isfinite(outcome.seconds)]
    n, nothing = len(error), float("nan")
    return Summary(
        environment=environment,
        loggers=loggers,
        episodes=episodes,
        estimator=estimator,
        repetitions=n,
        refused=len(group) - n,
        mse_over_bound=float(ratio.mean()) if n else nothing,
        mse_over_bound_error=float(ratio.std() / np.sqrt(n)) if n else nothing,
        bias_over_root_bound=float(error.mean() / np.sqrt(bound)) if n else nothing,
        rmse=float(np.sqrt(np.mean(error**2))) if n else nothing,
        coverage=float(np.mean(held)) if held else nothing,
        seconds=float(np.median(timed)) if timed else nothing,
    )


def write(summaries: Sequence[Summary], path: Path) -> None:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, [field.name for field in fields(Summary)], lineterminator="\n")
        writer.writeheader()
        for summary in summaries:
            rounded = {k: f"{v:.6g}" if isinstance(v, float) else v for k, v in asdict(summary).items()}
            writer.writerow(rounded)


def tables(summaries: Sequence[Summary], settings: Settings) -> Iterator[str]:
    """One table an environment and number of loggers: a row an estimator, a cell a number of episodes."""
    for environment in settings.environments:
        for loggers in settings.loggers:
            found = {
                (s.estimator, s.episodes): s for s in summaries if (s.environment, s.loggers) == (environment, loggers)
            }
            truth, variance = truth_and_bound(environment, loggers, settings.horizon, settings.seed)
            yield f"\n{environment}, loggers: {loggers}; target {truth:.4f} a step, V_eff {variance:.4g}\n"
            head = ["estimator", *(f"m = {m}" for m in settings.episodes), "seconds"]
            names = dict.fromkeys(name for name, _ in found)
            yield markdown(head, [_line(name, found, settings.episodes) for name in names])


def _line(name: str, found: dict[tuple[str, int], Summary], episodes: Sequence[int]) -> list[str]:
    mine = [found[name, m] for m in episodes]
    seconds = "" if np.isnan(mine[-1].seconds) else f"{mine[-1].seconds:.2f}"
    return [f"`{name}`", *(_cell(summary) for summary in mine), seconds]


def _cell(s: Summary) -> str:
    """MSE ÷ bound, bias ÷ √bound, coverage; the root mean squared error where the bound is 0."""
    if not s.repetitions:
        return "refuses"
    if np.isnan(s.mse_over_bound):
        return f"rmse {s.rmse:.2g}"
    covered = "–" if np.isnan(s.coverage) else f"{100 * s.coverage:.0f} %"
    return f"{number(s.mse_over_bound)} ({s.bias_over_root_bound:+.1f}, {covered})"


def number(x: float) -> str:
    return f"{x:.2f}" if x < 9.995 else f"{x:.0f}" if x < 1e5 else f"{x:.0e}"


def arguments() -> tuple[Settings, Path]:
    default = Settings()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--environments", default=",".join(default.environments))
    parser.add_argument("--loggers", default=",".join(map(str, default.loggers)))
    parser.add_argument("--episodes", default=",".join(map(str, default.episodes)))
    parser.add_argument("--estimators", default="all", help="'all', or names with commas between")
    parser.add_argument("--horizon", type=int, default=default.horizon)
    parser.add_argument("--repetitions", type=int, default=default.repetitions)
    parser.add_argument("--classifier-repetitions", type=int, default=default.classifier_repetitions)
    parser.add_argument("--seed", type=int, default=default.seed)
    parser.add_argument("--jobs", type=int, default=default.jobs)
    parser.add_argument("--output", type=Path, default=RESULTS / "efficiency.csv", help="one line an evaluation")
    parser.add_argument("--quick", action="store_true", help="3 repetitions of 50 episodes, kept nowhere")
    given = parser.parse_args()
    settings = Settings(
        environments=tuple(given.environments.split(",")),
        loggers=tuple(map(int, given.loggers.split(","))),
        episodes=(50,) if given.quick else tuple(map(int, given.episodes.split(","))),
        estimators=ESTIMATORS if given.estimators == "all" else tuple(given.estimators.split(",")),
        horizon=given.horizon,
        repetitions=3 if given.quick else given.repetitions,
        classifier_repetitions=given.classifier_repetitions,
        seed=given.seed,
        jobs=given.jobs,
    )
    return settings, Path(tempfile.mkdtemp()) / "efficiency.csv" if given.quick else given.output


def main() -> None:
    os.environ["OMP_NUM_THREADS"] = "1"  # inherited by the worker processes: one core a job
    settings, path = arguments()
    summaries = summarise(measure(settings, path))
    write(summaries, path.with_name(f"{path.stem}-summary.csv"))
    print("\nMSE ÷ bound (bias ÷ √bound, coverage of 95 % intervals); seconds at the largest m")
    for table in tables(summaries, settings):
        print(table)


if __name__ == "__main__":
    main()
