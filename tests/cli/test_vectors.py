"""Vector states and actions through the command line: simulate, inspect, evaluate, and what is refused."""

import json
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mixope import LinearGaussianPolicy
from mixope.logs import write as write_logs
from mixope.worlds import continuous, linear_quadratic

from .running import check_refusal, json_of, run

pytestmark = pytest.mark.long

SIZE = ("--episodes", "8", "--horizon", "40")
MODULE = """import numpy as np
from mixope import LinearGaussianPolicy

target = LinearGaussianPolicy([-0.5, -0.6], 0.0, 0.5)
loggers = {"logger-0": LinearGaussianPolicy([-0.3, -0.4], 0.0, 0.7)}


def density(observations, actions):
    return np.exp(target.log_prob(observations, actions))


def logarithms(observations, actions):
    return target.log_prob(observations, actions) - 5


def misshapen(observations, actions):
    return np.ones((len(actions), 2))


def nothing():
    return 1


number = 7
"""


@pytest.fixture(scope="module")
def pendulum(tmp_path_factory):
    folder = tmp_path_factory.mktemp("worlds") / "pendulum"
    made = run("simulate", "pendulum", *SIZE, "-o", folder)
    assert made.exit_code == 0, made.output
    return folder


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A current folder with a module ``policies``, forgotten afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.delitem(sys.modules, "policies", raising=False)
    (tmp_path / "policies.py").write_text(MODULE)
    yield tmp_path
    sys.modules.pop("policies", None)


def columns(**changes):
    system = linear_quadratic.linear_quadratic()
    made = continuous.simulate(system, linear_quadratic.loggers(1), 8, 40, seed=0)
    return {**made, "action": made["action"][:, 0], **changes}


def log(folder, name="log.parquet", **changes):
    return write_logs({k: v for k, v in columns(**changes).items() if v is not None}, folder / name)


def test_pendulum_logs_come_with_policies_and_a_truth_with_its_error(pendulum, monkeypatch):
    assert {path.name for path in pendulum.iterdir()} == {"logs.parquet", "policies.py", "truth.json", ".mixope.json"}
    names = pq.read_schema(pendulum / "logs.parquet").names
    assert {"observation.0", "observation.1", "observation.2", "action", "action_logp"} <= set(names)
    truth = json.loads((pendulum / "truth.json").read_text())
    assert abs(truth["average"] + 1.4930) < 4 * truth["average_standard_error"]
    assert list(truth["loggers"]) == [f"logger-{j}" for j in range(4)]
    monkeypatch.chdir(pendulum)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.delitem(sys.modules, "policies", raising=False)
    record = json_of("evaluate", "logs.parquet", "--target", "policies:target")
    assert (record["estimator"], record["n_rows"]) == ("fqe", 320)  # "dr" is beyond all rewards on so few rows
    assert [other["estimator"] for other in record["beside"]] == ["dr", "emp"]
    known = ("--estimator", "known-mixture", "--loggers", "policies:loggers")
    assert json_of("evaluate", "logs.parquet", "--target", "policies:target", *known)["estimator"] == "known-mixture"
    monkeypatch.delitem(sys.modules, "policies", raising=False)


def test_the_truth_of_the_linear_quadratic_system_is_exact(tmp_path):
    result = run("simulate", "linear-quadratic", "--loggers", "1", *SIZE, "-o", tmp_path / "two-words")
    assert result.exit_code == 0, result.output
    truth = json.loads((tmp_path / "two-words" / "truth.json").read_text())
    system, target = linear_quadratic.linear_quadratic(), linear_quadratic.target()
    assert truth["average"] == linear_quadratic.average(system, target)
    assert truth["discounted"]["0.9"] == linear_quadratic.discounted(system, target, 0.9)
    assert truth["horizon"]["40"] == linear_quadratic.horizon(system, target, 40)
    assert truth["average_standard_error"] == 0
    assert "two-words" in result.stdout.partition("  cd ")[2]


def test_the_policies_written_are_those_that_acted(tmp_path, monkeypatch):
    run("simulate", "linear-quadratic", *SIZE, "-o", tmp_path / "data")
    names: dict = {}
    exec((tmp_path / "data" / "policies.py").read_text(), names)
    assert names["target"].fingerprint() == linear_quadratic.target().fingerprint()
    fingerprints = [policy.fingerprint() for policy in names["loggers"].values()]
    assert fingerprints == [policy.fingerprint() for policy in linear_quadratic.loggers(4)]


def test_the_same_seed_gives_the_same_bytes(tmp_path):
    for name, seed in (("one", 3), ("two", 3), ("other", 4)):
        run("simulate", "linear-quadratic", *SIZE, "--seed", seed, "-o", tmp_path / name)
    one, two, other = (
        {path.name: path.read_bytes() for path in (tmp_path / name).iterdir()} for name in ("one", "two", "other")
    )
    assert one == two
    assert one["logs.parquet"] != other["logs.parquet"]


