"""Logged propensities: every row's own probability under its own logger, as recorded."""

from __future__ import annotations

import numpy as np

from mixope.arrays import FloatArray
from mixope.behaviours.protocol import Inverse
from mixope.errors import DataError
from mixope.problem import Problem, pair_probabilities


class Logged:
    """b is the recorded ``action_prob``; where it is not recorded, the known policy of the row's logger."""

    name = "logged"
    counted = False
    fitted = False

    def invert(self, problem: Problem, weight: FloatArray) -> Inverse:
        """Sums of the recorded 1/p."""
        rows = problem.transitions
        if rows.inverse is None:
            return self._from_known_loggers(problem)
        assert rows.inverse_reward is not None
        assert rows.inverse_squared is not None
        missing = float(rows.rows[np.isnan(rows.inverse)].sum())
        if missing:
            raise DataError(
                f"propensities are missing in groups that hold {missing:.0f} of {rows.n_rows:.0f} rows",
                column="action_prob",
                expected="a recorded probability on every row",
                hint="choose an estimator that estimates the behaviour, such as 'emp', or complete the column",
            )
        return Inverse(rows.inverse, rows.inverse_reward, rows.inverse_squared, by_row=True)

    def _from_known_loggers(self, problem: Problem) -> Inverse:
        rows = problem.transitions
        if not problem.loggers:
            raise DataError(
                "these logs have no recorded propensities",
                column="action_prob",
                expected="action_prob or action_logp on every row, or the loggers' policies",
                hint="choose an estimator that estimates the behaviour, such as 'emp', or pass loggers={label: policy}",
            )
        behaviour = np.empty(rows.n_groups)
        for number, label in enumerate(rows.loggers):
            mine = rows.logger == number
            if mine.any():
                policy = problem.known_logger(label)
                behaviour[mine] = pair_probabilities(policy, rows, f"logger {label!r}")[rows.pair[mine]]
        check_positive(behaviour, rows.rows)
        return Inverse.of_groups(behaviour, rows)


def check_positive(behaviour: FloatArray, rows: FloatArray) -> None:
    """A logged action must have been possible."""
    impossible = behaviour <= 0
    if impossible.any():
        raise DataError(
            f"{rows[impossible].sum():.0f} logged rows have an action that their logger's policy never takes",
            expected="a positive probability for every logged action",
            hint="check that the policies belong to these labels, or choose an estimator that estimates the behaviour",
        )
