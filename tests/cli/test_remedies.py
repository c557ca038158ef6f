"""Remedies: the library speaks Python, the command line speaks options, and both say the same."""

import ast
import html
import pickle
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import typer

import mixope
from mixope.base.errors import Advice, DataError, MixopeError, Setting, UsageError, in_python, phrased
from mixope.cli import app
from mixope.cli.output import on_command_line

from .running import LOG, POLICY, run, write

PYTHON = re.compile(
    r"\b(columns|loggers|done|ends|trust|estimator|estimand|interval|form|default|unknown_actions|format|outputs|actions)="
    r"|read_polic|to_json|mixope\.|\b(True|None)\b"
)
OPTION = re.compile(r"(?<![\w-])--[a-z]")


def with_column(name: str, values: list[object]) -> str:
    head, *rows = LOG.splitlines()
    return "\n".join([f"{head},{name}", *(f"{row},{v}" for row, v in zip(rows, values, strict=True))]) + "\n"


WITHOUT_NEXT = "\n".join(line.rpartition(",")[0] for line in LOG.splitlines()) + "\n"


def coin(observation: Any, action: Any) -> float:
    return 0.5


@dataclass
class Case:
    """What is done wrong: files, arguments of the library and options, and what each surface says about it."""

    python: str
    command: str
    log: str = LOG
    policy: str = POLICY
    options: tuple[str, ...] = ()
    reading: dict[str, Any] = field(default_factory=dict)
    asking: dict[str, Any] = field(default_factory=dict)
    made: Callable[[Path], Any] | None = None


def binary(folder: Path) -> Path:
    (folder / "broken.parquet").write_bytes(b"nonsense" * 9)
    return folder / "broken.parquet"


def latin(folder: Path) -> Path:
    (folder / "latin.csv").write_bytes("é,observation\n".encode("latin-1"))
    return folder / "latin.csv"


def zeros(folder: Path) -> Path:
    (folder / "zeros.csv").write_bytes(bytes(64))
    return folder / "zeros.csv"


def ending(folder: Path) -> Path:
    return write(folder / "log.xyz", LOG)


def durations(folder: Path) -> Path:
    table = pa.table({"observation": [0, 1], "action": [0, 1], "reward": [0.0, 1.0], "next_observation": [1, 0]})
    pq.write_table(table.append_column("step", pa.array([1, 2], pa.duration("s"))), folder / "log.parquet")
    return folder / "log.parquet"


def mixed(folder: Path) -> Path:
    states = {"observation.x": [None, 1.5], "observation.y": ["one", "two"]}
    following = {"next_observation.x": [1.5, 0.5], "next_observation.y": ["two", "one"]}
    table = pa.table({**states, **following, "action": [0, 1], "reward": [0.0, 1.0]})
    pq.write_table(table, folder / "log.parquet")
    return folder / "log.parquet"


def one_episode(text: str) -> str:
    return text.replace("b,1,0", "a,0,3").replace("b,1,1", "a,0,4").replace("b,1,2", "a,0,5")


