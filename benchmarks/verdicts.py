"""Does the verdict warn when the interval is wrong, and is it quiet when all is well?

    python benchmarks/verdicts.py                 # the published size, about eight minutes on one core
    python benchmarks/verdicts.py --quick         # two repetitions, kept nowhere
    python benchmarks/verdicts.py --summarise     # the tables again, from the results that are there
    python benchmarks/verdicts.py --backtests     # how often predictions of loggers agree on healthy logs, a minute

Logs are simulated where the truth is exact, healthy ones and ones that are broken on purpose, and evaluated. A *miss*
is an interval that does not hold the truth (for logs of a world that changed: the truth of the world as it is now); a
*warning* is any verdict but ``trustworthy``. Printed for every setting are how often the interval misses, which part
of the misses came with a warning, and how often there was a warning though the interval holds the truth. On healthy
logs an interval at 95 % misses now and then by chance, which no warning can foresee; a *far* miss is half as far off
again as the interval reaches, which chance hardly makes.

The ingredients of the verdict are kept a column each, so that thresholds can be judged from the file.
"""

from __future__ import annotations

import argparse
import csv
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

import mixope
from mixope import environments
from mixope.backtesting import Backtest, backtest
from mixope.behaviours.protocol import Inverse
from mixope.diagnostics import verdict
from mixope.diagnostics.agreement import halves_agree, loggers_agree
from mixope.diagnostics.coverage import coverage_bias, coverage_shift
from mixope.errors import MixopeError
from mixope.estimand import Estimand
from mixope.estimators import state_ratio
from mixope.partial import outer_band
from mixope.problem import Problem
from mixope.tabular import count, run
from tables import markdown

RESULTS = Path(__file__).parent / "results"
LEVEL = 0.95
N_LOGGERS = 4
HORIZON = {"walk": 50}
Columns = dict[str, np.ndarray]


@dataclass(frozen=True)
class Settings:
    environments: tuple[str, ...] = ("gridworld-slip", "singlepath", "walk", "taxi", "taxi-factors")
    episodes: tuple[int, ...] = (40, 160, 640)
    repetitions: int = 20
    slow_repetitions: int = 4
    """On Taxi, with its two thousand states; one with factors, on which a value model is fitted."""
    seed: int = 0
    minutes: float = 8.0


@dataclass(frozen=True)
class World:
    """A model, a target, its loggers; states as ids or as factors."""

    model: environments.Model
    target: np.ndarray
    loggers: tuple[np.ndarray, ...]
    observed: str
    horizon: int

    def policy(self, law: np.ndarray) -> mixope.TabularPolicy:
        if self.observed == "id":
            return mixope.TabularPolicy(law)
        factors = self.model.factors
        return mixope.TabularPolicy(law, np.stack(list(factors.values()), 1), factors=list(factors))

    @property
    def known(self) -> dict[str, mixope.TabularPolicy]:
        return {f"logger-{j}": self.policy(law) for j, law in enumerate(self.loggers)}

    def simulate(self, episodes: int, seed: int, model: environments.Model | None = None) -> Columns:
        return environments.simulate(
            model or self.model, self.loggers, episodes, self.horizon, seed=seed, observed=self.observed
        )


@lru_cache(maxsize=8)
def world(name: str, seed: int = 0) -> World:
    plain = name.removesuffix("-factors")
    model = environments.make(plain)
    observed = "factors" if name != plain else "id"
    loggers = tuple(environments.stages(model, N_LOGGERS, seed=seed))
    return World(model, environments.target(model, seed=seed), loggers, observed, HORIZON.get(plain, 100))


@dataclass(frozen=True)
class Case:
    """Logs, what is asked of them, and the right answer."""

    columns: Columns
    truth: float
    estimator: Any = "auto"
    known: dict[str, mixope.TabularPolicy] | None = None


@lru_cache(maxsize=32)
def truth(name: str, changed: str = "") -> float:
    here = world(name)
    if changed == "dynamics":
        return environments.truth.average(slippery(name), here.target)
    return environments.truth.average(here.model, here.target) + (shift(name) if changed == "reward" else 0.0)


def shift(name: str) -> float:
    """How far rewards are moved where they are: half the standard deviation of a logged reward."""
    return 0.5 * float(np.std(world(name).simulate(40, 0)["reward"]))


