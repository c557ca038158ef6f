"""Where networks are trained and moments added up: on a GPU that JAX can use, or on the processor.

"auto" takes a GPU where there is one, "cpu" never does, and "gpu" is refused where there is none.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Literal

from mixope.base.errors import Advice, MissingExtra, Setting, UnknownName, UsageError

Device = Literal["auto", "cpu", "gpu"]
DEVICES: tuple[Device, ...] = ("auto", "cpu", "gpu")
_NODES = ("/dev/nvidia0", "/dev/nvidiactl", "/dev/kfd", "/dev/dxg")
"""What a driver shows of a GPU: NVIDIA's, AMD's, and that of a Linux inside Windows."""
_DEVICE, _CPU = Setting("device"), Setting("device", "cpu")
_MEMORY = "XLA_PYTHON_CLIENT_PREALLOCATE"


def check_device(device: str) -> None:
    """A name that is none, or a GPU that is not there, is told before anything is read."""
    if device != "auto":
        find_gpu(device)


def find_gpu(device: str) -> Any | None:
    """The GPU on which to train, as JAX knows it, or None for the processor."""
    if device not in DEVICES:
        raise UnknownName("device", device, DEVICES)
    if device == "cpu" or (device == "auto" and not _likely()):
        return None
    try:
        return _gpu()
    except UsageError:
        if device == "auto":
            return None
        raise


def unusable(error: Exception, device: Any, what: str = "training") -> UsageError:
    """The words where a GPU that was there failed, such as for want of memory."""
    said = f"{what} on the GPU ({device.device_kind}) failed: {_first_line(error)}. To do it on the processor say "
    return UsageError(Advice(said, _CPU))


def _gpu() -> Any:
    """The first GPU that JAX sees, or the words why there is none."""
    jax = _load_jax()
    try:
        seen = jax.devices()
    except RuntimeError as error:  # a driver that does not fit, or a GPU that others have filled
        raise UsageError(Advice(f"JAX cannot use the GPU: {_first_line(error)}. Say ", _CPU, " without it")) from error
    found = next((each for each in seen if each.platform != "cpu"), None)
    if found is None:
        why = "a GPU was asked for, and JAX sees none here. JAX for GPUs of NVIDIA: pip install 'jax[cuda12]'"
        raise UsageError(Advice(why, "; to train on the processor, leave out ", _DEVICE, " or say ", _CPU))
    return found


def _likely() -> bool:
    """Whether it is worth asking JAX: it is loaded already, or a driver shows a GPU and it is installed.

    Importing JAX takes a second and starting it another, which most machines, having no GPU, would spend for nothing.
    """
    if sys.modules.get("jax") is not None:
        return True
    return any(map(os.path.exists, _NODES)) and find_spec("jax") is not None


def _load_jax() -> Any:
    """JAX, which is told to take memory as it needs it: by itself it would take most of the GPU from all others."""
    if "jax" not in sys.modules:
        os.environ.setdefault(_MEMORY, "false")
    try:
        return import_module("jax")
    except ImportError as error:
        raise MissingExtra("jax", "training on a GPU") from error


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
