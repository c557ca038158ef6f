"""``python -m mixope`` is the command line, and imports what the script ``mixope`` does: not from the current folder.

Python puts that first for every ``-m``. It stays only where it is the folder that mixope itself lies in.
"""

import os
import sys
from contextlib import suppress

with suppress(FileNotFoundError):  # the folder may be gone
    if not sys.flags.safe_path and sys.path[:1] == [os.getcwd()] != [os.path.dirname(os.path.dirname(__file__))]:
        del sys.path[0]

from mixope.cli import main

if __name__ == "__main__":
    main()