@lru_cache(maxsize=8)
def slippery(name: str) -> environments.Model:
    """The world with another world in it: three times in ten the previous action order applies."""
    here = world(name).model
    matrix = here.transition.toarray().reshape(here.n_states, here.n_actions, here.n_states)
    reward, ended = np.zeros_like(matrix), np.zeros(matrix.shape, dtype=bool)
    rows = here.entry_rows()
    cells = rows // here.n_actions, rows % here.n_actions, here.transition.indices
    reward[cells], ended[cells] = here.reward, here.terminated
    by_next = np.where(matrix.max(axis=1) > 0, np.max(np.where(matrix > 0, reward, -np.inf), axis=1), 0.0)
    any_end = ended.any(axis=1)
    mixed = 0.7 * matrix + 0.3 * np.roll(matrix, 1, axis=1)
    state, action, after = (index.ravel() for index in np.indices(matrix.shape))
    return environments.from_outcomes(
        here.name,
        shape=(here.n_states, here.n_actions),
        state=state,
        action=action,
        next_state=after,
        probability=mixed.ravel(),
        reward=np.where(matrix > 0, reward, by_next[:, None, :]).ravel(),
        start=here.start,
        terminated=(ended | (any_end[:, None, :] & (matrix == 0))).ravel(),
        factors=dict(here.factors),
    )


def healthy(name: str, episodes: int, seed: int) -> Case:
    return Case(world(name).simulate(episodes, seed), truth(name))


def healthy_known(name: str, episodes: int, seed: int) -> Case:
    here = world(name)
    return Case(here.simulate(episodes, seed), truth(name), "known-mixture", here.known)


def healthy_propensities(name: str, episodes: int, seed: int) -> Case:
    return Case(world(name).simulate(episodes, seed), truth(name), "bch-pooled")


def one_logger(name: str, episodes: int, seed: int) -> Case:
    """Only the first logger, the one farthest from the target."""
    here = world(name)
    alone = World(here.model, here.target, here.loggers[:1], here.observed, here.horizon)
    return Case(alone.simulate(episodes, seed), truth(name))


def no_overlap(name: str, episodes: int, seed: int) -> Case:
    """The likeliest action of the target is never logged, in every other state."""
    here = world(name)
    favourite = np.eye(here.model.n_actions)[here.target.argmax(axis=1)]
    favourite[1::2] = 0
    cut = [law * (1 - favourite) for law in here.loggers]
    cut = [law / law.sum(axis=1, keepdims=True) for law in cut]
    apart = World(here.model, here.target, tuple(cut), here.observed, here.horizon)
    return Case(apart.simulate(episodes, seed), truth(name))


def greedy_logger(name: str, episodes: int, seed: int) -> Case:
    """One logger without exploration: it takes one action in each state, the target's likeliest but one."""
    here = world(name)
    second = np.argsort(here.target, axis=1)[:, -2]
    law = np.eye(here.model.n_actions)[second]
    narrow = World(here.model, here.target, (0.98 * law + 0.02 * here.target,), here.observed, here.horizon)
    return Case(narrow.simulate(episodes, seed), truth(name))


def wrong_labels(name: str, episodes: int, seed: int) -> Case:
    """Two loggers' labels changed places, and their policies are relied upon."""
    here = world(name)
    columns = here.simulate(episodes, seed)
    labels = columns["policy_id"]
    swapped = np.where(labels == "logger-0", "logger-3", np.where(labels == "logger-3", "logger-0", labels))
    return Case({**columns, "policy_id": swapped}, truth(name), "known-mixture", here.known)


def wrong_propensities(name: str, episodes: int, seed: int) -> Case:
    """The propensities of a uniform policy, logged by mistake for half of the loggers."""
    here = world(name)
    columns = here.simulate(episodes, seed)
    wrong = np.isin(columns["policy_id"], ["logger-2", "logger-3"])
    given = np.where(wrong, 1 / here.model.n_actions, columns["action_prob"])
    return Case({**columns, "action_prob": given}, truth(name), "bch-pooled")


