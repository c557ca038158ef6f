"""A headless Chromium: what pages look like once they are laid out.

The pages under test hold no script. Copies of them get one here, which measures and tells the page around it; they
stand in frames of the wanted width, because a window cannot be as narrow as a telephone.
"""

import json
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from html import escape, unescape
from pathlib import Path

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
OPTIONS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--no-default-browser-check"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-extensions"),
    *("--disable-dev-shm-usage", "--hide-scrollbars", "--enable-logging=stderr", "--virtual-time-budget=8000"),
)
DARK = "--blink-settings=preferredColorScheme=0"
MEASURE = (Path(__file__).parent / "measure.js").read_text(encoding="utf-8")
POLICY = re.compile(r"<meta http-equiv=[^>]*>")
LISTEN = """
window.found = {};
addEventListener("message", event => {
  window.found[event.data.name] = event.data;
  document.getElementById("found").textContent = JSON.stringify(window.found);
});
"""


@dataclass(frozen=True)
class Run:
    """What the browser printed, and what it said on its console."""

    output: str
    console: tuple[str, ...]


def find() -> str:
    """The browser's path; without one, tests that need it are skipped, but not in continuous integration."""
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    if found is None and os.environ.get("CI"):
        pytest.fail(f"no browser: one of {', '.join(NAMES)} must be installed where CI is set")
    if found is None:
        pytest.skip(f"no browser: none of {', '.join(NAMES)} is installed, so pages are not laid out")
    return found


def run(page: Path, *options: str, wide: int = 1400, high: int = 1000) -> Run:
    """Open a file."""
    profile = page.parent / f"profile-{page.stem}"
    command = [find(), *OPTIONS, f"--user-data-dir={profile}", f"--window-size={wide},{high}", *options, page.as_uri()]
    done = subprocess.run(command, capture_output=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr.decode(errors="replace")[-2000:]
    said = re.findall(r"CONSOLE[^\]]*\] (.*)", done.stderr.decode(errors="replace"))
    return Run(done.stdout.decode(), tuple(said))


def measure(pages: dict[str, str], widths: tuple[int, ...], folder: Path, *options: str) -> dict[str, dict]:
    """Lay out every page at every width; by ``name@width`` what was found."""
    frames = []
    for name, text in pages.items():
        for width in widths:
            key = f"{name}@{width}"
            file = folder / f"{name}-{width}.html"
            script = f"<script>const NAME = {json.dumps(key)};\n{MEASURE}</script></body>"
            file.write_text(POLICY.sub("", text).replace("</body>", script), encoding="utf-8")
            frames.append(f'<iframe src="{escape(file.name)}" style="border:0;width:{width}px;height:900px"></iframe>')
    around = folder / "around.html"
    around.write_text(
        f'<!DOCTYPE html><script>{LISTEN}</script><pre id="found"></pre>{"".join(frames)}', encoding="utf-8"
    )
    printed = run(around, "--dump-dom", *options).output
    written = re.search(r'<pre id="found">(.*?)</pre>', printed, re.DOTALL)
    assert written, printed[:500]

    return dict(json.loads(unescape(written[1])))
