"""Logs: from files and tables to canonical rows.

logs = read("logs/*.parquet")
logs.view(connection)     # the name of a DuckDB view of canonical rows
logs.table()              # the same rows as an Arrow table
"""

from mixope.logs.failures import reading
from mixope.logs.logs import Logs
from mixope.logs.readers import read
from mixope.logs.schema import CANONICAL, EPISODE_KEYS, UNLABELLED, Schema
from mixope.logs.validation import Finding, explain_episodes, explain_rows
from mixope.logs.writing import write

__all__ = [
    "CANONICAL",
    "EPISODE_KEYS",
    "UNLABELLED",
    "Finding",
    "Logs",
    "Schema",
    "explain_episodes",
    "explain_rows",
    "read",
    "reading",
    "write",
]
