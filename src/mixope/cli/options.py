"""The options that several commands share, each declared once: alone, or in a group that a command takes whole."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, ClassVar

import typer

from mixope.cli import complete
from mixope.cli.signatures import HelpPanel, option
from mixope.cli.volume import set_volume


class EstimandName(StrEnum):
    """What is estimated."""

    average = "average"
    discounted = "discounted"
    horizon = "horizon"
    episode = "episode"


class UnknownActions(StrEnum):
    """A logged action that a policy lacks."""

    error = "error"
    zero = "zero"


class DeviceName(StrEnum):
    """Where networks are trained."""

    auto = "auto"
    cpu = "cpu"
    gpu = "gpu"


class AbsentName(StrEnum):
    """What a period without a row means."""

    zero = "zero"
    unknown = "unknown"


Ending = StrEnum("Ending", ["terminated", "truncated"])
MissingName = StrEnum("MissingName", ["keep"])
FormName = StrEnum("FormName", ["general", "paper"])
FormatName = StrEnum("FormatName", ["parquet", "csv", "tsv", "jsonl", "dsjson", "arrow", "npz", "hdf5"])
LawName = StrEnum("LawName", ["plain", "clipped", "squashed"])
OutputsName = StrEnum("OutputsName", ["probabilities", "logits", "mean_std", "mean_log_std"])

Paths = Annotated[
    list[str],
    typer.Argument(
        metavar="LOGS",
        show_default=False,
        help="Files, folders or quoted globs (.parquet, .csv, .tsv, .jsonl, .arrow, .npz, .h5), each also as label=path"
        " to name its logger; - is standard input (with --format). The files of one folder or glob are one log: "
        "episodes may go on from file to file.",
    ),
]
Target = Annotated[
    str,
    option(
        "The policy to evaluate, such as target.csv, or module:name of a function. It may be a table (.csv, .parquet,"
        " .arrow) with columns observation (or observation.*), action, prob, or without prob a rule of one row per"
        " state; an .npy/.npz array (states, actions); a network (.onnx); with --trust a model (.zip, .d3, .pt, .pth,"
        " .pkl, .joblib); or module:name of a function or a policy.",
        metavar="POLICY",
        panel=HelpPanel.policy,
    ),
]
Targets = Annotated[
    list[str],
    option(
        "A policy to evaluate; repeat it for each. The name defaults to that of the file.",
        "--target",
        metavar="[NAME=]POLICY",
        panel=HelpPanel.policy,
    ),
]
Estimator = Annotated[
    str,
    option("auto, or a name that `mixope estimators` lists.", completes=complete.estimators, panel=HelpPanel.answer),
]
Estimators = Annotated[
    list[str],
    option(
        "auto, or a name that `mixope estimators` lists; repeat it for several, or all.",
        completes=complete.estimators_or_all,
        panel=HelpPanel.answer,
    ),
]
Gamma = Annotated[float | None, option("The discount, between 0 and 1.", panel=HelpPanel.question)]
Level = Annotated[float, option("How often the interval should hold the truth.", panel=HelpPanel.answer)]
Missing = Annotated[
    MissingName | None,
    option(
        "Take missing values of the state as they are: a class of its own in a category; in a number the mean, and a"
        " column that says so. Without it they are an error.",
        panel=HelpPanel.logs,
    ),
]
Absent = Annotated[
    AbsentName | None,
    option(
        "Of an experiment: what a period without a row means, after a unit has entered. zero: it earned nothing, and"
        " being away is part of its state; unknown: it was not watched.",
        panel=HelpPanel.logs,
    ),
]
Checkpoint = Annotated[
    Path | None,
    option(
        "Keep the answers of finished scans there: the same job, started again, goes on where it was. A folder of your"
        " own, as trusted as code.",
        metavar="FOLDER",
        panel=HelpPanel.machine,
    ),
]
Memory = Annotated[
    str | None,
    option(
        "Count so many steps together, where the state may leave something out, or as many as the logs ask for (auto)."
        " For emp, bch-pooled and dr, on states that can be counted.",
        metavar="STEPS|auto",
        panel=HelpPanel.answer,
    ),
]
Seed = Annotated[int, option("The seed of everything random.", min=0, max=2**64 - 1, panel=HelpPanel.answer)]
Outputs = Annotated[
    OutputsName | None,
    option(
        "What a network (.onnx, .pt, .pth) gives, where the names of its outputs do not say so.", panel=HelpPanel.policy
    ),
]
Html = Annotated[
    Path | None,
    option("Also write a report: one page that needs nothing outside it.", metavar="FILE.html", panel=HelpPanel.output),
]
Json = Annotated[
    bool,
    option("Print one JSON object on stdout and nothing else there; of an error, what it is.", panel=HelpPanel.output),
]
ESTIMAND = option(
    "The average per step in the long run, the discounted value (with --gamma), the mean of the first steps (with"
    " --horizon), or the total of an episode until its end. The total is not divided by the length of the episode; with"
    " --gamma it is discounted.",
    panel=HelpPanel.question,
)


@dataclass(frozen=True)
class QuestionOptions:
    """What is asked of the logs."""

    PANEL: ClassVar[HelpPanel] = HelpPanel.question
    estimand: Annotated[
        EstimandName | None,
        ESTIMAND,
    ] = EstimandName.average
    gamma: Gamma = None
    horizon: Annotated[int | None, option("How many first steps.")] = None
    level: Level = 0.95

    def keywords(self) -> dict[str, Any]:
        """As the library takes them."""
        return {**vars(self), "estimand": None if self.estimand is None else self.estimand.value}


@dataclass(frozen=True)
class Intervals:
    """How intervals are made."""

    PANEL: ClassVar[HelpPanel] = HelpPanel.answer
    interval: Annotated[
        str,
        option(
            "How the interval is made. auto: t, or blocks where the logs are a few long episodes. t, normal,"
            " likelihood: from scores by episode. blocks: from blocks of steps. bca, percentile: by refitting"
            " everything on resampled episodes. These are for one look; sequence: valid however often one looks while"
            " logs grow.",
            metavar="NAME",
            completes=complete.intervals,
        ),
    ] = "auto"
    replicates: Annotated[int, option("For bca and percentile: how many resampled logs are refitted.", min=2)] = 500
    jobs: Annotated[
        int | None,
        option(
            "For bca and percentile: how many processes share the refits; by default all cores, or one where the work"
            " is short. The result is the same.",
            min=1,
            panel=HelpPanel.machine,
        ),
    ] = None
    planned: Annotated[
        int | None,
        option(
            "For sequence: the number of episodes at which it is to be narrowest, fixed before they are seen; 1000"
            " where nobody says.",
            min=1,
        ),
    ] = None


@dataclass(frozen=True)
class Loggers:
    """The policies of those who wrote the logs."""

    PANEL: ClassVar[HelpPanel] = HelpPanel.policy
    logger: Annotated[
        list[str],
        option("The policy of one logger, where it is known. Repeatable.", metavar="LABEL=POLICY"),
    ] = field(default_factory=list)
    loggers: Annotated[
        str | None,
        option(
            "The policies of several loggers: one table with a column policy_id, or module:name of a dictionary.",
            metavar="FILE|MODULE:NAME",
        ),
    ] = None


@dataclass(frozen=True)
class ColumnOptions:
    """What the columns of the logs are."""

    PANEL: ClassVar[HelpPanel] = HelpPanel.logs
    column: Annotated[
        list[str],
        option(
            "Which column of the logs holds a notion (observation, action, reward, ...), or several columns: the"
            " factors of a state. NAME= ignores it. Repeatable.",
            metavar="NAME=COLUMN[,COLUMN...]",
        ),
    ] = field(default_factory=list)
    done: Annotated[Ending | None, option("What a lone done column of the logs means.")] = None
    ends: Annotated[
        Ending | None,
        option(
            "Where no column of the logs marks how episodes end: terminated, if their last rows ended them; truncated,"
            " if the recorder stopped."
        ),
    ] = None
    role: Annotated[
        list[str],
        option(
            "What a column of the state is, where the guess that inspect shows is wrong. Repeatable.",
            metavar="COLUMN=id|category|number",
        ),
    ] = field(default_factory=list)
    missing: Missing = None


@dataclass(frozen=True)
class UnitColumns(ColumnOptions):
    """The same, and to whom an episode belongs."""

    unit: Annotated[
        str | None,
        option(
            "The column that says to whom an episode belongs (a user, a patient, a machine), where the same one may"
            " have several: these are not independent, and the interval counts units.",
            metavar="COLUMN",
        ),
    ] = None


@dataclass(frozen=True)
class PastColumns(UnitColumns):
    """The same, and what of the past of an episode stands beside its states."""

    lags: Annotated[
        int,
        option(
            "Put so many earlier steps beside the state, where it leaves something out: the action then, and the state"
            " then (of numbers, by how much they changed). Policies see the state as it was logged.",
            min=0,
            max=3,
        ),
    ] = 0
    history: Annotated[
        str | None,
        option(
            "Put running means over the earlier rows of the episode beside the state: reward, action (how often each"
            " was taken), or numbers of the state by name. Where states are counted, in three classes.",
            metavar="COLUMN[,COLUMN...]",
        ),
    ] = None

    def past(self) -> dict[str, Any]:
        """As the library takes them."""
        names = None if self.history is None else [name.strip() for name in self.history.split(",")]
        return {"lags": self.lags, "history": names}


@dataclass(frozen=True)
class Files:
    """What files are, where they do not say it."""

    PANEL: ClassVar[HelpPanel] = HelpPanel.logs
    format: Annotated[
        FormatName | None,
        option("The format of log files whose names do not say it, and of standard input."),
    ] = None
    encoding: Annotated[str | None, option("Of text that is not UTF-8, such as latin-1.", metavar="NAME")] = None

    def keywords(self) -> dict[str, Any]:
        """As the library takes them."""
        return {"format": None if self.format is None else self.format.value, "encoding": self.encoding}


@dataclass(frozen=True)
class TargetTable:
    """What the target's own file leaves open."""

    PANEL: ClassVar[HelpPanel] = HelpPanel.policy
    target_default: Annotated[
        str | None,
        option(
            "What the target does in states that its table does not list. Without it they are an error.",
            metavar="uniform|ACTION",
        ),
    ] = None
    target_column: Annotated[
        list[str],
        option(
            "Which column of the target's table holds a notion (observation, action, prob). Repeatable.",
            metavar="NAME=COLUMN[,COLUMN...]",
        ),
    ] = field(default_factory=list)
    target_actions: Annotated[
        str | None,
        option(
            "All actions of the target, where it does not name them: a function or a rule.",
            metavar="ACTION,ACTION,...",
        ),
    ] = None
    target_epsilon: Annotated[
        float | None,
        option("Soften the target: with this probability it takes any action, all alike.", min=0.0, max=1.0),
    ] = None
    target_scale: Annotated[
        float | None,
        option(
            "Where the target chooses one real action: the standard deviation of a Gaussian around it.",
            metavar="SIGMA",
        ),
    ] = None
    target_law: Annotated[
        LawName | None,
        option("Where the target is Gaussian: how actions were recorded, as drawn, after clipping, or after tanh."),
    ] = None


