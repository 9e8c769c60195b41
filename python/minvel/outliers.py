"""`OutlierDetector`: rows that are unlikely under a fitted density, with conformal p-values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._base import OutlierMixin, all_or_nothing
from ._fitting import Fitting

if TYPE_CHECKING:
    from typing_extensions import Self

    from . import _native

__all__ = ["OutlierDetector"]


class OutlierDetector(OutlierMixin, Fitting):
    """Outliers by a density and conformal p-values.

    The p-value of a row is the share of unseen rows of the data that are at most as likely as it, (1 + k)/(n + 1) for k of n. For
    new rows of the same law it is at most α with probability at most α, whatever the density is worth; so `predict` calls at most a
    share `alpha` of them outliers. `flag` controls the share of false ones among the rows that it flags instead.

    Parameters
    ----------
    alpha : rows with a p-value of at most this are outliers for `predict`.
    manifold, layout, … : as those of `Density`.

    Attributes
    ----------
    offset_ : the log density below which rows are outliers.
    reference_ : log densities of unseen rows, in order.
    All those of `Density`.

    Examples
    --------
    >>> import numpy as np
    >>> from minvel import OutlierDetector
    >>> x = np.random.default_rng(1).normal(size=(400, 2))
    >>> detector = OutlierDetector(effort="quick", verbose=0).fit(x)
    >>> detector.predict([[0.0, 0.0], [9.0, 9.0]])
    array([ 1, -1])
    >>> detector.flag([[0.0, 0.0], [9.0, 9.0]])
    array([False,  True])
    """

    def __init__(
        self,
        manifold: str | None = None,
        *,
        alpha: float = 0.05,
        layout: str | Sequence[str] | None = None,
        units: str | None = None,
        period: float | Sequence[float] | None = None,
        axial: bool | None = None,
        columns: Sequence[str] | None = None,
        trust: bool = False,
        distinct: bool = False,
        missing: str = "refuse",
        block: str | float | None = None,
        effort: str = "normal",
        settings: Mapping[str, Any] | None = None,
        random_state: Any = 1,
        n_jobs: int | None = None,
        device: str = "auto",
        verbose: int = 1,
    ) -> None:
        super().__init__(
            manifold,
            layout=layout,
            units=units,
            period=period,
            axial=axial,
            columns=columns,
            trust=trust,
            distinct=distinct,
            missing=missing,
            block=block,
            effort=effort,
            settings=settings,
            random_state=random_state,
            n_jobs=n_jobs,
            device=device,
            verbose=verbose,
        )
        self.alpha = alpha

    def fit(self, X: ArrayLike | Any, y: Any = None, sample_weight: Any = None, groups: Any = None) -> Self:
        """Fit the density to rows of which most are no outliers; weights and groups as those of `Density.fit`.

        With groups, p-values hold for rows of a new group: every group counts once.
        """
        if not 0 < self.alpha < 1:
            raise ValueError(f"alpha is {self.alpha}: expected a number between 0 and 1")
        with all_or_nothing(self):
            self._learn(X, sample_weight, groups)
            self._see_reference()
        return self

    def _see_reference(self) -> None:
        reference = self._model().reference
        if reference is None:
            raise ValueError("this model keeps no reference rows, which p-values need: fit it again with this version")
        self.reference_: NDArray[np.float64] = reference
        # below which reference row p is at most α: of all those, the most likely one
        below = np.flatnonzero(self._model().p_values(np.nextafter(reference, -np.inf)) <= self.alpha)
        self.offset_: float = float(reference[below[-1]]) if len(below) else -np.inf

    def _restore(self, fitted: _native.Fitted) -> Self:
        super()._restore(fitted)
        self._see_reference()
        return self

    def p_values(self, X: ArrayLike | Any) -> NDArray[np.float64]:
        """Conformal p-value of each row."""
        return self._model().p_values(self.score_samples(X))

    def decision_function(self, X: ArrayLike | Any) -> NDArray[np.float64]:
        """Log density above that of the least likely inliers: negative for outliers."""
        return self.score_samples(X) - self.offset_

    def predict(self, X: ArrayLike | Any) -> NDArray[np.int_]:
        """−1 for rows with a p-value of at most `alpha`, else 1."""
        return np.where(self.decision_function(X) < 0, -1, 1)

    def flag(self, X: ArrayLike | Any, false_discovery: float = 0.1) -> NDArray[np.bool_]:
        """Which rows Benjamini and Hochberg's rule calls outliers.

        On average at most a share `false_discovery` of those that are flagged are none, as `minvel score --outliers` has it. The
        rule looks at all rows together.
        """
        p_values = self.p_values(X)
        order = np.sort(p_values)
        passed = np.flatnonzero(order * len(order) <= false_discovery * np.arange(1, len(order) + 1))
        limit = order[passed[-1]] if len(passed) else -1.0
        return np.asarray(p_values <= limit)
