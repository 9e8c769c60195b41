"""The same training steps in PyTorch (eager, CUDA graph) and JAX (jit + scan) on a GPU: one line of JSON for each.

Statement    `ebm`: one minimum velocity step of E(x) = <x, psi(x)>, psi two tanh layers of width 100, then RMSProp.
             `context`: the same of E(x | c) = <x, psi(x, c)> (9 dimensions, 784 of context, width 256, 128 rows).
             `vae`: one whole step of the implicit auto-encoder on the sphere (8 latent dimensions, width 256, batch 128):
             minibatch, binarisation, encoder, energy step on the sphere, decoder, RMSProp of all. The context's part of the
             energy's first layer is computed once.
Conventions  R replicas side by side, f32 or TF32 products; the median of five timed stretches. JAX compiles all programs at
             once in threads (which take turns when they try kernels on the card) before the first is timed, so `first_s`,
             a program's own compilation and first run, is longer than it would be alone; `--jobs 1` compiles in turn.

Usage: gpu_peers.py [--jobs N] {f32|tf32|f32,tf32} {torch|jax} [ROW ...], rows as in ROWS (the default).
"""

import argparse
import json
import math
import os
import statistics
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np

EPS = 1e-3
ROWS = ["ebm-R1", "ebm-R10", "ebm-50k", "context-R1", "vae-R1", "vae-R10", "vae-R40"]
IMAGES, PIXELS, NOISE, NZ, H, BATCH = 60000, 784, 8, 8, 256, 128
D = NZ + 1
ROOT = math.sqrt(D)


def tell(contender, row, precision, ms, first):
    print(json.dumps({"contender": contender, "name": row, "precision": precision, "ms": round(ms, 5),
                      "first_s": round(first, 2)}), flush=True)


def parse(row):
    kind, _, rest = row.partition("-")
    return kind, (1 if rest == "50k" else int(rest[1:]))


def energy_sizes(row):
    """Dimension, context, width, rows of data."""
    return {"ebm-50k": (2, 0, 100, 50000), "context-R1": (D, PIXELS, H, BATCH)}.get(row, (2, 0, 100, 200))


def layers(d, context, h):
    return [(d + context, h), (h, h), (h, d)]


def start_values(rng, replicas, shapes):
    values = []
    for shape in shapes:
        values += [(rng.normal(size=(replicas,) + shape) / math.sqrt(shape[0])).astype("f4"),
                   np.zeros((replicas, 1, shape[1]), "f4")]
    return values


VAE_SHAPES = [[(PIXELS + NOISE, H), (H, H), (H, D)], [(D, H), (H, H), (H, PIXELS)], layers(D, PIXELS, H)]


def torch_times(step, counts):
    """Seconds to the fifth step, and milliseconds of one eager and as a CUDA graph: medians of five stretches of so many."""
    import torch

    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    start = time.perf_counter()
    with torch.cuda.stream(stream):
        for _ in range(5):
            step()
    torch.cuda.current_stream().wait_stream(stream)
    torch.cuda.synchronize()
    first = time.perf_counter() - start
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    medians = {}
    for contender, run in (("torch-eager", step), ("torch-graph", graph.replay)):
        times = []
        for _ in range(6):
            torch.cuda.synchronize()
            begin = time.perf_counter()
            for _ in range(counts[contender]):
                run()
            torch.cuda.synchronize()
            times.append((time.perf_counter() - begin) / counts[contender] * 1e3)
        medians[contender] = statistics.median(times[1:])
    return first, medians


