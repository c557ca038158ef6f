"""What to type instead, after errors of Click that say only what is wrong.

Click's errors are told apart by the names of their classes: Typer may bring a copy of Click under another name.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

MEANT = {
    "--policy": "--target",
    "--logs": "the logs without an option before them",
    "--output": "--html",
    "--report": "--html",
    "-o": "--html",
    "--discount": "--gamma",
    "--discount-factor": "--gamma",
    "--confidence": "--level",
    "--confidence-level": "--level",
    "--data": "the logs without an option before them",
    "--random-state": "--seed",
    "--method": "--estimator",
    "--n-jobs": "--jobs",
}
"""Options that other programs have, and what is meant by them here."""


def add_hint(error: Any, args: Sequence[str]) -> None:
    """Give an error of Click the words that help; ``args`` is the command line without the program's name."""
    match type(error).__name__:
        case "MissingParameter":
            error.message = _missing(error.param.name, args)
        case "NoSuchOption" if error.option_name in MEANT:
            error.possibilities = [MEANT[error.option_name]]
        case "UsageError" | "NoSuchCommand" if str(getattr(error, "message", "")).startswith("No such command"):
            error.message += _no_command(args)


def _missing(parameter: str, args: Sequence[str]) -> str:
    """What to add to a command that lacks its logs or its target."""
    command, words = args[0], [word for word in args[1:] if not word.startswith("-")]
    if parameter == "logs":
        return f"Type mixope {command} LOGS, LOGS being a file, a folder or a quoted pattern such as 'logs/*.parquet'"
    if parameter != "target":
        return ""
    if len(words) > 1 and len(words) == len(args) - 1:
        logs, policy = " ".join(words[:-1]), words[-1]
        return f"If {policy} is the policy, type mixope {command} {logs} --target {policy}"
    return "Add --target POLICY: a table such as target.csv, a function as module:name, a model; see mixope evaluate -h"


def _no_command(args: Sequence[str]) -> str:
    """The command that is missing before a path."""
    path = next((word for word in args if not word.startswith("-")), "")
    return f" To look at these logs, type mixope inspect {path}" if os.path.exists(path) else ""
