"""Benchmark datasets on disk: simulated logs of several loggers, the policies behind them, and the truth.

    ids       logs.parquet (or .csv, .arrow)   target.csv    loggers.csv   truth.json
    vectors   logs.parquet (observation.0 …)   policies.py                 truth.json

Policies over vectors are Python objects: ``policies.py`` says them with their numbers, as ``target``, ``logger_0`` …
and the dictionary ``loggers``. The truth is exact, except those of Pendulum and CartPole, which are simulated and have
standard errors. Where episodes end, the total of an episode and its length are part of it. All files are written or
none, and no file of anybody else is touched (:mod:`mixope.base.folders`). The same settings give the same bytes.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mixope import worlds
from mixope.base.arrays import FloatArray
from mixope.base.errors import Advice, Setting, UnknownName, UsageError
from mixope.base.estimand import Estimand
from mixope.base.folders import ClaimedFolder, claim
from mixope.logs import write
from mixope.version import __version__
from mixope.worlds import cartpole, linear_quadratic, pendulum
from mixope.worlds.earlier import written_earlier
from mixope.worlds.model import Model
from mixope.worlds.simulation import Columns, logger_names, share_episodes

DISCOUNTS = (0.9, 0.99)
USUAL_HORIZON = 200
FEW_CHAINS = {"chains": 500, "steps": 1000, "burn_in": 500}
"""For the simulated truth of loggers, which is only shown beside that of the target."""
OURS = ("logs.parquet", "logs.csv", "logs.arrow", "target.csv", "loggers.csv", "policies.py", "truth.json")
"""The names that a dataset may have."""


@dataclass(frozen=True)
class Settings:
    """What to simulate.

    Without a horizon, episodes are logged to their end; those that have none are truncated after 200 steps.
    """

    environment: str
    loggers: int = 4
    episodes: int = 200
    horizon: int | None = None
    observed: str = "id"
    format: str = "parquet"
    seed: int = 0
    pickup_bonus: bool = False


@dataclass(frozen=True)
class Dataset:
    """Where the files are, and the truth they come with."""

    folder: Path
    logs: Path
    target: Path
    loggers: Path
    vectors: bool
    truth: dict[str, Any]


class Made(NamedTuple):
    """What was simulated, and how: the logs, the files of policies (tables or text) by name, and the truth."""

    settings: Settings
    logs: Columns
    policies: Mapping[str, Columns | str]
    truth: dict[str, Any]


def write_dataset(settings: Settings, folder: Path, *, force: bool = False) -> Dataset:
    """Simulate and write; an existing dataset is replaced only with ``force``, other files never."""
    check_environment(settings.environment)
    with claim(Path(os.path.abspath(folder)), OURS, force=force, unrecorded=written_earlier) as place:
        return fill(settings, place)


def check_environment(name: str) -> None:
    """Refuse a name that no environment has."""
    if name == "engagement":
        raise UsageError("engagement is a test of arms, without policies; write it with engagement.write_dataset(…)")
    if name not in worlds.BUILDERS and name not in worlds.CONTINUOUS:
        raise UnknownName("environment", name, (*worlds.BUILDERS, *worlds.CONTINUOUS, "engagement"))


def fill(settings: Settings, place: ClaimedFolder) -> Dataset:
    """Simulate, and write the dataset into a folder that was claimed."""
    vectors = settings.environment in worlds.CONTINUOUS
    made = _simulate_vectors(settings) if vectors else _simulate_ids(settings)
    with place.writing() as fresh:
        truth = _write_all(made, fresh)
    folder = place.path
    target, loggers = ("policies.py", "policies.py") if vectors else ("target.csv", "loggers.csv")
    return Dataset(folder, folder / f"logs.{settings.format}", folder / target, folder / loggers, vectors, truth)


def _write_all(made: Made, folder: Path) -> dict[str, Any]:
    """All files; gives back the truth with the settings it belongs to."""
    settings = made.settings
    write(made.logs, folder / f"logs.{settings.format}")
    for name, content in made.policies.items():
        if isinstance(content, str):
            (folder / name).write_text(content, encoding="utf-8")
        else:
            write(content, folder / name)
    origin = {"rows": len(made.logs["reward"]), "seed": settings.seed, "settings": asdict(settings)}
    truth = {**made.truth, **origin, "version": __version__}
    (folder / "truth.json").write_text(json.dumps(truth, indent=2) + "\n", encoding="utf-8")
    return truth


def _simulate_ids(settings: Settings) -> Made:
    options = {"pickup_bonus": True} if settings.pickup_bonus else {}
    model = worlds.make(settings.environment, **options)
    settings = _with_horizon(settings, model.ends)
    loggers = worlds.stages(model, settings.loggers, seed=settings.seed)
    target = worlds.target(model, seed=settings.seed)
    observed: Any = settings.observed
    logs = worlds.simulate(model, loggers, settings.episodes, settings.horizon, seed=settings.seed, observed=observed)
    tables = [_policy_columns(model, policy, settings.observed) for policy in loggers]
    labels = np.repeat(logger_names(len(loggers)), model.n_states * model.n_actions)
    joined = {name: np.concatenate([table[name] for table in tables]) for name in tables[0]}
    policies: dict[str, Columns | str] = {
        "target.csv": _policy_columns(model, target, settings.observed),
        "loggers.csv": {"policy_id": labels, **joined},
    }
    bound = worlds.efficiency_bound(model, target, loggers, _shares(settings), horizon=settings.horizon)
    truth = _exact_truth(worlds.truth, model, target, loggers, settings, bound / len(logs["reward"]))
    return Made(settings, logs, policies, {**truth, **(_episode_truth(model, target) if model.ends else {})})


def _with_horizon(settings: Settings, ends: bool) -> Settings:
    return settings if ends or settings.horizon else replace(settings, horizon=USUAL_HORIZON)


def _policy_columns(model: Model, policy: FloatArray, observed: str) -> Columns:
    """One row per state and action."""
    state, action = (index.ravel() for index in np.indices(policy.shape))
    names = {f"observation.{name}": values[state] for name, values in model.factors.items()}
    return {**(names if observed == "factors" else {"observation": state}), "action": action, "prob": policy.ravel()}


def _simulate_vectors(settings: Settings) -> Made:
    if settings.observed != "id" or settings.pickup_bonus:
        said = f" are not for {settings.environment}, whose states are vectors"
        raise UsageError(Advice(Setting("observed"), " and ", Setting("pickup_bonus", True), said))
    settings = _with_horizon(settings, settings.environment == "cartpole")
    world = worlds.make_continuous(settings.environment)
    known: Any = {"pendulum": pendulum, "cartpole": cartpole}.get(settings.environment, linear_quadratic)
    target, loggers = known.target(), known.loggers(settings.loggers)
    logs = worlds.continuous.simulate(world, loggers, settings.episodes, settings.horizon, seed=settings.seed)
    if logs["action"].shape[1:] == (1,):
        logs["action"] = logs["action"][:, 0]
    if known is pendulum:
        return _made(settings, logs, _pendulum_policies(settings.loggers), _pendulum_truth(target, loggers))
    if known is cartpole:
        return _made(settings, logs, _cartpole_policies(settings.loggers), _cartpole_truth(target, loggers))
    shares = _shares(settings)
    bound = known.efficiency_bound(world, target, loggers, horizon=settings.horizon, shares=shares).value
    truth = _exact_truth(known, world, target, loggers, settings, bound / len(logs["reward"]))
    return _made(settings, logs, _linear_policies(target, loggers), truth)


def _made(settings: Settings, logs: Columns, policies: str, truth: dict[str, Any]) -> Made:
    return Made(settings, logs, {"policies.py": policies}, truth)


def _shares(settings: Settings) -> list[float]:
    """Episodes by logger."""
    logger = share_episodes(settings.loggers, settings.episodes, settings.horizon)
    return [float(count) for count in np.bincount(logger, minlength=settings.loggers)]


def _exact_truth(
    solver: Any, world: Any, target: Any, loggers: Sequence[Any], settings: Settings, bound: float
) -> dict[str, Any]:
    """The values of the target by ``solver``, and the least mean squared error that logs of this size allow."""
    steps = settings.horizon or USUAL_HORIZON
    certain = {"average_standard_error": 0.0} if settings.environment in worlds.CONTINUOUS else {}
    return {
        "average": solver.average(world, target),
        **certain,
        "discounted": {f"{gamma:g}": solver.discounted(world, target, gamma) for gamma in DISCOUNTS},
        "horizon": {str(steps): solver.horizon(world, target, steps)},
        "efficiency_bound_mse": bound if math.isfinite(bound) else None,
        "loggers": {f"logger-{j}": solver.average(world, policy) for j, policy in enumerate(loggers)},
    }


def _episode_truth(model: Model, target: FloatArray) -> dict[str, Any]:
    """The total of an episode, without and with a discount, and how many steps it has."""
    solver = worlds.truth
    return {
        "episode": {f"{gamma:g}": solver.episode(model, target, gamma) for gamma in (1.0, *DISCOUNTS)},
        "episode_length": solver.episode_length(model, target),
    }


def _cartpole_truth(target: Any, loggers: Sequence[Any]) -> dict[str, Any]:
    """Of CartPole, where every step earns 1: the average is 1 and the total of an episode its length."""
    asked = {f"{gamma:g}": Estimand("discounted", gamma=gamma) for gamma in DISCOUNTS}
    discounted = {name: cartpole.truth(target, estimand) for name, estimand in asked.items()}
    episodes = {name: Estimand("episode", gamma=float(name)) for name in ("1", *asked)}
    totals = {name: cartpole.truth(target, estimand) for name, estimand in episodes.items()}
    return {
        "average": 1.0,
        "average_standard_error": 0.0,
        "discounted": {name: found.value for name, found in discounted.items()},
        "discounted_standard_error": {name: found.standard_error for name, found in discounted.items()},
        "episode": {name: found.value for name, found in totals.items()},
        "episode_standard_error": {name: found.standard_error for name, found in totals.items()},
        "episode_length": totals["1"].value,
        "efficiency_bound_mse": 0.0,
        "loggers": {f"logger-{j}": 1.0 for j in range(len(loggers))},
    }


def _pendulum_truth(target: Any, loggers: Sequence[Any]) -> dict[str, Any]:
    """Of Pendulum, whose dynamics are deterministic: the bound is 0."""
    found, others = pendulum.truth(target), [pendulum.truth(policy, **FEW_CHAINS) for policy in loggers]
    return {
        "average": found.value,
        "average_standard_error": found.standard_error,
        "efficiency_bound_mse": 0.0,
        "loggers": {f"logger-{j}": other.value for j, other in enumerate(others)},
        "loggers_standard_error": {f"logger-{j}": other.standard_error for j, other in enumerate(others)},
    }


def _pendulum_policies(loggers: int) -> str:
    made = [f"analytic_policy(g={g}, sigma={sigma})" for g, sigma in (pendulum.TARGET, *pendulum.LOGGERS[loggers])]
    return _module("from mixope.worlds.pendulum import analytic_policy", *made)


def _cartpole_policies(loggers: int) -> str:
    made = [f"controller(gain={gain})" for gain in (cartpole.TARGET, *cartpole.LOGGERS[loggers])]
    return _module("from mixope.worlds.cartpole import controller", *made)


def _linear_policies(target: Any, loggers: Sequence[Any]) -> str:
    def said(policy: Any) -> str:
        scale = float(policy.scale([[0.0, 0.0]]).ravel()[0])
        return f"LinearGaussianPolicy({policy.weights[0].tolist()}, {float(policy.bias[0])}, {scale})"

    return _module("from mixope import LinearGaussianPolicy", *map(said, (target, *loggers)))


def _module(imports: str, target: str, *loggers: str) -> str:
    """The text of ``policies.py``."""
    head = '"""The policies of these logs: policies:target and policies:loggers, from this folder."""'
    named = [f"logger_{j} = {words}" for j, words in enumerate(loggers)]
    table = ", ".join(f'"logger-{j}": logger_{j}' for j in range(len(loggers)))
    return "\n".join([head, "", imports, "", f"target = {target}", *named, f"loggers = {{{table}}}", ""])
