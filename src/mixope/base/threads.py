"""What threads of this process share: the thread pools of linear algebra, and states that one must not undo alone.

Pools of libraries (OpenBLAS, MKL, OpenMP) are held to one thread while anybody computes: no result depends on how many
there are, and none fight over the cores. Three things make that hold whoever comes first and leaves last:

- the pools of linear algebra belong to the process: the first that asks sets them, the last one gives them back;
- the number of OpenMP belongs to each thread, so that every thread that computes has to ask for itself;
- a library may be loaded while its pools are held, as scikit-learn is by the first fit that wants it: whoever imports a
  module while pools are held looks for new ones when it is loaded.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import EXTENSION_SUFFIXES, ModuleSpec
from types import ModuleType
from typing import Any


class Shared:
    """A context that threads share, one for every object: the first thread enters it, the last one leaves it."""

    def __init__(self, make: Callable[[Any], AbstractContextManager[Any]]) -> None:
        self._make, self._lock = make, threading.Lock()
        self._entered: dict[int, tuple[ExitStack, set[object]]] = {}

    @contextmanager
    def __call__(self, what: object = None) -> Iterator[None]:
        """Inside, the context of this very object is entered, whoever else comes and goes."""
        visit = object()
        with self._lock:
            if id(what) not in self._entered:
                stack = ExitStack()
                stack.enter_context(self._make(what))
                self._entered[id(what)] = stack, set()
            self._entered[id(what)][1].add(visit)
        try:
            yield
        finally:
            with self._lock:
                stack, visits = self._entered[id(what)]
                visits.remove(visit)
                if not visits:
                    del self._entered[id(what)]
                    stack.close()


@contextmanager
def one_thread() -> Iterator[None]:
    """Hold linear algebra to one thread, in this thread: also what is loaded meanwhile."""
    here = _here.held
    here.times += 1
    try:
        with _of_the_process():
            _hold()
            yield
    finally:
        here.times -= 1
        if here.times == 0 and here is _here.held:  # a generator may be closed by another thread
            here.give_back()


class _Held:
    """Pools, how many threads each of them had, and how many times they are held."""

    def __init__(self) -> None:
        self.before: dict[str, tuple[Any, int]] = {}
        self.times = 0

    def hold(self, pools: Iterable[Any]) -> None:
        """To one thread each."""
        for pool in pools:
            self.before.setdefault(pool.filepath, (pool, pool.num_threads))
            _set(pool, 1)

    def give_back(self) -> None:
        """As they were."""
        for pool, count in self.before.values():
            _set(pool, count)
        self.before.clear()


def _set(pool: Any, count: int) -> None:
    """Whoever set it before: threadpoolctl lets the first thread that sets a pool of the process go on alone."""
    if pool.num_threads == count:
        return
    free = getattr(pool, "clear_controlling_thread", None)
    if free is not None:
        free(force=True)
    pool.set_num_threads(count)
    if free is not None:
        free(force=True)


def _of_thread(pool: Any) -> bool:
    """Whether its number of threads is one of the thread that asks."""
    return "openmp" in (pool.user_api, getattr(pool, "threading_layer", None))


class _Here(threading.local):
    """What is held in this thread alone, and whether it is on its way through an import."""

    def __init__(self) -> None:
        self.held = _Held()
        self.importing = False


_here = _Here()
_lock = threading.RLock()
_everywhere: list[_Held] = []
"""Who holds the pools that belong to the process, while anybody does."""


@contextmanager
def _held_everywhere(_: object) -> Iterator[None]:
    if _WATCH not in sys.meta_path:
        sys.meta_path.insert(0, _WATCH)  # and there it stays: to take it out would disturb the imports of others
    with _lock:
        _everywhere.append(_Held())
    try:
        yield
    finally:
        with _lock:
            _everywhere.pop().give_back()


_of_the_process = Shared(_held_everywhere)


def _hold() -> None:
    """All pools that are loaded now: those of the process, and OpenMP for this thread."""
    import threadpoolctl  # noqa: F401 -- before the lock is taken: nobody imports while others wait

    with _lock:
        pools = _POOLS.loaded()
        for held in _everywhere:
            held.hold(pool for pool in pools if not _of_thread(pool))
    if _here.held.times:
        _here.held.hold(pool for pool in pools if _of_thread(pool))


class _Pools:
    """The pools of the libraries that are loaded; finding them takes milliseconds, so it is done after some came."""

    def __init__(self) -> None:
        self._modules, self._found = 0, list[Any]()

    def loaded(self) -> list[Any]:
        """All of them."""
        modules = list(sys.modules.values())
        if any(map(_is_compiled, modules[self._modules :])):
            from threadpoolctl import ThreadpoolController

            self._found = ThreadpoolController().lib_controllers
        self._modules = len(modules)
        return self._found


def _is_compiled(module: object) -> bool:
    """By its dictionary, since attributes may load a lazy module; what only says that it is a module has none."""
    real = issubclass(type(module), ModuleType)
    names = ModuleType.__getattribute__(module, "__dict__") if real else {}
    path = names.get("__file__")
    return isinstance(path, str) and path.endswith(tuple(EXTENSION_SUFFIXES))


class _Watch(MetaPathFinder):
    """Finds what other finders find, so as to know when it is loaded; while nobody holds pools it finds nothing."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """None for what is imported on the way, too: it is looked at with the module that wanted it."""
        if not _everywhere or _here.importing:
            return None
        _here.importing = True
        try:
            finders = (finder for finder in list(sys.meta_path) if finder is not self)
            found = next((spec for finder in finders if (spec := finder.find_spec(name, path, target))), None)
        finally:
            _here.importing = False
        if found is not None and hasattr(found.loader, "exec_module"):
            found.loader = _Loading(found.loader)
        return found


class _Loading(Loader):
    """Stands in for a loader until the module is loaded, which gets the loader itself."""

    def __init__(self, loader: Any) -> None:
        self._loader = loader

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """As the loader does."""
        created: ModuleType | None = self._loader.create_module(spec)
        return created

    def exec_module(self, module: ModuleType) -> None:
        """As the loader does; then the pools that came with it are held."""
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        _here.importing = True
        try:
            self._loader.exec_module(module)
        finally:
            _here.importing = False
            _hold()


_WATCH, _POOLS = _Watch(), _Pools()
