"""Energies, objectives, flows and samplers by name: the theory, on numpy arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _native
from ._base import NotFittedError
from ._fitting import seed_of, threads_of
from ._progress import watched
from .geometry import Manifold

if TYPE_CHECKING:
    from typing_extensions import Self

    Array = NDArray[np.float64]

__all__ = ["Chains", "Energy", "Law", "Objective", "law", "objective", "sample_energy"]

# Flows and samplers in which particles are born and die, by a kernel density of their own.
_BORN = ("birth-death", "wasserstein-fisher-rao")


@dataclass(frozen=True)
class Objective:
    """What an energy minimises when it is learnt; made by `objective`."""

    name: str
    flow: str = "langevin"
    step: float = 1e-3
    reduction: str = "control-variate"
    adaptive: bool = False
    penalty: float = 0.0
    bandwidth: float | None = None
    ratio: float = 1.0


def objective(
    name: str = "minimum-velocity",
    *,
    flow: str = "langevin",
    step: float = 1e-3,
    reduction: str = "control-variate",
    adaptive: bool = False,
    penalty: float = 0.0,
    bandwidth: float | None = None,
    ratio: float = 1.0,
) -> Objective:
    """The objective of a name.

    Parameters
    ----------
    name : "minimum-velocity" (the velocity of the flow at the data), "score-matching" (exact, with second derivatives), "sliced",
        "denoising", "contrastive" (one step of contrastive divergence), "probability-flow" or "transport-reaction" (the
        velocity, and the variance of E + log p).
    flow : of "minimum-velocity", "contrastive" and "transport-reaction": "langevin" (along geodesics on manifolds), "chart",
        "stein", "blend" (Stein and Langevin together, SPOS), "birth-death" or "wasserstein-fisher-rao".
    step : ε of the flow; the variance of the noise of "denoising" and "probability-flow".
    reduction : what keeps the variance bounded as ε shrinks: "control-variate", "antithetic" (noise and its opposite) or "none".
    adaptive : whether ε is shorter where the energy is steep; of "minimum-velocity" and "contrastive".
    penalty : weight of squared energies, which bounds their scale; of "minimum-velocity".
    bandwidth : width of the kernels by which "birth-death", "wasserstein-fisher-rao" and "transport-reaction" estimate log p among the
        points of a batch; by default Scott's rule.
    ratio : λ, births and deaths relative to transport; of "wasserstein-fisher-rao" and "transport-reaction".
    """
    return Objective(name, flow, step, reduction, adaptive, penalty, bandwidth, ratio)


class Energy:
    """An energy E given by a network, for the law p ∝ e^(−E) on a manifold.

    Parameters
    ----------
    manifold : where points live, such as "euclidean:2" or "sphere:2".
    hidden : widths of the hidden layers.
    activation : "silu", "tanh", "softplus", "elu" or "sin".
    random_state, n_jobs, device, verbose : as those of `Density`.

    Attributes
    ----------
    losses_ : pairs of step and loss, as `callback` got them.

    Examples
    --------
    >>> import numpy as np
    >>> import minvel
    >>> x = np.random.default_rng(1).normal(size=(500, 2))
    >>> energy = minvel.Energy("euclidean:2", hidden=(16,), verbose=0)
    >>> losses = []
    >>> energy = energy.fit(x, minvel.objective("minimum-velocity"), steps=300, callback=lambda step, loss: losses.append(loss))
    >>> bool(losses[-1] < losses[0]), energy(x).shape
    (True, (500,))
    """

    def __init__(
        self,
        manifold: str,
        *,
        hidden: Sequence[int] = (64, 64),
        activation: str = "silu",
        random_state: Any = 1,
        n_jobs: int | None = None,
        device: str = "auto",
        verbose: int = 1,
    ) -> None:
        self.manifold = Manifold(manifold)
        self.hidden = tuple(int(n) for n in hidden)
        self.activation = activation
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.device = device
        self.verbose = verbose

    def fit(
        self,
        X: ArrayLike,
        objective: Objective = Objective("minimum-velocity"),  # noqa: B008
        *,
        steps: int = 1000,
        batch: int = 256,
        rate: float = 1e-3,
        every: int | None = None,
        callback: Callable[[int, float], Any] | None = None,
    ) -> Self:
        """Learn the energy from points (in the coordinates of the manifold).

        `callback(step, loss)` is called after every `every` steps (a hundredth of them by default) and ends the training if it
        returns True. Losses have the size of the score-matching loss. After Ctrl-C, or an error, the energy is what it was before.
        """
        points = _rows(X, self.manifold)
        if len(points) < 2 or steps < 1 or batch < 1:
            raise ValueError("expected at least two points, one step and a batch of one")
        network = _native.NetworkEnergy(
            points,
            on=self.manifold.name,
            objective=replace(objective, bandwidth=objective.bandwidth or _scott(points, min(batch, len(points)))),
            hidden=list(self.hidden),
            activation_name=self.activation,
            rate=rate,
            batch=min(batch, len(points)),
            seed=seed_of(self.random_state),
            threads=threads_of(self.n_jobs),
            device=self.device,
        )
        stride = every or max(1, steps // 100)
        losses: list[tuple[int, float]] = []
        with watched(self.verbose, "fit") as watch:
            while network.steps < steps:
                loss = network.learn(min(network.steps + stride, steps))
                losses.append((network.steps, loss))
                if watch is not None:
                    watch(1, "training", "steps", steps, network.steps, f"loss {loss:.4g}")
                if callback is not None and callback(network.steps, loss) is True:
                    break
        self._native, self.losses_ = network, losses
        return self

    def _learnt(self) -> _native.NetworkEnergy:
        network: _native.NetworkEnergy | None = getattr(self, "_native", None)
        if network is None:
            raise NotFittedError("This Energy instance is not fitted yet. Call 'fit' before using it.")
        return network

    def __call__(self, x: ArrayLike) -> Array:
        """E of points."""
        return self._learnt().values(_rows(x, self.manifold))[0]

    def gradient(self, x: ArrayLike) -> Array:
        """grad E of points, as tangent vectors; the score is minus that."""
        return self._learnt().values(_rows(x, self.manifold))[1]

    def parameters(self) -> dict[str, NDArray[np.float32]]:
        """The weights of the network, by name."""
        return {name: values.reshape(shape) for name, shape, values in self._learnt().parameters()}

    def __getstate__(self) -> dict[str, Any]:
        raise TypeError("an Energy cannot be pickled; keep its parameters() instead")


def _scott(points: Array, batch: int) -> float:
    """Scott's bandwidth of kernels at as many points as a batch has."""
    spread = float(np.sqrt(points.var(0).mean()))
    return max(spread, 1e-300) * float(batch ** (-1 / (points.shape[1] + 4)))


