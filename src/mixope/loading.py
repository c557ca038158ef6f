"""``load``: a file of JSON → the result that wrote it. Its first entry, ``format``, says which kind of result it is."""

from __future__ import annotations

import os
from pathlib import Path

from mixope.answers.estimate import Estimate
from mixope.backtesting import Backtest
from mixope.base.errors import DataError, UsageError
from mixope.base.rendering import Record
from mixope.base.restoring import parsed
from mixope.differences import Comparison, Differences, Selection
from mixope.distributions import Returns
from mixope.experiments import Experiment
from mixope.inspection import Inspection
from mixope.planning import Plan

KINDS: dict[str, type[Record]] = {
    kind.__name__.lower(): kind
    for kind in (Estimate, Comparison, Differences, Selection, Backtest, Inspection, Experiment, Returns, Plan)
}


def load(path: str | os.PathLike[str]) -> Record:
    """The result in a file that ``to_json`` or a command with ``--json`` wrote, whatever kind of result it is.

    What is not written does not come back: see :meth:`mixope.Estimate.from_json`.

    :param path: the file.
    :returns: an ``Estimate``, a ``Comparison``, an ``Inspection``, …: it prints and reports as before.
    """
    if not isinstance(path, str | os.PathLike):
        raise UsageError(f"load() takes the path of a file that to_json() wrote; got a {type(path).__name__}")
    try:
        text = Path(path).read_bytes()
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise DataError(f"The result cannot be read: {reason}", where=os.fspath(path)) from error
    record = parsed(text)
    said = str(record.get("format")).split("/")
    return KINDS.get(said[1] if len(said) == 3 else "", Estimate).from_dict(record)
