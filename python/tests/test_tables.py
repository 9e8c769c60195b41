"""Tables of any library, order and type go in; what comes out is of the same kind."""

import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import minvel
from minvel._arrow import columns_of
from minvel._table import read

PLACES = {"manifold": "sphere:2", "layout": "latlon", "units": "degrees", "effort": "quick", "verbose": 0}


class Stream:
    """Something of which nothing is known but Arrow's C stream interface."""

    def __init__(self, table):
        self.table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self.table.__arrow_c_stream__(requested_schema)


@pytest.mark.parametrize("form", ["fortran", "strided", "read-only", "list"])
def test_an_array_may_have_any_form(density, quakes, form):
    rows = quakes[:100]
    forms = {"fortran": np.asfortranarray(rows), "strided": np.repeat(rows, 3, axis=0)[::3], "list": rows.tolist()}
    forms["read-only"] = rows.copy()
    forms["read-only"].flags.writeable = False
    assert (density.score_samples(forms[form]) == density.score_samples(rows)).all()


def test_float32_is_scored_as_the_numbers_that_it_holds(density, quakes):
    rows = quakes[:100].astype(np.float32)
    assert (density.score_samples(rows) == density.score_samples(rows.astype(np.float64))).all()


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table, lambda c: Stream(pa.table(c))])
def test_frames_give_the_numbers_of_arrays(quakes, density, make):
    frame = make({"latitude": quakes[:600, 0], "longitude": quakes[:600, 1]})
    fitted = minvel.Density(**PLACES).fit(frame)
    assert list(fitted.feature_names_in_) == ["latitude", "longitude"]
    assert (fitted.score_samples(frame) == density.score_samples(quakes[:600])).all()
    drawn = fitted.sample(5, random_state=1)
    if isinstance(frame, pd.DataFrame | pl.DataFrame | pa.Table):
        assert type(drawn) is type(frame)
        assert list(getattr(drawn, "column_names", drawn.columns)) == ["latitude", "longitude"]
    columns = drawn.T if isinstance(drawn, np.ndarray) else [np.asarray(drawn[name]) for name in ("latitude", "longitude")]
    assert (np.column_stack(columns) == density.sample(5, random_state=1)).all()


def test_columns_are_chosen_by_name_and_text_is_left_alone(quakes, density):
    frame = pd.DataFrame({"place": ["somewhere"] * 600, "lon": quakes[:600, 1], "depth": 10.0, "lat": quakes[:600, 0]})
    fitted = minvel.Density(**PLACES, columns=["lat", "lon"]).fit(frame)
    other = frame[["lat", "depth", "lon"]]  # in another order, with other columns beside
    assert (fitted.score_samples(other) == density.score_samples(quakes[:600])).all()
    guessed = minvel.Density(effort="quick", verbose=0).fit(frame[["place", "lat", "lon"]])
    assert guessed.manifold_ == "sphere:2" and guessed.coordinates_["units"] == "degrees"
    assert any("latitude and longitude" in sentence for sentence in guessed.inferred_)
    assert (guessed.score_samples(frame) == density.score_samples(quakes[:600])).all()


def test_columns_without_meaning_are_plain_numbers(quakes):
    frame = pd.DataFrame({"a": quakes[:50, 0], "b": quakes[:50, 1]})
    assert minvel.Density(effort="quick", verbose=0).fit(frame).manifold_ == "euclidean:2"


def test_bad_rows_are_named(density, quakes):
    rows = quakes[:20].copy()
    rows[7, 0] = 95.0
    with pytest.raises(ValueError, match="row 8.*latitude 95"):
        density.score_samples(rows)
    frame = pd.DataFrame({"lat": quakes[:600, 0], "lon": quakes[:600, 1]})
    frame.loc[4, "lon"] = np.nan
    with pytest.raises(ValueError, match="row 5.*lon"):
        minvel.Density(**PLACES).fit(frame)
    with pytest.raises(ValueError, match="no column 'depth'"):
        minvel.Density(**PLACES, columns=["lat", "depth"]).fit(frame)