def torch_rows(rows, precisions, _):
    import torch

    def network(p, x):
        for i in range(3):
            x = torch.baddbmm(p[2 * i + 1], x, p[2 * i])
            x = torch.tanh(x) if i < 2 else x
        return x

    def measure(row, step):
        first, times = torch_times(step, {"torch-eager": 30, "torch-graph": 200})
        for contender, ms in times.items():
            tell(contender, row, precision, ms, first)

    def device(values):
        return [torch.tensor(v, device="cuda", requires_grad=True) for v in values]

    def ebm(row, replicas):
        rng = np.random.default_rng(0)
        d, context, h, batch = energy_sizes(row)
        p = device(start_values(rng, replicas, layers(d, context, h)))
        data = torch.randn(replicas, batch, d, device="cuda")
        given = torch.randn(replicas, batch, context, device="cuda") if context else None
        optimiser = torch.optim.RMSprop(p, lr=1e-3, foreach=True, capturable=True)
        for q in p:
            q.grad = torch.zeros_like(q)

        def energy(x, first):
            if first is None:
                return (network(p, x) * x).sum(2)
            a = torch.tanh(torch.bmm(x, p[0][:, :d]) + first)
            a = torch.tanh(torch.baddbmm(p[3], a, p[2]))
            return (torch.baddbmm(p[5], a, p[4]) * x).sum(2)

        def step():
            optimiser.zero_grad(set_to_none=False)
            x = data.detach().requires_grad_()
            u = torch.randn_like(x) * math.sqrt(2 * EPS)
            first = torch.baddbmm(p[1], given, p[0][:, d:]) if context else None
            e = energy(x, first)
            g, = torch.autograd.grad(e.sum(), x, create_graph=True)
            moved = x - EPS * 0.5 * g + u
            ((energy(moved, first) - e - (u * g).sum(2)) * 2 / EPS).mean(1).sum().backward()
            optimiser.step()

        measure(row, step)

    def vae(row, replicas):
        rng = np.random.default_rng(0)
        enc, dec, en = [device(start_values(rng, replicas, s)) for s in VAE_SHAPES]
        data = torch.rand(IMAGES, PIXELS, device="cuda")
        one = torch.optim.RMSprop(en, lr=1e-3, foreach=True, capturable=True)
        two = torch.optim.RMSprop(enc + dec, lr=1e-3, foreach=True, capturable=True)
        for q in enc + dec + en:
            q.grad = torch.zeros_like(q)

        def first(x):
            return torch.baddbmm(en[1], x, en[0][:, D:])

        def energy(z, first):
            z = z * ROOT
            h = torch.tanh(torch.bmm(z, en[0][:, :D]) + first)
            h = torch.tanh(torch.baddbmm(en[3], h, en[2]))
            return (torch.baddbmm(en[5], h, en[4]) * z).sum(2)

        def unchart(x, flip):
            s = (x * x).sum(-1, keepdim=True)
            last = (1 - s) / (1 + s)
            return flip * torch.cat([(1 + last) * x, last], -1)

        def matching(z, x):
            flip = torch.where(z[..., -1:] < 0, -1.0, 1.0)
            y = z * flip
            point = (y[..., :-1] / (1 + y[..., -1:])).detach().requires_grad_()
            context = first(x)
            e = energy(unchart(point, flip), context)
            g, = torch.autograd.grad(e.sum(), point, create_graph=True)
            s = 1 + (point * point).sum(-1, keepdim=True)
            inverse = s * s / 4
            drift = -inverse * (g / 2 + 2 * NZ * point / s) + s * point
            u = torch.randn_like(point) * torch.sqrt(2 * EPS * inverse)
            moved = point + EPS * drift + u
            return ((energy(unchart(moved, flip), context) - e - (u * g).sum(-1)) * 2 / EPS + 1e-4 * e * e).mean(1).sum()

        def descend(optimiser, parameters, loss):
            for q, g in zip(parameters, torch.autograd.grad(loss, parameters)):
                q.grad.copy_(g)
            optimiser.step()

        def step():
            chosen = torch.randint(0, IMAGES, (replicas * BATCH,), device="cuda")
            p = data[chosen].view(replicas, BATCH, PIXELS)
            x = (torch.rand_like(p) < p).float()
            z = network(enc, torch.cat([x, torch.randn(replicas, BATCH, NOISE, device="cuda")], 2))
            z = torch.nn.functional.normalize(z, dim=-1)
            descend(one, en, matching(z.detach(), x))
            still = z.detach().requires_grad_()
            slope, = torch.autograd.grad(energy(still, first(x)).sum(), still)
            logits = network(dec, z * ROOT)
            likelihood = torch.nn.functional.binary_cross_entropy_with_logits(logits, x, reduction="none").sum(2)
            descend(two, enc + dec, (likelihood - (slope * z).sum(-1)).mean(1).sum())

        measure(row, step)

    for precision in precisions:
        torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"
        for row in rows:
            kind, replicas = parse(row)
            (vae if kind == "vae" else ebm)(row, replicas)


