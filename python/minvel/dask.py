"""Scores, draws and fits on a cluster of Dask.

>>> import dask.dataframe as dd, minvel.dask                                                   # doctest: +SKIP
>>> rows = dd.read_parquet("s3://lake/places/")                                                # doctest: +SKIP
>>> minvel.dask.score(rows, "/shared/quakes").to_parquet("s3://lake/scored/", write_index=False)   # doctest: +SKIP

Dask reads, schedules, retries and writes. Log densities are those of one machine, bit for bit. What a dead worker held is computed
again by the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ._table import Table
from .batches import Scorer, blocks_of
from .density import Density
from .sketches import CELLS, Work
from .sketches import fit as fit_parts

try:
    import dask
    import dask.bag
    import dask.dataframe
    import pandas
except ImportError as why:
    raise ImportError("minvel.dask needs Dask and pandas: pip install 'dask[dataframe,distributed]'") from why

__all__ = ["fit", "sample", "score", "score_bag"]

# Results that are merged at a time.
_AT_A_TIME = 8


def score(
    frame: Any,
    model: Any,
    *,
    log_z_error: bool = False,
    p_value: bool = False,
    columns: Sequence[str] | None = None,
    threads: int = 1,
) -> Any:
    """The data frame of Dask with `log_density` and, where asked for, `log_z_error` and `p_value` added.

    Parameters
    ----------
    frame : a data frame of Dask with the columns of the model; all its columns, its index and its divisions are kept.
    model : a fitted `Density`, the bytes of a model file, or a path that every worker can read.
    log_z_error, p_value, columns : as those of `Density.score_batches`.
    threads : threads of each task. Dask runs as many tasks at a time as it has cores.
    """
    scorer = Scorer(model, log_z_error=log_z_error, p_value=p_value, columns=columns, threads=threads)
    names = scorer.names(map(str, frame.columns))
    meta = frame._meta.assign(**{name: np.empty(0) for name in names})
    return frame.map_partitions(_score, _sent(scorer), meta=meta)


def _sent(scorer: Scorer) -> Any:
    """The scorer as one node of the graph, which travels to each worker once."""
    return dask.delayed(scorer, name=f"minvel-{scorer.digest}", traverse=False)


def _score(frame: pandas.DataFrame, scorer: Scorer) -> pandas.DataFrame:
    names = scorer.names(map(str, frame.columns))
    return frame.assign(**dict(zip(names, scorer.scores(frame), strict=True)))


def score_bag(
    bag: Any,
    model: Any,
    *,
    log_z_error: bool = False,
    p_value: bool = False,
    columns: Sequence[str] | None = None,
    threads: int = 1,
) -> Any:
    """The bag of records (dictionaries) with the key `log_density`, and those asked for, in each; None where a coordinate is missing."""
    scorer = Scorer(model, log_z_error=log_z_error, p_value=p_value, columns=columns, threads=threads)
    return bag.map_partitions(_score_records, _sent(scorer))


def _score_records(records: Iterable[dict[str, Any]], scorer: Scorer) -> list[dict[str, Any]]:
    records = list(records)
    if not records:
        return []
    keys = list(dict.fromkeys(str(key) for record in records for key in record))
    wanted = scorer.points(keys)
    cells = [np.array([np.nan if (v := record.get(key)) is None else v for record in records], np.float64) for key in wanted]
    scores = scorer.scores(Table(wanted, list(cells), "arrow"))
    names = scorer.names(keys)
    rows = ([None if np.isnan(value) else float(value) for value in row] for row in zip(*scores, strict=True))
    return [{**record, **dict(zip(names, row, strict=True))} for record, row in zip(records, rows, strict=True)]


def sample(model: Any, n_samples: int, random_state: int = 1, *, threads: int = 1) -> Any:
    """A data frame of Dask of new points: the rows of `minvel sample --seed` in their order, bit for bit, a partition a block."""
    scorer = Scorer(model, threads=threads)
    names = scorer.density()._model().names
    meta = pandas.DataFrame({name: np.empty(0) for name in names})
    blocks = list(blocks_of(n_samples))
    draw = dask.delayed(_draw, pure=True)
    parts = [draw(block, _sent(scorer), n_samples, random_state) for block in blocks]
    return dask.dataframe.from_delayed(parts, meta=meta, verify_meta=False)


def _draw(block: int, scorer: Scorer, n_samples: int, seed: int) -> pandas.DataFrame:
    [batch] = scorer.draw(n_samples, seed, [block])
    frame: pandas.DataFrame = batch.to_pandas()
    return frame


def fit(
    frame: Any,
    manifold: str | None = None,
    *,
    example: Any = None,
    cells: int = CELLS,
    evaluate: bool = True,
    threads: int = 1,
    **parameters: Any,
) -> Density:
    """A density fitted to all rows of a data frame of Dask, which stay where they are: the model of `Density.fit_batches`, bit for bit.

    Parameters
    ----------
    frame : a data frame of Dask. It is read three times (twice with an example); `frame.persist()` before keeps it on the workers.
    manifold, parameters : those of `Density`.
    example, cells, evaluate : as those of `Density.fit_batches`.
    threads : threads of each task that scores test rows.
    """
    parts = frame.to_delayed()

    def passes(work: Work) -> bytes:
        sent = dask.delayed(work, traverse=False)
        do, merge = dask.delayed(_work), dask.delayed(_merge)
        results = [do(part, sent) for part in parts]
        while len(results) > 1:
            results = [merge(results[k : k + _AT_A_TIME], sent) for k in range(0, len(results), _AT_A_TIME)]
        [whole] = dask.compute(*results)
        return bytes(whole)

    density = Density(manifold, **parameters)
    return fit_parts(density, frame._meta, passes, example=example, cells=cells, evaluate=evaluate, threads=threads)


def _work(part: pandas.DataFrame, work: Work) -> bytes:
    return work([part])


def _merge(results: list[bytes], work: Work) -> bytes:
    return work.merge(results)
