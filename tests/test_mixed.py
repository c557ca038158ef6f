"""Mixed states from end to end: policies by column, estimators, behaviours, engines, inspection, the command."""

import numpy as np
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import mixope
from cli.running import run
from mixope.base.errors import DataError
from mixope.behaviours import ClassifierMixture
from mixope.estimators import REGISTRY
from mixope.features import ColumnFeatures, NormalisedBumps
from mixope.logs import write
from mixope.policies import on_columns, sklearn_policy
from mixope.session.session import look
from mixope.worlds import hospital

pytestmark = pytest.mark.filterwarnings("ignore::mixope.base.errors.MixopeWarning")
TARGET = mixope.CallablePolicy(hospital.reference, actions=list(hospital.ACTIONS))
GAMMA = 0.9


def cheap(name):
    """An estimator whose behaviour is not the best of several."""
    return REGISTRY[name].make(behaviour=ClassifierMixture(GaussianNB()))


@pytest.fixture(scope="module")
def stays():
    return hospital.simulate(240, seed=1)


@pytest.fixture(scope="module")
def seen(stays):
    return look(mixope.read(stays, missing="keep"))


class TestPolicies:
    def test_columns_come_by_name_as_they_were_logged(self, seen, stays):
        sample, columns = seen.rows.sample, seen.columns
        found = columns.named(sample.observation)
        assert found.dtype.names == tuple(n.removeprefix("observation.") for n in stays if n.startswith("observation."))
        assert set(found["ward"].tolist()) == {"general", "surgical", "intensive"}
        assert set(found["smoker"].tolist()) == {"yes", "no", "(missing)"}
        assert found["severity"].dtype.kind == "i"
        assert np.isnan(found["pressure"]).sum() == np.isnan(stays["observation.pressure"]).sum()
        assert sorted(found["age"].tolist()) == sorted(stays["observation.age"].tolist())

    def test_a_table_is_matched_by_the_categories_that_it_lists(self, seen):
        states = np.array([[w, d] for w in ("general", "surgical", "intensive") for d in range(1, 5)], dtype=object)
        laws, names = np.tile([0.3, 0.7], (12, 1)), ("ward", "severity")
        table = mixope.TabularPolicy(laws, states, list(hospital.ACTIONS), factors=names)
        some = seen.rows.sample.observation[:50]
        np.testing.assert_allclose(on_columns(table, seen.columns).probs(some), np.tile([0.3, 0.7], (50, 1)))

    def test_a_table_over_a_number_is_refused(self, seen):
        table = mixope.TabularPolicy(np.ones((2, 1)), [[60, 1], [61, 1]], ["treat"], factors=("age", "severity"))
        with pytest.raises(DataError, match="cannot list the number 'age'"):
            on_columns(table, seen.columns)
        with pytest.raises(DataError, match="one column observation"):
            on_columns(mixope.TabularPolicy(np.ones((1, 1)), ["a"], ["treat"]), seen.columns)

    def test_a_pipeline_fitted_on_a_frame_gets_a_frame(self, seen):
        pandas = pytest.importorskip("pandas")
        rows = seen.columns.named(seen.rows.sample.observation)
        frame = pandas.DataFrame({name: rows[name] for name in ("ward", "age")})
        parts = ColumnTransformer([("ward", OneHotEncoder(), ["ward"])], remainder="passthrough")
        model = make_pipeline(parts, LogisticRegression()).fit(frame, seen.rows.sample.action)
        policy = on_columns(sklearn_policy(model), seen.columns)
        np.testing.assert_allclose(policy.probs(seen.rows.sample.observation), model.predict_proba(frame))
        bare = LogisticRegression().fit(frame[["age"]].to_numpy(), seen.rows.sample.action)
        with pytest.raises(DataError, match="does not say which columns"):
            on_columns(sklearn_policy(bare), seen.columns).probs(seen.rows.sample.observation)

    def test_a_gaussian_is_a_function_of_columns_and_a_linear_one_is_refused(self, seen):
        some = seen.rows.sample.observation[:5]
        policy = on_columns(mixope.GaussianPolicy(lambda states: states["age"][:, None] / 10, 1.0), seen.columns)
        np.testing.assert_allclose(policy.mean(some)[:, 0], seen.columns.column(some, "age") / 10)
        with pytest.raises(DataError, match="write the mean as a function"):
            on_columns(mixope.LinearGaussianPolicy(np.ones((1, 9)), [0.0], 1.0), seen.columns)

    def test_an_error_in_the_policy_is_told_with_its_line(self, seen):
        def wrong(states):
            return states["weight"]

        policy = on_columns(mixope.CallablePolicy(wrong, actions=list(hospital.ACTIONS)), seen.columns)
        with pytest.raises(DataError, match="wrong failed with ValueError: no field of name weight"):
            policy.probs(seen.rows.sample.observation)


