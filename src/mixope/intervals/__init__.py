"""Intervals: made from scores, apart from estimators."""

from mixope.intervals.clustered import Interval, clustered_interval, standard_error

__all__ = ["Interval", "clustered_interval", "standard_error"]
