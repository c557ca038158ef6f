"""Delta, Iceberg and Hudi tables: rows that were deleted or replaced are still in their files, and must not be read."""

import json
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import mixope
from cli.running import run
from mixope.base.errors import DataError

COLUMNS = ("policy_id", "episode_id", "step", "observation", "action", "reward", "next_observation")
TYPES = ("string", "long", "long", "long", "long", "double", "long")
PROTOCOL = {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}


def rows(logger, first=0, drop=()):
    data = {
        "policy_id": [logger] * 4,
        "episode_id": [first, first, first + 1, first + 1],
        "step": [0, 1, 0, 1],
        "observation": [0, 1, 0, 1],
        "action": [0, 1, 1, 0],
        "reward": [float(first), 1.0, 2.0, 3.0],
        "next_observation": [1, 0, 1, 0],
    }
    return pa.table({name: values for name, values in data.items() if name not in drop})


def metadata(types=TYPES, partitions=(), **configuration):
    fields = [{"name": n, "type": t, "nullable": True, "metadata": {}} for n, t in zip(COLUMNS, types, strict=True)]
    schema = json.dumps({"type": "struct", "fields": fields})
    said = {"id": "x", "schemaString": schema, "partitionColumns": list(partitions), "configuration": configuration}
    return {"metaData": said}


def add(path, **more):
    return {"add": {"path": path, "partitionValues": {}, "size": 1, "modificationTime": 0, "dataChange": True} | more}


def remove(path, **more):
    return {"remove": {"path": path, "deletionTimestamp": 0, "dataChange": True} | more}


def commit(folder, version, *actions):
    log = folder / "_delta_log"
    log.mkdir(exist_ok=True, parents=True)
    (log / f"{version:020}.json").write_text("\n".join(json.dumps(action) for action in actions))


@pytest.fixture
def table(tmp_path):
    """Three files, two of them deleted later."""
    folder = tmp_path / "delta"
    folder.mkdir()
    for number, logger in enumerate("abc"):
        pq.write_table(rows(logger, 10 * number), folder / f"{logger}.parquet")
    commit(folder, 0, {"commitInfo": {"operation": "WRITE"}}, PROTOCOL, metadata(), add("a.parquet"))
    commit(folder, 1, add("b.parquet"))
    commit(folder, 2, add("c.parquet"))
    commit(folder, 3, remove("a.parquet"), remove("c.parquet"))
    return folder


def loggers(logs):
    return logs.table(["policy_id"]).column("policy_id").to_pylist()


def test_only_live_files_of_a_delta_table_are_read(table):
    logs = mixope.read(str(table))
    assert loggers(logs) == ["b"] * 4
    assert logs.total_rows() == 4


def test_a_checkpoint_stands_for_the_commits_before_it(table):
    entries = [PROTOCOL, metadata(), add("b.parquet"), remove("a.parquet"), remove("c.parquet")]
    kinds = {
        "add": pa.struct([("path", pa.string()), ("partitionValues", pa.map_(pa.string(), pa.string()))]),
        "remove": pa.struct([("path", pa.string())]),
        "metaData": pa.struct(
            [("schemaString", pa.string()), ("configuration", pa.map_(pa.string(), pa.string()))],
        ),
        "protocol": pa.struct([("minReaderVersion", pa.int32())]),
    }
    columns = {name: pa.array([entry.get(name) for entry in entries], kind) for name, kind in kinds.items()}
    log = table / "_delta_log"
    pq.write_table(pa.table(columns), log / f"{3:020}.checkpoint.parquet")
    commit(table, 4, add("c.parquet"))
    for version in range(3):
        (log / f"{version:020}.json").unlink()
    assert loggers(mixope.read(str(table))) == ["b"] * 4 + ["c"] * 4


def test_columns_that_the_log_keeps_have_the_types_of_the_table(tmp_path):
    folder = tmp_path / "delta"
    for logger in ("007", "a b"):
        (folder / f"policy_id={logger}").mkdir(parents=True)
        first = len(logger) * 10 + (logger == "007")
        pq.write_table(rows(logger, first, ["policy_id"]), folder / f"policy_id={logger}" / "x.parquet")
    adds = [
        add("policy_id=007/x.parquet", partitionValues={"policy_id": "007"}),
        add("policy_id=a%20b/x.parquet", partitionValues={"policy_id": "a b"}),
    ]
    commit(folder, 0, PROTOCOL, metadata(partitions=["policy_id"]), *adds)
    assert loggers(mixope.read(str(folder))) == ["007"] * 4 + ["a b"] * 4
    whole = metadata(("string", "long", "long", "long", "integer", "double", "long"), ["action"])
    shutil.rmtree(folder)
    folder.mkdir()
    pq.write_table(rows("a", 0, ["action"]), folder / "x.parquet")
    commit(folder, 0, PROTOCOL, whole, add("x.parquet", partitionValues={"action": "1"}))
    assert mixope.read(str(folder)).table(["action"]).column("action").to_pylist() == [1] * 4


