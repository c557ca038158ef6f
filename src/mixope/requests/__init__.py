"""Requests: what is asked of the rows, as sums that can be added up in any order and on any engine."""
