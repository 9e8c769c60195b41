"""Scores and draws by batches of rows: the kernel of everything that runs on more than one machine.

Statement. Log densities are a function of the row alone, and block b of a draw is one of (seed, b) alone: any partition of rows or
blocks over processes, machines and retries gives the same bits as `minvel score` and `minvel sample` in one process.
Conventions. All columns are kept; `log_density` and, where asked for, `log_z_error` and `p_value` are added, as `NAME_2` where a
name is taken. Rows in which a coordinate is missing (null or NaN) are kept, with empty scores. Devices: the CPU unless another one is
asked for; GPUs give the same log densities to 1e-5, not the same bits.
Checked by python/tests/test_batches.py, test_clusters.py and bench/cluster.

`Scorer` is what engines send to their workers. It is small code and a model, as bytes or as a path that every machine can read, and in
each process the model is loaded once, whatever the number of tasks. `minvel.ray`, `minvel.dask` and `minvel.spark` are made of it.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from os import PathLike
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ._fitting import Fitting, MinvelWarning
from ._table import Table, number_column, read

if TYPE_CHECKING:
    from . import _native

    Array = NDArray[np.float64]

__all__ = ["BLOCK", "Scorer", "blocks_of", "sample_blocks", "score_batches"]

BLOCK = 65_536
"""Rows of a block of a draw."""

# Models kept by a process: more are dropped, the oldest first.
_KEPT = 4
_models: dict[str, Fitting] = {}
_loading = Lock()


def arrow() -> Any:
    """The library pyarrow, which record batches are made of."""
    try:
        import pyarrow
    except ImportError as why:
        raise ImportError("record batches need pyarrow: pip install pyarrow") from why
    return pyarrow


# --- models ---


def _file_of(path: Path) -> Path:
    """The model file of a fit's folder, or the file itself."""
    return path / "model.safetensors" if path.is_dir() else path


@dataclass(frozen=True, kw_only=True)
class _Wanted:
    """What is wanted of a model, and how."""

    log_z_error: bool = False
    p_value: bool = False
    columns: Sequence[str] | None = None
    threads: int = 1
    device: str = "cpu"

    @property
    def added(self) -> list[str]:
        """Names of the columns that are added."""
        names = {"log_density": True, "log_z_error": self.log_z_error, "p_value": self.p_value}
        return [name for name, wanted in names.items() if wanted]

    def names(self, taken: Iterable[str]) -> list[str]:
        """What the added columns are called beside others: `NAME_2` where a name is taken."""
        return [_free(name, set(taken)) for name in self.added]

    def schema(self, schema: Any) -> Any:
        """Arrow's schema of the output, of that of the input."""
        pa = arrow()
        return pa.schema([*schema, *(pa.field(name, pa.float64()) for name in self.names(schema.names))], schema.metadata)


@dataclass(frozen=True)
class Scorer(_Wanted):
    """Scores batches of rows in any process: a model on its way, and what is wanted of it.

    Parameters
    ----------
    model : a fitted `Density`, the bytes of a model file, or the path of a fit's folder or model file. A path is sent as a path:
        every machine must see the same file there, and one that has changed meanwhile is refused.
    log_z_error : whether to add `log_z_error`, the standard error of log Z.
    p_value : whether to add `p_value`, the share of unseen rows that are at most as likely.
    columns : names of the columns that are points, in the order of the model's, where they are called otherwise.
    threads : threads of each call; 0 means all cores. Engines run as many calls at a time as they have cores, so 1 is right there.
    device : "cpu", "cuda", "cuda:1" or "auto".

    Examples
    --------
    >>> import numpy as np, pickle, minvel
    >>> from minvel.batches import Scorer
    >>> x = np.random.default_rng(1).normal(size=(300, 2))
    >>> density = minvel.Density(effort="quick", verbose=0).fit(x)
    >>> scorer = pickle.loads(pickle.dumps(Scorer(density)))      # as an engine sends it to a worker
    >>> bool((scorer.density().score_samples(x) == density.score_samples(x)).all())
    True
    """

    model: Any = field(repr=False)
    digest: str = field(default="", init=False)

    def __post_init__(self) -> None:
        model, columns = self.model, self.columns
        if isinstance(model, Fitting):
            columns = columns or model.columns
            model = model.to_bytes()
        if isinstance(model, str | PathLike):
            path = _file_of(Path(os.path.abspath(model)))
            model, digest = str(path), _digest(path.read_bytes())
        elif isinstance(model, bytes):
            digest = _digest(model)
        else:
            raise TypeError(f"model is a {type(model).__name__}: expected a fitted Density, the bytes of a model file, or a path")
        for name, value in {"model": model, "columns": columns and [str(c) for c in columns], "digest": digest}.items():
            object.__setattr__(self, name, value)
        if self.p_value:
            _check_reference(self.density())  # complains here, not in a thousand workers

    def density(self) -> Fitting:
        """The model, loaded once by each process."""
        with _loading:
            density = _models.get(self.digest)
            if density is None:
                density = self._load()
                _models[self.digest] = density
                for digest in list(_models)[:-_KEPT]:
                    del _models[digest]
            return density

    def _load(self) -> Fitting:
        from .density import Density

        data: bytes = self.model if isinstance(self.model, bytes) else Path(self.model).read_bytes()
        if _digest(data) != self.digest:
            raise ValueError(
                f"{self.model} is not the model that this work began with (SHA-256 {self.digest[:12]}…): put the file back, or "
                "begin again with the new one"
            )
        return Density.from_bytes(data, verbose=0)

    def scores(self, rows: Any) -> list[Array]:
        """The added columns of a table of any library, in one piece; NaN where a coordinate is missing."""
        return _scores(self.density(), rows, self, [])

    def points(self, names: Sequence[str]) -> list[str]:
        """Which of a table's columns are points."""
        return _chosen(self.density(), list(names), self.columns)

    def __call__(self, batches: Any) -> Iterator[Any]:
        """The record batches with their scores, one after another."""
        return _scored(self.density(), batches, self)

    def draw(self, n_samples: int, seed: int, blocks: Iterable[int], numbered: bool = False) -> Iterator[Any]:
        """Some blocks of a draw as record batches; `numbered` adds the column `row`, the number of each row in the draw."""
        pa = arrow()
        for block in blocks:
            for batch in sample_blocks(self.density(), n_samples, seed, [block], threads=self.threads, device=self.device):
                if numbered:
                    rows = pa.array(np.arange(batch.num_rows) + block * BLOCK)
                    batch = pa.RecordBatch.from_arrays([*batch.columns, rows], names=[*batch.schema.names, "row"])
                yield batch

    def __dask_tokenize__(self) -> Any:
        return (self.digest, self.added, self.columns, self.threads, self.device)


