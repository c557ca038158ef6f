"""Settings for all tests: Hypothesis draws the same examples on every run."""

from hypothesis import settings

settings.register_profile("repeatable", derandomize=True, deadline=None, max_examples=15)
settings.load_profile("repeatable")
