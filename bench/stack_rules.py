"""Compares rules for the weights of stacked densities, on laws that no table uses.

    mkdir tables
    minvel reproduce recovery --set seed=2 --set 'points=[2500]' --set fresh=5000 --set tables=tables --out runs/rules
    python bench/stack_rules.py tables

For each cell the fit has written what every density (kernels first) says of the validation rows, by which it is judged, and of fresh
ones. Each rule makes weights of some fresh rows, several times anew, and is judged on the other fresh rows: by how much the sum is behind the
best single density, in the mean over cells and in the worst case, and how many densities it uses. With --judged the rules see the
validation rows themselves, once. Needs NumPy.
"""
import argparse
import re
from pathlib import Path

import numpy as np

ROUNDS = 400


def log_sum(logs, weights):
    used = weights > 0
    top = logs[:, used].max(axis=1)
    return top + np.log(np.exp(logs[:, used] - top[:, None]) @ weights[used])


def em(logs, counts=None, used=None, rounds=ROUNDS):
    """Weights of largest likelihood."""
    counts = np.ones(len(logs)) if counts is None else counts
    used = np.ones(logs.shape[1], bool) if used is None else used
    weights = used / used.sum()
    ratios = np.exp(logs - logs.max(axis=1, keepdims=True)) * used
    for _ in range(rounds):
        share = (counts / (ratios @ weights)) @ ratios / counts.sum()
        change, weights = np.abs(weights * share - weights).max(), weights * share
        if change < 1e-9:
            break
    weights = np.where(weights < 1e-3, 0, weights)
    weights[0] = max(weights[0], 1e-3)
    return weights / weights.sum()


def guarded(sigmas):
    """EM without densities that are missed by less than so many standard errors."""

    def rule(logs):
        rows, used = len(logs), np.ones(logs.shape[1], bool)
        while True:
            now = em(logs, used=used)
            used &= now > 0
            used[0] = True
            gains = {}
            for k in np.flatnonzero(used)[1:]:
                without = used.copy()
                without[k] = False
                gains[k] = log_sum(logs, now) - log_sum(logs, em(logs, used=without))
            if not gains:
                return now
            k = min(gains, key=lambda k: gains[k].mean())
            if gains[k].mean() > max(sigmas * gains[k].std(ddof=1) / rows**0.5, 1 / rows):
                return now
            used[k] = False

    return rule


def bagged(bags=16):
    """The mean of EM's weights for rows with random weights."""

    def rule(logs):
        random = np.random.default_rng(0)
        return np.mean([em(logs, random.exponential(size=len(logs)), rounds=100) for _ in range(bags)], axis=0)

    return rule


def dirichlet(sweeps=300):
    """The posterior mean of the weights under a Dirichlet law, by Gibbs."""

    def rule(logs):
        random = np.random.default_rng(0)
        rows, count = logs.shape
        ratios = np.exp(logs - logs.max(axis=1, keepdims=True))
        weights, mean = np.ones(count) / count, np.zeros(count)
        for sweep in range(sweeps):
            edges = np.cumsum(ratios * weights, axis=1)
            who = (random.random(rows)[:, None] * edges[:, -1:] > edges).sum(axis=1)
            weights = random.dirichlet(1 + np.bincount(who, minlength=count))
            mean += weights if sweep >= sweeps // 6 else 0
        return mean / mean.sum()

    return rule


def prior(first, count):
    return np.log([first] + [(1 - first) / (count - 1)] * (count - 1)) if count > 1 else np.zeros(1)


def softmax(z):
    z = np.exp(z - z.max(axis=1, keepdims=True))
    return z / z.sum(axis=1, keepdims=True)


def progressive(first=None, orders=16):
    """The mean over orders and numbers of rows of the posterior of single densities."""

    def rule(logs):
        random = np.random.default_rng(0)
        count = logs.shape[1]
        start = prior(first or 1 / count, count)
        mean = np.zeros(count)
        for _ in range(orders):
            sums = np.vstack([np.zeros(count), np.cumsum(logs[random.permutation(len(logs))], axis=0)])
            mean += softmax(start + sums).mean(axis=0) / orders
        return mean

    return rule


def tempered(first, parts=256):
    """The same with f times the sum of all rows in place of the sum of a part f of them in random order."""

    def rule(logs):
        sums = (logs - logs[:, :1]).sum(axis=0)
        return softmax(prior(first, len(sums)) + (np.arange(parts) + 0.5)[:, None] / parts * sums).mean(axis=0)

    return rule


def with_sum(inner, folds=5):
    """Of another rule, where the best sum stands beside the single densities, judged by rows that did not choose it."""

    def rule(logs):
        rows, of_sum = len(logs), np.zeros(len(logs))
        for fold in range(folds):
            own = np.arange(rows) % folds == fold
            of_sum[own] = log_sum(logs[own], em(logs[~own]))
        weights = inner(np.column_stack([logs, of_sum]))
        return weights[:-1] + weights[-1] * em(logs)

    return rule


