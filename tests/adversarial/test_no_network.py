"""Nothing is fetched and nothing is sent: no socket is opened at import, in a run, or for a report.

A store that the user names is another matter: tests/places watches that nothing else is reached.
"""

import os
import shutil
import subprocess
import sys

import pytest

from cli.running import LOG, POLICY, write
from mixope.base.errors import DataError
from mixope.logs import read
from mixope.logs.database import connect

from .fuzzing.mutations import POLICIES, originals

WATCHED = """
import sys
def watch(event, arguments):
    if event.startswith(("socket.connect", "socket.bind", "socket.getaddrinfo", "socket.sendto", "urllib", "http")):
        print(event, arguments, flush=True)
        raise SystemExit(99)
sys.addaudithook(watch)
import mixope, mixope.report, mixope.backtesting, mixope.paper
from mixope.cli import app
for words in (
    ["evaluate", "log.csv", "--target", "t.csv", "--html", "page.html", "--json"],
    ["compare", "log.csv", "--target", "a=t.csv", "--target", "b=t.csv", "--html", "compare.html"],
    ["backtest", "log.csv", "--html", "backtest.html"],
    ["inspect", "log.csv", "--target", "t.csv"],
    ["simulate", "walk", "--episodes", "8", "-o", "data"],
    ["demo", "--episodes", "8", "--horizon", "5", "-o", "demo"],
    ["evaluate", "http://127.0.0.1:9/log.csv", "--target", "t.csv"],
    ["evaluate", "nowhere://bucket/log.parquet", "--target", "t.csv"],
):
    app(words, standalone_mode=False)
"""


def test_no_socket_is_used_from_import_to_report(tmp_path):
    write(tmp_path / "log.csv", LOG)
    write(tmp_path / "t.csv", POLICY)
    done = subprocess.run(
        [sys.executable, "-c", WATCHED], cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode in {0, 1, 3}, done.stdout[-500:] + done.stderr[-2000:]
    assert "socket" not in done.stdout
    assert {"page.html", "compare.html", "backtest.html", "data", "demo"} <= set(os.listdir(tmp_path))


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
def test_no_system_call_connects_anywhere(tmp_path):
    """Also what is written in C++."""
    write(tmp_path / "log.csv", LOG)
    write(tmp_path / "t.csv", POLICY)
    traced = ["strace", "-f", "-e", "trace=connect", "-o", "trace", sys.executable, "-m", "mixope"]
    words = ["evaluate", "log.csv", "--target", "t.csv", "--html", "page.html"]
    subprocess.run([*traced, *words], cwd=tmp_path, capture_output=True, timeout=300, check=True)
    assert "AF_INET" not in (tmp_path / "trace").read_text()


NETWORK = """
import mixope, numpy as np, time
print(mixope.read_policy("policy.onnx").probs(np.eye(2)).shape)
time.sleep(2)
"""


def test_the_runtime_of_networks_tells_nobody(tmp_path):
    """ONNX Runtime 1.31 keeps what it is about to send in the home folder."""
    pytest.importorskip("onnxruntime", reason="pip install 'mixope[onnx]'")
    network = originals(POLICIES).get("onnx")
    if network is None:
        pytest.skip("pip install onnx")
    (tmp_path / "policy.onnx").write_bytes(network[1])
    (tmp_path / "home").mkdir()
    kept = {name: value for name, value in os.environ.items() if name != "ORT_DISABLE_TELEMETRY"}
    words = [sys.executable, "-c", NETWORK]
    traced = ["strace", "-f", "-e", "trace=connect", "-o", "trace"] if shutil.which("strace") else []
    done = subprocess.run(
        [*traced, *words],
        cwd=tmp_path,
        env={**kept, "HOME": str(tmp_path / "home"), "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert "(2, 2)" in done.stdout
    assert not list((tmp_path / "home").rglob("onnxruntime*"))
    assert not traced or "AF_INET" not in (tmp_path / "trace").read_text()


def test_the_database_installs_and_loads_nothing():
    with connect() as connection:
        for name in ("autoinstall_known_extensions", "autoload_known_extensions", "allow_community_extensions"):
            assert connection.execute(f"SELECT current_setting('{name}')").fetchall() == [(False,)]


@pytest.mark.parametrize("address", ["http://a/b.csv", "https://a/b.parquet"])
def test_an_address_of_the_web_is_not_opened(address):
    with pytest.raises(DataError, match="Addresses of the web are not opened"):
        read(address)
