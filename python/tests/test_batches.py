"""Batches of rows, scored or drawn anywhere, have the bits of the program in one process."""

import pickle
import re
import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import minvel
from minvel import batches as kernel
from minvel.batches import BLOCK, Scorer, blocks_of

ROWS = 3000


@pytest.fixture(scope="module")
def fitted(quakes, tmp_path_factory):
    """A fit to named columns, and its folder."""
    table = pa.table({"lat": quakes[:600, 0], "lon": quakes[:600, 1]})
    density = minvel.Density("sphere:2", layout="latlon", units="degrees", effort="quick", verbose=0).fit(table)
    return density, density.save(tmp_path_factory.mktemp("fit") / "quakes")


@pytest.fixture(scope="module")
def rows(quakes):
    """Rows with other columns beside, some of them with a missing coordinate: null and NaN."""
    number = np.arange(ROWS)
    lat, lon = quakes[2000 : 2000 + ROWS].T
    return pa.table(
        {
            "id": number,
            "place": [f"place {k}" for k in number],
            "lon": pa.array(lon, mask=number % 97 == 5),
            "p_value": pa.array(number, pa.int32()),
            "lat": np.where(number % 131 == 7, np.nan, lat),
        }
    )


@pytest.fixture(scope="module")
def scored(fitted, rows, program, tmp_path_factory):
    """What the program writes."""
    folder = tmp_path_factory.mktemp("scored")
    pq.write_table(rows, folder / "rows.parquet")
    run = program("score", fitted[1], folder / "rows.parquet", "--outliers", "--out", folder / "scored.parquet")
    assert run.returncode == 0, run.stderr
    return pq.read_table(folder / "scored.parquet")


def same(mine: pa.ChunkedArray, theirs: pa.ChunkedArray) -> bool:
    """The same numbers, bit for bit, and missing in the same rows."""
    a, b = (column.combine_chunks() for column in (mine, theirs))
    bits = [column.fill_null(0.0).to_numpy().view(np.int64) for column in (a, b)]
    return bool(a.is_null().equals(b.is_null()) and (bits[0] == bits[1]).all())


@pytest.mark.parametrize("size", [1, 77, ROWS])
def test_batches_of_any_size_have_the_bits_of_the_program(fitted, rows, scored, size):
    few = rows.slice(0, 200) if size == 1 else rows
    out = pa.Table.from_batches(fitted[0].score_batches(few.to_batches(max_chunksize=size), log_z_error=True, p_value=True))
    assert out.schema.names == [*rows.schema.names, "log_density", "log_z_error", "p_value_2"]
    assert out.select(rows.schema.names).schema == rows.schema
    assert out.slice(0, 50).select(["id", "place", "p_value"]).equals(few.slice(0, 50).select(["id", "place", "p_value"]))
    for name in ("log_density", "p_value_2"):
        assert same(out[name], scored[name].slice(0, len(few))), name
    missing = scored["log_density"].slice(0, len(few)).null_count
    assert missing > 0 and out["log_z_error"].null_count == missing, "missing in, missing out"


def test_a_number_that_is_off_by_a_bit_is_noticed(scored):
    """The twin of the comparison: it can fail."""
    wrong = scored["log_density"].fill_null(0.0).to_numpy().copy()
    wrong[3] = np.nextafter(wrong[3], np.inf)
    null = scored["log_density"].is_null().to_numpy()
    assert not same(pa.chunked_array([pa.array(wrong, mask=null)]), scored["log_density"])
    assert not same(pa.chunked_array([pa.array(wrong)]), scored["log_density"])


@pytest.mark.parametrize("make", [iter, list, pa.RecordBatchReader.from_batches, pa.Table.from_batches, pl.from_arrow, "tables"])
def test_any_stream_of_arrow_is_taken(fitted, rows, scored, make):
    pieces = rows.to_batches(max_chunksize=1000)
    if make == "tables":
        stream = [pl.from_arrow(batch) for batch in pieces]
    elif make == pa.RecordBatchReader.from_batches:
        stream = make(rows.schema, pieces)
    else:
        stream = make(pieces)
    assert same(pa.Table.from_batches(fitted[0].score_batches(stream))["log_density"], scored["log_density"])


def test_a_scorer_from_a_path_bytes_or_a_density_gives_the_same_and_is_loaded_once(fitted, rows, scored, monkeypatch):
    density, path = fitted
    monkeypatch.setattr(kernel, "_models", {})
    loads = []
    monkeypatch.setattr(kernel.Scorer, "_load", lambda self, load=kernel.Scorer._load: loads.append(1) or load(self))
    data = (path / "model.safetensors").read_bytes()
    for model in (density, data, path, str(path / "model.safetensors")):
        scorer = pickle.loads(pickle.dumps(Scorer(model)))
        for _ in range(2):
            assert same(pa.Table.from_batches(scorer(rows.to_batches()))["log_density"], scored["log_density"])
    assert len(loads) == 1, "one digest, one load"
    assert len(pickle.dumps(Scorer(path))) < 1000, "a path is sent as a path"
    with pytest.raises(TypeError, match="float"):
        Scorer(1.0)


