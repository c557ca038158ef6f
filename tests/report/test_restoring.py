"""What ``to_json`` writes comes back by ``from_json``; damage is told in words, wherever it is."""

import json
import math

import pytest

import mixope
from mixope import worlds
from mixope.answers.estimate import Estimate
from mixope.backtesting import Backtest
from mixope.base.errors import DataError, MixopeError, UsageError
from mixope.base.estimand import Estimand
from mixope.differences import Comparison
from mixope.estimators.solution import Measures
from mixope.inspection import Inspection
from mixope.inspection.records import Remark
from mixope.uncertainty import Interval

from . import records
from .test_cards import inspection

BROKEN = (None, True, 7, -1.5, "x", [], [[]], {}, {"low": 3})


def everything():
    """An estimate in which no field has its default."""
    asked = Estimand("discounted", 0.9)
    beside = (records.beside(), records.without_interval(), records.reference())
    return records.estimate(
        estimand=asked,
        interval=Interval(-0.3, 0.1, 0.95, "bootstrap", 500, 3),
        measures=Measures(held_out=1 / 3, likeness={"a": 0.25, "b": 2 / 3}),
        band=(-0.9, 0.4),
        counted=False,
        notes=("a note",),
        beside=tuple(records.replace(other, estimand=asked) for other in beside),
        value=1 / 3,
        residual=float("inf"),
    )


WRITTEN = {
    "everything": everything,
    "estimate": records.estimate,
    "without interval": records.without_interval,
    "no number": lambda: records.estimate(value=math.nan, interval=None, no_band_because="nothing is counted"),
    "comparison": records.comparison,
    "empty comparison": lambda: Comparison(()),
    "differences": records.differences,
    "selection": lambda: records.differences().selection,
    "backtest": records.backtest,
    "many loggers": lambda: records.BACKTEST,
    "inspection": inspection,
    "unusable": lambda: records.replace(
        inspection(), contents=None, remarks=(Remark("bad-rows", "error", 2, "two"),), error=DataError("two")
    ),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_a_record_that_was_read_again_writes_the_same_json(name):
    record = WRITTEN[name]()
    text = record.to_json()
    assert type(record).from_json(text).to_json() == text
    assert type(record).from_json(text.encode()).to_json() == text


@pytest.mark.long
def test_results_as_they_are_made_come_back():
    model = worlds.make("gridworld-slip")
    loggers, target = worlds.stages(model, 2), worlds.target(model)
    logs = worlds.simulate(model, loggers, episodes=30, horizon=20, seed=3)
    table = mixope.compare(logs, {"new": target, "old": loggers[0]}, "all")
    for found in (*table.estimates[:2], table, mixope.backtest(logs), mixope.inspect(logs, target)):
        text = found.to_json()
        assert type(found).from_json(text).to_json() == text


@pytest.mark.parametrize("name", ["estimate", "backtest", "differences", "inspection"])
def test_it_prints_and_shows_the_same(name):
    record = WRITTEN[name]()
    again = type(record).from_json(record.to_json())
    assert str(again) == str(record)
    assert again.tables().keys() == record.tables().keys()


def test_derived_numbers_are_those_of_the_written_ones():
    """Deviates of many digits: χ² of the rounded ones differs in the last place from that of the others."""
    for k in range(40):
        far = [{"deviate": (k + j + 0.1) / 7.3, "z": 1 / (3 + j)} for j in range(len(records.BACKTEST.rows))]
        rows = tuple(records.replace(row, **off) for row, off in zip(records.BACKTEST.rows, far, strict=True))
        found = records.replace(records.BACKTEST, rows=rows, degrees=math.pi + k)
        assert Backtest.from_json(found.to_json()).to_json() == found.to_json()


def test_what_was_not_written_is_said():
    again = Estimate.from_json(everything().to_json())
    assert again.scores is None
    assert again.episodes is None
    assert [found.estimator for found in again.beside] == ["is", "lstdq", "logged-mean"]
    assert all("Only the summary" in found.notes[0] for found in again.beside)
    assert "does not come back" in Estimate.from_json.__doc__


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "this is not JSON"),
        ('{"format": ', "line 1, column"),
        ("[1, 2]", "one object"),
        ("{}", "does not say that it is a result of mixope"),
        ('{"format": 3}', "format 3"),
        ('{"format": "mixope/estimate/99"}', "version 99 of the format, which is not known here"),
        ('{"format": "mixope/backtest/1"}', "read it with Backtest.from_json"),
        ('{"format": "mixope/estimate/1"}', "lacks 'estimator'"),
        (b"\xff\xfe\x00", "not JSON"),
    ],
)
def test_damage_is_told_in_words(text, said):
    with pytest.raises(DataError, match=said):
        Estimate.from_json(text)


