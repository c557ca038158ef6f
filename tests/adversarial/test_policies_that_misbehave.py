"""Policies are code of the user's: whatever they do wrong is told in words, and nothing is called that is no policy."""

import os
import sys

import numpy as np
import pytest

import mixope
from cli.running import LOG, POLICY, run, write
from mixope.base.errors import DataError, MixopeError, UsageError

MODULE = """
import sys

def raises(observations):
    raise ValueError("boom")

def raises_on_pairs(observations, actions):
    return {}["k"]

def leaves(observations):
    sys.exit(0)

class Broken:
    actions = property(lambda self: 1 / 0)
    def __call__(self, observations):
        return 0

class Own:
    actions = [0, 1]
    def __init__(self, name="own"):
        self.name = name
    def log_prob(self, observations, actions):
        raise RuntimeError("inside")
    def probs(self, observations):
        raise RuntimeError("inside")
    def fingerprint(self):
        return self.name

class Nameless(Own):
    def fingerprint(self):
        raise RuntimeError("nameless")

broken, own, nameless = Broken(), Own(), Nameless()

def __getattr__(name):
    if name == "odd":
        raise ValueError("asked")
    raise AttributeError(f"no {name}", name=name, obj=sys.modules[__name__])
"""
PLACE = "policies_here.py, line"
REFERENCES = {
    "a function that raises": ("policies_here:raises", 3, ("raises failed with ValueError: boom", f"{PLACE} 5")),
    "a function of pairs": ("policies_here:raises_on_pairs", 3, ("failed with KeyError: 'k'", f"{PLACE} 8")),
    "a function that leaves": ("policies_here:leaves", 3, ("leaves failed with SystemExit: 0", f"{PLACE} 11")),
    "actions that raise": ("policies_here:broken", 3, ("ZeroDivisionError", PLACE)),
    "a policy that raises": ("policies_here:own", 3, ("the policy Own failed with RuntimeError: inside", PLACE)),
    "a fingerprint that raises": ("policies_here:nameless", 3, ("nameless", PLACE)),
    "a name that raises": ("policies_here:odd", 3, ("policies_here:odd failed with ValueError: asked", PLACE)),
    "a name that is not there": ("policies_here:raisse", 2, ("Did you mean 'raises'?",)),
    "a module that leaves": ("leaves_here:policy", 2, ("importing 'leaves_here' failed with SystemExit: 0",)),
    "a module that is cut short": ("cut_here:policy", 2, ("importing 'cut_here' failed with SyntaxError",)),
    "a shell": ("os:system", 2, ("'os' is a module of Python itself",)),
    "an interpreter": ("builtins:exec", 2, ("'builtins' is a module of Python itself",)),
    "a name inside a module of Python": ("os.path:join", 2, ("is a module of Python itself",)),
    "a name of 300 letters": ("x" * 300 + ".csv", 3, ("there is no such policy file",)),
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    write(tmp_path / "policies_here.py", MODULE)
    write(tmp_path / "leaves_here.py", "import sys\nsys.exit(0)\n")
    write(tmp_path / "cut_here.py", "def policy(\n")
    write(tmp_path / "log.csv", LOG)
    write(tmp_path / "t.csv", POLICY)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", REFERENCES)
def test_as_a_target(name, folder):
    reference, code, words = REFERENCES[name]
    result = run("evaluate", "log.csv", "--target", reference)
    assert (result.exit_code, result.stdout) == (code, "")
    for said in words:
        assert said in result.stderr
    with pytest.raises(MixopeError) as caught:
        mixope.evaluate("log.csv", reference)
    assert caught.value.exit_code == code


@pytest.mark.parametrize("name", [name for name in REFERENCES if "pairs" not in name])
def test_as_a_logger(name, folder):
    reference, code, words = REFERENCES[name]
    result = run("evaluate", "log.csv", "--target", "t.csv", "--logger", f"a={reference}", "--backtest")
    assert (result.exit_code, result.stdout) == (code, "")
    assert words[0] in result.stderr


def test_what_is_no_policy_is_not_called_to_find_out():
    with pytest.raises(UsageError, match="is no policy"):
        mixope.read_policy(os.system)


def test_the_cause_is_kept_for_who_wants_to_see_it(folder):
    def policy(observations):
        raise ValueError("boom")

    with pytest.raises(DataError, match="boom") as caught:
        mixope.evaluate("log.csv", policy)
    assert isinstance(caught.value.__cause__, ValueError)


def test_in_another_folder_the_same_name_is_another_policy(tmp_path, monkeypatch):
    for name, chance in (("first", 0.25), ("second", 0.75)):
        (tmp_path / name).mkdir()
        write(tmp_path / name / "same_name.py", f"def policy(observations, actions):\n    return {chance} + actions")
    answers = []
    for name in ("first", "second", "first"):
        monkeypatch.chdir(tmp_path / name)
        policy = mixope.read_policy("same_name:policy")
        answers.append(float(np.exp(policy.log_prob(np.zeros(1, int), np.zeros(1, int)))[0]))
    assert answers == pytest.approx([0.25, 0.75, 0.25])
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match="there is no module 'same_name'"):
        mixope.read_policy("same_name:policy")
    assert "same_name" not in sys.modules


def test_a_table_for_states_that_are_real_numbers_is_refused_before_the_work(tmp_path, monkeypatch):
    logs = mixope.Logs.from_arrays(
        observation=np.linspace(0, 1, 40), action=np.arange(40) % 2, reward=np.ones(40), ends="truncated"
    )
    monkeypatch.setattr("mixope.answers.answering.build", None)
    with pytest.raises(DataError, match="a table can only hold ids"):
        mixope.evaluate(logs, np.full((2, 2), 0.5))
