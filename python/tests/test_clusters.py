"""Dask, Ray and Spark with two worker processes each: the rows and bits of the program, also if a worker is killed half-way.

They run where `MINVEL_CLUSTERS` names engines (`MINVEL_CLUSTERS=dask,ray pytest`; 1: all that are installed), since starting engines
takes a minute: else they are skipped, with the reason.
"""

import importlib.util
import json
import os
import signal
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import minvel
from minvel.batches import BLOCK, Scorer

ROWS, PARTS, DRAWS = 40_000, 8, 2 * BLOCK + 1000
MANY = 130_000  # more than a summary keeps, so that there are cells
WANTED = os.environ.get("MINVEL_CLUSTERS", "")


def engine(name, package):
    """Marks tests that need an engine."""
    if WANTED in ("", "0"):
        return pytest.mark.skip(reason="MINVEL_CLUSTERS is not set: clusters are not started")
    if WANTED == "1":
        return pytest.mark.skipif(not importlib.util.find_spec(package), reason=f"{package} is not installed")
    return pytest.mark.skipif(name not in WANTED.split(","), reason=f"MINVEL_CLUSTERS does not name {name}")


needs_dask, needs_ray, needs_spark = engine("dask", "distributed"), engine("ray", "ray"), engine("spark", "pyspark")


