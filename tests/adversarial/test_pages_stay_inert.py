"""Pages in a browser, with hostile strings wherever a user or a file can put one: nothing runs, nothing is fetched.

The pages are those that the commands write. A browser opens each, beside two controls: a page with a script of its
own, which must run (or the test sees nothing), and the same script under our Content-Security-Policy, which must not.
"""

import re
import socket
import threading
from pathlib import Path

import pytest

from cli.running import LOG, run
from mixope.paper.experiment import Exhibit
from mixope.paper.page import write_page
from report import browser

ADDRESS = "127.0.0.1"
FILES = ("<script>owned(1)<", '"onmouseover="owned(2)', "<img src=x onerror=owned(3)>", "{{7*7}}", "'-owned(4)-'")
"""What can be in the name of a file."""
POLICY_META = re.compile(r'<meta http-equiv="Content-Security-Policy"\s+content="([^"]*)">')
RUNS = "<script>document.title = 'owned'; fetch('http://{place}/script')</script>"


def texts(place: str) -> tuple[str, ...]:
    """What can be in labels, columns and names: all that would run, load or ask."""
    return (
        f"<script>document.title='owned';fetch('http://{place}/a')</script>",
        f"<img src=http://{place}/b onerror=\"document.title='owned'\">",
        f"</title></style></svg><svg onload=\"document.title='owned'\"><image href='http://{place}/c'/></svg>",
        f"<iframe src=javascript:parent.document.title='owned'></iframe><link rel=stylesheet href=http://{place}/d>",
        f"url(http://{place}/e); background: url('http://{place}/f')",
        f"<meta http-equiv=refresh content='0;url=http://{place}/g'><base href=http://{place}/>",
        "<form action=javascript:alert(1)><button autofocus onfocus=alert(1)>",
    )


@pytest.fixture(scope="module")
def listening():
    """A server that only counts who calls."""
    heard = []
    with socket.create_server((ADDRESS, 0)) as server:
        server.settimeout(0.2)
        going = threading.Event()

        def listen():
            while not going.is_set():
                try:
                    caller, _ = server.accept()
                    with caller:
                        heard.append(caller.recv(200))
                except TimeoutError:
                    continue

        thread = threading.Thread(target=listen, daemon=True)
        thread.start()
        yield f"{ADDRESS}:{server.getsockname()[1]}", heard
        going.set()
        thread.join()


def hostile_log(text: str) -> str:
    """The label of every logger, and the names of the state's columns."""
    quoted = '"' + text.replace('"', '""') + '"'
    lines = [line.split(",") for line in LOG.splitlines()]
    rows = [[quoted if cell == "a" else cell for cell in line] for line in lines[1:]]
    return "\n".join(",".join(line) for line in [lines[0], *rows]) + "\n"


def hostile_policy(text: str) -> str:
    quoted = '"' + text.replace('"', '""') + '"'
    rows = ["0,0,0.5", "0,1,0.5", "1,0,0.25", "1,1,0.75"]
    return "\n".join([f"observation,action,prob,{quoted}", *(f"{row},{quoted}" for row in rows)]) + "\n"


@pytest.fixture(scope="module")
def pages(listening, tmp_path_factory):
    place, _ = listening
    folder, made = tmp_path_factory.mktemp("pages"), {}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for number, text in enumerate(texts(place)):
            name = FILES[number % len(FILES)]
            Path(f"{name}{number}.csv").write_text(hostile_log(text), encoding="utf-8")
            Path(f"t{name}.csv").write_text(hostile_policy(text), encoding="utf-8")
            log, target = f"{name}{number}.csv", f"t{name}.csv"
            for command, words in {
                "evaluate": ["--target", target, "--estimator", "emp", "--backtest"],
                "compare": [
                    "--target",
                    f"{text.partition('=')[0]}1={target}",
                    "--target",
                    f"old{name.partition('=')[0]}={target}",
                ],
                "backtest": [],
            }.items():
                page = f"{command}-{number}.html"
                result = run(command, log, *words, "--html", page)
                assert result.exit_code == 0, result.output
                made[page] = folder / page
            made[f"reproduce-{number}"] = reproduction(text, folder / f"reproduce-{number}.html")
    return made


def reproduction(text: str, path: Path) -> Path:
    experiment = Exhibit("hostile", text, text, {}, lambda *_: [], lambda *_: [])
    return write_page(experiment, [{text: text, "value": 1.0}], {text: text, "command": text}, None, path)


def test_every_page_forbids_everything(pages):
    for name, path in pages.items():
        policy = POLICY_META.search(path.read_text(encoding="utf-8"))
        assert policy, name
        assert policy[1].startswith("default-src 'none'; style-src 'unsafe-inline'"), name
        assert "script-src" not in policy[1]


def test_the_pages_of_the_demonstration_forbid_everything(tmp_path):
    assert run("demo", "--episodes", "8", "--horizon", "5", "-o", tmp_path / "demo").exit_code == 0
    written = sorted((tmp_path / "demo").glob("*.html"))
    assert len(written) == 2
    assert all(POLICY_META.search(page.read_text(encoding="utf-8")) for page in written)


def titled(path: Path) -> str:
    """The page as the browser has it in the end."""
    return browser.run(path, "--dump-dom").output


def test_a_browser_runs_and_fetches_nothing(pages, listening, tmp_path):
    """With the policy, and also without it: escaping alone is enough."""
    _, heard = listening
    frames = []
    for number, (name, path) in enumerate(pages.items()):
        text = path.read_text(encoding="utf-8")
        for kind, content in (("as-it-is", text), ("without", POLICY_META.sub("", text))):
            (tmp_path / f"{number}-{kind}.html").write_text(content, encoding="utf-8")
            frames.append(f'<iframe src="{number}-{kind}.html" title="{number}-{kind}"></iframe>')
        assert "<script" not in text, name
    around = tmp_path / "around.html"
    around.write_text(f"<!DOCTYPE html><title>calm</title>{''.join(frames)}", encoding="utf-8")
    found = browser.run(around, "--dump-dom", "--allow-file-access-from-files")
    assert "<title>calm</title>" in found.output
    assert found.console == ()
    assert heard == []


def test_the_controls(listening, tmp_path):
    place, heard = listening
    script = RUNS.format(place=place)
    (tmp_path / "free.html").write_text(f"<!DOCTYPE html><title>calm</title>{script}", encoding="utf-8")
    policy = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
    meta = f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
    (tmp_path / "bound.html").write_text(f"<!DOCTYPE html>{meta}<title>calm</title>{script}", encoding="utf-8")
    assert "<title>calm</title>" in titled(tmp_path / "bound.html")
    assert heard == []
    assert "<title>owned</title>" in titled(tmp_path / "free.html")
    assert heard != []
