"""The fragments of a log are its rows, in every guise, after a journey to another process."""

import pickle

import pyarrow as pa
import pytest

from .sources import FORMATS, KINDS, columns, written

pytestmark = pytest.mark.long


@pytest.mark.parametrize("kind_of_file", FORMATS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rows", [7, 1_000_000])
@pytest.mark.parametrize("absent", [(), ("next_observation",), ("step", "next_observation"), ("episode_id", "step")])
@pytest.mark.filterwarnings("ignore::mixope.base.errors.MixopeWarning")
def test_fragments_are_the_rows_in_order(kind_of_file, kind, rows, absent, tmp_path):
    base = columns(kind)
    later = base["episode_id"] >= 30
    logs = written(
        {n: v for n, v in base.items() if n.partition(".")[0] not in absent}, kind_of_file, tmp_path, later=later
    )
    parts = [pickle.loads(pickle.dumps(fragment)) for fragment in logs.fragments(rows)]
    together = pa.concat_tables([part.table() for part in parts])
    assert together.combine_chunks().equals(logs.table().combine_chunks())
    assert len({part.key for part in parts}) == len(parts)
    if kind_of_file == "memory" and not absent and rows == 7:
        assert len(parts) == -(-logs.total_rows() // 7)