def test_a_model_that_changed_on_its_way_is_refused(fitted, rows, tmp_path, monkeypatch):
    file = tmp_path / "model.safetensors"
    file.write_bytes(fitted[0].to_bytes())
    scorer = Scorer(file)
    other = minvel.Density(effort="quick", verbose=0).fit(np.random.default_rng(1).normal(size=(100, 2)))
    file.write_bytes(other.to_bytes())
    monkeypatch.setattr(kernel, "_models", {})
    with pytest.raises(ValueError, match="not the model that this work began with"):
        scorer.density()


def test_p_values_are_refused_before_work_begins_where_there_is_no_reference(fitted, rows, monkeypatch):
    def none(density):
        raise ValueError("no reference rows")

    monkeypatch.setattr(kernel, "_check_reference", none)
    with pytest.raises(ValueError, match="reference"):
        Scorer(fitted[0], p_value=True)
    with pytest.raises(ValueError, match="reference"):
        fitted[0].score_batches(rows.to_batches(), p_value=True)


def test_p_values_of_a_fit_with_groups_are_those_of_the_program(quakes, program, tmp_path):
    table = pa.table({"lat": quakes[:600, 0], "lon": quakes[:600, 1]})
    density = minvel.Density("sphere:2", layout="latlon", units="degrees", effort="quick", verbose=0)
    density.fit(table, groups=np.arange(600) // 7).save(tmp_path / "fit")
    pq.write_table(table, tmp_path / "rows.parquet")
    run = program("score", tmp_path / "fit", tmp_path / "rows.parquet", "--outliers", "--out", tmp_path / "scored.parquet")
    assert run.returncode == 0, run.stderr
    out = pa.Table.from_batches(Scorer(tmp_path / "fit", p_value=True)(table.to_batches(max_chunksize=100)))
    assert same(out["p_value"], pq.read_table(tmp_path / "scored.parquet")["p_value"])


def test_p_values_of_a_second_fit_are_its_own(quakes):
    density = minvel.Density(effort="quick", verbose=0).fit(quakes[:300])
    rows = [pa.table({"a": quakes[:9, 0], "b": quakes[:9, 1]})]
    [first] = density.score_batches(rows, p_value=True)
    [second] = density.fit(quakes[300:400]).score_batches(rows, p_value=True)
    [alone] = minvel.Density(effort="quick", verbose=0).fit(quakes[300:400]).score_batches(rows, p_value=True)
    assert second.equals(alone) and not second.equals(first)


def test_columns_are_found_by_name_by_choice_or_by_number(fitted, density, rows, scored):
    renamed = rows.rename_columns(["id", "place", "Länge", "p_value", "Breite"])
    out = fitted[0].score_batches(renamed.to_batches(), columns=["Breite", "Länge"])
    assert same(pa.Table.from_batches(out)["log_density"], scored["log_density"])
    shouted = rows.rename_columns(["id", "place", "LON", "p_value", "LAT"])
    assert same(pa.Table.from_batches(fitted[0].score_batches(shouted.to_batches()))["log_density"], scored["log_density"])
    # a model that was fitted to an array has numbered columns: names of samples, else positions
    plain = rows.select(["lat", "lon"]).rename_columns(["a", "b"])
    assert same(pa.Table.from_batches(density.score_batches(plain.to_batches()))["log_density"], scored["log_density"])
    assert same(pa.Table.from_batches(density.score_batches(rows.to_batches()))["log_density"], scored["log_density"])
    with pytest.raises(ValueError, match="no column 'lat'.*'Breite'.*columns="):
        list(fitted[0].score_batches(renamed.to_batches()))
    with pytest.raises(ValueError, match="1 names, but points have 2"):
        list(fitted[0].score_batches(rows.to_batches(), columns=["lat"]))
    with pytest.raises(ValueError, match="'place' holds no numbers"):
        list(fitted[0].score_batches(rows.to_batches(), columns=["place", "lon"]))
    with pytest.raises(TypeError, match="a batch is a int"):
        list(fitted[0].score_batches([1]))


def test_a_bad_row_is_named_with_its_batch(fitted, quakes):
    lat = quakes[:300, 0].copy()
    lat[[201, 207]] = np.nan, 95.0  # the row before is missing, and does not shift the number
    batches = pa.table({"lat": lat, "lon": quakes[:300, 1]}).to_batches(max_chunksize=100)
    with pytest.raises(ValueError, match=r"batch 3, whose first row is row 201: .*row 8.*latitude 95"):
        list(fitted[0].score_batches(batches))


def test_batches_without_rows_or_without_any_number_pass(fitted, rows):
    empty, blank = rows.slice(0, 0), rows.slice(0, 3).set_column(2, "lon", pa.nulls(3, pa.float64()))
    out = pa.Table.from_batches(fitted[0].score_batches([*empty.to_batches(), blank], p_value=True, log_z_error=True))
    assert out["log_density"].null_count == out["p_value_2"].null_count == 3
    [none] = fitted[0].score_batches([pa.RecordBatch.from_pylist([], rows.schema)])
    assert none.num_rows == 0 and none.schema.names[-1] == "log_density"


def test_a_doubt_is_told_once_and_only_if_all_batches_share_it(fitted, quakes):
    near = pa.table({"lat": quakes[:200, 0] / 100, "lon": quakes[:200, 1] / 100})
    far = pa.table({"lat": quakes[:200, 0], "lon": quakes[:200, 1]})
    with pytest.warns(minvel.MinvelWarning) as told:
        list(fitted[0].score_batches(near.to_batches(max_chunksize=100)))
    assert len(told) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        list(fitted[0].score_batches([near, far]))


def test_the_recipe_for_polars_gives_the_bits_of_the_program(fitted, rows, scored, tmp_path):
    pq.write_table(rows, tmp_path / "rows.parquet")
    scorer = Scorer(fitted[1], threads=0)

    def score(frame: pl.DataFrame) -> pl.DataFrame:
        return frame.with_columns(pl.Series("log_density", scorer.scores(frame)[0], nan_to_null=True))

    lazy = pl.scan_parquet(tmp_path / "rows.parquet")
    schema = {**lazy.collect_schema(), "log_density": pl.Float64}
    lazy.map_batches(score, schema=schema, streamable=True).sink_parquet(tmp_path / "out.parquet")
    assert same(pq.read_table(tmp_path / "out.parquet")["log_density"], scored["log_density"])


def test_the_recipe_for_duckdb_gives_the_bits_of_the_program(fitted, rows, scored, tmp_path):
    duckdb = pytest.importorskip("duckdb")
    pq.write_table(rows, tmp_path / "rows.parquet")
    scorer = Scorer(fitted[1], threads=0)
    with duckdb.connect() as reading, duckdb.connect() as writing:  # one for each stream
        stream = pa.RecordBatchReader.from_stream(reading.sql(f"SELECT * FROM '{tmp_path}/rows.parquet'"))
        answer = pa.RecordBatchReader.from_batches(scorer.schema(stream.schema), scorer(stream))
        writing.register("answer", answer)
        writing.execute(f"COPY (SELECT * FROM answer) TO '{tmp_path}/out.parquet'")
    out = pq.read_table(tmp_path / "out.parquet").sort_by("id")
    assert same(out["log_density"], scored["log_density"])


def test_any_slice_of_a_draw_has_the_bits_of_the_program(fitted, program, tmp_path):
    density, path = fitted
    number = 2 * BLOCK + 1000
    run = program("sample", path, "-n", number, "--seed", 11, "--out", tmp_path / "drawn.parquet")
    assert run.returncode == 0, run.stderr
    drawn = pq.read_table(tmp_path / "drawn.parquet")
    slices = [pa.Table.from_batches(density.sample_batches(number, 11, blocks=[block])) for block in (2, 0, 1)]
    assert [len(piece) for piece in slices] == [1000, BLOCK, BLOCK]
    mine = pa.concat_tables([slices[1], slices[2], slices[0]])
    assert all(same(mine[name], drawn[name]) for name in ("lat", "lon"))
    assert not same(slices[1]["lat"], slices[2]["lat"]), "blocks differ"
    few = pa.Table.from_batches(density.sample_batches(10, 11))
    assert (few["lat"].to_numpy() == density.sample(10, 11)["lat"].to_numpy()).all()
    assert list(blocks_of(number)) == [0, 1, 2] and len(blocks_of(BLOCK)) == 1
    with pytest.raises(ValueError, match="no block 3"):
        density.sample_batches(number, 11, blocks=[3])
    with pytest.raises(ValueError, match="at least 1"):
        density.sample_batches(0)


def test_bytes_come_back_as_detectors_too(fitted, quakes):
    detector = minvel.OutlierDetector.from_bytes(fitted[0].to_bytes(), verbose=0)
    frame = pd.DataFrame({"lat": quakes[:50, 0], "lon": quakes[:50, 1]})
    [batch] = detector.score_batches([pa.table(frame)], p_value=True)
    assert (batch["p_value"].to_numpy() == detector.p_values(frame)).all()


@pytest.mark.parametrize("name, install", [("ray", r"ray\[data\]"), ("dask", r"dask\[dataframe"), ("spark", "pyspark")])
def test_an_engine_that_is_not_installed_is_named(name, install):
    code = f"import sys; sys.modules[{ {'spark': 'pyspark'}.get(name, name)!r}] = None; import minvel.{name}"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.returncode == 1
    assert re.search(rf"ImportError: minvel.{name} needs .*pip install .*{install}", run.stderr), run.stderr
