"""A lazy frame is evaluated on the cluster that it came from, if this process is connected to one."""

import importlib.util

import numpy as np
import pytest

import mixope
from engine_list import IN_PROCESS
from laws.requests import id_logs

from .workers import missing, started

pytestmark = pytest.mark.long
POLICY = mixope.TabularPolicy(np.random.default_rng(1).dirichlet([3, 3], size=6))


def rows():
    table = id_logs().table().drop_columns(["source", "start"])
    return table.rename_columns([{"propensity": "action_prob"}.get(name, name) for name in table.column_names])


def assert_evaluated(frame, engine):
    found, wanted = mixope.evaluate(frame, POLICY), mixope.evaluate(rows(), POLICY)
    assert found.provenance.engine == engine
    assert found.value == pytest.approx(wanted.value, rel=1e-12)


@pytest.mark.skipif(importlib.util.find_spec("dask") is None, reason="pip install 'dask[dataframe]'")
def test_a_frame_of_dask_without_a_cluster_is_evaluated_here():
    import dask.dataframe as dd

    assert_evaluated(dd.from_pandas(rows().to_pandas(), npartitions=3), "embedded")
    assert "embedded" in IN_PROCESS


@pytest.mark.skipif(missing("dask") is not None, reason=str(missing("dask")))
def test_a_frame_of_dask_with_a_client():
    import dask.dataframe as dd

    with started("dask").client.as_current():
        assert_evaluated(dd.from_pandas(rows().to_pandas(), npartitions=3), "dask")


@pytest.mark.skipif(missing("spark") is not None, reason=str(missing("spark")))
@pytest.mark.filterwarnings("ignore:.*pandas:FutureWarning")
def test_a_frame_of_spark():
    session = started("spark")._connected()
    assert_evaluated(session.createDataFrame(rows().to_pandas()), "spark")


@pytest.mark.skipif(missing("ray") is not None, reason=str(missing("ray")))
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning", "ignore::FutureWarning")
def test_a_data_set_of_ray():
    ray = started("ray")._connected()
    assert_evaluated(ray.data.from_arrow(rows()), "ray")
