"""The training step of the convolutional auto-encoder of CIFAR-10 in PyTorch on a GPU: one line of JSON for each method.

Statement    One whole step of docs/math §4.8 with codes on the 32-dimensional sphere, as crates/minvel/examples/bench_conv.rs has
             it: minibatch of bytes/128 - 1 with uniform noise between bytes; encoder and decoder descend the sum of squares plus
             ten times the pull; then what pulls (`velocity`: the energy, by minimum velocity in stereographic charts with the adaptive
             step; `adversarial`: the critic; `discrepancy`: nothing) descends its own loss on codes of the new encoder.
Conventions  Images channels-last, the whole step in a CUDA graph, TF32 or f32 products and convolutions, RMSProp by foreach; the
             median of five timed stretches.

Usage: gpu_conv_peer.py [--batch 128] {f32|tf32|f32,tf32} [METHOD ...]
"""

import argparse
import json
import math

import torch
from torch import nn
from torch.nn import functional as F

from gpu_peers import torch_times

COUNT, NZ, EPS, RATE, WEIGHT, PENALTY, SCALE = 50_000, 32, 1e-3, 1e-4, 10.0, 1e-4, 0.5e-3
M = NZ + 1
ROOT = math.sqrt(M)
LAST = torch.channels_last


class Encoder(nn.Module):
    """Three convolutions, 512, m; normalised."""

    def __init__(self):
        super().__init__()
        self.eye = nn.Sequential(*[layer for a, b in [(3, 64), (64, 128), (128, 256)]
                                   for layer in (nn.Conv2d(a, b, 5, 2, 2), nn.ReLU())])
        self.body = nn.Sequential(nn.Linear(4096, 512), nn.ReLU(), nn.Linear(512, M))

    def forward(self, x):
        return F.normalize(self.body(self.eye(x).flatten(1)), dim=1, eps=1e-6)


class Decoder(nn.Module):
    """4096, then three transposed convolutions, of whose 2s + 3 rows one before and two after are left out."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(M, 4096)
        self.up = nn.ModuleList([nn.ConvTranspose2d(a, b, 5, 2) for a, b in [(256, 128), (128, 64), (64, 3)]])

    def forward(self, z):
        h = F.relu(self.first(z * ROOT)).view(-1, 256, 4, 4).contiguous(memory_format=LAST)
        for k, layer in enumerate(self.up):
            h = layer(h)[:, :, 1:-2, 1:-2]
            h = F.relu(h) if k < 2 else torch.tanh(h)
        return h


class Critic(nn.Module):
    """A grey image of the code, seen as the encoder sees images, with softplus."""

    def __init__(self, outputs):
        super().__init__()
        self.first = nn.Linear(M, 1024)
        self.eye = nn.ModuleList([nn.Conv2d(a, b, 5, 2, 2) for a, b in [(1, 64), (64, 128), (128, 256)]])
        self.hidden, self.last = nn.Linear(4096, 512), nn.Linear(512, outputs)

    def forward(self, z):
        h = F.softplus(self.first(z)).view(-1, 1, 32, 32).contiguous(memory_format=LAST)
        for layer in self.eye:
            h = F.softplus(layer(h))
        return self.last(F.softplus(self.hidden(h.flatten(1))))


class Energy(Critic):
    def __init__(self):
        super().__init__(M)

    def forward(self, z):
        z = z * ROOT
        return (super().forward(z) * z).sum(1)


def unchart(x, flip):
    s = (x * x).sum(-1, keepdim=True)
    last = (1 - s) / (1 + s)
    return flip * torch.cat([(1 + last) * x, last], -1)


def velocity_loss(energy, z):
    """The paper's step in a stereographic chart, each with its own step size, the control variate, and squared energies."""
    flip = torch.where(z[:, -1:] < 0, -1.0, 1.0)
    y = z * flip
    point = (y[:, :-1] / (1 + y[:, -1:])).detach().requires_grad_()
    e = energy(unchart(point, flip))
    g, = torch.autograd.grad(e.sum(), point, create_graph=True)
    s = 1 + (point * point).sum(-1, keepdim=True)
    inverse = s * s / 4
    drift = -inverse * (g / 2 + 2 * NZ * point / s) + s * point
    eps = (EPS / (drift * drift).sum(-1, keepdim=True).clamp(min=1)).detach()
    u = torch.randn_like(point) * torch.sqrt(2 * eps * inverse)
    after = energy(unchart(point + eps * drift + u, flip))
    loss = -2 / eps[:, 0] * (after - e - (u * g).sum(-1))
    return SCALE * (loss + PENALTY / SCALE * (after * after + e * e)).mean()


