"""What every estimator of the registry must satisfy, whatever it computes; new entries are found by themselves.

rewards × k                    value × k, and interval with it
rewards + c                    value + c, interval with it, where weights are normalised
rewards of one                 earn one
rows shuffled, columns reversed, episodes dealt to two tables; states, actions, loggers renamed       nothing changes

The exceptions are listed here, and nowhere else.
"""

import numpy as np
import pytest

import mixope
from mixope.base.errors import MixopeError, UsageError
from mixope.estimators import REGISTRY

from .worlds import LABELS, OTHER_LABELS, SCALE, SHIFT, TINY, WORLDS, answers, takers, world

#: Their weights are not normalised: the mean weight is one in expectation only.
NOT_NORMALISED = {"is", "is-step", "mis", "mis-step"}
#: A state–action law has no time, and the mean of the logs no discount.
REFUSES = {
    **{key: {"horizon"} for key in ("sadl", "mwl", "dualdice")},
    **{key: {"episode"} for key in ("is", "wis", "is-step", "wis-step", "mis", "mis-step")},  # these episodes were cut
    "logged-mean": {"discounted", "horizon", "episode"},
}
#: There is one stationary ratio per discount: on features, these alone have a horizon.
HORIZON_ON_FEATURES = {"is", "wis", "is-step", "wis-step", "mis", "mis-step", "lstdq", "fqe"}
#: A plug-in value has no score, hence no interval: on counted ids it is the model, which has one.
NO_INTERVAL = {"lstdq"}
#: With a ridge of 1e-6 a value model on features does not carry a constant for ever, or over a horizon, exactly.
RIDGED = {("dr", "discounted"), ("lstdq", "discounted"), ("lstdq", "horizon")}
#: Of loggers that are equally near to the target in a state (as where none takes its action) the first counts.
TIES = {("kl-emp", "factors"), ("bch-kl-pooled", "factors")}


def refused(name, where, estimand):
    on_features = world(where).kind == "features" and estimand == "horizon" and name not in HORIZON_ON_FEATURES
    return estimand in REFUSES.get(name, ()) or on_features


ALL = [(n, where, estimand) for where in WORLDS for estimand in world(where).estimands for n in takers(where)]
EACH = [each for each in ALL if not refused(*each)]
each = pytest.mark.parametrize(("name", "where", "estimand"), EACH)


def tolerance(name, where, estimand):
    """Of a constant that should be earned exactly."""
    return 2e-3 if (name, estimand) in RIDGED and world(where).kind == "features" else 1e-8


def ends(where, estimand):
    """Where an end earns nothing for ever, a constant is not earned in full."""
    return "end" in where and estimand != "average"


def pair(name, where, estimand, variant):
    before, after = (answers(where, v, estimand)[name] for v in ("as it is", variant))
    assert not isinstance(before, str), before
    assert not isinstance(after, str), after
    return before, after


def assert_moved(before, after, scale=1.0, shift=0.0, rel=1e-7):
    """The value and its interval are scaled and shifted; what does not look at rewards is the same."""
    size = rel * (abs(scale * before.value) + abs(shift) + abs(scale) * (before.standard_error or 0.0))
    assert after.value == pytest.approx(scale * before.value + shift, abs=size)
    assert (after.interval is None) == (before.interval is None)
    if before.interval is None:
        assert after.no_interval_because == before.no_interval_because
    else:
        assert after.standard_error == pytest.approx(abs(scale) * before.standard_error, rel=1e-6, abs=size)
        wanted = sorted(scale * end + shift for end in (before.interval.low, before.interval.high))
        assert [after.interval.low, after.interval.high] == pytest.approx(wanted, abs=10 * size)
        assert after.interval.method == before.interval.method
    assert after.verdict == before.verdict
    assert [(d.name, d.status) for d in after.diagnostics] == [(d.name, d.status) for d in before.diagnostics]
    assert_same_weights(before, after)
    assert_same_rivals(before, after, scale, shift)


def assert_same_rivals(before, after, scale, shift):
    """What loggers earn themselves moves as the value does, and the difference with it; whatever they are called."""
    (*mine, all_mine), (*theirs, all_theirs) = ([found for _, found in e.rivals] for e in (before, after))
    mine = sorted(mine, key=lambda found: scale * (found.value or 0.0))
    theirs = sorted(theirs, key=lambda found: found.value or 0.0)
    for old, new in zip([*mine, all_mine], [*theirs, all_theirs], strict=True):
        assert ((new.value is None), new.method) == ((old.value is None), old.method)
        if old.value is not None:
            size = 1e-6 * (abs(scale * old.value) + abs(shift) + abs(scale) * old.interval.width)
            assert new.value == pytest.approx(scale * old.value + shift, abs=size)
        assert (new.difference is None) == (old.difference is None)
        if old.difference is not None:
            assert new.difference.value == pytest.approx(scale * old.difference.value, abs=10 * size)
            assert new.difference.standard_error == pytest.approx(abs(scale) * old.difference.standard_error, rel=1e-5)


def assert_same_weights(before, after):
    assert after.effective_sample_size == pytest.approx(before.effective_sample_size, rel=1e-6)
    assert after.uncovered_mass == pytest.approx(before.uncovered_mass, abs=1e-9)
    assert after.outside_mass == pytest.approx(before.outside_mass, abs=1e-9)
    assert (after.n_rows, after.n_episodes, after.n_dropped) == (before.n_rows, before.n_episodes, before.n_dropped)
    assert [b.rows_share for b in after.weights] == pytest.approx([b.rows_share for b in before.weights], abs=1e-6)
    assert [b.weight_share for b in after.weights] == pytest.approx([b.weight_share for b in before.weights], abs=1e-6)
    shares = [sorted((s.rows, s.weight_share or 0.0) for s in e.loggers) for e in (before, after)]
    assert np.array(shares[1]) == pytest.approx(np.array(shares[0]), abs=1e-6)


