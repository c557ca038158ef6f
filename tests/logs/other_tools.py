"""Small logs in the layouts of other tools, written as these write them."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

DECISIONS = [("pro", "UK", 1, 0.8, -1.0), ("free", "UK", 0, 0.5, 0.0), ("pro", "FR", 0, 0.2, -2.0)]
"""Tier, country, the position of the action, its probability, its cost."""


def decision(number, tier, country, index, chance, cost, **changes):
    """A line of Vowpal Wabbit."""
    shared = {"User": [{"tier": tier}, {"country": country}], "hour": 9 + number, "_synthetic": False}
    offered = [{"_tag": "news", "i": {"id": "news"}}, {"_tag": "sports", "i": {"id": "sports"}}]
    return {
        "_label_cost": cost,
        "_label_probability": chance,
        "_label_Action": index + 1,
        "_labelIndex": index,
        "o": [{"v": -cost, "EventId": f"event-{number}"}],
        "Timestamp": f"2026-01-0{number + 1}T20:40:28.7880000Z",
        "Version": "1",
        "EventId": f"event-{number}",
        "a": [index + 1, 2 - index],
        "c": {**shared, "_multi": offered},
        "p": [chance, 1 - chance],
        "VWState": {"m": f"model-{number % 2}"},
        **changes,
    }


def dsjson(path, *more, without=()):
    """A log of Vowpal Wabbit; ``more`` lines after the decisions."""
    lines = [decision(number, *row) for number, row in enumerate(DECISIONS)] + list(more)
    kept = [{key: value for key, value in line.items() if key not in without} for line in lines]
    Path(path).write_text("\n".join(map(json.dumps, kept)) + "\n")
    return path


BATCHES = [
    {
        "type": "SampleBatch",
        "t": [0, 1],
        "eps_id": [7, 7],
        "obs": [[0.5, 1.0], [0.25, 2.0]],
        "new_obs": [[0.25, 2.0], [0.0, 3.0]],
        "actions": [0, 1],
        "rewards": [1.0, 2.0],
        "terminateds": [False, False],
        "truncateds": [False, False],
        "action_prob": [0.5, 0.25],
        "infos": [{}, {"x": 1}],
        "action_dist_inputs": [[0.0, 0.1], [0.2, 0.3]],
    },
    {
        "type": "SampleBatch",
        "t": [2, 0],
        "eps_id": [7, 8],
        "obs": [[0.0, 3.0], [0.5, 0.5]],
        "new_obs": [[0.1, 4.0], [0.5, 0.75]],
        "actions": [1, 0],
        "rewards": [3.0, 4.0],
        "terminateds": [True, False],
        "truncateds": [False, True],
        "action_prob": [0.75, 1.0],
        "infos": [{}, {}],
        "action_dist_inputs": [[0.0, 0.1], [0.2, 0.3]],
    },
]


def batches(path, lines=None):
    """What the JSON writer of RLlib writes."""
    Path(path).write_text("".join(json.dumps(line) + "\n" for line in lines or BATCHES))
    return path


def steps(path, **changes):
    """What RLlib writes as Parquet, with one row per step."""
    columns = {name: [] for name in ("eps_id", "obs", "actions", "rewards", "new_obs", "terminateds", "truncateds")}
    for batch in BATCHES:
        for name, values in columns.items():
            values.extend(batch[name])
    content = columns | {"eps_id": [f"{each:08x}" for each in columns["eps_id"]]}
    more = {"agent_id": pa.nulls(4), "module_id": pa.nulls(4), "action_logp": np.log([0.5, 0.25, 0.75, 1.0])}
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(content | more | changes), path)
    return path


def open_bandit(path):
    """A file of the Open Bandit Dataset."""
    affinities = [f"user-item_affinity_{k}" for k in range(3)]
    header = ["", "timestamp", "item_id", "position", "click", "propensity_score"]
    header += [*(f"user_feature_{k}" for k in range(4)), *affinities]
    user, items = ["81ce", "03a5", "a1b2"], [0.0, 1.0, 0.5]
    rows = [
        [n, f"2019-11-24 00:00:0{n}+00:00", n % 3, 1 + n % 2, int(n == 2), 0.25, *user, f"c{n % 2}", *items]
        for n in range(6)
    ]
    Path(path).write_text("\n".join(",".join(map(str, row)) for row in [header, *rows]) + "\n")
    return path


OBSERVATIONS = np.arange(12, dtype=np.float32).reshape(6, 2)
ACTIONS = np.linspace(-1, 1, 6, dtype=np.float32).reshape(6, 1)
REWARDS = np.array([1, 2, 3, 4, 5, 6], np.float32)
ENDED = np.array([0, 0, 1, 0, 0, 0], bool)
CUT = np.array([0, 0, 0, 0, 0, 1], bool)
D4RL = {
    "observations": OBSERVATIONS,
    "actions": ACTIONS,
    "rewards": REWARDS,
    "terminals": ENDED,
    "timeouts": CUT,
    "infos/action_log_probs": np.log(np.linspace(0.1, 0.6, 6)),
    "infos/qpos": np.zeros((6, 3)),
    "metadata/algorithm": np.bytes_(b"SAC"),
}
MDP = {
    "observations": OBSERVATIONS,
    "actions": np.array([0, 1, 0, 1, 0, 1], np.int32),
    "rewards": REWARDS,
    "terminals": ENDED.astype(np.float32),
    "episode_terminals": (ENDED | CUT).astype(np.float32),
    "discrete_action": True,
    "version": "1.0",
}


def stored(path, content, *, without=(), **changes):
    """An hdf5 file of these arrays."""
    import h5py

    with h5py.File(path, "w") as file:
        for name, value in (content | changes).items():
            if name not in without:
                file.create_dataset(name, data=value)
    return path


def d4rl(path):
    return stored(path, D4RL)


def mdp(path):
    return stored(path, MDP)


def buffer(path, episodes=None, **changes):
    """What ReplayBuffer.dump of d3rlpy 2 writes."""
    episodes = episodes or [episode(0, 3, terminated=True), episode(3, 6, terminated=False)]
    content = {"columns": ["observations", "actions", "rewards", "terminated"], "num_episodes": len(episodes)}
    for number, each in enumerate(episodes):
        for name, value in each.items():
            parts = enumerate(value) if isinstance(value, tuple) else []
            content |= {f"{name}_{number}_{j}": part for j, part in parts} or {f"{name}_{number}": value}
    return stored(path, content | {"version": "2.1"} | changes)


def episode(low, high, *, terminated, **changes):
    rows = slice(low, high)
    return {
        "observations": OBSERVATIONS[rows],
        "actions": np.arange(low, high).reshape(-1, 1) % 2,
        "rewards": REWARDS[rows].reshape(-1, 1),
        "terminated": terminated,
        **changes,
    }


EPISODES = {
    "observation.state": [[0.0, 1.0], [0.5, 1.5], [1.0, 2.0], [3.0, 0.0], [3.5, 0.5]],
    "action": [[0.1], [0.2], [0.3], [0.4], [0.5]],
    "next.reward": [1.0, 2.0, 3.0, 4.0, 5.0],
    "next.done": [False, False, True, False, True],
    "next.success": [False, False, True, False, False],
    "timestamp": [0.0, 0.1, 0.2, 0.0, 0.1],
    "frame_index": [0, 1, 2, 0, 1],
    "episode_index": [0, 0, 0, 1, 1],
    "index": [0, 1, 2, 3, 4],
    "task_index": [0, 0, 0, 0, 0],
}
"""Two episodes of LeRobot."""


def lerobot(folder, version="v3.0", content=EPISODES):
    """A data set of LeRobot: in version 2 a file per episode, in version 3 one for all."""
    table = pa.table(content)
    data = Path(folder) / "data" / "chunk-000"
    data.mkdir(parents=True)
    if version.startswith("v2"):
        for number in (0, 1):
            mask = pa.array([each == number for each in content["episode_index"]])
            pq.write_table(table.filter(mask), data / f"episode_{number:06}.parquet")
    else:
        pq.write_table(table, data / "file-000.parquet")
        (Path(folder) / "meta" / "episodes" / "chunk-000").mkdir(parents=True)
        record = pa.table({"episode_index": [0, 1], "length": [3, 2]})
        pq.write_table(record, Path(folder) / "meta" / "episodes" / "chunk-000" / "file-000.parquet")
    features = {name: {"dtype": "float32", "shape": [1], "names": None} for name in content}
    features["observation.images.top"] = {"dtype": "video", "shape": [3, 96, 96], "names": None}
    info = {"codebase_version": version, "robot_type": "so100", "total_episodes": 2, "total_frames": table.num_rows}
    (Path(folder) / "meta").mkdir(exist_ok=True)
    (Path(folder) / "meta" / "info.json").write_text(json.dumps(info | {"features": features}))
    return Path(folder)


ROWS = {
    "episode_id": [0, 0, 1, 1],
    "step": [0, 1, 0, 1],
    "observation": [[0.5, 1.0], [0.25, 2.0], [0.0, 3.0], [0.5, 0.5]],
    "action": [0, 1, 1, 0],
    "reward": [1.0, 2.0, 3.0, 4.0],
    "terminated": [False, True, False, True],
}


def hugging(folder):
    """What ``save_to_disk`` of Hugging Face writes, in two files."""
    folder = Path(folder)
    folder.mkdir(parents=True)
    names = [f"data-0000{number}-of-00002.arrow" for number in (0, 1)]
    for number, name in enumerate(names):
        table = pa.table(ROWS).slice(2 * number, 2)
        with pa.OSFile(str(folder / name), "wb") as file, pa.ipc.new_stream(file, table.schema) as stream:
            stream.write_table(table)
    state = {"_data_files": [{"filename": name} for name in names], "_fingerprint": "ba856c71fe055e4d"}
    more = {"_format_columns": None, "_format_kwargs": {}, "_format_type": None, "_split": "train"}
    (folder / "state.json").write_text(json.dumps(state | more, indent=2))
    (folder / "dataset_info.json").write_text(json.dumps({"citation": "", "features": {}}))
    return folder