def test_a_dataset_may_be_replaced_though_its_module_was_imported(tmp_path):
    run("simulate", "linear-quadratic", *SIZE, "-o", tmp_path / "data")
    (tmp_path / "data" / "__pycache__").mkdir()
    assert run("simulate", "linear-quadratic", *SIZE, "-o", tmp_path / "data", "--force").exit_code == 0
    assert (tmp_path / "data" / "__pycache__").exists()  # not ours to remove


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("pendulum", "--loggers", "2"), "expected 1 or 4 loggers, got 2"),
        (("linear-quadratic", "--loggers", "3"), "expected 1 or 4 loggers, got 3"),
        (("pendulum", "--observed", "factors"), "whose states are vectors"),
        (("pendulum", "--pickup-bonus"), "whose states are vectors"),
        (("pendulumm",), "Did you mean 'pendulum'"),
        (("pendulum", "--episodes", "3"), "an episode for each"),
    ],
)
def test_a_wrong_wish_exits_with_2_and_writes_nothing(arguments, words, tmp_path):
    result = run("simulate", *arguments, "-o", tmp_path / "data")
    assert result.exit_code == 2
    assert words in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_columns_lists_functions_and_objects_all_give_the_same_number(here):
    wide, narrow = log(here), here / "lists.parquet"
    table = pq.read_table(wide)
    lists = {
        name: pa.array([list(row) for row in zip(*(table[f"{name}.{k}"].to_pylist() for k in range(2)), strict=True)])
        for name in ("observation", "next_observation")
    }
    kept = [name for name in table.column_names if "observation" not in name]
    pq.write_table(pa.table({**lists, **{name: table[name] for name in kept}}), narrow)
    ask = ("--estimator", "bch")
    values = [
        json_of("evaluate", path, "--target", f"policies:{name}", *ask)["value"]
        for path, name in ((wide, "target"), (narrow, "target"), (wide, "density"))
    ]
    assert values[1:] == pytest.approx([values[0]] * 2, rel=1e-9)


def test_a_network_is_a_target(here):
    pytest.importorskip("onnxruntime", reason="the extra onnx is not installed")
    onnx = pytest.importorskip("onnx", reason="networks for the tests are written with onnx")
    from onnx import TensorProto, helper, numpy_helper

    weights = np.array([[-0.5, 0.0], [-0.6, 0.0]], dtype=np.float32)
    offset = np.array([0.0, 0.5], dtype=np.float32)
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "W"], ["Wx"]), helper.make_node("Add", ["Wx", "b"], ["out"])],
        "policy",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 2])],
        [helper.make_tensor_value_info("out", TensorProto.FLOAT, ["n", 2])],
        [numpy_helper.from_array(weights, "W"), numpy_helper.from_array(offset, "b")],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), here / "p.onnx")
    rows, ask = log(here), ("--estimator", "bch")
    unclear = run("evaluate", rows, "--target", here / "p.onnx", *ask)
    assert unclear.exit_code == 2
    assert "--outputs" in unclear.stderr
    found = json_of("evaluate", rows, "--target", here / "p.onnx", "--outputs", "mean_std", *ask)
    same = json_of("evaluate", rows, "--target", "policies:target", *ask)
    assert found["value"] == pytest.approx(same["value"], rel=1e-4)
    several = ("--target", f"net={here / 'p.onnx'}", "--target", "policies:target", "--outputs", "mean_std")
    record = json_of("compare", rows, *several, *ask)
    assert [e["target"] for e in record["estimates"]] == ["net", "target"]


def test_compare_leaves_out_what_must_count(here):
    record = json_of("compare", log(here), "--target", "policies:target", "--estimator", "all")
    reasons = {entry["estimator"]: entry["reason"] for entry in record["skipped"]}
    assert "needs states that can be counted" in reasons["model"]
    assert {"dr", "emp", "bch", "mwl", "wis-step", "logged-mean"} <= {e["estimator"] for e in record["estimates"]}


def test_inspect_describes_every_column(here):
    action = np.clip(columns()["action"], -0.5, 0.5)
    rows = log(here, action=action, action_logp=None)
    record = json_of("inspect", rows)
    first, second = record["vectors"]["observations"]
    assert (first["name"], second["name"]) == ("observation.0", "observation.1")
    expected = columns()["observation"][:, 0]
    assert (first["mean"], first["sd"]) == pytest.approx((expected.mean(), expected.std()), rel=1e-9)
    (found,) = record["vectors"]["actions"]
    assert (found["lowest"], found["highest"]) == (-0.5, 0.5)
    assert (found["at_lowest"], found["at_highest"]) == ((action == -0.5).sum(), (action == 0.5).sum())
    page = run("inspect", rows, "--target", "policies:target", "--full").stdout
    assert "vectors of 2 floats" in page
    assert "continuous, 1 component: -0.5 to 0.5" in page
    assert "perhaps it was clipped" in " ".join(page.split())
    assert "cannot be counted state by state" in " ".join(page.split())


def test_inspect_counts_what_is_not_a_number_and_exits_with_3(here):
    states = columns()["observation"].copy()
    states[[3, 5], 1] = np.nan, np.inf
    result = run("inspect", log(here, observation=states), "--json")
    assert result.exit_code == 3
    assert "The observation is not a finite number" in result.stderr
    record = json.loads(result.stdout)
    assert [c["not_finite"] for c in record["vectors"]["observations"]] == [0, 2]
    assert "2" in run("inspect", here / "log.parquet", "--full").stdout


