"""A long episode is read in pieces, and is the same as if it had been read whole."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import mixope
from mixope.engines import EmbeddedEngine, MemoryEngine, embedded
from mixope.requests.trajectories import NumberedSteps
from mixope.session.session import count

from .logs import chain_log


@pytest.fixture(scope="module")
def counted(tmp_path_factory):
    _, _, columns = chain_log(3, episodes=4, horizon=50)
    path = tmp_path_factory.mktemp("log") / "log.parquet"
    pq.write_table(pa.table(columns), path)
    return count(mixope.read(path))


@pytest.mark.parametrize("rows", [1, 7, 49, 50, 51, 1000])
def test_steps_that_are_counted_in_pieces_are_those_of_whole_episodes(counted, rows, monkeypatch):
    monkeypatch.setattr(embedded, "episode_pieces", lambda *_: pytest.fail("an episode is put together to be read"))
    request = NumberedSteps(counted.numbers)
    (whole,) = MemoryEngine().scan(counted.logs, [request])
    (pieces,) = EmbeddedEngine(fragment_rows=rows).scan(counted.logs, [request])
    whole, pieces = whole.in_key_order(), pieces.in_key_order()
    assert pieces.episodes.keys.equals(whole.episodes.keys)
    for name in ("length", "terminated", "reward", "log_weight"):
        assert np.array_equal(getattr(pieces.episodes, name), getattr(whole.episodes, name))
    assert np.array_equal(pieces.group, whole.group)


def test_two_episodes_that_meet_at_a_border_stay_two(counted):
    (pieces,) = EmbeddedEngine(fragment_rows=50).scan(counted.logs, [NumberedSteps(counted.numbers)])
    assert pieces.episodes.length.tolist() == [50] * pieces.episodes.n_episodes