def shifted_rewards(name: str, episodes: int, seed: int) -> Case:
    columns = world(name).simulate(episodes, seed)
    reward = columns["reward"] + shift(name) * (columns["policy_id"] == "logger-1")
    return Case({**columns, "reward": reward}, truth(name))


def shifted_rewards_unlabelled(name: str, episodes: int, seed: int) -> Case:
    """The same, and the episodes are in no order: nothing in the logs tells."""
    case = shifted_rewards(name, episodes, seed)
    columns = {key: values for key, values in case.columns.items() if key != "policy_id"}
    order = np.random.default_rng([seed, 5]).permutation(episodes)
    return Case({**columns, "episode_id": order[columns["episode_id"]]}, case.truth)


def changed_reward(name: str, episodes: int, seed: int) -> Case:
    columns = world(name).simulate(episodes, seed)
    late = _late(columns)
    return Case({**columns, "reward": columns["reward"] + shift(name) * late}, truth(name, "reward"))


def changed_dynamics(name: str, episodes: int, seed: int) -> Case:
    here = world(name)
    before, after = here.simulate(episodes, seed), here.simulate(episodes, seed + 1, slippery(name))
    first, second = ~_late(before), _late(after)
    columns = {key: np.concatenate([before[key][first], after[key][second]]) for key in before}
    return Case(columns, truth(name, "dynamics"))


def _late(columns: Columns) -> np.ndarray:
    """Rows in the second half of their logger's episodes."""
    result = np.zeros(len(columns["reward"]), dtype=bool)
    for label in np.unique(columns["policy_id"]):
        mine = columns["policy_id"] == label
        result[mine] = columns["episode_id"][mine] >= np.median(np.unique(columns["episode_id"][mine]))
    return result


class Marginal:
    """A behaviour model that is wrong on purpose: the share of every action, whatever the state."""

    name, counted, fitted = "marginal", False, True

    def invert(self, problem: Any, weight: np.ndarray) -> Inverse:
        rows = problem.transitions
        share = np.bincount(rows.action, weights=rows.rows * weight, minlength=len(rows.actions))
        return Inverse.of_groups((share / share.sum())[rows.action], rows)


def constant_behaviour(name: str, episodes: int, seed: int) -> Case:
    estimator = state_ratio.emp(behaviour=Marginal())
    return Case(world(name).simulate(episodes, seed), truth(name), estimator)


HEALTHY: dict[str, Callable[[str, int, int], Case]] = {
    "healthy": healthy,
    "healthy, policies known": healthy_known,
    "healthy, propensities": healthy_propensities,
}
BROKEN: dict[str, Callable[[str, int, int], Case]] = {
    "one logger, far away": one_logger,
    "no overlap": no_overlap,
    "one greedy logger": greedy_logger,
    "constant behaviour model": constant_behaviour,
    "wrong labels": wrong_labels,
    "wrong propensities": wrong_propensities,
    "rewards of a logger shifted": shifted_rewards,
    "the same, unlabelled": shifted_rewards_unlabelled,
    "rewards change half-way": changed_reward,
    "dynamics change half-way": changed_dynamics,
}
SETTINGS = {**HEALTHY, **BROKEN}
INVISIBLE = {"the same, unlabelled"}
FACTORS_UP_TO = 160
NOT_ON_TAXI = ("dynamics change half-way",)


@dataclass(frozen=True)
class Outcome:
    """What was said of one log, and what was true."""

    setting: str
    environment: str
    episodes: int
    repetition: int
    truth: float
    value: float
    low: float
    high: float
    evaluate_alone: str
    verdict: str
    reasons: str
    effective_sample_size: float
    uncovered_mass: float
    outside_mass: float
    largest_weight: float
    behaviour_misfit: float
    coverage_bias: float
    band_low: float
    band_high: float
    loggers_apart: float
    halves_apart: float
    backtest_z: float
    backtest_misses: int
    seconds: float

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

    @property
    def warned_alone(self) -> bool:
        return self.evaluate_alone != "trustworthy"


