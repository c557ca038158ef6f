"""Times put the rows of an episode in order where no column counts the steps; those that cannot are refused."""

import csv
import datetime as dt
import random
from contextlib import suppress

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.cli.running import run

import mixope
from mixope.base.errors import DataError, MixopeError

pytestmark = pytest.mark.filterwarnings("ignore::mixope.MixopeWarning")

START = dt.datetime(2026, 3, 28, 23, 59, 59)
MOMENTS = [START + dt.timedelta(seconds=s) for s in (0, 1, 90, 90_000)]
"""Over midnight, and with gaps."""
UTC = dt.UTC
TIMES = {
    "seconds": pa.array(MOMENTS, pa.timestamp("s")),
    "nanoseconds": pa.array(MOMENTS, pa.timestamp("ns")),
    "of a zone": pa.array([m.replace(tzinfo=UTC) for m in MOMENTS], pa.timestamp("us", "Europe/Berlin")),
    "dates": pa.array([m.date() + dt.timedelta(days=k) for k, m in enumerate(MOMENTS)], pa.date32()),
    "text": pa.array([m.isoformat() for m in MOMENTS]),
    "text with a space": pa.array([str(m) + ".25" for m in MOMENTS]),
    "text of UTC": pa.array([m.isoformat() + "Z" for m in MOMENTS]),
    "text of several zones": pa.array(
        [
            m.replace(tzinfo=UTC).astimezone(dt.timezone(dt.timedelta(hours=h, minutes=30))).isoformat()
            for m, h in zip(MOMENTS, (5, -7, 0, 2), strict=True)
        ]
    ),
    "epoch": pa.array([int(m.timestamp()) for m in MOMENTS]),
    "fractions": pa.array([m.timestamp() + 0.25 for m in MOMENTS]),
}


def shuffled(times, name="timestamp"):
    """Two episodes, their rows mixed up; the state counts the steps."""
    order = [3, 0, 6, 2, 5, 7, 1, 4]
    columns = {
        "session_id": pa.array(["a"] * 4 + ["b"] * 4),
        name: pa.concat_arrays([times, times]),
        "state": pa.array([0, 1, 2, 3] * 2),
        "action": pa.array([0] * 8),
        "reward": pa.array([0.0, 1.0, 2.0, 3.0] * 2),
        "terminated": pa.array([False, False, False, True] * 2),
    }
    return pa.table(columns).take(pa.array(order))


@pytest.mark.parametrize("form", TIMES)
@pytest.mark.parametrize("ending", ["parquet", "csv", "memory"])
def test_rows_are_put_in_the_order_of_their_times(form, ending, tmp_path):
    table = shuffled(TIMES[form])
    given = table
    if ending == "parquet":
        pq.write_table(table, tmp_path / "log.parquet", row_group_size=3)
        given = tmp_path / "log.parquet"
    elif ending == "csv":
        with open(tmp_path / "log.csv", "w", newline="") as file:
            rows = csv.DictWriter(file, table.column_names)
            rows.writeheader()
            rows.writerows(table.to_pylist())
        given = tmp_path / "log.csv"
    logs = mixope.read(given)
    assert logs.schema.mapping["step"] == "derived: order of 'timestamp'"
    found = logs.table()
    assert found.column("step").to_pylist() == found.column("observation").to_pylist()
    after = [None if s == 3 else s + 1 for s in found.column("observation").to_pylist()]
    assert found.column("next_observation").to_pylist() == after
    assert found.column("start").to_pylist() == [s == 0 for s in found.column("observation").to_pylist()]
    with logs.connect() as connection:
        name = logs.view(connection)
        steps = connection.execute(f"SELECT step, observation, next_observation FROM {name}").fetchall()
    assert sorted(map(str, steps)) == sorted(
        map(str, zip(*(found.column(n).to_pylist() for n in ("step", "observation", "next_observation")), strict=True))
    )
    assert any("in the order of column 'timestamp'" in note for note in logs.notes)


