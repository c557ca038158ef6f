"""The sheet of any record, by its kind."""

from __future__ import annotations

from functools import singledispatch
from typing import Any

from mixope.answers.estimate import Estimate
from mixope.backtesting import Backtest
from mixope.differences import Comparison, Differences, Selection
from mixope.distributions import Returns
from mixope.experiments.records import Experiment
from mixope.inspection import Inspection
from mixope.logs import Logs
from mixope.planning import Plan
from mixope.report.contest_sheets import differences_sheet, selection_sheet
from mixope.report.document import document
from mixope.report.inspection_sheet import inspection_sheet, logs_sheet
from mixope.report.plan_sheet import plan_sheet
from mixope.report.returns_sheet import returns_sheet
from mixope.report.sheet import Sheet


@singledispatch
def sheet(record: object, **extras: Any) -> Sheet:
    """What is said of a record; ``extras`` are what else is known of it, as a page takes them."""
    raise TypeError(f"{type(record).__name__} cannot be shown")


@sheet.register(Estimate)
@sheet.register(Comparison)
@sheet.register(Backtest)
@sheet.register(Experiment)
def _(record: Estimate | Comparison | Backtest | Experiment, **extras: Any) -> Sheet:
    return document(record, **extras).sheet


sheet.register(Differences, differences_sheet)
sheet.register(Selection, selection_sheet)
sheet.register(Returns, returns_sheet)
sheet.register(Plan, plan_sheet)
sheet.register(Inspection, inspection_sheet)
sheet.register(Logs, logs_sheet)
