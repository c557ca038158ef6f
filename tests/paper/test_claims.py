"""Lines of the claims table against errors drawn from known laws, and exact answers against brute force."""

import numpy as np
import pytest

from mixope.paper import claims
from mixope.paper.cases import world
from mixope.paper.claim_findings import Measured, errors, judge, ratio, slope
from mixope.paper.claim_measurements import ClaimLog, ClaimTruth, reward_spread, true_value, two_states
from mixope.paper.reproduction import read_lines, reproduce
from mixope.paper.runner import read_records
from mixope.worlds import simulate
from mixope.worlds.first_order import asymptotic_variance

pytestmark = pytest.mark.long


def test_a_ratio_of_errors_is_known_better_than_either():
    generator = np.random.default_rng(0)
    shared = generator.normal(size=400)
    found, error = ratio(2 * shared + 0.1 * generator.normal(size=400), shared)
    assert found == pytest.approx(4, abs=4 * error)
    assert error < 0.1 * 4 * np.sqrt(2 / 400) * 3
    independent = ratio(2 * generator.normal(size=400), shared)[1]
    assert independent > 3 * error


def test_the_standard_error_of_a_ratio_is_its_spread():
    generator = np.random.default_rng(1)
    drawn = [ratio(1.5 * generator.normal(size=200), generator.normal(size=200)) for _ in range(300)]
    values, said = np.array(drawn).T
    assert said.mean() / values.std() == pytest.approx(1, abs=0.15)


def test_refusals_are_left_out_of_both_and_equals_are_the_same():
    with_gap = np.array([1.0, np.nan, 2.0, 3.0])
    assert ratio(with_gap, np.array([1.0, 99.0, 2.0, 3.0])) == (1.0, 0.0)
    assert judge(1.0, 0.0, "above", 1.0) == "the same"


def test_a_slope_is_recovered_with_its_error():
    generator = np.random.default_rng(2)
    places = [10, 40, 160, 640]
    found, error = slope(places, [generator.normal(scale=x**-0.5, size=300) for x in places])
    assert found == pytest.approx(-1, abs=4 * error)
    assert error < 0.06


@pytest.mark.parametrize(
    ("number", "error", "side", "says"),
    [
        (1.5, 0.1, "above", "holds"),
        (1.5, 0.1, "below", "does not"),
        (1.2, 0.1, "above", "not decided"),
        (1.0 + 1e-9, None, "above", "the same"),
        (1.01, None, "above", "holds"),
        (0.7, None, "above", "does not"),
        (1.5, 0.1, "", None),
        (float("nan"), None, "above", None),
    ],
)
def test_what_a_number_says(number, error, side, says):
    assert judge(number, error, side, 1.0) == says


def numbers(question, environment="singlepath", loggers=4, horizon=50):
    return {row["quantity"]: row["number"] for row in ClaimTruth(question, environment, loggers, horizon).measure()}


def test_pooling_is_the_optimum_and_a_noisy_recorder_moves_it():
    found = numbers("first order")
    assert found["best weights"] == pytest.approx(1, abs=1e-6)
    assert found["weight of the last logger"] == pytest.approx(1, abs=1e-3)
    assert found["noise, best weights"] < 0.5
    assert found["noise, weight of the last logger"] < 0.2
    assert found["kl-emp"] > 1
    assert found["emp ÷ bound"] == pytest.approx(1, rel=1e-9)


def test_the_exact_mixture_beats_the_estimated_one_in_two_states():
    assert numbers("mixture", "two states", 2, 20)["exact mixture"] == pytest.approx(
        asymptotic_variance(two_states(), "exact mixture") / asymptotic_variance(two_states(), "emp")
    )
    assert numbers("mixture", "two states", 2, 20)["exact mixture"] < 0.8


def test_the_balance_heuristic_is_pooling_and_not_the_best():
    found = numbers("balance")
    assert found["largest difference of a row"] < 1e-12
    assert found["balance ÷ best heuristic"] > 1.01