def evaluate(setting: str, name: str, episodes: int, repetition: int, seed: int) -> Outcome:
    words = f"{setting}/{name}".encode()
    sequence = np.random.SeedSequence([seed, zlib.crc32(words), episodes, repetition])
    started = time.perf_counter()
    case = SETTINGS[setting](name, episodes, int(sequence.generate_state(1)[0]))
    nothing = dict.fromkeys([f.name for f in fields(Outcome) if f.type == "float"], float("nan"))
    found: dict[str, Any] = {**nothing, "truth": case.truth, "backtest_misses": 0}
    try:
        found |= judge(case, world(name))
    except MixopeError as error:
        found |= {
            "verdict": "refused",
            "evaluate_alone": "refused",
            "reasons": str(error).splitlines()[0],
            "low": -np.inf,
            "high": np.inf,
        }
    found["seconds"] = time.perf_counter() - started
    return Outcome(setting=setting, environment=name, episodes=episodes, repetition=repetition, **found)


def judge(case: Case, here: World) -> dict[str, Any]:
    counted = count(case.columns)
    target = here.policy(here.target)
    estimator = counted.automatic[0] if case.estimator == "auto" else case.estimator
    (estimate,) = run(counted, {"target": target}, [estimator], estimand=Estimand(), level=LEVEL, loggers=case.known)
    assert estimate.interval is not None
    half = (estimate.interval.high - estimate.interval.low) / 2
    band = outer_band(counted, target)
    rows = counted.transitions
    tested = _backtest(case)
    extra = (
        coverage_bias(coverage_shift(Problem(rows, target, Estimand())), half),
        loggers_agree(rows),
        halves_agree(counted.logs, counted.engine, rows),
        tested.check if tested else None,
    )
    further = tuple(d for d in extra if d is not None)
    names = {d.name for d in further}
    alone = tuple(d for d in estimate.diagnostics if d.name not in names)
    value = {d.name: d.value for d in (*alone, *further)}
    nan = float("nan")
    return {
        "value": estimate.value,
        "low": estimate.interval.low,
        "high": estimate.interval.high,
        "evaluate_alone": str(verdict(alone)),
        "verdict": str(verdict((*alone, *further))),
        "reasons": "; ".join(f"{d.name} ({d.status})" for d in (*alone, *further) if d.status != "pass"),
        "effective_sample_size": estimate.effective_sample_size,
        "uncovered_mass": estimate.uncovered_mass,
        "outside_mass": estimate.outside_mass,
        "largest_weight": value.get("largest weight", nan),
        "behaviour_misfit": value.get("behaviour fit", nan),
        "coverage_bias": value.get("coverage bias", nan),
        "band_low": band.low,
        "band_high": band.high,
        "loggers_apart": value.get("loggers agree", nan),
        "halves_apart": value.get("halves agree", nan),
        "backtest_z": value.get("backtest", nan),
        "backtest_misses": sum(not row.covered for row in tested.supported) if tested else 0,
    }


def _backtest(case: Case) -> Backtest | None:
    if len(set(case.columns.get("policy_id", []))) < 2:
        return None
    return backtest(case.columns, loggers=case.known, estimator="emp", level=LEVEL)


def wanted(settings: Settings) -> Iterator[tuple[str, str, int, int]]:
    """Repetition by repetition, so that a run that is cut short is still balanced."""
    most = {"taxi": settings.slow_repetitions, "taxi-factors": 1}
    for repetition in range(settings.repetitions):
        for name in settings.environments:
            for episodes in settings.episodes:
                for setting in SETTINGS:
                    left_out = name.startswith("taxi") and setting in NOT_ON_TAXI
                    left_out |= name == "taxi-factors" and episodes > FACTORS_UP_TO
                    if not left_out and repetition < most.get(name, settings.repetitions):
                        yield setting, name, episodes, repetition


def measure(settings: Settings, path: Path | None) -> list[Outcome]:
    end = time.monotonic() + 60 * settings.minutes
    outcomes = []
    for setting, name, episodes, repetition in wanted(settings):
        if time.monotonic() > end:
            print(f"stopped after {settings.minutes:g} minutes, in repetition {repetition}")
            break
        outcomes.append(evaluate(setting, name, episodes, repetition, settings.seed))
    if path is not None:
        write(outcomes, path)
    return outcomes


def write(outcomes: Sequence[Any], path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, [field.name for field in fields(outcomes[0])], lineterminator="\n")
        writer.writeheader()
        for outcome in outcomes:
            writer.writerow({k: f"{v:.6g}" if isinstance(v, float) else v for k, v in asdict(outcome).items()})


