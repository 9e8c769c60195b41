"""How far work is: a bar of tqdm where it is installed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._native import Watch

# Work that is done sooner shows no bar.
_DELAY = 0.7


@contextmanager
def watched(verbose: int, what: str) -> Iterator[Watch | None]:
    """One who watches work, for its length; none without tqdm or with `verbose=0`."""
    if not verbose:
        yield None
        return
    try:
        from tqdm.auto import tqdm
    except ImportError:
        yield None
        return
    bar: Any = None
    stage = 0

    def watch(number: int, name: str, unit: str, total: int, done: int, note: str) -> None:
        nonlocal bar, stage
        if number == 0:
            return
        if bar is None:
            bar = tqdm(total=total or None, desc=f"{what}: {name}", unit=f" {unit}", leave=False, delay=_DELAY)
        elif number != stage:
            bar.reset(total=total or None)
            bar.set_description(f"{what}: {name}", refresh=False)
            bar.unit = f" {unit}"
        stage = number
        bar.total = total or None
        bar.n = done
        bar.set_postfix_str(note, refresh=False)
        bar.update(0)
        bar.refresh()

    try:
        yield watch
    finally:
        if bar is not None:
            bar.close()