def law(name: str, dimension: int | None = None) -> Law:
    """The law of a name, of which everything is known: "banana", "cosine", "funnel", "ring", "multiring", "grid", "square", "spiral", "mog"
    (two normal laws on the line), "circle" and "sphere" (von Mises–Fisher mixtures).

    In its usual dimension, or with further coordinates in a larger Euclidean one.

    >>> import minvel
    >>> ring = minvel.law("ring")
    >>> x = ring.sample(1000, random_state=1)
    >>> x.shape, bool((ring.log_density(x) > ring.log_density(10 * x)).all())
    ((1000, 2), True)
    """
    return Law(name, dimension)


class Law:
    """A law p = e^(−E)/Z with a name: data for experiments, with the truth beside them.

    Attributes
    ----------
    manifold : where its points live.
    log_z : log Z, of its energy.
    information : the mean of |grad E|² under the law, None where it is not known or infinite: the least value of the loss of
        minimum velocity is minus that.
    """

    def __init__(self, name: str, dimension: int | None = None) -> None:
        self.name = name
        self.dimension = dimension
        self._native = _native.NamedLaw(name, dimension)
        self.manifold = Manifold(self._native.manifold)
        self.log_z: float | None = self._native.log_partition
        self.information: float | None = self._native.information

    def __repr__(self) -> str:
        return f"law({self.name!r})" if self.dimension is None else f"law({self.name!r}, {self.dimension})"

    def __reduce__(self) -> tuple[Any, ...]:
        return Law, (self.name, self.dimension)

    def __call__(self, x: ArrayLike) -> Array:
        """E of points."""
        return self._native.values(_rows(x, self.manifold))[0]

    def gradient(self, x: ArrayLike) -> Array:
        """grad E of points, as tangent vectors; the score is minus that."""
        return self._native.values(_rows(x, self.manifold))[1]

    def log_density(self, x: ArrayLike) -> Array:
        """log p of points."""
        if self.log_z is None:
            raise ValueError(f"log Z of the law {self.name!r} is not known")
        return -self(x) - self.log_z

    def sample(self, n_samples: int = 1, random_state: Any = None) -> Array:
        """Exact and independent points."""
        if n_samples < 1:
            raise ValueError(f"n_samples is {n_samples}: expected at least 1")
        return self._native.draw(int(n_samples), seed_of(random_state))


