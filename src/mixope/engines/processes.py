"""Processes of this machine, one per core. One that is killed is replaced, and what it was working on is done again.

A job is written to a private folder once, and read once by every process. Rows that must be brought together by episode
go through files in the same folder. It is gone when the pass is over.
"""

from __future__ import annotations

import pickle
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mixope.base.errors import Advice, MixopeError, Setting, UsageError
from mixope.base.files import scratch_folder, write_whole
from mixope.base.pool import Killed, Pool, Unsendable
from mixope.base.processes import all_cores
from mixope.engines.work import Job, answered, gathered, packed, split, unsendable
from mixope.engines.workers import AHEAD, Found, WorkersEngine
from mixope.logs.gathering import Bucket, Load, Share

if TYPE_CHECKING:
    from mixope.engines.work import Item

TRIES = 3
"""So often in a row processes may be killed before any of them brings something home."""
_KILLED = Advice(
    f"processes that shared the work were killed {TRIES + 1} times in a row, perhaps for want of memory; ",
    "try fewer with ",
    Setting("workers", 1),
    ", or the engine 'embedded', which spills to the disk",
)


class ProcessesEngine(WorkersEngine):
    """``workers`` processes, by default as many as there are cores; ``memory_limit`` is for each of them."""

    name = "processes"
    _pool: Pool | None = None
    _end: Callable[[], Any] | None = None

    def mapped(self, job: Job, items: Sequence[Item]) -> Iterator[Found]:
        """Items one by one, a few ahead of the one that is waited for."""
        with scratch_folder() as folder:
            sent = _written(folder / "job", job)
            yield from self._run([partial(_answer, sent, number, item) for number, item in enumerate(items)])

    def shuffled(self, job: Job, loads: Sequence[Load], buckets: Sequence[Bucket]) -> Iterator[Found]:
        """Each load becomes a file, of which every bucket reads its share."""
        with scratch_folder() as folder:
            sent = _written(folder / "job", job)
            files = [folder / f"load-{number}" for number in range(len(loads))]
            for error in self._run([partial(_split, load, file) for load, file in zip(loads, files, strict=True)]):
                if error is not None:
                    yield error
                    return
            yield from self._run([partial(_gather, sent, bucket, files) for bucket in buckets])

    def close(self) -> None:
        """End the processes; the next pass starts others."""
        if self._end is not None:
            self._end()
        self._pool = self._end = None

    def _run(self, calls: Sequence[Callable[[], Any]]) -> Iterator[Any]:
        """The results of some calls, in order. One that died with a process is made again by another one."""
        early = dict[int, Any]()
        following, finished = 0, False
        try:
            with closing(self._started().results(calls, TRIES, AHEAD * self.count)) as results:
                for number, result in results:
                    early[number] = result
                    while following in early:
                        yield early.pop(following)
                        following += 1
            finished = True
        except Killed:
            raise UsageError(_KILLED) from None
        except Unsendable as error:
            raise unsendable(error) from error
        finally:
            if not finished:
                self.close()

    @property
    def count(self) -> int:
        """How many processes share the work."""
        return self.workers or all_cores()

    def _started(self) -> Pool:
        """Processes that need no guard in the caller's script, and that end when this engine or its process does."""
        if self._pool is None:
            self._pool = Pool(self.count)
            self._end = weakref.finalize(self, self._pool.close)
        return self._pool


def _written(path: Path, job: Job) -> Path:
    path.write_bytes(packed(job))
    return path


@lru_cache(maxsize=2)
def _read(sent: Path) -> bytes:
    return sent.read_bytes()


def _answer(sent: Path, number: int, item: Item) -> Found:
    return answered(_read(sent), number, item)


def _split(load: Load, file: Path) -> MixopeError | None:
    """The shares of a load in one file: where each begins, then one behind another."""
    shares = split(load)
    if isinstance(shares, MixopeError):
        return shares
    packed = [pickle.dumps(share, pickle.HIGHEST_PROTOCOL) for share in shares]
    begins = 8 * (len(packed) + 1) + np.cumsum([0, *map(len, packed)])
    write_whole(file, begins.astype("<i8").tobytes() + b"".join(packed))
    return None


def _gather(sent: Path, bucket: Bucket, files: Sequence[Path]) -> Found:
    return gathered(_read(sent), bucket, [_share(file, bucket.number) for file in files])


def _share(file: Path, bucket: int) -> Share:
    with open(file, "rb") as opened:
        opened.seek(8 * bucket)
        begin, end = np.frombuffer(opened.read(16), "<i8").tolist()
        opened.seek(begin)
        share: Share = pickle.loads(opened.read(end - begin))
    return share
