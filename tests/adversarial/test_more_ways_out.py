"""Every way out of :mod:`ways`, tried on every reader: an error in words, or the rows that were given; nothing else.

Files that a record names, files that are something else, folders with names that a library could take for an address,
and functions that a query could call. ``docs/hardening.md`` has the counts.
"""

import json
import os
import shutil
import sqlite3
import struct
import tracemalloc
import zlib
from contextlib import closing
from pathlib import Path
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.feather as pf
import pyarrow.parquet as pq
import pytest

import mixope
from logs import other_tools
from mixope.adapters.onnx_contents import check_contents
from mixope.base.errors import DataError, MixopeError
from mixope.formats import groups
from mixope.formats.views import ROWS as ROW_FUNCTIONS
from mixope.formats.views import Views
from mixope.logs.sources import gate as gates
from mixope.logs.sources import patience
from mixope.logs.sources.gate import Gate

from .test_ways_out import ROWS, SECRET
from .ways import SECRET as BESIDE
from .ways import THINGS, names

pytestmark = [
    pytest.mark.timeout(60),
    pytest.mark.filterwarnings("ignore::mixope.MixopeWarning"),
    pytest.mark.skipif(os.name != "posix", reason="pipes, links and paths of POSIX"),
]
WAYS = tuple(names(Path("/x/folder")))


@pytest.fixture
def folder(tmp_path):
    """A folder, and beside it what nobody may see, in every form that a reader would take."""
    (tmp_path / "folder").mkdir()
    pq.write_table(pa.table(SECRET), tmp_path / BESIDE)
    return tmp_path / "folder"


def outcome(path, **said):
    """The loggers in the rows, or the error in words."""
    try:
        return set(mixope.read(str(path), **said).table(["policy_id"]).column("policy_id").to_pylist())
    except MixopeError as error:
        found = error
    assert "SECRET" not in str(found)
    assert "root:" not in str(found)
    return found


def refused(path, **said):
    found = outcome(path, **said)
    assert isinstance(found, MixopeError), found
    return found


# --- files that a record names


FORMAT = {"format": {"provider": "parquet", "options": {}}}


def delta(folder, name, features=()):
    pq.write_table(pa.table(ROWS), folder / "a.parquet")
    size = os.path.getsize(folder / "a.parquet")
    types = {str: "string", float: "double", int: "long"}
    kinds = [{"name": name, "type": types[type(values[0])], "nullable": True} for name, values in ROWS.items()]
    schema = json.dumps({"type": "struct", "fields": [{**kind, "metadata": {}} for kind in kinds]})
    version = {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": [*features],
        "writerFeatures": [*features],
    }
    said = [
        {"protocol": version if features else {"minReaderVersion": 1, "minWriterVersion": 2}},
        {"metaData": {"id": "x", **FORMAT, "schemaString": schema, "configuration": {}, "partitionColumns": []}},
        {"add": {"path": name, "partitionValues": {}, "size": size, "modificationTime": 1, "dataChange": True}},
    ]
    (folder / "_delta_log").mkdir()
    (folder / "_delta_log" / f"{0:020}.json").write_text("\n".join(map(json.dumps, said)))
    return said


def delta_vector(folder, name):
    said = delta(folder, "a.parquet", ("deletionVectors",))
    vector = {"storageType": "p", "pathOrInlineDv": name, "offset": 1, "sizeInBytes": 4, "cardinality": 1}
    said[2]["add"]["deletionVector"] = vector
    (folder / "_delta_log" / f"{0:020}.json").write_text("\n".join(map(json.dumps, said)))


def delta_numbered_vector(folder, name):
    """A deletion vector that goes by a number, in the folder of this name."""
    said = delta(folder, "a.parquet", ("deletionVectors",))
    size = len(deleted_rows(0, 1)) - 9
    vector = {"storageType": "u", "pathOrInlineDv": f"{name}{NUMBER_Z85}", "offset": 1, "sizeInBytes": size}
    said[2]["add"]["deletionVector"] = {**vector, "cardinality": 2}
    (folder / "_delta_log" / f"{0:020}.json").write_text("\n".join(map(json.dumps, said)))


NUMBER, NUMBER_Z85 = UUID("c08f661f-1e71-4904-b96f-e2647c19dfb6"), "Z(J7H9=T:OXO{FrD(p?I"
"""A number of 128 bits, and how a Delta table writes it."""


def deleted_rows(*rows):
    """A file of deletion vectors: a bitmap of rows, as its specification says it."""
    bitmap = struct.pack("<IQI IIHHI", 1681511377, 1, 0, 12346, 1, 0, len(rows) - 1, 16)
    bitmap += struct.pack(f"<{len(rows)}H", *rows)
    return b"\x01" + struct.pack(">I", len(bitmap)) + bitmap + struct.pack(">I", zlib.crc32(bitmap))


def delta_checkpoint(folder, name):
    """The commits are whole and plain but for a feature; what deltalake would follow is the checkpoint."""
    (_, metadata, add) = delta(folder, "a.parquet", ("typeWidening",))
    kept = {key: value for key, value in metadata["metaData"].items() if key in ("id", "schemaString")}
    rows = [{"metaData": kept, "add": None}, {"metaData": None, "add": {"path": name, "size": 1}}]
    assert add["add"]["path"] == "a.parquet"
    pq.write_table(pa.Table.from_pylist(rows), folder / "_delta_log" / f"{0:020}.checkpoint.parquet")


def delta_sidecar(folder, name):
    delta(folder, "a.parquet", ("v2Checkpoint",))
    text = json.dumps({"sidecar": {"path": name, "sizeInBytes": 1, "modificationTime": 1}})
    (folder / "_delta_log" / f"{0:020}.checkpoint.0000.json").write_text(text)


def hugging(folder, name):
    pf.write_feather(pa.table(ROWS), folder / "data.arrow")
    (folder / "dataset_info.json").write_text("{}")
    (folder / "state.json").write_text(json.dumps({"_data_files": [{"filename": name}]}))