def at_least(inner, least):
    """Of another rule, without small weights."""

    def rule(logs):
        weights = inner(logs).copy()
        weights[1:] = np.where(weights[1:] < least, 0, weights[1:])
        return weights / weights.sum()

    return rule


def differing(inner, least):
    """Of another rule, without densities that differ from the first by less in the root of the mean square."""

    def rule(logs):
        far = ((logs - logs[:, :1]) ** 2).mean(axis=0) ** 0.5 >= least
        far[0] = True
        weights = np.zeros(logs.shape[1])
        weights[far] = inner(logs[:, far]) if far.sum() > 1 else 1.0
        return weights

    return rule


def missed(inner, worth):
    """Of another rule, without densities that the rows hardly miss: the least missed first."""

    def rule(logs):
        used = list(range(logs.shape[1]))

        def of(chosen):
            weights = np.zeros(logs.shape[1])
            weights[chosen] = inner(logs[:, chosen]) if len(chosen) > 1 else 1.0
            return weights

        while True:
            weights = of(used)
            whole = log_sum(logs, weights)
            losses = {k: (whole - log_sum(logs, of([j for j in used if j != k]))).mean() for k in used[1:]}
            if not losses or min(losses.values()) > worth:
                return weights
            used.remove(min(losses, key=losses.get))

    return rule


RULES = {
    "kernels alone": lambda logs: np.eye(logs.shape[1])[0],
    "guard of 1.64": guarded(1.64),
    "guard of 1": guarded(1.0),
    "guard of 0": guarded(0.0),
    "EM": em,
    "EM, 5 rounds": lambda logs: em(logs, rounds=5),
    "bagged EM": bagged(),
    "Dirichlet": dirichlet(),
    "progressive": progressive(),
    "progressive, kernels 1/2": progressive(0.5),
    "... missed by 2e-4": missed(progressive(0.5), 2e-4),
    "... missed by 1e-3": missed(progressive(0.5), 1e-3),
    "progressive, sum": with_sum(progressive(0.5)),
    "tempered": tempered(0.5),
    "tempered, sum": with_sum(tempered(0.5)),
    "tempered, sum, 0.05": at_least(with_sum(tempered(0.5)), 0.05),
    "tempered, sum, 0.1": at_least(with_sum(tempered(0.5)), 0.1),
    "... differing by 0.02": differing(at_least(with_sum(tempered(0.5)), 0.05), 0.02),
    "... differing by 0.1": differing(at_least(with_sum(tempered(0.5)), 0.05), 0.1),
}


def cells(folders):
    """Of every law that has energies: what the densities say of validation rows and of fresh rows, and the truth of these."""
    for path in sorted(path for folder in folders for path in folder.glob("*.judged=*.npy")):
        cell, points = re.match(r"(.+)\.judged=(\d+)\.npy", path.name).groups()
        judged, parts = np.load(path), np.load(path.with_name(f"{cell}.parts={points}.npy"))
        if judged.shape[1] > 1:
            yield judged, parts, np.load(path.with_name(f"{cell}.truth.npy")).ravel()


def behind(rule, told, parts, truth):
    """Nats behind the best single density and behind the kernels, and the number of densities used."""
    weights = rule(told)
    excess, alone = (truth - log_sum(parts, weights)).mean(), (truth[:, None] - parts).mean(axis=0)
    return excess - alone.min(), excess - alone[0], (weights > 0).sum()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", type=Path, nargs="+")
    parser.add_argument("--judged", action="store_true", help="the rules see the validation rows")
    parser.add_argument("--rows", type=int, nargs="+", default=[250, 1000], help="fresh rows that they see otherwise")
    parser.add_argument("--times", type=int, default=6, help="how often")
    args = parser.parse_args()
    known = list(cells(args.tables))
    for rows in [0] if args.judged else args.rows:
        random = np.random.default_rng(5)
        found = {rule: [] for rule in RULES}
        for judged, parts, truth in known:
            for _ in range(1 if args.judged else args.times):
                order = random.permutation(len(parts))
                told, rest = (judged, order) if args.judged else (parts[order[:rows]], order[rows:])
                for name, rule in RULES.items():
                    found[name].append(behind(rule, told, parts[rest], truth[rest]))
        print(f"\n{len(known)} laws, {'validation rows' if args.judged else f'{rows} rows, {args.times} times'}")
        print(f"{'':26s} behind the best:   mean    worst   > 0.005   behind kernels:   mean    worst   used")
        for name, values in found.items():
            best, kernels, used = np.array(values).T
            print(
                f"{name:26s} {best.mean():23.5f} {best.max():8.4f} {(best > 0.005).mean():9.3f}"
                f" {kernels.mean():23.5f} {kernels.max():8.4f} {used.mean():6.2f}"
            )


if __name__ == "__main__":
    main()