def _digest(data: bytes) -> str:
    return sha256(data).hexdigest()


def _free(name: str, taken: set[str]) -> str:
    k = 2
    free = name
    while free in taken:
        free, k = f"{name}_{k}", k + 1
    return free


def _check_reference(density: Fitting) -> None:
    if density._model().reference is None:
        raise ValueError("this model keeps no reference rows, which p-values need: fit it again with this version")


# --- scores ---


def score_batches(
    density: Fitting, batches: Any, *, log_z_error: bool, p_value: bool, columns: Sequence[str] | None, threads: int, device: str
) -> Iterator[Any]:
    """What `Density.score_batches` does."""
    density._model()
    if p_value:
        _check_reference(density)
    columns = columns or density.columns
    wanted = _Wanted(log_z_error=log_z_error, p_value=p_value, columns=columns, threads=threads, device=device)
    return _scored(density, batches, wanted)


def _scored(density: Fitting, batches: Any, wanted: _Wanted) -> Iterator[Any]:
    pa = arrow()
    doubts: list[str] = []
    first, sure = 0, False
    for number, batch in enumerate(_record_batches(pa, batches), 1):
        mine: list[str] = []
        try:
            arrays = _scores(density, batch, wanted, mine)
        except ValueError as why:
            raise ValueError(f"batch {number}, whose first row is row {first + 1}: {why}") from why
        first, doubts, sure = first + batch.num_rows, doubts + mine, sure or not mine
        added = [pa.array(array, from_pandas=True) for array in arrays]  # NaN is missing
        yield pa.RecordBatch.from_arrays([*batch.columns, *added], schema=wanted.schema(batch.schema))
    if doubts and not sure:  # a few rows may well look like other units; all of them may not
        warnings.warn(doubts[0], MinvelWarning, stacklevel=2)


def _record_batches(pa: Any, batches: Any) -> Iterator[Any]:
    """Record batches of a stream of Arrow's C interface, or of an iterable of batches and tables."""
    if hasattr(batches, "__arrow_c_stream__"):
        yield from pa.RecordBatchReader.from_stream(batches)
        return
    for batch in batches:
        if isinstance(batch, pa.RecordBatch):
            yield batch
        elif hasattr(batch, "__arrow_c_array__"):
            yield pa.record_batch(batch)
        elif hasattr(batch, "__arrow_c_stream__"):
            yield from pa.RecordBatchReader.from_stream(batch)
        else:
            raise TypeError(f"a batch is a {type(batch).__name__}: expected a record batch or a table of Arrow")


def _scores(density: Fitting, rows: Any, wanted: _Wanted, doubts: list[str]) -> list[Array]:
    """The added columns of rows: those with a missing coordinate are NaN."""
    columns = _points(density, rows, wanted.columns)
    arrays = columns["arrays"]
    logs = np.full(len(arrays[0]), np.nan)
    missing = np.isnan(arrays).any(axis=0)
    complete = int(np.argmin(missing)) if len(logs) else 0
    if not missing.all():
        if missing.any():  # a point that there is takes their place, so that rows keep their numbers in messages
            columns["arrays"] = [np.where(missing, array[complete], array) for array in arrays]
        model = density._model()
        logs, told = model.log_density(columns, threads=wanted.threads, device=wanted.device, watch=None)
        doubts.extend(told)
        logs[missing] = np.nan
    more = [logs]
    if wanted.log_z_error:
        more.append(np.where(missing, np.nan, density.log_z_[1]))
    if wanted.p_value:
        more.append(np.where(missing, np.nan, density._model().p_values(logs)))
    return more


