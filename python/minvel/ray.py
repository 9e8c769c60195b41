"""Scores, draws and fits on a cluster of Ray, by Ray Data; and sweeps of trainings.

>>> import ray, minvel.ray                                                        # doctest: +SKIP
>>> rows = ray.data.read_parquet("s3://lake/places/")                             # doctest: +SKIP
>>> minvel.ray.score(rows, "/shared/quakes").write_parquet("s3://lake/scored/")   # doctest: +SKIP

Ray reads, schedules, retries and writes. Log densities are those of one machine, bit for bit; the order of rows is Ray's
(`DataContext.execution_options.preserve_order` keeps it). A worker that dies is replaced, and its blocks are scored again.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from functools import lru_cache
from os import PathLike
from pathlib import Path
from typing import Any

from .batches import Scorer, arrow, blocks_of
from .density import Density
from .sketches import CELLS, Work
from .sketches import fit as fit_parts

try:
    import ray
    import ray.data
except ImportError as why:
    raise ImportError("minvel.ray needs Ray Data: pip install 'ray[data]'") from why

__all__ = ["fit", "reproduce", "sample", "score"]

# Results that are merged at a time.
_AT_A_TIME = 8

# Rows of a batch for a GPU, which is idle with fewer.
_GPU_BATCH = 262_144


def score(
    dataset: ray.data.Dataset,
    model: Any,
    *,
    log_z_error: bool = False,
    p_value: bool = False,
    columns: Sequence[str] | None = None,
    actors: int | tuple[int, int] | None = None,
    num_cpus: float = 1,
    num_gpus: float = 0,
) -> ray.data.Dataset:
    """The dataset with `log_density` and, where asked for, `log_z_error` and `p_value` added.

    Parameters
    ----------
    dataset : any dataset with the columns of the model; all its columns are kept.
    model : a fitted `Density`, the bytes of a model file, or a path that every node can read.
    log_z_error, p_value, columns : as those of `Density.score_batches`.
    actors : how many actors hold the model, or the least and the largest number of them. By default scores are tasks, which Ray
        fuses with reading and writing; each worker process loads the model once all the same. With GPUs, actors by default.
    num_cpus : CPUs of each task or actor, and its threads.
    num_gpus : GPUs of each actor: log densities are then those of the CPU to 1e-5.
    """
    device, threads = ("cuda" if num_gpus else "cpu"), max(1, int(num_cpus))
    scorer = ray.put(Scorer(model, log_z_error=log_z_error, p_value=p_value, columns=columns, threads=threads, device=device))
    options: dict[str, Any] = {"batch_format": "pyarrow", "num_cpus": num_cpus, "udf_modifying_row_count": False}
    if not num_gpus and actors is None:
        return dataset.map_batches(_score, fn_args=[scorer], **options)
    if num_gpus:
        options |= {"num_gpus": num_gpus, "batch_size": _GPU_BATCH}
    if isinstance(actors, int):
        pool = ray.data.ActorPoolStrategy(size=actors)
    else:
        least, most = actors or (1, None)
        pool = ray.data.ActorPoolStrategy(min_size=least, max_size=most)
    return dataset.map_batches(_Actor, fn_constructor_args=[[scorer]], compute=pool, **options)


@lru_cache(maxsize=4)
def _received(scorer: Any) -> Scorer:
    """The scorer, fetched from Ray's store once by each process, with its model loaded."""
    here: Scorer = ray.get(scorer)
    here.density()
    return here


def _score(table: Any, sent: Any) -> Any:
    scorer = _received(sent)
    return arrow().Table.from_batches(scorer(table)) if table.num_rows else _empty(table, scorer)


def _empty(table: Any, scorer: Scorer) -> Any:
    for name in scorer.names(table.schema.names):
        table = table.append_column(name, arrow().array([], "float64"))
    return table


class _Actor:
    """A process that holds the model."""

    def __init__(self, sent: list[Any]) -> None:
        [self.sent] = sent  # Ray fetches references that are arguments themselves
        _received(self.sent)

    def __call__(self, table: Any) -> Any:
        return _score(table, self.sent)


def sample(model: Any, n_samples: int, random_state: int = 1, *, num_cpus: float = 1) -> ray.data.Dataset:
    """A dataset of new points: the rows of `minvel sample --seed`, bit for bit, and their numbers in the column `row`."""
    scorer = ray.put(Scorer(model, threads=max(1, int(num_cpus))))
    blocks = len(blocks_of(n_samples))
    numbers = ray.data.range(blocks, override_num_blocks=blocks)
    return numbers.map_batches(_draw, fn_args=[scorer, n_samples, random_state], batch_format="pyarrow", num_cpus=num_cpus)


