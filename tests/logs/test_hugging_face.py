"""Data sets of Hugging Face: folders without that library, objects with it; of several splits none is guessed."""

import json

import pyarrow as pa
import pytest
from other_tools import ROWS, hugging

import mixope
from cli.running import run
from mixope.base.errors import DataError

EXPECTED = mixope.read(pa.table(ROWS)).table()


def test_a_folder_has_the_rows_of_its_files_in_order(tmp_path):
    folder = hugging(tmp_path / "set")
    (folder / "data-00000-of-00001.arrow").write_bytes((folder / "data-00000-of-00002.arrow").read_bytes())
    assert mixope.read(folder).table().equals(EXPECTED)


def test_several_splits_are_named(tmp_path):
    (tmp_path / "set").mkdir()
    for name in ("train", "test"):
        hugging(tmp_path / "set" / name)
    (tmp_path / "set" / "dataset_dict.json").write_text('{"splits": ["train", "test"]}')
    result = run("inspect", tmp_path / "set")
    assert result.exit_code == 3
    assert "train, test" in result.stderr
    assert mixope.read(tmp_path / "set" / "train").total_rows() == 4


@pytest.mark.parametrize(
    ("state", "said"),
    [
        ({"_data_files": []}, "names no files"),
        ({"_data_files": [{"filename": "../other.arrow"}]}, "has no name"),
        ({"_data_files": [{"filename": "gone.arrow"}]}, "is missing"),
        ({"_data_files": [{"filename": "a.arrow"}], "_indices_data_files": [{}]}, "its rows and their order apart"),
        ([1], "no JSON object"),
    ],
)
def test_a_record_that_does_not_fit_is_said_with_status_3(tmp_path, state, said):
    (hugging(tmp_path / "set") / "state.json").write_text(json.dumps(state))
    result = run("inspect", tmp_path / "set")
    assert result.exit_code == 3
    assert said in " ".join(result.stderr.split())


def test_a_part_of_the_data_set_is_refused(tmp_path):
    with pytest.raises(DataError, match="a part of a data set of Hugging Face"):
        mixope.read(hugging(tmp_path / "set") / "data-00000-of-00002.arrow")


@pytest.fixture
def datasets():
    return pytest.importorskip("datasets", reason="pip install datasets")


def test_a_dataset_has_the_rows_that_it_selects(datasets):
    turned = {name: values[::-1] for name, values in ROWS.items()}
    given = datasets.Dataset.from_dict(turned).select([3, 2, 1, 0])
    assert mixope.read(given).table().equals(EXPECTED)


def test_a_stream_is_written_once(datasets):
    assert mixope.read(datasets.Dataset.from_dict(ROWS).to_iterable_dataset()).table().equals(EXPECTED)


def test_what_it_saves_is_read(datasets, tmp_path):
    datasets.Dataset.from_dict(ROWS).save_to_disk(tmp_path / "set", num_shards=3)
    assert mixope.read(tmp_path / "set").table().equals(EXPECTED)


def test_the_splits_of_a_dict_are_named(datasets):
    one = datasets.Dataset.from_dict(ROWS)
    with pytest.raises(DataError, match=r"(?s)train, test.*data\['train'\]"):
        mixope.read(datasets.DatasetDict({"train": one, "test": one}))