def _points(density: Fitting, rows: Any, columns: Sequence[str] | None) -> _native.Columns:
    """The columns of points, by the names that the model has for them."""
    names = [str(name) for name in density.coordinates_["columns"]]
    chosen = _chosen(density, _names_of(rows), columns)
    arrays = [number_column(a, n) for n, a in zip(chosen, _table(rows, chosen).arrays, strict=True)]
    return {"names": density._model().names if _numbered(names) else names, "arrays": arrays}


def _numbered(names: Sequence[str]) -> bool:
    return all(name.isdigit() for name in names)


def _chosen(density: Fitting, there: list[str], columns: Sequence[str] | None) -> list[str]:
    """Which columns are points, of those that are there."""
    names = [str(name) for name in density.coordinates_["columns"]]
    own = density._model().names  # what samples have; of a model of numbered columns also what they may be called
    if columns is not None and len(columns) != len(names):
        raise ValueError(f"columns has {len(columns)} names, but points have {len(names)}: {', '.join(own)}")
    if columns is not None:
        names = list(columns)
    elif _numbered(names):  # by number, as the program does, unless they have the names of samples
        by_number = there if len(there) == len(names) else [there[int(n) - 1] for n in names if int(n) <= len(there)]
        names = own if set(own) <= set(there) or len(by_number) < len(names) else by_number
    return [_find(name, there) for name in names]


def _names_of(rows: Any) -> list[str]:
    if isinstance(rows, Table):
        return rows.names
    return list(rows.schema.names) if _is_arrow(rows) else [str(name) for name in rows.columns]


def _is_arrow(rows: Any) -> bool:
    return type(rows).__module__.partition(".")[0] == "pyarrow"


def _find(name: str, there: list[str]) -> str:
    hits = [other for other in there if other == name] or [other for other in there if other.strip().lower() == name.lower()]
    if len(hits) != 1:
        which = "no column" if not hits else f"{len(hits)} columns"
        raise ValueError(f"there is {which} {name!r}; columns are {', '.join(map(repr, there))} (choose with columns=[…])")
    return hits[0]


def _table(rows: Any, names: list[str]) -> Table:
    """Some columns of a table of any library."""
    if isinstance(rows, Table):
        return rows.select(names)
    if not _is_arrow(rows):
        return read(rows[names])
    pa = arrow()
    arrays = [rows.column(name) for name in names]
    for k, array in enumerate(arrays):
        kind = array.type
        if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)):
            try:
                arrays[k] = array.cast(pa.float64())
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as why:
                raise ValueError(f"column {names[k]!r} holds no numbers but Arrow's type {kind}: {why}") from why
    return read(pa.table(arrays, names=names))


# --- draws ---


def blocks_of(n_samples: int) -> range:
    """The numbers of the blocks of a draw.

    >>> blocks_of(200_000)
    range(0, 4)
    """
    if n_samples < 1:
        raise ValueError(f"n_samples is {n_samples}: expected at least 1")
    return range(-(-n_samples // BLOCK))


def sample_blocks(
    density: Fitting, n_samples: int, seed: int, blocks: Iterable[int] | None, *, threads: int, device: str
) -> Iterator[Any]:
    """What `Density.sample_batches` does."""
    model, all_blocks = density._model(), blocks_of(n_samples)
    blocks = all_blocks if blocks is None else [int(block) for block in blocks]
    for block in blocks:
        if block not in all_blocks:
            raise ValueError(f"there is no block {block}: {n_samples} draws have the blocks 0 to {all_blocks[-1]}")
    return _drawn(model, n_samples, seed, blocks, threads, device)


def _drawn(model: _native.Fitted, number: int, seed: int, blocks: Iterable[int], threads: int, device: str) -> Iterator[Any]:
    pa = arrow()
    for block in blocks:
        rows = min(BLOCK, number - block * BLOCK)
        count = BLOCK if number > BLOCK else rows  # a draw of no more than a block is drawn at once
        names, arrays = model.sample(count, _subseed(seed, block), threads=threads, device=device, watch=None)
        yield pa.RecordBatch.from_arrays([pa.array(array[:rows]) for array in arrays], names=names)


def _subseed(seed: int, block: int) -> int:
    """The seed of a block: that of the draw for the first (SplitMix64, as `subseed` of crates/minvel/src/stream.rs)."""
    if block == 0:
        return seed
    mask = 2**64 - 1
    x = (seed + block * 0x9E37_79B9_7F4A_7C15) & mask
    for shift, factor in ((30, 0xBF58_476D_1CE4_E5B9), (27, 0x94D0_49BB_1331_11EB)):
        x = ((x ^ x >> shift) * factor) & mask
    return x ^ x >> 31
