"""How the formats of other tools are known: by a record in a folder, the first bytes or line of a file, or columns.

    Delta           _delta_log/                        Hudi            .hoodie/ (refused)
    Iceberg         metadata/v1.metadata.json          LeRobot         meta/info.json
    Minari          data/metadata.json                 Hugging Face    state.json, dataset_dict.json
    Vowpal Wabbit   {"_label_cost": …, "c": {…}}       RLlib           {"type": "SampleBatch", …}
    DuckDB, SQLite  the first bytes of the file

The readers are a wing (:mod:`mixope.formats`). Their marks are not: whoever does not know them reads rows that were
deleted, or that are no steps.
"""

from __future__ import annotations

import os
import re
from collections.abc import Container, Iterable, Mapping
from typing import Any

from mixope.base.errors import DataError
from mixope.logs.names import by_meaning
from mixope.logs.sources.found import Finds
from mixope.logs.sources.gate import record_text

LOG = "_delta_log"
"""The folder of the log of a Delta table."""
HOODIE = ".hoodie"
"""The folder of the timeline of a Hudi table."""
METADATA = "metadata"
"""The folder of the versions of an Iceberg table."""
_ICEBERG = re.compile(r"(v\d+|\d+-[0-9a-fA-F-]{36})(\.gz)?\.metadata\.json(\.gz)?")
MINARI_RECORD, MINARI_MAIN = "metadata.json", "main_data.hdf5"
LEROBOT_RECORD = os.path.join("meta", "info.json")
STATE, INFO, SPLITS = "state.json", "dataset_info.json", "dataset_dict.json"
"""The records of a data set of Hugging Face."""
RECORDS = (SPLITS, INFO, "meta/info.json", MINARI_MAIN, f"0/{MINARI_RECORD}")
"""What lies in data sets of Hugging Face, LeRobot and Minari, which are read from this machine only."""
SQLITE, DUCKDB = b"SQLite format 3\0", b"DUCK"
COST = "_label_cost"
BATCHES = ("SampleBatch", "MultiAgentBatch")
RLLIB_STEPS, RLLIB_EPISODES = frozenset({"eps_id", "obs", "actions", "rewards"}), ("item",)
"""The columns of RLlib's Parquet files: one row per step, or one packed episode per row."""
LEROBOT = frozenset({"episode_index", "frame_index", "task_index", "timestamp"})
"""Columns of every data set of LeRobot."""
OPEN_BANDIT = frozenset({"item_id", "position", "click", "propensity_score"})
USER = "user_feature_"
OBJECTS = {
    ("minari", "MinariDataset"): "minari",
    ("d3rlpy", "ReplayBufferBase"): "d3rlpy",
    ("d3rlpy", "ReplayBuffer"): "d3rlpy",
    ("d3rlpy", "MDPDataset"): "d3rlpy",
    ("stable_baselines3", "RolloutBuffer"): "stable-baselines3",
    ("stable_baselines3", "ReplayBuffer"): "stable-baselines3",
}
"""The library and the class of an object → the format that takes its steps out of it."""


def is_delta(folder: str) -> bool:
    """Whether a folder has the log of a Delta table."""
    return os.path.isdir(os.path.join(folder, LOG))


def is_version(name: str) -> bool:
    """Whether a file of ``metadata/`` holds a version of an Iceberg table."""
    return _ICEBERG.fullmatch(name) is not None


def is_iceberg(folder: str) -> bool:
    """Whether a folder has the versions of an Iceberg table beside its data."""
    try:
        return any(is_version(name) for name in os.listdir(os.path.join(folder, METADATA)))
    except OSError:
        return False


def is_hudi(folder: str) -> bool:
    """Whether a folder has the timeline of a Hudi table."""
    return os.path.isdir(os.path.join(folder, HOODIE))


def refuse_hudi(folder: str) -> Finds:
    """An error that says how to get the rows."""
    raise DataError(
        "The folder is a Hudi table, which is not read from its files",
        where=folder,
        expected="files of rows that all count; the files of such a table also hold rows that were deleted or replaced",
        hint="query the table with the engine that writes it (Spark, say), and pass the rows as an Arrow table or"
        " export them to Parquet",
    )


def is_minari(folder: str) -> bool:
    """Whether a folder is the ``data`` folder of a Minari data set, also of one that is not whole."""
    if os.path.isfile(os.path.join(folder, MINARI_MAIN)) or os.path.isfile(os.path.join(folder, "0", MINARI_RECORD)):
        return True
    text = record_text(os.path.join(folder, MINARI_RECORD))
    return all(f'"{key}"' in text for key in ("total_steps", "total_episodes", "observation_space"))


def whole_minari(path: str) -> str | None:
    """The ``data`` folder where a path is this folder, the one around it, or the hdf5 file in it."""
    in_it = os.path.basename(path) == MINARI_MAIN and os.path.isfile(path)
    around = os.path.dirname(path) if in_it else path
    return next((each for each in (around, os.path.join(around, "data")) if is_minari(each)), None)


def is_lerobot(folder: str) -> bool:
    """Whether a folder is a data set of LeRobot."""
    text = record_text(os.path.join(folder, LEROBOT_RECORD))
    return '"codebase_version"' in text and '"features"' in text


def is_hugging(folder: str) -> bool:
    """Whether a folder is a data set of Hugging Face, or several of them."""
    if os.path.isfile(os.path.join(folder, SPLITS)):
        return True
    if not os.path.isfile(os.path.join(folder, STATE)):
        return False
    return os.path.isfile(os.path.join(folder, INFO)) or '"_data_files"' in record_text(os.path.join(folder, STATE))


def is_database(path: str) -> bool:
    """Whether a file is a database of DuckDB or SQLite; none where it is no file: a pipe would be waited for."""
    if not os.path.isfile(path):
        return False
    try:
        with open(path, "rb") as file:
            start = file.read(16)
    except OSError:
        return False
    return start == SQLITE or start[8:12] == DUCKDB


def is_decision(line: Mapping[str, Any]) -> bool:
    """Whether an object is a line of Vowpal Wabbit's logs."""
    keys = line.keys()
    return ("c" in line and bool(keys & {COST, "EventId", "_outcomes"})) or keys >= {"EventId", "RewardValue"}


def is_batch(line: Mapping[str, Any]) -> bool:
    """Whether an object is a batch of RLlib."""
    return line.get("type") in BATCHES


def is_from_lerobot(columns: Container[str]) -> bool:
    """Whether a table has the columns of LeRobot."""
    return all(name in columns for name in LEROBOT)


def is_open_bandit(columns: Iterable[str]) -> bool:
    """Whether a table is the log of Open Bandit, and has no names of its own for what a log has."""
    names = set(columns)
    own = by_meaning(names).keys() & {"action", "reward", "observation", "episode_id", "terminated"}
    return names >= OPEN_BANDIT and any(each.startswith(USER) for each in names) and not own


def format_of_object(given: Any) -> str | None:
    """The format that takes the steps out of an object of another library; None for anything else."""
    known = {(kind.__module__.partition(".")[0], kind.__name__) for kind in type(given).__mro__}
    return next((name for kind, name in OBJECTS.items() if kind in known), None)
