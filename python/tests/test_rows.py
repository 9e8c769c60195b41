"""Weights, groups, blocks and missing values of rows."""

import json

import numpy as np
import pandas as pd
import pytest

import minvel

QUICK = {"effort": "quick", "verbose": 0}


@pytest.fixture(scope="module")
def rows():
    return np.random.default_rng(2).normal(size=(150, 2))


@pytest.mark.parametrize("kind", [minvel.Density, minvel.OutlierDetector])
def test_weight_two_is_the_row_twice_and_weight_zero_is_no_row(rows, kind):
    weights = np.arange(len(rows)) % 3
    weighted = kind(**QUICK).fit(rows, sample_weight=weights)
    repeated = kind(**QUICK).fit(np.repeat(rows, weights, axis=0))
    assert np.abs(weighted.score_samples(rows) - repeated.score_samples(rows)).max() < 1e-9
    plain = kind(**QUICK).fit(rows)
    assert np.abs(weighted.score_samples(rows) - plain.score_samples(rows)).max() > 1e-3, "weights matter"
    scaled = kind(**QUICK).fit(rows, sample_weight=7.5 * weights)
    assert np.abs(weighted.score_samples(rows) - scaled.score_samples(rows)).max() < 1e-9, "a common factor does not"


def test_weights_and_groups_are_columns_by_name_as_in_the_program(rows, program, tmp_path):
    frame = pd.DataFrame(rows, columns=["a", "b"]).assign(w=np.linspace(0.5, 2, len(rows)), g=np.arange(len(rows)) // 3)
    by_name = minvel.Density(**QUICK).fit(frame, sample_weight="w", groups="g")
    by_array = minvel.Density(**QUICK).fit(frame[["a", "b"]], sample_weight=frame["w"], groups=frame["g"].astype(str))
    assert (by_name.score_samples(frame) == by_array.score_samples(frame[["a", "b"]])).all()
    assert list(by_name.feature_names_in_) == ["a", "b"]
    frame.to_csv(tmp_path / "rows.csv", index=False, float_format="%.17g")
    arguments = ["--manifold", "euclidean:2", "--columns", "a,b", "--weights", "w", "--group", "g"]
    run = program("fit", "rows.csv", *arguments, "--effort", "quick", "--out", "fit", "--json", cwd=tmp_path)
    assert run.returncode == 0, run.stderr
    summary = json.loads(run.stdout)
    assert by_name.summary_["test_nll"] == summary["test_nll"] and by_name.summary_["kernels"] == summary["kernels"]
    plain = minvel.Density(**QUICK).fit(frame[["a", "b"]])
    assert by_name.summary_["test_nll"] != plain.summary_["test_nll"]


def test_groups_make_errors_larger_where_rows_repeat_each_other(rows):
    near = np.repeat(rows[:40], 5, axis=0) + 1e-3 * np.random.default_rng(1).normal(size=(200, 2))
    alone = minvel.Density(**QUICK).fit(near)
    grouped = minvel.Density(**QUICK).fit(near, groups=np.repeat(np.arange(40), 5))
    blocked = minvel.Density(**QUICK, block=0.02).fit(near)
    for other in (grouped, blocked):
        assert other.summary_["test_nll"]["mean"] > alone.summary_["test_nll"]["mean"] + 1, "neighbours do not leak"
        assert other.summary_["test_nll"]["std_error"] > alone.summary_["test_nll"]["std_error"]


def test_what_is_wrong_with_weights_and_groups_is_said(rows):
    cases = [
        ({"sample_weight": -np.ones(150)}, "weight -1"),
        ({"sample_weight": np.ones(149)}, "149"),
        ({"sample_weight": np.zeros(150)}, "weights are zero"),
        ({"groups": np.zeros(150)}, "1 groups"),
        ({"groups": np.zeros(3)}, "shape"),
    ]
    for arguments, why in cases:
        with pytest.raises(ValueError, match=why):
            minvel.Density(**QUICK).fit(rows, **arguments)
    with pytest.raises(ValueError, match="contradict"):
        minvel.Density(**QUICK, distinct=True).fit(rows, sample_weight=np.ones(150))


def test_rows_with_missing_values_are_refused_or_dropped(rows):
    frame = pd.DataFrame(rows, columns=["a", "b"])
    frame.loc[3, "a"] = np.nan
    with pytest.raises(ValueError, match="row 4"):
        minvel.Density(**QUICK).fit(frame)
    with pytest.warns(minvel.MinvelWarning, match="1 rows with missing values"):
        dropped = minvel.Density(**QUICK, missing="drop").fit(frame, sample_weight=np.linspace(1, 2, 150))
    without = minvel.Density(**QUICK).fit(frame.drop(3), sample_weight=np.delete(np.linspace(1, 2, 150), 3))
    assert (dropped.score_samples(rows[:9]) == without.score_samples(rows[:9])).all()