class TestEstimates:
    @pytest.mark.long
    def test_the_value_lies_near_the_truth(self, seen):
        found = mixope.evaluate(seen, TARGET, gamma=GAMMA)
        truth = hospital.discounted(hospital.reference, GAMMA, patients=20_000)
        assert found.estimator == "dr"
        assert abs(found.value - truth.value) < 3 * np.hypot(found.standard_error, truth.standard_error)

    @pytest.mark.long
    def test_engines_agree(self, stays, tmp_path):
        path = write(stays, tmp_path / "stays.parquet")
        logs = mixope.read(path, missing="keep")
        one, other = (
            mixope.evaluate(logs, TARGET, cheap("emp"), gamma=GAMMA, engine=e) for e in ("memory", "embedded")
        )
        assert one.value == pytest.approx(other.value, rel=1e-9)
        assert one.standard_error == pytest.approx(other.standard_error, rel=1e-7)

    def test_every_kind_of_behaviour_and_kernel_takes_them(self, seen):
        for name in ("emp", "kernel"):
            assert -1.4 < mixope.evaluate(seen, TARGET, cheap(name), gamma=GAMMA).value < -0.6

    def test_known_loggers_see_columns_too(self, seen):
        known = {n: mixope.CallablePolicy(law, actions=list(hospital.ACTIONS)) for n, law in hospital.HOSPITALS.items()}
        found = mixope.evaluate(seen, TARGET, "bch", gamma=GAMMA, loggers=known)
        assert -1.4 < found.value < -0.6

    @pytest.mark.long
    def test_loggers_are_predicted_from_each_other(self):
        logs = mixope.read(hospital.simulate(90, seed=2), missing="keep")
        found = mixope.backtest(logs, estimator=cheap("emp"))
        assert [row.label for row in found.rows] == ["east", "north", "west"]
        assert sum(row.predicted is not None for row in found.rows) == 3

    def test_other_features_see_the_encoding(self, stays):
        logs = mixope.read(stays, missing="keep")
        found = mixope.evaluate(logs, TARGET, cheap("emp"), gamma=GAMMA, features=NormalisedBumps(40))
        assert -1.4 < found.value < -0.6

    def test_a_category_that_is_an_id_is_refused_unless_it_is_called_one(self, stays):
        names = np.array([f"row {k}" for k in range(len(stays["reward"]))])
        following = np.roll(names, -1).astype(object)
        following[stays["terminated"]] = None
        columns = stays | {"observation.name": names, "next_observation.name": following}
        with pytest.raises(DataError, match="looks like an id"):
            look(mixope.read(columns, missing="keep"))
        assert look(mixope.read(columns, missing="keep", roles={"name": "id"})).columns is not None


