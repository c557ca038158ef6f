"""Data sets and logs of other tools with a file that was cut or changed: read, or refused in words."""

import json
import random
import shutil
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import mixope
from logs import other_tools
from mixope.base.errors import MixopeError

SETS = Path(__file__).parents[1] / "data" / "minari"
CHANGES = 40


def changed(content, random_):
    """Cut short, or with a few other bytes, or with a number or word for another one."""
    way = random_.randrange(3)
    if way == 0:
        return content[: random_.randrange(len(content))]
    if way == 1:
        data = bytearray(content)
        for _ in range(random_.randrange(1, 6)):
            data[random_.randrange(len(data))] = random_.randrange(256)
        return bytes(data)
    place = random_.randrange(len(content))
    return (
        content[:place]
        + random_.choice([b"null", b"-1", b"1e999", b"[" * 5000, b"\\ud800", b""])
        + content[place + 1 :]
    )


def read(given):
    return mixope.read(str(given), done="terminated" if (given / "meta").exists() else None)


def judge(folder):
    """Rows or an error in words; every other error is a failure."""
    with suppress(MixopeError):
        assert read(folder).table().num_rows > 0


def delta(folder):
    folder.mkdir()
    rows = {"episode_id": [0, 0], "step": [0, 1], "observation": [0, 1], "action": [0, 1], "reward": [1.0, 2.0]}
    pq.write_table(pa.table(rows | {"terminated": [False, True]}), folder / "a.parquet")
    fields = [{"name": name, "type": "long"} for name in rows]
    actions = [
        {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}},
        {"metaData": {"schemaString": json.dumps({"type": "struct", "fields": fields}), "configuration": {}}},
        {"add": {"path": "a.parquet", "partitionValues": {"policy_id": "x"}}},
    ]
    (folder / "_delta_log").mkdir()
    (folder / "_delta_log" / f"{0:020}.json").write_text("\n".join(map(json.dumps, actions)))
    return folder


def minari(storage):
    return lambda folder: Path(shutil.copytree(SETS / f"{storage}-v0", folder))


def one_file(name, write):
    """A folder with a single file, which is what is read."""

    def made(folder):
        folder.mkdir()
        return Path(write(folder / name))

    return made


MADE = {
    "parquet": minari("parquet"),
    "arrow": minari("arrow"),
    "hdf5": minari("hdf5"),
    "delta": delta,
    "d4rl": one_file("log.hdf5", other_tools.d4rl),
    "d3rlpy": one_file("log.h5", other_tools.buffer),
    "mdp": one_file("log.h5", other_tools.mdp),
    "dsjson": one_file("log.dsjson", other_tools.dsjson),
    "rllib": one_file("log.json", other_tools.batches),
    "rllib-steps": one_file("log.parquet", other_tools.steps),
    "lerobot": other_tools.lerobot,
    "hugging-face": other_tools.hugging,
    "open-bandit": one_file("log.csv", other_tools.open_bandit),
}
"""Kind of data set → what makes one in a folder and gives the path to read."""
HDF5 = ("hdf5", "d4rl", "d3rlpy", "mdp")


@pytest.mark.filterwarnings("ignore::mixope.MixopeWarning")
@pytest.mark.parametrize("name", MADE)
def test_a_changed_file_is_read_or_refused_in_words(name, tmp_path):
    if name in HDF5:
        pytest.importorskip("h5py")
    given = MADE[name](tmp_path / "set")
    assert read(given).table().num_rows > 0
    files = sorted(path for path in (tmp_path / "set").rglob("*") if path.is_file())
    random_ = random.Random(name)
    for _ in range(CHANGES):
        path = random_.choice(files)
        content = path.read_bytes()
        path.write_bytes(changed(content, random_))
        judge(given)
        path.write_bytes(content)
