"""An engine that ships everything: requests are pickled, fragments are opened and summed by other processes in any
order, and the parts are merged as a fixed tree. Its answers are those of the engine in memory, to the last byte.
"""

import itertools
import json
import pickle
import random
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from multiprocessing import get_context

import numpy as np
import pytest

from mixope.answers.answering import answer
from mixope.base.errors import MixopeError
from mixope.base.estimand import Estimand
from mixope.engines import MemoryEngine
from mixope.engines.protocol import put_back
from mixope.estimators import REGISTRY
from mixope.estimators.learned import LearnedValue
from mixope.requests.grouping import Aggregate, Grouped, Grouping
from mixope.requests.request import merge_in_order, partials
from mixope.session.session import look
from mixope.solvers.fitted_q import FittedQSettings
from mixope.uncertainty import choose_interval

from . import worlds
from .worlds import features, known, policy

pytestmark = pytest.mark.long

FRAGMENT = 41
WORLDS = {
    "ids": ("ids", "discrete", (0, 1)),
    "factors": ("factors", "discrete", ("down", "up")),
    "floats": ("floats", "discrete", (0, 1)),
    "floats, actions by name": ("floats", "discrete", ("down", "up")),
    "floats, continuous actions": ("floats", "continuous", (0, 1)),
    "ids, continuous actions": ("ids", "continuous", (0, 1)),
    "factors, continuous actions": ("factors", "continuous", (0, 1)),
}
UNSHIPPED = {"emp-neural", "fqe"}  # minutes of training: the same requests as emp, and one that is trained in no time
QUICK = LearnedValue(FittedQSettings(width=8, renewals=2, steps=2, batch=16))


GROUPING = Grouping(("observation", "action"), (Aggregate("rows", "count"), Aggregate("r", "sum", ("reward",))))


def _tables(world):
    rows = logs_of(world).table()
    return [rows.slice(low, 30) for low in range(0, rows.num_rows, 30)]


def work(shipped):
    """What runs in the other process: nothing but the worker on what came by pickle."""
    from threadpoolctl import threadpool_limits

    table, schema, requests, number = pickle.loads(shipped)
    with threadpool_limits(1):
        return pickle.dumps(partials(table, schema, requests, number))


class ShippingEngine(MemoryEngine):
    """Ships pickled fragments with pickled requests; ``pool`` None works them off here, one by one."""

    name = "shipping"

    def __init__(self, pool=None, fragment_rows=FRAGMENT, seed=0):
        super().__init__(fragment_rows)
        self.pool, self.order, self.sizes = pool, random.Random(seed), {}

    def group_sums(self, logs, grouping, lookup=None):
        (found,) = self.scan(logs, [Grouped(grouping, lookup)])
        return found

    def scan(self, logs, requests, expected_rows=None):
        answers = []
        for mine, tables in self.cut(logs, requests):
            self._weigh(mine)
            shipped = [pickle.dumps((rows, logs.schema, mine, k)) for k, rows in enumerate(self.sent(list(tables)))]
            self.order.shuffle(shipped)
            homes = map(work, shipped) if self.pool is None else self.pool.map(work, shipped, chunksize=4)
            parts = self.spoilt([pickle.loads(home) for home in homes])
            self.order.shuffle(parts)
            merged = merge_in_order(parts, expected_rows)
            answers += zip(mine, merged.partials, strict=True)
        return put_back(requests, answers)

    def _weigh(self, requests):
        for request in requests:
            name, size = type(request).__name__, len(pickle.dumps(request))
            self.sizes[name] = max(size, self.sizes.get(name, 0))

    def sent(self, tables):
        """What goes out."""
        return tables

    def spoilt(self, parts):
        """What comes home; some engines spoil it."""
        return parts


@pytest.fixture(scope="module")
def pool():
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as made:
        yield made


@cache
def rows_of(world, episodes):
    states, actions, names = WORLDS[world]
    return worlds.read(states, actions, names=names, episodes=episodes)


