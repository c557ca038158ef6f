"""One contract for every estimator on vectors: what may change without changing the answer, and what moves with it.

rewards × k            value × k, all of them, exactly
rewards + c            value + c: exactly where weights are self-normalised or an average is solved for; with a
                       discount the value models carry c/(1−γ) in a ridge of 1e-6, hence to 1e-3
                       (``is``, ``is-step``, ``mis``, ``mis-step`` do not normalise)
shuffled rows, other labels, two tables instead of one: nothing
"""

from functools import cache

import numpy as np
import pytest

import mixope
from mixope.behaviours import known_rows
from mixope.engines import MemoryEngine
from mixope.environments import continuous, linear_quadratic
from mixope.errors import MixopeError, UsageError
from mixope.estimators import REGISTRY
from mixope.estimators.vector import VECTOR_REGISTRY
from mixope.evaluation import as_estimand
from mixope.features import NormalisedBumps
from mixope.vectors import run_vectors, scan

from .worlds import SYSTEM, TARGET

LOGGERS = linear_quadratic.loggers(4)[2:]
LABELS = ("logger-0", "logger-1")
SHIFT, SCALE = 2.5, -3.0
GAMMAS = (None, 0.9)
UNNORMALISED = ("is", "is-step", "mis", "mis-step")
BY_EPISODES = ("is", "wis", "is-step", "wis-step", "mis", "mis-step", "logged-mean")

each = pytest.mark.parametrize("name", VECTOR_REGISTRY)
discount = pytest.mark.parametrize("gamma", GAMMAS, ids=["average", "discounted"])


@cache
def columns():
    return continuous.simulate(SYSTEM, LOGGERS, 12, 40, seed=1)


def changed_reward(change):
    return mixope.read({**columns(), "reward": change(columns()["reward"])})


def shuffled():
    order = np.random.default_rng(5).permutation(480)
    return mixope.read({name: values[order] for name, values in columns().items()})


def renamed():
    """Other labels in another order."""
    names = dict(zip(LABELS, ("zoe", "adam"), strict=True))
    return mixope.read({**columns(), "policy_id": np.array([names[label] for label in columns()["policy_id"]])})


def split():
    half = columns()["episode_id"] % 3 == 0
    return mixope.read(*({name: values[mask] for name, values in columns().items()} for mask in (half, ~half)))


VARIANTS = {
    "as it is": lambda: mixope.read(columns()),
    "again": lambda: mixope.read(columns()),
    "shifted": lambda: changed_reward(lambda r: r + SHIFT),
    "scaled": lambda: changed_reward(lambda r: r * SCALE),
    "shuffled": shuffled,
    "renamed": renamed,
    "split": split,
}


@cache
def answers(variant, gamma):
    """Every estimator: its estimate, or its refusal. The known mixture goes by shares of loggers, to be quick."""
    labels = ("zoe", "adam") if variant == "renamed" else LABELS
    scanned = scan(VARIANTS[variant](), MemoryEngine(), NormalisedBumps(15))
    found, ask = (
        {},
        {"estimand": as_estimand("average", gamma, None), "loggers": dict(zip(labels, LOGGERS, strict=True))},
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(known_rows, "DEFAULTS", {})
        for name in VECTOR_REGISTRY:
            try:
                (found[name],) = run_vectors(scanned, {"new": TARGET}, [name], **ask)
            except MixopeError as refusal:
                found[name] = refusal
    return found


def pair(request, variant, name, gamma):
    """The estimate as it is and under the variant."""
    if name == "logged-mean" and gamma is not None:
        pytest.skip("the logged mean has no discount")
    before, after = answers("as it is", gamma)[name], answers(variant, gamma)[name]
    assert not isinstance(before, MixopeError), str(before)
    assert not isinstance(after, MixopeError), str(after)
    return before, after


@each
@discount
def test_scaling_rewards_scales_the_value(request, name, gamma):
    before, after = pair(request, "scaled", name, gamma)
    assert after.value == pytest.approx(SCALE * before.value, rel=1e-7, abs=1e-9)
    if before.standard_error:
        assert after.standard_error == pytest.approx(abs(SCALE) * before.standard_error, rel=1e-6)


@each
@discount
def test_shifting_rewards_shifts_the_value(request, name, gamma):
    before, after = pair(request, "shifted", name, gamma)
    if name in UNNORMALISED:
        assert abs(after.value - before.value - SHIFT) > 1e-3
        return
    exact = gamma is None or name not in ("lstdq", "dr")
    assert after.value == pytest.approx(before.value + SHIFT, abs=1e-8 if exact else 1e-3)


@each
def test_the_same_question_has_the_same_answer_to_the_last_digit(request, name):
    before, after = pair(request, "again", name, None)
    assert after.to_json() == before.to_json()


@each
@discount
def test_the_order_of_rows_does_not_matter(request, name, gamma):
    before, after = pair(request, "shuffled", name, gamma)
    assert after.value == pytest.approx(before.value, abs=1e-8)


@each
@discount
def test_the_names_of_loggers_do_not_matter(request, name, gamma):
    before, after = pair(request, "renamed", name, gamma)
    assert after.value == pytest.approx(before.value, abs=1e-6)


@each
def test_two_tables_say_what_one_says(request, name):
    before, after = pair(request, "split", name, None)
    assert after.value == pytest.approx(before.value, abs=1e-8)


@each
def test_the_estimate_is_complete(request, name):
    estimate, _ = pair(request, "again", name, None)
    assert estimate.estimator == name
    assert np.isfinite(estimate.value)
    assert (estimate.n_rows, estimate.n_episodes) == (480, 12)
    if estimate.interval is None:
        assert estimate.no_interval_because
    else:
        assert estimate.interval.low < estimate.value < estimate.interval.high


@each
def test_a_horizon_is_answered_or_refused(name):
    logs = mixope.read(columns())
    ask = {"features": NormalisedBumps(15), "loggers": dict(zip(LABELS, LOGGERS, strict=True)), "horizon": 5}
    if name in ("is", "wis", "is-step", "wis-step", "mis", "mis-step"):
        assert np.isfinite(mixope.evaluate(logs, TARGET, name, **ask).value)
        return
    with pytest.raises(UsageError, match=r"horizon|discounted"):
        mixope.evaluate(logs, TARGET, name, **ask)


def test_vector_names_are_tabular_names():
    assert set(VECTOR_REGISTRY) <= set(REGISTRY)


@pytest.mark.parametrize("name", sorted(set(REGISTRY) - set(VECTOR_REGISTRY)))
def test_what_must_count_says_so(name):
    with pytest.raises(UsageError, match="can be counted"):
        mixope.evaluate(mixope.read(columns()), TARGET, name)


def test_an_unknown_name_is_answered_with_the_nearest():
    with pytest.raises(UsageError, match="Did you mean 'dualdice'"):
        mixope.evaluate(mixope.read(columns()), TARGET, "dualdic")