@each
def test_an_estimate_is_complete(name, where, estimand):
    found, _ = pair(name, where, estimand, "as it is")
    assert (found.estimator, found.estimand.kind) == (name, estimand)
    assert np.isfinite(found.value)
    assert found.n_rows == len(world(where).columns["step"])
    if found.interval is None:
        assert name in NO_INTERVAL
        assert found.no_interval_because
    else:
        assert found.standard_error > 0
        assert found.interval.low < found.value < found.interval.high


@pytest.mark.parametrize(("name", "where", "estimand"), [each for each in ALL if refused(*each)])
def test_what_an_estimator_lacks_it_refuses_by_name(name, where, estimand):
    assert repr(name) in answers(where, "as it is", estimand)[name]


@pytest.mark.parametrize(("name", "where", "estimand"), [each for each in EACH if each[2] == "average"])
def test_the_same_question_has_the_same_answer_to_the_last_digit(name, where, estimand):
    before, after = pair(name, where, estimand, "again")
    assert after.to_json() == before.to_json()


@each
def test_neither_order_nor_tables_matter(name, where, estimand):
    before, after = pair(name, where, estimand, "rearranged")
    assert_moved(before, after)
    assert after.alerts == before.alerts


@each
def test_names_do_not_matter(name, where, estimand):
    before, after = pair(name, where, estimand, "renamed")
    if (name, where) in TIES:
        assert after.value != before.value
        return
    assert_moved(before, after)
    said = "\n".join(after.alerts)
    for old, new in zip(LABELS, OTHER_LABELS, strict=True):
        said = said.replace(new, old)
    assert said == "\n".join(before.alerts)


@each
def test_scaled_rewards_scale_the_value_and_the_interval(name, where, estimand):
    assert_moved(*pair(name, where, estimand, "scaled"), scale=SCALE)


@each
def test_shifted_rewards_shift_the_value_and_the_interval(name, where, estimand):
    """value(r + c) = value(r) + c value(1), for every estimator: no ratio and no weight looks at rewards."""
    before, after = pair(name, where, estimand, "shifted")
    earned = 1.0 if not ends(where, estimand) else answers(where, "ones", estimand)[name].value
    assert_same_weights(before, after)
    if name in NOT_NORMALISED:
        ones = answers(where, "ones", estimand)[name].value
        assert after.value == pytest.approx(before.value + SHIFT * ones, rel=1e-9, abs=1e-9)
    elif ends(where, estimand) or tolerance(name, where, estimand) > 1e-6:
        assert after.value == pytest.approx(before.value + SHIFT * earned, abs=SHIFT * tolerance(name, where, estimand))
    else:
        assert_moved(before, after, shift=SHIFT)


@each
def test_a_constant_reward_is_earned_by_all_that_normalise(name, where, estimand):
    _, ones = pair(name, where, estimand, "ones")
    if name in NOT_NORMALISED:
        assert ones.value == pytest.approx(1.0, abs=0.95)
        assert ones.value != 1.0
    elif ends(where, estimand):
        assert 0.0 < ones.value < 1.0 or estimand == "episode"
        assert estimand != "episode" or ones.value == pytest.approx(ones.measures.episode_length or ones.value, rel=0.1)
    else:
        assert ones.value == pytest.approx(1.0, abs=tolerance(name, where, estimand))


def test_there_is_something_to_cure_where_states_have_factors():
    found = answers("factors", "as it is", "average")
    assert found["emp"].uncovered_mass > 0.02
    assert abs(found["dr"].value - found["emp"].value) > 1e-4


# --- the registry


@pytest.mark.parametrize("name", takers("ids"))
def test_an_entry_says_whether_it_needs_propensities(name):
    """Without propensities and without the loggers' policies it answers, or says what is missing."""
    here = world("ids")
    logs = mixope.read({key: values for key, values in here.columns.items() if key != "action_prob"})
    target, *loggers = here.policies({})
    if (REGISTRY[name].needs or "").startswith(("propensities", "policies")):
        with pytest.raises(MixopeError, match=r"propensities|policy of logger"):
            mixope.evaluate(logs, target, name)
        known = dict(zip(LABELS, loggers, strict=True))
        assert np.isfinite(mixope.evaluate(logs, target, name, loggers=known).value)
    else:
        assert np.isfinite(mixope.evaluate(logs, target, name).value)


def test_every_entry_is_named_as_it_calls_itself_and_says_when_to_use_it():
    for name, entry in REGISTRY.items():
        assert entry.make().name == name
        assert entry.family
        assert entry.when
        assert entry.takes


@pytest.mark.parametrize("name", [n for n, e in REGISTRY.items() if "features" not in e.takes])
def test_what_must_count_says_so(name):
    here = world(TINY)
    with pytest.raises(UsageError, match=f"{name!r} needs states that can be counted"):
        mixope.evaluate(mixope.read(here.columns), here.policies({})[0], name, features=here.features)


@pytest.mark.parametrize("name", [n for n, e in REGISTRY.items() if "counts" not in e.takes])
def test_what_must_have_features_says_so(name):
    here = world("ids")
    with pytest.raises(UsageError, match=f"{name!r} works on features of states"):
        mixope.evaluate(mixope.read(here.columns), here.policies({})[0], name)


def test_an_unknown_name_is_answered_with_the_nearest():
    here = world(TINY)
    with pytest.raises(UsageError, match="Did you mean 'dualdice'"):
        mixope.evaluate(mixope.read(here.columns), here.policies({})[0], "dualdic")
