"""The small data that the pages speak of: logs of two loggers on Gridworld and of hospitals, and policies for them."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from mixope import worlds
from mixope.logs import write

PLAN = """import numpy as np

def treat_early(states):
    wants = (states["pressure"] > 140) | (states["severity"] >= 3)
    chance = np.where(wants & (states["diagnosis"] != "stroke"), 0.85, 0.25)
    return np.stack([1 - chance, chance], axis=1)

treat_early.actions = ["observe", "treat"]
"""
"""The policy of the page on mixed states, as a file."""


def _policy_columns(probabilities: np.ndarray, states: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    n_states, n_actions = probabilities.shape
    state, action = (index.ravel() for index in np.indices((n_states, n_actions)))
    return {
        **{name: column[state] for name, column in states.items()},
        "action": action,
        "prob": probabilities.ravel(),
    }


def _write_policies(folder: Path, model: worlds.Model, loggers: list[np.ndarray], target: np.ndarray) -> None:
    ids = {"observation": np.arange(model.n_states)}
    factors = {f"observation.{name}": column for name, column in model.factors.items()}
    write(_policy_columns(target, ids), folder / "target.csv")
    write(_policy_columns(loggers[0], ids), folder / "old.csv")
    write(_policy_columns(target, factors), folder / "target-factors.csv")
    listed = [
        {"policy_id": np.full(logger.size, f"logger-{j}"), **_policy_columns(logger, ids)}
        for j, logger in enumerate(loggers)
    ]
    write({name: np.concatenate([part[name] for part in listed]) for name in listed[0]}, folder / "loggers.csv")
    np.savez(folder / "target.npz", probabilities=target)


@pytest.fixture(scope="session")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with logs/*.parquet (ids), factored/*.parquet (factors), stays.csv (mixed) and the policies."""
    folder = tmp_path_factory.mktemp("documents")
    model = worlds.make("gridworld-slip")
    loggers, target = worlds.stages(model, 2), worlds.target(model)
    for name, observed in (("logs", "id"), ("factored", "factors")):
        for part in range(2):
            columns = worlds.simulate(model, loggers, episodes=20, horizon=50, seed=part, observed=observed)
            columns["episode_id"] = columns["episode_id"] + 20 * part
            write(columns, folder / name / f"part-{part}.parquet")
    _write_policies(folder, model, loggers, target)
    write(worlds.hospital.simulate(500, seed=1), folder / "stays.csv")
    (folder / "plan.py").write_text(PLAN, encoding="utf-8")
    return folder


@pytest.fixture
def workspace(prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of that folder to work in; the current folder of the test."""
    folder = tmp_path / "session"
    shutil.copytree(prepared, folder)
    monkeypatch.chdir(folder)
    return folder