def logs_of(world, episodes=20):
    """Logs that nobody looked at: what a first scan found is kept with them, and no engine would be asked again."""
    return rows_of(world, episodes).twin()


def questions(world):
    states, actions, names = WORLDS[world]
    counted = states != "floats" and actions == "discrete"
    return {
        "kind": "counts" if counted else "features",
        "targets": {
            f"target {lean}": policy(states, actions, lean, names) for lean in ((0.6, 0.1) if counted else (0.6,))
        },
        "loggers": known(states, actions, names),
        "features": None if counted else features(states),
    }


def everything(world, engine, estimand, interval="auto"):
    """All that an evaluation gives, as text and bytes: records, scores, what was refused and why."""
    asked, refused = questions(world), []
    names = [name for name, entry in REGISTRY.items() if asked["kind"] in entry.takes and name not in UNSHIPPED]
    if asked["kind"] == "features" and estimand.kind == "discounted":
        names.append(QUICK)
    found = answer(
        look(logs_of(world), engine, asked["features"]), asked["targets"], names, loggers=asked["loggers"],
        estimand=estimand, interval=choose_interval(interval), skipped=refused,
    )  # fmt: skip
    records = {
        (e.target, e.estimator): (_record(e), _bytes(e.scores), _bytes(e.step_scores), _totals(e)) for e in found
    }
    return records, [(one.estimator, one.reason) for one in refused]


def _record(estimate):
    record = json.loads(estimate.to_json())
    assert record["provenance"].pop("engine") in ("memory", "shipping")
    return json.dumps(record)


def _totals(estimate):
    return [_bytes(getattr(estimate.episodes, name)) for name in ("logger", "rows", "reward", "starts", "ended")]


def _bytes(array):
    return None if array is None else (array.dtype.str, array.shape, np.ascontiguousarray(array).tobytes())


AVERAGE, DISCOUNTED, HORIZON = Estimand(), Estimand("discounted", 0.9), Estimand("horizon", horizon=4)
CASES = [
    *((world, AVERAGE) for world in WORLDS),
    *((world, DISCOUNTED) for world in ("ids", "factors", "floats, continuous actions")),
    *((world, HORIZON) for world in ("ids", "factors", "floats")),
]


@pytest.mark.parametrize(("world", "estimand"), CASES, ids=str)
def test_every_estimator_gives_the_same_bytes(world, estimand, pool):
    wanted, refused = everything(world, MemoryEngine(FRAGMENT), estimand)
    found, also_refused = everything(world, ShippingEngine(pool), estimand)
    assert refused == also_refused
    if estimand is AVERAGE and world != "ids, continuous actions":  # a density of actions is fitted to numbers
        assert refused == []
    assert len(wanted) >= (7 if estimand is HORIZON else 15), refused
    assert found.keys() == wanted.keys()
    for key in wanted:
        assert found[key] == wanted[key], key


@pytest.mark.parametrize("world", ["ids", "floats, continuous actions"])
def test_blocks_of_steps_give_the_same_bytes(world, pool):
    wanted, _ = everything(world, MemoryEngine(FRAGMENT), AVERAGE, "blocks")
    found, _ = everything(world, ShippingEngine(pool, seed=5), AVERAGE, "blocks")
    assert any(by_step is not None for _, _, by_step, _ in wanted.values())
    assert found == wanted


# --- what a request weighs


class WeighingEngine(ShippingEngine):
    """Pickles requests and works them off here."""


