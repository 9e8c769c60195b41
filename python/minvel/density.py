"""`Density`: a normalised density of rows, as a scikit-learn estimator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from ._base import DensityMixin, all_or_nothing
from ._fitting import Fitting, MinvelWarning

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["Density", "MinvelWarning"]


class Density(DensityMixin, Fitting):
    """A normalised density on a manifold, fitted to the rows of a table.

    Kernels that follow the data, mixtures, and a correction learnt at minimum velocity; held-out rows decide between them. The
    same numbers, bit for bit, as `minvel fit` with the same data and seed.

    Parameters
    ----------
    manifold : where points live: "euclidean:2", "sphere:2", "projective:2" (axes), "torus:3", "hyperbolic:2", "so3" or
        "product(sphere:2,euclidean:1)". By default plain numbers ("euclidean:n"), unless the names of a data frame's columns tell
        another one, such as latitude and longitude; `inferred_` says so.
    layout : what the columns of a point are: "latlon", "lonlat", "xyz", "angles", "vector", "ball", "hyperboloid",
        "quaternion-wxyz", "quaternion-xyzw" or "rotation-matrix"; for a product, one for each factor ("latlon,vector").
    units : unit of angles: "degrees", "radians" or "hours".
    period : period of the angles of circles and tori, such as 24, 7 or 365.25, or one for each column.
    axial : whether x and −x are the same point.
    columns : names of the columns that are points; all by default.
    trust : accept the units even if the angles look like other units.
    distinct : drop rows that repeat an earlier one; else repeats count as often as they occur.
    missing : what is done with rows of a data frame in which a number is missing: "refuse" (an error names the first) or "drop" (a warning
        counts them).
    block : keep rows together that are linked by steps of at most this distance, such as "5km", "0.5deg" or a number in the units of the
        data: neighbours of training rows are then no test rows.
    effort : "quick" (kernels and mixtures), "normal" (also a learnt correction and energies) or "thorough" (longer, with further
        settings of each).
    settings : further settings by name, such as {"kernels.centres": 500}; `minvel fit --help` lists them.
    random_state : a whole number, the seed; a generator of numpy; None for chance. It also determines the split.
    n_jobs : threads; None or −1 means all cores. Results do not depend on it.
    device : "auto" (a GPU if there is one), "cpu", "cuda" or "cuda:1".
    verbose : 0 shows no progress bar.

    Attributes
    ----------
    summary_ : what the fit says about itself: held-out score (`test_nll`), baselines, tests of fit, kernels, warnings.
    manifold_, coordinates_ : the manifold, and how columns are points of it.
    inferred_ : what was inferred, in sentences.
    log_z_ : log Z and its standard error.
    evaluation_ : the score of all test rows, after `fit_batches` of many rows; else None.
    n_features_in_, feature_names_in_ : as scikit-learn has them.

    Examples
    --------
    >>> import numpy as np
    >>> from minvel import Density
    >>> x = np.random.default_rng(1).normal(size=(300, 2))
    >>> density = Density(effort="quick", verbose=0).fit(x)
    >>> density.manifold_
    'euclidean:2'
    >>> bool(density.score_samples([[0.0, 0.0]]) > density.score_samples([[3.0, 3.0]]))
    True
    >>> density.sample(4, random_state=1).shape
    (4, 2)
    """

    evaluation_: dict[str, Any] | None

    def fit(self, X: ArrayLike | Any, y: Any = None, sample_weight: Any = None, groups: Any = None) -> Self:
        """Fit the density to the rows of X: an array, or a data frame of pandas, polars or Arrow.

        Parameters
        ----------
        X : the rows.
        y : not used.
        sample_weight : what each row stands for: weight 2 is the row twice, weight 0 is no row, and a common factor does not
            matter. An array, or the name of a column of X.
        groups : labels of rows that belong together (an event, a patient, a molecule): they stay together in every split and fold, and
            errors are those over groups. An array, or the name of a column of X.

        From 2000 rows on, 80 % of them are training, 10 % validation and 10 % test rows; fewer rows are scored by
        cross-validation, and the model is refitted on all of them.
        """
        with all_or_nothing(self):
            self._learn(X, sample_weight, groups)
            self.evaluation_ = None
        return self

    def fit_batches(self, batches: Any, *, example: Any = None, cells: int = 100_000, evaluate: bool = True) -> Self:
        """Fit the density to more rows than memory holds: record batches of Arrow, of which only small summaries are kept.

        Training rows are counted and summed up in cells that the kernels then stand on. The model depends on the rows, not on how they are
        divided into batches or their order: `minvel.dask.fit`, `minvel.ray.fit` and `minvel.spark.fit` make the same one, bit for bit. Roles (80 %
        training, 10 % validation, 10 % test rows) come from a hash of each row's point. Up to 100 000 different points all rows are kept, and fitted as `fit`
        does. Sample weights, groups, `block` and `distinct` are not available. Needs pyarrow.

        Parameters
        ----------
        batches : a table, a list of record batches, or a function that returns them each time it is called; they are read three times.
        example : some rows that show what columns are and how far they reach; by default 4096 rows chosen by a hash, in a pass of its own.
        cells : cells of training rows at most; more cost time and keep finer detail.
        evaluate : whether all test rows are scored in a last pass, as `evaluation_`; `summary_` has the score of 20 000 of them in any case.

        Examples
        --------
        >>> import numpy as np, pyarrow as pa
        >>> from minvel import Density
        >>> x = np.random.default_rng(1).normal(size=(300, 2))
        >>> table = pa.table({"a": x[:, 0], "b": x[:, 1]})
        >>> density = Density(effort="quick", verbose=0)
        >>> whole = density.fit_batches(table).to_bytes()
        >>> density.fit_batches(table.to_batches(max_chunksize=70)[::-1]).to_bytes() == whole
        True
        """
        from ._fitting import threads_of
        from .sketches import fit, passes_over

        threads = threads_of(self.n_jobs)
        first, passes = passes_over(batches)
        fit(self, first, passes, example=example, cells=cells, evaluate=evaluate, threads=threads)
        return self

    def score(self, X: ArrayLike | Any, y: Any = None, sample_weight: Any = None) -> float:
        """The mean log density of the rows (by their weights), in nats; higher is better.

        (scikit-learn's `KernelDensity.score` is the sum.)
        """
        logs = self.score_samples(X)
        return float(logs.mean() if sample_weight is None else np.average(logs, weights=sample_weight))
