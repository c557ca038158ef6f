"""Short hashes of content, so that two policies share a fingerprint only where they do the same.

Callables are hashed by name, bytecode, defaults, captured values and the plain data they read from their module. What
lies deeper, a file the function opens, a service it asks, is beyond a hash: fingerprints of callables are best effort.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import pickle
import sys
import sysconfig
import types
from collections.abc import Iterator
from typing import Any

import numpy as np

from mixope.base.arrays import AnyArray

LENGTH = 16
_PLAIN = (bool, int, float, complex, str, bytes, tuple, list, dict, type(None), np.ndarray, np.generic)


def digest(*parts: bytes) -> str:
    """Hash of several byte strings, each preceded by its length so that no two lists of parts look alike."""
    state = hashlib.sha256()
    for part in parts:
        state.update(len(part).to_bytes(8, "little"))
        state.update(part)
    return state.hexdigest()[:LENGTH]


def array_bytes(array: AnyArray) -> bytes:
    """The content of an array: strings as JSON, whatever their stored width; numbers as they lie in memory."""
    if array.dtype.kind in "UO":
        return json.dumps([array.shape, array.tolist()], default=repr).encode()
    return f"{array.dtype.str}{array.shape}".encode() + np.ascontiguousarray(array).tobytes()


def callable_parts(value: Any) -> Iterator[bytes]:
    """What a callable does, as far as it can be read off it."""
    if isinstance(value, functools.partial):
        yield b"partial"
        for inner in (value.func, value.args, value.keywords):
            yield from callable_parts(inner)
    elif hasattr(value, "content_parts"):
        yield type(value).__qualname__.encode()
        yield from value.content_parts()
    elif isinstance(value, types.MethodType):
        yield from callable_parts(value.__func__)
        yield _data(value.__self__)
    elif isinstance(value, types.FunctionType):
        yield from _function_parts(value)
    elif callable(value) and isinstance(getattr(type(value), "__call__", None), types.FunctionType):  # noqa: B004
        yield from callable_parts(type(value).__call__)
        yield from _held(value)
    else:
        yield _data(value)


def _held(value: Any) -> Iterator[bytes]:
    """What an object holds; parts that say themselves what their content is are not pickled."""
    if not hasattr(value, "__dict__"):
        yield _data(value)
        return
    told = {name: part for name, part in vars(value).items() if hasattr(part, "content_parts")}
    yield _data({name: part for name, part in vars(value).items() if name not in told})
    for part in told.values():
        yield from callable_parts(part)


def _function_parts(function: types.FunctionType) -> Iterator[bytes]:
    yield f"{function.__module__}:{function.__qualname__}".encode()
    yield from _code_parts(function.__code__)
    yield _data((function.__defaults__, function.__kwdefaults__))
    for cell in function.__closure__ or ():
        yield from _captured(cell)
    for name in function.__code__.co_names:
        read = function.__globals__.get(name)
        if isinstance(read, _PLAIN):
            yield name.encode() + _data(read)


def _captured(cell: types.CellType) -> Iterator[bytes]:
    try:
        value = cell.cell_contents
    except ValueError:
        return
    if isinstance(value, types.FunctionType):  # no deeper than its code: a recursive function captures itself
        yield value.__qualname__.encode()
        yield from _code_parts(value.__code__)
    else:
        yield _data(value)


def _code_parts(code: types.CodeType) -> Iterator[bytes]:
    yield code.co_code
    yield " ".join(code.co_names).encode()
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _code_parts(constant)
        else:
            yield repr(sorted(constant, key=repr) if isinstance(constant, frozenset) else constant).encode()


def _data(value: Any) -> bytes:
    """Any value as bytes: arrays by content, the rest pickled, and by its repr where it cannot be."""
    if isinstance(value, np.ndarray) and value.dtype.kind != "O":
        return array_bytes(value)
    try:
        return pickle.dumps(value, protocol=4)
    except Exception:  # what cannot be pickled raises whatever its class likes
        return repr(value).encode()


def own_code() -> str | None:
    """A hash of all code of the user's own that this process has loaded, and of the versions of what is installed.

    The fingerprint of a callable does not see the functions that it calls; this does, as far as they lie in files. None
    where the program itself is no file, as in a notebook: then nobody can tell whether it has changed since.
    """
    if getattr(sys.modules.get("__main__"), "__file__", None) is None:
        return None
    here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    libraries = tuple(os.path.realpath(path) + os.sep for path in {here, *map(sysconfig.get_path, _LIBRARIES)})
    parts = []
    for name, module in sorted(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if isinstance(file, str) and not os.path.realpath(file).startswith(libraries) and os.path.isfile(file):
            with open(file, "rb") as source:
                parts.append(name.encode() + hashlib.file_digest(source, "sha256").digest())
    return digest(sys.version.encode(), *_installed(), *parts)


_LIBRARIES = ("stdlib", "platstdlib", "purelib", "platlib")


@functools.cache
def _installed() -> tuple[bytes, ...]:
    from importlib.metadata import distributions

    return tuple(sorted({f"{found.name} {found.version}".encode() for found in distributions()}))
