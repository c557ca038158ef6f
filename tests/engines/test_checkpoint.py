"""A checkpoint: what was scanned once is not scanned again, and not a bit is another."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest
from tests.rounds import worlds

import mixope
from mixope.base.errors import MixopeWarning, UsageError
from mixope.engines import CheckpointedEngine, EmbeddedEngine, MemoryEngine, checkpointed
from mixope.engines.kept import MISSING, Kept
from mixope.logs import write
from mixope.worlds import simulate, singlepath


def small_log(folder, seed=0):
    model = singlepath()
    laws = np.random.default_rng(1).dirichlet(np.full(model.n_actions, 4.0), size=(2, model.n_states))
    return str(write(simulate(model, list(laws), 20, 15, seed=seed), folder / "log.parquet"))


def small_target(lean=0.5):
    model = singlepath()
    law = np.full((model.n_states, model.n_actions), (1 - lean) / (model.n_actions - 1))
    law[:, 0] = lean
    return mixope.TabularPolicy(law)


def asked(path, folder, target=None):
    """The answer, and how many scans of how many came from the folder."""
    engine = CheckpointedEngine(EmbeddedEngine(), folder)
    found = mixope.evaluate(path, target or small_target(), engine=engine)
    return found.to_json(), (engine.taken, engine.asked)


class Counting(MemoryEngine):
    """Counts what it is asked."""

    def __init__(self):
        super().__init__()
        self.calls = 0

    def scan(self, logs, requests, expected_rows=None):
        self.calls += 1
        return super().scan(logs, requests, expected_rows)


@pytest.mark.parametrize("states", worlds.STATES)
@pytest.mark.parametrize("actions", worlds.ACTIONS)
@pytest.mark.long
def test_every_estimator_gives_the_same_bytes_without_a_scan(states, actions, tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules["__main__"], "__file__", __file__, raising=False)  # a worker of pytest has none

    def compare(engine):
        logs, target = worlds.read(states, actions), worlds.policy(states, actions, 0.6)
        features = worlds.features(states) if states == "floats" else None
        return mixope.compare(logs, {"new": target}, "all", features=features, engine=engine).to_json()

    plain = compare(Counting())
    first, second = (CheckpointedEngine(Counting(), tmp_path / "kept") for _ in range(2))
    assert compare(first) == compare(second) == plain
    assert first.taken == 0
    assert second.taken == second.asked == first.asked
    assert second.engine.calls == 0


RUN = """
    import os, signal, sys
    import mixope
    from mixope.engines import CheckpointedEngine, EmbeddedEngine
    from mixope.engines.kept import Kept
    from tests.engines.test_checkpoint import small_target

    put, killed = Kept.put, sys.argv[3] == "killed"

    def put_and_die(self, key, value):
        put(self, key, value)
        if killed:
            os.kill(os.getpid(), signal.SIGKILL)

    Kept.put = put_and_die
    engine = CheckpointedEngine(EmbeddedEngine(), sys.argv[2])
    print(mixope.evaluate(sys.argv[1], small_target(), engine=engine).to_json())
    print(engine.taken, engine.asked)
