"""A sample: an estimator, a format, a check, a policy and a command that mixope finds when this is installed."""
