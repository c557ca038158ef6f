"""The options that several commands share, each said once."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from mixope.cli import complete
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
Format = Annotated[
    FormatName | None,
    typer.Option(
        "--format", show_default=False, help="The format of log files whose names do not say it, and of standard input."
    ),
]
Encoding = Annotated[
    str | None,
    typer.Option("--encoding", metavar="NAME", show_default=False, help="Of text that is not UTF-8, such as latin-1."),
]
Estimator = Annotated[
    str,
    typer.Option(
        "--estimator", help="auto, or a name that `mixope estimators` lists.", autocompletion=complete.estimators
    ),
]
Estimators = Annotated[
    list[str],
    typer.Option(
        "--estimator",
        help="auto, or a name that `mixope estimators` lists; repeat it for several, or all.",
        autocompletion=complete.estimators_or_all,
    ),
]
Column = Annotated[
    list[str],
    typer.Option(
        "--column",
        metavar="NAME=COLUMN[,COLUMN...]",
        show_default=False,
        help="Which column of the logs holds a notion (observation, action, reward, ...), or several columns: the "
        "factors of a state. NAME= ignores it. Repeatable.",
    ),
]
Done = Annotated[
    Ending | None, typer.Option("--done", show_default=False, help="What a lone done column of the logs means.")
]
Ends = Annotated[
    Ending | None,
    typer.Option(
        "--ends",
        show_default=False,
        help="Where no column of the logs marks how episodes end: terminated, if their last rows ended them; "
        "truncated, if the recorder stopped.",
    ),
]
Role = Annotated[
    list[str],
    typer.Option(
        "--role",
        metavar="COLUMN=id|category|number",
        show_default=False,
        help="What a column of the state is, where the guess that inspect shows is wrong. Repeatable.",
    ),
]
Absent = Annotated[
    AbsentName | None,
    typer.Option(
        "--absent",
        show_default=False,
        help="Of an experiment: what a period without a row means, after a unit has entered. zero: it earned nothing, "
        "and being away is part of its state; unknown: it was not watched.",
    ),
]
Missing = Annotated[
    MissingName | None,
    typer.Option(
        "--missing",
        show_default=False,
        help="Take missing values of the state as they are: a class of its own in a category; in a number the mean, "
        "and a column that says so. Without it they are an error.",
    ),
]
Target = Annotated[
    str,
    typer.Option(
        "--target",
        metavar="POLICY",
        show_default=False,
        help="The policy to evaluate: a table (.csv, .parquet, .arrow) with columns observation (or observation.*), "
        "action, prob, or without prob a rule of one row per state; an .npy/.npz array (states, actions); a network "
        "(.onnx); with --trust a model (.zip, .d3, .pt, .pth, .pkl, .joblib); or module:name of a function or a "
        "policy.",
    ),
]
Targets = Annotated[
    list[str],
    typer.Option(
        "--target",
        metavar="[NAME=]POLICY",
        show_default=False,
        help="A policy to evaluate; repeat it for each. The name defaults to that of the file.",
    ),
]
TargetDefault = Annotated[
    str | None,
    typer.Option(
        "--target-default",
        metavar="uniform|ACTION",
        show_default=False,
        help="What the target does in states that its table does not list. Without it they are an error.",
    ),
]
TargetColumn = Annotated[
    list[str],
    typer.Option(
        "--target-column",
        metavar="NAME=COLUMN[,COLUMN...]",
        show_default=False,
        help="Which column of the target's table holds a notion (observation, action, prob). Repeatable.",
    ),
]
TargetActions = Annotated[
    str | None,
    typer.Option(
        "--target-actions",
        metavar="ACTION,ACTION,...",
        show_default=False,
        help="All actions of the target, where it does not name them: a function or a rule.",
    ),
]
TargetEpsilon = Annotated[
    float | None,
    typer.Option(
        "--target-epsilon",
        min=0.0,
        max=1.0,
        show_default=False,
        help="Soften the target: with this probability it takes any action, all alike.",
    ),
]
TargetScale = Annotated[
    float | None,
    typer.Option(
        "--target-scale",
        metavar="SIGMA",
        show_default=False,
        help="Where the target chooses one real action: the standard deviation of a Gaussian around it.",
    ),
]
TargetLaw = Annotated[
    LawName | None,
    typer.Option(
        "--target-law",
        show_default=False,
        help="Where the target is Gaussian: how actions were recorded, as drawn, after clipping, or after tanh.",
    ),
]
Unknown = Annotated[
    UnknownActions,
    typer.Option(
        "--unknown-actions", help="Logged actions that a policy's table lacks: an error, or probability zero."
    ),
]
Trust = Annotated[
    bool,
    typer.Option("--trust", help="Allow files that must be unpickled, which runs code of whoever wrote them."),
]
Logger = Annotated[
    list[str],
    typer.Option(
        "--logger",
        metavar="LABEL=POLICY",
        show_default=False,
        help="The policy of one logger, where it is known. Repeatable.",
    ),
]
Loggers = Annotated[
    str | None,
    typer.Option(
        "--loggers",
        metavar="FILE|MODULE:NAME",
        show_default=False,
        help="The policies of several loggers: one table with a column policy_id, or module:name of a dictionary.",
    ),
]
Estimand = Annotated[
    EstimandName,
    typer.Option(
        "--estimand",
        help="The long-run average per step; discounted (with --gamma); the mean of the first steps (with --horizon); "
        "or the total of an episode until its end, not divided by its length (with --gamma if it is to be discounted).",
    ),
]
BacktestEstimand = Annotated[
    EstimandName | None,
    typer.Option(
        "--estimand",
        show_default=False,
        help="What is predicted of every logger, as for mixope evaluate: the question that the target is to be asked. "
        "Without it, what each logger's rows show as they are: the mean of the first steps where all episodes were cut "
        "after as many, else the average.",
    ),
]
Gamma = Annotated[float | None, typer.Option("--gamma", show_default=False, help="The discount, between 0 and 1.")]
Horizon = Annotated[int | None, typer.Option("--horizon", show_default=False, help="How many first steps.")]
Level = Annotated[float, typer.Option("--level", help="How often the interval should hold the truth.")]
Interval = Annotated[
    str,
    typer.Option(
        "--interval",
        metavar="NAME",
        autocompletion=complete.intervals,
        help="How the interval is made. auto: t, or blocks where the logs are a few long episodes. t, normal, "
        "likelihood: from scores by episode. blocks: from blocks of steps. bca, percentile: by refitting everything on "
        "resampled episodes. These are for one look; sequence: valid however often one looks while logs grow.",
    ),
]
Replicates = Annotated[
    int, typer.Option("--replicates", min=2, help="For bca and percentile: how many resampled logs are refitted.")
]
Jobs = Annotated[
    int | None,
    typer.Option(
        "--jobs",
        min=1,
        show_default=False,
        help="For bca and percentile: how many processes share the refits; by default all cores, or one where the work "
        "is short. The result is the same.",
    ),
]
Planned = Annotated[
    int | None,
    typer.Option(
        "--planned",
        min=1,
        show_default=False,
        help="For sequence: the number of episodes at which it is to be narrowest, fixed before they are seen; 1000 "
        "where nobody says.",
    ),
]
Engine = Annotated[
    str | None,
    typer.Option(
        "--engine",
        metavar="NAME",
        show_default=False,
        autocompletion=complete.engines,
        help="Where rows are added up: memory; embedded (DuckDB), which is the default for files; processes of this "
        "machine; dask, spark or ray, each on this machine or at an address such as dask://scheduler:8786.",
    ),
]
MemoryLimit = Annotated[
    str | None,
    typer.Option(
        "--memory-limit",
        metavar="SIZE",
        show_default=False,
        help="Memory of the embedded engine, such as 1GB; beyond it, it uses the disk. Of other engines: of each "
        "worker.",
    ),
]
Threads = Annotated[
    int | None,
    typer.Option(
        "--threads",
        min=1,
        show_default=False,
        help="Threads of the embedded engine, or workers that another engine starts on this machine.",
    ),
]
Checkpoint = Annotated[
    Path | None,
    typer.Option(
        "--checkpoint",
        metavar="FOLDER",
        show_default=False,
        help="Keep the answers of finished scans there: the same job, started again, goes on where it was. A folder of "
        "your own, as trusted as code.",
    ),
]
Device = Annotated[
    DeviceName,
    typer.Option(
        "--device",
        help="Where sums over a million rows or more are made and a learned value is trained: on a GPU if the extra "
        "jax is installed and sees one (auto), never (cpu), or always (gpu).",
    ),
]
Seed = Annotated[int, typer.Option("--seed", min=0, max=2**64 - 1, help="The seed of everything random.")]
Form = Annotated[
    FormName,
    typer.Option("--form", help="State-ratio estimators: the general equations, or the paper's (biased after resets)."),
]
Outputs = Annotated[
    OutputsName | None,
    typer.Option(
        "--outputs",
        show_default=False,
        help="What a network (.onnx, .pt, .pth) gives, where the names of its outputs do not say so.",
    ),
]
Html = Annotated[
    Path | None,
    typer.Option(
        "--html",
        metavar="FILE.html",
        show_default=False,
        help="Also write a report: one page that needs nothing outside it.",
    ),
]
WithBacktest = Annotated[
    bool,
    typer.Option(
        "--backtest",
        help="Also predict each labelled logger from the others' rows, and count that among the checks (two more "
        "scans).",
    ),
]
Json = Annotated[
    bool,
    typer.Option("--json", help="Print one JSON object on stdout and nothing else there; of an error, what it is."),
]
Volume = Annotated[
    bool | None,
    typer.Option(
        "--verbose/--quiet",
        "-v/-q",
        show_default=False,
        callback=set_volume,
        help="Say on stderr what was read and how long it took; or nothing but errors.",
    ),
]
