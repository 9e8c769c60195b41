"""Scores, draws and fits on a cluster of Spark, by `mapInArrow`.

>>> import minvel.spark                                                                       # doctest: +SKIP
>>> rows = spark.read.parquet("s3://lake/places/")                                            # doctest: +SKIP
>>> minvel.spark.score(rows, "/shared/quakes").write.parquet("s3://lake/scored/")             # doctest: +SKIP

Spark reads, schedules, retries and writes. Log densities are those of one machine, bit for bit. Partitions of a lost executor are scored
again by the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from .batches import Scorer, arrow, blocks_of
from .density import Density
from .sketches import CELLS, Work
from .sketches import fit as fit_parts

try:
    from pyspark.sql.types import BinaryType, DoubleType, LongType, StructField, StructType
except ImportError as why:
    raise ImportError("minvel.spark needs PySpark and pyarrow: pip install pyspark pyarrow; and Java 17 or newer") from why

__all__ = ["fit", "sample", "score"]


def score(
    frame: Any,
    model: Any,
    *,
    log_z_error: bool = False,
    p_value: bool = False,
    columns: Sequence[str] | None = None,
    threads: int = 1,
) -> Any:
    """The data frame of Spark with `log_density` and, where asked for, `log_z_error` and `p_value` added.

    Parameters
    ----------
    frame : a data frame of Spark with the columns of the model; all its columns are kept.
    model : a fitted `Density`, the bytes of a model file, or a path that every executor can read. Bytes are a broadcast of Spark,
        which each task reads again; of a large model a path is better, which each Python worker reads once.
    log_z_error, p_value, columns : as those of `Density.score_batches`.
    threads : threads of each task; as many as `spark.task.cpus`.
    """
    scorer = Scorer(model, log_z_error=log_z_error, p_value=p_value, columns=columns, threads=threads)
    added = [StructField(name, DoubleType(), nullable=True) for name in scorer.names(frame.columns)]
    return frame.mapInArrow(scorer, StructType([*frame.schema.fields, *added]))


def sample(spark: Any, model: Any, n_samples: int, random_state: int = 1, *, threads: int = 1) -> Any:
    """A data frame of Spark of new points: the rows of `minvel sample --seed`, bit for bit, and their numbers in the column `row`."""
    scorer = Scorer(model, threads=threads)
    names = scorer.density()._model().names
    schema = StructType([StructField(name, DoubleType()) for name in names] + [StructField("row", LongType())])

    def draw(batches: Iterable[Any]) -> Iterator[Any]:
        for blocks in batches:
            yield from scorer.draw(n_samples, random_state, blocks.column("id").to_pylist(), numbered=True)

    blocks = len(blocks_of(n_samples))
    return spark.range(0, blocks, 1, blocks).mapInArrow(draw, schema)


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
    """A density fitted to all rows of a data frame of Spark, which stay where they are: the model of `Density.fit_batches`, bit for bit.

    Parameters
    ----------
    frame : a data frame of Spark. It is read three times (twice with an example); `frame.cache()` before keeps it on the executors.
    manifold, parameters : those of `Density`.
    example, cells, evaluate : as those of `Density.fit_batches`.
    threads : threads of each task that scores test rows; as many as `spark.task.cpus`.
    """
    schema = StructType([StructField("result", BinaryType(), nullable=False)])

    def passes(work: Work) -> bytes:
        def done(batches: Iterable[Any]) -> Iterator[Any]:
            pa = arrow()
            yield pa.RecordBatch.from_arrays([pa.array([work(batches)], pa.binary())], names=["result"])

        whole = work.merge([])
        for row in frame.mapInArrow(done, schema).toLocalIterator(prefetchPartitions=True):
            whole = work.merge([whole, bytes(row.result)])
        return whole

    like = frame.limit(0).toArrow()
    return fit_parts(Density(manifold, **parameters), like, passes, example=example, cells=cells, evaluate=evaluate, threads=threads)
