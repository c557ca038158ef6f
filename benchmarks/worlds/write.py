"""Write the logs of the worlds as files: ``python -m benchmarks.worlds.write`` (extra ``bench``).

One ``<cell>-<episodes>-<seed>.npz`` each, with the names of ``mixope.Logs.from_arrays``, and one ``<cell>.json`` with
what the peers must know of the cell. A file that is there already is not written again.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.worlds.cells import CELLS, Cell
from benchmarks.worlds.rollouts import GAMMA

FOLDER = Path(__file__).with_name("logs")
SIZES = (50, 200)
SEEDS = tuple(range(100, 105))
"""Of the published figures; whoever builds an estimator looks at others, such as 0 to 4."""


def path(folder: Path, cell: str, episodes: int, seed: int) -> Path:
    """Where a log lies."""
    return folder / f"{cell}-{episodes}-{seed}.npz"


def read(file: Path) -> dict[str, np.ndarray]:
    """A log as columns."""
    if not file.exists():
        raise SystemExit(f"{file} is not there; python -m benchmarks.worlds.write writes it")
    with np.load(file) as columns:
        return dict(columns)


def write(folder: Path, cell: Cell, episodes: int, seed: int) -> bool:
    """Write a log; False if it was there."""
    file = path(folder, cell.name, episodes, seed)
    if file.exists():
        return False
    columns = cell.log(episodes, seed)
    started = file.with_suffix(".part.npz")
    np.savez_compressed(started, **columns)  # type: ignore[arg-type]
    started.replace(file)
    return True


def description(cell: Cell) -> dict[str, Any]:
    """What a peer must know."""
    target, stored = cell.targets()[0], cell.stored["targets"][0]
    truth, error = cell.truths(stored)
    return {
        "estimand": cell.estimand,
        "gamma": GAMMA,
        "discrete": target.discrete,
        "truth": truth,
        "error": error,
        "logged_value": cell.logged_value,
        "target": {
            name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in vars(target).items()
        },
    }


def choices(parser: argparse.ArgumentParser) -> None:
    """The options that say which logs."""
    parser.add_argument("--cells", nargs="+", choices=list(CELLS), default=list(CELLS))
    parser.add_argument("--sizes", nargs="+", type=int, default=list(SIZES), metavar="EPISODES")
    parser.add_argument("--seeds", nargs="+", type=int, default=list(SEEDS))
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where the logs lie")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    choices(parser)
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    for name in given.cells:
        (given.folder / f"{name}.json").write_text(json.dumps(description(CELLS[name])) + "\n")
        written = sum(write(given.folder, CELLS[name], size, seed) for size in given.sizes for seed in given.seeds)
        print(f"{name}: {written} logs written", flush=True)


if __name__ == "__main__":
    main()
