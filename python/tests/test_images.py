"""Auto-encoders and Fréchet distances on arrays and folders."""

import json
import os
import pickle
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits

import minvel


@pytest.fixture(scope="module")
def images():
    return (load_digits().images / 16).astype(np.float32)


@pytest.fixture(scope="module")
def model(images):
    return minvel.AutoEncoder("sphere:2", iterations=400, hidden=(32, 32), random_state=1, verbose=0).fit(images)


def test_codes_lie_on_the_sphere_and_pictures_come_back(model, images):
    codes = model.transform(images)
    assert codes.shape == (len(images), 3) and np.abs(np.linalg.norm(codes, axis=1) - 1).max() < 1e-5
    back = model.inverse_transform(codes)
    assert back.shape == images.shape and back.dtype == images.dtype
    error, blind = ((back - images) ** 2).mean(), ((images.mean(0) - images) ** 2).mean()
    print(f"error {error:.4f}, of the mean image {blind:.4f}")
    assert error < 0.9 * blind, "it knows more than the mean image"
    assert ((back - np.roll(images, 1, axis=0)) ** 2).mean() > blind, "of the same digit"
    assert model.losses_[-1, 1] < model.losses_[0, 1]


def test_it_is_pickled_saved_and_loaded(model, images, tmp_path, program):
    codes = model.transform(images[:50])
    assert (pickle.loads(pickle.dumps(model)).transform(images[:50]) == codes).all()
    model.save(tmp_path / "digits.safetensors")
    loaded = minvel.AutoEncoder.load(tmp_path / "digits.safetensors", verbose=0)
    assert (loaded.transform(images[:50]) == codes).all()
    assert (loaded.sample(4, random_state=5) == np.rint(model.sample(4, random_state=5) * 255)).all()
    run = program("sample", tmp_path / "digits.safetensors", "-n", 4, "--seed", 5, "--out", tmp_path / "pictures")
    assert run.returncode == 0, run.stderr
    assert len(list((tmp_path / "pictures").glob("*.png"))) == 4


@pytest.mark.parametrize("method", ["adversarial", "discrepancy", "vae", "implicit-vae"])
def test_every_method_trains(images, method):
    model = minvel.AutoEncoder("sphere:2", method=method, iterations=30, hidden=(16,), verbose=0).fit(images[:200])
    assert np.isfinite(model.losses_).all() and model.sample(2, random_state=1).shape == (2, 8, 8)
    assert minvel.manifold("sphere:2").check(model.transform(images[:10])) is None


@pytest.fixture(scope="module")
def folders(images, tmp_path_factory):
    """Two folders of pictures: digits, and noisy ones; of two sizes."""
    from matplotlib.image import imsave

    root = tmp_path_factory.mktemp("pictures")
    noise = np.random.default_rng(1)
    for name, amount in [("a", 0.0), ("b", 0.5)]:
        (root / name).mkdir()
        for i, picture in enumerate(images[:40]):
            large = np.kron(picture, np.ones((4 + i % 2, 4 + i % 2)))
            noisy = np.clip(large + amount * noise.normal(size=large.shape), 0, 1)
            imsave(root / name / f"{i:03}.png", np.repeat(noisy[..., None], 3, axis=2))
    return root / "a", root / "b"


@pytest.mark.parametrize("method", ["velocity", "adversarial", "discrepancy", "vae"])
def test_folders_of_pictures_are_trained_on_and_encoded(folders, method):
    model = minvel.AutoEncoder("sphere:2", method=method, iterations=20, hidden=(16,), batch=16, settings={"side": 16}, verbose=0)
    codes = model.fit_transform(folders[0])
    minvel.manifold("sphere:2").check(codes)
    assert codes.shape == (40, 3) and model.image_shape_ == (16, 16, 3)
    assert model.inverse_transform(codes).shape == (40, 16, 16, 3) and model.sample(2, random_state=1).shape == (2, 16, 16, 3)
    assert model.transform(str(folders[1])).shape == (40, 3)


def test_folders_have_the_distance_that_the_program_tells(folders, program, tmp_path):
    near, far = (minvel.fid(folders[0], other, network="thumbnail", side=32, verbose=0) for other in folders)
    assert near < 1e-9 < far
    weights = Path(os.environ.get("MINVEL_DATA", "no data"), "weights", "inception_fid_2015-12-05.f16.safetensors")
    if not weights.is_file():
        pytest.skip("needs the weights of Inception (minvel data fetch inception)")
    run = program("fid", *folders, "--weights", weights, "--json")
    assert run.returncode == 0, run.stderr
    expected = json.loads(run.stdout)["fid"]["value"]
    assert minvel.fid(*folders, weights=weights, verbose=0) == expected
    run = program("fid", folders[0], "--weights", weights, "--save", tmp_path / "a.npz")
    assert run.returncode == 0, run.stderr
    assert minvel.fid(tmp_path / "a.npz", folders[1], weights=weights, verbose=0) == pytest.approx(expected, rel=1e-6)


def test_a_folder_that_is_not_there_is_named(folders, tmp_path):
    with pytest.raises((OSError, ValueError), match="nowhere"):
        minvel.fid(tmp_path / "nowhere", folders[0], network="thumbnail", verbose=0)


def test_bad_images_and_settings_are_refused(images):
    model = minvel.AutoEncoder(iterations=2, verbose=0)
    for bad, why in [(images[0], "shape"), (images * 16, "between 0 and 1"), (images.astype(np.int64), "uint8"), (images[:1], "minimum of 2")]:
        with pytest.raises(ValueError, match=why):
            model.fit(bad)
    with pytest.raises(ValueError, match="matching.weigth"):
        minvel.AutoEncoder(settings={"matching.weigth": 1.0}, iterations=2, verbose=0).fit(images)
    with pytest.raises(ValueError, match="expected one of"):
        minvel.AutoEncoder(method="magic", verbose=0).fit(images)
    with pytest.raises(ValueError, match="not fitted"):
        model.transform(images)


def test_the_distance_of_a_set_from_itself_is_zero_and_grows_with_noise(images):
    noisy = [np.clip(images + s * np.random.default_rng(1).normal(size=images.shape), 0, 1).astype(np.float32) for s in (0.05, 0.3)]
    distances = [minvel.fid(images, other, network="thumbnail", verbose=0) for other in (images, *noisy)]
    assert distances[0] < 1e-9 < distances[1] < distances[2]
    with pytest.raises(ValueError, match="network"):
        minvel.fid(images, images, network="alexnet", verbose=0)
