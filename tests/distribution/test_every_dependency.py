"""Every core dependency does what is asked of it: run on the lowest versions that are declared, and on the newest.

Nothing is used here that an installation without extras does not have, besides pytest.
"""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

import mixope

pytestmark = pytest.mark.long  # other tests say the same of the versions that are installed here

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "tests" / "data" / "reference"
WALK, TARGET = REFERENCE / "walk.csv", REFERENCE / "walk-target.csv"
EXPECTED = json.loads((REFERENCE / "expected.json").read_text(encoding="utf-8"))


def command(*words: object, **variables: str) -> str:
    """What the command prints; in a process of its own, whose warnings are errors of nobody."""
    asked = [sys.executable, "-m", "mixope", *map(str, words)]
    done = subprocess.run(
        asked, env={**os.environ, **variables}, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def law(observations):
    right = 0.2 + 0.6 / (1.0 + np.exp(-observations[:, 0]))
    return np.stack([1.0 - right, right], axis=1)


@pytest.fixture(scope="module")
def vectors():
    """A walk in the plane: 40 episodes of 10 steps, two actions."""
    generator = np.random.default_rng(0)
    states = generator.normal(size=(400, 2))
    actions = (generator.random(400) < law(states)[:, 1]).astype(int)
    following = 0.7 * states + (2 * actions - 1)[:, None] * 0.3 + generator.normal(size=(400, 2)) * 0.5
    return {
        "observation": states,
        "action": actions,
        "reward": following[:, 0],
        "next_observation": following,
        "episode_id": np.repeat(np.arange(40), 10),
        "step": np.tile(np.arange(10), 40),
    }


def test_the_command_line_evaluates_and_writes_a_page(tmp_path):
    page = tmp_path / "report.html"
    record = json.loads(command("evaluate", WALK, "--target", TARGET, "--html", page, "--json"))
    assert record["value"] == pytest.approx(EXPECTED["walk"]["values"]["emp"], abs=1e-6)
    assert "<svg" in page.read_text(encoding="utf-8")


def test_the_command_line_has_help_and_completion():
    assert "--estimand" in command("evaluate", "--help")
    words = {"_MIXOPE_COMPLETE": "complete_bash", "COMP_WORDS": "mixope evaluate --estimand d", "COMP_CWORD": "3"}
    assert command(**words).split() == ["discounted"]


def test_the_command_line_shows_a_comparison():
    shown = command("compare", WALK, "--target", TARGET, "--estimator", "all", "--level", "0.9")
    assert "wis-step" in shown


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "tsv", "jsonl", "parquet", "arrow", "npz"])
def test_every_format_is_read(ending, tmp_path):
    table = mixope.read(REFERENCE / "gridworld.csv").table(
        ("episode_id", "step", "observation", "action", "reward", "next_observation")
    )
    path, rows = tmp_path / f"log.{ending}", table.to_pylist()
    columns = table.column_names
    lines = [columns, *([str(row[name]) for name in columns] for row in rows)]
    written = {
        "csv": lambda: path.write_text("\n".join(map(",".join, lines)) + "\n"),
        "csv.gz": lambda: path.write_bytes(gzip.compress(("\n".join(map(",".join, lines)) + "\n").encode())),
        "tsv": lambda: path.write_text("\n".join(map("\t".join, lines)) + "\n"),
        "jsonl": lambda: path.write_text("".join(json.dumps(row) + "\n" for row in rows)),
        "parquet": lambda: pq.write_table(table, path),
        "arrow": lambda: feather.write_feather(table, path, compression="uncompressed"),
        "npz": lambda: np.savez(path, **{name: table[name].to_numpy() for name in columns}),
    }
    written[ending]()
    read = mixope.read(path)
    assert read.total_rows() == table.num_rows
    assert sum(read.table(("reward",))["reward"].to_pylist()) == pytest.approx(sum(table["reward"].to_pylist()))


def test_text_in_all_columns_is_read(tmp_path):
    text = "episode_id,step,observation,action,reward,next_observation\na,0,x,go,1,y\na,1,y,stay,0.5,x\nb,0,x,go,0,x\n"
    (tmp_path / "log.csv").write_text(text)
    assert mixope.inspect(mixope.read(tmp_path / "log.csv")).contents.rows == 3


@pytest.mark.parametrize("engine", ["memory", "embedded", "processes"])
@pytest.mark.filterwarnings("default")
def test_engines_agree_on_vectors(engine, vectors, tmp_path):
    pq.write_table(_columns(vectors), tmp_path / "log.parquet")
    found = mixope.evaluate(mixope.read(tmp_path / "log.parquet", ends="truncated"), law, "emp", engine=engine)
    assert found.value == pytest.approx(mixope.evaluate(mixope.read(vectors), law, "emp").value, rel=1e-9)


def _columns(vectors) -> pa.Table:
    """One column of numbers for each component."""
    apart = {}
    for name, values in vectors.items():
        if np.ndim(values) == 2:
            apart |= {f"{name}.{k}": values[:, k] for k in range(values.shape[1])}
        else:
            apart[name] = values
    return pa.table(apart)


@pytest.mark.parametrize("estimator", ["dr", "lstdq", "mwl", "dualdice", "kernel"])
@pytest.mark.filterwarnings("default")
def test_estimators_on_vectors_have_values(estimator, vectors):
    assert np.isfinite(mixope.evaluate(mixope.read(vectors), law, estimator).value)


@pytest.mark.filterwarnings("default")
def test_refits_are_shared_by_processes():
    logs, target = mixope.read(WALK), mixope.read_policy(TARGET)
    alone = mixope.evaluate(logs, target, interval="bca", replicates=40, jobs=1)
    shared = mixope.evaluate(logs, target, interval="bca", replicates=40, jobs=2)
    assert alone.interval == shared.interval


@pytest.mark.filterwarnings("default")
def test_a_fitted_classifier_is_a_policy(vectors):
    from sklearn.linear_model import LogisticRegression

    fitted = LogisticRegression().fit(vectors["observation"], vectors["action"])
    found = mixope.evaluate(mixope.read(vectors), fitted, "logged-mean")
    assert found.value == pytest.approx(np.mean(vectors["reward"]))


@pytest.mark.filterwarnings("default")
def test_a_figure_is_drawn(tmp_path):
    from matplotlib.figure import Figure

    from mixope.paper.style import save

    def draw(rows):
        figure = Figure(layout="constrained")
        figure.add_subplot().plot(rows)
        return figure

    png, svg = save(draw, [1, 2, 3], tmp_path / "figure")
    assert png.read_bytes().startswith(b"\x89PNG")
    assert "<svg" in svg.read_text(encoding="utf-8")


@pytest.mark.parametrize("absent", [None, "zero"])
def test_an_experiment_is_brought_into_order_and_answered(absent):
    generator = np.random.default_rng(0)
    user, day = np.repeat(np.arange(120), 5), np.tile(np.arange(5), 120)
    table = pa.table(
        {
            "user": user,
            "day": day,
            "variant": np.where(user % 2, "B", "A"),
            "level": generator.integers(0, 3, len(user)),
            "revenue": generator.normal(size=len(user)) + 0.5 * (user % 2),
        }
    )
    found = mixope.experiment(
        table, arm="variant", control="A", unit="user", time="day", metric="revenue", state="level", absent=absent
    ).main
    assert found.naive.interval.low < 0.5 < found.naive.interval.high
    assert found.long_run.effect.interval.low < 0.5 < found.long_run.effect.interval.high
