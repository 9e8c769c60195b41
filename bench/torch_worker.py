"""PyTorch's side of `bench/compare`: eager mode as people write it, and `torch.compile` of the whole step."""

import sys
import time

import torch

from workloads import EPSILON, LEARNING_RATE, NOISE_SCALE, RMS_DECAY, RMS_FLOOR, initial_state, serve


def affine(x, weights, bias):
    return torch.baddbmm(bias, x, weights) if weights.dim() == 3 else torch.addmm(bias, x, weights)


def energy(parameters, x, context_part, context):
    """<x, psi([x, c])>; with `context_part` = c W + b given, the first layer only multiplies x."""
    w1, b1, w2, b2, w3, b3 = parameters
    if context_part is not None:
        hidden = context_part + x @ w1[..., : x.shape[-1], :]
    else:
        hidden = affine(x if context is None else torch.cat([x, context], -1), w1, b1)
    hidden = affine(torch.tanh(hidden), w2, b2)
    return (affine(torch.tanh(hidden), w3, b3) * x).sum(-1)


def loss_terms(parameters, x, context, split, gradient):
    """The loss per replica; `gradient(f, x)` returns f(x) and the derivative of its sum."""
    part = affine(context, parameters[0][..., x.shape[-1] :, :], parameters[1]) if split else None
    u = torch.randn_like(x) * NOISE_SCALE
    e, slope = gradient(lambda at: energy(parameters, at, part, context), x)
    moved = energy(parameters, x - (EPSILON / 2) * slope + u, part, context)
    return (-2 / EPSILON) * (moved - e - (u * slope).sum(-1)).mean(-1)


def tensors(workload):
    parameters, x, context = initial_state(workload)
    # One replica runs without the replica axis: plain matrix products are the faster path.
    shape = (lambda a: a) if workload.replicas > 1 else (lambda a: a[0])
    as_tensor = lambda a: None if a is None else torch.tensor(shape(a))
    return [as_tensor(p) for p in parameters], as_tensor(x), as_tensor(context)


def eager(workload, split):
    parameters, x, context = tensors(workload)
    for p in parameters:
        p.requires_grad_()
    start = [p.detach().clone() for p in parameters]
    optimiser = torch.optim.RMSprop(parameters, lr=LEARNING_RATE, alpha=RMS_DECAY, eps=RMS_FLOOR, foreach=True)

    def reset():
        optimiser.state.clear()
        with torch.no_grad():
            for p, value in zip(parameters, start):
                p.copy_(value)

    def gradient(f, at):
        at = at.detach().requires_grad_()
        e = f(at)
        return e, torch.autograd.grad(e.sum(), at, create_graph=True)[0]

    def step():
        losses = loss_terms(parameters, x, context, split, gradient)
        optimiser.zero_grad()
        losses.sum().backward()  # a sum, so that each replica has its own full gradient
        optimiser.step()
        return losses.detach()

    return timed(reset, step)


def compiled(workload, split):
    parameters, x, context = tensors(workload)
    state = [None, None]

    def reset():
        state[:] = parameters, [torch.zeros_like(p) for p in parameters]

    def gradient(f, at):
        e, pull_back = torch.func.vjp(f, at)
        return e, pull_back(torch.ones_like(e))[0]

    def objective(parameters):
        losses = loss_terms(parameters, x, context, split, gradient)
        return losses.sum(), losses

    @torch.compile(dynamic=False)
    def update(parameters, squares):
        gradients, (_, losses) = torch.func.grad_and_value(objective, has_aux=True)(parameters)
        squares = [RMS_DECAY * v + (1 - RMS_DECAY) * g * g for v, g in zip(squares, gradients)]
        parameters = [
            p - LEARNING_RATE * g / (v.sqrt() + RMS_FLOOR) for p, g, v in zip(parameters, gradients, squares)
        ]
        return parameters, squares, losses

    def step():
        with torch.no_grad():
            state[0], state[1], losses = update(*state)
        return losses

    return timed(reset, step)


def timed(reset, step):
    def run(steps):
        reset()
        start = time.perf_counter()
        for _ in range(steps):
            losses = step()
        return steps, time.perf_counter() - start, float(losses.mean())

    return run


def variants_of(workload):
    names = ["eager", "compile"]
    return names + [name + "_split" for name in names] if workload.context else names


def build(workload, variant):
    kind, _, split = variant.partition("_")
    return {"eager": eager, "compile": compiled}[kind](workload, split == "split")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        torch.set_num_threads(int(sys.argv[1]))
    torch.manual_seed(0)
    serve({"torch": torch.__version__}, variants_of, build)
