"""Backtest: predict what every logger earned from the rows of the others, and compare with what it really earned.

records     one line a logger, and all of them with their summary
earnings    what a logger earned, and its error
holding     one logger left out: its policy, the rows of the others, the solution
prediction  prediction and earnings side by side
passes      the scans, in order
"""

from mixope.backtesting.holding import counted_policy, strange_rows, without
from mixope.backtesting.passes import backtest
from mixope.backtesting.records import Backtest, BacktestRow

__all__ = ["Backtest", "BacktestRow", "backtest", "counted_policy", "strange_rows", "without"]
