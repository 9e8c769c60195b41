"""What `Density` and `OutlierDetector` share: a density is fitted to a table, and used."""

from __future__ import annotations

import html
import json
import os
import re
import tempfile
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _native
from ._base import BaseEstimator, NotFittedError, check_features
from ._progress import watched
from ._table import Table, read
from .figure import Figure, Figures, Report

if TYPE_CHECKING:
    from typing_extensions import Self

    Array = NDArray[np.float64]


class MinvelWarning(UserWarning):
    """What a reader of a fit should know."""


class Fitting(BaseEstimator):
    """A density that is fitted to a table, and used."""

    def __init__(
        self,
        manifold: str | None = None,
        *,
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
        self.manifold = manifold
        self.layout = layout
        self.units = units
        self.period = period
        self.axial = axial
        self.columns = columns
        self.trust = trust
        self.distinct = distinct
        self.missing = missing
        self.block = block
        self.effort = effort
        self.settings = settings
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.device = device
        self.verbose = verbose

    # --- fitting ---

    def _learn(self, X: Any, sample_weight: Any, groups: Any) -> None:
        who = type(self).__name__
        given = table = read(X)
        beside = [name for name in (sample_weight, groups) if isinstance(name, str)]
        weights, labels = (given.column(what) if isinstance(what, str) else what for what in (sample_weight, groups))
        if self.columns is not None:
            table = table.select([str(name) for name in self.columns])
        elif table.named:
            table = table.without(beside).numeric()
        self._keep_features(table if beside else X, table)
        columns = table.numbers(who, _native.LEAST_POINTS)
        weights, labels = _checked_weights(weights, table.rows), _numbered(labels, table.rows)
        if self.distinct and weights is not None:
            raise ValueError("distinct=True and sample_weight contradict each other: what a repeated row counts would be lost")
        columns, kept = self._without_missing(columns)
        if kept is not None:
            weights = None if weights is None else weights[kept]
            labels = None if labels is None else labels[kept]
        if not table.named:
            _refuse_not_finite(columns)
        plain = f"euclidean:{len(table.names)}"
        with watched(self.verbose, "fit") as watch:
            fitted = _native.fit(
                columns,
                manifold=self.manifold if table.named or self.axial else self.manifold or plain,
                plain=plain,
                **self._form(),
                distinct=self.distinct,
                weights=weights,
                groups=labels,
                block=None if self.block is None else str(self.block),
                effort=self.effort,
                settings=self._assignments(),
                seed=seed_of(self.random_state),
                threads=threads_of(self.n_jobs),
                device=self.device,
                watch=watch,
            )
        self._adopt(fitted, table)
        # where all columns are used, others are refused, as scikit-learn does; else those that are used are found by name
        self._strict = len(self.coordinates_["columns"]) == len(given.names)
        for warning in self.summary_["warnings"]:
            warnings.warn(_in_keywords(warning), MinvelWarning, stacklevel=3)

    def _form(self) -> dict[str, Any]:
        """What is said about the columns."""
        return {
            "layout": self.layout if isinstance(self.layout, str | None) else ",".join(self.layout),
            "units": self.units,
            "periods": None if self.period is None else [float(p) for p in np.atleast_1d(self.period)],
            "axial": self.axial,
            "trust": self.trust,
        }

    def _assignments(self) -> list[str]:
        """The settings, as the program has them."""
        return [f"{key}={_literal(value)}" for key, value in (self.settings or {}).items()]

    def _without_missing(self, columns: _native.Columns) -> tuple[_native.Columns, NDArray[np.bool_] | None]:
        """Without rows in which a number is missing, if they are to be dropped; and which rows are left."""
        if self.missing not in ("refuse", "drop"):
            raise ValueError(f'missing is {self.missing!r}: expected "refuse" or "drop"')
        if self.missing == "refuse":
            return columns, None
        kept = ~np.logical_or.reduce([np.isnan(array) for array in columns["arrays"]])
        if kept.all():
            return columns, None
        warnings.warn(f"{(~kept).sum()} rows with missing values were dropped", MinvelWarning, stacklevel=4)
        return {"names": columns["names"], "arrays": [array[kept] for array in columns["arrays"]]}, kept

    def _keep_features(self, X: Any, table: Table) -> None:
        """Which features there are, as scikit-learn has them."""
        if X is not table:
            check_features(self, X, table, reset=True)
        self.n_features_in_ = len(table.names)
        if table.named:
            self.feature_names_in_ = np.array(table.names, dtype=object)

    def _adopt(self, fitted: _native.Fitted, table: Table) -> None:
        self._fitted = fitted
        self._library = table.library
        self.coordinates_: dict[str, Any] = json.loads(fitted.coordinates)
        self.manifold_: str = self.coordinates_["manifold"]
        self.summary_: dict[str, Any] = json.loads(fitted.summary) if fitted.summary is not None else {}
        self.inferred_: list[str] = self.summary_.get("data", {}).get("guesses", [])
        self.log_z_: tuple[float, float] = fitted.log_z

    def _model(self) -> _native.Fitted:
        fitted: _native.Fitted | None = getattr(self, "_fitted", None)
        if fitted is None:
            who = type(self).__name__
            raise NotFittedError(
                f"This {who} instance is not fitted yet. Call 'fit' with appropriate arguments before using this estimator."
            )
        return fitted

    def __sklearn_is_fitted__(self) -> bool:
        return getattr(self, "_fitted", None) is not None

    # --- rows ---

    def _rows(self, X: Any) -> _native.Columns:
        """The columns of further rows that are points."""
        self._model()
        table = read(X)
        if self.columns is not None and (table.named or len(table.names) != self.n_features_in_):
            table = table.select([str(name) for name in self.columns])
        elif table.named and self._library != "numpy" and not self._strict:
            table = table.select([str(name) for name in self.coordinates_["columns"]])
        else:
            check_features(self, X, table, reset=False)
        columns = table.numbers(type(self).__name__)
        if not table.named:
            _refuse_not_finite(columns)
            if self._library != "numpy":  # by position, as scikit-learn does
                columns["names"] = [str(name) for name in self.feature_names_in_]
        return columns

    @property
    def _place(self) -> dict[str, Any]:
        return {"threads": threads_of(self.n_jobs), "device": self.device}

    def score_samples(self, X: ArrayLike | Any) -> Array:
        """Log density of each row, in nats.

        Densities are per unit of the manifold's volume: radians for angles, whatever the unit of the columns.
        """
        columns = self._rows(X)
        with watched(self.verbose, "score") as watch:
            logs, doubts = self._model().log_density(columns, watch=watch, **self._place)
        _warn(doubts)
        return logs

    def log_density_and_error(self, X: ArrayLike | Any) -> tuple[Array, Array]:
        """Log density of each row, and its standard error, as `minvel score --error` has them.

        The error comes from a bootstrap over the training rows, or over their groups: how far log p would move had other rows been seen.
        It is infinite where there are no data. That of log Z, the same for all rows, is beside it: `log_z_[1]`.
        """
        columns = self._rows(X)
        with watched(self.verbose, "score") as watch:
            logs, errors, doubts = self._model().log_density_and_error(columns, watch=watch, **self._place)
        _warn(doubts)
        return logs, errors

    def gradient(self, X: ArrayLike | Any) -> Array:
        """grad log p of each row, as a tangent vector in the coordinates of the manifold (unit vectors, angles in radians)."""
        return self._model().score(self._rows(X), **self._place)

    def sample(self, n_samples: int = 1, random_state: Any = None) -> Any:
        """New points, in the layout and units of the data.

        The same kind of table as `fit` got (an array, a data frame). With a whole number as `random_state` they are those of
        `minvel sample --seed`; `None` draws other ones each time.
        """
        if n_samples < 1:
            raise ValueError(f"n_samples is {n_samples}: expected at least 1")
        with watched(self.verbose, "sample") as watch:
            names, arrays = self._model().sample(int(n_samples), seed_of(random_state), watch=watch, **self._place)
        return Table(names, list(arrays), self._library).like(names, arrays)

    # --- rows of any number, and any part of a draw ---

    def score_batches(
        self, batches: Any, *, log_z_error: bool = False, p_value: bool = False, columns: Sequence[str] | None = None
    ) -> Iterator[Any]:
        """Score record batches of Arrow as they come: the same batches with `log_density` added.

        All columns are kept, and the scores are those of `minvel score`, bit for bit. Rows in which a coordinate is missing are
        kept, with empty scores. `minvel.ray`, `minvel.dask` and `minvel.spark` do this on clusters. Needs pyarrow.

        Parameters
        ----------
        batches : an iterable of record batches (or tables), or a stream, such as `pyarrow.parquet.ParquetFile(…).iter_batches()`.
        log_z_error : whether to add `log_z_error`, the standard error of log Z, which is the same for all rows.
        p_value : whether to add `p_value`, the share of unseen rows that are at most as likely.
        columns : names of the columns that are points, in the order of the model's, where they are called otherwise.

        Examples
        --------
        >>> import numpy as np, pyarrow as pa
        >>> from minvel import Density
        >>> x = np.random.default_rng(1).normal(size=(300, 2))
        >>> density = Density(effort="quick", verbose=0).fit(pa.table({"a": x[:, 0], "b": x[:, 1]}))
        >>> rows = pa.table({"name": ["mode", "nowhere"], "a": [0.0, None], "b": [0.0, 1.0]})
        >>> [scored] = density.score_batches(rows.to_batches())
        >>> scored.schema.names, scored["log_density"].null_count
        (['name', 'a', 'b', 'log_density'], 1)
        """
        from .batches import score_batches

        return score_batches(self, batches, log_z_error=log_z_error, p_value=p_value, columns=columns, **self._place)

    def sample_batches(self, n_samples: int, random_state: Any = 1, *, blocks: Iterable[int] | None = None) -> Iterator[Any]:
        """Draw new points as record batches of Arrow, a block of 65 536 rows after another; or only some of the blocks.

        A block depends on the seed and its number alone: workers that draw a few blocks each have together what one process
        draws, and `minvel sample --seed` writes, bit for bit. Needs pyarrow.

        >>> import numpy as np
        >>> from minvel import Density
        >>> x = np.random.default_rng(1).normal(size=(300, 2))
        >>> density = Density(effort="quick", verbose=0).fit(x)
        >>> [second] = density.sample_batches(100_000, 7, blocks=[1])
        >>> second.num_rows, bool((second.column(0).to_numpy() == density.sample(100_000, 7)[65_536:, 0]).all())
        (34464, True)
        """
        from .batches import sample_blocks

        return sample_blocks(self, int(n_samples), seed_of(random_state), blocks, **self._place)

    def evaluate(self, X: ArrayLike | Any) -> dict[str, Any]:
        """What other rows say about the density.

        Score (`test_nll`, nats, lower is better) beside those of a uniform density, a kernel density and a mixture
        (`baselines`), tests of fit (`goodness`) and coverage, as `minvel evaluate` has them.
        """
        columns = self._rows(X)
        with watched(self.verbose, "evaluate") as watch:
            text, doubts = self._model().evaluate(columns, watch=watch, **self._place)
        _warn(doubts)
        outcome: dict[str, Any] = json.loads(text)
        return outcome

    # --- pictures ---

    def plot(
        self,
        ax: Any = None,
        *,
        points: str = "few",
        centre: float | None = None,
        earth: bool | None = None,
        compass: bool | None = None,
        title: str | None = None,
        scale: float = 2.0,
    ) -> Any:
        """Draw the density: a map, Ramachandran plot, wind rose, disk or pair plots, depending on the manifold.

        Parameters
        ----------
        ax : an axis of matplotlib to draw into; it is returned then.
        points : which data points are drawn: "few" (only if there are at most 2000), "all" or "none".
        centre : longitude of the centre of a map, in degrees.
        earth : whether coastlines are drawn; by default if the columns are latitude and longitude.
        compass : whether a wind rose has north up and runs clockwise.
        title : title of the figures.
        scale : pixels of the PNG for each of the 800 pixels of its width on the page.

        Returns
        -------
        Figures, which a notebook shows and `save` writes.
        """
        with watched(self.verbose, "plot") as watch:
            drawn = self._model().figures(
                centre=centre, points=points, earth=earth, compass=compass, title=title, scale=scale, watch=watch, **self._place
            )
        figures = Figures([Figure(*figure) for figure in drawn])
        return figures if ax is None else figures[0].draw(ax)

    def report(self) -> Report:
        """The report of the fit, a page that a notebook shows."""
        return Report(*self._model().report())

    def grid(self, size: int | None = None) -> Any:
        """The density on a regular grid: coordinates of the cells, `log_density`, `density` and the volume `cell`.

        Up to three dimensions. A data frame where pandas is installed, else a dictionary of arrays.
        """
        with watched(self.verbose, "grid") as watch:
            (names, arrays), _ = self._model().grid(size, watch=watch, **self._place)
        columns = dict(zip(names, arrays, strict=True))
        try:
            import pandas
        except ImportError:
            return columns
        return pandas.DataFrame(columns)

    def to_xarray(self, size: int | None = None) -> Any:
        """The density on a regular grid as a labelled array of xarray, with `log_density` and `cell` beside it."""
        import xarray

        (names, arrays), total = self._model().grid(size, **{"watch": None, **self._place})
        axes, places = zip(*(_axis(array) for array in arrays[:-3]), strict=True)
        shape = tuple(len(axis) for axis in axes)
        if int(np.prod(shape)) != len(arrays[0]):
            raise ValueError(
                f"cells of {self.manifold_} with columns {', '.join(names[:-3])} are no rectangular grid; use grid(), or a "
                "layout of angles such as latlon"
            )
        def laid_out(values: Array) -> Array:
            grid = np.empty(shape)
            grid[places] = values
            return grid

        variables = {name: (names[:-3], laid_out(array)) for name, array in zip(names[-3:], arrays[-3:], strict=True)}
        about = {"manifold": self.manifold_, "total": total, "description": "densities per unit of volume, angles in radians"}
        return xarray.Dataset(variables, dict(zip(names, axes, strict=False)), about)

    def _repr_html_(self) -> str:
        if not self.__sklearn_is_fitted__() or not self.summary_:
            return f"<pre>{html.escape(repr(self))}</pre>"

        def cell(estimate: Any) -> str:
            error = estimate["std_error"]
            return f"{estimate['mean']:.3f}" + (f" ± {error:.3f}" if error else "")

        rows = [("minvel", cell(self.summary_["test_nll"]), "")]
        rows += [(b["name"], cell(b["nll"]), cell(b["difference"])) for b in self.summary_["baselines"]]
        head = "<tr><th></th><th>held-out NLL (nats)</th><th>minvel − baseline</th></tr>"
        body = "".join("<tr>" + "".join(f"<td>{html.escape(text)}</td>" for text in row) + "</tr>" for row in rows)
        words = html.escape(f"{self._model().words}; {self.summary_['rows']} rows")
        notes = "".join(f"<li>{html.escape(_in_keywords(text))}</li>" for text in [*self.inferred_, *self.summary_["warnings"]])
        return f"<p><b>{type(self).__name__}</b>: {words}</p><table>{head}{body}</table><ul>{notes}</ul>"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        # a notebook asks for this first, and scikit-learn's own shows parameters only
        return {"text/plain": repr(self), "text/html": self._repr_html_()}

    # --- files ---

    def save(self, path: str | PathLike[str]) -> Path:
        """Write the fit for the program `minvel` and for `load`.

        A path that ends in .safetensors gets the model alone; any other path becomes the folder that `minvel fit` makes, with
        model, settings, summary, report and figures.
        """
        path = Path(path)
        if path.suffix == ".safetensors":
            self._model().save_model(path)
        else:
            self._model().save_folder(path)
        return path

    def _restore(self, fitted: _native.Fitted) -> Self:
        names = fitted.names
        numbered = all(name.isdigit() for name in json.loads(fitted.coordinates)["columns"])
        self._adopt(fitted, Table(names, [np.empty(0)] * len(names), "numpy" if numbered else frames()))
        self._strict = False
        self.n_features_in_ = len(names)
        if not numbered:
            self.feature_names_in_ = np.array(names, dtype=object)
        self.manifold = self.manifold_
        self.layout = ",".join(self.coordinates_["layouts"])
        self.units = self.coordinates_["units"]
        return self

    @classmethod
    def load(cls, path: str | PathLike[str], **parameters: Any) -> Self:
        """Read a fit that `save` or `minvel fit` has written: its folder, or its model.safetensors."""
        estimator = cls(**parameters)
        return estimator._restore(_native.Fitted.load(os.fspath(path)))

    def to_bytes(self) -> bytes:
        """The model alone, as the bytes of its file; for workers, stores and messages."""
        return _bytes_of(self._model())

    @classmethod
    def from_bytes(cls, data: bytes, **parameters: Any) -> Self:
        """The model of `to_bytes`, or of a file model.safetensors."""
        return cls(**parameters)._restore(_of_bytes(data, None, None))

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = dict(super().__getstate__())
        fitted = state.get("_fitted")
        if fitted is not None:
            state["_fitted"] = (_bytes_of(fitted), fitted.summary, fitted.config)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        if isinstance(state.get("_fitted"), tuple):
            state = {**state, "_fitted": _of_bytes(*state["_fitted"])}
        super().__setstate__(state)


def _bytes_of(fitted: _native.Fitted) -> bytes:
    """The bytes of a model's file."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "model.safetensors")
        fitted.save_model(file)
        return file.read_bytes()


def _of_bytes(model: bytes, summary: str | None, config: str | None) -> _native.Fitted:
    """The model of the bytes of its file, with what else is known of it."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "model.safetensors")
        file.write_bytes(model)
        return _native.Fitted.restore(file, summary, config)


def frames() -> str:
    """The library of data frames that is installed."""
    try:
        import pandas  # noqa: F401
    except ImportError:
        return "numpy"
    return "pandas"


def seed_of(random_state: Any) -> int:
    """The seed of a whole number, a generator of numpy, or chance."""
    if isinstance(random_state, int | np.integer):
        if random_state < 0:
            raise ValueError(f"random_state is {random_state}: expected a whole number of at least 0")
        return int(random_state)
    if random_state is None:
        return int(np.random.default_rng().integers(2**31))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31 - 1))
    return int(np.random.default_rng(random_state).integers(2**31))


