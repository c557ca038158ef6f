"""Backtest: predict what every logger earned from the rows of the others, and compare with what it really earned."""

from mixope.backtesting.predictions import backtest, counted_policy, strange_rows, without
from mixope.backtesting.records import Backtest, BacktestRow

__all__ = ["Backtest", "BacktestRow", "backtest", "counted_policy", "strange_rows", "without"]
