import pickle
import sys

import numpy as np
import pytest

from mixope.adapters import onnx as adapter
from mixope.adapters.onnx import onnx_policy
from mixope.base.errors import DataError, MixopeError, UsageError
from mixope.policies import ContinuousPolicy, DiscretePolicy, GaussianPolicy, SquashedGaussianPolicy, read_policy

GENERATOR = np.random.default_rng(0)
OBSERVATIONS = GENERATOR.normal(size=(40, 3))
WEIGHTS = GENERATOR.normal(size=(3, 4)).astype(np.float32)
LOGITS = OBSERVATIONS @ WEIGHTS
LAWS = np.exp(LOGITS) / np.exp(LOGITS).sum(axis=1, keepdims=True)


@pytest.fixture
def network(tmp_path):
    """Writes a network whose outputs are given by name as (kind, columns of WEIGHTS)."""
    pytest.importorskip("onnxruntime", reason="the extra onnx is not installed")
    onnx = pytest.importorskip("onnx", reason="networks for the tests are written with onnx")

    def write(outputs, batch="n", width=4, name="policy.onnx"):
        from onnx import TensorProto, helper, numpy_helper

        nodes, constants, results = [], [], []
        for output, (kind, columns) in outputs.items():
            constants.append(numpy_helper.from_array(np.ascontiguousarray(WEIGHTS[:, columns]), f"W_{output}"))
            linear = output if kind == "linear" else f"linear_{output}"
            nodes.append(helper.make_node("MatMul", ["observation", f"W_{output}"], [linear]))
            if kind != "linear":
                more = {} if kind == "Exp" else {"axis": 1}
                kept = [numpy_helper.from_array(np.ones(4, dtype=bool), "kept")] if kind == "Compress" else []
                constants += kept
                nodes.append(helper.make_node(kind, [linear, *(k.name for k in kept)], [output], **more))
            columns_out = width if width != 4 else WEIGHTS[:, columns].shape[1]
            results.append(helper.make_tensor_value_info(output, TensorProto.FLOAT, [batch, columns_out]))
        entry = helper.make_tensor_value_info("observation", TensorProto.FLOAT, [batch, 3])
        graph = helper.make_graph(nodes, "policy", [entry], results, constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
        onnx.save(model, tmp_path / name)
        return tmp_path / name

    return write


ALL, FIRST, LAST = slice(None), slice(0, 2), slice(2, 4)


@pytest.mark.parametrize(("kind", "outputs"), [("Softmax", "probabilities"), ("linear", "logits")])
def test_a_discrete_network_gives_its_laws(network, kind, outputs):
    policy = onnx_policy(network({"out": (kind, ALL)}), outputs=outputs, actions=["a", "b", "c", "d"])
    assert isinstance(policy, DiscretePolicy)
    np.testing.assert_allclose(policy.probs(OBSERVATIONS), LAWS, atol=1e-6)
    np.testing.assert_allclose(policy.log_prob(OBSERVATIONS, np.repeat("c", 40)), np.log(LAWS[:, 2]), atol=1e-5)


def test_actions_are_numbered_where_the_file_says_how_many(network):
    assert onnx_policy(network({"logits": ("linear", ALL)})).actions.tolist() == [0, 1, 2, 3]
    with pytest.raises(UsageError, match="actions="):
        onnx_policy(network({"logits": ("Compress", ALL)}, width="m"))


def test_names_of_outputs_tell_their_meaning_and_others_are_passed_over(network):
    path = network({"value": ("linear", FIRST), "probabilities": ("Softmax", ALL)})
    np.testing.assert_allclose(read_policy(path).probs(OBSERVATIONS), LAWS, atol=1e-6)


@pytest.mark.parametrize(("kind", "outputs"), [("Exp", "mean_std"), ("linear", "mean_log_std")])
@pytest.mark.parametrize("names", [("mean", "spread"), ("x", "y")])
def test_a_network_of_two_outputs_is_a_gaussian(network, kind, outputs, names):
    path = network({names[0]: ("linear", FIRST), names[1]: (kind, LAST)})
    policy = read_policy(path, outputs=outputs)
    assert isinstance(policy, ContinuousPolicy)
    np.testing.assert_allclose(policy.mean(OBSERVATIONS), LOGITS[:, :2], atol=1e-5)
    np.testing.assert_allclose(policy.scale(OBSERVATIONS), np.exp(LOGITS[:, 2:]), rtol=1e-5)


def test_named_outputs_count_by_name_and_not_by_order(network):
    policy = read_policy(network({"log_std": ("linear", LAST), "mean": ("linear", FIRST)}))
    np.testing.assert_allclose(policy.mean(OBSERVATIONS), LOGITS[:, :2], atol=1e-5)


def test_one_output_holds_means_and_scales_side_by_side(network):
    policy = read_policy(network({"out": ("linear", ALL)}), outputs="mean_log_std")
    expected = GaussianPolicy(lambda s: (s @ WEIGHTS)[:, :2], lambda s: np.exp((s @ WEIGHTS)[:, 2:]))
    actions = np.zeros((40, 2))
    np.testing.assert_allclose(
        policy.log_prob(OBSERVATIONS, actions), expected.log_prob(OBSERVATIONS, actions), rtol=1e-4
    )


def test_a_box_makes_clipped_and_squashed_laws(network):
    path = network({"mean": ("linear", FIRST), "log_std": ("linear", LAST)})
    clipped = onnx_policy(path, low=-2, high=2, law="clipped")
    squashed = onnx_policy(path, law="squashed")
    assert isinstance(clipped, GaussianPolicy)
    assert clipped.clipped
    assert isinstance(squashed, SquashedGaussianPolicy)
    assert squashed.low == -1


def test_batches_do_not_matter(network, monkeypatch):
    policy = read_policy(network({"logits": ("linear", ALL)}))
    whole = policy.probs(OBSERVATIONS)
    monkeypatch.setattr(adapter, "BATCH", 7)
    np.testing.assert_allclose(policy.probs(OBSERVATIONS), whole, rtol=1e-5)
    assert policy.probs(OBSERVATIONS[:0]).shape == (0, 4)


def test_a_policy_can_be_sent_away_and_its_fingerprint_is_its_content(network):
    policy = read_policy(network({"logits": ("linear", ALL)}))
    moved = read_policy(network({"logits": ("linear", ALL)}, name="moved.onnx"))
    other = read_policy(network({"logits": ("linear", slice(0, 3))}, name="other.onnx"))
    copy = pickle.loads(pickle.dumps(policy))
    np.testing.assert_array_equal(copy.probs(OBSERVATIONS), policy.probs(OBSERVATIONS))
    assert policy.fingerprint() == copy.fingerprint() == moved.fingerprint() != other.fingerprint()


@pytest.mark.parametrize(
    ("outputs", "options", "message"),
    [
        ({"out": ("linear", ALL)}, {}, "cannot tell what"),
        ({"out": ("linear", ALL)}, {"outputs": "logit"}, "Did you mean 'logits'"),
        ({"a": ("linear", ALL), "b": ("linear", ALL)}, {"outputs": "logits"}, None),
        ({"logits": ("linear", ALL)}, {"low": -1, "high": 1}, "for continuous policies"),
        ({"mean": ("linear", FIRST), "std": ("Exp", LAST)}, {"actions": [0, 1]}, "for discrete policies"),
        ({"logits": ("linear", ALL)}, {"law": "tanh"}, "unknown law"),
    ],
)
def test_what_cannot_be_told_is_asked_for(network, outputs, options, message):
    with pytest.raises(MixopeError, match=message or "cannot tell which outputs"):
        onnx_policy(network(outputs), **options)


def test_logits_taken_for_probabilities_are_refused(network):
    with pytest.raises(DataError, match="logits"):
        onnx_policy(network({"out": ("linear", ALL)}), outputs="probabilities").probs(OBSERVATIONS)


def test_observations_that_do_not_fit_are_refused(network):
    policy = read_policy(network({"logits": ("linear", ALL)}))
    with pytest.raises(DataError, match=r"\(n, 3\)"):
        policy.probs(OBSERVATIONS[:, :2])
    with pytest.raises(DataError, match="cannot be used"):
        policy.probs(OBSERVATIONS * np.nan)


def test_a_fixed_batch_is_refused(network):
    with pytest.raises(DataError, match="dynamic batch axis"):
        read_policy(network({"logits": ("linear", ALL)}, batch=1)).probs(OBSERVATIONS)


def test_a_damaged_file_is_refused(network, tmp_path):
    (tmp_path / "bad.onnx").write_bytes(b"no network")
    with pytest.raises(DataError, match=r"(?s)no network that can be run.*bad\.onnx"):
        read_policy(tmp_path / "bad.onnx")


def test_options_of_other_sources_are_refused(network):
    with pytest.raises(UsageError, match="default is for tables"):
        read_policy(network({"logits": ("linear", ALL)}), default="uniform")
    with pytest.raises(UsageError, match="outputs is for networks"):
        read_policy(np.eye(2), outputs="logits")


def test_without_the_extra_the_error_is_the_install_line(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    (tmp_path / "policy.onnx").write_bytes(b"never opened")
    with pytest.raises(UsageError, match=r"pip install 'mixope\[onnx\]'"):
        read_policy(tmp_path / "policy.onnx")


def test_columns_of_mixed_states_go_in_by_name(tmp_path):
    pytest.importorskip("onnxruntime", reason="the extra onnx is not installed")
    onnx = pytest.importorskip("onnx", reason="networks for the tests are written with onnx")
    from onnx import TensorProto, helper

    entries = [helper.make_tensor_value_info(n, TensorProto.FLOAT, ["n", 1]) for n in ("age", "pressure")]
    result = helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["n", 2])
    nodes = [helper.make_node("Concat", ["age", "pressure"], ["logits"], axis=1)]
    graph = helper.make_graph(nodes, "policy", entries, [result])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), tmp_path / "p.onnx")
    policy = onnx_policy(tmp_path / "p.onnx")
    states = np.array(
        [("icu", 1.0, 2.0), ("day", 0.5, 0.5)], dtype=[("ward", "U3"), ("pressure", float), ("age", float)]
    )
    np.testing.assert_allclose(
        policy.probs(states), [[1 / (1 + np.exp(-1)), 1 / (1 + np.exp(1))], [0.5, 0.5]], atol=1e-6
    )
    with pytest.raises(DataError, match="no column of the states"):
        policy.probs(states[["ward", "age"]])
    with pytest.raises(DataError, match="takes columns by name"):
        policy.probs(np.ones((2, 2)))
    words = states.astype([("ward", "U3"), ("pressure", "U3"), ("age", float)])
    with pytest.raises(DataError, match="not what the network takes"):
        policy.probs(words)