def test_parts_of_a_log_keep_the_order_of_times(tmp_path):
    pq.write_table(shuffled(TIMES["seconds"]), tmp_path / "log.parquet", row_group_size=2)
    logs = mixope.read(tmp_path / "log.parquet")
    parts = pa.concat_tables([fragment.table() for fragment in logs.fragments(rows=2)])
    assert parts.column("step").to_pylist() == parts.column("observation").to_pylist()


def test_a_pause_is_no_gap():
    result = mixope.evaluate(shuffled(TIMES["seconds"]), [[1.0], [1.0], [1.0], [1.0]])
    assert result.n_rows == 8
    assert not [check for check in result.diagnostics if "step" in check.name and check.level == "fail"]


def test_a_column_that_counts_steps_wins():
    table = shuffled(TIMES["seconds"]).append_column("t", pa.array([3, 0, 2, 2, 1, 3, 1, 0]))
    assert mixope.read(table).schema.mapping["step"] == "t"


def test_times_may_be_called_otherwise():
    for name in ("t", "step", "when"):
        logs = mixope.read(shuffled(TIMES["text"], name), columns={"step": "when"} if name == "when" else None)
        assert logs.table().column("step").to_pylist() == logs.table().column("observation").to_pylist()
        assert logs.schema.mapping["step"] == f"derived: order of {name!r}"


def test_of_two_columns_of_times_none_is_taken():
    table = shuffled(TIMES["seconds"]).append_column("created_at", pa.array(range(8)))
    logs = mixope.read(table)
    assert logs.schema.mapping["step"] == "derived: row order"
    assert any("columns={'step': 'timestamp'}" in note for note in logs.notes)


def test_the_order_of_rows_may_be_kept():
    logs = mixope.read(shuffled(TIMES["seconds"]), columns={"step": None})
    assert logs.schema.mapping["step"] == "derived: row order"


TIED = pa.array([MOMENTS[0], MOMENTS[1], MOMENTS[1], MOMENTS[2]], pa.timestamp("s"))
WRONG = {
    "ties": (TIED, r"same time(.|\n)*2, 4 \(of 4\)(.|\n)*2 rows of episode 'b'(.|\n)*columns={'step': None}"),
    "a gap": (pa.array([MOMENTS[0], None, *MOMENTS[2:]], pa.timestamp("s")), "missing(.|\n)*row"),
    "a word": (pa.array(["2026-01-01", "2026-01-02", "soon", "2026-01-04"]), "missing, or is none(.|\n)*row"),
    "no day": (pa.array(["2026-01-01", "2026-01-02", "2026-02-30", "2026-03-04"]), "missing, or is none"),
    "not a number": (pa.array([0.0, 1.0, float("nan"), 3.0]), "missing, or is none"),
}


@pytest.mark.parametrize("name", WRONG)
def test_times_that_order_nothing_are_refused(name):
    times, words = WRONG[name]
    with pytest.raises(DataError, match=words):
        mixope.read(shuffled(times))


def test_the_command_says_what_to_type(tmp_path):
    pq.write_table(shuffled(TIED), tmp_path / "log.parquet")
    done = run("inspect", str(tmp_path / "log.parquet"))
    assert done.exit_code == 3
    assert "--column step=" in done.output


@pytest.mark.long
def test_texts_with_anything_in_them_are_ordered_or_refused_in_words():
    draw = random.Random(0)
    good = ["2026-01-01", "2026-01-01T10:00", "2026-01-01 10:00:00.123456789Z", "2026-01-01T10:00:00+14:00"]
    strange = [
        *good,
        "",
        "0000-00-00",
        "9999-12-31T23:59:59",
        "2026-01-01T25:00",
        "+02",
        "T",
        "2026-01-01T10:00:00+99:99",
    ]
    for _ in range(150):
        texts = [draw.choice(good), *(draw.choice(strange) for _ in range(3))]
        table = shuffled(pa.array(texts))
        with suppress(MixopeError):
            logs = mixope.read(table)
            found = logs.table()
            assert sorted(found.column("step").to_pylist()) == sorted([0, 1, 2, 3] * 2) or len(found) < 8
            assert np.isfinite(found.column("reward").to_numpy()).all()
