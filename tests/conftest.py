"""Settings for all tests: Hypothesis draws the same examples on every run."""

from hypothesis import settings

import mixope

settings.register_profile("repeatable", derandomize=True, deadline=None, max_examples=15)
settings.load_profile("repeatable")

#: Loaded in this order the functions of the package stand before the modules of the same name
#: (test_import_cost.py checks every order in fresh processes).
_LOADED = (mixope.evaluate, mixope.compare)
