"""The package and the program minvel give the same numbers, and the same files."""

import json

import numpy as np
import pytest

import minvel


@pytest.fixture(scope="module")
def fitted(program, quakes, tmp_path_factory):
    """A fit by the program, and its folder."""
    folder = tmp_path_factory.mktemp("fit")
    np.savetxt(folder / "quakes.csv", quakes[:2400], delimiter=",", header="lat,lon", comments="", fmt="%.17g")
    run = program("fit", "quakes.csv", "--effort", "quick", "--seed", 7, "--out", "fit", "--json", cwd=folder)
    assert run.returncode == 0, run.stderr
    return folder, json.loads(run.stdout)


@pytest.fixture(scope="module")
def density(quakes):
    with pytest.warns(minvel.MinvelWarning, match='block="[0-9]+km" or groups keeps them together'):
        return minvel.Density("sphere:2", layout="latlon", units="degrees", effort="quick", random_state=7, verbose=0).fit(quakes[:2400])


def test_scores_are_those_of_the_program_bit_for_bit(fitted, density):
    _, summary = fitted
    for key in ("test_nll", "baselines", "log_z", "kernels", "goodness", "coverage", "procedure"):
        assert density.summary_[key] == summary[key], key


def test_log_densities_are_those_of_the_program_bit_for_bit(fitted, density, program, quakes):
    folder, _ = fitted
    run = program("score", "fit", "quakes.csv", "--out", "scored.npy", cwd=folder)
    assert run.returncode == 0, run.stderr
    scored = np.load(folder / "scored.npy")
    assert (density.score_samples(quakes[:2400]) == scored[:, 2]).all()


def test_errors_of_log_densities_are_those_of_the_program_bit_for_bit(fitted, density, program, quakes):
    folder, _ = fitted
    run = program("score", "fit", "quakes.csv", "--error", "--out", "errors.npy", cwd=folder)
    assert run.returncode == 0, run.stderr
    logs, errors = density.log_density_and_error(quakes[:2400])
    scored = np.load(folder / "errors.npy")
    assert (scored[:, 2] == logs).all() and (scored[:, -1] == errors).all()
    assert (logs == density.score_samples(quakes[:2400])).all() and (errors > 0).all() and np.isfinite(errors).mean() > 0.9


def test_samples_are_those_of_the_program_bit_for_bit(fitted, density, program):
    folder, _ = fitted
    run = program("sample", "fit", "-n", 70_000, "--seed", 3, "--out", "drawn.npy", cwd=folder)
    assert run.returncode == 0, run.stderr
    assert (density.sample(70_000, random_state=3) == np.load(folder / "drawn.npy")).all()
    assert (density.sample(10, random_state=3) != density.sample(10, random_state=4)).any(), "another seed, other draws"


def test_a_folder_of_the_program_is_loaded_and_one_of_ours_is_read_by_it(fitted, density, program, quakes, tmp_path):
    folder, summary = fitted
    loaded = minvel.Density.load(folder / "fit", verbose=0)
    assert (loaded.score_samples(quakes[:100]) == density.score_samples(quakes[:100])).all()
    assert loaded.summary_["test_nll"] == summary["test_nll"]
    density.save(tmp_path / "mine")
    assert (tmp_path / "mine" / "report.html").is_file()
    run = program("score", "mine", folder / "quakes.csv", "--columns", "lat,lon", "--out", "scored.npy", cwd=tmp_path)
    assert run.returncode == 0, run.stderr
    assert (np.load(tmp_path / "scored.npy")[:, 2] == density.score_samples(quakes[:2400])).all()
    density.save(tmp_path / "model.safetensors")
    alone = minvel.Density.load(tmp_path / "model.safetensors", verbose=0)
    assert (alone.score_samples(quakes[:100]) == density.score_samples(quakes[:100])).all()


def test_an_evaluation_is_that_of_the_program(fitted, density, program, quakes):
    folder, _ = fitted
    np.savetxt(folder / "new.csv", quakes[2400:3000], delimiter=",", header="lat,lon", comments="", fmt="%.17g")
    run = program("evaluate", "fit", "new.csv", "--json", cwd=folder)
    assert run.returncode == 0, run.stderr
    outcome, theirs = density.evaluate(quakes[2400:3000]), json.loads(run.stdout)
    for key in ("test_nll", "baselines", "goodness", "below_uniform", "rows"):
        assert outcome[key] == theirs[key], key


def test_the_program_says_what_is_wrong_with_its_arguments(program):
    run = program("fit", "there-is-no-such-file.csv")
    assert run.returncode == 2 and "there-is-no-such-file.csv" in run.stderr
    assert program("--version").stdout.strip() == f"minvel {minvel.__version__}"
    assert program("no-such-command").returncode == 2
