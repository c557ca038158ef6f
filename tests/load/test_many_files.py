"""Many CSV files: types are found by one query, and files whose types one set can stand for are read together."""

import pytest

import mixope
from mixope.base.errors import DataError
from mixope.logs.sources import text

HEADER = "policy_id,episode_id,step,observation,action,reward,next_observation,terminated\n"


def write(folder, rewards, header=HEADER, name="part"):
    """One file per reward; each is an episode of two steps."""
    for k, reward in enumerate(rewards):
        rows = f"a,{k},0,{k % 3},0,{reward},1,false\na,{k},1,1,1,0,{k % 3},false\n"
        (folder / f"{name}-{k:03}.csv").write_text(header + rows)
    return str(folder)


@pytest.fixture
def connections(monkeypatch):
    """How often a reader of text asks for a connection."""
    asked, connect = [], text.connect
    monkeypatch.setattr(text, "connect", lambda *given: asked.append(given) or connect(*given))
    return asked


def test_the_number_of_queries_does_not_grow_with_the_files(tmp_path, connections):
    logs = mixope.read(write(tmp_path, [0.5 + k for k in range(40)]))
    assert len(connections) <= 2
    assert logs.total_rows() == 80
    assert len(connections) <= 3


def test_whole_numbers_and_gaps_beside_floats_are_one_piece_and_nothing_is_lost(tmp_path):
    logs = mixope.read(write(tmp_path, ["1", "0.25", "7", "2.5"]))
    (source,) = logs.sources
    assert len(source.pieces) == 1
    assert sorted(logs.table(["reward"]).column("reward").to_pylist()) == [0, 0, 0, 0, 0.25, 1, 2.5, 7]
    assert [record["rows"] for record in logs.inputs()] == [2, 2, 2, 2]


def test_long_whole_numbers_are_not_read_as_floats(tmp_path):
    long = 2**53 + 1
    for k, episode in enumerate([str(long), "1.0"]):
        (tmp_path / f"part-{k}.csv").write_text(
            HEADER + f"a,{episode},0,0,0,1,1,false\na,{episode},1,1,1,{k},0,false\n"
        )
    logs = mixope.read(str(tmp_path))
    assert len(logs.sources[0].pieces) == 2
    assert set(logs.table(["episode_id"]).column("episode_id").to_pylist()) == {long, 1}


def test_a_file_with_words_for_numbers_is_refused_by_name(tmp_path):
    write(tmp_path, ["1", "2", "many", "3"])
    with pytest.raises(DataError, match="part-002") as refused:
        mixope.read(str(tmp_path))
    assert "'many'" in str(refused.value)


def test_a_file_that_cannot_be_read_is_named_among_many(tmp_path):
    write(tmp_path, ["1", "2", "3"])
    (tmp_path / "part-001.csv").write_text(HEADER + "a,1,0,0,0,1,1,false,too,many\n" * 3)
    with pytest.raises(DataError, match="part-001"):
        mixope.read(str(tmp_path))


def test_a_file_without_rows_is_named_among_many(tmp_path):
    write(tmp_path, ["1", "2", "3"])
    (tmp_path / "part-002.csv").write_text(HEADER)
    with pytest.raises(DataError, match=r"(?s)header and no rows.*part-002"):
        mixope.read(str(tmp_path))


def test_a_column_may_have_the_name_that_tells_files_apart(tmp_path):
    header = HEADER.replace("policy_id", "mixope_file")
    logs = mixope.read(write(tmp_path, ["1", "2"], header))
    assert logs.total_rows() == 4