def test_what_may_mean_several_things_is_asked_in_keywords(quakes):
    hours = pd.DataFrame({"time": np.linspace(0, 23.9, 200)})
    with pytest.raises(ValueError, match='units="hours"') as why:
        minvel.Density("sphere:1", effort="quick", verbose=0).fit(hours)
    assert "--" not in str(why.value)
    clock = minvel.Density("sphere:1", units="hours", effort="quick", verbose=0).fit(hours)
    assert 0 <= clock.sample(1, random_state=1)["time"][0] < 24


def test_columns_are_views_of_what_was_given(quakes):
    """No library's columns are copied on their way to the native part."""
    columns = {"lat": np.ascontiguousarray(quakes[:, 0]), "lon": np.ascontiguousarray(quakes[:, 1])}
    array, series = np.asfortranarray(quakes), pl.Series("lat", columns["lat"])
    frame = pd.DataFrame(columns, copy=False)
    arrow = pa.table({name: pa.array(values) for name, values in columns.items()})
    given = {
        "numpy": (quakes, quakes),
        "fortran": (array, array),
        "pandas": (frame, frame["lat"].to_numpy()),
        "polars": (pl.DataFrame([series]), series.to_numpy()),
        "arrow": (arrow, arrow["lat"].chunk(0).to_numpy()),
        "stream": (Stream(arrow), arrow["lat"].chunk(0).to_numpy()),
    }
    for name, (table, memory) in given.items():
        native = read(table).numbers("Density")["arrays"][0]
        assert np.shares_memory(native, memory), name
    # the twin: another type has to be copied
    assert not np.shares_memory(read(quakes.astype(np.float32)).numbers("Density")["arrays"][0], quakes)


def test_scoring_takes_no_memory_for_columns():
    """A million rows of eight columns are 64 MB; their scores are 8 MB, and rows become points some at a time."""
    code = """
import resource, numpy as np, minvel
x = np.random.default_rng(1).normal(size=(1_000_000, 8))
density = minvel.Density(effort="quick", verbose=0, n_jobs=2).fit(x[:8])
density.score_samples(x[:200_000])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
density.score_samples(x)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1000)
"""
    if not sys.platform.startswith("linux"):
        pytest.skip("the peak of memory is in kilobytes on Linux")
    more = float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)
    print(f"{more:.0f} MB more")
    assert more < 40


def test_rows_beyond_the_first_block_are_named_by_their_number(density, quakes):
    many = np.tile(quakes, (15, 1))
    many[70_000, 0] = 95.0
    with pytest.raises(ValueError, match="row 70001.*latitude 95"):
        density.score_samples(many)
    radians = np.radians(np.tile(quakes, (15, 1)))
    with pytest.warns(minvel.MinvelWarning, match="radians"):
        density.score_samples(radians)


def test_arrow_is_read_without_copies_and_missing_numbers_are_nan():
    table = pa.table({"a": [1.0, None, 3.0], "b": pa.array([1, 2, 3], pa.int16()), "c": [True, None, False], "t": ["x", "y", "z"]})
    names, (a, b, c, t) = columns_of(Stream(table.slice(1)))
    assert names == ["a", "b", "c", "t"] and t.dtype.kind == "U"
    assert np.isnan(a[0]) and a[1] == 3 and b.tolist() == [2, 3] and np.isnan(c[0]) and c[1] == 0
    numbers = pa.array(np.arange(5.0))
    (_, (own,)) = columns_of(Stream(pa.table({"x": numbers})))
    assert own.__array_interface__["data"][0] == numbers.buffers()[1].address, "the same memory"
    (_, (own,)) = columns_of(Stream(pa.table({"x": pa.chunked_array([[1.0], [2.0, 3.0]])})))
    assert own.tolist() == [1, 2, 3]
    del table, numbers
    assert b.tolist() == [2, 3], "kept alive"


def test_a_grid_is_a_labelled_array_that_integrates_to_one(density):
    grid = density.to_xarray(60)
    assert grid.density.dims == ("lat", "lon") and grid.density.shape == (60, 120)
    total = float((grid.density * grid.cell).sum())
    assert total == pytest.approx(grid.attrs["total"], rel=1e-12) and abs(total - 1) < 0.1
    assert float(grid.cell.sum()) == pytest.approx(4 * np.pi)
    at = grid.isel(lat=31, lon=17)
    assert density.score_samples([[float(at.lat), float(at.lon)]])[0] == pytest.approx(float(at.log_density), abs=1e-9)
