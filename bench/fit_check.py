#!/usr/bin/env python3
"""Check the laws and the peers of bench/compare-fit; exit status 1 if one fails.

A law: rows of another, wider law, weighted, give ∫p = 1 and the same NLL as the law's own rows. The twin that must fail draws its rows
with widths 1.1 times as large.
A peer: its density, fitted to a few rows, integrates to one over the manifold, by the same weighted rows; the twin that must fail is 1.1
times the density. Not on T⁷, where weighted rows are too few for that: the code is that of T².

Needs what bench/requirements-fit.txt pins; about a minute.
"""

import sys

import numpy as np

sys.dont_write_bytecode = True
from fit_laws import LAWS, blocks
from fit_peers import PEERS

LAW_ROWS, PEER_ROWS, TRAINING_ROWS = 200_000, 40_000, 1500
LARGEST_Z = 4.0


def z_score(a, b):
    """Of the difference of two means, each with its standard error; b may be a known number."""
    variance = np.var(a) / len(a) + (np.var(b) / len(b) if np.ndim(b) else 0)
    return (np.mean(a) - np.mean(b)) / np.sqrt(variance)


def law_holds(name):
    law, twin, rng = LAWS[name](), LAWS[name](), np.random.default_rng(1)
    twin.widths = 1.1 * twin.widths
    x, proposal = law.wider(rng, LAW_ROWS)
    log_p = law.log_density(x)
    weight, own = np.exp(log_p - proposal), law.log_density(np.concatenate(list(blocks(law, LAW_ROWS, 1))))
    mass, nll = z_score(weight, 1.0), z_score(-own, -weight * log_p)
    wrong = z_score(-law.log_density(twin.rows(rng, LAW_ROWS)), -weight * log_p)
    print(f"{name:<8} integral {weight.mean():.5f} (z = {mass:+.2f})   NLL of its rows {-own.mean():.4f}, by weights "
          f"{-(weight * log_p).mean():.4f} (z = {nll:+.2f})   twin: z = {wrong:+.1f}", flush=True)
    return abs(mass) < LARGEST_Z and abs(nll) < LARGEST_Z < abs(wrong)


def peer_holds(name, peer):
    law = LAWS[name]()
    x, proposal = law.wider(np.random.default_rng(2), PEER_ROWS)
    model = PEERS[peer](name, next(blocks(law, TRAINING_ROWS, 1)), 1)
    weight = np.exp(model.log_density(x) - proposal)
    mass, wrong = z_score(weight, 1.0), z_score(1.1 * weight, 1.0)
    print(f"{name:<8} {peer:<17} integral {weight.mean():.4f} (z = {mass:+.2f})   twin: z = {wrong:+.1f}", flush=True)
    return abs(mass) < LARGEST_Z < abs(wrong)


def main():
    held = [law_holds(name) for name in LAWS]
    held += [peer_holds(name, peer) for name in LAWS if name != "torus7" for peer in PEERS
             if (name, peer) != ("sphere", "fft-kde")]
    print(f"{sum(held)} of {len(held)} hold")
    return 0 if all(held) else 1


if __name__ == "__main__":
    sys.exit(main())
