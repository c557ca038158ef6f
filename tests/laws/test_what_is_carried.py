"""What a request carries changes its answer: one that carries more is not equal to others that ask the same."""

from dataclasses import fields, is_dataclass, replace

import numpy as np
import pytest

from mixope.behaviours import FittedBehaviour
from mixope.estimators.learned import Learned
from mixope.features import FittedMap
from mixope.features.actions import QuadraticActions
from mixope.policies import Policy
from mixope.worlds import linear_quadratic

from .requests import assert_same, examples, vector_logs
from .test_requests import answer

OTHER = linear_quadratic.loggers(4)[0]
#: Fitted things are carried whole: a map knows the range of its columns, though no row here lies outside it.
WHOLE = (FittedMap, FittedBehaviour, QuadraticActions, Learned)
#: No episode of these logs ends, and no example has a ratio without the fold that it weighs.
NOT_HERE = ("after", "value.start", "ratio.crossed", "coarse.crossed")


def carried(thing, path=""):
    """Every number, array of numbers and policy that a record holds, by the way to it, and how to put another there."""
    for each in fields(thing):
        value = getattr(thing, each.name)
        where = f"{path}.{each.name}".lstrip(".")
        if not (each.init and each.compare) or isinstance(value, bool):
            continue

        def put(new, name=each.name):
            return replace(thing, **{name: new})

        if isinstance(value, Policy):
            yield where, put(OTHER)
        elif isinstance(value, float):
            yield where, put(0.5 * value + 0.1)
        elif isinstance(value, np.ndarray) and value.dtype.kind == "f" and value.size:
            up_and_down = np.arange(value.size).reshape(value.shape) % 3 - 1
            yield where, put(value + 0.1 * (1.0 + np.abs(value)) * up_and_down)
        elif is_dataclass(value) and not isinstance(value, WHOLE):
            for inner, changed in carried(value, where):
                yield inner, put(changed)


KINDS = sorted({type(request).__name__ for request, logs in examples().values() if logs is vector_logs()})


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_request_carries_changes_its_answer(kind):
    table, idle, moved = vector_logs().table(), set(), set()
    for request, logs in examples().values():
        if type(request).__name__ == kind and logs is vector_logs():
            before = answer(request, logs, table)
            for where, other in carried(request):
                if where.removeprefix("request.") in NOT_HERE:
                    continue
                (idle if is_same(answer(other, logs, table), before) else moved).add(where)
    assert idle <= moved


def is_same(left, right):
    try:
        assert_same(left, right, share=0.0)
    except AssertionError:
        return False
    return True
