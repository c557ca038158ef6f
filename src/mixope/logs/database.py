"""Connections to DuckDB: each with a private folder to spill to, which is gone when the connection is.

A limit of memory is for the whole process. Python, its libraries and what was read so far take their part of it, so
DuckDB gets what is left when the connection is made, and a part of that, because it takes more than it counts: what it
unpacks from files and hands over is outside its limit. ``LEAST`` it gets in any case, or it could not work at all.
"""

from __future__ import annotations

import atexit
import os
import re
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from typing import Any

from mixope.base.errors import Advice, Setting, UsageError
from mixope.base.files import scratch_folder
from mixope.logs.sources import literal

OFFLINE = dict.fromkeys(
    ("autoinstall_known_extensions", "autoload_known_extensions", "allow_community_extensions"), "false"
)
"""Nothing is fetched: DuckDB would download an extension for what it finds in a query."""
SHARE = 0.7
"""Of what is left, the part that DuckDB may count."""
LEAST = 128_000_000
ADDRESSES = 1_000_000_000
"""Bytes of addresses that the first database and its threads reserve, most of which they never use."""
MOST_IDLE = 2
"""Databases that are kept for the next question."""
MOST_HELD = 16_000_000
"""Bytes that such a database may hold."""
CLEAR = "SET temp_directory = ''; RESET memory_limit; RESET threads; RESET preserve_insertion_order"
HELD = f"""SELECT (SELECT sum(memory_usage_bytes) FROM duckdb_memory()),
{" + ".join(f"(SELECT count(*) FROM duckdb_{what}() WHERE NOT internal)" for what in ("tables", "views", "types"))},
(SELECT count(*) FROM duckdb_databases() WHERE NOT internal)"""
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(I?)B")


@contextmanager
def connect(memory_limit: str | None = None, threads: int | None = None) -> Iterator[Any]:
    """A database in memory; what does not fit goes to a folder among the temporary files of the machine."""
    with ExitStack() as stack:
        try:
            folder = str(stack.enter_context(scratch_folder()))
        except OSError:  # nowhere to spill to: all must fit in memory
            folder = ""
        connection = stack.enter_context(_borrowed(_is_little(memory_limit)))
        connection.execute(f"SET temp_directory = {literal(folder)}")
        if memory_limit is not None:
            _limit(connection, memory_limit)
        if threads is not None:
            connection.execute(f"SET threads = {int(threads)}")
        yield connection


_idle: list[Any] = []
"""Taken from and added to by several threads, one operation at a time."""


def _is_little(memory_limit: str | None) -> bool:
    """Less than a database may hold after it was used."""
    limit = None if memory_limit is None else bytes_of(memory_limit)
    return limit is not None and limit < LEAST


@contextmanager
def _borrowed(new: bool) -> Iterator[Any]:
    """A connection to a database of its own: a new one, or one that has been cleared.

    It takes longer to make a database than to ask a small question, and one evaluation asks ten. Tables and views
    that are temporary go with the connection; whatever else may be left is looked for, and where a question failed
    nothing is kept.
    """
    try:
        database = _new() if new else _idle.pop()
    except IndexError:
        database = _new()
    try:
        with database.cursor() as connection:
            yield connection
        kept = _cleared(database)
    except BaseException:
        database.close()
        raise
    if kept and len(_idle) < MOST_IDLE:
        _idle.append(database)
    else:
        database.close()


def _new() -> Any:
    import duckdb

    _check_addresses()
    database = duckdb.connect(":memory:", config=OFFLINE)
    database.execute("SET enable_progress_bar = false")  # in notebooks DuckDB would draw one on standard output
    with suppress(duckdb.CatalogException):  # versions before 1.3 have none
        database.execute("SET enable_external_file_cache = false")
    return database


@cache
def _check_addresses() -> None:
    """Refuse to begin where the addresses that a process may use would end in the middle: libraries end it there."""
    limit, taken = address_space()
    if limit is not None and limit - taken < ADDRESSES:
        size, left, needed = (f"{bytes_ / 1e6:,.0f} MB" for bytes_ in (limit, max(limit - taken, 0), ADDRESSES))
        raise UsageError(
            Advice(
                f"this process may use {size} of addresses (ulimit -v), of which {left} are left, and DuckDB needs"
                f" {needed} to begin with, however little memory it takes then; raise that limit, and bound memory"
                " with ",
                Setting("memory_limit"),
                ", or with a container",
            )
        )


