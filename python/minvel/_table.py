"""Tables of any library as names and columns of float64, copied only where they have to be."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from ._native import Columns


@dataclass
class Table:
    """Columns of numbers, what they are called, and where they come from."""

    names: list[str]
    arrays: list[NDArray[Any]]
    library: str = "numpy"
    rows: int = field(init=False)

    def __post_init__(self) -> None:
        self.rows = len(self.arrays[0]) if self.arrays else 0

    @property
    def named(self) -> bool:
        """Whether the columns have names."""
        return self.library != "numpy"

    def select(self, names: list[str]) -> Table:
        """Some columns, by name, or by number from 0 where there are no names."""
        return Table([self.names[k] for k in self._find(names)], [self.arrays[k] for k in self._find(names)], self.library)

    def without(self, names: list[str]) -> Table:
        """All but some columns."""
        left = [k for k in range(len(self.names)) if k not in self._find(names)]
        return Table([self.names[k] for k in left], [self.arrays[k] for k in left], self.library)

    def column(self, name: str) -> NDArray[Any]:
        """A column by its name."""
        return self.arrays[self._find([name])[0]]

    def numeric(self) -> Table:
        """The columns of numbers."""
        return self.without([n for n, a in zip(self.names, self.arrays, strict=True) if not _is_numeric(a)])

    def _find(self, names: list[str]) -> list[int]:
        for name in names:
            if name not in self.names:
                raise ValueError(f"X has no column {name!r}; it has {', '.join(map(repr, self.names))}")
        return [self.names.index(name) for name in names]

    def numbers(self, who: str, least: int = 1) -> Columns:
        """Columns of float64; an error where there are too few rows or no columns."""
        shape = (self.rows, len(self.arrays))
        if not self.arrays:
            raise ValueError(f"Found array with 0 feature(s) (shape={shape}) while a minimum of 1 is required by {who}.")
        if self.rows < least:
            raise ValueError(
                f"Found array with {self.rows} sample(s) (shape={shape}) while a minimum of {least} is required by {who}."
            )
        names = self.names if self.named else [""] * len(self.names)
        return {"names": names, "arrays": [number_column(a, n) for n, a in zip(self.names, self.arrays, strict=True)]}

    def like(self, names: list[str], arrays: list[NDArray[np.float64]]) -> Any:
        """Columns as a table of the same library."""
        if self.library == "pandas":
            import pandas

            return pandas.DataFrame(dict(zip(names, arrays, strict=True)))
        if self.library == "polars":
            import polars

            return polars.DataFrame(dict(zip(names, arrays, strict=True)))
        if self.library == "pyarrow":
            import pyarrow

            return pyarrow.table(dict(zip(names, arrays, strict=True)))
        return np.column_stack(arrays)


def number_column(array: NDArray[Any], name: str) -> NDArray[np.float64]:
    """A column as float64."""
    if array.dtype.kind == "c":
        raise ValueError("Complex data not supported: X has complex numbers")
    if array.dtype.kind in "mM":
        raise ValueError(f"column {name!r} holds times; convert it to numbers first, such as hours of the day")
    return np.asarray(array, dtype=np.float64)


def read(X: Any) -> Table:
    """A table of numpy, pandas, polars, or anything that speaks Arrow's C interface."""
    if isinstance(X, Table):
        return X
    if hasattr(X, "toarray") and hasattr(X, "nnz"):
        raise TypeError("Sparse data was passed, but dense data is required. Use '.toarray()' to convert to a dense numpy array.")
    library = type(X).__module__.partition(".")[0]
    if library == "pandas" and hasattr(X, "iloc"):
        if X.ndim == 1:
            X = X.to_frame()
        columns = [_of_series(X.iloc[:, k]) for k in range(X.shape[1])]
        if all(isinstance(name, str) for name in X.columns):
            return Table(list(X.columns), columns, "pandas")
        return Table([str(k) for k in range(X.shape[1])], columns)
    if library == "polars":
        if hasattr(X, "collect"):
            X = X.collect()
        if not hasattr(X, "columns"):
            X = X.to_frame()
        return Table(list(X.columns), [series.to_numpy() for series in X.get_columns()], "polars")
    if hasattr(X, "__arrow_c_stream__"):
        from ._arrow import columns_of

        return Table(*columns_of(X), "pyarrow" if library == "pyarrow" else "arrow")
    array = np.asarray(X)
    if array.ndim != 2:
        shape = {0: "scalar array", 1: "1D array"}.get(array.ndim, f"{array.ndim}D array")
        raise ValueError(
            f"Expected 2D array, got {shape} instead. Reshape your data either using array.reshape(-1, 1) if your data has a "
            "single feature or array.reshape(1, -1) if it contains a single sample."
        )
    if array.dtype.kind in "OUS":
        array = array.astype(np.float64)
    return Table([str(k) for k in range(array.shape[1])], list(array.T))


def _of_series(series: Any) -> NDArray[Any]:
    """A column of pandas; missing values are NaN."""
    if isinstance(series.dtype, np.dtype):
        return np.asarray(series.to_numpy())
    try:  # dtypes of pandas' own, with missing values
        return np.asarray(series.to_numpy(dtype=np.float64, na_value=np.nan))
    except (TypeError, ValueError):
        return np.asarray(series.to_numpy(dtype=object))


def _is_numeric(array: NDArray[Any]) -> bool:
    if array.dtype.kind in "biufc":
        return True
    try:
        return array.dtype.kind not in "mM" and array.astype(np.float64) is not None
    except (TypeError, ValueError):
        return False