def _draw(blocks: Any, sent: Any, n_samples: int, seed: int) -> Any:
    return arrow().Table.from_batches(_received(sent).draw(n_samples, seed, blocks["id"].to_pylist(), numbered=True))


def fit(
    dataset: ray.data.Dataset,
    manifold: str | None = None,
    *,
    example: Any = None,
    cells: int = CELLS,
    evaluate: bool = True,
    num_cpus: float = 1,
    **parameters: Any,
) -> Density:
    """A density fitted to all rows of a dataset, which stay where they are: the model of `Density.fit_batches`, bit for bit.

    Parameters
    ----------
    dataset : any dataset. It is read three times (twice with an example); `dataset.materialize()` before keeps it in Ray's store.
    manifold, parameters : those of `Density`.
    example, cells, evaluate : as those of `Density.fit_batches`.
    num_cpus : CPUs of each task.
    """

    def passes(work: Work) -> bytes:
        options: dict[str, Any] = {"fn_args": [ray.put(work)], "batch_format": "pyarrow", "num_cpus": num_cpus}
        results = dataset.map_batches(_work, batch_size=None, **options).map_batches(_merge, batch_size=_AT_A_TIME, **options)
        whole = work.merge([])
        for table in results.iter_batches(batch_format="pyarrow", batch_size=1):
            whole = work.merge([whole, *table["result"].to_pylist()])
        return whole

    density = Density(manifold, **parameters)
    schema = dataset.schema().base_schema
    like = schema.empty_table() if hasattr(schema, "empty_table") else dataset.limit(1).to_pandas()
    threads = max(1, int(num_cpus))
    return fit_parts(density, like, passes, example=example, cells=cells, evaluate=evaluate, threads=threads)


def _result(result: bytes) -> Any:
    return arrow().table({"result": arrow().array([result], "large_binary")})


def _work(table: Any, sent: Any) -> Any:
    return _result(_fetched(sent)([table]))


def _merge(table: Any, sent: Any) -> Any:
    return _result(_fetched(sent).merge(table["result"].to_pylist()))


@lru_cache(maxsize=4)
def _fetched(sent: Any) -> Any:
    return ray.get(sent)


def reproduce(
    experiment: str | PathLike[str],
    out: str | PathLike[str],
    *,
    tasks: int | None = None,
    num_cpus: float = 1,
    num_gpus: float = 0,
    max_retries: int = 3,
    options: Sequence[str] = (),
) -> Path:
    """Run the units of a sweep as Ray tasks, each of which is the program: `minvel reproduce EXPERIMENT --out OUT --shard K/N`.

    Units are claimed in the folder; those of a task that dies are taken over by the others, and Ray starts the task again. The report is that of one
    process, bit for bit. The result is the path of the report.

    Parameters
    ----------
    experiment : the name of an experiment (`minvel reproduce --list`), or a file of settings that every node can read.
    out : the folder of the run, which every node must see.
    tasks : how many tasks; by default as many as there are CPUs for.
    num_cpus, num_gpus : of each task; it has as many threads as CPUs.
    max_retries : how often a task that died is started again.
    options : further arguments of the program, such as ["--quick", "--set", "seed=2"].
    """
    folder = Path(os.path.abspath(out))
    count = tasks or max(1, int(ray.cluster_resources().get("CPU", 1) // max(num_cpus, 1)))
    shared = [*map(str, options), "--out", str(folder), "--threads", str(max(1, int(num_cpus)))]
    again = {"max_retries": max_retries, "retry_exceptions": [ProgramDied]}
    one = ray.remote(_unit_runner).options(num_cpus=num_cpus, num_gpus=num_gpus, **again)
    ray.get([one.remote([os.fspath(experiment), *shared, "--shard", f"{k}/{count}"]) for k in range(1, count + 1)])
    return folder / "report.json"


class ProgramDied(RuntimeError):
    """The program was killed: the task is started again."""


# On Linux the program ends with the worker that started it, also where that is killed.
_PROGRAM = """
import ctypes, sys
from minvel import _native
if sys.platform == "linux":
    ctypes.CDLL(None).prctl(1, 9)
sys.exit(_native.run(["minvel", "reproduce", *sys.argv[1:]]))
"""


def _unit_runner(arguments: list[str]) -> None:
    """The program; what it says is in the error where it fails."""
    done = subprocess.run([sys.executable, "-c", _PROGRAM, *arguments], capture_output=True, text=True, errors="replace")
    words = f"minvel reproduce {' '.join(arguments)} ended with status {done.returncode}: {done.stderr.strip()[-2000:]}"
    if done.returncode < 0:
        raise ProgramDied(words)
    if done.returncode:
        raise RuntimeError(words)
