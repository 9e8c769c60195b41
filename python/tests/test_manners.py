"""Ctrl-C, threads, processes, progress: the manners of a guest in somebody's notebook."""

import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
import warnings

import joblib
import numpy as np
import pytest

import minvel


def script(text: str, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(text), *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def test_ctrl_c_stops_a_fit_within_a_second_and_leaves_the_old_fit():
    process = script(
        """
        import threading, time, numpy as np, minvel
        x = np.random.default_rng(1).normal(size=(4000, 3))
        density = minvel.Density(verbose=0, effort="quick").fit(x[:100])
        before = density.score_samples(x[:5])
        density.set_params(effort="normal", settings={"learning.steps": 1000000})
        threads = threading.active_count()
        print("fitting", flush=True)
        try:
            density.fit(x)
        except KeyboardInterrupt:
            ended = time.time()
            assert (density.score_samples(x[:5]) == before).all(), "the old fit is still there"
            assert threading.active_count() == threads
            print("stopped", ended, flush=True)
        """
    )
    assert process.stdout is not None and process.stdout.readline() == "fitting\n"
    time.sleep(3)
    asked = time.time()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0 and out.startswith("stopped"), err
    took = float(out.split()[1]) - asked
    print(f"stopped after {took:.2f} s")
    assert took < 1.0 * slack()


# What is at work when Ctrl-C comes, and what must be as it was before.
INTERRUPTED = {
    "an auto-encoder": (
        "model = minvel.AutoEncoder('sphere:2', iterations=5, hidden=(8,), batch=16, verbose=0).fit(images)",
        "model.set_params(iterations=10**7).fit(images[:, :4])",
        "model.transform(images).tobytes() + model.sample(2, 1).tobytes() + model.losses_.tobytes()",
    ),
    "an energy that learns": (
        "model = minvel.Energy('euclidean:2', hidden=(64, 64), verbose=0).fit(x, steps=5)",
        "model.fit(x, steps=10**7)",
        "model(x).tobytes() + repr(model.losses_).encode()",
    ),
    "chains": (
        "model = minvel.Energy('euclidean:2', hidden=(64, 64), verbose=0).fit(x, steps=5)",
        "minvel.sample_energy(model, chains=64, draws=10, warm_up=10**7, verbose=0)",
        "model(x).tobytes()",
    ),
    "outliers of other columns": (
        "model = minvel.OutlierDetector(verbose=0, effort='quick').fit(x[:100])",
        "model.set_params(effort='normal', settings={'learning.steps': 10**7}).fit(np.hstack([x, x**2 + x[::-1]]))",
        "model.p_values(x).tobytes() + repr((model.n_features_in_, model.offset_, model.manifold_)).encode()",
    ),
    "scores": (
        "model, rows = minvel.Density(verbose=0, effort='quick').fit(x), np.tile(x, (2500, 1))",
        "model.score_samples(rows)",
        "model.score_samples(x[:5]).tobytes()",
    ),
}


@pytest.mark.parametrize("what", INTERRUPTED)
def test_ctrl_c_stops_everything_within_a_second_and_changes_nothing(what):
    before, work, state = INTERRUPTED[what]
    process = script(
        f"""
        import os, threading, time, numpy as np, minvel
        x = np.random.default_rng(1).normal(size=(4000, 2))
        images = np.random.default_rng(1).integers(0, 256, size=(64, 8, 8), dtype=np.uint8)
        {before}
        state = {state}
        tasks = len(os.listdir("/proc/self/task")) if os.path.isdir("/proc/self/task") else 0
        print("working", flush=True)
        ended = None
        try:
            {work}
        except KeyboardInterrupt:
            ended = time.time()
        time.sleep(0.2)  # the traceback, which held what was at work, is gone
        left = (len(os.listdir("/proc/self/task")) if tasks else 0) - tasks
        assert left <= 0, f"{{left}} threads are left behind"
        assert {state} == state, "it has changed"
        print("stopped", ended, flush=True)
        """
    )
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line == "working\n", process.communicate()[1]
    time.sleep(2)
    asked = time.time()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0 and out.startswith("stopped"), err
    took = float(out.split()[1]) - asked
    print(f"{what}: stopped after {took:.2f} s")
    assert took < 1.0 * slack()


def test_a_fit_that_fails_changes_nothing(quakes):
    density = minvel.Density(effort="quick", verbose=0).fit(quakes[:50])
    before = dict(vars(density))
    for bad, why in [(np.ones((20, 3)), "every row"), (np.full((20, 3), np.nan), "NaN"), (quakes[:1], "minimum of 3")]:
        with pytest.raises(ValueError, match=why):
            density.fit(bad)
        assert vars(density) == before
    assert density.score_samples(quakes[:2]).shape == (2,)


def test_no_thread_is_left_behind(quakes):
    code = """
import contextlib, importlib, os, numpy as np, minvel
for name in ("sklearn.base", "pandas", "polars", "pyarrow"):  # these have threads of their own
    with contextlib.suppress(ImportError):
        importlib.import_module(name)
x = np.random.default_rng(1).normal(size=(500, 2))
tasks = lambda: len(os.listdir("/proc/self/task"))
before = tasks()
density = minvel.Density(verbose=0, n_jobs=4, effort="quick").fit(x)
density.score_samples(np.tile(x, (300, 1))), density.sample(10), density.evaluate(x), density.plot(), density.report()
minvel.Energy("euclidean:2", n_jobs=4, verbose=0).fit(x, steps=20)
print(before, tasks())
"""
    if not os.path.isdir("/proc/self/task"):
        pytest.skip("threads are counted on Linux only")
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    before, after = map(int, run.stdout.split())
    assert after == before


def slack() -> float:
    """How many times slower than alone things are on a machine at work."""
    return max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))


