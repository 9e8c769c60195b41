"""The package as a whole: types, import time, doc examples, notebooks, figures."""

import doctest
import importlib
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest

import minvel

ROOT = Path(__file__).resolve().parents[2]
ENGINES = {"minvel.dask": "dask.dataframe", "minvel.ray": "ray.data", "minvel.spark": "pyspark"}
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))


def modules():
    return sorted(m.name for m in pkgutil.iter_modules(minvel.__path__, "minvel.") if not m.name.endswith(("__main__", "_native")))


@pytest.mark.parametrize("name", ["minvel", *modules()])
def test_examples_of_the_documentation_run(name):
    if name in ENGINES:
        pytest.importorskip(ENGINES[name], reason=f"{name} needs {ENGINES[name]}")
    failures, _ = doctest.testmod(importlib.import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE)
    assert failures == 0


def test_examples_of_the_guide_run():
    text = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```pycon\n(.*?)```", text, re.DOTALL)
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    test = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, "python.md", None, 0)
    failures, tried = doctest.DocTestRunner(optionflags=flags).run(test)
    assert failures == 0 and tried > 10


def test_every_public_thing_is_documented():
    for name in minvel.__all__:
        thing = getattr(minvel, name)
        if name == "__version__":
            continue
        assert thing.__doc__, name
        for member in vars(thing):
            if isinstance(thing, type) and not member.startswith("_") and callable(getattr(thing, member)):
                assert getattr(thing, member).__doc__, f"{name}.{member}"


def test_types_are_right(tmp_path):
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file", ROOT / "pyproject.toml", ROOT / "python" / "minvel"]
    run = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert run.returncode == 0, run.stdout


def test_hints_of_the_native_part_are_those_of_what_was_compiled(tmp_path):
    """The hints are kept by hand: names, arguments and defaults are compared with the module itself."""
    (tmp_path / "allowed").write_text("minvel\\._native\\.(__all__|Array|Watch|Frame|Columns|Pixels)\n")  # for the hints alone
    command = [sys.executable, "-m", "mypy.stubtest", "minvel._native", "--allowlist", "allowed", "--ignore-disjoint-bases"]
    run = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert run.returncode == 0, run.stdout + run.stderr


def test_the_import_is_quick_and_brings_nothing_with_it():
    code = "import sys, time; t = time.perf_counter(); import minvel; print(time.perf_counter() - t); print(*sys.modules)"
    runs = [subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout for _ in range(5)]
    best = min(float(run.splitlines()[0]) for run in runs)
    print(f"import minvel: {1e3 * best:.1f} ms")
    assert best < 0.1
    loaded = runs[0].splitlines()[1].split()
    assert not {"sklearn", "pandas", "matplotlib", "tqdm", "scipy"} & set(loaded)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_run(path, tmp_path):
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    notebook = nbformat.read(path, as_version=4)
    nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": tmp_path}}).execute()
    assert path.stat().st_size < 600_000, "outputs are kept small"


def test_there_are_three_notebooks():
    assert len(NOTEBOOKS) == 3


def test_figures_are_pictures_and_reports_are_pages(density, tmp_path):
    figures = density.plot(points="none")
    assert figures[0].png.startswith(b"\x89PNG") and figures[0].svg.startswith("<svg") and "<img" in figures._repr_html_()
    assert figures.save(tmp_path / "map.svg")[0].read_text().startswith("<svg")
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    _, ax = pyplot.subplots()
    assert density.plot(ax) is ax and len(ax.images) == 1
    report = density.report()
    assert "<html" in report.html and "iframe" in report._repr_html_() and report.numbers["rows"]


def test_a_notebook_shows_scores_maps_and_reports(density):
    """What IPython itself chooses to show, not what a method would return if it were asked."""
    from IPython.core.formatters import DisplayFormatter

    def shown(thing):
        return DisplayFormatter().format(thing)[0]

    page = shown(density)["text/html"]
    assert "held-out NLL" in page and f"{density.summary_['test_nll']['mean']:.3f}" in page and "kernel density" in page
    assert "Density(" in shown(density)["text/plain"]
    assert "&lt;" in shown(minvel.Density("<b>"))["text/html"], "what is not fitted shows its parameters"
    assert "data:image/png;base64" in shown(density.plot(points="none", scale=0.5))["text/html"]
    assert "image/png" in shown(density.plot(points="none", scale=0.5)[0])
    assert "<iframe" in shown(density.report())["text/html"]


def test_numpy_alone_is_enough(tmp_path):
    """Without scikit-learn, pandas and tqdm: estimators are fitted, scored, copied and pickled all the same."""
    code = """
import sys
for name in ("sklearn", "pandas", "tqdm", "matplotlib", "scipy", "polars", "xarray"):
    sys.modules[name] = None
import copy, pickle, numpy as np, minvel
x = np.random.default_rng(1).normal(size=(60, 2))
d = minvel.Density(effort="quick").fit(x)
assert d.n_features_in_ == 2 and d.set_params(n_jobs=1).get_params()["n_jobs"] == 1
assert (pickle.loads(pickle.dumps(d)).score_samples(x) == d.score_samples(x)).all()
assert repr(d) == "Density(effort='quick', n_jobs=1)", repr(d)
assert set(minvel.OutlierDetector(effort="quick").fit_predict(x)) <= {-1, 1}
try:
    d.score_samples(x[:, :1])
except ValueError as why:
    assert "2 features" in str(why)
else:
    raise AssertionError("one column was accepted")
assert isinstance(d.grid(10), dict)
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
