"""Nothing is unpickled unless the user says so: whatever holds a pickle, its code does not run."""

import io
import pickle
import subprocess
import sys
import zipfile
from pathlib import Path

import joblib
import numpy as np
import pytest

import mixope
from cli.running import LOG, POLICY, run, write
from mixope.base.errors import MixopeError


class Trap:
    """Unpickled, it writes a file."""

    def __reduce__(self):
        return Path.touch, (Path("owned"),)


def packed(content: bytes, name: str) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as made:
        made.writestr(name, content)
    return file.getvalue()


def array() -> bytes:
    file = io.BytesIO()
    np.save(file, np.array([[Trap(), Trap()]], dtype=object), allow_pickle=True)
    return file.getvalue()


def dumped() -> bytes:
    file = io.BytesIO()
    joblib.dump(Trap(), file)
    return file.getvalue()


HOLDERS = {
    "an npy of objects": (".npy", array()),
    "an npz of objects": (".npz", packed(array(), "probabilities.npy")),
    "an npz that holds a pickle": (".npz", packed(pickle.dumps(Trap()), "probabilities.npy")),
    "a pickle": (".pkl", pickle.dumps(Trap())),
    "a pickle called npy": (".npy", pickle.dumps(Trap())),
    "a pickle called npz": (".npz", pickle.dumps(Trap())),
    "a pickle called csv": (".csv", pickle.dumps(Trap())),
    "a pickle called onnx": (".onnx", pickle.dumps(Trap())),
    "a model of joblib": (".joblib", dumped()),
    "a network of torch": (".pt", packed(pickle.dumps(Trap()), "archive/data.pkl")),
    "a checkpoint": (".zip", packed(pickle.dumps(Trap()), "policy.pth")),
    "an HDF5 file": (".h5", b"\x89HDF\r\n\x1a\n" + pickle.dumps(Trap())),
}


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "log.csv", LOG)
    write(tmp_path / "t.csv", POLICY)
    return tmp_path


@pytest.mark.parametrize("name", HOLDERS)
@pytest.mark.parametrize("role", ["log", "target", "logger"])
def test_code_in_a_file_does_not_run(name, role, here):
    ending, content = HOLDERS[name]
    (here / f"x{ending}").write_bytes(content)
    words = {
        "log": ("evaluate", f"x{ending}", "--target", "t.csv"),
        "target": ("evaluate", "log.csv", "--target", f"x{ending}"),
        "logger": ("evaluate", "log.csv", "--target", "t.csv", "--logger", f"a=x{ending}"),
    }[role]
    result = run(*words)
    assert result.exit_code in {2, 3}, result.output
    assert f"x{ending}" in result.stderr
    assert not (here / "owned").exists()
    with pytest.raises(MixopeError):
        mixope.read(f"x{ending}") if role == "log" else mixope.read_policy(f"x{ending}")
    assert not (here / "owned").exists()


@pytest.mark.parametrize("name", ["an npy of objects", "an npz of objects", "a pickle", "a model of joblib"])
def test_trust_is_what_unpickles_and_only_policies(name, here):
    ending, content = HOLDERS[name]
    (here / f"x{ending}").write_bytes(content)
    run("evaluate", f"x{ending}", "--target", "t.csv", "--trust")
    assert not (here / "owned").exists()
    run("evaluate", "log.csv", "--target", f"x{ending}", "--trust")
    assert (here / "owned").exists()


def test_the_trap_is_one(here):
    code = f"import pickle; pickle.loads({pickle.dumps(Trap())!r})"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=here)
    assert (here / "owned").exists()