def places(found, path=()):
    """Every place in a JSON value."""
    yield path
    inside = found.items() if isinstance(found, dict) else enumerate(found) if isinstance(found, list) else ()
    for key, value in inside:
        yield from places(value, (*path, key))


def with_a_fault(found, path, fault):
    """The same with something else at a place."""
    if not path:
        return fault
    first, *rest = path
    kept = dict(found) if isinstance(found, dict) else list(found)
    kept[first] = with_a_fault(found[first], rest, fault)
    return kept


@pytest.mark.parametrize("kind", [Estimate, Comparison, Backtest, Inspection], ids=lambda kind: kind.__name__)
@pytest.mark.long
def test_whatever_stands_wherever_it_is_a_record_or_an_error_in_words(kind):
    made = {Estimate: everything, Comparison: small, Backtest: records.backtest, Inspection: inspection}[kind]()
    whole = json.loads(made.to_json())
    refused, every = 0, list(places(whole))
    for number, path in enumerate(every[:: 1 + len(every) // 300]):
        for fault in (BROKEN[number % len(BROKEN)], BROKEN[(5 * number + 4) % len(BROKEN)]):
            try:
                kind.from_json(json.dumps(with_a_fault(whole, path, fault))).to_json()
            except MixopeError:
                refused += 1
    assert refused > 100


def small():
    both = [records.estimate(loggers=(), weights=(), target=name) for name in ("new", "old")]
    return records.contested(both, records.differences())


def test_a_place_is_named():
    whole = json.loads(records.estimate().to_json())
    whole["loggers"][2]["interval"]["low"] = "far"
    with pytest.raises(DataError, match=r"estimate\.loggers\[2\]\.earned\.interval\.low") as caught:
        Estimate.from_dict(whole)
    assert "a number" in str(caught.value)
    assert '"far"' in str(caught.value)


def test_tables_of_a_comparison():
    found = records.comparison()
    assert found.to_arrow().num_rows == len(found)
    assert found.to_arrow("checks").column_names[:4] == ["target", "estimator", "check", "value"]
    assert found.to_arrow("differences").to_pylist()[0]["first"] == "new"
    assert found.to_arrow("ranks").to_pylist()[0]["target"] == "new"
    with pytest.raises(UsageError, match="Did you mean 'checks'"):
        found.to_arrow("check")


@pytest.mark.parametrize("name", WRITTEN)
def test_every_table_is_an_arrow_table(name):
    record = WRITTEN[name]()
    for table, rows in record.tables().items():
        assert record.to_arrow(table).num_rows == len(rows)


def test_a_frame_is_of_pandas_else_of_polars_else_the_line_that_installs_one(monkeypatch):
    import sys

    found = records.comparison()
    assert type(found.to_frame()).__module__.partition(".")[0] == "pandas"
    monkeypatch.setitem(sys.modules, "pandas", None)
    assert type(found.to_frame("checks")).__module__.partition(".")[0] == "polars"
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(UsageError, match=r"pip install 'mixope\[pandas\]'"):
        found.to_frame()
