"""Fits of rows in parts on one machine: the same bits for any batches, good scores, and errors that say where."""

import json
import pickle

import numpy as np
import pyarrow as pa
import pytest

import minvel
from minvel.sketches import Look, Score, Summary


def table(rows, seed=1):
    rng = np.random.default_rng(seed)
    x = np.concatenate([rng.normal([0, 10], [1, 5], size=(rows // 2, 2)), rng.normal([4, -20], [0.2, 2], size=(rows - rows // 2, 2))])
    x = rng.permutation(x)
    return pa.table({"name": [f"row {k}" for k in range(rows)], "a": x[:, 0], "b": x[:, 1]})


def density(**parameters):
    return minvel.Density(effort="quick", verbose=0, **parameters)


@pytest.fixture(scope="module")
def many():
    return table(150_000)


@pytest.fixture(scope="module")
def fitted(many):
    with pytest.warns(minvel.MinvelWarning, match="cells sets how many"):
        return density().fit_batches(many, cells=1000)


def test_any_batches_in_any_order_make_the_same_model(many, fitted):
    batches = many.to_batches(max_chunksize=9_999)
    for given in (batches[::-1], lambda: iter(batches), [many.slice(70_000), many.slice(0, 70_000)]):
        with pytest.warns(minvel.MinvelWarning):
            other = density(n_jobs=1).fit_batches(given, cells=1000)
        assert other.to_bytes() == fitted.to_bytes()
        assert other.evaluation_ == fitted.evaluation_
    less = density().fit_batches(many.slice(1), cells=1000, evaluate=False)
    assert less.to_bytes() != fitted.to_bytes()


def test_the_score_of_all_test_rows_is_that_of_the_law(many, fitted):
    evaluation = fitted.evaluation_
    assert evaluation["rows"] == 150_000
    assert abs(evaluation["test_rows"] / 15_000 - 1) < 4 * np.sqrt(0.9 / 15_000)
    a, b = (many[name].to_numpy() for name in "ab")

    def normal(x, mean, sd):
        return np.exp(-((x - mean) / sd) ** 2 / 2) / (sd * np.sqrt(2 * np.pi))

    truth = -np.log(0.5 * normal(a, 0, 1) * normal(b, 10, 5) + 0.5 * normal(a, 4, 0.2) * normal(b, -20, 2)).mean()
    nll = evaluation["test_nll"]
    # The excess of such a fit is some thousandths of a nat; a fit of 1000 of the rows has some hundredths.
    assert -4 * nll["std_error"] < nll["mean"] - truth < 0.02 + 4 * nll["std_error"]
    assert fitted.summary_["procedure"]["train"] + fitted.summary_["procedure"]["validation"] + fitted.summary_["procedure"]["test"] == 150_000
    assert abs(fitted.summary_["distinct_rows"] / 150_000 - 1) < 0.05
    assert fitted.sample(5, random_state=1).shape == (5, 2)
    assert (fitted.score_samples(many.slice(0, 3).select(["a", "b"])) < 0).all()


def test_few_rows_are_fitted_as_they_are():
    rows = table(400)
    one = density().fit_batches(rows)
    assert one.evaluation_ is None and one.summary_["rows"] == 400
    assert density().fit_batches(rows.to_batches(max_chunksize=7)).to_bytes() == one.to_bytes()
    whole = density().fit(rows.select(["a", "b"]))
    assert abs(one.summary_["test_nll"]["mean"] - whole.summary_["test_nll"]["mean"]) < 4 * whole.summary_["test_nll"]["std_error"]


def test_an_example_saves_a_pass(many):
    calls = []

    def batches():
        calls.append(1)
        return many.to_batches()

    with pytest.warns(minvel.MinvelWarning):
        density().fit_batches(batches, cells=500, example=many.slice(0, 2000), evaluate=False)
    assert len(calls) == 2  # the first batch, which tells the columns, and the summary


def test_work_is_sent_as_it_is(many, fitted):
    form = json.dumps({})
    for work in (Look(["a"], 1), Summary(form, ["a"]), Score(form, ["a"], minvel.batches.Scorer(fitted))):
        assert pickle.loads(pickle.dumps(work)) == work


def test_rows_that_cannot_be_summarised_are_named(many):
    holes = many.slice(0, 3000).set_column(1, "a", pa.array([None if k == 1500 else k % 97 / 10 for k in range(3000)]))
    with pytest.raises(ValueError, match="table 2 of its part, whose first row is row 1001 there.*row 501"):
        density().fit_batches(holes.to_batches(max_chunksize=1000))
    with pytest.warns(minvel.MinvelWarning, match="1 rows with missing values were dropped"):
        assert density(missing="drop").fit_batches(holes).summary_["rows"] == 2999
    with pytest.raises(TypeError, match="read once only"):
        density().fit_batches(iter(many.to_batches()))
    with pytest.raises(ValueError, match="no batches"):
        density().fit_batches([])
    with pytest.raises(ValueError, match="block need all rows"):
        density(block=1.0).fit_batches(many)
    with pytest.raises(ValueError, match="expected 100 to"):
        density().fit_batches(many, cells=5)
    far = pa.concat_tables([many, pa.table({"name": ["far"] * 40, "a": [1e13] * 40, "b": [float(k) for k in range(40)]})])
    with pytest.raises(ValueError, match="too far from the rows of the example"):
        density().fit_batches(far, example=many.slice(0, 1000))
