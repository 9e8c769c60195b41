"""The geometry of manifolds on numpy arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._fitting import seed_of
from ._native import Geometry

if TYPE_CHECKING:
    Array = NDArray[np.float64]

__all__ = ["Manifold", "manifold"]


def manifold(name: str) -> Manifold:
    """The manifold of a name: "euclidean:2", "sphere:2", "projective:2", "torus:3", "hyperbolic:2", "so3", "product(…,…)".

    >>> import minvel
    >>> sphere = minvel.manifold("sphere:2")
    >>> float(sphere.distance([1, 0, 0], [0, 1, 0]).round(6))
    1.570796
    >>> sphere.exp([1, 0, 0], [0, np.pi / 2, 0]).round(6) + 0.0
    array([0., 1., 0.])
    """
    return Manifold(name)


class Manifold:
    """A Riemannian manifold.

    Points and tangent vectors are arrays whose last axis has `ambient` numbers: unit vectors on spheres, angles in radians on tori,
    points of the Poincaré ball, quaternions (i, j, k, real) of rotations. The other axes broadcast as numpy's do.
    """

    def __init__(self, name: str) -> None:
        self._geometry = Geometry(name)

    def __repr__(self) -> str:
        return f"manifold({self.name!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return Manifold, (self.name,)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Manifold) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)

    @property
    def name(self) -> str:
        """Its name."""
        return self._geometry.name

    @property
    def dim(self) -> int:
        """Its dimension."""
        return self._geometry.dim

    @property
    def ambient(self) -> int:
        """Numbers of a point."""
        return self._geometry.ambient

    @property
    def volume(self) -> float | None:
        """Total volume; None where it is infinite."""
        return self._geometry.volume

    @property
    def injectivity(self) -> float:
        """The radius within which `log` inverts `exp`."""
        return self._geometry.injectivity

    @property
    def origin(self) -> Array:
        """A point of it."""
        return np.array(self._geometry.origin)

    def check(self, x: ArrayLike) -> None:
        """A ValueError if one of the points is off the manifold."""
        array, _ = self._rows(x)
        why = self._geometry.fault(array[0])
        if why is not None:
            raise ValueError(why)

    def exp(self, x: ArrayLike, v: ArrayLike) -> Array:
        """The point that the geodesic from x with velocity v reaches after time one."""
        return self._map(self._geometry.exp, x, v)

    def log(self, x: ArrayLike, y: ArrayLike) -> Array:
        """The shortest tangent vector at x whose geodesic ends in y."""
        return self._map(self._geometry.log, x, y)

    def distance(self, x: ArrayLike, y: ArrayLike) -> Array:
        """Geodesic distance."""
        return self._scalar(self._geometry.distance, x, y)

    def inner(self, x: ArrayLike, u: ArrayLike, v: ArrayLike) -> Array:
        """Inner product of tangent vectors at x."""
        return self._scalar(self._geometry.inner, x, u, v)

    def norm(self, x: ArrayLike, v: ArrayLike) -> Array:
        """Length of tangent vectors at x."""
        norm: Array = np.sqrt(self.inner(x, v, v))
        return norm

    def project(self, x: ArrayLike, v: ArrayLike) -> Array:
        """Orthogonal projection of vectors onto the tangent space at x."""
        return self._map(self._geometry.project, x, v)

    def settle(self, x: ArrayLike) -> Array:
        """Points brought back onto the manifold: normalised, wrapped, kept inside the ball."""
        return self._map(self._geometry.settle, x)

    def log_volume(self, x: ArrayLike, v: ArrayLike) -> Array:
        """log|dvol/dv| of v ↦ exp_x(v)."""
        return self._scalar(self._geometry.log_volume, x, v)

    def random_uniform(self, n: int, random_state: Any = None) -> Array:
        """Points of the uniform law; an error where the volume is infinite."""
        if self.volume is None:
            raise ValueError(f"there is no uniform law on {self.name}: its volume is infinite; use random_base")
        return self.random_base(n, random_state)

    def random_base(self, n: int, random_state: Any = None) -> Array:
        """Points of the uniform law where the manifold is compact, else of the (wrapped) normal law about the origin."""
        return self._geometry.sample(int(n), seed_of(random_state))

    def _rows(self, *arguments: ArrayLike) -> tuple[list[Array], tuple[int, ...]]:
        """The arguments as rows, all of them as many, and their common shape."""
        arrays = [np.asarray(a, dtype=np.float64) for a in arguments]
        for array in arrays:
            if array.ndim == 0 or array.shape[-1] != self.ambient:
                raise ValueError(f"an array of shape {array.shape}: the last axis of points of {self.name} has {self.ambient} numbers")
        shape = np.broadcast_shapes(*(array.shape for array in arrays))
        return [np.broadcast_to(array, shape).reshape(-1, self.ambient) for array in arrays], shape[:-1]

    def _map(self, function: Any, *arguments: ArrayLike) -> Array:
        rows, shape = self._rows(*arguments)
        values: Array = function(*rows)
        return values.reshape(*shape, -1)

    def _scalar(self, function: Any, *arguments: ArrayLike) -> Array:
        rows, shape = self._rows(*arguments)
        values: Array = function(*rows)
        return values.reshape(shape)