def adversarial_loss(critic, z):
    prior = F.normalize(torch.randn_like(z), dim=1)
    real, own = critic(prior * ROOT)[:, 0], critic(z * ROOT)[:, 0]
    told = torch.log(torch.sigmoid(real) + 1e-7) + torch.log(torch.sigmoid(-own) + 1e-7)
    return (2 * PENALTY * own * own - told).mean()


def squares(a, b):
    return (a * a).sum(1)[:, None] + (b * b).sum(1)[None] - 2 * a @ b.t()


def discrepancy(z):
    prior, n = F.normalize(torch.randn_like(z), dim=1), z.shape[0]
    half = (n * n - n) // 2
    cross, own = squares(z, prior), squares(prior, prior)
    width = cross.flatten().kthvalue(n * n - half + 1)[0] + own.flatten().kthvalue(n * n - half + 1)[0]

    def kernel(d):
        return torch.exp(-0.5 * d / width).sum()

    within = (kernel(squares(z, z)) + kernel(own) - 2 * n) / (n * n - n)
    return 100 * (within - 2 / (n * n) * kernel(cross))


def optimiser(parameters):
    for q in parameters:
        q.grad = torch.zeros_like(q)
    return torch.optim.RMSprop(parameters, lr=RATE, alpha=0.9, eps=1e-10, foreach=True, capturable=True)


def descend(rule, parameters, loss):
    for q, g in zip(parameters, torch.autograd.grad(loss, parameters)):
        q.grad.copy_(g)
    rule.step()


def training(method, batch):
    torch.manual_seed(0)
    data = torch.randint(0, 256, (COUNT, 3, 32, 32), device="cuda").float().div_(128).sub_(1)
    data = data.contiguous(memory_format=LAST)
    models = [Encoder(), Decoder(), {"velocity": Energy, "adversarial": lambda: Critic(1)}.get(method, lambda: None)()]
    encoder, decoder, match = [m and m.cuda().to(memory_format=LAST) for m in models]
    coded = [*encoder.parameters(), *decoder.parameters()]
    matched = [*match.parameters()] if match else []
    one, two = optimiser(coded), optimiser(matched) if match else None

    def pull(z):
        if method == "velocity":
            return -match(z).mean()
        return F.softplus(-match(z * ROOT)).mean() if match else discrepancy(z)

    def step():
        p = data[torch.randint(0, COUNT, (batch,), device="cuda")]
        x = p + (torch.rand_like(p) - 0.5) / 128
        z = encoder(x)
        loss = ((decoder(z) - x) ** 2).sum((1, 2, 3)).mean() + WEIGHT * pull(z)
        descend(one, coded, loss)
        if match:
            with torch.no_grad():
                codes = encoder(x)
            descend(two, matched, (velocity_loss if method == "velocity" else adversarial_loss)(match, codes))

    return step


def measure(method, precision, batch):
    first, times = torch_times(training(method, batch), {"torch-eager": 20, "torch-graph": 100})
    for contender, ms in times.items():
        print(json.dumps({"contender": contender, "name": method, "precision": precision, "batch": batch,
                          "ms": round(ms, 5), "first_s": round(first, 2)}), flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("precisions", type=lambda t: t.split(","))
    parser.add_argument("methods", nargs="*", default=["velocity", "adversarial", "discrepancy"])
    options = parser.parse_args()
    torch.backends.cudnn.benchmark = True
    for precision in options.precisions:
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = precision == "tf32"
        for method in options.methods:
            measure(method, precision, options.batch)
