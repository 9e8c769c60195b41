"""Data sets inside the package."""

from __future__ import annotations


import numpy as np
from numpy.typing import NDArray

from ._native import table

__all__ = ["earthquakes"]


def earthquakes() -> NDArray[np.float64]:
    """Latitude and longitude, in degrees, of 6120 significant earthquakes (NOAA's catalogue).

    >>> from minvel.datasets import earthquakes
    >>> earthquakes().shape
    (6120, 2)
    """
    return np.column_stack(table("earthquake")[1])
