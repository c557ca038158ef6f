"""Some of the episodes of a log: whole, the same ones each time, and with the values that they have in the whole."""

import json
from collections import defaultdict

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import mixope
from mixope.base.errors import DataError, UsageError
from mixope.logs import write

pytestmark = pytest.mark.filterwarnings("ignore::mixope.MixopeWarning")
COLUMNS = {"episode_id": "stay", "observation": "ward", "action": "drug", "reward": "cost", "terminated": "last"}
POLICY = {"observation": [0, 0, 1, 1, 2, 2], "action": [0, 1] * 3, "prob": [0.5] * 6}
STAYS, DAYS = 12, 4


def _table():
    rows = [(stay, day) for stay in range(STAYS) for day in range(DAYS)]
    return {
        "stay": [stay for stay, _ in rows],
        "patient": [f"p{stay % 5}" for stay, _ in rows],
        "date": [f"2026-{'09' if stay % 3 else '10'}-{27 + day if stay % 3 else 1 + day:02d}" for stay, day in rows],
        "ward": [(stay + day) % 3 for stay, day in rows],
        "drug": [(stay * day) % 2 for stay, day in rows],
        "cost": [stay + day / 10 for stay, day in rows],
        "last": [day == DAYS - 1 for _, day in rows],
    }


def _read(table, **said):
    return mixope.read(pa.table(table), columns=COLUMNS, **said)


@pytest.fixture
def logs():
    return _read(_table())


def _episodes(logs):
    """The rewards of each episode; no two have the same."""
    found = defaultdict(list)
    rows = logs.to_arrow(["source", "episode_id", "step", "reward"]).sort_by("step").to_pylist()
    for row in rows:
        found[row["source"], row["episode_id"]].append(row["reward"])
    return sorted(map(tuple, found.values()))


def test_where_takes_whole_episodes(logs):
    table = _table()
    fits = defaultdict(list)
    for stay, day in zip(table["stay"], table["date"], strict=True):
        fits[stay].append(day >= "2026-09-30")
    whole = {episode[0]: episode for episode in _episodes(logs)}
    for rows, rule in (("all", all), ("any", any)):
        expected = sorted(whole[float(stay)] for stay, days in fits.items() if rule(days))
        assert _episodes(logs.where("date >= '2026-09-30'", rows=rows)) == expected


def test_where_leaves_the_columns_for_another_condition(logs):
    found = logs.where("date >= '2026-10-01'").where("patient IN ('p0', 'p1') AND stay > 1")
    assert {episode[0] for episode in _episodes(found)} == {6.0}


def test_where_reads_files_and_the_columns_of_folders(tmp_path, logs):
    table = pa.table(_table())
    for month in ("09", "10"):
        (tmp_path / f"month={month}").mkdir()
        mask = [date[5:7] == month for date in _table()["date"]]
        pq.write_table(table.filter(pa.array(mask)), tmp_path / f"month={month}" / "rows.parquet")
    found = mixope.read(tmp_path, columns=COLUMNS).where("CAST(month AS INTEGER) = 10")
    assert _episodes(found) == [episode for episode in _episodes(logs) if episode[0] % 3 == 0]


def test_episodes_cut_at_marks_stay_whole():
    table = {name: column for name, column in _table().items() if name != "stay"}
    columns = {name: column for name, column in COLUMNS.items() if name != "episode_id"}
    logs = mixope.read(pa.table(table), columns=columns)
    expected = [episode for episode in _episodes(logs) if episode[0] >= 5]
    assert _episodes(logs.where("cost >= 5")) == expected


@pytest.mark.parametrize(
    "condition",
    [
        "cost > (SELECT 1)",
        "cost > 0) FROM read_csv('x.csv') WHERE (1 = 1",
        "(SELECT count(*) FROM read_text('/etc/hostname')) > 0",
        "cost > avg(cost)",
        "row_number() OVER () > 2",
        "random() > 0.5",
        "date < current_date",
        "getenv('HOME') = 'x'",
        "cost > 0; DROP TABLE x",
        "cost > 0 FROM logs",
        "nothing = 1",
        "patient > 1",
        "COLUMNS(*) > 1",
        "cost >",
        "",
        7,
    ],
)
def test_a_condition_is_only_about_the_row(condition, logs):
    with pytest.raises(UsageError):
        logs.where(condition)


@pytest.mark.parametrize(
    "condition",
    [
        "patient LIKE 'p%' AND lower(patient) NOT IN ('x')",
        "year(CAST(date AS DATE)) = 2026 -- a remark",
        "date::DATE BETWEEN DATE '2026-09-01' AND '2026-12-31'",
        "CASE WHEN last THEN cost >= 0 ELSE abs(cost) < 100 END",
        "stay IS NOT NULL OR round(cost / 2, 1) = 3",
        "date_trunc('month', date::DATE) >= '2026-09-01'",
        "regexp_matches(patient, '^p[0-9]$') AND coalesce(ward, 0) % 3 <= 2",
    ],
)
def test_usual_conditions_are_understood(condition, logs):
    assert len(logs.where(condition)) == len(logs)


def test_no_episode_that_fits_is_an_error(logs):
    with pytest.raises(DataError, match="No episode fits"):
        logs.where("cost > 1000")


def test_split_is_two_parts_of_whole_episodes(logs):
    first, second = logs.split(0.25, seed=3)
    assert len(_episodes(first)) == STAYS / 4
    assert sorted(_episodes(first) + _episodes(second)) == _episodes(logs)
    again = logs.split(0.25, seed=3)
    assert [_episodes(part) for part in again] == [_episodes(first), _episodes(second)]
    assert _episodes(logs.split(0.25, seed=4)[0]) != _episodes(first)


def test_split_by_unit_keeps_the_episodes_of_a_unit_together(logs):
    for parts in (logs.split(0.4, by="patient"), logs.with_unit("patient").split(0.4)):
        first, second = (set(part.to_arrow(["unit"])["unit"].to_pylist()) for part in parts)
        assert len(first) == 2
        assert not first & second
        assert first | second == {f"p{number}" for number in range(5)}


def test_parts_added_have_the_value_of_the_whole(logs):
    first, second = logs.split()
    for whole in (first + second, mixope.read([first, second])):
        assert _episodes(whole) == _episodes(logs)
        values = [mixope.evaluate(each, POLICY, estimator="emp").value for each in (whole, logs)]
        assert values[0] == pytest.approx(values[1], rel=1e-9)


@pytest.mark.parametrize("ending", ["csv", "jsonl", "arrow"])
def test_rows_of_every_kind_of_file_can_be_chosen(ending, tmp_path, logs):
    table, path = pa.table(_table()), tmp_path / f"log.{ending}"
    if ending == "jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()), encoding="utf-8")
    else:
        write(_table(), path)
    read = mixope.read(path, columns=COLUMNS)
    first, second = read.split()
    assert sorted(_episodes(first) + _episodes(second)) == _episodes(logs)
    assert _episodes(read.where("cost >= 5")) == [episode for episode in _episodes(logs) if episode[0] >= 5]


def test_split_says_what_it_takes(logs):
    for wrong in ({"share": 0}, {"share": 2}, {"share": 0.01}, {"by": "unit"}, {"seed": -1}):
        with pytest.raises(UsageError):
            logs.split(**wrong)
