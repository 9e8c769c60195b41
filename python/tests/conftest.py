"""Data and fits that tests share."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import minvel


@pytest.fixture(scope="session")
def quakes() -> np.ndarray:
    return minvel.datasets.earthquakes()


@pytest.fixture(scope="session")
def density(quakes: np.ndarray) -> minvel.Density:
    """A quick fit of 600 earthquakes."""
    return minvel.Density("sphere:2", layout="latlon", units="degrees", effort="quick", verbose=0).fit(quakes[:600])


@pytest.fixture(scope="session")
def program() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs the program minvel."""

    def run(*arguments: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "minvel", *map(str, arguments)]
        return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=300)

    return run
