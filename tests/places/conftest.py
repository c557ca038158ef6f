"""A server of objects on the loopback, and one log to put into every place."""

import subprocess
import sys

import pyarrow as pa
import pytest

from mixope import worlds

MODEL = worlds.make("singlepath")
LOGGERS = worlds.stages(MODEL, 2, seed=0)


def log(seed=0, episodes=20):
    return pa.table(worlds.simulate(MODEL, LOGGERS, episodes, 10, seed=seed))


SERVE = """
import logging, sys
from moto.server import ThreadedMotoServer
logging.getLogger("werkzeug").setLevel(logging.ERROR)
server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
print("http://{}:{}".format(*server.get_host_and_port()), flush=True)
sys.stdin.read()
"""
"""A process of its own: DuckDB and pyarrow may wait for an answer while they hold the lock of this one's Python."""


@pytest.fixture(scope="session")
def server():
    """The address of an S3 server; its settings are in the environment, as a user would have them."""
    pytest.importorskip("moto.server", reason="needs a server of objects: pip install 'moto[server]'")
    command = [sys.executable, "-c", SERVE]
    with (
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as running,
        pytest.MonkeyPatch.context() as patch,
    ):
        address = running.stdout.readline().strip()
        for name, value in {
            "AWS_ENDPOINT_URL": address,
            "AWS_ACCESS_KEY_ID": "key",
            "AWS_SECRET_ACCESS_KEY": "hush-hush",
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",
        }.items():
            patch.setenv(name, value)
        patch.delenv("AWS_PROFILE", raising=False)
        yield address
        running.stdin.close()
        running.wait(30)


@pytest.fixture(scope="session")
def s3(server):
    from pyarrow import fs

    found = fs.S3FileSystem(endpoint_override=server, region="us-east-1", allow_bucket_creation=True)
    found.create_dir("lake")
    return found
