"""Logs in a store of objects: the rows of the local files, whatever the format, and errors in words."""

import json
import os
import pickle
import subprocess
import sys

import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from pyarrow import fs

import mixope
from cli.running import json_of, run
from mixope.base.errors import DataError
from mixope.logs.sources import stamps, stores
from places.conftest import MODEL, log

WRITERS = {
    "parquet": lambda table, sink: pq.write_table(
        table, sink, row_group_size=50, use_dictionary=False, compression="none"
    ),
    "csv": pyarrow.csv.write_csv,
    "jsonl": lambda table, sink: sink.write("\n".join(map(json.dumps, table.to_pylist())).encode()),
    "arrow": lambda table, sink: pyarrow.feather.write_feather(table, sink, compression="uncompressed"),
}


def put(s3, path, table, ending="parquet"):
    with s3.open_output_stream(f"{path}.{ending}") as sink:
        WRITERS[ending](table, sink)


@pytest.fixture(scope="module")
def lake(s3):
    """Two files of every format, one folder each, and a folder of partitions."""
    for ending in WRITERS:
        for seed in (0, 1):
            put(s3, f"lake/{ending}/part-{seed}", relabelled(log(seed), seed), ending)
    for day in ("2026-11-01", "2026-11-02", "2026-12-01"):
        put(s3, f"lake/days/day={day}/policy_id=new/a", log(int(day[-4:-3] + day[-1])).drop_columns(["policy_id"]))
    return "s3://lake"


def relabelled(table, seed):
    """Episodes of their own in every file."""
    number = table.column_names.index("episode_id")
    return table.set_column(number, "episode_id", pa.compute.add(table.column("episode_id"), 1000 * seed))


def both():
    return pa.concat_tables([relabelled(log(seed), seed) for seed in (0, 1)])


def same(logs, expected):
    assert logs.table().equals(mixope.read(expected).table())


SHAPES = ["{}/", "{}", "{}/*.{}", "**/part-?.{}", "{}/part-[01].{}"]


@pytest.mark.parametrize(
    ("ending", "shape"), [*(("parquet", shape) for shape in SHAPES), *((ending, "{}") for ending in WRITERS)]
)
def test_an_address_gives_the_rows_of_the_local_table(lake, ending, shape):
    logs = mixope.read(f"{lake}/{shape.format(*[ending] * shape.count('{}'))}")
    same(logs, both())
    with logs.connect() as connection:
        rows = connection.sql(f"SELECT * FROM {logs.view(connection)}").to_arrow_table()
    assert rows.num_rows == both().num_rows
    assert [record["path"] for record in logs.inputs()] == [f"s3://lake/{ending}/part-{n}.{ending}" for n in (0, 1)]


def test_several_addresses_have_labels(lake):
    logs = mixope.read(
        {"a": f"{lake}/parquet/part-0.parquet", "b": f"{lake}/csv/part-1.csv"}, columns={"policy_id": None}
    )
    assert sorted(set(logs.table(["policy_id"]).column(0).to_pylist())) == ["a", "b"]
    same_again = mixope.read(f"a={lake}/parquet/part-0.parquet", columns={"policy_id": None})
    assert set(same_again.table(["policy_id"]).column(0).to_pylist()) == {"a"}


@pytest.mark.parametrize(
    ("pattern", "days"),
    [("days", 3), ("days/day=2026-11-*", 2), ("days/day=2026-11-*/**/*.parquet", 2), ("days/day=2026-12-01", 1)],
)
def test_a_pattern_prunes_partitions_and_folders_hold_columns(lake, pattern, days):
    logs = mixope.read(f"{lake}/{pattern}")
    assert logs.total_rows() == days * log().num_rows
    assert set(logs.table(["policy_id"]).column(0).to_pylist()) == {"new"}


def test_folders_that_a_pattern_leaves_out_are_never_listed(lake, monkeypatch):
    listed = watched(monkeypatch)
    mixope.read(f"{lake}/days/day=2026-11-*/*/*.parquet")
    assert not [path for path in listed if "2026-12" in path]


def watched(monkeypatch):
    """The folders that are listed and the files that are looked up one by one, from now on."""
    seen, plain = [], stores._s3

    class Watched(fs.FileSystemHandler):  # noqa: PLW1641
        def __init__(self, inner):
            self.inner = inner

        def __getattr__(self, name):
            return getattr(self.inner, name)

        def __eq__(self, other):
            return self is other

        def __ne__(self, other):
            return self is not other

        def get_type_name(self):
            return "watched"

        def get_file_info_selector(self, selector):
            seen.append(selector.base_dir)
            return self.inner.get_file_info(selector)

        def get_file_info(self, paths):
            seen.extend(paths)
            return self.inner.get_file_info(paths)

        def open_input_file(self, path):
            return pa.PythonFile(self.inner.open_input_file(path), mode="r")

        def _unused(self, *given):
            raise NotImplementedError

        open_input_stream = open_output_stream = open_append_stream = normalize_path = _unused
        create_dir = delete_dir = delete_dir_contents = delete_root_dir_contents = delete_file = _unused
        move = copy_file = _unused

    Watched.__abstractmethods__ = frozenset()
    monkeypatch.setattr(stores, "_s3", lambda *given: fs.PyFileSystem(Watched(plain(*given))))
    return seen