CASES = {
    "gamma for another estimand": Case(
        "estimand='discounted'",
        "--estimand discounted",
        options=("--estimand", "horizon", "--horizon", "5", "--gamma", "0.5"),
        asking={"estimand": "horizon", "horizon": 5, "gamma": 0.5},
    ),
    "horizon for another estimand": Case(
        "estimand='horizon'",
        "--estimand horizon",
        options=("--estimand", "discounted", "--horizon", "5", "--gamma", "0.5"),
        asking={"estimand": "discounted", "horizon": 5, "gamma": 0.5},
    ),
    "no discount": Case("estimand='average'", "--estimand average", options=("--gamma", "1"), asking={"gamma": 1.0}),
    "unknown action": Case(
        "unknown_actions='zero'", "--unknown-actions zero", policy="observation,action,prob\n0,0,1\n1,0,1\n"
    ),
    "unknown state": Case(
        "default='uniform', an action", "--target-default uniform", policy="observation,action,prob\n0,0,1\n0,1,0\n"
    ),
    "several policies": Case(
        "read_policies(…)",
        "give it with --loggers",
        policy="policy_id," + POLICY.replace("\n", "\nx,", 4).replace("x,1,1", "y,1,1"),
    ),
    "no prob": Case(
        "columns={'prob': …}", "rename the right column to prob", policy="observation,action,p_new\n0,0,1\n"
    ),
    "two probs": Case(
        "columns={'prob': …}",
        "rename the right column to prob",
        policy="observation,action,probability,p\n0,0,1,1\n",
    ),
    "state twice": Case(
        "columns={'observation': …}",
        "rename the right column to observation",
        policy="observation,observation.x,action,prob\n0,0,0,1\n",
    ),
    "unknown logger": Case(
        "loggers={'a': policy}",
        "--logger a=FILE",
        options=("--estimator", "known-mixture"),
        asking={"estimator": "known-mixture"},
    ),
    "lone done": Case("done='terminated'", "--done terminated", log=with_column("done", [0, 0, 1, 0, 0, 1])),
    "done without a column": Case(
        "done='truncated' was given",
        "--done truncated was given",
        options=("--done", "truncated"),
        reading={"done": "truncated"},
    ),
    "no end marks": Case("ends='terminated'", "--ends terminated", log=WITHOUT_NEXT),
    "ends that are marked": Case(
        "ends='truncated' was given",
        "--ends truncated was given",
        log=with_column("terminated", [0, 0, 1, 0, 0, 1]),
        options=("--ends", "truncated"),
        reading={"ends": "truncated"},
    ),
    "marks that are ignored": Case(
        "columns={'terminated': None}",
        "--column terminated=",
        log=with_column("terminated", [0, 0, 1, 0, 0, 1]),
        options=("--ends", "truncated"),
        reading={"ends": "truncated"},
    ),
    "two states": Case(
        "columns={'observation': 's'}",
        "--column observation=s",
        log=with_column("state", [1] * 6).replace(",observation", ",s", 1),
    ),
    "no such column": Case(
        "columns={'reward': 'reward'}",
        "--column reward=reward",
        options=("--column", "reward=rewarded"),
        reading={"columns": {"reward": "rewarded"}},
    ),
    "logarithms": Case(
        "columns={'action_logp': 'pscore', 'action_prob': None}",
        "--column action_logp=pscore --column action_prob=",
        log=with_column("pscore", [-0.5] * 6),
    ),
    "words as a number": Case(
        "roles={'observation.y': 'category'}",
        "--role observation.y=category",
        made=mixed,
        options=("--role", "y=number"),
        reading={"roles": {"y": "number"}},
    ),
    "a missing value of a state": Case("missing='keep'", "--missing keep", made=mixed),
    "other factors": Case(
        "columns={'observation': […], 'next_observation': […]}",
        "--column observation=COLUMN,COLUMN --column next_observation=COLUMN,COLUMN",
        log=LOG.replace("step,observation", "step,observation.x").replace("next_observation", "next_observation.y"),
    ),
    "unknown ending": Case("pass format=…", "--format FORMAT", made=ending),
    "broken file": Case("pass format=…", "--format FORMAT", made=binary),
    "not UTF-8": Case("encoding='cp1252'", "--encoding cp1252", made=latin),
    "not text": Case("pass format=…", "--format FORMAT", made=zeros),
    "unknown type": Case("columns={'step': None}", "--column step=", made=durations),
    "paper's form": Case(
        "form='general'",
        "--form general",
        options=("--form", "paper", "--gamma", "0.9"),
        asking={"gamma": 0.9, "estimator": "paper"},
    ),
    "one episode refitted": Case(
        "interval='blocks'",
        "--interval blocks",
        log=one_episode(LOG),
        options=("--interval", "bca"),
        asking={"interval": "bca"},
    ),
    "nothing in common": Case(
        "mixope.inspect(logs, target)",
        "mixope inspect LOGS --target POLICY",
        policy="observation,action,prob\n0,2,0.5\n0,3,0.5\n1,2,0.25\n1,3,0.75\n",
        options=("--unknown-actions", "zero"),
        asking={"unknown_actions": "zero"},
    ),
}


def by_library(case: Case, log: Any, policy: Path) -> str:
    asking = dict(case.asking)
    if asking.get("estimator") == "paper":
        from mixope.estimators import REGISTRY

        asking["estimator"] = REGISTRY["emp"].make(form="paper")
    reading = {"unknown_actions": asking.pop("unknown_actions", "error")}
    with pytest.raises(MixopeError) as caught:
        mixope.evaluate(mixope.read(log, **case.reading), mixope.read_policy(policy, **reading), **asking)
    return str(caught.value)


@pytest.mark.filterwarnings("ignore::mixope.MixopeWarning")
@pytest.mark.parametrize("name", CASES)
def test_each_surface_says_the_remedy_in_its_own_words(name, tmp_path):
    case = CASES[name]
    log = case.made(tmp_path) if case.made else write(tmp_path / "log.csv", case.log)
    policy = write(tmp_path / "t.csv", case.policy)
    said = by_library(case, log, policy)
    assert case.python in said
    assert not OPTION.search(said), said
    result = run("evaluate", log, "--target", str(policy), *case.options)
    assert result.exit_code in (2, 3), result.output
    assert case.command in result.stderr
    assert not PYTHON.search(result.stderr), result.stderr


def test_a_pickled_file(tmp_path):
    np.save(tmp_path / "t.npy", np.array([[0.5, 0.5], [0.25, 0.75]], dtype=object), allow_pickle=True)
    with pytest.raises(DataError, match="trust=True"):
        mixope.read_policy(tmp_path / "t.npy")
    result = run("evaluate", write(tmp_path / "log.csv", LOG), "--target", tmp_path / "t.npy")
    assert "--trust if you know" in result.stderr
    assert not PYTHON.search(result.stderr)


def test_one_policy_where_several_are_wanted(tmp_path):
    policy = write(tmp_path / "t.csv", POLICY)
    with pytest.raises(DataError, match=re.escape("read_policy(…)")):
        mixope.read_policies(policy)
    result = run("evaluate", write(tmp_path / "log.csv", LOG), "--target", policy, "--loggers", policy)
    assert "--logger LABEL=FILE" in result.stderr
    assert not PYTHON.search(result.stderr)


