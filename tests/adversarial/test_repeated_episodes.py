"""Episodes that are copies of others are counted and bear on the verdict; those that are alike by chance do not."""

import numpy as np
import pytest

import mixope
from mixope import worlds
from mixope.checks import check_logs
from mixope.requests.episodes import score_lookup
from mixope.requests.grouping import Grouped
from mixope.requests.repeats import common_divisor, grouped_alike, make_marks
from mixope.session.session import count, look

TARGET = mixope.TabularPolicy(worlds.target(worlds.make("singlepath"), seed=0))


def repeated(columns, times=2, share=1.0, seed=0, label=None):
    """Some of the episodes once more under new ids (and by another logger), all rows in another order."""
    columns = {name: np.asarray(values) for name, values in columns.items()}
    generator, ids = np.random.default_rng(seed), columns["episode_id"]
    again = np.isin(ids, [e for e in np.unique(ids) if generator.random() < share])
    parts = [columns]
    for number in range(1, times):
        part = {name: values[again] for name, values in columns.items()}
        part["episode_id"] = part["episode_id"] + 10_000 * number
        if label:
            part["policy_id"] = np.full(int(again.sum()), label)
        parts.append(part)
    order = generator.permutation(sum(len(part["reward"]) for part in parts))
    return {name: np.concatenate([part[name] for part in parts])[order] for name in columns}


def check(columns, engine=None):
    """What is said of repeated episodes."""
    seen = look(mixope.read(columns), engine)
    sums = seen.rounds().run(seen.structure())
    (found,) = [d for d in check_logs(getattr(seen, "transitions", None), sums) if d.name == "repeated episodes"]
    return found


def in_world(name, episodes, steps, seed=0):
    model = worlds.make(name)
    return worlds.simulate(model, worlds.stages(model, 3, seed=0), episodes, steps, seed=seed)


def of_vectors(episodes=40, steps=10, seed=0):
    """Measured states: no two are alike."""
    generator = np.random.default_rng(seed)
    state = generator.normal(size=(episodes, steps + 1, 2))
    return {
        "episode_id": np.repeat(np.arange(episodes), steps),
        "step": np.tile(np.arange(steps), episodes),
        **{f"observation.{k}": state[:, :-1, k].ravel() for k in range(2)},
        **{f"next_observation.{k}": state[:, 1:, k].ravel() for k in range(2)},
        "action": generator.integers(2, size=episodes * steps),
        "reward": generator.normal(size=episodes * steps),
    }


def as_floats(columns):
    """Ids written as vectors: states that do come again."""
    given = {name: values for name, values in columns.items() if "observation" not in name}
    for name in ("observation", "next_observation"):
        state = np.asarray(columns[name]).astype(float)
        given |= {f"{name}.x": state + 0.5, f"{name}.y": -state + 0.25}
    return given


def bandit(episodes=400, seed=0, users=50):
    """Sessions of one step with measured rewards."""
    generator = np.random.default_rng(seed)
    n = episodes
    return {
        "episode_id": np.arange(n),
        "step": np.zeros(n, dtype=int),
        "observation": generator.integers(users, size=n),
        "action": generator.integers(2, size=n),
        "reward": generator.normal(size=n),
        "next_observation": np.zeros(n, dtype=int),
        "terminated": np.ones(n, dtype=bool),
    }


WORLDS = ("singlepath", "gridworld", "walk", "machines", "sessions", "survival", "queue", "frozenlake", "blackjack")
HEALTHY = {
    **{f"{name} {n}x{t}": (in_world, (name, n, t)) for name in WORLDS for n, t in [(40, 30), (400, 3), (1000, 1)]},
    "vectors": (of_vectors, ()),
    "vectors of one step": (of_vectors, (400, 1)),
    "ids as floats": (lambda: as_floats(in_world("frozenlake", 300, 50)), ()),
    "one step as floats": (lambda: as_floats(bandit() | {"reward": np.ones(400)}), ()),
    "one step": (bandit, ()),
    "one step, few prices": (lambda: bandit() | {"reward": np.log(np.random.default_rng(1).integers(2, 20, 400))}, ()),
    "one step, one reward": (lambda: bandit(users=3) | {"reward": np.ones(400)}, ()),
}


@pytest.mark.parametrize("name", HEALTHY)
def test_episodes_that_come_out_alike_by_chance_are_no_copies(name):
    make, given = HEALTHY[name]
    found = check(make(*given))
    assert (found.value, found.status) == (0.0, "pass")


