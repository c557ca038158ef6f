"""The command line: each command resolves its arguments, calls the library, prints. One command a file.

Exit codes: 0 done, 2 usage, 3 bad data, 4 not supported by these logs (``--strict``), 130 interrupted.
Nothing heavy is imported until a command runs, so that ``mixope --help`` is quick.
"""

from mixope.cli.app import app, main

__all__ = ["app", "main"]
