"""Scans are counted: as many as there are rounds, however many targets and estimators ask."""

import copy
import gc
import pickle
import weakref
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import mixope
from mixope.base.errors import DataError
from mixope.checks import CHECKS, Check
from mixope.policies import CallablePolicy
from mixope.requests.checksum import Checksum
from mixope.requests.grouping import Aggregate, Grouped, Grouping
from mixope.requests.request import content_key
from mixope.session.session import look

from . import worlds
from .worlds import Watching, features, known, policy, read

SIX = ["dr", "emp", "bch-pooled", "mwl", "lstdq", "logged-mean"]
TRAJECTORIES = ["is", "wis", "is-step", "wis-step", "mis", "mis-step"]
ON_COUNTS = [*SIX, "emp-single", "kl-emp", "model", "sadl", "dualdice", "known-mixture"]


def targets(states, actions, n=4):
    return {f"target {k}": policy(states, actions, 0.2 * k) for k in range(n)}


def compared(engine, states, actions, estimators, n=4, **options):
    given = features(states) if states == "floats" or actions == "continuous" else None
    logs = read(states, actions, episodes=20)
    return mixope.compare(
        logs, targets(states, actions, n), estimators, features=given, loggers=known(states, actions), engine=engine,
        **options,
    )  # fmt: skip


@pytest.mark.parametrize("actions", worlds.ACTIONS)
@pytest.mark.parametrize("given", [True, False], ids=["bumps given", "bumps choose themselves"])
@pytest.mark.parametrize("gamma", [None, 0.9])
def test_floats_take_four_scans_for_four_targets_and_six_estimators(actions, given, gamma):
    engine = Watching()
    logs = read("floats", actions, episodes=20)
    names = SIX if gamma is None else SIX[:-1]
    found = mixope.compare(
        logs, targets("floats", actions), names, gamma=gamma, engine=engine,
        features=features("floats") if given else None,
    )  # fmt: skip
    assert len(found) == 4 * len(names)
    assert engine.passes == (4, 0)


@pytest.mark.parametrize("states", ["ids", "factors"])
@pytest.mark.parametrize("n", [1, 5])
@pytest.mark.parametrize("longest", [0, 200_000])
def test_ids_take_two_scans_for_any_number_of_targets_and_estimators(states, n, longest, monkeypatch):
    """And where there are not many rows, one look at them in the order of their steps."""
    monkeypatch.setattr("mixope.session.session.MOST_ORDERED", longest)
    engine = Watching()
    found = compared(engine, states, "discrete", ON_COUNTS, n)
    assert len(found) == n * len(ON_COUNTS)
    assert engine.passes == (2, int(longest > 0))


@pytest.mark.parametrize(("states", "passes"), [("ids", (2, 1)), ("floats", (4, 0))])
def test_what_a_check_asks_of_the_rows_takes_no_scan_of_its_own(states, passes, monkeypatch):
    def count(schema):
        return [Grouped(Grouping(("policy_id",), (Aggregate("rows", "count"),)))]

    def judge(evidence):
        (found,) = evidence.answers["rows by logger"]
        return rows.diagnostic(found.column("rows").sum(), 0.0, "pass", "rows were counted")

    rows = Check("rows by logger", "data", "docs/verdicts.md", "", judge_logs=judge, needs=count)
    monkeypatch.setattr("mixope.checks.judges", lambda: {**CHECKS, rows.name: rows})
    engine = Watching()
    (found,) = compared(engine, states, "discrete", ["emp"], 1).estimates
    assert [d.value for d in found.diagnostics if d.name == rows.name] == [found.n_rows]
    assert engine.passes == passes


@pytest.mark.parametrize(("states", "actions"), [("ids", "discrete"), ("factors", "discrete")])
def test_trajectory_estimators_on_ids_take_one_pass_over_whole_episodes_more(states, actions):
    engine = Watching()
    assert len(compared(engine, states, actions, ["emp", *TRAJECTORIES], 3)) == 21
    assert engine.passes == (2, 1)


@pytest.mark.parametrize("actions", worlds.ACTIONS)
def test_trajectory_estimators_on_floats_take_one_pass_over_whole_episodes_more(actions):
    engine = Watching()
    assert len(compared(engine, "floats", actions, TRAJECTORIES, 3)) == 18
    assert engine.passes == (1, 1)  # the survey with its sample, and the episodes
    engine = Watching()
    compared(engine, "floats", actions, [*SIX, *TRAJECTORIES], 3)
    assert engine.passes == (4, 1)