def jax_rows(rows, precisions, jobs):
    import jax
    import jax.numpy as jnp

    def network(p, x):
        for i in range(3):
            x = x @ p[2 * i] + p[2 * i + 1]
            x = jnp.tanh(x) if i < 2 else x
        return x

    def rmsprop(p, v, g):
        v = [0.9 * a + 0.1 * b * b for a, b in zip(v, g)]
        return [a - 1e-3 * b / jnp.sqrt(c + 1e-10) for a, b, c in zip(p, g, v)], v

    def compiled(row, precision):
        """Seconds of compiling, and the program with what it is given."""
        kind, replicas = parse(row)
        step, carry, fixed, count = (vae if kind == "vae" else ebm)(row, replicas)
        keys = jax.random.split(jax.random.key(0), count)
        scan = jax.jit(lambda carry, keys, fixed: jax.lax.scan(lambda c, k: step(c, k, fixed), carry, keys))
        with jax.default_matmul_precision("highest" if precision == "f32" else "default"):
            begin = time.perf_counter()
            program = scan.lower(carry, keys, fixed).compile()
            return time.perf_counter() - begin, program, (carry, keys, fixed), count

    def measure(row, precision, compiling, program, given, count):
        begin = time.perf_counter()
        jax.block_until_ready(program(*given))
        first, times = compiling + time.perf_counter() - begin, []
        for _ in range(5):
            begin = time.perf_counter()
            jax.block_until_ready(program(*given))
            times.append((time.perf_counter() - begin) / count * 1e3)
        tell("jax", row, precision, statistics.median(times), first)

    def zeros(p):
        return [jnp.zeros_like(a) for a in p]

    def ebm(row, replicas):
        rng = np.random.default_rng(0)
        d, context, h, batch = energy_sizes(row)
        p = [jnp.array(v) for v in start_values(rng, replicas, layers(d, context, h))]
        x = jnp.array(rng.normal(size=(replicas, batch, d)), "float32")
        given = jnp.array(rng.normal(size=(replicas, batch, context)), "float32")

        def energy(p, x, first):
            if not context:
                return (network(p, x) * x).sum(2)
            a = jnp.tanh(x @ p[0][:, :d] + first)
            a = jnp.tanh(a @ p[2] + p[3])
            return ((a @ p[4] + p[5]) * x).sum(2)

        def loss(p, key, x, given):
            u = jax.random.normal(key, x.shape) * math.sqrt(2 * EPS)
            first = given @ p[0][:, d:] + p[1] if context else None
            e, pull = jax.vjp(lambda x: energy(p, x, first), x)
            g = pull(jnp.ones_like(e))[0]
            return ((energy(p, x - EPS * 0.5 * g + u, first) - e - (u * g).sum(2)) * 2 / EPS).mean(1).sum()

        def step(carry, key, fixed):
            value, g = jax.value_and_grad(loss)(carry[0], key, *fixed)
            return rmsprop(*carry, g), value

        return step, (p, zeros(p)), (x, given), 300 if batch > 1000 else 2000

    def vae(row, replicas):
        rng = np.random.default_rng(0)
        enc, dec, en = [[jnp.array(v) for v in start_values(rng, replicas, s)] for s in VAE_SHAPES]

        def energy(en, z, context):
            z = z * ROOT
            h = jnp.tanh(z @ en[0][:, :D] + context)
            h = jnp.tanh(h @ en[2] + en[3])
            return ((h @ en[4] + en[5]) * z).sum(2)

        def unchart(x, flip):
            s = (x * x).sum(-1, keepdims=True)
            last = (1 - s) / (1 + s)
            return flip * jnp.concatenate([(1 + last) * x, last], -1)

        def matching(en, z, x, key):
            flip = jnp.where(z[..., -1:] < 0, -1.0, 1.0)
            y = z * flip
            point = y[..., :-1] / (1 + y[..., -1:])
            context = x @ en[0][:, D:] + en[1]
            e, pull = jax.vjp(lambda q: energy(en, unchart(q, flip), context), point)
            g = pull(jnp.ones_like(e))[0]
            s = 1 + (point * point).sum(-1, keepdims=True)
            inverse = s * s / 4
            drift = -inverse * (g / 2 + 2 * NZ * point / s) + s * point
            u = jax.random.normal(key, point.shape) * jnp.sqrt(2 * EPS * inverse)
            moved = point + EPS * drift + u
            return ((energy(en, unchart(moved, flip), context) - e - (u * g).sum(-1)) * 2 / EPS + 1e-4 * e * e).mean(1).sum()

        def code(enc, x, key):
            z = network(enc, jnp.concatenate([x, jax.random.normal(key, (replicas, BATCH, NOISE))], 2))
            return z / jnp.linalg.norm(z, axis=-1, keepdims=True)

        def coding(both, en, x, key):
            z = code(both[0], x, key)
            context = x @ en[0][:, D:] + en[1]
            slope = jax.lax.stop_gradient(jax.grad(lambda z: energy(en, z, context).sum())(z))
            logits = network(both[1], z * ROOT)
            likelihood = (jnp.logaddexp(0.0, logits) - x * logits).sum(2)
            return (likelihood - (slope * z).sum(-1)).mean(1).sum()

        def step(carry, key, data):
            (enc, dec, en), (ve, vd, vn) = carry
            k = jax.random.split(key, 4)
            chosen = jax.random.randint(k[0], (replicas * BATCH,), 0, IMAGES)
            p = data[chosen].reshape(replicas, BATCH, PIXELS)
            x = (jax.random.uniform(k[1], p.shape) < p).astype("float32")
            z = jax.lax.stop_gradient(code(enc, x, k[2]))
            en, vn = rmsprop(en, vn, jax.grad(matching)(en, z, x, k[3]))
            value, (ge, gd) = jax.value_and_grad(coding)((enc, dec), en, x, k[2])
            enc, ve = rmsprop(enc, ve, ge)
            dec, vd = rmsprop(dec, vd, gd)
            return ((enc, dec, en), (ve, vd, vn)), value

        return step, ((enc, dec, en), (zeros(enc), zeros(dec), zeros(en))), images, 1000 if replicas < 40 else 300

    images = jax.random.uniform(jax.random.key(1), (IMAGES, PIXELS))
    work = [(row, precision) for precision in precisions for row in rows]
    longest_first = sorted(work, key=lambda w: parse(w[0]), reverse=True)
    with ThreadPoolExecutor(jobs) as pool:
        programs = dict(zip(longest_first, pool.map(lambda w: compiled(*w), longest_first)))
    for row, precision in work:
        measure(row, precision, *programs.pop((row, precision)))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("precisions", type=lambda t: t.split(","))
    parser.add_argument("framework", choices=["torch", "jax"])
    parser.add_argument("rows", nargs="*", default=ROWS)
    options = parser.parse_args()
    (torch_rows if options.framework == "torch" else jax_rows)(options.rows, options.precisions, options.jobs)
