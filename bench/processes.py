"""Commands as processes of their own: seconds, peak of memory, and a limit."""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from environment import tail

POLL_SECONDS = 0.1


class Failed(Exception):
    """A process ended with an error; the message is the end of what it said."""


class TooSlow(Exception):
    """A process reached the limit; the peak of its memory, and the lines it printed before."""

    def __init__(self, peak, lines):
        super().__init__()
        self.peak, self.lines = peak, lines


def memory_of_tree(pid):
    """Bytes of a process and its children, shared pages counted once; 0 where the system does not say."""
    total = 0
    try:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                total = int(line.split()[1]) * 1024
        for children in Path(f"/proc/{pid}/task").glob("*/children"):
            total += sum(memory_of_tree(int(child)) for child in children.read_text().split())
    except (OSError, ValueError):
        pass  # it has just ended
    return total


def highest(pid):
    """The most bytes that a process had since it started, as far as the system says."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:")), 0)
    except OSError:
        return 0


def lanes(threads, at_once):
    """Sets of cores, one for each of the commands that run at once; None where the system cannot tie a process to its cores."""
    if not hasattr(os, "sched_setaffinity"):
        return [None] * at_once
    own = sorted(os.sched_getaffinity(0))
    return [own[k * threads:(k + 1) * threads] for k in range(at_once)]


def measured(command, limit, lane, threads):
    """Run a command on the cores of a lane; wall and CPU seconds, peak of memory and printed lines."""
    environment = os.environ | {f"{name}_NUM_THREADS": str(threads) for name in ("OMP", "OPENBLAS", "MKL", "RAYON")}
    environment["PYTHONDONTWRITEBYTECODE"] = "1"
    if lane:
        os.sched_setaffinity(0, lane)  # of this thread, and so of the process that it starts
    peak, started = 0, time.perf_counter()
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen([str(c) for c in command], stdin=subprocess.DEVNULL, stdout=out, stderr=errors,
                                   env=environment, start_new_session=True)
        too_slow, ended = False, 0
        try:
            while not ended:
                # Short commands are polled often, so that their times are not rounded up.
                time.sleep(min(POLL_SECONDS, 0.002 + (time.perf_counter() - started) / 100))
                peak = max(peak, memory_of_tree(process.pid), highest(process.pid))
                ended, status, usage = os.wait4(process.pid, os.WNOHANG)
                seconds = time.perf_counter() - started
                if seconds > limit and not ended and not too_slow:
                    too_slow = True
                    os.killpg(process.pid, 9)  # the group of this process alone: start_new_session
        except KeyboardInterrupt:
            os.killpg(process.pid, 9)
            raise
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0), errors.seek(0)
        lines, said = out.read().splitlines(), errors.read()
    # The system's own maximum also counts this program, from before the command replaced its copy: only where nothing else is known.
    peak = peak or usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    if too_slow:
        raise TooSlow(peak, lines)
    if process.returncode:
        raise Failed(f"{Path(command[0]).name} ended with {process.returncode}\n{tail(said)}")
    return {"seconds": seconds, "cpu_seconds": usage.ru_utime + usage.ru_stime, "peak": peak, "lines": lines}