@dataclass(frozen=True)
class PolicyFiles:
    """How the files of all policies are read."""

    PANEL: ClassVar[HelpPanel] = HelpPanel.policy
    unknown_actions: Annotated[
        UnknownActions,
        option("Logged actions that a policy's table lacks: an error, or probability zero."),
    ] = UnknownActions.error
    trust: Annotated[bool, option("Allow files that must be unpickled, which runs code of whoever wrote them.")] = False


@dataclass(frozen=True)
class Workers:
    """Who adds up rows."""

    PANEL: ClassVar[HelpPanel] = HelpPanel.machine
    engine: Annotated[
        str | None,
        option(
            "Where rows are added up: memory; embedded (DuckDB), which is the default for files; processes of this"
            " machine; dask, spark or ray, each on this machine or at an address such as dask://scheduler:8786.",
            metavar="NAME",
            completes=complete.engines,
        ),
    ] = None
    memory_limit: Annotated[
        str | None,
        option(
            "Memory of the embedded engine, such as 1GB; beyond it, it uses the disk. Of other engines: of each"
            " worker.",
            metavar="SIZE",
        ),
    ] = None
    threads: Annotated[
        int | None,
        option("Threads of the embedded engine, or workers that another engine starts on this machine.", min=1),
    ] = None


@dataclass(frozen=True)
class Answering:
    """All that a value is estimated from, besides logs, target and estimator; evaluate and compare take the same."""

    PANEL: ClassVar[HelpPanel] = HelpPanel.answer
    question: QuestionOptions
    intervals: Intervals
    loggers: Loggers
    columns: PastColumns
    files: Files
    target_table: TargetTable
    policies: PolicyFiles
    workers: Workers
    checkpoint: Checkpoint = None
    device: Annotated[
        DeviceName,
        option(
            "Where sums over a million rows or more are made and a learned value is trained: on a GPU if the extra jax"
            " is installed and sees one (auto), never (cpu), or always (gpu).",
            panel=HelpPanel.machine,
        ),
    ] = DeviceName.auto
    seed: Seed = 0
    memory: Memory = None
    form: Annotated[
        FormName,
        option("State-ratio estimators: the general equations, or the paper's (biased after resets)."),
    ] = FormName.general


@dataclass(frozen=True)
class Printed:
    """What is printed, and how much is said on the way."""

    PANEL: ClassVar[HelpPanel] = HelpPanel.output
    json: Json = False
    full: Annotated[bool, option("Print every check, table and note, not only the first screen.")] = False
    volume: Annotated[
        bool | None,
        option(
            "Say on stderr what was read and how long it took; or nothing but errors.",
            "--verbose/--quiet",
            "-v/-q",
            callback=set_volume,
        ),
    ] = None
