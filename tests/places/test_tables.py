"""Delta and Iceberg tables that their own libraries wrote: appends, deletes, a merge, a column more."""

import base64
import json
import pickle
import subprocess
import sys
import uuid

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import mixope
from cli.running import run
from mixope.base.errors import DataError
from places.conftest import log

COUNT = "import pickle, sys; print(sum(f.table(['reward']).num_rows for f in pickle.load(sys.stdin.buffer)))"


def ordered(logs, *more):
    keys = [(name, "ascending") for name in ("policy_id", "episode_id", "step")]
    return logs.table(["policy_id", "episode_id", "step", "observation", "action", "reward", *more]).sort_by(keys)


def same(logs, expected):
    assert ordered(logs).equals(ordered(mixope.read(expected)))


def shifted(table, by):
    place = table.column_names.index("episode_id")
    return table.set_column(place, "episode_id", pc.add(table.column("episode_id"), by))


def elsewhere(logs):
    """Rows that another process reads of the fragments."""
    told = pickle.dumps(logs.fragments(50))
    done = subprocess.run([sys.executable, "-c", COUNT], input=told, capture_output=True, check=True)
    return int(done.stdout)


@pytest.fixture
def delta(tmp_path):
    return written(str(tmp_path / "delta"))


def written(place):
    """Five versions: two appends, a delete, a merge, and a column more."""
    lake = pytest.importorskip("deltalake", reason="pip install 'mixope[delta]'")
    lake.write_deltalake(place, log(0), partition_by=["policy_id"])
    lake.write_deltalake(place, shifted(log(1), 1000), mode="append")
    table = lake.DeltaTable(place)
    table.delete("episode_id < 3")
    better = log(0).filter(pc.equal(log(0).column("episode_id"), 5))
    better = better.set_column(better.column_names.index("reward"), "reward", pa.array([9.0] * better.num_rows))
    keys = "new.episode_id = old.episode_id AND new.step = old.step AND new.policy_id = old.policy_id"
    merge = table.merge(better, keys, source_alias="new", target_alias="old")
    merge.when_matched_update_all().execute()
    wide = shifted(log(2), 2000).append_column("weather", pa.array(["wet"] * log(2).num_rows))
    lake.write_deltalake(place, wide, mode="append", schema_mode="merge")
    return place


def expected_of_delta():
    """The same, done by hand."""
    first = log(0).filter(pc.greater_equal(log(0).column("episode_id"), 3))
    better = pc.if_else(pc.equal(first.column("episode_id"), 5), 9.0, first.column("reward"))
    first = first.set_column(first.column_names.index("reward"), "reward", better)
    return pa.concat_tables([first, shifted(log(1), 1000), shifted(log(2), 2000)])


@pytest.mark.parametrize("way", ["{}", "delta:{}", "delta:{}@4"])
def test_a_delta_table_has_its_live_rows_and_its_version(delta, way):
    logs = mixope.read(way.format(delta))
    same(logs, expected_of_delta())
    assert {record["version"] for record in logs.inputs()} == {4}


def test_an_earlier_version_of_a_delta_table_is_read(delta):
    logs = mixope.read(f"delta:{delta}@1")
    same(logs, pa.concat_tables([log(0), shifted(log(1), 1000)]))
    assert {record["version"] for record in logs.inputs()} == {1}
    with pytest.raises(DataError, match=r"no such version(.|\n)*versions 0 to 4(.|\n)*got: *9"):
        mixope.read(f"delta:{delta}@9")


def test_a_checkpoint_stands_for_the_commits_before_it(delta):
    import deltalake

    table = deltalake.DeltaTable(delta)
    table.create_checkpoint()
    table.vacuum(0, enforce_retention_duration=False, dry_run=False)
    for number in range(4):
        subprocess.run(["rm", f"{delta}/_delta_log/{number:020}.json"], check=True)
    logs = mixope.read(delta)
    same(logs, expected_of_delta())
    assert {record["version"] for record in logs.inputs()} == {deltalake.DeltaTable(delta).version()}