class TestRelevance:
    def test_what_tells_nothing_hardly_counts(self, seen):
        relevance = dict(zip(seen.columns.names, seen.rows.relevance, strict=True))
        assert relevance["severity"] == 1.0
        assert relevance["pressure"] > 0.3
        assert relevance["insurance"] == relevance["smoker"] == 0.1

    def test_columns_count_that_move_what_earns_although_they_earn_nothing_themselves(self):
        """Speed moves the place, the place earns; noise drifts by itself."""
        generator, n, steps = np.random.default_rng(5), 60, 30
        place, speed, noise = generator.normal(size=(3, n))
        columns = {name: [] for name in ("obs.place", "obs.speed", "obs.noise", "reward")}
        for _ in range(steps):
            for name, values in (("obs.place", place), ("obs.speed", speed), ("obs.noise", noise), ("reward", place)):
                columns[name].append(values)
            place = place + 0.3 * speed
            speed = 0.8 * speed + 0.6 * generator.normal(size=n)
            noise = noise + 0.3 * generator.normal(size=n)
        logs = mixope.read(
            {name: np.stack(values, axis=1).ravel() for name, values in columns.items()}
            | {
                "episode_id": np.repeat(np.arange(n), steps),
                "step": np.tile(np.arange(steps), n),
                "action": generator.integers(0, 2, n * steps),
                "truncated": np.tile(np.arange(steps) == steps - 1, n),
            }
        )
        found = look(logs, features=ColumnFeatures()).rows.relevance
        assert found[0] == 1.0
        assert found[1] > 0.5
        assert found[2] < 0.3


class TestInspection:
    def test_every_column_has_a_role_values_or_a_range_and_what_is_missing(self, stays):
        found = mixope.inspect(mixope.read(stays, missing="keep"))
        by_name = {column.name.removeprefix("observation."): column for column in found.state}
        assert (by_name["ward"].role, by_name["ward"].values) == ("category", 3)
        assert by_name["smoker"].values == 2
        assert by_name["smoker"].missing == np.equal(stays["observation.smoker"], None).sum()
        assert (by_name["age"].role, by_name["age"].lowest) == ("number", stays["observation.age"].min())
        assert by_name["pressure"].missing == np.isnan(stays["observation.pressure"]).sum()
        assert by_name["pressure"].lowest == np.nanmin(stays["observation.pressure"])

    def test_factors_are_shown_too(self):
        columns = {"observation": np.array([[0, 1], [1, 1], [0, 0]]), "action": [0, 0, 1], "reward": [0.0, 1.0, 1.0]}
        found = mixope.inspect(mixope.read(columns))
        assert [(column.role, column.values) for column in found.state] == [("category", 2), ("category", 2)]
        assert found.state[0].most == (("0", 2), ("1", 1))


class TestCommand:
    @pytest.mark.long
    def test_roles_and_missing_values_are_said_as_options(self, stays, tmp_path):
        path = write(stays, tmp_path / "stays.csv")
        bare = run("inspect", path)
        assert bare.exit_code == 3
        assert "--missing keep" in bare.stderr
        found = run("inspect", path, "--missing", "keep", "--role", "severity=number", "--full")
        assert found.exit_code == 0
        assert "mixed: 5 categories and 3 numbers" in found.stdout
        wrong = run("inspect", path, "--missing", "keep", "--role", "severty=number")
        assert "did you mean 'severity'" in wrong.stderr
        assert run("inspect", path, "--role", "severity").exit_code == 2


def test_what_is_missing_is_counted_in_all_rows_where_a_scan_could_not_use_all():
    """A row before a missing state leads nowhere and is not looked at."""
    draw, (episodes, steps) = np.random.default_rng(0), (20, 30)
    n = episodes * steps
    number = draw.normal(size=n)
    number[draw.random(n) < 0.4] = np.nan
    table = {
        "episode_id": np.repeat(np.arange(episodes), steps),
        "step": np.tile(np.arange(steps), episodes),
        "observation.kind": draw.choice(["x", "y"], n),
        "observation.number": number,
        "action": draw.integers(2, size=n),
        "reward": draw.normal(size=n),
    }
    found = mixope.inspect(mixope.read(table))
    assert found.error is not None
    column = next(each for each in found.state if each.name.endswith("number"))
    looked_at = found.vectors.rows
    assert looked_at < found.total_rows
    assert column.missing == np.isnan(number).sum()
    assert f"{column.missing / n:.2%}" in found.full()
    assert f"of the {looked_at:,} of {found.total_rows:,} rows" in found.full()