def test_inspect_counts_discrete_actions_of_vector_states(here):
    record = json_of("inspect", log(here, action=np.arange(320) % 3, action_logp=None))
    assert record["vectors"]["action_rows"] == [[0, 107], [1, 107], [2, 106]]
    assert record["vectors"]["actions"] == []


def refused(code, words, *arguments):
    result = run("evaluate", *arguments, "--json")
    assert result.exit_code == code, result.output
    check_refusal(["--json"], result.stdout, code)
    assert words in " ".join(result.stderr.split())
    assert result.stderr.count("error: ") == 1
    assert "Traceback" not in result.stderr


BAD = {
    "a state that is no number": ({"observation": (7, np.nan)}, "observation is not a finite number"),
    "an action that is no number": ({"action": (7, np.nan)}, "action is not a finite number"),
    "an infinite reward": ({"reward": (7, np.inf)}, "reward is not a finite number"),
    "a next state that is no number": ({"next_observation": (7, np.nan)}, "not a finite number"),
    "a propensity that is no number": ({"action_logp": (7, np.nan)}, "propensit"),
}


@pytest.mark.parametrize("name", BAD)
def test_numbers_that_are_none_exit_with_3(name, here):
    changes, words = BAD[name]
    spoilt = {}
    for column, (row, value) in changes.items():
        spoilt[column] = columns()[column].copy()
        spoilt[column][row] = value
    refused(3, words, log(here, **spoilt), "--target", "policies:target", "--estimator", "bch")


def test_actions_that_do_not_vary_exit_with_3(here):
    rows = log(here, action=np.full(320, 0.25), action_logp=None)
    refused(3, "one value only", rows, "--target", "policies:target")


def test_logarithms_under_the_name_of_densities_are_refused(here):
    rows = log(here, action_logp=None, action_prob=columns()["action_logp"] - 9.0)
    ask = ("--target", "policies:target", "--estimator", "bch")
    refused(3, "looks like log-probabilities: name the column action_logp", rows, *ask)
    looked = run("inspect", rows)
    assert looked.exit_code == 3
    assert "'action_prob' looks like log-probabilities" in looked.stderr


def test_densities_under_the_name_of_logarithms_are_not_trusted(here):
    rows = log(here, action_logp=np.exp(columns()["action_logp"]))
    record = json_of("evaluate", rows, "--target", "policies:target", "--estimator", "bch")
    status = {check["name"]: check["status"] for check in record["diagnostics"]}
    assert status["behaviour fit"] == "fail"
    assert record["verdict"] == "not supported by these logs"


@pytest.mark.parametrize(
    ("target", "code", "words"),
    [
        ("nowhere:target", 2, "there is no module 'nowhere'"),
        ("policies:targget", 2, "Did you mean 'target'"),
        ("policies:number", 2, "cannot make a policy of int"),
        ("policies:nothing", 2, "takes (observations) or (observations, actions)"),
        ("policies.py:target", 2, "without .py"),
        ("policies:misshapen", 3, "wrong shape"),
        ("policies:logarithms", 3, "gave log-probabilities"),
        ("missing.onnx", 3, "no such policy file"),
    ],
)
def test_a_target_that_cannot_be_used(target, code, words, here):
    refused(code, words, log(here), "--target", target, "--estimator", "bch")


def test_a_table_is_no_policy_for_vectors(here):
    (here / "t.csv").write_text("observation,action,prob\n0,0,1\n")
    result = run("evaluate", log(here), "--target", here / "t.csv", "--estimator", "bch")
    assert result.exit_code in (2, 3)
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--estimator", "model"), "needs states that can be counted"),
        (("--outputs", "logits"), "--outputs is for networks"),
        (("--loggers", "policies:number"), "expected a dictionary of policies by label"),
        (("--form", "paper"), "these logs have vectors"),
        (("--confounding", "2"), "need states and actions that can be counted"),
    ],
)
def test_a_wrong_question_exits_with_2(options, words, here):
    refused(2, words, log(here), "--target", "policies:target", *options)


def test_the_registry_says_who_takes_vectors():
    takes = {entry["name"]: entry["vectors"] for entry in json_of("estimators")["estimators"]}
    assert [name for name, yes in takes.items() if not yes] == ["opt-emp", "model", "latent-classes"]


def test_policy_objects_have_the_fingerprint_of_the_library(here):
    record = json_of("evaluate", log(here), "--target", "policies:target", "--estimator", "bch")
    expected = LinearGaussianPolicy([-0.5, -0.6], 0.0, 0.5).fingerprint()
    assert record["provenance"]["target_fingerprint"] == expected


def test_what_cannot_be_counted_is_not_said_to_be_nothing(here):
    shown = run("compare", log(here), "--target", "policies:target", "--estimator", "emp", "--full")
    (line,) = [line for line in shown.stdout.splitlines() if line.split()[:1] == ["emp"]]
    assert "%" not in line
