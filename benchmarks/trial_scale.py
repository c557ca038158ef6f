"""How long an experiment of many user-days takes, and how much memory.

    python -m benchmarks.trial_scale --users 715000 --days 14
    python -m benchmarks.trial_scale --users 715000 --days 14 --visits 70

With --visits, that percentage of the rows is left in the table, and the others are days on which nobody came
(``absent="zero"``).

The table is written once (to --folder), then ``mixope.experiment`` runs on it in a process of its own.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from mixope.logs.database import connect
from mixope.worlds import engagement

ALL = 100
RUN = """
import json, resource, sys, time
import mixope
wall, cpu = time.perf_counter(), time.process_time()
found = mixope.experiment(sys.argv[1], arm="variant", control="A", unit="user", time="day", metric="revenue",
                          state=["level", "fatigue", "plan"], absent=sys.argv[2] or None)
effect = found.main.long_run.effect
print(json.dumps({
    "rows": found.rows,
    "wall": round(time.perf_counter() - wall, 1),
    "cpu": round(time.process_time() - cpu, 1),
    "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 // 1_000_000,
    "difference": effect.difference,
    "standard_error": effect.standard_error,
    "verdict": str(found.main.long_run.verdict),
}))
"""


def thinned(path: Path, percent: int) -> Path:
    """A percentage of the rows, and all first ones."""
    fewer = path.with_stem(f"{path.stem}-{percent}")
    kept = f"SELECT * FROM read_parquet('{path}') WHERE day = 0 OR hash(user, day) % 100 < {percent}"
    with connect() as connection:
        connection.execute(f"COPY ({kept}) TO '{fewer}' (FORMAT parquet)")
    return fewer


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--users", type=int, default=70_000)
    parser.add_argument("--days", type=int, default=14)
    parser.add_argument("--setting", default="wear-out")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--visits", type=int, default=ALL)
    parser.add_argument("--folder", type=Path, default=None)
    said = parser.parse_args()
    folder = said.folder or Path(tempfile.mkdtemp())
    path = folder / f"{said.setting}-{said.users}-{said.days}-{said.seed}.parquet"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        engagement.write(said.setting, path, users=said.users, days=said.days, seed=said.seed)
    if said.visits < ALL:
        path = thinned(path, said.visits)
    absent = "zero" if said.visits < ALL else ""
    done = subprocess.run([sys.executable, "-c", RUN, str(path), absent], stdout=subprocess.PIPE, text=True, check=True)
    print(json.dumps({**json.loads(done.stdout.splitlines()[-1]), "truth": engagement.effect(said.setting)}))


if __name__ == "__main__":
    main()
