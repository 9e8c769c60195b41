"""Normalised densities on manifolds, by minimum velocity learning.

>>> import minvel
>>> quakes = minvel.datasets.earthquakes()
>>> density = minvel.Density("sphere:2", layout="latlon", units="degrees", effort="quick", verbose=0)
>>> density.fit(quakes[:300]).score_samples(quakes[-2:]).shape
(2,)

`Density` and `OutlierDetector` are scikit-learn estimators (scikit-learn itself is optional). `manifold` gives the geometry of a
manifold on numpy arrays. `minvel.ray`, `minvel.dask` and `minvel.spark` score on clusters. The same program as from the command line is `python -m minvel`.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ._native import __version__

if TYPE_CHECKING:
    from . import batches as batches
    from . import datasets as datasets
    from .autoencoder import AutoEncoder as AutoEncoder
    from .density import Density as Density
    from .density import MinvelWarning as MinvelWarning
    from .distance import fid as fid
    from .energy import Chains as Chains
    from .energy import Energy as Energy
    from .energy import Law as Law
    from .energy import Objective as Objective
    from .energy import law as law
    from .energy import objective as objective
    from .energy import sample_energy as sample_energy
    from .figure import Figure as Figure
    from .figure import Figures as Figures
    from .figure import Report as Report
    from .geometry import Manifold as Manifold
    from .geometry import manifold as manifold
    from .outliers import OutlierDetector as OutlierDetector

# What is used is imported when it is used: `import minvel` takes milliseconds, scikit-learn and numpy do not.
_HOME = {
    "AutoEncoder": ".autoencoder",
    "Chains": ".energy",
    "Density": ".density",
    "Energy": ".energy",
    "Figure": ".figure",
    "Figures": ".figure",
    "Law": ".energy",
    "Manifold": ".geometry",
    "MinvelWarning": ".density",
    "Objective": ".energy",
    "OutlierDetector": ".outliers",
    "Report": ".figure",
    "fid": ".distance",
    "law": ".energy",
    "manifold": ".geometry",
    "objective": ".energy",
    "sample_energy": ".energy",
}
_MODULES = ("batches", "datasets")

__all__ = [*_HOME, *_MODULES, "__version__"]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        globals()[name] = getattr(import_module(_HOME[name], __name__), name)
        return globals()[name]
    if name in _MODULES:
        return import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)


if "pdoc" in sys.modules:  # an API reference lists what is there
    for _name in _HOME:
        __getattr__(_name)