def test_coarse_states_have_the_bias_that_a_long_log_shows():
    """Merge states 2k and 2k+1 of a long log by hand and evaluate its counts."""
    here, horizon, n = world("singlepath", 4), 50, 3
    laws = [policy.probabilities for policy in here.loggers.values()]
    logs = simulate(here.model, laws, 4000, horizon, seed=5)
    s, a, t = logs["observation"] // 2, logs["action"], logs["next_observation"] // 2
    counts = np.zeros((n, 2, n))
    np.add.at(counts, (s, a, t), 1.0)
    earned = np.bincount(s * 2 + a, weights=logs["reward"]).reshape(n, 2) / counts.sum(axis=2)
    group = np.arange(5) // 2
    target = np.stack([here.target.probabilities[group == g].mean(axis=0) for g in range(n)])
    step = np.einsum("ga,gah->gh", target, counts / counts.sum(axis=2, keepdims=True))
    law = np.linalg.matrix_power(step, 4000)[0]
    value = law @ (target * earned).sum(axis=1)
    P = here.model.transition.toarray().reshape(5, 2, 5)
    exact = np.linalg.matrix_power(np.einsum("sa,sat->st", target[group], P), 4000)[0]
    truth = exact @ (target[group] * here.model.expected_reward()).sum(axis=1)
    found = numbers("coarse")
    assert value - truth == pytest.approx(found["pooled"], abs=0.02)
    assert found["lowest"] < found["pooled"] < found["highest"]


def asked(change="", methods="emp,emp:paper", gamma=0.0, loggers=2, repetition=0):
    return ClaimLog("singlepath", loggers, 40, 30, methods, gamma, change, 0, 0, repetition)


def test_a_log_gives_the_error_of_every_method_and_form():
    rows = asked().measure()
    assert [row["method"] for row in rows] == ["emp", "emp:paper"]
    assert all(abs(row["error"]) < 0.2 for row in rows)
    assert rows[0]["error"] != rows[1]["error"]
    assert asked().measure() == rows
    assert asked(repetition=1).measure() != rows


def test_a_shifted_recorder_shifts_and_a_noisy_one_spreads():
    shift = numbers("drift", loggers=2, horizon=30)["bias of emp"]
    drifted = np.mean([asked("drift", "emp", repetition=k).measure()[0]["error"] for k in range(8)])
    assert drifted == pytest.approx(shift, abs=0.1)
    noisy = np.std([asked("noise", "emp", repetition=k).measure()[0]["error"] for k in range(8)])
    plain = np.std([asked("", "emp", repetition=k).measure()[0]["error"] for k in range(8)])
    assert noisy > 1.5 * plain
    assert reward_spread(world("singlepath", 2), 30) == pytest.approx(0.93, abs=0.1)


def test_discounted_errors_are_against_the_discounted_value():
    (emp, dice) = asked(methods="emp,dualdice", gamma=0.9).measure()
    assert true_value("singlepath", 2, 0.9) != true_value("singlepath", 2, 0.0)
    assert abs(emp["error"]) < 0.2
    assert dice["error"] == pytest.approx(emp["error"], abs=1e-9)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The smallest size, run once."""
    where = tmp_path_factory.mktemp("claims")
    reproduce("claims", size="smoke", output=where, jobs=1)
    return where


def test_a_run_writes_its_files_and_a_second_run_the_same_lines(folder):
    before = (folder / "claims.csv").read_bytes()
    assert {path.suffix for path in folder.iterdir()} == {".csv", ".json", ".jsonl", ".png", ".svg", ".html"}
    reproduce("claims", size="smoke", output=folder, jobs=1)
    assert (folder / "claims.csv").read_bytes() == before


def test_lines_say_what_the_repetitions_measured(folder):
    lines = read_lines(folder / "claims.csv")
    rows = [row for record in read_records(folder).values() for row in record.whole_rows()]
    (found,) = (r for r in lines if (r["quantity"], r["trajectories"]) == ("MSE bch ÷ emp", 12))
    kind = {"loggers": 1, "episodes": 12, "gamma": 0.0, "change": "", "horizon": 200}
    bch, emp = (errors(rows, name, **kind) for name in ("bch", "emp"))
    assert found["value"] == pytest.approx((bch**2).sum() / (emp**2).sum(), rel=1e-6)
    assert list(Measured(rows).exact("no such question")) == []


def test_orderings_that_are_certain_stand_in_the_table(folder):
    lines = read_lines(folder / "claims.csv")
    said = {(r["claim"], r["environment"], r["quantity"]): r["says"] for r in lines if r["error"] is None}
    assert said["Theorem 1", "singlepath", "variance bch ÷ emp, exact"] == "holds"
    assert said["Proposition 3", "two states", "variance exact mixture ÷ emp, exact"] == "does not"
    assert said["Proposition 3", "two states", "variance known-mixture ÷ emp, exact"] == "holds"
    assert said["KL-EMP overtakes EMP", "singlepath", "variance kl-emp ÷ emp, exact"] == "does not"
    assert said["EMP beats EMP (single)", "singlepath", "variance emp-single ÷ emp, exact"] == "holds"
    same = [r for r in lines if r["quantity"] in ("MSE sadl ÷ emp", "MSE dualdice ÷ emp, γ = 0.9")]
    assert same
    assert all(r["value"] == 1 for r in same)
    assert len(claims.EXPERIMENT.draw(lines).axes) == 6