def test_no_request_is_made_twice_in_a_run():
    engine = Watching()
    compared(engine, "floats", "discrete", [*SIX, *TRAJECTORIES], 2)
    keys = [
        content_key(request)
        for requests in engine.requests
        for request in requests
        if not isinstance(request, Checksum)
    ]
    assert len(keys) == len(set(keys))


@pytest.mark.parametrize(("states", "actions"), [("ids", "discrete"), ("factors", "discrete"), ("floats", "discrete")])
def test_what_is_read_off_an_estimate_costs_no_scan(states, actions):
    engine = Watching()
    found = compared(engine, states, actions, ["dr", "emp"], 2)
    before = engine.passes
    for estimate in found:
        assert estimate.to_json()
        assert str(estimate)
        for name in dir(estimate):
            if not name.startswith("_"):
                getattr(estimate, name)
    assert str(found)
    assert found.to_json()
    assert engine.passes == before


def test_logs_that_were_looked_at_are_not_looked_at_again():
    engine = Watching()
    seen = look(read("ids", "discrete"), engine)
    assert engine.passes == (1, 0)
    mixope.evaluate(seen, policy("ids", "discrete"))
    assert engine.passes == (2, 1)


# --- the policy is asked once


@dataclass
class Counting:
    """An action law that notes what it was asked."""

    inner: object
    asked: list = field(default_factory=list)
    actions = (0, 1)

    def __call__(self, observations):
        self.asked.append(np.array(observations))
        return self.inner(observations)


def never_left_on_top(columns):
    """Without the rows in which action 0 is taken in the highest place: part of the target is then not covered."""
    kept = (columns["observation"] != worlds.PLACES - 1) | (columns["action"] != 0)
    return {name: values[kept] for name, values in columns.items()}


def broken_up(columns):
    """Every row an episode of its own, so that dropping rows leaves no gap."""
    n = len(columns["step"])
    return {**columns, "episode_id": np.arange(n), "step": np.zeros(n, dtype=np.int64)}


@pytest.mark.parametrize("estimators", [["emp"], ["emp", "dr", "bch-pooled", "model", "wis-step", "mwl", "opt-emp"]])
def test_a_policy_is_asked_once_for_each_distinct_pair_of_ids(estimators):
    """Also where something is uncovered, which restricts the problem and calls for an outer band."""
    law = Counting(worlds.Law("ids", 0.6))
    columns = broken_up(never_left_on_top(worlds.columns("ids", "discrete", episodes=40)))
    found = mixope.compare(columns, {"new": CallablePolicy(law)}, estimators, engine=Watching())
    assert all(e.band is not None for e in found if e.estimator != "logged-mean")
    asked = np.concatenate(law.asked)
    pairs = len({*zip(columns["observation"].tolist(), columns["action"].tolist(), strict=True)})
    assert pairs == 11
    assert len(asked) <= pairs + worlds.PLACES  # each pair once, and each state once for what was never logged
    assert len(law.asked) <= 2


def test_on_floats_a_policy_is_asked_at_most_once_for_each_row_and_scan():
    law = Counting(worlds.Law("floats", 0.6))
    engine = Watching(threads=1)
    columns = worlds.columns("floats", "discrete", episodes=20)
    n = len(columns["step"])
    starts = int((columns["step"] == 0).sum())
    names = ["dr", "emp", "bch-pooled", "mwl", "sadl", "lstdq"]
    mixope.compare(columns, {"new": CallablePolicy(law)}, names, features=features("floats"), engine=engine)
    assert engine.passes == (4, 0)
    per_scan = 2 * n + starts  # here and at the next state; the first states apart
    assert sum(map(len, law.asked)) <= 3 * (per_scan + n)


# --- what was read once is kept with the logs


def passes_of(work, engine):
    before = engine.passes
    found = work()
    return found, tuple(now - then for now, then in zip(engine.passes, before, strict=True))


QUESTIONS = {
    "evaluate": lambda logs, law, other, engine: mixope.evaluate(logs, law, engine=engine),
    "compare": lambda logs, law, other, engine: mixope.compare(logs, {"one": law, "two": other}, engine=engine),
    "backtest": lambda logs, law, other, engine: mixope.backtest(logs, engine=engine),
    "inspect": lambda logs, law, other, engine: mixope.inspect(logs, law, engine=engine),
}