@pytest.mark.parametrize("world", ["ids", "factors", "floats", "floats, continuous actions"])
def test_requests_are_small_whatever_the_size_of_the_logs(world):
    """Nothing that is shipped holds the logs, their rows or a sample of them."""
    asked, weights = questions(world), []
    names = ["emp", "dr", "bch-pooled", "mwl", "sadl", "wis-step", "mis", "logged-mean"]
    for episodes in (30, 300):
        logs, engine = logs_of(world, episodes), WeighingEngine(fragment_rows=5000)
        target = next(iter(asked["targets"].values()))
        seen = look(logs, engine, asked["features"])
        answer(seen, {"new": target}, names, loggers=asked["loggers"], estimand=AVERAGE, skipped=[])
        weights.append((engine.sizes, logs.table().nbytes))
    (small, light), (large, heavy) = weights
    assert heavy > 8 * light
    assert small.keys() == large.keys()
    assert "Grouped" in small or "RatioSums" in small
    for name, size in large.items():
        assert size < 100_000, (name, size)
        assert size < 1.5 * small[name] + 20_000, (name, size, small[name])


# --- engines that lose things


class SpoilingEngine(ShippingEngine):
    """From the pass ``at`` on, or in it alone, parts are lost, doubled or cut short."""

    def __init__(self, spoil, at, alone=True):
        super().__init__()
        self.spoil, self.at, self.alone, self.passes = spoil, at, alone, 0

    @property
    def hit(self):
        return self.passes == self.at if self.alone else self.passes >= self.at

    def sent(self, tables):
        self.passes += 1
        return cut_short(tables) if self.hit and self.spoil is LOST_ROWS else tables

    def spoilt(self, parts):
        return self.spoil(parts) if self.hit else parts


def without(parts, number):
    return [part for part in parts if part.fragment != number]


def cut_short(tables):
    """The last rows of a fragment that a worker did not get to."""
    return [rows.slice(0, rows.num_rows - 3) if k == 1 else rows for k, rows in enumerate(tables)]


LOST_ROWS = list
SPOILS = {
    "a lost fragment": lambda parts: without(parts, 1),
    "a lost first fragment": lambda parts: without(parts, 0),
    "a lost last fragment": lambda parts: without(parts, max(part.fragment for part in parts)),
    "a doubled fragment": lambda parts: [*parts, parts[0]],
    "lost rows": LOST_ROWS,
}


@pytest.mark.parametrize(
    ("world", "passes", "spoil"),
    [*(("ids", 4, spoil) for spoil in SPOILS), *(("floats", 5, s) for s in ("a lost fragment", "lost rows"))],
)
def test_what_an_engine_loses_or_doubles_is_an_error_in_every_pass(world, passes, spoil):
    """Counts, survey and sample, moments, sums by episode, whole episodes: none of them takes a log with a hole."""
    asked = questions(world)

    def run(engine):
        seen = look(logs_of(world), engine, asked["features"])
        target = next(iter(asked["targets"].values()))
        names = ["bch-pooled", "wis-step", "logged-mean"]
        return answer(seen, {"new": target}, names, estimand=AVERAGE, interval=choose_interval("percentile", 2, 1))

    honest = SpoilingEngine(list, 0)
    run(honest)
    assert honest.passes == passes
    for at in range(1, passes + 1):
        with pytest.raises(MixopeError, match=r"the engine (lost|returned|saw)|the logs have"):
            run(SpoilingEngine(SPOILS[spoil], at))


def test_rows_that_an_engine_leaves_out_of_every_pass_are_missed_in_the_first():
    with pytest.raises(MixopeError, match=r"the engine saw \d+ rows in this scan, and the logs have"):
        look(logs_of("ids"), SpoilingEngine(SPOILS["a lost last fragment"], 1, alone=False))
    with pytest.raises(MixopeError, match=r"the engine saw \d+ rows in this scan, and the logs have"):
        look(logs_of("floats"), SpoilingEngine(SPOILS["lost rows"], 1, alone=False), features("floats"))


def test_the_order_in_which_parts_come_home_does_not_show():
    parts = [partials(table, logs_of("ids").schema, [Grouped(GROUPING)], k) for k, table in enumerate(_tables("ids"))]
    merged = {pickle.dumps(merge_in_order(order)) for order in itertools.islice(itertools.permutations(parts), 24)}
    assert len(parts) > 3
    assert len(merged) == 1