def test_files_are_listed_once_and_not_looked_up_one_by_one(s3, server, monkeypatch):
    rows = log(episodes=2).slice(0, 4)
    for number in range(30):
        put(s3, f"lake/many/part-{number:03}", relabelled(rows, number))
    monkeypatch.setattr(stamps, "RECENT", 0.0)
    monkeypatch.setattr(stamps, "MANY", 10)
    seen = watched(monkeypatch)
    logs = mixope.read("s3://lake/many/")
    assert logs.total_rows() == 120
    assert seen.count("lake/many") <= 3, "found, listed, and once more to see whether something changed"
    assert not [path for path in seen if path.endswith(".parquet")]


def test_fragments_are_opened_by_another_process(lake, tmp_path):
    labelled = {ending: f"{lake}/{ending}" for ending in WRITERS}
    logs = mixope.read(labelled, columns={"policy_id": None})
    fragments = logs.fragments(60)
    assert len(fragments) > 6
    code = "import pickle, sys; print(sum(f.table(['reward']).num_rows for f in pickle.load(sys.stdin.buffer)))"
    done = subprocess.run(
        [sys.executable, "-c", code], input=pickle.dumps(fragments), capture_output=True, cwd=tmp_path, check=True
    )
    assert int(done.stdout) == logs.table().num_rows
    assert b"hush-hush" not in pickle.dumps(fragments)


def test_next_observations_come_from_neighbouring_row_groups(s3, server):
    table = log().drop_columns(["next_observation"])
    put(s3, "lake/derived/a", table)
    logs = mixope.read("s3://lake/derived/a.parquet")
    rows = pa.concat_tables([fragment.table() for fragment in logs.fragments(50)])
    assert rows.equals(mixope.read(table).table())
    assert len(logs.fragments(50)) > 1


def test_evaluate_on_the_command_line(lake, tmp_path):
    policy = ["observation,action,prob"] + [
        f"{state},{action},{1 / MODEL.n_actions}"
        for state in range(MODEL.n_states)
        for action in range(MODEL.n_actions)
    ]
    (tmp_path / "target.csv").write_text("\n".join(policy))
    pq.write_table(both(), tmp_path / "local.parquet")
    words = ("--target", tmp_path / "target.csv")
    far = json_of("evaluate", f"{lake}/parquet/*.parquet", *words)
    near = json_of("evaluate", tmp_path / "local.parquet", *words)
    assert far["value"] == pytest.approx(near["value"], rel=1e-12)
    assert far["verdict"] == near["verdict"]
    assert run("inspect", f"{lake}/csv").exit_code == 0


WRONG = {
    "s3://lake/nothing.parquet": "No such file",
    "s3://lake/none/*.parquet": "No such file",
    "s3://nobody/log.parquet": "There is no such bucket",
    "s3://nobody/*.parquet": "There is no such bucket",
    "s3://lake/other/": "The folder holds no logs",
    "s3://lake/broken.parquet": "broken.parquet",
    "s3://lake/broken.csv": "broken.csv",
    "s3://lake/parquet/part-0.parquet?speed=9": "An option of the address is not known",
}


@pytest.mark.parametrize("address", WRONG)
def test_what_is_not_there_or_broken_is_said_with_status_3(s3, lake, address):
    for name, content in (
        ("other/x.txt", b"x"),
        ("broken.parquet", b"PAR1nonsensePAR1"),
        ("broken.csv", b"a,a\n1,2\n"),
    ):
        with s3.open_output_stream(f"lake/{name}") as sink:
            sink.write(content)
    result = run("inspect", address)
    assert result.exit_code == 3, result.output
    assert WRONG[address] in " ".join(result.stderr.split())


