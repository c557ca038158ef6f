"""Columns of a state have roles: guessed from their types, or said; missing values are kept where that is asked for."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import mixope
from mixope.base.errors import DataError, UnknownName
from mixope.logs import MISSING_NUMBER, code_of, coded, codes_of, write
from mixope.logs.sources import quote
from mixope.policies import uniform

ROWS = 60


def table(**columns):
    """Ten episodes of six steps; what is None is left out."""
    generator = np.random.default_rng(3)
    known = {
        "episode_id": np.repeat(np.arange(10), 6),
        "step": np.tile(np.arange(6), 10),
        "obs.ward": generator.choice(["icu", "day"], ROWS),
        "obs.level": generator.integers(1, 5, ROWS),
        "obs.age": generator.normal(60, 9, ROWS),
        "action": generator.integers(0, 2, ROWS),
        "reward": generator.normal(size=ROWS),
        "truncated": np.tile(np.arange(6) == 5, 10),
    }
    return {name: column for name, column in (known | columns).items() if column is not None}


def roles_of(logs):
    names = (name.removeprefix("observation.") for name in logs.schema.observation)
    return dict(zip(names, logs.schema.roles, strict=True))


@pytest.mark.filterwarnings("ignore::mixope.base.errors.MixopeWarning")
class TestGuesses:
    def test_words_are_categories_floats_are_numbers_and_few_integers_are_categories(self):
        logs = mixope.read(table())
        assert logs.schema.observation_kind == "mixed"
        assert roles_of(logs) == {"ward": "category", "level": "category", "age": "number"}
        assert not logs.schema.discrete

    def test_integers_of_many_values_beside_words_are_numbers_and_a_note_says_so(self):
        logs = mixope.read(table(**{"obs.age": np.arange(ROWS)}))
        assert roles_of(logs) == {"ward": "category", "level": "category", "age": "number"}
        assert any("obs.age" in note and "taken as a number" in note for note in logs.notes)

    def test_integers_beside_floats_alone_make_a_vector(self):
        logs = mixope.read(table(**{"obs.ward": None}))
        assert logs.schema.observation_kind == "vector"
        assert logs.schema.types["observation.level"] == "float"

    def test_integers_and_words_of_few_values_are_counted(self):
        logs = mixope.read(table(**{"obs.age": None}))
        assert (logs.schema.observation_kind, logs.schema.discrete) == ("factors", True)


class TestSaid:
    def test_a_counted_log_becomes_a_vector(self):
        columns = table(**{"obs.ward": None, "obs.age": np.arange(ROWS) % 7})
        logs = mixope.read(columns, roles={"age": "number", "obs.level": "number"})
        assert logs.schema.observation_kind == "vector"

    def test_one_number_among_counted_columns_makes_a_mixed_state(self):
        columns = table(**{"obs.age": np.arange(ROWS) % 7})
        logs = mixope.read(columns, roles={"observation.age": "number"})
        assert roles_of(logs) == {"ward": "category", "level": "category", "age": "number"}

    def test_a_float_can_be_a_category_and_an_integer_an_id(self):
        columns = table(**{"obs.ward": None, "obs.dose": np.tile([0.5, 1.0, 2.5], 20)})
        logs = mixope.read(columns, roles={"dose": "category", "level": "id"})
        assert roles_of(logs) == {"level": "id", "age": "number", "dose": "category"}
        assert set(logs.table().column("observation.dose").to_pylist()) == {0.5, 1.0, 2.5}

    def test_roles_are_part_of_the_fingerprint(self):
        columns = table(**{"obs.ward": None})
        assert mixope.read(columns).fingerprint() != mixope.read(columns, roles={"level": "category"}).fingerprint()

    @pytest.mark.parametrize(
        ("roles", "words"),
        [
            ({"agee": "number"}, ["'agee'", "did you mean 'age'"]),
            ({"reward": "number"}, ["no column of the observation", "ward, level, age"]),
            ({"ward": "number"}, ["words cannot be a number", "roles={'obs.ward': 'category'}"]),
        ],
    )
    def test_a_role_that_cannot_be_is_refused(self, roles, words):
        with pytest.raises(DataError) as caught:
            mixope.read(table(), roles=roles)
        assert all(word in str(caught.value) for word in words)

    def test_an_unknown_role_names_the_known_ones(self):
        with pytest.raises(UnknownName, match="category"):
            mixope.read(table(), roles={"age": "categroy"})
        with pytest.raises(UnknownName, match="keep"):
            mixope.read(table(), missing="drop")


def with_gaps():
    """A word, an integer and a float are missing here and there, and nothing is known of one next state."""
    generator = np.random.default_rng(4)
    columns = table()
    ward = columns["obs.ward"].astype(object)
    ward[generator.random(ROWS) < 0.2] = None
    level = columns["obs.level"].astype(object)
    level[generator.random(ROWS) < 0.2] = None
    columns |= {"obs.ward": ward, "obs.level": level}
    columns["obs.age"] = np.where(generator.random(ROWS) < 0.3, np.nan, columns["obs.age"])
    columns["obs.age"][np.equal(ward, None) & np.equal(level, None)] = 61.0
    return columns


class TestMissing:
    def test_without_a_word_they_are_refused_and_the_error_says_how_to_keep_them(self):
        with pytest.raises(DataError, match="missing='keep'"):
            mixope.evaluate(mixope.read(with_gaps()), uniform([0, 1]))

    def test_kept_ones_are_counted_in_notes(self):
        columns = with_gaps()
        logs = mixope.read(columns, missing="keep")
        gone = int(np.isnan(columns["obs.age"]).sum())
        assert any(f"'age' is missing on {gone} of {ROWS} rows" in note and "mean" in note for note in logs.notes)
        assert any("'ward'" in note and "class of its own" in note for note in logs.notes)

    @pytest.mark.filterwarnings("ignore::mixope.base.errors.MixopeWarning")
    def test_a_category_has_a_class_for_them_and_a_number_an_indicator(self):
        columns = with_gaps()
        logs = mixope.read(columns, missing="keep")
        assert roles_of(logs) == {"ward": "category", "level": "category", "age": "number", "age missing": "missing"}
        found = logs.table()
        gone = np.isnan(columns["obs.age"])
        np.testing.assert_array_equal(found.column("observation.age missing").to_numpy(), gone)
        assert (found.column("observation.age").to_numpy()[gone] == 0).all()
        for name, filled in (("ward", "(missing)"), ("level", MISSING_NUMBER)):
            counted = found.column(f"observation.{name}").to_pylist().count(filled)
            assert counted == np.equal(columns[f"obs.{name}"], None).sum()

    @pytest.mark.filterwarnings("ignore::mixope.base.errors.MixopeWarning")
    @pytest.mark.parametrize("stored", ["arrays", "parquet", "csv"])
    def test_sql_and_arrow_fill_alike(self, stored, tmp_path):
        columns = with_gaps()
        source = columns if stored == "arrays" else write(columns, tmp_path / f"gaps.{stored}")
        logs = mixope.read(source, missing="keep")
        found = logs.table()
        assert 0 < found.column("observation.age missing").to_numpy().sum() < found.num_rows
        with logs.connect() as connection:
            query = f"SELECT {', '.join(map(quote, found.column_names))} FROM {logs.view(connection)}"
            by_sql = connection.execute(f"{query} ORDER BY episode_id, step").fetchall()
        assert by_sql == list(zip(*found.to_pydict().values(), strict=True))

    @pytest.mark.filterwarnings("ignore::mixope.base.errors.MixopeWarning")
    def test_a_next_state_of_which_nothing_is_known_is_none(self):
        columns = with_gaps()
        following = {f"next_{name}": np.roll(column, -1) for name, column in columns.items() if name.startswith("obs.")}
        for column in following.values():
            column[7] = None if column.dtype == object else np.nan
        logs = mixope.read(columns | following, missing="keep")
        assert np.flatnonzero(logs.table(["unfollowed"]).column("unfollowed").to_numpy()).tolist() == [7]

    @pytest.mark.filterwarnings("ignore::mixope.base.errors.MixopeWarning")
    def test_a_source_without_gaps_has_the_same_columns_as_one_with_gaps(self, tmp_path):
        pq.write_table(pa.table(table()), tmp_path / "whole.parquet")
        gaps = pa.table({n: pa.array(c, from_pandas=True) for n, c in with_gaps().items()})
        pq.write_table(gaps, tmp_path / "gaps.parquet")
        logs = mixope.read(tmp_path / "whole.parquet", tmp_path / "gaps.parquet", missing="keep")
        assert "observation.age missing" in logs.schema.observation
        assert logs.table().num_rows == 2 * 60


class TestCodes:
    def test_a_code_depends_on_the_value_alone(self):
        words = pa.array(["b", "a", None, "b"])
        found = codes_of(pa.chunked_array([words]))
        assert found[0] == found[3] == code_of("b") == codes_of(pa.chunked_array([words[:1]]))[0]
        assert np.isnan(found[2])
        assert code_of(3) == code_of(3.0) != code_of(3.5)

    def test_codes_lie_between_one_and_two_and_are_distinct(self):
        codes = [code_of(f"value {k}") for k in range(20_000)]
        assert 1 <= min(codes) < max(codes) < 2
        assert len(set(codes)) == 20_000

    def test_values_that_share_a_code_are_refused(self, monkeypatch):
        monkeypatch.setattr("mixope.logs.categories.code_of", lambda value: 1.5)
        with pytest.raises(DataError, match="cannot be told apart"):
            coded(["a", "b"], "ward")