def test_a_delta_table_in_a_store_is_the_same(s3, server):
    place = "s3://lake/tables/delta"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ALLOW_HTTP", "true")
        written(place)
    for way in (place, f"delta:{place}", f"delta:{place}@4"):
        same(mixope.read(way), expected_of_delta())
    assert elsewhere(mixope.read(place)) == expected_of_delta().num_rows
    with pytest.raises(DataError, match="a part of a table"):
        mixope.read(f"{place}/policy_id=*/*.parquet")
    with pytest.raises(DataError, match="among other logs"):
        mixope.read("s3://lake/tables")


def deletion_vector(rows):
    """Positions as an inline vector: a roaring bitmap of 64 bits with one array container, in base 85."""
    container = b"".join(row.to_bytes(2, "little") for row in rows)
    header = (12346).to_bytes(4, "little") + (1).to_bytes(4, "little") + (0).to_bytes(2, "little")
    header += (len(rows) - 1).to_bytes(2, "little") + (16).to_bytes(4, "little")
    body = (
        (1681511377).to_bytes(4, "little") + (1).to_bytes(8, "little") + (0).to_bytes(4, "little") + header + container
    )
    padded = body + b"\0" * (-len(body) % 4)
    return {
        "storageType": "i",
        "pathOrInlineDv": z85(padded),
        "sizeInBytes": len(body),
        "cardinality": len(rows),
    }


def z85(content):
    """The alphabet of ZeroMQ instead of that of RFC 1924."""
    ours = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
    theirs = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
    return base64.b85encode(content).decode().translate(str.maketrans(ours, theirs))


def test_rows_under_a_deletion_vector_are_gone(tmp_path):
    lake = pytest.importorskip("deltalake", reason="pip install 'mixope[delta]'")
    place = str(tmp_path / "vectors")
    lake.write_deltalake(place, log(0), configuration={"delta.enableDeletionVectors": "true"})
    first = json.loads((tmp_path / "vectors" / "_delta_log" / f"{0:020}.json").read_text().splitlines()[-1])
    added = first.get("add") or next(
        json.loads(line)["add"]
        for line in (tmp_path / "vectors" / "_delta_log" / f"{0:020}.json").read_text().splitlines()
        if "add" in json.loads(line)
    )
    gone = {"path": added["path"], "deletionTimestamp": 0, "dataChange": True}
    again = {**added, "deletionVector": deletion_vector([0, 7, 11])}
    lines = [json.dumps({"remove": gone}), json.dumps({"add": again})]
    (tmp_path / "vectors" / "_delta_log" / f"{1:020}.json").write_text("\n".join(lines))
    kept = pa.array([row not in (0, 7, 11) for row in range(log(0).num_rows)])
    logs = mixope.read(place)
    same(logs, log(0).filter(kept))
    assert logs.inputs()[0]["version"] == 1
    assert elsewhere(logs) == log(0).num_rows - 3


def test_a_place_without_a_delta_table_is_said(tmp_path):
    result = run("inspect", f"delta:{tmp_path}")
    assert result.exit_code == 3
    assert "There is no Delta table" in result.stderr


@pytest.fixture
def catalog(tmp_path):
    pytest.importorskip("pyiceberg", reason="pip install 'mixope[iceberg]'")
    pytest.importorskip("sqlalchemy", reason="the test keeps its catalog in SQLite: pip install sqlalchemy")
    from pyiceberg.catalog.sql import SqlCatalog

    (tmp_path / "warehouse").mkdir()
    where = {"uri": f"sqlite:///{tmp_path}/catalog.db", "warehouse": f"file://{tmp_path}/warehouse"}
    with SqlCatalog("lake", **where) as made:
        made.create_namespace("web")
        yield made


def folder_of(table):
    return table.location().removeprefix("file://")


