"""JAX's side of `bench/compare`: jit of a `lax.scan` over steps, in every arrangement that might be the fastest."""

import time

import jax
import jax.numpy as jnp
import jaxlib

from workloads import EPSILON, LEARNING_RATE, NOISE_SCALE, RMS_DECAY, RMS_FLOOR, initial_state, serve


def energy(parameters, x, context_part, context):
    """<x, psi([x, c])>; with `context_part` = c W + b given, the first layer only multiplies x."""
    w1, b1, w2, b2, w3, b3 = parameters
    if context_part is not None:
        hidden = context_part + x @ w1[: x.shape[-1]]
    else:
        hidden = (x if context is None else jnp.concatenate([x, context], -1)) @ w1 + b1
    hidden = jnp.tanh(hidden) @ w2 + b2
    return ((jnp.tanh(hidden) @ w3 + b3) * x).sum(-1)


def loss(parameters, key, x, context, split):
    part = context @ parameters[0][x.shape[-1] :] + parameters[1] if split else None
    u = jax.random.normal(key, x.shape) * NOISE_SCALE
    e, pull_back = jax.vjp(lambda at: energy(parameters, at, part, context), x)
    slope = pull_back(jnp.ones_like(e))[0]
    moved = energy(parameters, x - (EPSILON / 2) * slope + u, part, context)
    return (-2 / EPSILON) * (moved - e - (u * slope).sum(-1)).mean()


def update(parameters, squares, key, x, context, split):
    value, gradients = jax.value_and_grad(loss)(parameters, key, x, context, split)
    squares = [RMS_DECAY * v + (1 - RMS_DECAY) * g * g for v, g in zip(squares, gradients)]
    parameters = [p - LEARNING_RATE * g / (jnp.sqrt(v) + RMS_FLOOR) for p, g, v in zip(parameters, gradients, squares)]
    return parameters, squares, value


def one(split, x, context):
    """A workload without replicas: plain matrices."""
    x, context = x[0], None if context is None else context[0]

    def step(carry, key):
        parameters, squares, value = update(*carry, key, x, context, split)
        return (parameters, squares), value

    return step, lambda parameters: [p[0] for p in parameters]


def batched(x):
    """Replicas as a batch axis of every product."""
    step_all = jax.vmap(lambda p, v, key, x: update(p, v, key, x, None, False))

    def step(carry, key):
        parameters, squares, values = step_all(*carry, jax.random.split(key, len(x)), x)
        return (parameters, squares), values.mean()

    return step, lambda parameters: parameters


def unrolled(x):
    """Replicas written out one after the other, so that XLA sees plain matrix products it may run side by side."""

    def step(carry, key):
        keys = jax.random.split(key, len(x))
        results = [update(*state, keys[r], x[r], None, False) for r, state in enumerate(carry)]
        return [(p, v) for p, v, _ in results], jnp.stack([value for _, _, value in results]).mean()

    return step, None


def variants_of(workload):
    if workload.replicas > 1:
        return ["vmap", "unrolled"]
    return ["plain", "split"] if workload.context else ["plain"]


def build(workload, variant):
    parameters, x, context = initial_state(workload)
    parameters, x = [jnp.array(p) for p in parameters], jnp.array(x)
    context = None if context is None else jnp.array(context)
    zeros = lambda arrays: [jnp.zeros_like(a) for a in arrays]
    if variant == "unrolled":
        step, _ = unrolled(x)
        carry = [([p[r] for p in parameters], zeros([p[r] for p in parameters])) for r in range(workload.replicas)]
    else:
        step, shape = batched(x) if variant == "vmap" else one(variant == "split", x, context)
        carry = (shape(parameters), zeros(shape(parameters)))

    @jax.jit
    def chunk(carry, key):
        key, noise = jax.random.split(key)
        carry, losses = jax.lax.scan(step, carry, jax.random.split(noise, workload.chunk))
        return carry, key, losses[-1]

    def run(steps):
        state = carry, jax.random.key(0)
        calls = -(-steps // workload.chunk)
        start = time.perf_counter()
        for _ in range(calls):
            *state, value = chunk(*state)
        value.block_until_ready()
        seconds = time.perf_counter() - start
        return calls * workload.chunk, seconds, float(value)

    return run


if __name__ == "__main__":
    serve({"jax": jax.__version__, "jaxlib": jaxlib.__version__}, variants_of, build)
