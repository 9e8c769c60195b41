"""`fid`: the Fréchet distance between two sets of images."""

from __future__ import annotations

import json
import warnings
from os import PathLike, fspath
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _native
from ._fitting import MinvelWarning, seed_of, threads_of
from ._progress import watched
from .autoencoder import as_bytes

__all__ = ["fid"]


def fid(
    a: ArrayLike | str | PathLike[str],
    b: ArrayLike | str | PathLike[str],
    *,
    network: str = "inception",
    weights: str | PathLike[str] | None = None,
    side: int = 64,
    random_state: Any = 1,
    n_jobs: int | None = None,
    device: str = "auto",
    verbose: int = 1,
) -> float:
    """The Fréchet distance between the features of two sets of images, real ones and samples.

    Parameters
    ----------
    a, b : arrays [n, height, width] or [n, height, width, 3] of bytes, or of numbers from 0 to 1; or paths: of a folder of pictures, which
        may differ in size, or of statistics in the format of pytorch-fid (.npz). Distances are those of `minvel fid`.
    network : "inception" (the usual one; its weights come by `minvel data fetch inception`), "lenet" (for MNIST, by `minvel train
        lenet`), or "thumbnail" (means of 4 × 4 parts: no weights, for trying things out).
    weights : file of the weights.
    side : pictures of folders are scaled to squares of so many pixels for "thumbnail".
    random_state : seed of networks that binarise images.
    n_jobs, device, verbose : as those of `Density`.

    It is biased upwards, the more the fewer images there are: compare only numbers of equally many images.

    >>> import numpy as np
    >>> from minvel import fid
    >>> a = np.random.default_rng(1).integers(0, 256, size=(200, 8, 8), dtype=np.uint8)
    >>> bool(fid(a, a, network="thumbnail", verbose=0) < 1e-9 < fid(a, a // 2, network="thumbnail", verbose=0))
    True
    """
    sets = [_set(images, network, side, n_jobs) for images in (a, b)]
    shapes = [images["shape"] for images in sets if not isinstance(images, str)]
    if network == "thumbnail":
        if any(shape != shapes[0] for shape in shapes):
            raise ValueError(f"images of {shapes[0]} and {shapes[1]} have no features in common")
        if any(length % 4 for shape in shapes for length in shape[:2]):
            raise ValueError(f"images of {shapes[0]} have no 4 × 4 equal parts: use another network")
    with watched(verbose, "fid") as watch:
        outcome, skipped = _native.fid(
            sets[0],
            sets[1],
            network=network,
            weights=weights,
            seed=seed_of(random_state),
            threads=threads_of(n_jobs),
            device=device,
            watch=watch,
        )
    for words in skipped:
        warnings.warn(words, MinvelWarning, stacklevel=2)
    return float(json.loads(outcome)["value"])


def _set(images: Any, network: str, side: int, n_jobs: int | None) -> _native.Pixels | str:
    """Images of an array or a folder, or a path that is read where it is measured."""
    if isinstance(images, str | PathLike):
        path = fspath(images)
        if network != "thumbnail" or path.endswith(".npz"):
            return path
        pixels, shape = _native.images_of_folder(path, side, threads_of(n_jobs))
        return {"pixels": pixels, "shape": list(shape)}
    array: NDArray[Any] = np.asarray(images)
    if array.ndim == 3:
        array = array[..., np.newaxis]
    if array.ndim != 4 or array.shape[3] not in (1, 3) or len(array) < 2:
        raise ValueError(f"images have the shape {array.shape}: expected [n, height, width] or [n, height, width, channels]")
    return {"pixels": as_bytes(array).reshape(-1), "shape": [int(n) for n in array.shape[1:]]}