VECTOR = {"storageType": "u", "pathOrInlineDv": "ab", "offset": 1}
REFUSED = {
    "deletion vectors": ([remove("b.parquet"), add("b.parquet", deletionVector=VECTOR)], "deletion vectors"),
    "renamed columns": ([metadata(**{"delta.columnMapping.mode": "name"})], "other names"),
    "a later protocol": ([{"protocol": {"minReaderVersion": 4}}], "protocol 4"),
    "a feature": ([{"protocol": {"minReaderVersion": 3, "readerFeatures": ["typeWidening"]}}], "typeWidening"),
    "files elsewhere": ([add("s3://bucket/x.parquet")], "lie elsewhere"),
    "files above": ([add("../x.parquet")], "lie elsewhere"),
    "a missing file": ([add("gone.parquet")], "is missing"),
    "no path": ([{"add": {}}], "not understood"),
    "no live file": ([remove("b.parquet")], "no rows"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_delta_table_that_cannot_be_read_exactly_is_refused(case, table):
    actions, words = REFUSED[case]
    commit(table, 4, *actions)
    refused(table, words)


def test_a_table_that_could_have_deletion_vectors_and_has_none_left_is_read(table):
    commit(table, 4, {"protocol": {"minReaderVersion": 3, "readerFeatures": ["deletionVectors"]}})
    commit(table, 5, remove("b.parquet"), add("b.parquet", deletionVector=VECTOR))
    commit(table, 6, remove("b.parquet", deletionVector=VECTOR), add("c.parquet"))
    assert loggers(mixope.read(str(table))) == ["c"] * 4


def test_a_damaged_delta_log_is_refused(table):
    (table / "_delta_log" / f"{1:020}.json").write_text('{"add": {"path"')
    refused(table, "line 1 is not JSON")
    (table / "_delta_log" / f"{1:020}.json").unlink()
    refused(table, "no commit 1")
    (table / "_delta_log" / f"{0:020}.json").unlink()
    refused(table, "neither the first commit nor a whole checkpoint")


def refused(path, words):
    result = run("inspect", path)
    assert result.exit_code == 3, result.output
    assert words in " ".join(result.stderr.split())


@pytest.mark.parametrize("inner", ["a.parquet", "*.parquet"])
def test_a_part_of_a_delta_table_is_no_log(inner, table):
    with pytest.raises(DataError, match="a part of a Delta table"):
        mixope.read(str(table / inner))


def test_a_dataset_of_all_files_of_a_delta_table_is_no_log(table):
    plain = ds.dataset(table)
    for given in (plain, ds.dataset([plain])):
        with pytest.raises(DataError, match="a part of a Delta table"):
            mixope.read(given)
    assert mixope.read(ds.dataset(table / "b.parquet").to_table()).total_rows() == 4


def test_a_link_into_a_delta_table_is_no_way_around_its_log(table, tmp_path):
    (tmp_path / "log.parquet").symlink_to(table / "a.parquet")
    with pytest.raises(DataError, match="a part of a Delta table"):
        mixope.read(str(tmp_path / "log.parquet"))


def test_a_delta_table_among_other_logs_is_refused(table):
    pq.write_table(rows("z"), table.parent / "z.parquet")
    with pytest.raises(DataError, match="a Delta table among other logs"):
        mixope.read(str(table.parent))
    with pytest.raises(DataError, match="Delta table"):
        mixope.read(str(table.parent / "*"))


def iceberg(folder):
    (folder / "metadata").mkdir(parents=True)
    (folder / "metadata" / "v1.metadata.json").write_text('{"format-version": 2}')


def hudi(folder):
    (folder / ".hoodie").mkdir(parents=True)


@pytest.mark.parametrize("inner", ["", "data", "data/x.parquet", "data/*.parquet", ".."])
@pytest.mark.parametrize(("make", "words"), [(iceberg, "Iceberg table"), (hudi, "Hudi table")])
def test_iceberg_and_hudi_tables_are_refused_with_a_way_to_their_rows(make, words, inner, tmp_path):
    folder = tmp_path / "warehouse" / "events"
    make(folder)
    (folder / "data").mkdir()
    pq.write_table(rows("a"), folder / "data" / "x.parquet")
    refused(folder / inner if inner else folder, words)


def test_a_folder_named_metadata_makes_no_table(tmp_path):
    (tmp_path / "metadata").mkdir()
    (tmp_path / "metadata" / "notes.json").write_text("{}")
    pq.write_table(rows("a"), Path(tmp_path / "x.parquet"))
    with pytest.warns(mixope.MixopeWarning, match="1 file is not read"):
        assert mixope.read(str(tmp_path)).total_rows() == 4
