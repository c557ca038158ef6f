"""Estimators on features: the problem, the ratio, the value and the scores as requests for moments."""