def read(path: Path) -> list[Outcome]:
    kinds = {field.name: {"float": float, "int": int, "str": str}[str(field.type)] for field in fields(Outcome)}
    with path.open(newline="") as lines:
        return [Outcome(**{k: kinds[k](v) for k, v in line.items()}) for line in csv.DictReader(lines)]


def table(outcomes: Sequence[Outcome]) -> str:
    rows = [_line(setting, [o for o in outcomes if o.setting == setting]) for setting in SETTINGS]
    rows.append(_line("**all healthy**", [o for o in outcomes if o.setting in HEALTHY]))
    rows.append(_line("**all broken**", [o for o in outcomes if o.setting in BROKEN]))
    rows.append(_line("**all broken but unlabelled**", [o for o in outcomes if o.setting in set(BROKEN) - INVISIBLE]))
    head = ["logs", "runs", "interval misses", *COLUMNS]
    return markdown(head, [row for row in rows if row])


COLUMNS = (
    "misses flagged by `evaluate`",
    "misses flagged by all checks",
    "far misses flagged by all",
    "flagged though it holds, `evaluate`",
    "flagged though it holds, all checks",
)


def _line(name: str, mine: Sequence[Outcome]) -> list[str]:
    if not mine:
        return []
    missed, held = [o for o in mine if o.miss], [o for o in mine if not o.miss]
    return [
        name,
        f"{len(mine)}",
        share(len(missed), len(mine)),
        share(sum(o.warned_alone for o in missed), len(missed)),
        share(sum(o.warned for o in missed), len(missed)),
        share(sum(o.warned for o in missed if o.far), sum(o.far for o in missed)),
        share(sum(o.warned_alone for o in held), len(held)),
        share(sum(o.warned for o in held), len(held)),
    ]


def share(part: int, whole: int) -> str:
    return f"{part / whole:.0%} ({part} of {whole})" if whole else "–"


def backtests(seed: int, repetitions: int = 40) -> str:
    """How often predictions agree with what was earned, with known policies and with counted ones."""
    rows = []
    for name in ("gridworld-slip", "singlepath", "walk"):
        here = replace(world(name, seed), horizon=50)
        for known in (here.known, None):
            found = []
            for repetition in range(repetitions):
                logs = here.simulate(80, 100 + seed + repetition)
                found += backtest(logs, loggers=known, estimator="emp", level=LEVEL).supported
            distance = np.array([row.z for row in found])
            agree = share(sum(row.covered for row in found), len(found))
            rows.append([name, "known" if known else "counted", agree, f"{distance.std():.2f}"])
    return markdown(["environment", "policies", "predictions that agree", "standard deviation of z"], rows)


def arguments() -> tuple[Settings, argparse.Namespace]:
    default = Settings()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--environments", default=",".join(default.environments))
    parser.add_argument("--episodes", default=",".join(map(str, default.episodes)))
    parser.add_argument("--repetitions", type=int, default=default.repetitions)
    parser.add_argument("--slow-repetitions", type=int, default=default.slow_repetitions)
    parser.add_argument("--seed", type=int, default=default.seed)
    parser.add_argument("--minutes", type=float, default=default.minutes, help="stop after this long")
    parser.add_argument("--output", type=Path, default=RESULTS / "verdicts.csv")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--summarise", action="store_true")
    parser.add_argument("--backtests", action="store_true")
    given = parser.parse_args()
    settings = Settings(
        environments=tuple(given.environments.split(",")),
        episodes=tuple(int(m) for m in given.episodes.split(",")),
        repetitions=2 if given.quick else given.repetitions,
        slow_repetitions=1 if given.quick else given.slow_repetitions,
        seed=given.seed,
        minutes=given.minutes,
    )
    return settings, given


def main() -> None:
    settings, given = arguments()
    if given.backtests:
        print(backtests(settings.seed))
        return
    outcomes = read(given.output) if given.summarise else measure(settings, None if given.quick else given.output)
    print(table(outcomes))
    seconds = sum(o.seconds for o in outcomes)
    print(f"\n{len(outcomes)} logs, {seconds:.0f} seconds, seed {settings.seed}, level {LEVEL}")


if __name__ == "__main__":
    main()
