"""A sample: an estimator, a format and a command that mixope finds once this package is installed."""