APPENDED = {"operation": "append"}
KINDS = {str: "string", float: "double", int: "long"}
COLUMNS = [
    {"id": number, "name": name, "required": False, "type": KINDS[type(values[0])]}
    for number, (name, values) in enumerate(ROWS.items(), 1)
]


def iceberg(folder, name):
    """The metadata name a list of manifests."""
    pytest.importorskip("pyiceberg", reason="pip install 'mixope[iceberg]'")
    said = {
        "format-version": 2,
        "table-uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1",
        "location": f"file://{folder}",
        "last-sequence-number": 1,
        "last-updated-ms": 1,
        "last-column-id": len(COLUMNS),
        "current-schema-id": 0,
        "schemas": [{"type": "struct", "schema-id": 0, "fields": COLUMNS}],
        "default-spec-id": 0,
        "partition-specs": [{"spec-id": 0, "fields": []}],
        "last-partition-id": 999,
        "default-sort-order-id": 0,
        "sort-orders": [{"order-id": 0, "fields": []}],
        "current-snapshot-id": 7,
        "snapshots": [
            {"snapshot-id": 7, "sequence-number": 1, "timestamp-ms": 1, "manifest-list": name, "summary": APPENDED}
        ],
        "properties": {
            "schema.name-mapping.default": json.dumps(
                [{"field-id": column["id"], "names": [column["name"]]} for column in COLUMNS]
            )
        },
    }
    (folder / "metadata").mkdir()
    (folder / "metadata" / "v1.metadata.json").write_text(json.dumps(said))


def iceberg_manifest(folder, name):
    """A list of manifests names a manifest."""
    iceberg(folder, "metadata/list.avro")
    _list(folder, _manifest(folder, "data", "a.parquet"), named=name)


def iceberg_data(folder, name):
    """A manifest names a file of rows."""
    iceberg(folder, "metadata/list.avro")
    _list(folder, _manifest(folder, "data", name))


def iceberg_deletes(folder, name):
    """A manifest names a file that says which rows of another are deleted."""
    iceberg(folder, "metadata/list.avro")
    pq.write_table(pa.table(ROWS), folder / "a.parquet")
    _list(folder, _manifest(folder, "data", "a.parquet"), _manifest(folder, "deletes", name))


def _manifest(folder, kind, name):
    from pyiceberg import manifest
    from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC
    from pyiceberg.schema import Schema
    from pyiceberg.typedef import Record

    content = manifest.ManifestContent[kind.upper()]

    class Writer(manifest.ManifestWriterV2):
        def content(self):
            return content

        @property
        def _meta(self):
            return {**super()._meta, "content": kind}

    file = manifest.DataFile.from_args(
        content=manifest.DataFileContent.DATA if kind == "data" else manifest.DataFileContent.POSITION_DELETES,
        file_path=name,
        file_format=manifest.FileFormat.PARQUET,
        partition=Record(),
        record_count=4,
        file_size_in_bytes=1,
    )
    schema = Schema.model_validate({"type": "struct", "schema-id": 0, "fields": COLUMNS})
    output = _output(folder / "metadata" / f"{kind}.avro")
    with Writer(UNPARTITIONED_PARTITION_SPEC, schema, output, 7, "null") as writer:
        writer.add_entry(
            manifest.ManifestEntry.from_args(
                status=manifest.ManifestEntryStatus.ADDED,
                snapshot_id=7,
                sequence_number=1,
                file_sequence_number=1,
                data_file=file,
            )
        )
    return writer.to_manifest_file()


def _list(folder, *manifests, named=None):
    from pyiceberg.manifest import write_manifest_list

    for each in manifests:
        each[0] = named or f"{folder}/metadata/{each.content.name.lower()}.avro"
    with write_manifest_list(2, _output(folder / "metadata" / "list.avro"), 7, None, 1, "null") as writer:
        writer.add_manifests(list(manifests))


def _output(path):
    from pyiceberg.io.pyarrow import PyArrowFileIO

    return PyArrowFileIO().new_output(str(path))


