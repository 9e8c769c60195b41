"""What the comparisons share: an environment of pinned peers, the machine in words, and messages."""

import contextlib
import datetime
import os
import platform
import subprocess
import sys
import time
from pathlib import Path

BENCH = Path(__file__).resolve().parent
ROOT = BENCH.parent
OLDEST_PYTHON = (3, 11)


class Missing(Exception):
    """Something needed is not there; the message says what and what to do."""


def cores():
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def say(text):
    print(f"[{time.strftime('%H:%M:%S')}] {text}", file=sys.stderr, flush=True)


def tail(text, lines=12):
    return "\n".join("  | " + line for line in text.strip().splitlines()[-lines:])


def peers_python(folder, requirements, peers, size):
    """The interpreter of the environment bench/FOLDER, made or renewed when the pins changed."""
    if sys.version_info < OLDEST_PYTHON:
        raise Missing(f"the pinned peers need Python {OLDEST_PYTHON[0]}.{OLDEST_PYTHON[1]} or newer, this is "
                      f"{platform.python_version()}; use a newer python3, or --python")
    environment, pins = BENCH / folder, BENCH / requirements
    wanted = f"{platform.python_version()}\n{pins.read_text()}"
    python, stamp = environment / "bin" / "python", environment / "installed.txt"
    if python.exists() and stamp.exists() and stamp.read_text() == wanted:
        return python
    say(f"creating bench/{folder} (once; about {size} to download)")
    made = subprocess.run([sys.executable, "-m", "venv", "--clear", environment], capture_output=True, text=True)
    if made.returncode:
        raise Missing("Python's venv module does not work (on Debian: install python3-venv, or use --python)\n"
                      + tail(made.stdout + made.stderr))
    installed = subprocess.run([python, "-m", "pip", "install", "--disable-pip-version-check", "--quiet",
                                "--requirement", pins], capture_output=True, text=True)
    if installed.returncode:
        raise Missing("pip could not install the peers (no network, no space, or no wheel for this machine?); "
                      f"try again later, or use --python PATH with {peers}\n" + tail(installed.stdout + installed.stderr))
    stamp.write_text(wanted)
    return python


def machine(threads):
    model = platform.processor() or platform.machine()
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
    return {"cpu": model, "cores": cores(), "threads": threads or cores(), "system": platform.system(),
            "architecture": platform.machine(), "date": datetime.date.today().isoformat(),
            "load_before": [round(x, 2) for x in os.getloadavg()] if hasattr(os, "getloadavg") else None}
