"""A cluster that we start listens on loopback alone, answers nobody without its secret, and leaves no file behind."""

import os
import subprocess
import sys
import tempfile
import time
from ipaddress import ip_address

import psutil
import pytest

from laws.requests import examples, id_logs
from mixope.base.errors import UsageError
from mixope.engines import make

from .workers import parameter

pytestmark = pytest.mark.long
REQUESTS = [request for request, of in examples().values() if of is id_logs()][:2]


@pytest.fixture
def temporary(tmp_path_factory, monkeypatch):
    """A folder of temporary files with a short name: Ray keeps sockets there."""
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="m") as folder:
        monkeypatch.setenv("TMPDIR", folder)
        monkeypatch.setattr(tempfile, "tempdir", None)
        yield folder


def listening():
    """Where this process and all below it wait for connections."""
    found = set()
    for process in (psutil.Process(), *psutil.Process().children(recursive=True)):
        try:
            connections = process.net_connections("tcp")
        except psutil.Error:
            continue
        found |= {(ip.ip, ip.port) for each in connections if each.status == psutil.CONN_LISTEN for ip in [each.laddr]}
    return found


def is_loopback(address):
    found = ip_address(address)
    return (getattr(found, "ipv4_mapped", None) or found).is_loopback


@pytest.mark.parametrize("name", [parameter(name) for name in ("dask", "spark", "ray")])
def test_it_listens_on_loopback_alone_and_leaves_no_file(name, temporary):
    before = listening()
    engine = make(name, workers=1)
    try:
        engine.scan(id_logs(), REQUESTS)
        places = listening() - before
    finally:
        engine.close()
    assert places
    assert not [place for place in places if not is_loopback(place[0])]
    assert os.listdir(temporary) == []


def refused(program, *words, **environment):
    """Whether a stranger's program fails, in a process that knows nothing of the cluster's secret."""
    surroundings = {name: value for name, value in os.environ.items() if not name.startswith(("RAY_", "DASK_"))}
    done = subprocess.run(
        [sys.executable, "-c", program, *map(str, words)],
        env={**surroundings, **environment},
        capture_output=True,
        timeout=120,
        check=False,
    )
    return done.returncode != 0 and b"got in" not in done.stdout


DASK = """
import sys, distributed
address = sys.argv[1]
security = distributed.Security.temporary() if address.startswith("tls") else None
client = distributed.Client(address, timeout=5, security=security)
print(client.submit(int, 1).result(timeout=5), "got in")
"""


@pytest.mark.parametrize("protocol", ["tcp", "tls"])
@pytest.mark.parametrize("engine", [parameter("dask")])
def test_no_stranger_gets_work_done_by_dask(engine, protocol, temporary):
    """Neither without a certificate nor with one of his own; with ours, the same program would."""
    made = make(engine, workers=1)
    try:
        made.scan(id_logs(), REQUESTS)
        address = made.client.scheduler.address
        assert address.startswith("tls://127.0.0.1:")
        assert refused(DASK, f"{protocol}://{address.partition('://')[2]}")
    finally:
        made.close()


ENDED = """
import sys, time
import psutil
from mixope.engines import make
engine = make("dask", workers=1)
engine.client.wait_for_workers(1)
time.sleep(float(sys.argv[2]))
for process in psutil.Process().children(recursive=True):
    process.terminate()
if sys.argv[1] == "closed":
    engine.close()
"""


@pytest.mark.parametrize(("how", "later"), [("closed", 0.3), ("closed", 1), ("left to the end of the process", 1)])
@pytest.mark.parametrize("engine", [parameter("dask")])
def test_a_cluster_that_others_ended_is_left_soon_and_without_a_word(engine, how, later, temporary):
    """SIGTERM to all processes, as at the end of a session, reaches the scheduler too: then there is nobody to tell."""
    began = time.monotonic()
    done = subprocess.run([sys.executable, "-c", ENDED, how, str(later)], capture_output=True, timeout=120, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert time.monotonic() - began < 25  # half a minute for each connection that nobody takes, before
    assert os.listdir(temporary) == []


RAY = """
import sys
from ray._raylet import GcsClient
client = GcsClient(address=sys.argv[1])
print(client.internal_kv_keys(b"", None, timeout=5), "got in")
"""


@pytest.mark.parametrize("mode", ["disabled", "token"])
@pytest.mark.parametrize("engine", [parameter("ray")])
def test_no_stranger_is_answered_by_ray(engine, mode, temporary):
    import ray

    made = make(engine, workers=1)
    try:
        made.scan(id_logs(), REQUESTS)
        address = ray.get_runtime_context().gcs_address
        assert refused(RAY, address, RAY_AUTH_MODE=mode, RAY_AUTH_TOKEN="0" * 64)
        assert not refused(RAY, address, RAY_AUTH_MODE="token", RAY_AUTH_TOKEN=os.environ["RAY_AUTH_TOKEN"])
    finally:
        made.close()
    assert "RAY_AUTH_TOKEN" not in os.environ


@pytest.mark.parametrize("engine", [parameter("spark")])
def test_a_session_of_spark_asks_for_its_secret(engine, temporary):
    made = make(engine, workers=1)
    try:
        made.scan(id_logs(), REQUESTS)
        settings = made.session.sparkContext.getConf()
        assert settings.get("spark.authenticate") == "true"
        assert len(settings.get("spark.authenticate.secret")) == 64
        assert settings.get("spark.ui.enabled") == "false"
    finally:
        made.close()


@pytest.mark.parametrize("engine", [parameter("ray")])
def test_a_ray_that_knows_no_tokens_is_refused_in_words(engine, monkeypatch):
    import ray

    monkeypatch.delattr(ray._raylet, "AuthenticationTokenLoader")
    with pytest.raises(UsageError, match=r"ray>=2\.52"):
        make(engine, workers=1).scan(id_logs(), REQUESTS)
    assert not ray.is_initialized()
