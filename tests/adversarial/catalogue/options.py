"""What can be wrong with the words of a command, and with the arguments of the library."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import mixope
from mixope.backtesting import backtest
from mixope.engines import EmbeddedEngine

from .cases import Answered, Call, Case, Command, Expected, Refused
from .formats import CLEAN, POLICY, table_of, text_of

LOG = text_of(table_of(CLEAN))
EVALUATE = "evaluate log.csv --target target.csv"
COMPARE = "compare log.csv --target target.csv"

WRONG: dict[str, tuple[str, ...]] = {
    "": ("Usage",),
    "evaluat log.csv": ("evaluat",),
    "evaluate": ("Missing argument",),
    "evaluate log.csv": ("Missing option", "--target"),
    f"{EVALUATE} --nonsense": ("No such option", "--nonsense"),
    f"{EVALUATE} --estimator empp": ("unknown estimator 'empp'", "Did you mean 'emp'?"),
    f"{EVALUATE} --estimator ''": ("unknown estimator ''", "Known: "),
    f"{EVALUATE} --estimator all": ("unknown estimator 'all'",),
    f"{EVALUATE} --estimand total": ("--estimand", "total", "average"),
    f"{EVALUATE} --estimand discounted": ("needs gamma",),
    f"{EVALUATE} --estimand discounted --gamma 1": ("gamma must lie between 0 and 1",),
    f"{EVALUATE} --estimand discounted --gamma 0": ("gamma must lie between 0 and 1",),
    f"{EVALUATE} --estimand discounted --gamma -0.5": ("gamma must lie between 0 and 1",),
    f"{EVALUATE} --estimand discounted --gamma nan": ("gamma must lie between 0 and 1",),
    f"{EVALUATE} --estimand discounted --gamma inf": ("gamma must lie between 0 and 1",),
    f"{EVALUATE} --estimand discounted --gamma much": ("Invalid value for '--gamma'",),
    f"{EVALUATE} --estimand horizon": ("needs the number of steps",),
    f"{EVALUATE} --estimand horizon --horizon 0": ("horizon", "0"),
    f"{EVALUATE} --estimand horizon --horizon -3": ("horizon", "-3"),
    f"{EVALUATE} --estimand horizon --horizon 2.5": ("Invalid value for '--horizon'",),
    f"{EVALUATE} --level 2": ("level", "2"),
    f"{EVALUATE} --level 0": ("level", "0"),
    f"{EVALUATE} --level 1": ("level", "1"),
    f"{EVALUATE} --level 95": ("level", "0.95"),
    f"{EVALUATE} --level -0.5": ("level",),
    f"{EVALUATE} --level nan": ("level", "nan"),
    f"{EVALUATE} --level high": ("Invalid value for '--level'",),
    f"{EVALUATE} --interval magic": ("unknown interval 'magic'", "Known: "),
    f"{EVALUATE} --interval bca --replicates 1": ("Invalid value for '--replicates'",),
    f"{EVALUATE} --interval bca --replicates -5": ("Invalid value for '--replicates'",),
    f"{EVALUATE} --jobs 0": ("Invalid value for '--jobs'",),
    f"{EVALUATE} --engine hadoop": ("unknown engine 'hadoop'", "dask://HOST:PORT", "embedded, memory"),
    f"{EVALUATE} --engine memory --threads 2": ("are for --engine embedded",),
    f"{EVALUATE} --engine memory --memory-limit 1GB": ("are for --engine embedded",),
    f"{EVALUATE} --threads 0": ("Invalid value for '--threads'",),
    f"{EVALUATE} --threads -1": ("Invalid value for '--threads'",),
    f"{EVALUATE} --threads 100000": ("--threads is a number from 1 to",),
    f"{EVALUATE} --threads two": ("Invalid value for '--threads'",),
    f"{EVALUATE} --memory-limit much": ("--memory-limit takes a size", "'much'"),
    f"{EVALUATE} --memory-limit -1GB": ("--memory-limit takes a size",),
    f"{EVALUATE} --memory-limit 1": ("--memory-limit takes a size",),
    f"{EVALUATE} --seed -1": ("Invalid value for '--seed'",),
    f"{EVALUATE} --seed 18446744073709551616": ("--seed",),
    f"{EVALUATE} --seed x": ("Invalid value for '--seed'",),
    f"{EVALUATE} --form old": ("--form", "old"),
    f"{EVALUATE} --form paper --estimator wis": ("--form paper is for state-ratio estimators", "'wis'"),
    "evaluate log.csv --target short.csv --target-default 7": ("unknown default action 7", "Known: "),
    f"{EVALUATE} --outputs logits": ("--outputs is for networks",),
    f"{EVALUATE} --outputs nonsense": ("--outputs", "nonsense"),
    f"{EVALUATE} --done perhaps": ("--done", "perhaps"),
    f"{EVALUATE} --ends perhaps": ("--ends", "perhaps"),
    f"{EVALUATE} --ends terminated": ("--ends terminated was given", "marks its ends itself"),
    f"{EVALUATE} --unknown-actions one": ("--unknown-actions", "one"),
    f"{EVALUATE} --column reward": ("--column takes NAME=COLUMN", "'reward'"),
    f"{EVALUATE} --column =reward": ("--column takes NAME=COLUMN",),
    f"{EVALUATE} --column rewrd=reward": ("unknown canonical column 'rewrd'", "Did you mean 'reward'?"),
    f"{EVALUATE} --column reward=r --column reward=s": ("--column reward is given twice",),
    f"{EVALUATE} --logger nobody=target.csv": ("no rows belong to logger 'nobody'", "'a', 'b'"),
    f"{EVALUATE} --logger a": ("--logger takes LABEL=FILE", "'a'"),
    f"{EVALUATE} --logger a=target.csv --logger a=target.csv": ("the policy of logger 'a' is given twice",),
    f"{EVALUATE} --html page.txt": ("--html takes a name that ends in .html", "'page.txt'"),
    f"{EVALUATE} --html .": ("--html . is a folder",),
    f"{COMPARE} --target target.csv": ("two targets are called 'target'",),
    f"{COMPARE} --target =target.csv": ("--target takes a file or NAME=FILE",),
    f"{COMPARE} --estimator all --estimator emp": ("--estimator all stands alone",),
    "simulate nowhere -o out": ("unknown environment 'nowhere'", "Known: "),
    "simulate walk": ("Missing option", "--output"),
    "simulate walk -o out --episodes 0": ("Invalid value for '--episodes'",),
    "simulate walk -o out --loggers 0": ("Invalid value for '--loggers'",),
    "simulate walk -o out --horizon 0": ("Invalid value for '--horizon'",),
    "simulate walk -o out --format npz": ("--format", "npz"),
    "simulate pendulum -o out --observed factors": ("whose states are vectors",),
    "demo --episodes 1": ("Invalid value for '--episodes'",),
    "reproduce nonsense": ("nonsense",),
    "backtest log.csv --estimator nonsense": ("unknown estimator 'nonsense'",),
}
"""Words of a command, and what is said of them: all are errors of usage."""

BAD_DATA: dict[str, tuple[str, ...]] = {
    f"{EVALUATE} --column reward=gone": ("mapped to 'reward' is not in the log", "'gone'", "try: "),
    f"{EVALUATE} --column reward=policy_id": ("Text in a numeric column", "'policy_id'", "rows: 0"),
    f"{EVALUATE} --column reward=step,action": ("'reward' is one column, not several",),
    f"{EVALUATE} --column observation=": ("no column for the observation", "try: "),
    f"{EVALUATE} --logger a=gone.csv": ("there is no such policy file", "gone.csv"),
    f"{EVALUATE} --loggers target.csv": ("no column policy_id", "target.csv", "try: "),
    "evaluate log.csv log.csv --target target.csv": ("log.csv", "try: "),
    "evaluate gone.csv --target target.csv": ("No such file", "gone.csv"),
    "evaluate *.parquet --target target.csv": ("No such file", "*.parquet"),
    "evaluate nowhere://bucket/log.parquet --target target.csv": ("no file system for nowhere://", "try: "),
    "evaluate http://localhost/log.csv --target target.csv": ("Addresses of the web are not opened", "try: "),
    "inspect gone.csv": ("No such file", "gone.csv"),
    "inspect log.csv --target gone.csv": ("there is no such policy file", "gone.csv"),
    "compare gone.csv --target target.csv": ("No such file", "gone.csv"),
    "backtest gone.csv": ("No such file", "gone.csv"),
    "inspect target.csv": ("no column for the reward", "target.csv"),
    "backtest target.csv": ("no column for the reward", "target.csv"),
    "compare log.csv --target log.csv": ("no column for the prob", "log.csv"),
}

FINE: tuple[str, ...] = (
    EVALUATE,
    f"{EVALUATE} --estimator emp",
    f"{EVALUATE} --engine memory",
    f"{EVALUATE} --engine embedded --threads 1 --memory-limit 500MB",
    f"{EVALUATE} --memory-limit '1 GiB'",
    f"{EVALUATE} --level 0.5",
    f"{EVALUATE} --interval normal",
    f"{EVALUATE} --seed 18446744073709551615",
    f"{EVALUATE} --column reward=reward --column policy_id=",
    f"{EVALUATE} --target-default uniform",
    f"{EVALUATE} --unknown-actions zero",
    f"{EVALUATE} --trust",
    f"{COMPARE} --estimator emp",
    "evaluate all=log.csv --target target.csv",
    "evaluate ./log.csv --target ./target.csv",
    "evaluate l?g.csv --target target.csv",
)


def _command(line: str) -> Command:
    def words(folder: Path) -> list[str]:
        (folder / "log.csv").write_bytes(LOG)
        (folder / "short.csv").write_text("observation,action,prob\n0,0,0.5\n0,1,0.5\n")
        return shlex.split(line)

    return Command(words)


def _evaluate(**said: Any) -> Callable[[Path], Any]:
    return lambda folder: mixope.evaluate(table_of(CLEAN), POLICY, **{"estimator": "emp", **said})


CALLS: dict[str, tuple[Callable[[Path], Any], Expected]] = {
    "as it should be": (_evaluate(), Answered()),
    "estimator of nothing": (_evaluate(estimator=""), Refused(("unknown estimator ''",), 2)),
    "estimator None": (_evaluate(estimator=None), Refused(("estimator",), 2)),
    "estimator a number": (_evaluate(estimator=7), Refused(("estimator",), 2)),
    "estimand unknown": (_evaluate(estimand="total"), Refused(("unknown estimand 'total'",), 2)),
    "gamma of one": (_evaluate(estimand="discounted", gamma=1.0), Refused(("gamma must lie between 0 and 1",), 2)),
    "gamma in words": (_evaluate(estimand="discounted", gamma="much"), Refused(("gamma",), 2)),
    "gamma None": (_evaluate(estimand="discounted", gamma=None), Refused(("needs gamma",), 2)),
    "horizon of zero": (_evaluate(estimand="horizon", horizon=0), Refused(("horizon",), 2)),
    "horizon of one half": (_evaluate(estimand="horizon", horizon=2.5), Refused(("horizon",), 2)),
    "horizon in words": (_evaluate(estimand="horizon", horizon="two"), Refused(("horizon",), 2)),
    "level of one": (_evaluate(level=1.0), Refused(("level",), 2)),
    "level in words": (_evaluate(level="high"), Refused(("level",), 2)),
    "level None": (_evaluate(level=None), Refused(("level",), 2)),
    "interval unknown": (_evaluate(interval="magic"), Refused(("unknown interval 'magic'",), 2)),
    "engine unknown": (_evaluate(engine="hadoop"), Refused(("unknown engine 'hadoop'",), 2)),
    "seed negative": (_evaluate(seed=-1), Refused(("seed",), 2)),
    "seed of one half": (_evaluate(seed=0.5), Refused(("seed",), 2)),
    "seed None": (_evaluate(seed=None), Refused(("seed",), 2)),
    "seed in words": (_evaluate(seed="x"), Refused(("seed",), 2)),
    "loggers a list": (_evaluate(loggers=[POLICY]), Refused(("loggers",), 2)),
    "loggers of nobody": (_evaluate(loggers={"nobody": POLICY}), Refused(("no rows belong to logger 'nobody'",), 2)),
    "threads of zero": (lambda folder: EmbeddedEngine(threads=0), Refused(("threads",), 2)),
    "threads in words": (lambda folder: EmbeddedEngine(threads="two"), Refused(("threads",), 2)),
    "no logs": (lambda folder: mixope.read(), Refused(("needs at least one source",), 2)),
    "logs None": (lambda folder: mixope.read(None), Refused(("cannot read a NoneType",), 2)),
    "logs a number": (lambda folder: mixope.read(7), Refused(("cannot read a int",), 2)),
    "logs an empty list": (lambda folder: mixope.read([]), Refused(("cannot read a list",), 2)),
    "logs an empty dict": (lambda folder: mixope.read({}), Refused(("neither arrays nor labelled sources",))),
    "logs an empty text": (lambda folder: mixope.read(""), Refused(("No such file",))),
    "labels too few": (lambda folder: mixope.read("a", "b", label=["x"]), Refused(("one per source",), 2)),
    "columns unknown": (lambda folder: mixope.read(CLEAN, columns={"rewrd": "r"}), Refused(("'reward'",), 2)),
    "columns a text": (lambda folder: mixope.read(CLEAN, columns="reward"), Refused(("columns",), 2)),
    "columns a number": (lambda folder: mixope.read(CLEAN, columns={"reward": 7}), Refused(("columns",), 2)),
    "done unknown": (lambda folder: mixope.read(CLEAN, done="yes"), Refused(("unknown meaning of done 'yes'",), 2)),
    "ends unknown": (lambda folder: mixope.read(CLEAN, ends=True), Refused(("unknown kind of end True",), 2)),
    "format unknown": (lambda folder: mixope.read("target.csv", format="xml"), Refused(("unknown format 'xml'",), 2)),
    "arrays of other lengths": (
        lambda folder: mixope.read({**CLEAN, "reward": [1.0]}),
        Refused(("different lengths", "'reward'", "12 rows")),
    ),
    "a single number as a column": (lambda folder: mixope.read({**CLEAN, "reward": 1.0}), Refused(("'reward'",))),
    "a column of two types": (
        lambda folder: mixope.read({**CLEAN, "policy_id": ["a", 1] * 6}),
        Answered(value=None),
    ),
    "objects of two types": (
        lambda folder: mixope.read({**CLEAN, "reward": np.array([1.0, "x"] * 6, dtype=object)}),
        Refused(("mixes types", "'reward'")),
    ),
    "targets: none": (lambda folder: mixope.compare(CLEAN, {}), Refused(("target",), 2)),
    "targets: a list of files": (lambda folder: mixope.compare(CLEAN, ["target.csv"]), Refused(("target",), 2)),
    "backtest of one logger": (
        lambda folder: backtest({**CLEAN, "policy_id": ["a"] * 12}),
        Refused(("needs at least two labelled loggers",), 2),
    ),
    "default is no action": (
        lambda folder: mixope.read_policy(POLICY, default=9),
        Refused(("unknown default action 9",), 2),
    ),
    "default unknown": (
        lambda folder: mixope.read_policy(POLICY, default="unifrm"),
        Refused(("Did you mean 'uniform'?",), 2),
    ),
    "unknown_actions unknown": (
        lambda folder: mixope.read_policy(POLICY, unknown_actions="one"),
        Refused(("unknown_actions",), 2),
    ),
    "outputs for a table": (
        lambda folder: mixope.read_policy(POLICY, outputs="logits"),
        Refused(("outputs is for networks",), 2),
    ),
    "columns of a policy unknown": (
        lambda folder: mixope.read_policy(POLICY, columns={"probs": "prob"}),
        Refused(("unknown column role 'probs'",), 2),
    ),
}


def cases() -> Iterator[Case]:
    for code, lines in ((2, WRONG), (3, BAD_DATA)):
        for line, words in lines.items():
            yield Case(f"command: {line}", _command(line), Refused(words, code))
    for line in FINE:
        yield Case(f"command: {line}", _command(f"{line} --json"), Answered())
    for name, (call, expected) in CALLS.items():
        yield Case(f"call: {name}", Call(call), expected)
