"""Backtest: predict what every logger earned from the rows of the others, and compare with what it really earned."""

from mixope.backtesting.from_counts import counted_policy, strange_rows
from mixope.backtesting.others import without
from mixope.backtesting.predictions import backtest, same_question
from mixope.backtesting.records import Backtest, BacktestRow

__all__ = ["Backtest", "BacktestRow", "backtest", "counted_policy", "same_question", "strange_rows", "without"]
