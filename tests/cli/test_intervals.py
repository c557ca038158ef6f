"""``--interval``, ``--replicates`` and ``--jobs`` from the command line to the page."""

import json

import numpy as np
import pytest

import mixope
from mixope.worlds import simulate, singlepath

from .running import GRIDWORLD, WALK, json_of, run

pytestmark = pytest.mark.long

METHODS = {
    "auto": "clustered score, t",
    "t": "clustered score, t",
    "normal": "clustered score, normal",
    "likelihood": "empirical likelihood",
    "bca": "episode bootstrap, BCa, 20 refits",
    "percentile": "episode bootstrap, percentile, 20 refits",
    "clustered": "clustered score, t",
    "bootstrap": "episode bootstrap, BCa, 20 refits",
}


@pytest.fixture(scope="module")
def one_episode(tmp_path_factory):
    """A log of one long episode, and the target of its question."""
    folder, model = tmp_path_factory.mktemp("one"), singlepath()
    target, logger = np.random.default_rng(3).dirichlet(np.full(model.n_actions, 4.0), size=(2, model.n_states))
    columns = simulate(model, [logger], 1, 600, seed=1)
    np.savez(folder / "log.npz", **columns)
    np.save(folder / "target.npy", target)
    return folder / "log.npz", "--target", folder / "target.npy"


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("estimator", ["emp", "wis-step"])
def test_every_name_is_that_of_the_library(name, estimator):
    options = ("--interval", name, "--replicates", "20", "--jobs", "1", "--estimator", estimator)
    record = json_of("evaluate", *WALK, *options)
    assert record["interval"]["method"] == METHODS[name]
    library = mixope.evaluate(
        WALK[0], mixope.read_policy(WALK[2]), estimator, interval=name, replicates=20, jobs=1
    ).to_dict()
    assert record["interval"] == library["interval"]


def test_blocks_are_taken_for_one_long_episode_and_said_on_every_way_out(one_episode, tmp_path):
    page = tmp_path / "report.html"
    record = json_of("evaluate", *one_episode, "--html", page)
    method = record["interval"]["method"]
    assert method.startswith("batch means, ")
    said = "there is 1 episode: the interval rests on"
    assert any(alert.startswith(said) for alert in record["alerts"])
    assert record["verdict"] != "not supported by these logs"
    shown = " ".join(run("evaluate", *one_episode, "--full").stdout.split())
    assert said in shown
    assert method in shown
    assert said in page.read_text()
    assert method in page.read_text()


def test_the_number_of_processes_changes_no_byte():
    ask = ("evaluate", *GRIDWORLD, "--interval", "bca", "--replicates", "8", "--json")
    alone, shared = (run(*ask, "--jobs", jobs) for jobs in (1, 2))
    assert alone.exit_code == shared.exit_code == 0
    assert alone.stdout == shared.stdout
    assert (alone.stderr, shared.stderr) == ("", "")
    assert json.loads(alone.stdout)["interval"]["replicates"] == 8


def test_a_page_names_method_refits_and_seed(tmp_path):
    page = tmp_path / "report.html"
    options = ("--interval", "percentile", "--replicates", "12", "--jobs", "1", "--seed", "7")
    assert run("evaluate", *WALK, *options, "--html", page).exit_code == 0
    text = page.read_text()
    assert "episode bootstrap, percentile, 12 refits" in text
    assert "--seed 7" in text


def test_a_comparison_takes_the_same_options():
    table = json_of(
        "compare", *WALK, "--estimator", "emp", "--estimator", "is", "--interval", "percentile", "--replicates", "10"
    )
    methods = [estimate["interval"]["method"] for estimate in table["estimates"]]
    assert methods == ["episode bootstrap, percentile, 10 refits"] * 2


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--interval", "likelyhood"), "Did you mean 'likelihood'?"),
        (("--interval", "blocks", "--estimator", "wis"), "weighs whole episodes, which cannot be cut into blocks"),
        (("--interval", "blocks", "--horizon", "5"), "blocks are for the long-run average"),
        (("--replicates", "1"), "--replicates"),
        (("--jobs", "0"), "--jobs"),
    ],
)
def test_what_cannot_be_had_is_a_matter_of_words(options, words):
    result = run("evaluate", *WALK, *options)
    assert result.exit_code == 2
    assert words in result.stderr
    assert result.stdout == ""


def test_an_unknown_name_is_told_before_logs_are_read():
    result = run("compare", "no-such-file.csv", "--target", "x.csv", "--interval", "jackknife")
    assert (result.exit_code, "unknown interval 'jackknife'" in result.stderr) == (2, True)


def test_one_episode_cannot_be_resampled(one_episode):
    result = run("evaluate", *one_episode, "--interval", "bca")
    assert result.exit_code == 2
    assert "one long episode has blocks of steps: --interval blocks" in result.stderr