def test_a_server_that_does_not_answer_is_an_error_soon(server, monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    monkeypatch.setattr(stores, "ATTEMPTS", 2)
    with pytest.raises(DataError, match="The store does not answer"):
        mixope.read("s3://lake/parquet")


DENIALS = {
    "AWS Error ACCESS_DENIED during ListObjectsV2 operation: Access Denied": "denies access",
    "AWS Error UNKNOWN (HTTP status 301) during HeadBucket": "another region",
    "AWS Error NETWORK_CONNECTION during HeadObject operation: curlCode: 28, Timeout was reached": "does not answer",
    "google::cloud::Status(UNAUTHENTICATED: Could not create a OAuth2 access token)": "No credentials",
    "Unable to load libjvm": "Hadoop",
    "something else": "The store cannot be read",
}


@pytest.mark.parametrize("said", DENIALS)
def test_what_stores_say_is_put_in_words(said):
    with pytest.raises(DataError, match=DENIALS[said]) as caught, stores.reaching("s3://lake/x"):
        raise OSError(said)
    assert said in str(caught.value)
    assert caught.value.hint


CHANGES = {
    "other rows": lambda s3: put(s3, "lake/change/a", relabelled(log(3), 0)),
    "gone": lambda s3: s3.delete_file("lake/change/a.parquet"),
    "corrupt": lambda s3: s3.open_output_stream("lake/change/a.parquet").close(),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("way", ["view", "table", "fragment", "inputs"])
def test_an_object_that_changes_between_two_scans_is_named(s3, server, change, way):
    put(s3, "lake/change/a", log())
    logs = mixope.read("s3://lake/change/*.parquet")
    fragment = logs.fragments()[0]
    CHANGES[change](s3)
    with logs.connect() as connection, pytest.raises(DataError, match=r"s3://lake/change/a\.parquet"):
        {
            "view": lambda: logs.view(connection),
            "table": logs.table,
            "fragment": fragment.table,
            "inputs": logs.inputs,
        }[way]()


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_another_content_of_the_same_size_and_second_is_seen(s3, server, ending, monkeypatch):
    """Only the version tells; a copy that was fetched before is not taken for the new content."""
    one = log()
    other = one.set_column(one.column_names.index("reward"), "reward", one.column("reward").combine_chunks()[::-1])
    put(s3, "lake/again/a", one, ending)
    logs = mixope.read(f"s3://lake/again/a.{ending}")
    put(s3, "lake/again/a", other, ending)
    state = logs.sources[0].stamps[0].state
    now = s3.get_file_info(f"lake/again/a.{ending}")
    assert now.size == state[0]
    with monkeypatch.context() as patch:
        patch.setattr(stamps, "_states", lambda filesystem, paths: [state[:2]] * len(paths))
        with pytest.raises(DataError, match="has changed since it was opened"):
            logs.table()
    assert mixope.read(f"s3://lake/again/a.{ending}").table(["reward"]).equals(mixope.read(other).table(["reward"]))


def test_old_files_are_looked_up_by_size_and_time_only(s3, server, monkeypatch):
    put(s3, "lake/old/a", log())
    monkeypatch.setattr(stamps, "RECENT", 0.0)
    logs = mixope.read("s3://lake/old/")
    assert len(logs.sources[0].stamps[0].state) == 2
    logs.refuse_changed(thorough=True)
    put(s3, "lake/old/a", log(episodes=30))
    with pytest.raises(DataError, match=r"bytes, changed .* before"):
        logs.refuse_changed()


def test_a_file_address_is_a_path(tmp_path):
    pq.write_table(log(), tmp_path / "a b.parquet")
    same(mixope.read(f"file://{tmp_path}/a%20b.parquet"), log())
    with pytest.raises(DataError, match="another machine"):
        mixope.read("file://elsewhere/x.parquet")


def test_fsspec_opens_what_pyarrow_does_not_know(tmp_path):
    fsspec = pytest.importorskip("fsspec", reason="pip install fsspec")
    memory = fsspec.filesystem("memory")
    with memory.open("/logs/a.parquet", "wb") as sink:
        pq.write_table(log(), sink)
    same(mixope.read("memory://logs/*.parquet"), log())
    same(mixope.read("memory://logs/a.parquet"), log())


@pytest.mark.long
def test_nothing_but_the_server_is_reached(lake, server, tmp_path):
    import shutil

    if shutil.which("strace") is None:
        pytest.skip("strace is not installed")
    command = ["strace", "-f", "-e", "trace=connect", "-o", tmp_path / "trace", sys.executable, "-m", "mixope"]
    subprocess.run([*command, "inspect", f"{lake}/parquet"], capture_output=True, check=True, env=os.environ)
    met = [line for line in (tmp_path / "trace").read_text().splitlines() if "AF_INET" in line]
    port = server.rpartition(":")[2]
    assert met
    assert all(f"htons({port})" in line and "127.0.0.1" in line for line in met)


@pytest.mark.parametrize("record", ["meta/info.json", "train/dataset_info.json", "dataset_dict.json", "main_data.hdf5"])
def test_a_data_set_with_a_record_is_refused_with_what_to_do(s3, record):
    folder = f"lake/recorded-{record.replace('/', '-')}"
    put(s3, f"{folder}/data/a", log())
    s3.create_dir(os.path.dirname(f"{folder}/{record}"), recursive=True)
    with s3.open_output_stream(f"{folder}/{record}") as sink:
        sink.write(b"{}")
    for address in (f"s3://{folder}", f"s3://{folder}/**/*.parquet"):
        with pytest.raises(DataError, match="copy the folder to this machine"):
            mixope.read(address)
