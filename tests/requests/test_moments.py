"""The processor adds up what the terms of a request say, as sums written out by hand do."""

import numpy as np
import pyarrow as pa
import pytest

from laws.requests import examples, kinds, vector_logs
from laws.slow_moments import moments_of
from mixope.requests.moments import MomentRequest
from mixope.requests.request import Batch, slices
from mixope.requests.rows import TIMES, row_columns

MOMENTS = [name for name, (request, _) in examples().items() if isinstance(request, MomentRequest)]


def table_of(kind):
    """Rows as they were logged, or of which some ended, some began an episode and all happened several times."""
    logs = vector_logs()
    table = logs.table((*row_columns(logs.schema), "step"))
    if kind == "as logged":
        return table
    draw, n = np.random.default_rng(0), table.num_rows
    for name, values in {"terminated": draw.random(n) < 0.2, "start": draw.random(n) < 0.3}.items():
        table = table.set_column(table.column_names.index(name), name, pa.array(values))
    return table.append_column(TIMES, pa.array(draw.integers(0, 4, n).astype(float)))


def test_every_kind_of_moments_is_among_the_examples():
    asked = {type(examples()[name][0]) for name in MOMENTS}
    assert asked == {kind for kind in kinds() if issubclass(kind, MomentRequest)}


@pytest.mark.parametrize("kind", ["as logged", "ended, begun and counted"])
@pytest.mark.parametrize("name", MOMENTS)
def test_terms_are_added_up_as_sums_written_out_by_hand(name, kind):
    request, schema, table = examples()[name][0], vector_logs().schema, table_of(kind)
    expected = moments_of(request, slices(table, schema))
    found = request.of(Batch(table, schema))
    assert (found.n_rows, found.belongs_to) == (expected.n_rows, expected.belongs_to)
    assert found.arrays.keys() == expected.arrays.keys()
    for each, array in expected.arrays.items():
        assert found[each].shape == array.shape, each
        assert found[each].dtype == np.float64
        share = 1e-5 if any(getattr(features, "single", False) for features in request.maps) else 1e-11
        np.testing.assert_allclose(found[each], array, rtol=0, atol=share * np.abs(array).max(), err_msg=each)