def test_the_program_hears_ctrl_c(tmp_path):
    command = [sys.executable, "-m", "minvel", "fit", "earthquake", "--out", str(tmp_path / "fit"), "--set", "learning.steps=1000000"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    time.sleep(3)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130 and "resume" in err and "Traceback" not in err


def test_python_goes_on_while_work_is_done(quakes):
    ticks = 0
    done = threading.Event()

    def tick() -> None:
        nonlocal ticks
        while not done.is_set():
            ticks += 1
            time.sleep(0.01)

    thread = threading.Thread(target=tick)
    thread.start()
    begun = time.time()
    minvel.Density(effort="quick", verbose=0, n_jobs=1).fit(quakes[:700])
    took = time.time() - begun
    done.set()
    thread.join()
    assert ticks > 5 * took, f"{ticks} ticks in {took:.1f} s: the lock was held"


def fit_and_score(rows: np.ndarray) -> np.ndarray:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return minvel.Density(effort="quick", verbose=0, n_jobs=2).fit(rows).score_samples(rows)


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_processes_made_by_fork_and_by_spawn_work(quakes, method):
    here = fit_and_score(quakes[:200])
    context = multiprocessing.get_context(method)
    with context.Pool(2) as pool:
        for there in pool.map(fit_and_score, [quakes[:200]] * 2):
            assert (there == here).all()


@pytest.mark.parametrize("backend", ["loky", "multiprocessing", "threading"])
def test_joblib_works_in_parallel(quakes, backend):
    parts = [quakes[:150], quakes[150:300]]
    both = joblib.Parallel(n_jobs=2, backend=backend)(joblib.delayed(fit_and_score)(part) for part in parts)
    for part, own in zip(parts, both, strict=True):
        assert (own == fit_and_score(part)).all()


def test_results_do_not_depend_on_the_number_of_threads(quakes):
    one, two = (minvel.Density(effort="quick", verbose=0, n_jobs=n).fit(quakes[:300]) for n in (1, 2))
    assert (one.score_samples(quakes[:50]) == two.score_samples(quakes[:50])).all()


def test_progress_is_shown_and_hushed(quakes, capsys, monkeypatch):
    monkeypatch.setattr("minvel._progress._DELAY", 0)
    minvel.Density(effort="quick", verbose=1).fit(quakes[:700])
    assert "fit:" in capsys.readouterr().err
    minvel.Density(effort="quick", verbose=0).fit(quakes[:100])
    assert capsys.readouterr().err == ""


def test_bars_of_everything_are_hushed_by_verbose(capsys, monkeypatch):
    monkeypatch.setattr("minvel._progress._DELAY", 0)
    x = np.random.default_rng(1).normal(size=(200, 2))
    images = np.random.default_rng(1).integers(0, 256, size=(64, 8, 8), dtype=np.uint8)
    for verbose in (1, 0):
        energy = minvel.Energy("euclidean:2", hidden=(64,), verbose=verbose).fit(x, steps=2000)
        minvel.sample_energy(energy, chains=64, draws=2000, verbose=verbose)
        minvel.AutoEncoder("sphere:2", iterations=2000, hidden=(32,), verbose=verbose).fit(images)
        said = capsys.readouterr().err
        for words in ("fit: training", "sample: chains", "train: training"):
            assert (words in said) == bool(verbose), words


def test_trouble_of_a_device_is_a_runtime_error_and_of_a_file_an_os_error(tmp_path, quakes):
    density = minvel.Density(effort="quick", verbose=0).fit(quakes[:30])
    with pytest.raises(OSError, match="there-is-no-such"):
        minvel.Density.load(tmp_path / "there-is-no-such-folder" / "model.safetensors")
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(OSError, match="file"):
        density.save(tmp_path / "file" / "model.safetensors")
    with pytest.raises(RuntimeError, match="not a number|diverged|finite"):
        x = np.random.default_rng(1).normal(size=(100, 2)) * 1e18
        minvel.Energy("euclidean:2", hidden=(8,), verbose=0).fit(x, minvel.objective("score-matching"), steps=50, rate=1e6)


def test_warnings_are_warnings(quakes):
    # rows of a curve are no draws of any smooth density
    t = np.linspace(0, 1, 300)
    frame = np.column_stack([t, np.sin(40 * t)])
    with pytest.warns(minvel.MinvelWarning):
        minvel.Density(effort="quick", verbose=0, missing="drop").fit(np.vstack([frame, [[np.nan, 0.0]]]))


def test_errors_say_what_was_expected(quakes):
    cases = [
        ({"manifold": "sphere"}, "sphere:2"),
        ({"manifold": "euclidean:2", "effort": "great"}, "quick"),
        ({"settings": {"kernels.centers": 5}}, "kernels.centres"),
        ({"device": "gpu"}, "cuda"),
        ({"random_state": -1}, "random_state"),
        ({"manifold": "sphere:2", "layout": "latlong"}, "latlon"),
    ]
    for parameters, expected in cases:
        with pytest.raises(ValueError, match=expected):
            minvel.Density(**{"effort": "quick", "verbose": 0, **parameters}).fit(quakes[:100])