def threads_of(n_jobs: int | None) -> int:
    """Threads: all cores by default; of −1 too, −2 leaves one free."""
    if n_jobs is None or n_jobs == 0:
        return 0
    return n_jobs if n_jobs > 0 else max(1, (os.cpu_count() or 1) + 1 + n_jobs)


def _axis(values: Array) -> tuple[Array, NDArray[np.intp]]:
    """The different numbers of a column, up to rounding, and which of them each is."""
    size = np.abs(values).max() or 1.0
    axis, places = np.unique(np.round(values / size, 12), return_inverse=True)
    return axis * size, places


def _in_keywords(text: str) -> str:
    """A sentence of the program with its options as keywords."""
    text = re.sub(r"--block (\S+)", r'block="\1"', text.replace("--group COLUMN", "groups"))
    return re.sub(r"--([a-z-]+)", lambda option: option[1].replace("-", "_"), text)


def _literal(value: Any) -> str:
    """A value as TOML writes it."""
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    return json.dumps(value)


def _checked_weights(weights: Any, rows: int) -> Array | None:
    """Weights, one for each row."""
    if weights is None:
        return None
    array = np.asarray(weights, dtype=np.float64)
    if array.ndim != 1:
        raise ValueError(f"sample_weight has the shape {array.shape}: Sample weights must be 1D array or scalar")
    if len(array) != rows:
        raise ValueError(f"sample_weight has {len(array)} numbers for {rows} rows")
    if not array.any():
        raise ValueError("all sample weights are zero: no row is left")
    return array


def _numbered(labels: Any, rows: int) -> NDArray[np.uint32] | None:
    """The number of the group of each row."""
    if labels is None:
        return None
    array = np.asarray(labels)
    if array.shape != (rows,):
        raise ValueError(f"groups have the shape {array.shape}: expected a label for each of {rows} rows")
    return np.unique(array, return_inverse=True)[1].astype(np.uint32)


def _refuse_not_finite(columns: _native.Columns) -> None:
    """Plain arrays are refused in the words of scikit-learn; tables with names where they are read, by row and column."""
    for array in columns["arrays"]:
        if not np.isfinite(array).all():
            what = "NaN" if np.isnan(array).any() else "infinity or a value too large for dtype('float64')"
            raise ValueError(f"Input X contains {what}.")


def _warn(doubts: list[str]) -> None:
    for doubt in doubts:
        warnings.warn(doubt, MinvelWarning, stacklevel=3)