def test_logs_that_disagree(tmp_path):
    one = write(tmp_path / "one.csv", LOG)
    two = write(tmp_path / "two.csv", LOG.replace("observation", "observation.x"))
    with pytest.raises(DataError, match=re.escape("columns={…: …}")):
        mixope.read(str(one), str(two))
    result = run("inspect", one, two)
    assert "--column NAME=COLUMN" in result.stderr
    assert not PYTHON.search(result.stderr)


def test_a_function_without_actions(tmp_path):
    with pytest.raises(UsageError, match=re.escape("pass actions=[…]")):
        mixope.CallablePolicy(coin, unknown_actions="zero")
    log = write(tmp_path / "log.csv", LOG)
    result = run("evaluate", log, "--target", f"{__name__}:coin", "--unknown-actions", "zero")
    assert "--unknown-actions zero was given" in result.stderr
    assert not PYTHON.search(result.stderr)


def test_a_note_about_a_column(tmp_path):
    log = write(tmp_path / "log.csv", with_column("prob", [0.5] * 6))
    with pytest.warns(mixope.MixopeWarning, match=re.escape("columns={'action_prob': 'prob'}")):
        mixope.read(log)
    for command in (("inspect", log), ("evaluate", log, "--target", write(tmp_path / "t.csv", POLICY))):
        said = " ".join(run(*command, "--full").output.split())
        assert "--column action_prob=prob" in said
        assert "columns={" not in said


def settings_in_use() -> dict[str, list[Any]]:
    """Every Setting of the source, with the values that are literals."""
    found: dict[str, list[Any]] = {}
    for path in Path(mixope.__file__).parent.rglob("*.py"):
        source = path.read_text(encoding="utf-8")
        if "Setting" not in source.partition("from mixope.base.errors import ")[2].partition("\n")[0]:
            continue
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Call) and getattr(node.func, "id", None) == "Setting":
                name, *values = node.args
                assert isinstance(name, ast.Constant), f"{path}:{node.lineno}"
                listed = found.setdefault(name.value, [])
                try:
                    listed += [ast.literal_eval(values[0])] if values else [...]
                except ValueError:
                    continue
    return found


def options_of_the_application() -> set[str]:
    command = typer.main.get_command(app)
    return {o for found in command.commands.values() for p in found.params for o in p.opts if o.startswith("--")}


def test_every_setting_in_use_has_the_words_of_both_surfaces():
    used, options = settings_in_use(), options_of_the_application()
    assert len(used) > 12
    for name, values in used.items():
        for value in values or [{"observation": "x"} if name in {"columns", "roles"} else "x"]:
            python, command = in_python(Setting(name, value)), on_command_line(Setting(name, value))
            assert not OPTION.search(python), python
            assert not PYTHON.search(command), command
            assert set(re.findall(r"--[a-z-]+", command)) <= options, command


def test_advice_is_text_like_any_other():
    advice = Advice("say ", Setting("done", "terminated"), "; or ", Advice("map ", Setting("columns", {"reward": "r"})))
    assert advice == "say done='terminated'; or map columns={'reward': 'r'}"
    assert phrased(advice, on_command_line) == "say --done terminated; or map --column reward=r"
    again = pickle.loads(pickle.dumps(advice))
    assert (again, again.parts) == (advice, advice.parts)
    assert phrased("a = {1: 2}", on_command_line) == "a = {1: 2}"


def test_an_error_keeps_its_words_in_every_part():
    advice = Advice("use ", Setting("trust", True))
    error = DataError(advice, expected=advice, hint=advice)
    assert error.text(on_command_line).count("use --trust") == 3
    assert str(error).count("use read_policy(…, trust=True)") == 3
    assert UsageError(advice).text(on_command_line) == "use --trust"


def test_a_page_has_the_words_of_the_surface_that_wrote_it(tmp_path):
    log, policy = write(tmp_path / "log.csv", with_column("prob", [0.5] * 6)), write(tmp_path / "t.csv", POLICY)
    assert run("evaluate", log, "--target", policy, "--html", tmp_path / "x.html").exit_code == 0
    page = (tmp_path / "x.html").read_text(encoding="utf-8")
    assert "--column action_prob=prob" in page
    assert "columns={" not in page
    with pytest.warns(mixope.MixopeWarning):
        result = mixope.evaluate(log, mixope.read_policy(policy))
    page = html.unescape(result.report(tmp_path / "y.html").read_text(encoding="utf-8"))
    assert "columns={'action_prob': 'prob'}" in page
    assert not OPTION.search(page.partition("<body>")[2].replace("var(--mx", ""))


def test_no_text_of_the_library_names_an_option():
    root = Path(mixope.__file__).parent
    for path in [found for found in root.rglob("*.py") if found.relative_to(root).parts[0] not in ("cli", "paper")]:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
                assert not OPTION.search(node.value.replace("var(--mx", "")), f"{path}:{node.lineno}: {node.value}"
    for path in root.rglob("*.j2"):
        assert not OPTION.search(path.read_text(encoding="utf-8")), path
