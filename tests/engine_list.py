"""The engines that run in this process: cheap enough for every test that is about all engines.

Those of several workers are tested in ``engines/test_workers.py``, where their workers are started once.
"""

from mixope.engines import ENGINES
from mixope.engines.workers import WorkersEngine

WORKERS = tuple(name for name, made in ENGINES.items() if isinstance(made, type) and issubclass(made, WorkersEngine))
IN_PROCESS = tuple(name for name in ENGINES if name not in WORKERS)