def _rows(x: ArrayLike, manifold: Manifold) -> Array:
    rows = np.asarray(x, dtype=np.float64)
    if rows.ndim != 2 or rows.shape[1] != manifold.ambient:
        raise ValueError(f"points have the shape {rows.shape}: expected [n, {manifold.ambient}]")
    return rows


@dataclass(frozen=True)
class Chains:
    """Draws of many chains, and what they say about themselves.

    Attributes
    ----------
    draws : points `[chain, draw, coordinate]`.
    acceptance : mean acceptance of the draws; None where nothing is tested.
    step : ε after the warm-up.
    """

    draws: NDArray[np.float64]
    acceptance: float | None
    step: float

    @property
    def points(self) -> NDArray[np.float64]:
        """All draws, one after another."""
        return self.draws.reshape(-1, self.draws.shape[-1])

    def to_arviz(self) -> Any:
        """The draws for ArviZ: `arviz.summary(chains.to_arviz())` has effective sizes and R̂."""
        import arviz

        return arviz.convert_to_inference_data({"x": self.draws})


@dataclass(frozen=True)
class _Plan:
    """Which chains are to draw, and how."""

    method: str
    chains: int
    draws: int
    warm_up: int
    thin: int
    step: float
    bandwidth: float
    seed: int
    start: Array | None


def sample_energy(
    energy: Energy | Law,
    *,
    chains: int = 16,
    draws: int = 1000,
    warm_up: int = 1000,
    thin: int = 1,
    method: str = "metropolis",
    step: float = 0.1,
    bandwidth: float | None = None,
    start: ArrayLike | None = None,
    random_state: Any = None,
    verbose: int = 1,
) -> Chains:
    """Draw from the law of an energy by many chains.

    Parameters
    ----------
    energy : an `Energy` that was fitted, or a `Law`.
    chains, draws, warm_up, thin : chains, draws of each, steps before the first of them, and steps for each.
    method : "metropolis" (Langevin steps, tested), "hamiltonian", "langevin" (not tested: biased by O(ε)), "stein", "blend" (SPOS),
        "birth-death" or "wasserstein-fisher-rao". The chains of the last four are one population.
    step : ε to start with; where steps are tested it is adapted in the warm-up.
    bandwidth : width of the kernels by which "birth-death" and "wasserstein-fisher-rao" estimate the density of the population.
    start : where the chains begin, `[chains, coordinates]`; by default at points of the manifold's base law.
    random_state : the seed.
    verbose : 0 shows no progress bar.
    """
    if min(chains, draws, thin) < 1 or warm_up < 0 or not step > 0:
        raise ValueError("expected at least one chain, one draw, thin of 1, and a positive step")
    if method in _BORN and bandwidth is None:
        raise ValueError(f"the method {method!r} needs a bandwidth, such as bandwidth=0.3, in the units of the points")
    points = None if start is None else _rows(start, energy.manifold)
    if points is not None and len(points) != chains:
        raise ValueError(f"start has {len(points)} points for {chains} chains")
    native = energy._learnt() if isinstance(energy, Energy) else energy._native
    plan = _Plan(method, chains, draws, warm_up, thin, step, bandwidth or 1.0, seed_of(random_state), points)
    with watched(verbose, "sample") as watch:
        drawn, acceptance, last = native.sample(plan, watch)
    return Chains(np.ascontiguousarray(drawn[:, 0].swapaxes(0, 1)), acceptance, last)
