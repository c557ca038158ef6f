"""Benchmark logs of vectors: what ``mixope simulate`` writes for Pendulum and the linear–quadratic system.

    logs.parquet (observation.0 …, action, action_logp)   policies.py   truth.json

The policies are Python objects: ``policies.py`` says them with their numbers, as ``target``, ``logger_0`` … and the
dictionary ``loggers``. The truth of Pendulum is simulated and has a standard error; that of the linear–quadratic
system is exact.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mixope.cli.dataset import DISCOUNTS
from mixope.errors import UsageError
from mixope.version import __version__

if TYPE_CHECKING:
    from mixope.cli.dataset import Settings

FEW_CHAINS = {"chains": 500, "steps": 1000, "burn_in": 500}
"""The truth of loggers, which is only shown beside that of the target."""


def fill_vectors(settings: Settings, folder: Path) -> dict[str, Any]:
    """Write the logs, the policies and the truth; returns the truth."""
    if settings.observed != "id" or settings.pickup_bonus:
        raise UsageError(f"--observed and --pickup-bonus are not for {settings.environment}, whose states are vectors")
    from mixope import environments
    from mixope.logs import write

    world = environments.make_continuous(settings.environment)
    known = environments.pendulum if settings.environment == "pendulum" else environments.linear_quadratic
    loggers: Sequence[Any] = known.loggers(settings.loggers)
    columns = environments.continuous.simulate(world, loggers, settings.episodes, settings.horizon, seed=settings.seed)
    if world.action_size == 1:
        columns["action"] = columns["action"][:, 0]
    write(columns, folder / f"logs.{settings.format}")
    said = _pendulum_policies if settings.environment == "pendulum" else _linear_policies
    (folder / "policies.py").write_text(said(settings.loggers), encoding="utf-8")
    value = _pendulum_truth if settings.environment == "pendulum" else _linear_truth
    truth = {
        **value(settings, len(columns["reward"])),
        "rows": len(columns["reward"]),
        "seed": settings.seed,
        "settings": asdict(settings),
        "version": __version__,
    }
    (folder / "truth.json").write_text(json.dumps(truth, indent=2) + "\n", encoding="utf-8")
    return truth


def _pendulum_truth(settings: Settings, rows: int) -> dict[str, Any]:
    from mixope.environments import pendulum

    found = pendulum.truth(pendulum.target())
    others = [pendulum.truth(policy, **FEW_CHAINS) for policy in pendulum.loggers(settings.loggers)]
    return {
        "average": found.value,
        "average_standard_error": found.standard_error,
        "efficiency_bound_mse": 0.0,
        "loggers": {f"logger-{j}": other.value for j, other in enumerate(others)},
        "loggers_standard_error": {f"logger-{j}": other.standard_error for j, other in enumerate(others)},
    }


def _linear_truth(settings: Settings, rows: int) -> dict[str, Any]:
    from mixope.environments import linear_quadratic as lq

    system, target, loggers = lq.linear_quadratic(), lq.target(), lq.loggers(settings.loggers)
    shares = [len(range(j, settings.episodes, len(loggers))) for j in range(len(loggers))]
    bound = lq.efficiency_bound(system, target, loggers, horizon=settings.horizon, shares=shares).value / rows
    return {
        "average": lq.average(system, target),
        "average_standard_error": 0.0,
        "discounted": {f"{gamma:g}": lq.discounted(system, target, gamma) for gamma in DISCOUNTS},
        "horizon": {str(settings.horizon): lq.horizon(system, target, settings.horizon)},
        "efficiency_bound_mse": bound if math.isfinite(bound) else None,
        "loggers": {f"logger-{j}": lq.average(system, policy) for j, policy in enumerate(loggers)},
    }


def _pendulum_policies(loggers: int) -> str:
    from mixope.environments import pendulum

    def made(numbers: tuple[float, float]) -> str:
        return f"analytic_policy(g={numbers[0]}, sigma={numbers[1]})"

    lines = [made(numbers) for numbers in pendulum.LOGGERS[loggers]]
    return _module("from mixope.environments.pendulum import analytic_policy", made(pendulum.TARGET), lines)


def _linear_policies(loggers: int) -> str:
    from mixope.environments import linear_quadratic as lq

    def made(policy: Any) -> str:
        scale = float(policy.scale([[0.0, 0.0]]).ravel()[0])
        return f"LinearGaussianPolicy({policy.weights[0].tolist()}, {float(policy.bias[0])}, {scale})"

    lines = [made(policy) for policy in lq.loggers(loggers)]
    return _module("from mixope import LinearGaussianPolicy", made(lq.target()), lines)


def _module(imports: str, target: str, loggers: Sequence[str]) -> str:
    """The text of ``policies.py``."""
    head = '"""The policies of these logs: --target policies:target, --loggers policies:loggers, from this folder."""'
    named = [f"logger_{j} = {words}" for j, words in enumerate(loggers)]
    table = ", ".join(f'"logger-{j}": logger_{j}' for j in range(len(loggers)))
    return "\n".join([head, "", imports, "", f"target = {target}", *named, f"loggers = {{{table}}}", ""])
