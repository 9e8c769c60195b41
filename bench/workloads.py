"""The work every contender does, and the line protocol in which it is asked for.

Statement    one step = loss, gradient and RMSProp update of the minimum velocity objective (Langevin, control variate)
                 u  = sqrt(2 eps) z,  z ~ N(0, I) drawn anew in each step
                 x- = x - (eps/2) grad E(x) + u
                 loss = -(2/eps) mean over rows [ E(x-) - E(x) - u . grad E(x) ]      (minimised)
             with E(x | c) = <x, psi([x, c])> and psi two tanh layers of width h, then a linear layer.
Source       wang2020mvl in docs/bibliography.bib
Conventions  p is proportional to exp(-E); x and c are standard normal and stay the same during a run; f32 throughout.
             The derivative in the parameters goes through x-. Replicas share nothing; the loss reported is their mean.

Protocol     one line in, one line out; a worker that has nothing to do blocks on stdin and uses no CPU.
                 (start)               -> ready
                 versions              -> NAME=VERSION ...
                 variants W1           -> names, the plain one first
                 warm W1 VARIANT       -> ms from building the step to the end of the first call
                 run W1 200 [VARIANT]  -> ms_per_step last_loss, from the initial parameters each time
                 quit
             Anything that goes wrong is answered with a line `error REASON`.
"""

import math
import os
import sys
import time
from dataclasses import dataclass

EPSILON = 1e-3
LEARNING_RATE = 1e-3
RMS_DECAY = 0.99
RMS_FLOOR = 1e-8
NOISE_SCALE = math.sqrt(2 * EPSILON)


@dataclass(frozen=True)
class Workload:
    """Sizes of one benchmark; `chunk` is how many steps JAX fuses into one `lax.scan`; after `sanity_steps` the
    contenders' losses are compared (early, since on fixed data the loss soon falls without bound and scatters)."""

    what: str
    d: int
    hidden: int
    rows: int
    context: int = 0
    replicas: int = 1
    chunk: int = 50
    sanity_steps: int = 100

    def layer_shapes(self):
        return [(self.d + self.context, self.hidden), (self.hidden, self.hidden), (self.hidden, self.d)]


WORKLOADS = {
    "W1": Workload("d2 h100 B200", 2, 100, 200),
    "W2": Workload("d2 h100 B50000", 2, 100, 50_000, chunk=4, sanity_steps=12),
    "W3": Workload("d9 context784 h256 B128", 9, 256, 128, context=784, chunk=20),
    "W4": Workload("W1 with 10 replicas", 2, 100, 200, replicas=10, chunk=10),
}


def initial_state(workload, seed=0):
    """Parameters [W, b, W, b, W, b], data and context as numpy arrays with a leading replica axis."""
    import numpy as np

    rng = np.random.default_rng(seed)
    replicas, rows = workload.replicas, workload.rows
    parameters = []
    for fan_in, fan_out in workload.layer_shapes():
        weights = rng.normal(size=(replicas, fan_in, fan_out)) / math.sqrt(fan_in)
        parameters += [weights.astype("f4"), np.zeros((replicas, 1, fan_out), "f4")]
    x = rng.normal(size=(replicas, rows, workload.d)).astype("f4")
    context = rng.normal(size=(replicas, rows, workload.context)).astype("f4") if workload.context else None
    return parameters, x, context


def serve(versions, variants_of, build):
    """Answer the protocol. `build(workload, variant)` returns `run(steps) -> (steps_done, seconds, loss)`."""
    # Frameworks may print; only answers may reach the pipe, so everything else is sent to stderr.
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    runs = {}

    def runner(name, variant):
        if (name, variant) not in runs:
            runs[name, variant] = build(WORKLOADS[name], variant)
        return runs[name, variant]

    def answer(words):
        match words:
            case ["versions"]:
                return " ".join(f"{name}={version}" for name, version in versions.items())
            case ["variants", name]:
                return " ".join(variants_of(WORKLOADS[name]))
            case ["warm", name, variant]:
                start = time.perf_counter()
                runner(name, variant)(1)
                return f"{(time.perf_counter() - start) * 1e3:.3f}"
            case ["run", name, steps, *rest]:
                variant = rest[0] if rest else variants_of(WORKLOADS[name])[0]
                done, seconds, loss = runner(name, variant)(int(steps))
                return f"{seconds / done * 1e3:.6f} {loss:.6g}"
        return "error unknown command: " + " ".join(words)

    print("ready", file=answers)
    for line in sys.stdin:
        words = line.split()
        if words == ["quit"]:
            break
        try:
            reply = answer(words)
        except Exception as trouble:  # the benchmark goes on without this variant
            reply = f"error {type(trouble).__name__}: {trouble}"
        print(" ".join(reply.split())[:500], file=answers)
