"""Lazy frames: written once by their own engine, with the rows of the table, and gone with the logs."""

import gc
import pickle
import subprocess
import sys

import polars as pl
import pyarrow.parquet as pq
import pytest

import mixope
from mixope import worlds
from mixope.base.errors import DataError
from places.conftest import MODEL, log

TARGET = mixope.TabularPolicy(worlds.target(MODEL, seed=0))
COUNT = "import pickle, sys; print(sum(f.table(['reward']).num_rows for f in pickle.load(sys.stdin.buffer)))"
SETTINGS = {"spark.ui.enabled": "false", "spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}


def of_polars():
    return pl.LazyFrame(log())


def of_dask():
    dask = pytest.importorskip("dask.dataframe", reason="pip install 'dask[dataframe]'")
    return dask.from_pandas(log().to_pandas(), npartitions=12)


@pytest.fixture(scope="module")
def spark():
    sql = pytest.importorskip("pyspark.sql", reason="pip install pyspark, and install Java (default-jre-headless)")
    builder = sql.SparkSession.builder.master("local[1]")
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        session = builder.getOrCreate()
        yield session
        session.stop()


@pytest.fixture(scope="module")
def ray():
    library = pytest.importorskip("ray", reason="pip install 'ray[data]'")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        begun = not library.is_initialized()  # else an engine of other tests has a cluster already
        if begun:
            library.init(num_cpus=1, include_dashboard=False, log_to_driver=False, _node_ip_address="127.0.0.1")
        yield library
        if begun:
            library.shutdown()


def ordered(logs):
    return logs.table().sort_by([(name, "ascending") for name in ("policy_id", "episode_id", "step")])


def holds(frame, home, tmp_path, monkeypatch):
    """The rows of the frame, in this process and another; a scratch folder while the logs are there, and none after."""
    monkeypatch.setenv("MIXOPE_SCRATCH", str(tmp_path / "scratch"))
    logs = mixope.read(frame)
    assert logs.home == home
    assert ordered(logs).equals(ordered(mixope.read(log())))
    told = pickle.dumps(logs.fragments())
    done = subprocess.run([sys.executable, "-c", COUNT], input=told, capture_output=True, check=True)
    assert int(done.stdout) == log().num_rows
    assert mixope.evaluate(logs, TARGET).value == pytest.approx(mixope.evaluate(log(), TARGET).value, rel=1e-12)
    fragments = logs.fragments()
    del logs
    gc.collect()
    assert fragments[0].table().num_rows
    del fragments
    gc.collect()
    assert not list((tmp_path / "scratch").iterdir())


def test_a_polars_frame_holds_its_rows(tmp_path, monkeypatch):
    holds(of_polars(), "polars", tmp_path, monkeypatch)


@pytest.mark.long
def test_a_dask_frame_holds_its_rows_in_the_order_of_its_partitions(tmp_path, monkeypatch):
    frame = of_dask()
    assert mixope.read(frame).table().equals(mixope.read(log()).table())
    assert mixope.read(frame).fingerprint() == mixope.read(frame).fingerprint()
    holds(frame, "dask", tmp_path, monkeypatch)


@pytest.mark.long
@pytest.mark.filterwarnings("default")  # what Spark says of itself is Spark's
def test_a_spark_frame_holds_its_rows(spark, tmp_path, monkeypatch):
    pq.write_table(log(), tmp_path / "log.parquet")
    frame = spark.read.parquet(f"file://{tmp_path}/log.parquet")
    holds(frame.repartition(3), "spark", tmp_path, monkeypatch)
    with pytest.raises(DataError, match=r"no column for the reward(.|\n)*where: *Spark DataFrame"):
        mixope.read(frame.drop("reward"))


@pytest.mark.long
@pytest.mark.filterwarnings("default")
def test_a_ray_frame_holds_its_rows(ray, tmp_path, monkeypatch):
    import ray.data

    pq.write_table(log(), tmp_path / "log.parquet")
    holds(ray.data.read_parquet(str(tmp_path / "log.parquet")), "ray", tmp_path, monkeypatch)


def test_a_frame_is_followed_once():
    calls = []

    def count(frame):
        calls.append(1)
        return frame

    logs = mixope.read(of_polars().map_batches(count))
    mixope.evaluate(logs, TARGET)
    logs.table()
    assert len(calls) == 1


def test_frames_have_labels_and_other_sources_beside_them(tmp_path):
    logs = mixope.read({"old": of_polars(), "new": log(1)}, columns={"policy_id": None})
    assert set(logs.table(["policy_id"]).column(0).to_pylist()) == {"old", "new"}
    assert logs.home is None
    assert mixope.read(log()).home is None


@pytest.mark.long
def test_a_frame_in_a_store(s3, server, tmp_path):
    logs = mixope.read(of_dask(), scratch="s3://lake/scratch")
    assert ordered(logs).equals(ordered(mixope.read(log())))
    assert s3.get_file_info("lake/scratch").type.name == "Directory"
    del logs
    gc.collect()
    from pyarrow import fs

    left = s3.get_file_info(fs.FileSelector("lake/scratch", recursive=True, allow_not_found=True))
    assert not [info for info in left if info.is_file]


def test_what_is_wrong_with_a_frame_is_said_of_the_frame(tmp_path):
    with pytest.raises(DataError, match=r"no column for the reward(.|\n)*where: *polars LazyFrame"):
        mixope.read(of_polars().drop("reward"))
    with pytest.raises(DataError, match=r"The frame has no rows(.|\n)*where: *polars LazyFrame"):
        mixope.read(of_polars().filter(pl.col("reward") > 1e9))
    with pytest.raises(DataError, match=r"cannot be computed or written(.|\n)*where: *polars LazyFrame"):
        mixope.read(of_polars().select(pl.col("nothing")))
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="scratch folder cannot be made"):
        mixope.read(of_polars(), scratch=tmp_path / "file")


def test_files_that_other_machines_wrote_are_missed_with_words(monkeypatch):
    from mixope.logs.sources import frames

    away = frames.FrameKind("spark", "Spark DataFrame", ("polars",), ("LazyFrame",), lambda frame, folder: None)
    monkeypatch.setattr(frames, "RECIPES", (away,))
    with pytest.raises(DataError, match=r"nothing of it is here(.|\n)*MIXOPE_SCRATCH"):
        mixope.read(of_polars())