@pytest.fixture(scope="module")
def lake(quakes, program, tmp_path_factory):
    """A folder with a model, partitioned Parquet, and what the program makes of it."""
    folder = tmp_path_factory.mktemp("lake")
    frame = pd.DataFrame({"lat": quakes[:600, 0], "lon": quakes[:600, 1]})
    density = minvel.Density("sphere:2", layout="latlon", units="degrees", effort="quick", verbose=0).fit(frame)
    density.save(folder / "model")
    table = pa.Table.from_batches(density.sample_batches(ROWS, 5))
    number = np.arange(ROWS)
    lon = pa.array(table["lon"].to_numpy(), mask=number % 997 == 5)
    table = pa.table({"id": number, "place": [f"place {k}" for k in number], "lat": table["lat"], "lon": lon})
    (folder / "rows").mkdir()
    for part in range(PARTS):
        pq.write_table(table.slice(part * ROWS // PARTS, ROWS // PARTS), folder / "rows" / f"part-{part}.parquet")
    pq.write_table(table, folder / "rows.parquet")
    many = pa.Table.from_batches(density.sample_batches(MANY, 6))
    pq.write_table(many, folder / "many.parquet")
    (folder / "many").mkdir()
    for part in range(PARTS):
        pq.write_table(many.slice(part * MANY // PARTS, MANY // PARTS), folder / "many" / f"part-{part}.parquet")
    run = program("score", folder / "model", folder / "rows.parquet", "--out", folder / "scored.parquet")
    assert run.returncode == 0, run.stderr
    run = program("sample", folder / "model", "-n", DRAWS, "--seed", 11, "--out", folder / "drawn.parquet")
    assert run.returncode == 0, run.stderr
    return folder


def assert_same(mine, lake):
    """The rows and bits of the program, in any order."""
    theirs = pq.read_table(lake / "scored.parquet").sort_by("id")
    mine = mine.sort_by("id")
    for name in ("id", "place", "lat", "lon", "log_density"):
        a, b = mine[name].combine_chunks(), theirs[name].combine_chunks()
        assert a.cast(b.type).equals(b), name  # numbers that are equal have the same bits: no zero has a sign here
    assert mine["log_density"].null_count == len(range(5, ROWS, 997))


FIT = {"manifold": "sphere:2", "layout": "latlon", "units": "degrees", "effort": "quick", "missing": "drop", "verbose": 0}


@pytest.fixture(scope="module")
def fitted(lake):
    """The model that one machine makes of the rows, by cells."""
    with pytest.warns(minvel.MinvelWarning):
        return minvel.Density(columns=["lat", "lon"], **FIT).fit_batches(pq.read_table(lake / "many.parquet"), cells=500)


def assert_fitted(mine, fitted):
    assert mine.to_bytes() == fitted.to_bytes()
    assert mine.evaluation_ == fitted.evaluation_ and mine.evaluation_["test_rows"] > 10_000


def assert_drawn(mine, lake):
    theirs = pq.read_table(lake / "drawn.parquet")
    for name in ("lat", "lon"):
        assert (mine[name].to_numpy() == theirs[name].to_numpy()).all(), name


class Slow(Scorer):
    """A scorer that writes down which process it is and takes its time, so that there is a half-way."""

    def _noted(self):
        folder = os.environ["MINVEL_TEST_NOTES"]
        with open(os.path.join(folder, f"{os.getpid()}"), "a") as file:
            file.write("x")
        time.sleep(0.4)

    def scores(self, rows):
        self._noted()
        return super().scores(rows)

    def __call__(self, batches):
        self._noted()
        return super().__call__(batches)


def half_way(notes, timeout=240):
    """The process that works first, once two tasks have begun."""
    end = time.monotonic() + timeout
    while time.monotonic() < end:
        begun = {int(file.name): file.stat().st_size for file in notes.iterdir()}
        if sum(begun.values()) >= 3:
            return max(begun, key=lambda pid: begun[pid])
        time.sleep(0.02)
    raise AssertionError(f"no worker has begun within {timeout} s")


@pytest.fixture
def notes(tmp_path, monkeypatch):
    folder = tmp_path / "notes"
    folder.mkdir()
    monkeypatch.setenv("MINVEL_TEST_NOTES", str(folder))
    return folder


# --- Dask ---


@pytest.fixture
def dask_client(notes):
    from distributed import Client, LocalCluster

    with LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster, Client(cluster) as client:
        yield client


@needs_dask
def test_dask_scores_and_draws_what_the_program_does(dask_client, lake, tmp_path):
    import dask.bag
    import dask.dataframe as dd

    import minvel.dask

    rows = dd.read_parquet(lake / "rows")
    minvel.dask.score(rows, lake / "model", log_z_error=True, p_value=True).to_parquet(tmp_path / "out", write_index=False)
    scored = pq.read_table(tmp_path / "out")
    assert scored.schema.names[-3:] == ["log_density", "log_z_error", "p_value"]
    assert_same(scored, lake)
    density = minvel.Density.load(lake / "model", verbose=0)
    assert_same(pa.Table.from_pandas(minvel.dask.score(rows, density).compute(), preserve_index=False), lake)
    assert_drawn(minvel.dask.sample(density, DRAWS, 11).compute(), lake)
    records = pq.read_table(lake / "rows" / "part-0.parquet").to_pylist()
    bag = minvel.dask.score_bag(dask.bag.from_sequence(records, npartitions=3), density).compute()
    theirs = pq.read_table(lake / "scored.parquet").slice(0, len(records)).drop_columns(["energy"]).to_pylist()
    assert bag == theirs, "records with their scores, None where a coordinate is missing"


@needs_dask
def test_a_killed_worker_of_dask_costs_nothing_but_time(dask_client, lake, notes, tmp_path, monkeypatch):
    import dask.dataframe as dd

    import minvel.dask

    monkeypatch.setattr(minvel.dask, "Scorer", Slow)
    workers = set(dask_client.run(os.getpid).values())
    frame = minvel.dask.score(dd.read_parquet(lake / "rows", split_row_groups=True), lake / "model")
    writing = frame.to_parquet(tmp_path / "out", write_index=False, compute=False)
    future = dask_client.compute(writing)
    victim = half_way(notes)
    assert victim in workers and len(workers) == 2
    os.kill(victim, signal.SIGKILL)
    future.result(timeout=120)
    assert_same(pq.read_table(tmp_path / "out"), lake)


@needs_dask
def test_dask_fits_the_model_of_one_machine(dask_client, lake, fitted):
    import dask.dataframe as dd

    import minvel.dask

    for rows in (dd.read_parquet(lake / "many"), dd.read_parquet(lake / "many.parquet").repartition(npartitions=3)):
        with pytest.warns(minvel.MinvelWarning):
            mine = minvel.dask.fit(rows, cells=500, columns=["lat", "lon"], **FIT)
        assert_fitted(mine, fitted)


# --- Ray ---


@pytest.fixture
def ray_cluster(notes):
    import ray

    variables = {"MINVEL_TEST_NOTES": str(notes), "PYTHONPATH": os.path.dirname(__file__)}
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, runtime_env={"env_vars": variables}, object_store_memory=2**28)
    ray.data.DataContext.get_current().enable_progress_bars = False
    yield ray
    ray.shutdown()


@needs_ray
def test_ray_scores_and_draws_what_the_program_does(ray_cluster, lake, tmp_path):
    import minvel.ray

    rows = ray_cluster.data.read_parquet(str(lake / "rows"))
    minvel.ray.score(rows, lake / "model", log_z_error=True, p_value=True).write_parquet(str(tmp_path / "out"))
    scored = pq.read_table(tmp_path / "out")
    assert scored.schema.names[-3:] == ["log_density", "log_z_error", "p_value"]
    assert_same(scored, lake)
    density = minvel.Density.load(lake / "model", verbose=0)
    minvel.ray.score(rows, density, actors=1).write_parquet(str(tmp_path / "actors"))
    assert_same(pq.read_table(tmp_path / "actors"), lake)
    minvel.ray.sample(density, DRAWS, 11).write_parquet(str(tmp_path / "drawn"))
    assert_drawn(pq.read_table(tmp_path / "drawn").sort_by("row"), lake)


@needs_ray
@pytest.mark.parametrize("actors", [None, 1], ids=["tasks", "actors"])
def test_a_killed_worker_of_ray_costs_nothing_but_time(ray_cluster, lake, notes, tmp_path, monkeypatch, actors):
    import threading

    import minvel.ray

    monkeypatch.setattr(minvel.ray, "Scorer", Slow)
    rows = ray_cluster.data.read_parquet(str(lake / "rows")).repartition(PARTS)  # a task for each block
    scored = minvel.ray.score(rows, lake / "model", actors=actors)
    thread = threading.Thread(target=lambda: scored.write_parquet(str(tmp_path / "out")))
    thread.start()
    victim = half_way(notes)
    assert victim != os.getpid()
    os.kill(victim, signal.SIGKILL)
    thread.join(timeout=180)
    assert not thread.is_alive()
    assert len(list(notes.iterdir())) >= 2, "another process took over"
    assert_same(pq.read_table(tmp_path / "out"), lake)


@needs_ray
def test_ray_fits_the_model_of_one_machine(ray_cluster, lake, fitted):
    import minvel.ray

    for rows in (ray_cluster.data.read_parquet(str(lake / "many")), ray_cluster.data.read_parquet(str(lake / "many.parquet")).repartition(3)):
        with pytest.warns(minvel.MinvelWarning):
            mine = minvel.ray.fit(rows, cells=500, columns=["lat", "lon"], **FIT)
        assert_fitted(mine, fitted)


def report_of(folder):
    report = json.loads((folder / "report.json").read_text())
    return json.dumps([report[key] for key in ("rows", "figures", "config", "notes")])


SWEEP = ["--quick", "--device", "cpu", "--seeds", "2", "--set", "samples=20_000", "--set", "learning.iterations=100"]
SWEEP += ["--set", "step_sizes=[1e-3, 2e-3, 4e-3, 8e-3, 1.6e-2, 3.2e-2, 6.4e-2]"]


@needs_ray
def test_ray_reproduces_the_report_of_one_process(ray_cluster, program, tmp_path):
    import minvel.ray

    run = program("reproduce", "gaussian", "--out", tmp_path / "alone", *SWEEP)
    assert run.returncode == 0, run.stderr
    report = minvel.ray.reproduce("gaussian", tmp_path / "shared", tasks=3, options=SWEEP)
    assert report == tmp_path / "shared" / "report.json"
    assert report_of(tmp_path / "shared") == report_of(tmp_path / "alone")
    with pytest.raises(ray_cluster.exceptions.RayTaskError, match="unknown experiment|no experiment"):
        minvel.ray.reproduce("nothing", tmp_path / "other", tasks=1)


@needs_ray
@pytest.mark.parametrize("who", ["program", "worker"])
def test_a_killed_task_of_a_sweep_is_started_again(ray_cluster, program, tmp_path, who):
    import threading

    import minvel.ray

    run = program("reproduce", "gaussian", "--out", tmp_path / "alone", *SWEEP)
    assert run.returncode == 0, run.stderr
    shared = tmp_path / "shared"
    thread = threading.Thread(target=lambda: minvel.ray.reproduce("gaussian", shared, tasks=2, options=SWEEP))
    thread.start()
    end, victim = time.monotonic() + 120, None
    while victim is None and time.monotonic() < end:
        for claim in shared.glob("units/*.claim.*"):
            try:
                victim = json.loads(claim.read_text())["pid"]
            except (OSError, ValueError):  # it has just ended, or is being written
                continue
        time.sleep(0.005)
    assert victim is not None
    if who == "worker":  # which started the program
        victim = int(Path(f"/proc/{victim}/stat").read_text().rpartition(")")[2].split()[1])
    assert victim not in (1, os.getpid())
    os.kill(victim, signal.SIGKILL)
    thread.join(timeout=180)
    assert not thread.is_alive()
    assert report_of(shared) == report_of(tmp_path / "alone")


# --- Spark ---


@needs_spark
def test_spark_scores_draws_and_fits_what_one_machine_does(lake, fitted, tmp_path, monkeypatch):
    from pyspark.sql import SparkSession

    import minvel.spark

    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").config("spark.driver.host", "127.0.0.1")
    spark = builder.config("spark.driver.bindAddress", "127.0.0.1").getOrCreate()
    try:
        rows = spark.read.parquet(str(lake / "rows"))
        minvel.spark.score(rows, lake / "model", log_z_error=True, p_value=True).write.parquet(str(tmp_path / "out"))
        assert_same(pq.read_table(tmp_path / "out"), lake)
        density = minvel.Density.load(lake / "model", verbose=0)
        minvel.spark.sample(spark, density, DRAWS, 11).write.parquet(str(tmp_path / "drawn"))
        assert_drawn(pq.read_table(tmp_path / "drawn").sort_by("row"), lake)
        with pytest.warns(minvel.MinvelWarning):
            mine = minvel.spark.fit(spark.read.parquet(str(lake / "many")), cells=500, columns=["lat", "lon"], **FIT)
        assert_fitted(mine, fitted)
    finally:
        spark.stop()