"""


def start(path, folder, how):
    command = [sys.executable, "-c", textwrap.dedent(RUN), path, str(folder), how]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_a_killed_job_goes_on_after_its_last_finished_scan(tmp_path):
    path = small_log(tmp_path)
    killed = start(path, tmp_path / "kept", "killed")
    assert killed.wait(120) == -signal.SIGKILL
    assert killed.communicate()[0] == ""
    again = start(path, tmp_path / "kept", "left alone")
    said, wrong = again.communicate(timeout=120)
    assert again.returncode == 0, wrong
    answer, scans = said.rstrip().rsplit("\n", 1)
    assert scans == "1 2"
    assert answer == mixope.evaluate(path, small_target()).to_json()


@pytest.mark.long
def test_two_processes_may_share_a_folder(tmp_path):
    path = small_log(tmp_path)
    both = [start(path, tmp_path / "kept", "left alone") for _ in range(2)]
    said = [process.communicate(timeout=120)[0].rstrip().rsplit("\n", 1)[0] for process in both]
    assert said[0] == said[1] == asked(path, tmp_path / "kept")[0]
    assert asked(path, tmp_path / "kept")[1] == (2, 2)
    assert [name for name in os.listdir(tmp_path / "kept") if not name.endswith(".kept")] == []


def test_another_target_shares_the_first_scan(tmp_path):
    path = small_log(tmp_path)
    asked(path, tmp_path / "kept")
    answer, scans = asked(path, tmp_path / "kept", small_target(0.8))
    assert scans == (1, 2)
    assert answer == mixope.evaluate(path, small_target(0.8)).to_json()


def test_other_logs_are_not_found(tmp_path):
    path = small_log(tmp_path)
    asked(path, tmp_path / "kept")
    small_log(tmp_path, seed=1)
    answer, scans = asked(path, tmp_path / "kept")
    assert scans == (0, 2)
    assert answer == mixope.evaluate(path, small_target()).to_json()


def test_a_file_that_was_written_again_is_another_file(tmp_path):
    path = small_log(tmp_path)
    asked(path, tmp_path / "kept")
    os.utime(path, ns=(time.time_ns(), time.time_ns() + 10**9))
    assert asked(path, tmp_path / "kept")[1] == (0, 2)


def test_the_same_logs_read_otherwise_are_not_found(tmp_path):
    path = small_log(tmp_path)
    asked(mixope.read(path), tmp_path / "kept")
    assert asked(mixope.read(path, columns={"action_prob": None}), tmp_path / "kept")[1] == (0, 2)


@pytest.mark.parametrize("damage", ["cut", "changed", "empty", "not ours"])
def test_a_damaged_file_is_told_of_and_made_again(damage, tmp_path):
    path = small_log(tmp_path)
    sound, _ = asked(path, tmp_path / "kept")
    for kept in (tmp_path / "kept").iterdir():
        whole = kept.read_bytes()
        changed = whole[:200] + bytes([whole[200] ^ 1]) + whole[201:]
        kept.write_bytes({"cut": whole[:-40], "changed": changed, "empty": b"", "not ours": b"x" * 100}[damage])
    with pytest.warns(MixopeWarning, match=r"is damaged \(its checksum is wrong\)"):
        assert asked(path, tmp_path / "kept") == (sound, (0, 2))
    assert asked(path, tmp_path / "kept") == (sound, (2, 2))


def test_what_is_kept_is_found_again(tmp_path):
    kept = Kept(tmp_path / "deep" / "folder")
    assert kept.get("a") is MISSING
    kept.put("a", None)
    kept.put("b", [np.arange(3), "x"])
    assert kept.get("a") is None
    assert kept.get("b")[0].tolist() == [0, 1, 2]
    assert kept.size() == sum(path.stat().st_size for path in kept.folder.iterdir())


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
def test_a_folder_that_others_can_write_to_is_refused(tmp_path):
    kept = Kept(tmp_path / "kept")
    kept.put("a", 1)
    os.chmod(tmp_path / "kept" / "a.kept", 0o666)
    with pytest.raises(UsageError, match=r"can be written by others \(mode 666\)"):
        kept.get("a")
    os.chmod(tmp_path / "kept", 0o770)
    with pytest.raises(UsageError, match=r"can be written by others \(mode 770\); run chmod go-w"):
        Kept(tmp_path / "kept")


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="only root can give a folder away")
def test_a_folder_of_another_user_is_refused(tmp_path):
    (tmp_path / "kept").mkdir(mode=0o700)
    os.chown(tmp_path / "kept", 12345, 12345)
    with pytest.raises(UsageError, match="belongs to another user"):
        Kept(tmp_path / "kept")


def test_a_place_that_is_no_folder_is_refused_at_once(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(UsageError, match="names a folder"):
        mixope.evaluate(small_log(tmp_path), small_target(), checkpoint=tmp_path / "file")
    with pytest.raises(UsageError, match="names a folder"):
        Kept(tmp_path / "file" / "below")


def test_an_answer_that_cannot_be_written_is_told_of_and_the_job_goes_on(tmp_path, monkeypatch):
    def full(file, value):
        raise OSError(28, "No space left on device")

    path = small_log(tmp_path)
    monkeypatch.setattr("mixope.engines.kept._write", full)
    with pytest.warns(MixopeWarning, match="is not kept: No space left on device"):
        answer, _ = asked(path, tmp_path / "kept")
    assert answer == mixope.evaluate(path, small_target()).to_json()
    assert os.listdir(tmp_path / "kept") == []


PLAN = """
    import numpy as np

    def lean():
        return {lean}

    def target(states):
        return np.tile([1 - lean(), lean()], (len(states), 1))

    target.actions = (0, 1)
"""


def of_a_function(folder, lean):
    """Vectors, and a target that calls another function of its module, in a process of its own."""
    (folder / "plan.py").write_text(textwrap.dedent(PLAN.format(lean=lean)))
    words = ["--target", "plan:target", "--estimator", "emp", "--checkpoint", "kept", "--json"]
    command = [sys.executable, "-m", "mixope", "evaluate", "log.parquet", *words]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["value"], done.stderr


@pytest.mark.long
def test_a_function_is_known_by_the_functions_that_it_calls(tmp_path):
    write(worlds.columns("floats", "discrete"), tmp_path / "log.parquet")
    first, said = of_a_function(tmp_path, 0.6)
    assert "0 of 4 scans were taken from the checkpoint" in said
    again, said = of_a_function(tmp_path, 0.6)
    assert again == first
    assert "4 of 4 scans were taken from the checkpoint" in said
    other, said = of_a_function(tmp_path, 0.9)
    assert other != first
    assert "1 of 4 scans were taken from the checkpoint" in said


def test_nothing_of_a_function_is_kept_where_its_program_is_no_file(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpointed, "own_code", lambda: None)
    logs, target = worlds.read("floats", "discrete"), worlds.policy("floats", "discrete", 0.6)
    for _ in range(2):
        engine = CheckpointedEngine(Counting(), tmp_path / "kept")
        mixope.evaluate(logs, target, "emp", engine=engine, features=worlds.features("floats"))
    assert engine.taken == 1
    assert len(os.listdir(tmp_path / "kept")) == 1


def test_what_has_no_content_is_never_found():
    class Local:
        pass

    assert checkpointed.requests_key([Local()]) is None
    assert checkpointed.requests_key([lambda: 0]) is None
    assert checkpointed.requests_key([np.arange(3)]) != checkpointed.requests_key([np.arange(4)])


@pytest.mark.parametrize("command", ["inspect", "backtest", "compare"])
def test_every_command_keeps_its_scans(command, tmp_path):
    path = small_log(tmp_path)
    calls = {
        "inspect": lambda folder: mixope.inspect(path, checkpoint=folder),
        "backtest": lambda folder: mixope.backtest(path, checkpoint=folder),
        "compare": lambda folder: mixope.compare(path, {"new": small_target()}, checkpoint=folder),
    }
    plain, first = calls[command](None), calls[command](tmp_path / "kept")
    names = sorted(os.listdir(tmp_path / "kept"))
    assert names
    assert calls[command](tmp_path / "kept").to_dict() == first.to_dict() == plain.to_dict()
    assert sorted(os.listdir(tmp_path / "kept")) == names