def test_an_iceberg_table_of_appends_is_read_from_its_own_files(catalog):
    table = catalog.create_table("web.visits", schema=log(0).schema)
    table.append(log(0))
    table.append(shifted(log(1), 1000))
    logs = mixope.read(folder_of(table))
    same(logs, pa.concat_tables([log(0), shifted(log(1), 1000)]))
    assert all(record["path"].endswith(".parquet") for record in logs.inputs())
    assert {record["snapshot"] for record in logs.inputs()} == {table.current_snapshot().snapshot_id}
    assert elsewhere(logs) == 2 * log(0).num_rows


def test_deleted_and_renamed_parts_of_an_iceberg_table_are_honoured(catalog):
    table = catalog.create_table("web.changed", schema=log(0).schema)
    table.append(log(0))
    before = table.current_snapshot().snapshot_id
    table.delete("episode_id < 3")
    with table.update_schema() as update:
        update.rename_column("reward", "money")
    folder = folder_of(table)
    logs = mixope.read(f"iceberg:{folder}", columns={"reward": "money"})
    kept = log(0).filter(pc.greater_equal(log(0).column("episode_id"), 3))
    same(logs, kept)
    assert logs.inputs()[0]["snapshot"] == table.current_snapshot().snapshot_id
    same(mixope.read(f"iceberg:{folder}@{before}"), log(0))
    named = table.metadata_location.removeprefix("file://")
    same(mixope.read(f"iceberg:{named}", columns={"reward": "money"}), kept)
    with pytest.raises(DataError, match="no such snapshot"):
        mixope.read(f"iceberg:{folder}@1")


def test_an_iceberg_table_in_a_store_is_the_same(s3, server, tmp_path):
    pytest.importorskip("pyiceberg", reason="pip install 'mixope[iceberg]'")
    pytest.importorskip("sqlalchemy", reason="the test keeps its catalog in SQLite: pip install sqlalchemy")
    from pyiceberg.catalog.sql import SqlCatalog

    where = {"uri": f"sqlite:///{tmp_path}/catalog.db", "warehouse": "s3://lake/warehouse"}
    with SqlCatalog("lake", **where, **{"s3.endpoint": server, "s3.region": "us-east-1"}) as made:
        made.create_namespace("web")
        table = made.create_table("web.visits", schema=log(0).schema)
        table.append(log(0))
        for way in (table.location(), f"iceberg:{table.location()}"):
            same(mixope.read(way), log(0))
        table.delete("episode_id < 3")
        same(
            mixope.read(f"iceberg:{table.location()}"),
            log(0).filter(pc.greater_equal(log(0).column("episode_id"), 3)),
        )


def test_an_iceberg_table_is_found_in_its_catalog(catalog, tmp_path, monkeypatch):
    from pyiceberg.utils.config import Config

    catalog.create_table("web.visits", schema=log(0).schema).append(log(0))
    monkeypatch.setenv("PYICEBERG_CATALOG__LAKE__URI", f"sqlite:///{tmp_path}/catalog.db")
    monkeypatch.setattr("pyiceberg.catalog._ENV_CONFIG", Config())  # otherwise read once, at import
    same(mixope.read("iceberg:lake.web.visits"), log(0))
    result = run("inspect", "iceberg:lake.web.nothing")
    assert result.exit_code == 3
    assert "The Iceberg table cannot be read" in result.stderr


def test_a_broken_iceberg_table_is_said_with_status_3(catalog, tmp_path):
    table = catalog.create_table("web.visits", schema=log(0).schema)
    table.append(log(0))
    folder = folder_of(table)
    for path in (tmp_path / "warehouse").rglob("*.avro"):
        path.unlink()
    result = run("inspect", folder)
    assert result.exit_code == 3
    assert "The Iceberg table cannot be read" in result.stderr
    twin = f"{folder}/metadata/00001-{uuid.uuid4()}.metadata.json"
    with open(twin, "w") as file:
        file.write("{}")
    result = run("inspect", folder)
    assert "Two metadata files claim" in result.stderr
    assert run("inspect", f"iceberg:{tmp_path}").exit_code == 3