def _cleared(database: Any) -> bool:
    """With its settings as they were; False where it holds memory, tables, files, or the folder to which it spilled."""
    import duckdb

    try:
        database.execute(CLEAR)
        held, made, attached = database.execute(HELD).fetchall()[0]
    except duckdb.Error:
        return False
    return int(held) < MOST_HELD and made == 0 and attached == 1


def _close_idle() -> None:
    """Threads of a database do not survive a fork, and Python ends without any."""
    with suppress(IndexError):
        while True:
            _idle.pop().close()


atexit.register(_close_idle)
if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(before=_close_idle)


def _limit(connection: Any, size: str) -> None:
    import duckdb

    try:
        connection.execute(f"SET memory_limit = {literal(size)}")
    except duckdb.Error:
        raise UsageError(
            Advice(Setting("memory_limit"), f" takes a size such as '500MB' or '2GB', got {size!r}")
        ) from None
    limit = bytes_of(size)
    if limit is not None:
        connection.execute(f"SET memory_limit = '{share_of(limit, resident_bytes())}B'")


def bytes_of(size: str) -> int | None:
    """'1.5GB' as a number; None for what DuckDB may know and we do not ('50%')."""
    found = _SIZE.fullmatch(size.strip().upper())
    if found is None:
        return None
    number, unit, binary = found.groups()
    power = "KMGT".index(unit) + 1 if unit else 0
    return int(float(number) * (1024 if binary else 1000) ** power)


def share_of(limit: int, taken: int) -> int:
    """DuckDB's part of a limit for the whole process, of which so much is taken."""
    return max(int(SHARE * (limit - taken)), min(limit, LEAST))


def resident_bytes() -> int:
    """What this process holds in memory now; where the system does not say, the most that it ever held."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return _peak_bytes()


def address_space() -> tuple[int | None, int]:
    """The most addresses that this process may use, None without a limit, and how many it uses, in bytes."""
    try:
        import resource

        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        if limit == resource.RLIM_INFINITY:
            return None, 0
        with open("/proc/self/statm", "rb") as file:
            return limit, int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except (ImportError, AttributeError, OSError, ValueError, IndexError):
        return None, 0


def release_unused() -> None:
    """Give memory that Arrow holds for later back to the system: a connection is given what is left."""
    import pyarrow as pa

    pa.default_memory_pool().release_unused()


def available_bytes() -> int | None:
    """What this process could still take: of the machine, and of the group of processes whose memory is limited.

    None where the system does not say.
    """
    found = [_of_machine(), *(_of_group(*names) for names in _GROUPS)]
    return min((size for size in found if size is not None), default=None)


_GROUPS = (
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current", "/sys/fs/cgroup/memory.stat"),
    (
        "/sys/fs/cgroup/memory/memory.limit_in_bytes",
        "/sys/fs/cgroup/memory/memory.usage_in_bytes",
        "/sys/fs/cgroup/memory/memory.stat",
    ),
)
"""Where Linux says how much memory a container may take, takes, and takes for files that it can forget."""


def _of_machine() -> int | None:
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            return next(int(line.split()[1]) * 1024 for line in file if line.startswith("MemAvailable:"))
    except (OSError, ValueError, StopIteration):
        return None


def _of_group(most: str, taken: str, details: str) -> int | None:
    """A group without a limit says "max", or a number beyond all machines; the latter is never the least."""
    try:
        with open(most, encoding="ascii") as first, open(taken, encoding="ascii") as second:
            left = int(first.read()) - int(second.read())
        with open(details, encoding="ascii") as file:
            return left + next((int(line.split()[1]) for line in file if line.startswith("inactive_file ")), 0)
    except (OSError, ValueError):
        return None


def _peak_bytes() -> int:
    try:
        import resource
    except ImportError:  # not on Windows
        return 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(peak if sys.platform == "darwin" else peak * 1024)
