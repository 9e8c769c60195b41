"""`AutoEncoder`: images to codes on a manifold, and back."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Sequence
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _native
from ._base import BaseEstimator, NotFittedError, all_or_nothing
from ._fitting import seed_of, threads_of
from ._progress import watched

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["AutoEncoder"]

# Which settings of `minvel train` a method starts from, and what it changes of them.
_METHODS: dict[str, tuple[str, dict[str, Any]]] = {
    "velocity": ("train-wae", {"matching.kind": "velocity"}),
    "adversarial": ("train-wae", {"matching.kind": "adversarial"}),
    "discrepancy": ("train-wae", {"matching.kind": "discrepancy"}),
    "vae": ("train-vae", {"posterior": "explicit", "matching.kind": "divergence"}),
    "implicit-vae": ("train-vae", {}),
}

# Bytes this far from black or white, at most, are nearly so; with such a share of them, images are nearly binary.
_NEARLY, _BINARY = 40, 0.85
# σ at which a likelihood is the sum of squares.
_SUM_OF_SQUARES = 0.7071


class AutoEncoder(BaseEstimator):
    """An auto-encoder of images, with codes on a manifold.

    Parameters
    ----------
    latent : manifold of the codes, such as "sphere:8", "torus:2", "hyperbolic:4" or "euclidean:8".
    method : what keeps the codes near the prior: "velocity" (an energy learnt at minimum velocity), "adversarial" (a critic),
        "discrepancy" (MMD), "vae" (the KL divergence, with an explicit posterior) or "implicit-vae" (an implicit posterior, by
        velocity).
    iterations : steps of the training.
    batch : images of a step.
    hidden : widths of the hidden layers of all networks.
    likelihood : "bernoulli" (pixels that are nearly black or white), "gaussian" or "dequantised"; by default chosen by the pixels.
    settings : further settings by name, such as {"rate": 3e-4, "matching.weight": 5.0}; those of [model] in `minvel train wae --help`.
    random_state, n_jobs, device, verbose : as those of `Density`.

    Attributes
    ----------
    losses_ : steps and losses of the training, as two columns.
    settings_ : all settings that were used.
    image_shape_ : height, width and channels of an image.

    Examples
    --------
    >>> import numpy as np
    >>> from minvel import AutoEncoder
    >>> images = np.random.default_rng(1).integers(0, 256, size=(64, 8, 8), dtype=np.uint8)
    >>> model = AutoEncoder("sphere:2", iterations=20, batch=16, hidden=(16,), verbose=0).fit(images)
    >>> codes = model.transform(images)
    >>> codes.shape, bool(np.allclose(np.linalg.norm(codes, axis=1), 1, atol=1e-5))
    ((64, 3), True)
    >>> model.inverse_transform(codes).shape, model.sample(5, random_state=1).dtype
    ((64, 8, 8), dtype('uint8'))
    """

    def __init__(
        self,
        latent: str = "sphere:8",
        *,
        method: str = "velocity",
        iterations: int = 3000,
        batch: int = 128,
        hidden: Sequence[int] = (256, 256),
        likelihood: str | None = None,
        settings: Mapping[str, Any] | None = None,
        random_state: Any = 1234,
        n_jobs: int | None = None,
        device: str = "auto",
        verbose: int = 1,
    ) -> None:
        self.latent = latent
        self.method = method
        self.iterations = iterations
        self.batch = batch
        self.hidden = hidden
        self.likelihood = likelihood
        self.settings = settings
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.device = device
        self.verbose = verbose

    def fit(self, X: ArrayLike | str | PathLike[str], y: Any = None) -> Self:
        """Train on images: an array [n, height, width] or [n, height, width, 3] of bytes, or of numbers from 0 to 1.

        Or the path of a folder of PNG and JPEG files, which are scaled to squares of `settings["side"]` pixels (32).
        """
        with all_or_nothing(self), watched(self.verbose, "train") as watch:
            images, self._form = self._images(X)
            self._codec = _native.ImageCodec.train(
                images.reshape(-1),
                [int(n) for n in images.shape[1:]],
                json.dumps(self._settings_for(images)),
                seed_of(self.random_state),
                watch=watch,
                **self._place,
            )
            self._adopt()
        return self

    def _adopt(self) -> None:
        card = json.loads(self._codec.card)
        self.settings_: dict[str, Any] = card["settings"]
        self.image_shape_ = tuple(self._codec.shape)
        self.losses_ = np.array(self._codec.losses, dtype=np.float64).reshape(-1, 2)

    def _settings_for(self, images: NDArray[np.uint8]) -> dict[str, Any]:
        if self.method not in _METHODS:
            raise ValueError(f"method is {self.method!r}: expected one of {', '.join(map(repr, _METHODS))}")
        name, changes = _METHODS[self.method]
        settings: dict[str, Any] = json.loads(_native.training_settings(name))
        likelihood = self.likelihood
        if likelihood is None:
            extreme = np.mean((images <= _NEARLY) | (images >= 255 - _NEARLY))
            likelihood = "bernoulli" if extreme >= _BINARY and images.shape[3] == 1 else "dequantised"
        if likelihood != "bernoulli":
            settings["deviation"] = _SUM_OF_SQUARES if settings["posterior"] == "point" else 0.2
        own = {
            "latent": self.latent,
            "iterations": int(self.iterations),
            "batch": min(int(self.batch), len(images)),
            "hidden": [int(n) for n in self.hidden],
            "likelihood": likelihood,
        }
        for key, value in {**changes, **own, **(self.settings or {})}.items():
            if key == "side":
                continue
            place = settings
            *sections, last = key.split(".")
            for section in sections:
                place = place.get(section, {})
            if last not in place:
                raise ValueError(f"unknown setting {key!r}; `minvel train wae --help` lists those of [model]")
            place[last] = value
        return settings

    def _images(self, X: Any) -> tuple[NDArray[np.uint8], tuple[np.dtype[Any], tuple[int, ...]]]:
        """Images in bytes [n, height, width, channels], and the form they had."""
        array = self._array(X, int((self.settings or {}).get("side", 32)))
        form = (array.dtype, array.shape[1:])
        if array.ndim == 3:
            array = array[..., np.newaxis]
        if array.ndim != 4 or array.shape[3] not in (1, 3):
            raise ValueError(
                f"images have the shape {np.shape(X)}: expected [n, height, width] or [n, height, width, channels] with 1 or 3 channels"
            )
        if len(array) < 2:
            raise ValueError(f"Found array with {len(array)} sample(s) while a minimum of 2 is required by AutoEncoder.")
        return as_bytes(array), form

    def _array(self, X: Any, side: int) -> NDArray[Any]:
        """Images as an array; those of a folder as squares of `side` pixels."""
        if not isinstance(X, str | PathLike):
            return np.asarray(X)
        flat, shape = _native.images_of_folder(fspath(X), side, threads_of(self.n_jobs))
        return flat.reshape(-1, *shape)

    @property
    def _place(self) -> dict[str, Any]:
        return {"threads": threads_of(self.n_jobs), "device": self.device}

    def _trained(self) -> _native.ImageCodec:
        codec: _native.ImageCodec | None = getattr(self, "_codec", None)
        if codec is None:
            raise NotFittedError("This AutoEncoder instance is not fitted yet. Call 'fit' before using this estimator.")
        return codec

    def __sklearn_is_fitted__(self) -> bool:
        return getattr(self, "_codec", None) is not None

    def transform(self, X: ArrayLike | str | PathLike[str], random_state: Any = 0) -> NDArray[np.float32]:
        """Codes of images, as points of the latent manifold: an array as `fit` takes it, or the path of a folder.

        Pictures of a folder are taken in the order of their paths, and scaled to the size of the images that `fit` got. The mean of the posterior where it is known; of an implicit posterior, a draw.
        """
        codec = self._trained()
        height, width, channels = self.image_shape_
        array = self._array(X, height)
        if array.shape[1:] not in ((height, width), (height, width, channels)) or array.size != len(array) * height * width * channels:
            raise ValueError(f"images have the shape {array.shape}: expected [n, {height}, {width}, {channels}]")
        pixels = as_bytes(array).reshape(-1)
        with watched(self.verbose, "encode") as watch:
            return codec.encode(pixels, seed_of(random_state), mean=codec.has_mean, watch=watch, **self._place)

    encode = transform

    def fit_transform(self, X: ArrayLike | str | PathLike[str], y: Any = None) -> NDArray[np.float32]:
        """Train, then tell the codes of the same images."""
        return self.fit(X).transform(X)

    def inverse_transform(self, codes: ArrayLike) -> NDArray[Any]:
        """Images of codes, in the form of the images that `fit` got."""
        codec = self._trained()
        array = np.ascontiguousarray(codes, dtype=np.float32)
        width = _native.Geometry(self.settings_["latent"]).ambient
        if array.ndim != 2 or array.shape[1] != width:
            raise ValueError(f"codes have the shape {array.shape}: expected [n, {width}]")
        with watched(self.verbose, "decode") as watch:
            return self._formed(codec.decode(array.reshape(-1), watch=watch, **self._place))

    decode = inverse_transform

    def sample(self, n_samples: int = 1, random_state: Any = None) -> NDArray[Any]:
        """New images: mean pixels for codes of the prior."""
        if n_samples < 1:
            raise ValueError(f"n_samples is {n_samples}: expected at least 1")
        codec = self._trained()
        with watched(self.verbose, "sample") as watch:
            return self._formed(codec.sample(int(n_samples), seed_of(random_state), watch=watch, **self._place))

    def _formed(self, pixels: NDArray[np.uint8]) -> NDArray[Any]:
        dtype, shape = self._form
        images = pixels.reshape(-1, *shape)
        return images if dtype == np.uint8 else (images / 255).astype(dtype if dtype.kind == "f" else np.float64)

    def save(self, path: str | PathLike[str]) -> Path:
        """Write the model to a file, .safetensors, for `load` and for `minvel encode`, `decode` and `sample`."""
        path = Path(path)
        self._trained().save(path)
        return path

    @classmethod
    def load(cls, path: str | PathLike[str], **parameters: Any) -> Self:
        """Read a model that `save` or `minvel train` has written: its file, or the folder of the training."""
        model = cls(**parameters)
        model._restore(_native.ImageCodec.load(fspath(path)))
        return model

    def _restore(self, codec: _native.ImageCodec) -> None:
        self._codec = codec
        self._adopt()
        height, width, channels = codec.shape
        self._form = (np.dtype(np.uint8), (height, width) if channels == 1 else (height, width, channels))
        self.latent = self.settings_["latent"]

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = dict(super().__getstate__())
        if state.get("_codec") is not None:
            with tempfile.TemporaryDirectory() as folder:
                file = Path(folder, "model.safetensors")
                state["_codec"].save(file)
                state["_codec"] = file.read_bytes()
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        if isinstance(state.get("_codec"), bytes):
            with tempfile.TemporaryDirectory() as folder:
                file = Path(folder, "model.safetensors")
                file.write_bytes(state["_codec"])
                state = {**state, "_codec": _native.ImageCodec.load(file)}
        super().__setstate__(state)


def as_bytes(images: NDArray[Any]) -> NDArray[np.uint8]:
    """Images as bytes: those of numbers from 0 to 1 are scaled."""
    if images.dtype == np.uint8:
        return np.ascontiguousarray(images)
    if images.dtype.kind != "f":
        raise ValueError(f"images are of dtype {images.dtype}: expected uint8, or numbers from 0 to 1")
    if not (np.isfinite(images).all() and images.min(initial=0) >= 0 and images.max(initial=0) <= 1):
        raise ValueError("images of floating-point numbers must lie between 0 and 1; divide by the largest value")
    return np.ascontiguousarray(np.rint(images * 255), dtype=np.uint8)
