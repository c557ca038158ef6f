"""What the system sees: every file, program and address that a run of the fuzzer opens, also where C++ does it.

    python -m tests.adversarial.fuzzing.tracing --inputs 2000 --seed 25

``strace`` has to be there. What may be opened is what :mod:`watching` says.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

from .watching import allowed

CALLS = "open,openat,openat2,creat,execve,connect,bind,sendto"
_OPENED = re.compile(r'(?:open|openat|openat2|creat)\((?:[^"]*)"((?:[^"\\]|\\.)*)".* = \d+')
_RAN = re.compile(r'execve\("((?:[^"\\]|\\.)*)".* = 0')
_ASKED = re.compile(r"(?:connect|bind|sendto)\(.*AF_INET")
_OF_A_PROCESS = re.compile(r"/proc/\d+/(?!environ)")


def strange(line: str) -> str | None:
    """What a line of ``strace`` says that should not be; None for the others."""
    if _ASKED.search(line):
        return f"an address: {line.strip()[:200]}"
    if ran := _RAN.search(line):
        return None if "python" in Path(ran[1]).name else f"a program: {ran[1]}"
    opened = _OPENED.search(line)
    if opened is None or "O_DIRECTORY" in line:
        return None
    path = opened[1].encode("latin-1", "backslashreplace").decode("unicode_escape", "replace")
    return None if allowed(path) or _OF_A_PROCESS.match(path) else f"a file: {path}"


def main() -> int:
    """Run, and list what is strange."""
    parser = argparse.ArgumentParser(prog="python -m tests.adversarial.fuzzing.tracing", description=__doc__)
    parser.add_argument("--inputs", type=int, default=2_000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="mixope-fuzzing-trace-") as folder:
        trace = Path(folder) / "trace.txt"
        said = ["--inputs", str(given.inputs), "--seed", str(given.seed), "--jobs", "1", "--patience", "120"]
        words = [sys.executable, "-m", "tests.adversarial.fuzzing", *said, "--corpus", f"{folder}/corpus"]
        subprocess.run(
            ["strace", "-f", "-qq", "-s", "4096", "-e", f"trace={CALLS}", "-o", str(trace), *words], check=False
        )
        lines, found = 0, Counter[str]()
        with trace.open(encoding="utf-8", errors="replace") as file:
            for line in file:
                lines += 1
                if what := strange(line):
                    found[what] += 1
    print(f"{lines:,} calls of the system; {sum(found.values())} that should not be")
    for what, times in found.most_common():
        print(f"  {times:6} {what}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