@pytest.mark.parametrize("states", ["ids", "factors", "floats"])
@pytest.mark.parametrize("asked", QUESTIONS)
@pytest.mark.parametrize("first", QUESTIONS)
def test_a_second_question_to_the_same_logs_reads_nothing_again(states, first, asked):
    """It scans for what hangs on the policies, and says what it says of logs that nobody asked before."""
    engine, logs = Watching(), read(states, "discrete", episodes=20)
    law, other = policy(states, "discrete"), policy(states, "discrete", 0.1)
    alone, cost = passes_of(lambda: QUESTIONS[asked](read(states, "discrete", episodes=20), law, other, engine), engine)
    QUESTIONS[first](logs, other, law, engine)
    again, less = passes_of(lambda: QUESTIONS[asked](logs, law, other, engine), engine)
    assert again.to_json() == alone.to_json()
    if asked == "inspect":
        assert less == ((0, 0) if first == "inspect" else (1, 0))  # the totals of episodes, which no answer needs
    elif states == "floats":
        assert less == (cost[0] - 1, 0)
    else:
        assert less == (1, 0)  # for scores by episode


def test_another_engine_another_kind_of_question_and_another_seed_of_a_sample_look_for_themselves():
    logs, law = read("ids", "discrete", episodes=20), policy("ids", "discrete")
    mixope.evaluate(logs, law, engine=Watching())
    for options in ({"engine": Watching(fragment_rows=50)}, {"features": features("ids")}):
        engine = options.setdefault("engine", Watching())
        alone = mixope.evaluate(read("ids", "discrete", episodes=20), law, **options)
        cost = engine.passes
        assert mixope.evaluate(logs, law, **options).to_json() == alone.to_json()
        assert engine.passes == tuple(2 * n for n in cost)
    logs, law, engine = read("floats", "discrete", episodes=20), policy("floats", "discrete"), Watching()
    mixope.evaluate(logs, law, "emp", engine=engine)
    seeded = passes_of(lambda: mixope.evaluate(logs, law, "emp", engine=engine, seed=1), engine)[1]
    assert passes_of(lambda: mixope.evaluate(logs, law, "emp", engine=engine, seed=1), engine)[1][0] == seeded[0] - 1


def test_what_is_kept_goes_with_the_logs_and_is_not_pickled():
    logs = read("ids", "discrete", episodes=20)
    mixope.evaluate(logs, policy("ids", "discrete"))
    mixope.inspect(logs)
    copied = pickle.loads(pickle.dumps(logs))
    assert not any(known._kept for known in (copied, copy.copy(logs), logs.within("1GB", 1)))
    gone = weakref.ref(logs)
    gc.disable()
    try:
        del logs
        assert gone() is None  # nothing that is kept refers back to them
    finally:
        gc.enable()


def test_a_file_that_changed_is_an_error_though_its_first_scan_is_kept(tmp_path):
    columns, law = worlds.columns("ids", "discrete", episodes=20), policy("ids", "discrete")
    file = tmp_path / "logs.parquet"
    pq.write_table(pa.table(columns), file)
    logs = mixope.read(file)
    mixope.evaluate(logs, law)
    mixope.inspect(logs)
    pq.write_table(pa.table({**columns, "reward": columns["reward"] + 1.0}), file)
    for question in QUESTIONS.values():
        with pytest.raises(DataError):
            question(logs, law, law, None)


def test_kept_logs_answer_from_several_threads_as_from_one():
    logs, laws = read("ids", "discrete", episodes=20), [policy("ids", "discrete", 0.1 * k) for k in range(4)]
    alone = [mixope.evaluate(read("ids", "discrete", episodes=20), law).to_json() for law in laws]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda law: mixope.evaluate(logs, law).to_json(), [*laws, *laws]))
    assert found == [*alone, *alone]


def test_logs_that_forget_are_read_again():
    engine, logs, law = Watching(), read("ids", "discrete", episodes=20), policy("ids", "discrete")
    mixope.evaluate(logs, law, engine=engine)
    assert engine.passes == (2, 1)
    logs.forget()
    mixope.evaluate(logs, law, engine=engine)
    assert engine.passes == (4, 2)
