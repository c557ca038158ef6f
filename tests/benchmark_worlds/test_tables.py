"""What the suite of the worlds makes of its results."""

import numpy as np
import pytest
from benchmarks.resuming import Results
from benchmarks.worlds import run
from benchmarks.worlds.cells import CELLS
from benchmarks.worlds.d3rlpy_fqe import Target
from benchmarks.worlds.run import FIELDS, line
from benchmarks.worlds.tables import REFUSED, error, errors, ranked, tables, trust
from benchmarks.worlds.write import write

HOPPER = CELLS["hopper"]
TRUTH = HOPPER.truths(HOPPER.stored["targets"][0])[0]


def row(off, half=1.0, verdict="trustworthy", **more):
    """A line as it is read back, with an estimate that is off by so much."""
    filled = line(HOPPER, 50, 100, "auto", 0, TRUTH + off)
    filled |= {
        "low": TRUTH + off - half,
        "high": TRUTH + off + half,
        "verdict": verdict,
        "seconds": 2,
        "megabytes": 300,
    }
    return {name: str(value) for name, value in (filled | more).items()}


def test_the_relative_error_is_one_at_what_the_loggers_earn():
    assert line(HOPPER, 50, 0, "dr", 0, HOPPER.logged_value)["relative"] == pytest.approx(1)
    assert line(HOPPER, 50, 0, "dr", 0, TRUTH)["relative"] == 0
    assert line(HOPPER, 50, 0, "dr", 0, None)["relative"] == ""


def test_errors_are_medians_and_say_what_was_refused_or_not_answered():
    unit = abs(HOPPER.logged_value - TRUTH)
    rows = [row(0.1 * unit), row(0.3 * unit), row(-0.2 * unit, verdict=REFUSED)]
    assert error(rows) == ".20 (1 of 3 refused)"
    assert error([*rows[:1], row(0, value="", verdict="")]) == ".10 (1 of 2 without an answer)"
    assert "| hopper | .20 (1 of 3 refused) |" in errors(rows)


def test_trust_counts_intervals_flags_and_refusals():
    rows = [
        row(0),
        row(0, verdict=REFUSED),
        row(2.0, verdict="caution"),
        row(2.0),
        row(-2.0, verdict=REFUSED),
    ]
    assert "| auto | 6.65 | 0 of 5 | 1 of 3 | 2 of 3 | 1 of 2 | 2, 2 | 300 |" in trust(rows)


def test_ranking_has_spearman_and_the_regret_of_the_first():
    values, truths = [3.0, 1.0, 2.0], [1.0, 0.0, 4.0]
    rows = [row(0, value=v, truth=t) for v, t in zip(values, truths, strict=True)]
    assert ranked(rows) == pytest.approx((0.5, 3.0))
    assert ranked([*rows, row(0, value="")]) is None


def test_the_tables_of_a_size_hold_its_rows_alone():
    shown = tables([row(0), row(0, episodes=200, cell="swimmer")], 50)
    assert "hopper" in shown
    assert "swimmer" not in shown


@pytest.mark.long
def test_a_log_is_evaluated_into_lines_and_not_asked_for_again(tmp_path, monkeypatch):
    pytest.importorskip("gymnasium")
    monkeypatch.setattr(run, "RESULTS", Results(str(tmp_path / "worlds.csv"), FIELDS))
    write(tmp_path, CELLS["cartpole"], 12, 0)
    asked = ["--cells", "cartpole", "--sizes", "12", "--seeds", "0", "--estimators", "wis-step", "lstdq"]
    given = run.options([*asked, "--folder", str(tmp_path)])
    assert len(run.jobs(given)) == 2
    log = tmp_path / "cartpole-12-0.npz"
    run.RESULTS.append(run.elsewhere(CELLS["cartpole"], log, "wis-step", [0], 60))
    assert [job[3] for job in run.jobs(given)] == ["lstdq"]
    (found,) = run.RESULTS.read()
    assert found["estimator"] == found["chosen"] == "wis-step"
    assert 0 <= float(found["value"]) <= 1
    assert float(found["seconds"]) > 0


@pytest.mark.long
def test_an_evaluation_that_takes_too_long_is_stopped_and_says_so(tmp_path):
    pytest.importorskip("gymnasium")
    write(tmp_path, CELLS["cartpole"], 12, 0)
    (found,) = run.elsewhere(CELLS["cartpole"], tmp_path / "cartpole-12-0.npz", "lstdq", [0], 1)
    assert found["said"] == "stopped after 1 processor seconds"
    assert found["value"] == ""


def test_a_misspelt_estimator_leaves_no_line():
    with pytest.raises(Exception, match="unknown estimator"):
        run.check("lstqd")


class TestPeer:
    def test_discrete_actions_follow_the_target(self):
        policy, states = CELLS["cartpole"].targets()[0], np.full((4000, 4), 0.1)
        target = Target(policy, np.zeros(4), np.ones(4), np.random.default_rng(0))
        share = policy.probs(states)[0, 1]
        assert abs(target.actions(states).mean() - share) < 4 * np.sqrt(share * (1 - share) / 4000) + 1e-9

    def test_floats_are_unscaled_for_the_target_and_clipped_as_executed(self):
        policy, raw = HOPPER.targets()[0], np.random.default_rng(1).standard_normal((2000, 11))
        centre, unit = np.full(11, 0.5), np.full(11, 2.0)
        target = Target(policy, centre, unit, np.random.default_rng(0))
        actions = target.actions((raw - centre) / unit)
        assert np.abs(actions).max() <= policy.scale
        inside = np.abs(policy.level(raw)) < 0.1
        off = (actions - policy.level(raw))[inside]
        assert abs(off.mean()) < 4 * policy.noise / np.sqrt(off.size)