@pytest.mark.parametrize("engine", ["memory", "embedded"])
@pytest.mark.parametrize("times", [2, 4, 10])
def test_copies_under_new_ids_do_not_pass(times, engine):
    result = mixope.evaluate(repeated(in_world("singlepath", 40, 30), times), TARGET, "emp", engine=engine)
    (found,) = [d for d in result.diagnostics if d.name == "repeated episodes"]
    assert found.value == pytest.approx(1 - 1 / times)
    assert found.status == "fail"
    assert result.verdict.value == "not supported by these logs"
    assert "episode 10000 of logger-0 is one of episode 0 of logger-0" in found.sentence


COPIED = {
    "by another logger": (lambda: repeated(in_world("gridworld", 40, 30), label="new"), 0.5),
    "some of the episodes": (lambda: repeated(in_world("singlepath", 200, 30), share=0.1), 0.08),
    "games of few steps": (lambda: repeated(in_world("blackjack", 300, 50)), 0.5),
    "one step, thrice": (lambda: repeated(in_world("machines", 1000, 1), 3), 2 / 3),
    "measured rewards of one step": (lambda: repeated(bandit(users=4), share=0.3), 0.2),
    "vectors": (lambda: repeated(of_vectors()), 0.5),
    "some of the vectors": (lambda: repeated(of_vectors(200), share=0.1), 0.08),
    "vectors of one step": (lambda: repeated(of_vectors(400, 1)), 0.5),
    "ids as floats": (lambda: repeated(as_floats(in_world("singlepath", 100, 50))), 0.5),
}


@pytest.mark.parametrize("name", COPIED)
def test_copies_of_any_kind_are_counted(name):
    make, share = COPIED[name]
    found = check(make())
    assert found.value >= 0.9 * share
    assert found.status == ("warn" if share <= 0.25 else "fail")


def test_a_logger_that_was_exported_twice_is_found_among_others():
    once = in_world("blackjack", 600, 50)
    mine = once["policy_id"] == "logger-1"
    again = repeated({name: values[mine] for name, values in once.items()})
    both = {name: np.concatenate([values[~mine], again[name]]) for name, values in once.items()}
    assert check(both).status == "fail"
    assert check(once).status == "pass"


def test_a_deterministic_logger_repeats_itself():
    """One start, one path: nothing tells a copy from another run."""
    steps = 25
    path = {
        "observation": np.arange(steps),
        "action": np.arange(steps) % 2,
        "next_observation": np.arange(1, steps + 1),
    }
    logs = {name: np.tile(values, 100) for name, values in path.items()}
    logs |= {"episode_id": np.repeat(np.arange(100), steps), "step": np.tile(np.arange(steps), 100)}
    assert check({**logs, "reward": np.zeros(100 * steps)}).status == "pass"


def test_the_order_of_the_rows_makes_the_episode():
    """The same transitions in another order, with the same sums by step, are another episode."""
    generator, nothing = np.random.default_rng(0), np.zeros(160, dtype=int)
    columns = {
        "episode_id": np.repeat(np.arange(40), 4),
        "step": np.tile(np.arange(4), 40),
        "observation": nothing,
        "action": np.concatenate([[0, 1, 1, 0] if generator.random() < 0.5 else [1, 0, 0, 1] for _ in range(40)]),
        "reward": nothing * 1.0,
        "next_observation": nothing,
    }
    seen = count(columns)
    marks = make_marks(seen.transitions)
    lookup, grouping = score_lookup(seen.transitions, seen.groups, seen.logs.schema, [], 0, None, (), marks)
    (groups,) = seen.rounds().ask([Grouped(grouping, lookup)])
    by_content = np.unique(groups.column("content"), return_inverse=True)[1]
    assert np.array_equal(by_content == by_content[0], columns["action"][::4] == columns["action"][0])


@pytest.mark.parametrize("kind", ["counts", "vectors"])
def test_engines_agree_on_what_is_alike(kind):
    columns = repeated(in_world("frozenlake", 200, 30) if kind == "counts" else of_vectors(), share=0.2)
    memory, embedded = (check(columns, engine=name) for name in ("memory", "embedded"))
    assert (memory.value, memory.sentence) == (embedded.value, embedded.sentence)
    assert memory.value > 0.1


def test_near_values_are_alike_and_others_are_not():
    values, slack = np.array([1.0, 2.0, 1.0 + 1e-13, np.nan, np.nan, 1.5]), np.full(6, 1e-12)
    group = grouped_alike([(values, slack), (np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.0]), np.zeros(6))])
    assert group[0] == group[2]
    assert len(set(group.tolist())) == 5
    assert common_divisor(np.array([2, 4, 6] * 10)) == 2
    assert common_divisor(np.array([2, 4, 6] * 10 + [3])) == 1
    assert common_divisor(np.array([1000] * 4)) == 1