RECORDS = {
    "delta": delta,
    "delta, deletion vector": delta_vector,
    "delta, numbered vector": delta_numbered_vector,
    "delta, checkpoint": delta_checkpoint,
    "delta, sidecar": delta_sidecar,
    "hugging face": hugging,
    "iceberg": iceberg,
    "iceberg, manifest": iceberg_manifest,
    "iceberg, data": iceberg_data,
    "iceberg, deletes": iceberg_deletes,
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", RECORDS)
def test_a_record_names_nothing_outside_of_its_folder(kind, way, folder):
    RECORDS[kind](folder, names(folder)[way])
    found = outcome(folder)
    assert isinstance(found, MixopeError) or (kind.startswith("delta, ") and found == {"a"})


@pytest.mark.parametrize("kind", ["delta", "iceberg, data"])
def test_the_secret_is_there_to_be_read(kind, folder):
    """The ways above are refused for where they lead, not for what they are called."""
    shutil.copy(folder.parent / BESIDE, folder / "b.parquet")
    RECORDS[kind](folder, "b.parquet")
    assert outcome(folder) == {"SECRET"}


@pytest.mark.parametrize("way", ["one up", "absolute", "file, three slashes", "file, percent signs"])
def test_rows_that_another_file_deletes(way, folder):
    """That file is followed in the folder of the table, and not outside of it."""
    deletes = pa.table({"file_path": ["a.parquet"] * 2, "pos": [0, 1]})
    pq.write_table(deletes, folder.parent / BESIDE)
    pq.write_table(deletes, folder / "deletes.parquet")
    iceberg_deletes(folder, "deletes.parquet")
    assert mixope.read(str(folder)).table(["reward"]).column("reward").to_pylist() == [2.0, 3.0]
    shutil.rmtree(folder / "metadata")
    iceberg_deletes(folder, names(folder)[way])
    assert "outside" in str(refused(folder))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", ["lerobot", "minari"])
def test_what_a_data_set_says_of_its_files_is_not_followed(kind, way, folder):
    """Their files lie where they always lie: what a record says of that changes nothing."""
    if kind == "minari":
        pytest.importorskip("h5py", reason="pip install 'mixope[minari]'")
    MADE[kind](folder)
    top = folder / {"lerobot": "moved", "minari": "data"}[kind]
    record = top / {"lerobot": "meta/info.json", "minari": "metadata.json"}[kind]
    said = {"done": "terminated"} if kind == "lerobot" else {}
    before = mixope.read(str(top), **said).table(["reward"])
    name = names(folder)[way]
    paths = dict.fromkeys(("data_path", "video_path", "dataset_id", "path", "file", "code_permalink", "root"), name)
    record.write_text(json.dumps(json.loads(record.read_text()) | paths))
    assert mixope.read(str(top), **said).table(["reward"]).equals(before)


@pytest.mark.parametrize("way", WAYS)
def test_a_footer_of_parquet_names_no_other_file(way, folder):
    """Every chunk of a column may be said to lie in another file."""
    footer = pq.read_metadata(folder.parent / BESIDE)
    footer.set_file_path(names(folder)[way])
    pq.write_metadata(footer.schema.to_arrow_schema(), folder / "a.parquet", metadata_collector=[footer])
    named = (folder / "a.parquet").read_bytes()
    pq.write_table(pa.table({**ROWS, "policy_id": ["INSIDE"] * 4}), folder / "a.parquet")
    pages = (folder / "a.parquet").read_bytes()[:-8]
    (folder / "a.parquet").write_bytes(pages + named[4:])
    found = outcome(folder)
    assert isinstance(found, MixopeError) or found == {"INSIDE"}


VECTORS = {
    "one up": "..",
    "absolute": "{beside}",
    "file, three slashes": "file://{beside}",
    "a folder that is a link": "linked",
    "another machine": "http://127.0.0.1:9/x",
}


@pytest.mark.parametrize("way", VECTORS)
def test_a_deletion_vector_lies_in_the_folder_of_its_table(way, folder):
    """The number says which file it is, and what stands before the number where that lies."""
    pytest.importorskip("deltalake", reason="pip install 'mixope[delta]'")
    name = f"deletion_vector_{NUMBER}.bin"
    (folder.parent / name).write_bytes(deleted_rows(0, 1))
    (folder / "linked").symlink_to(folder.parent, target_is_directory=True)
    delta_numbered_vector(folder, VECTORS[way].format(beside=folder.parent))
    assert "out" in refused(folder).problem


def test_a_deletion_vector_that_is_a_link_or_a_pipe_is_not_opened(folder):
    pytest.importorskip("deltalake", reason="pip install 'mixope[delta]'")
    name = f"deletion_vector_{NUMBER}.bin"
    (folder.parent / name).write_bytes(deleted_rows(0, 1))
    delta_numbered_vector(folder, "")
    (folder / name).symlink_to(folder.parent / name)
    assert "outside" in refused(folder).problem
    (folder / name).unlink()
    os.mkfifo(folder / name)
    assert "pipe" in refused(folder).problem


@pytest.mark.parametrize("below", ["", "aB"])
def test_a_deletion_vector_of_the_table_itself_is_followed(below, folder):
    pytest.importorskip("deltalake", reason="pip install 'mixope[delta]'")
    delta_numbered_vector(folder, below)
    (folder / below).mkdir(exist_ok=True)
    (folder / below / f"deletion_vector_{NUMBER}.bin").write_bytes(deleted_rows(0, 1))
    assert mixope.read(str(folder)).table(["reward"]).column("reward").to_pylist() == [2.0, 3.0]


HDF5 = {
    "external link": lambda h5py, file, name: file.__setitem__("rewards", h5py.ExternalLink(name, "rewards")),
    "external storage": lambda h5py, file, name: file.create_dataset("rewards", (4,), "f8", external=[(name, 0, 32)]),
    "virtual": lambda h5py, file, name: file.create_virtual_dataset("rewards", _layout(h5py, name)),
}


def _layout(h5py, name):
    layout = h5py.VirtualLayout((4,), "f8")
    layout[:] = h5py.VirtualSource(name, "rewards", (4,))
    return layout


@pytest.mark.parametrize("way", [way for way in WAYS if "null" not in way and way != "nothing"])
@pytest.mark.parametrize("kind", HDF5)
def test_an_hdf5_file_names_no_other(kind, way, folder):
    h5py = pytest.importorskip("h5py", reason="pip install 'mixope[minari]'")
    with h5py.File(folder / "log.h5", "w") as file:
        file["observations"], file["actions"] = np.zeros(4), np.zeros(4)
        file["terminals"] = file["timeouts"] = np.zeros(4, bool)
        try:
            HDF5[kind](h5py, file, names(folder)[way])
        except RuntimeError as error:  # names of virtual sets are patterns, in which a % has a meaning
            pytest.skip(str(error))
    assert refused(folder / "log.h5").column == "rewards"


def message(number, content):
    """A field of bytes, as Protocol Buffers write it."""
    size, out = len(content), bytearray()
    while size > 127:
        out.append(size & 127 | 128)
        size >>= 7
    return bytes([number << 3 | 2, *out, size]) + content


def tensor(location):
    entry = message(1, b"location") + message(2, location.encode())
    return message(8, b"W") + message(13, entry)


def attribute(number, content):
    return message(1, message(5, message(number, content)))  # in a node of a graph


PLACES = {
    "initialiser": lambda t: message(7, message(5, t)),
    "sparse": lambda t: message(7, message(15, message(1, t))),
    "constant": lambda t: message(7, attribute(5, t)),
    "list of constants": lambda t: message(7, attribute(10, t)),
    "branch": lambda t: message(7, attribute(6, message(5, t))),
    "branch of a branch": lambda t: message(7, attribute(6, attribute(6, message(5, t)))),
    "function": lambda t: b"\xca\x01" + message(0, message(7, message(5, message(5, t))))[1:],
}


@pytest.mark.parametrize("way", WAYS)
def test_a_network_names_no_other_file(way, folder):
    for make in PLACES.values():
        with pytest.raises(DataError) as found:
            check_contents(make(tensor(names(folder)[way])), "network")
        assert "another file" in found.value.problem


@pytest.mark.parametrize(
    "content",
    [
        b"\x6a\x00" + b"\xff" * 12,
        b"\x0b\x0c",
        b"\x08" + b"\x80" * 20,
        b"\x3a\x7f",
        b"\x00\x00\x00\x00ORTM",
        b"\x80" * 3,
    ],
)
def test_what_is_no_network_is_refused_before_it_is_run(content):
    with pytest.raises(DataError, match="no network"):
        check_contents(content, "network")


def test_a_field_number_that_other_readers_would_cut_is_refused():
    """Of a key of 35 bits some readers see the last 32: what is field 13 for them must not be another for us."""
    inner = message(1, b"location")
    cut = bytes([0xEA, 0x80, 0x80, 0x80, 0x10, len(inner)]) + inner
    with pytest.raises(DataError):
        check_contents(message(7, message(5, cut)), "network")


@pytest.mark.parametrize("way", WAYS)
def test_the_gate_admits_no_way_out(way, folder):
    name, made = names(folder)[way], Gate(str(folder), None, "table")
    for admit in (made.admit, made.admit_strictly, made.file):
        try:
            found = admit(name)
        except DataError:
            continue
        assert found is None or os.path.realpath(found).startswith(f"{folder}{os.sep}")


@pytest.mark.parametrize("way", WAYS)
def test_the_gate_of_a_store_admits_no_way_out(way, folder):
    made = Gate("s3://lake/visits", object(), "table")
    for name in (names(folder)[way], f"s3://lake/visits/{names(folder)[way]}", f"s3://lake/{names(folder)[way]}"):
        try:
            found = made.admit(name)
        except DataError:
            continue
        assert found.startswith("s3://lake/visits/")
        assert ".." not in found.split("/")
        assert "?" not in found


# --- what lies in the place of a file


def csv(path):
    pc.write_csv(pa.table(ROWS), path)


def npz(path):
    with open(path, "wb") as file:
        np.savez(file, **{name: np.array(values) for name, values in ROWS.items()})


def lines(path):
    rows = pa.table(ROWS).to_pylist()
    path.write_text("\n".join(map(json.dumps, rows)))


FILES = {
    "a.csv": csv,
    "a.parquet": lambda path: pq.write_table(pa.table(ROWS), path),
    "a.feather": lambda path: pf.write_feather(pa.table(ROWS), path),
    "a.npz": npz,
    "a.jsonl": lines,
    "a.dsjson": other_tools.dsjson,
    "a.hdf5": other_tools.d4rl,
}
SETS = {
    "delta, commit": ("delta", f"_delta_log/{0:020}.json"),
    "delta, data": ("delta", "a.parquet"),
    "iceberg, metadata": ("iceberg", "metadata/v1.metadata.json"),
    "iceberg, list": ("iceberg", "metadata/list.avro"),
    "hugging face, record": ("hugging face", "state.json"),
    "hugging face, data": ("hugging face", "data.arrow"),
    "lerobot, record": ("lerobot", "meta/info.json"),
    "lerobot, data": ("lerobot", None),
    "minari, record": ("minari", "metadata.json"),
    "minari, data": ("minari", "main_data.hdf5"),
}
MADE = {
    "delta": lambda folder: delta(folder, "a.parquet"),
    "iceberg": lambda folder: iceberg(folder, "metadata/list.avro"),
    "hugging face": lambda folder: hugging(folder, "data.arrow"),
    "lerobot": lambda folder: other_tools.lerobot(folder / "set").rename(folder / "moved"),
    "minari": lambda folder: shutil.copytree(Path(__file__).parents[1] / "data/minari/hdf5-v0/data", folder / "data"),
}


@pytest.mark.parametrize("thing", THINGS)
@pytest.mark.parametrize("name", FILES)
def test_a_file_of_a_folder_is_nothing_else(name, thing, folder):
    if name.endswith("hdf5"):
        pytest.importorskip("h5py", reason="pip install 'mixope[minari]'")
    FILES[name](folder.parent / f"{BESIDE}.whole")
    (folder.parent / BESIDE).unlink()
    (folder.parent / f"{BESIDE}.whole").rename(folder.parent / BESIDE)
    THINGS[thing](folder / name, folder)
    refused(folder)
    refused(folder / "*")


@pytest.mark.parametrize("thing", THINGS)
@pytest.mark.parametrize("part", SETS)
def test_a_part_of_a_data_set_is_nothing_else(part, thing, folder):
    kind, name = SETS[part]
    if "minari" in part:
        pytest.importorskip("h5py", reason="pip install 'mixope[minari]'")
    MADE[kind](folder)
    top = folder / {"lerobot": "moved", "minari": "data"}.get(kind, "")
    path = top / name if name else next((top / "data").rglob("*.parquet"))
    if path.exists():
        shutil.copy(path, folder.parent / BESIDE)
        path.unlink()
    THINGS[thing](path, folder)
    found = outcome(top, done="terminated" if kind == "lerobot" else None)
    plain = part == "hugging face, record" and not path.is_file()  # then the folder is one of Arrow files
    assert isinstance(found, MixopeError) or (plain and found == {"a"})


@pytest.mark.parametrize("thing", [thing for thing in THINGS if "nothing" not in thing])
@pytest.mark.parametrize("ending", ["a.duckdb .wal", "a.db -wal", "a.db -journal", "a.db -shm"])
def test_what_belongs_to_a_database_is_nothing_else(ending, thing, folder):
    name, beside = ending.split(" ")
    (database if name.endswith("duckdb") else sqlite)(folder / name, "SELECT * FROM kept")
    THINGS[thing](folder / f"{name}{beside}", folder)
    refused(folder / name)


ODD = (
    "~",
    "~root",
    "$HOME",
    "file:",
    "FILE:",
    "s3:",
    "http:",
    "sqlite:",
    "%2e%2e",
    "C:",
    "-",
    "a\\b",
    "[a]",
    "a\nb",
    "::",
)


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("name", ["a.csv", "a.parquet", "a.jsonl", "a.feather", "a.npz"])
def test_a_folder_of_an_odd_name_is_a_folder(name, odd, folder, monkeypatch):
    """No library takes it for the home folder, an address or a pattern: there are other rows where that would lead."""
    home = folder.parent / "home"
    inside = folder / odd / str(home).strip("/") if odd.lower() == "file:" else folder / odd
    for place in (home, inside):
        place.mkdir(parents=True, exist_ok=True)
    FILES[name](inside / name)
    monkeypatch.setitem(ROWS, "policy_id", ["SECRET"] * 4)
    FILES[name](home / name)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(folder)
    assert outcome(f"**/{name}") == {"a"}
    assert outcome(".") == {"a"}


# --- what a query may call


def database(path, view):
    import duckdb

    with duckdb.connect(str(path)) as made:
        made.register("given", pa.table(ROWS))
        made.execute("CREATE TABLE kept AS SELECT * FROM given")
        made.execute(f"CREATE VIEW logs AS {view}")
    return f"{path}::logs"


def sqlite(path, view):
    with closing(sqlite3.connect(path)) as made, made:
        made.execute(f"CREATE TABLE kept ({', '.join(ROWS)})")
        made.executemany(f"INSERT INTO kept VALUES ({', '.join('?' * len(ROWS))})", zip(*ROWS.values(), strict=True))
        made.execute(f"CREATE VIEW logs AS {view}")
    return f"{path}::logs"


@pytest.fixture(scope="module")
def views():
    import duckdb

    with duckdb.connect(":memory:") as connection:
        connection.execute("CREATE TABLE kept(a INTEGER)")
        yield Views(connection, "memory", "here")


def test_no_function_that_gives_rows_is_called_but_those_that_count(views):
    kinds = "('table', 'pragma', 'table_macro')"
    query = f"SELECT DISTINCT function_name FROM duckdb_functions() WHERE function_type IN {kinds}"
    known = {name for (name,) in views.connection.execute(query).fetchall()} - ROW_FUNCTIONS
    assert len(known) > 100
    for name in known:
        with pytest.raises(DataError):
            views._query(views._parsed(f"SELECT * FROM \"{name}\"('x')"))
        with pytest.raises(DataError):
            views._query(views._parsed(f'SELECT (SELECT max(x) FROM kept, "{name}"() t(x))'))


def test_no_function_that_knows_the_time_chance_or_a_setting_is_called(views):
    query = "SELECT DISTINCT function_name FROM duckdb_functions() WHERE stability <> 'CONSISTENT'"
    known = {name for (name,) in views.connection.execute(query).fetchall()}
    assert known >= {"current_setting", "getvariable", "random", "nextval"}
    for name in known:
        with pytest.raises(DataError):
            views._query(views._parsed(f'SELECT a + 1, [x for x in [1] if "{name}"(a)] FROM kept'))


QUERIES = {
    "a file as a table": "SELECT * FROM 'a.csv'",
    "a file in an inner query": "SELECT * FROM kept WHERE a IN (SELECT b FROM 'a.csv')",
    "a file in a WITH": "WITH c AS (SELECT * FROM 'a.csv') SELECT * FROM c",
    "a file in a union": "SELECT * FROM kept UNION ALL SELECT * FROM 'a.csv'",
    "a file in a join": "SELECT * FROM kept JOIN 'a.csv' AS b ON true",
    "a file in a join on the left": "SELECT * FROM ('a.csv' AS b CROSS JOIN kept) JOIN kept AS c ON true",
    "a file in values": "SELECT * FROM (VALUES ((SELECT x FROM 'a.csv')))",
    "a file in an argument": "SELECT * FROM range((SELECT x FROM 'a.csv'))",
    "a file in an order": "SELECT a FROM kept ORDER BY (SELECT x FROM 'a.csv')",
    "a file in a limit": "SELECT a FROM kept LIMIT (SELECT x FROM 'a.csv')",
    "a file in a window": "SELECT sum(a) OVER (ORDER BY (SELECT x FROM 'a.csv')) FROM kept",
    "a file in a lambda": "SELECT list_transform([1], lambda x: (SELECT y FROM 'a.csv')) FROM kept",
    "a file in a filter": "SELECT count(*) FILTER (EXISTS (SELECT 1 FROM 'a.csv')) FROM kept",
    "a file in a recursion": "WITH RECURSIVE c AS (SELECT 1 UNION ALL SELECT x FROM 'a.csv') SELECT * FROM c",
    "a table of the system": "SELECT * FROM information_schema.tables",
    "settings of another name": "SELECT * FROM pg_catalog.pg_settings",
    "a summary": "SUMMARIZE kept",
    "a description": "DESCRIBE kept",
    "a pivot": "PIVOT 'a.csv' ON x USING sum(y)",
    "a query as text": "SELECT * FROM query('SELECT 1')",
    "a table as text": "SELECT * FROM query_table('a.csv')",
    "a plan of text": "SELECT json_serialize_plan('SELECT * FROM kept') FROM kept",
    "a table of another database": "SELECT * FROM system.main.kept",
    "a table of another schema": "SELECT * FROM other.kept",
    "the time": "SELECT a, current_timestamp FROM kept",
    "the day, in a condition": "SELECT a FROM kept WHERE CURRENT_DATE > DATE '2026-01-01'",
    "the time of this place": "SELECT a, [localtime, x] FROM kept, range(3) t(x)",
    "some rows by chance": "SELECT a FROM kept USING SAMPLE 3",
    "a share of the rows by chance": "SELECT a FROM kept TABLESAMPLE 50%",
}


@pytest.mark.parametrize("case", QUERIES)
def test_a_view_is_a_query_of_its_own_tables(case, views):
    with pytest.raises(DataError):
        views._query(views._parsed(QUERIES[case]))


FOLLOWED = {
    "numbers": "SELECT *, sum(reward) OVER (PARTITION BY episode_id ORDER BY step) AS so_far FROM kept",
    "a WITH": "WITH c AS (SELECT * FROM kept WHERE reward >= 0) SELECT c.* FROM c JOIN range(1) r(i) ON true",
    "words": "SELECT * REPLACE (lower(upper(policy_id)) AS policy_id) FROM kept WHERE policy_id LIKE 'a%'",
    "cases": "SELECT *, CASE WHEN step IN (0, 1) THEN coalesce(reward, 0) ELSE round(reward, 2) END AS z FROM kept",
    "lists": "SELECT *, list_sum(list_transform([step], lambda x: x + 1)) AS z FROM kept ORDER BY step",
    "dates": "SELECT *, date_trunc('day', DATE '2026-11-19' + step::INTEGER) AS z FROM kept",
    "groups": "SELECT policy_id, episode_id, step, any_value(observation) AS observation, max(action) AS action,"
    " avg(reward) AS reward FROM kept GROUP BY ALL",
}


@pytest.mark.parametrize("case", FOLLOWED)
def test_a_view_that_computes_is_followed(case, folder):
    assert outcome(database(folder / "a.duckdb", FOLLOWED[case])) == {"a"}


SETTINGS = "SELECT kept.* REPLACE (s.name AS policy_id) FROM kept, {} AS s"
MASKED = {
    "a table": ("CREATE TABLE pg_settings(name VARCHAR)", SETTINGS.format("pg_catalog.pg_settings")),
    "a table of the same place": ("CREATE TABLE pg_settings(name VARCHAR)", SETTINGS.format("pg_settings")),
    "a table of a schema": (
        "CREATE TABLE tables(name VARCHAR)",
        SETTINGS.format("(SELECT table_name AS name FROM information_schema.tables)"),
    ),
    "a query elsewhere": (
        "SELECT 1",
        SETTINGS.format("pg_settings") + ", (WITH pg_settings AS (SELECT 1 AS one) SELECT one FROM pg_settings)",
    ),
    "a macro": (
        "CREATE MACRO range(x) AS TABLE SELECT name FROM pg_catalog.pg_settings",
        SETTINGS.format("range(1)"),
    ),
    "a macro of a schema": (
        "CREATE SCHEMA s; CREATE MACRO s.unnest(x) AS TABLE SELECT * FROM query('SELECT ''x'' AS name')",
        SETTINGS.format("s.unnest([1])"),
    ),
}


@pytest.mark.parametrize("case", MASKED)
def test_what_is_called_like_something_harmless_is_looked_at(case, folder):
    """A name of the file, which is also the name of something of DuckDB's."""
    import duckdb

    made_before, view = MASKED[case]
    database(folder / "a.duckdb", "SELECT * FROM kept")
    with duckdb.connect(str(folder / "a.duckdb")) as made:
        made.execute(made_before)
        made.execute(f"CREATE VIEW masked AS {view}")
    assert "not followed" in refused(f"{folder / 'a.duckdb'}::masked").problem
    assert outcome(f"{folder / 'a.duckdb'}::logs") == {"a"}


@pytest.mark.parametrize("named", ["tables", "s.kept", "main.kept"])
def test_tables_of_the_file_have_any_name_and_schema(named, folder):
    import duckdb

    database(folder / "a.duckdb", "SELECT * FROM kept")
    with duckdb.connect(str(folder / "a.duckdb")) as made:
        made.execute("CREATE TABLE tables AS FROM kept; CREATE SCHEMA s; CREATE TABLE s.kept AS FROM kept")
        made.execute(f"CREATE VIEW whole AS SELECT * FROM {named}")
    assert outcome(f"{folder / 'a.duckdb'}::whole") == {"a"}


def test_a_view_of_a_view_is_looked_at(folder):
    import duckdb

    path = folder / "a.duckdb"
    database(path, "SELECT * FROM kept")
    with duckdb.connect(str(path)) as made:
        made.execute("CREATE MACRO hidden(x) AS current_setting(x)")
        made.execute("CREATE VIEW inner_one AS SELECT * REPLACE (hidden('temp_directory') AS policy_id) FROM kept")
        made.execute("CREATE VIEW outer_one AS SELECT * FROM inner_one")
    assert "current_setting" in refused(f"{path}::outer_one").got
    assert outcome(f"{path}::logs") == {"a"}


def test_a_column_that_is_computed_is_looked_at(folder):
    import duckdb

    with duckdb.connect(str(folder / "a.duckdb")) as made:
        made.execute(
            "CREATE TABLE t(step INT, action INT, reward DOUBLE, x VARCHAR AS (current_setting('temp_directory')))"
        )
        made.execute("INSERT INTO t VALUES (0, 0, 1.0)")
    assert "current_setting" in refused(folder / "a.duckdb").got


SQLITE = {
    "an extension": "SELECT load_extension('/tmp/x.so') AS policy_id FROM kept",
    "a file": "SELECT readfile('/etc/passwd') AS policy_id FROM kept",
    "a file that is written": "SELECT writefile('/tmp/x', 'y') AS policy_id FROM kept",
    "a folder": "SELECT name AS policy_id FROM fsdir('/')",
    "an editor": "SELECT edit(policy_id) AS policy_id FROM kept",
    "a tokenizer": "SELECT fts3_tokenizer('simple') AS policy_id FROM kept",
    "the places of databases": "SELECT file AS policy_id FROM pragma_database_list",
    "a setting": "SELECT * FROM pragma_data_version",
    "a table of another file": "SELECT * FROM other.kept",
    "a zip": "SELECT * FROM zipfile('/tmp/x.zip')",
    "pages": "SELECT * FROM dbstat",
    "pages as bytes": "SELECT * FROM sqlite_dbpage",
}


@pytest.mark.parametrize("case", SQLITE)
def test_a_view_of_sqlite_reads_its_own_tables(case, folder):
    assert outcome(sqlite(folder / "a.db", "SELECT * FROM kept")) == {"a"}
    (folder / "a.db").unlink()
    try:
        named = sqlite(folder / "a.db", SQLITE[case])
    except sqlite3.Error as error:  # this SQLite does not even make such a view
        pytest.skip(str(error))
    refused(named)


# --- the room that a file may take


@pytest.fixture
def little(monkeypatch):
    """As if 2 GB were 2 MB."""
    monkeypatch.setattr(gates, "MOST_BYTES", 2_000_000)
    monkeypatch.setattr(groups, "HELD", 500_000)


def hdf5_of_many(path, h5py):
    with h5py.File(path, "w") as file:
        for name in ("observations", "actions", "rewards", "terminals", "timeouts"):
            file.create_dataset(name, (200_000,), "f8", chunks=(1024,))


def hdf5_of_one_text(path, h5py):
    with h5py.File(path, "w") as file:
        file["observations"], file["actions"], file["rewards"] = np.zeros(400), np.zeros(400), np.zeros(400)
        text = file.create_dataset("terminals", (400,), dtype=h5py.string_dtype())
        text[0] = "x" * 10_000
        place = text.id.get_offset()
    content = path.read_bytes()
    path.write_bytes(content[:place] + content[place : place + 16] * 400 + content[place + 6400 :])


@pytest.mark.parametrize("make", [hdf5_of_many, hdf5_of_one_text])
def test_an_hdf5_file_has_room_for_so_much_in_all(make, folder, little):
    h5py = pytest.importorskip("h5py", reason="pip install 'mixope[minari]'")
    make(folder / "log.h5", h5py)
    assert "unpacks" in refused(folder / "log.h5").problem


def zeros(path, new, *, packed="zstd", words=False):
    """A million zeros, in a few thousand bytes where they are packed; as words, only their dictionary is long."""
    column = pa.array(np.zeros(1_000_000))
    if words:
        column = pa.DictionaryArray.from_arrays(pa.array([0] * 4, pa.int32()), pa.array(["x" * 8_000_000]))
    table = pa.table(dict.fromkeys(("observation", "action", "reward", "step"), column))
    options = pa.ipc.IpcWriteOptions(compression=packed)
    with pa.OSFile(str(path), "wb") as file, new(file, table.schema, options=options) as writer:
        writer.write_table(table)


@pytest.mark.parametrize("words", [False, True])
@pytest.mark.parametrize("packed", ["zstd", "lz4"])
@pytest.mark.parametrize("new", [pa.ipc.new_file, pa.ipc.new_stream])
def test_an_arrow_file_has_room_for_so_much(new, packed, words, folder, little):
    zeros(folder / "log.arrow", new, packed=packed, words=words)
    assert os.path.getsize(folder / "log.arrow") < 300_000
    assert "unpacks" in refused(folder / "log.arrow").problem


@pytest.mark.parametrize("new", [pa.ipc.new_file, pa.ipc.new_stream])
def test_an_arrow_file_that_is_not_packed_may_be_large(new, folder, little):
    zeros(folder / "log.arrow", new, packed=None)
    assert mixope.read(str(folder / "log.arrow")).total_rows() == 1_000_000


def test_an_episode_of_minari_has_room_for_so_much(folder, little):
    top = Path(shutil.copytree(Path(__file__).parents[1] / "data/minari/arrow-v0/data", folder / "data"))
    zeros(next(iter(sorted(top.glob("0/*.arrow")))), pa.ipc.new_file)
    assert "unpacks" in refused(top).problem


def test_an_hdf5_filter_that_would_have_to_be_loaded_is_refused(folder):
    h5py = pytest.importorskip("h5py", reason="pip install 'mixope[minari]'")
    other_tools.d4rl(folder / "log.h5")
    with h5py.File(folder / "log.h5", "a") as file:
        del file["rewards"]
        made = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        made.set_chunk((6,))
        made.set_filter(32001, h5py.h5z.FLAG_OPTIONAL, (1,))
        space = h5py.h5s.create_simple((6,))
        try:
            h5py.h5d.create(file.id, b"rewards", h5py.h5t.IEEE_F64LE, space, made)
        except ValueError as error:
            pytest.skip(str(error))
    assert "filter" in refused(folder / "log.h5").problem


def test_a_checkpoint_has_room_for_so_much(folder, little):
    delta(folder, "a.parquet")
    (folder / "_delta_log" / f"{0:020}.json").unlink()
    rows = pa.table({"add": pa.array([{"path": "x" * 10_000}] * 2_000)})
    pq.write_table(rows, folder / "_delta_log" / f"{3:020}.checkpoint.parquet")
    assert "unpacks" in refused(folder).problem


def test_iceberg_metadata_have_room_for_so_much(folder, monkeypatch):
    import gzip

    from mixope.formats import iceberg as tables

    iceberg(folder, "metadata/list.avro")
    monkeypatch.setattr(tables, "MOST_RECORD", 1_000_000)
    (folder / "metadata" / "v1.metadata.json").unlink()
    (folder / "metadata" / "v1.gz.metadata.json").write_bytes(gzip.compress(b"[" + b"0," * 1_000_000))
    assert "unpack" in refused(folder).problem


def test_a_line_has_an_end(folder, monkeypatch):
    import gzip

    from mixope.logs.sources import lines as readers

    monkeypatch.setattr(readers, "LONGEST", 100_000)
    (folder / "a.dsjson.gz").write_bytes(gzip.compress(b'{"a": "' + b"x" * 10_000_000))
    tracemalloc.start()
    assert "too long" in refused(folder / "a.dsjson.gz").problem
    assert tracemalloc.get_traced_memory()[1] < 5_000_000
    tracemalloc.stop()


def test_rows_of_sqlite_are_taken_a_few_at_a_time(folder, monkeypatch):
    from mixope.formats import databases

    monkeypatch.setattr(databases, "MOST_HELD", 1_000_000)
    wide = "SELECT *, printf('%.*c', 20000, 'x') AS wide FROM kept, (WITH RECURSIVE r(i) AS"
    wide += " (SELECT 0 UNION ALL SELECT i + 1 FROM r WHERE i < 500) SELECT i AS n FROM r)"
    named = sqlite(folder / "a.db", wide)
    tracemalloc.start()
    outcome(named)
    assert tracemalloc.get_traced_memory()[1] < 10_000_000
    tracemalloc.stop()


WIDE = {
    "a default": f"ALTER TABLE kept ADD COLUMN wide TEXT DEFAULT '{'x' * 20_000}'",
    "computed": "ALTER TABLE kept ADD COLUMN wide TEXT AS(printf('%.*c', 20000, 'x'))",
    "computed, told apart": "ALTER TABLE kept ADD COLUMN wide TEXT AS/* a word */(printf('%.*c', 20000, 'x'))",
}


@pytest.mark.parametrize("case", WIDE)
def test_a_table_of_sqlite_has_room_for_so_much(case, folder, monkeypatch):
    """A text of 20,000 letters stands once in the file, and in each of 4,000 rows."""
    monkeypatch.setattr(patience, "BYTES", 1_000_000)
    monkeypatch.setattr(patience, "BYTES_PER_STORED", 100)
    named = sqlite(folder / "a.db", "SELECT * FROM kept").replace("logs", "kept")
    assert outcome(named) == {"a"}
    with closing(sqlite3.connect(folder / "a.db")) as made, made:
        for _ in range(10):
            made.execute("INSERT INTO kept SELECT * FROM kept")
    assert outcome(named) == {"a"}
    with closing(sqlite3.connect(folder / "a.db")) as made, made:
        made.execute(WIDE[case])
    assert "far more" in refused(named).problem


def test_a_table_of_duckdb_has_room_for_so_much(folder, monkeypatch):
    monkeypatch.setattr(patience, "BYTES", 1_000_000)
    monkeypatch.setattr(patience, "BYTES_PER_STORED", 1)
    named = database(folder / "a.duckdb", "SELECT * FROM kept").replace("logs", "kept")
    assert outcome(named) == {"a"}
    import duckdb

    with duckdb.connect(str(folder / "a.duckdb")) as made:
        made.execute("CREATE OR REPLACE TABLE kept AS SELECT kept.* FROM kept, range(100000)")
    assert "far more" in refused(named).problem


# --- what lies in the current folder


def test_settings_of_catalogs_are_not_taken_from_the_current_folder(folder, monkeypatch):
    pytest.importorskip("pyiceberg", reason="pip install 'mixope[iceberg]'")
    monkeypatch.setenv("HOME", str(folder.parent))
    monkeypatch.delenv("PYICEBERG_HOME", raising=False)
    (folder / ".pyiceberg.yaml").write_text("catalog:\n  lake:\n    py-catalog-impl: subprocess.Popen\n")
    monkeypatch.chdir(folder)
    assert "current folder" in refused("iceberg:lake.web.visits").problem
    monkeypatch.setenv("PYICEBERG_HOME", str(folder))
    assert "current folder" not in refused("iceberg:lake.web.visits").problem


def test_a_table_is_named_from_the_current_folder(folder, monkeypatch):
    iceberg(folder, "metadata/list.avro")
    monkeypatch.chdir(folder.parent)
    assert "list.avro" in str(refused("folder"))


def endless_network():
    """A loop whose condition stays true."""
    onnx = pytest.importorskip("onnx", reason="pip install onnx")
    make, kinds = onnx.helper, onnx.TensorProto
    value = make.make_tensor_value_info
    inner = make.make_graph(
        [make.make_node("Identity", ["go"], ["on"]), make.make_node("Identity", ["x"], ["y"])],
        "body",
        [value("i", kinds.INT64, []), value("go", kinds.BOOL, []), value("x", kinds.FLOAT, ["n", 2])],
        [value("on", kinds.BOOL, []), value("y", kinds.FLOAT, ["n", 2])],
    )
    outer = make.make_graph(
        [
            make.make_node("Loop", ["most", "keep", "observation"], ["linear"], body=inner),
            make.make_node("Softmax", ["linear"], ["probabilities"], axis=1),
        ],
        "policy",
        [value("observation", kinds.FLOAT, ["n", 2])],
        [value("probabilities", kinds.FLOAT, ["n", 2])],
        [make.make_tensor("most", kinds.INT64, [], [2**62]), make.make_tensor("keep", kinds.BOOL, [], [True])],
    )
    made = make.make_model(outer, opset_imports=[make.make_opsetid("", 13)], ir_version=8)
    return made.SerializeToString()


def test_a_network_without_an_end_is_given_up(folder, monkeypatch):
    pytest.importorskip("onnxruntime", reason="pip install 'mixope[onnx]'")
    from mixope.adapters import onnx

    monkeypatch.setattr(onnx, "SECONDS", 0.3)
    (folder / "policy.onnx").write_bytes(endless_network())
    policy = mixope.read_policy(folder / "policy.onnx")
    with pytest.raises(DataError, match="does not come to an end"):
        policy.probs(np.eye(2))
