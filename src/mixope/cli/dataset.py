"""A benchmark dataset on disk: simulated logs, the policies behind them, and the exact truth.

    logs.parquet (or .csv, .arrow)   target.csv   loggers.csv   truth.json

Worlds of vectors have their policies in ``policies.py`` instead of tables, see :mod:`mixope.cli.vector_dataset`.
All of it or nothing: the files are written into a folder beside the wanted one, which then takes its place.
The same settings give the same bytes.
"""

from __future__ import annotations

import json
import math
import os
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mixope.errors import UnknownName, UsageError
from mixope.version import __version__

if TYPE_CHECKING:
    from mixope.arrays import AnyArray, FloatArray
    from mixope.environments import Model

DISCOUNTS = (0.9, 0.99)
OURS = ("logs.parquet", "logs.csv", "logs.arrow", "target.csv", "loggers.csv", "policies.py", "truth.json")
CACHE = "__pycache__"
"""The names that a dataset may have; a folder that holds nothing else may be replaced."""


@dataclass(frozen=True)
class Settings:
    """What to simulate."""

    environment: str
    loggers: int = 4
    episodes: int = 200
    horizon: int = 200
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


def write_dataset(settings: Settings, folder: Path, *, force: bool = False, ours: Sequence[str] = OURS) -> Dataset:
    """Simulate and write; an existing dataset is replaced only with ``force``, other files never."""
    from mixope.cli.vector_dataset import fill_vectors
    from mixope.environments import BUILDERS, CONTINUOUS

    folder = Path(os.path.abspath(folder))
    if settings.environment not in (*BUILDERS, *CONTINUOUS):
        raise UnknownName("environment", settings.environment, (*BUILDERS, *CONTINUOUS))
    check_replaceable(folder, force, ours)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{folder.name}.", dir=folder.parent) as waiting:
        fresh = Path(waiting) / "new"
        fresh.mkdir()
        vectors = settings.environment in CONTINUOUS
        truth = fill_vectors(settings, fresh) if vectors else _fill(settings, fresh)
        if folder.exists():
            folder.rename(Path(waiting) / "old")
        fresh.rename(folder)
    target, loggers = ("policies.py", "policies.py") if vectors else ("target.csv", "loggers.csv")
    return Dataset(folder, folder / f"logs.{settings.format}", folder / target, folder / loggers, vectors, truth)


def check_replaceable(folder: Path, force: bool, ours: Sequence[str]) -> None:
    """Refuse to write over what is there, unless it was asked for and is a dataset of ours."""
    if not folder.exists():
        return
    if not folder.is_dir():
        raise UsageError(f"{folder} is a file; name a folder")
    if folder == Path.cwd():
        raise UsageError("the current folder cannot be replaced; name another one")
    inside = sorted(path.name for path in folder.iterdir() if path.name != CACHE)
    strangers = [name for name in inside if name not in ours]
    if strangers:
        raise UsageError(f"{folder} holds other files ({', '.join(strangers[:3])}); name an empty folder or a new one")
    if inside and not force:
        raise UsageError(f"{folder} is not empty; --force replaces the dataset in it")


def _fill(settings: Settings, folder: Path) -> dict[str, Any]:
    from mixope import environments
    from mixope.logs import write

    options = {"pickup_bonus": True} if settings.pickup_bonus else {}
    model = environments.make(settings.environment, **options)
    loggers = environments.stages(model, settings.loggers, seed=settings.seed)
    target = environments.target(model, seed=settings.seed)
    columns = environments.simulate(
        model,
        loggers,
        settings.episodes,
        settings.horizon,
        seed=settings.seed,
        observed=settings.observed,  # type: ignore[arg-type]
    )
    write(columns, folder / f"logs.{settings.format}")
    write(_policy_columns(model, target, settings.observed), folder / "target.csv")
    write(_logger_columns(model, loggers, settings.observed), folder / "loggers.csv")
    truth = _truth(settings, model, target, loggers, len(columns["reward"]))
    (folder / "truth.json").write_text(json.dumps(truth, indent=2) + "\n", encoding="utf-8")
    return truth


def _policy_columns(model: Model, policy: FloatArray, observed: str) -> dict[str, AnyArray]:
    """One row a state and action."""
    import numpy as np

    state, action = (index.ravel() for index in np.indices(policy.shape))
    names = {f"observation.{name}": values[state] for name, values in model.factors.items()}
    return {**(names if observed == "factors" else {"observation": state}), "action": action, "prob": policy.ravel()}


def _logger_columns(model: Model, loggers: Sequence[FloatArray], observed: str) -> dict[str, AnyArray]:
    import numpy as np

    tables = [_policy_columns(model, policy, observed) for policy in loggers]
    labels = np.repeat([f"logger-{j}" for j in range(len(loggers))], model.n_states * model.n_actions)
    return {"policy_id": labels, **{name: np.concatenate([table[name] for table in tables]) for name in tables[0]}}


def _truth(
    settings: Settings, model: Model, target: FloatArray, loggers: Sequence[FloatArray], rows: int
) -> dict[str, Any]:
    """The exact values of the target, and the least mean squared error that logs of this size allow."""
    from mixope import environments

    shares = [len(range(j, settings.episodes, len(loggers))) for j in range(len(loggers))]
    bound = environments.efficiency_bound(model, target, loggers, shares, horizon=settings.horizon) / rows
    return {
        "average": environments.truth.average(model, target),
        "discounted": {f"{gamma:g}": environments.truth.discounted(model, target, gamma) for gamma in DISCOUNTS},
        "horizon": {str(settings.horizon): environments.truth.horizon(model, target, settings.horizon)},
        "efficiency_bound_mse": bound if math.isfinite(bound) else None,
        "loggers": {f"logger-{j}": environments.truth.average(model, policy) for j, policy in enumerate(loggers)},
        "rows": rows,
        "seed": settings.seed,
        "settings": asdict(settings),
        "version": __version__,
    }
