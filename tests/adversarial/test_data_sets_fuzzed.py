"""Minari data sets and Delta tables with a file that was cut or changed: read, or refused in words."""

import json
import random
import shutil
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import mixope
from mixope.errors import MixopeError

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


def judge(folder):
    """Rows or an error in words; every other error is a failure."""
    with suppress(MixopeError):
        assert mixope.read(str(folder)).table().num_rows > 0


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


@pytest.mark.filterwarnings("ignore::mixope.MixopeWarning")
@pytest.mark.parametrize("name", ["parquet", "arrow", "hdf5", "delta"])
def test_a_changed_file_is_read_or_refused_in_words(name, tmp_path):
    if name == "hdf5":
        pytest.importorskip("h5py")
    folder = (
        delta(tmp_path / "set") if name == "delta" else Path(shutil.copytree(SETS / f"{name}-v0", tmp_path / "set"))
    )
    judge(folder)
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    random_ = random.Random(name)
    for _ in range(CHANGES):
        path = random_.choice(files)
        content = path.read_bytes()
        path.write_bytes(changed(content, random_))
        judge(folder)
        path.write_bytes(content)
