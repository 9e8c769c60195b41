"""Fits where the data are: small summaries of parts of the rows, merged, fitted and judged.

Statement. Three passes over rows in parts, wherever they are: `Look` chooses an example of the rows by a hash, which tells how columns are points;
`Summary` counts and sums up training rows in cells, and keeps some validation and test rows; after the fit `Score` adds up the log densities
of all test rows. What a pass makes of a part is bytes, and bytes are merged. All of them are whole numbers and least hashes: the model is the same,
bit for bit, for any number and order of parts (proof: crates/minvel/src/fit/sketch/cells.rs).
Conventions. A role (80 % training, 10 % validation, 10 % test) is a function of a row's point and the seed; repeats of a point have one role. Up to 100 000
different points the summary has all rows, and the fit is that of `Density.fit`, rows in the order of their hashes.
Checked by python/tests/test_sketches.py, test_clusters.py and `bench/cluster --fit`.

`minvel.dask.fit`, `minvel.ray.fit` and `minvel.spark.fit` are `fit` here with a pass of their engine; `Density.fit_batches` is that of one machine.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from . import _native
from ._fitting import MinvelWarning, _in_keywords, frames, seed_of, threads_of
from ._progress import watched
from ._table import Table, number_column, read
from .batches import Scorer, _names_of, _record_batches, _table, arrow

if TYPE_CHECKING:
    from .density import Density

__all__ = ["CELLS", "Look", "Score", "Summary", "fit", "passes_over"]

CELLS = 100_000
"""Cells of training rows at most, unless said otherwise."""

# Rows of the example.
_LOOKED_AT = 4096


class Work(Protocol):
    """What is done with a part of the rows, and how two such results are one. Engines send it to their workers."""

    def __call__(self, tables: Iterable[Any]) -> bytes:
        """The result for tables of a part."""

    def merge(self, results: Sequence[bytes]) -> bytes:
        """The result for all parts together."""


Passes = Callable[[Work], bytes]


def _columns(table: Any, names: Sequence[str]) -> _native.Columns:
    """Some columns of a table of any library as numbers; missing ones are NaN."""
    arrays = _table(table, list(names)).arrays
    return {"names": list(names), "arrays": [number_column(a, n) for n, a in zip(names, arrays, strict=True)]}


def _each(tables: Iterable[Any], names: Sequence[str]) -> Iterator[tuple[str, _native.Columns]]:
    """Columns of each table that has rows, and where it is among them."""
    first = 0
    for number, table in enumerate(tables, 1):
        columns = _columns(table, names)
        rows = len(columns["arrays"][0])
        if rows:
            yield f"table {number} of its part, whose first row is row {first + 1} there", columns
        first += rows


@dataclass(frozen=True)
class Look:
    """Chooses an example of the rows, by a hash of their numbers."""

    names: list[str]
    seed: int

    def _none(self) -> _native.Chosen:
        return _native.Chosen(_LOOKED_AT, len(self.names), self.seed)

    def __call__(self, tables: Iterable[Any]) -> bytes:
        chosen = self._none()
        for _, columns in _each(tables, self.names):
            chosen.add(columns)
        return chosen.to_bytes()

    def merge(self, results: Sequence[bytes]) -> bytes:
        chosen = self._none()
        for result in results:
            chosen.merge(_native.Chosen.of_bytes(result))
        return chosen.to_bytes()

    def example(self, result: bytes) -> _native.Columns:
        """The rows, in the order of their hashes."""
        return {"names": self.names, "arrays": _native.Chosen.of_bytes(result).columns(len(self.names))}


@dataclass(frozen=True)
class Summary:
    """Summarises rows: how many were dropped, as eight bytes, and the summary."""

    form: str = field(repr=False)
    names: list[str]
    missing: str = "refuse"

    def __call__(self, tables: Iterable[Any]) -> bytes:
        sketch, dropped = _native.Sketch(self.form), 0
        for where, columns in _each(tables, self.names):
            columns, lost = _complete(columns, self.missing)
            dropped += lost
            if len(columns["arrays"][0]):
                try:
                    sketch.add(columns)
                except ValueError as why:
                    raise ValueError(f"{where}: {why}") from why
        return dropped.to_bytes(8, "little") + sketch.to_bytes()

    def merge(self, results: Sequence[bytes]) -> bytes:
        dropped = sum(int.from_bytes(result[:8], "little") for result in results)
        sketch = _native.Sketch(self.form)
        for result in results:
            sketch.merge(result[8:])
        return dropped.to_bytes(8, "little") + sketch.to_bytes()


@dataclass(frozen=True)
class Score:
    """Scores the test rows among rows."""

    form: str = field(repr=False)
    names: list[str]
    scorer: Scorer

    def __call__(self, tables: Iterable[Any]) -> bytes:
        model, so_far = self.scorer.density()._model(), _native.no_tally()
        for _, columns in _each(tables, self.names):
            columns, _ = _complete(columns, "drop")  # what is missing was refused before, unless it was to be dropped
            if len(columns["arrays"][0]):
                so_far = _native.tally(model, self.form, columns, so_far, threads=self.scorer.threads, device="cpu")
        return so_far.encode()

    def merge(self, results: Sequence[bytes]) -> bytes:
        return _native.merged_tally([result.decode() for result in results]).encode()


def _complete(columns: _native.Columns, missing: str) -> tuple[_native.Columns, int]:
    """Without rows in which a number is missing, where they are to be dropped; and how many they are."""
    if missing == "refuse":
        return columns, 0
    lost = np.logical_or.reduce([np.isnan(array) for array in columns["arrays"]])
    if not lost.any():
        return columns, 0
    return {"names": columns["names"], "arrays": [array[~lost] for array in columns["arrays"]]}, int(lost.sum())


def passes_over(batches: Any) -> tuple[Any, Passes]:
    """The first batch, and passes over batches on one machine: a table, a list of batches, or a function that gives them again."""
    if not callable(batches) and not hasattr(batches, "__arrow_c_stream__") and iter(batches) is batches:
        raise TypeError("these batches can be read once only, but are read three times: give a function that returns them, or a list")

    def again() -> Iterator[Any]:
        return _record_batches(arrow(), batches() if callable(batches) else batches)

    first = next(again(), None)
    if first is None:
        raise ValueError("there are no batches")
    return first, lambda work: work(again())


def fit(density: Density, like: Any, passes: Passes, *, example: Any, cells: int, evaluate: bool, threads: int) -> Density:
    """Fits a density by passes over rows in parts.

    Parameters
    ----------
    density : a density that is not fitted yet.
    like : a table with the columns of the rows; its rows do not matter.
    passes : does a work with all parts, and merges its results.
    example : some rows that show what columns are; None chooses them in a pass of its own.
    cells : cells of training rows at most.
    evaluate : whether all test rows are scored, in a last pass.
    threads : threads of each part of that pass.
    """
    _refuse(density)
    names, seed = _names(density, like), seed_of(density.random_state)
    if example is None:
        look = Look(names, seed)
        shown = look.example(passes(look))
    else:
        shown, _ = _complete(_columns(read(example), names), "drop")
    if not len(shown["arrays"][0]):
        raise ValueError("there is no row without missing numbers")
    plain = f"euclidean:{len(names)}"
    form = _native.sketch_form(
        shown,
        manifold=density.manifold,
        plain=plain,
        **density._form(),
        seed=seed,
        cells=int(cells),
    )
    points = [str(name) for name in json.loads(form)["coordinates"]["columns"]]
    whole = passes(Summary(form, points, density.missing))
    sketch = _native.Sketch.of_bytes(form, whole[8:])
    settings = density._assignments()
    with watched(density.verbose, "fit") as watch:
        fitted = sketch.fit(
            effort=density.effort, settings=settings, threads=threads_of(density.n_jobs), device=density.device, watch=watch
        )
    density._adopt(fitted, Table(points, [np.empty(0)] * len(points), frames()))
    density._strict = False
    density.n_features_in_, density.feature_names_in_ = len(points), np.array(points, dtype=object)
    if dropped := int.from_bytes(whole[:8], "little"):
        warnings.warn(f"{dropped} rows with missing values were dropped", MinvelWarning, stacklevel=3)
    for warning in density.summary_["warnings"]:
        warnings.warn(_in_keywords(warning), MinvelWarning, stacklevel=3)
    density.evaluation_ = None
    if evaluate and not sketch.has_all:  # of few rows all test rows are in the summary
        tally = passes(Score(form, points, Scorer(density, threads=threads)))
        density.evaluation_ = json.loads(_native.tallied(fitted, tally.decode()))
    return density


def _refuse(density: Density) -> None:
    if density.distinct or density.block is not None:
        raise ValueError("distinct and block need all rows at once: they are not there for rows in parts")
    if density.missing not in ("refuse", "drop"):
        raise ValueError(f'missing is {density.missing!r}: expected "refuse" or "drop"')


def _names(density: Density, like: Any) -> list[str]:
    """The columns that may be points: those named, or all that are numbers by their types."""
    there = _names_of(like)
    if density.columns is not None:
        return _table(like, [str(name) for name in density.columns]).names
    return [name for name in there if _is_number(like, name)]


def _is_number(table: Any, name: str) -> bool:
    if type(table).__module__.partition(".")[0] == "pyarrow":
        pa = arrow()
        kind = table.schema.field(name).type
        return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))
    return getattr(table.dtypes[name], "kind", "O") in "iuf"
