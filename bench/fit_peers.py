"""The densities that bench/compare-fit times minvel against, each as a process of its own, and the score of any log densities.

Every peer gets the n rows of the fit and returns log densities with respect to the volume of the manifold:
  kernel-density     scikit-learn's KernelDensity: ball tree, Gaussian kernel, rtol 1e-4. S²: on the 3-vectors, where a Gaussian of
                     the chord is exactly a von Mises–Fisher kernel with κ = 1/h², whose normaliser is used. Tori: on (cos, sin) of
                     the angles, likewise exactly von Mises kernels. Scored by blocks in one process per thread.
  gaussian-mixture   scikit-learn's GaussianMixture, full covariances. S²: fitted to the 3-vectors and projected to the sphere
                     along the radius, which has a closed form and keeps the weights (restriction to the sphere is far worse).
                     Tori: fitted to the angles, cut where they are rarest, and wrapped.
  gaussian-kde       scipy's gaussian_kde. S²: on the 3-vectors, normalised on the sphere by quadrature. Tori: on the angles, cut
                     where they are rarest, with copies of the rows near the cut. Scored by blocks in one process per thread.
  fft-kde            KDEpy's FFTKDE on a grid, interpolated linearly: R², and T² with copies of the rows near the cut. It has no
                     sphere, and no computer has a grid for T⁷.
One tenth of the rows, at most 2000, tunes the bandwidth (the kernels are all others) or the number of components (on at most 20 000
rows); then the peer is fitted to all rows. One n-th of every density is a wide one (uniform; on R² a normal with four times the
covariance of the rows): without it a single test row far from all kernels may cost a peer more than all others together.

Usage: fit_peers.py PEER LAW TRAIN.npy TEST.npy TRUTH.npy MORE.npy THREADS: prints a line of JSON per stage
       fit_peers.py score SCORED.npy TRUTH.npy: scores the last but one column, as `minvel score` writes it
"""

import json
import multiprocessing
import resource
import sys
import time

import numpy as np
from fit_laws import log_radial
from fit_manifolds import FULL_TURN, Cut, Wide, is_torus, kernels_on_sphere, with_images
from scipy.special import i0e, logsumexp

TUNING_ROWS, MIXTURE_ROWS = 2000, 20_000
MOST_ROWS = 50_000  # scored at once: some peers hold rows × components in memory
WARM_UP_ROWS, SHORT_SECONDS, TIMED_SECONDS = 500, 1.0, 3.0


# ---- tuning ---------------------------------------------------------------------------------------------------------


def split(x, most=None):
    """Rows to fit to, and held-out rows; the order of the rows is random already."""
    x = x[:most]
    held = min(TUNING_ROWS, len(x) // 10)
    return x[held:], x[:held]


def tuned(held_out, start):
    """The bandwidth of the largest held-out score: steps by factors 2, √2 and ⁴√2, each until both neighbours are worse."""
    known = {}

    def score(exponent):
        if exponent not in known:
            known[exponent] = held_out(start * 2.0**exponent)
        return known[exponent]

    best = 0.0
    for step in (1.0, 0.5, 0.25):
        while (better := max((best - step, best, best + step), key=score)) != best:
            best = better
    return start * 2.0**best


def by_blocks(function, rows, threads):
    """function(rows) by blocks, in one process per thread: they share the model, and nothing but blocks and results is copied."""
    if threads == 1:
        return function(rows)
    global work
    work = function
    parts = np.array_split(rows, min(len(rows), 8 * threads))
    with multiprocessing.get_context("fork").Pool(threads) as pool:
        found = np.concatenate(pool.map(call_work, parts, chunksize=1))
        pool.close()
        pool.join()  # so that their seconds are counted
    return found


def call_work(rows):
    return work(rows)


# ---- peers ----------------------------------------------------------------------------------------------------------


class KernelDensity:
    def __init__(self, law, x, threads):
        self.law, self.threads, self.wide = law, threads, Wide(law, x)
        rest, held = split(x)
        d = x.shape[1] - (law == "sphere")
        start = 0.3 * np.std(self.embedded(x), axis=0).mean() * len(x) ** (-1 / (d + 4))
        tree = None

        def held_out(h):
            nonlocal tree
            tree = tree or self.tree(rest, h)
            tree.bandwidth_ = h  # the tree does not depend on it: one is enough
            return self.scored(tree, held, h).mean()

        self.h = tuned(held_out, start)
        self.model = self.tree(x, self.h)
        self.note = f"bandwidth {self.h:.3g}"

    def tree(self, x, h):
        from sklearn.neighbors import KernelDensity as Peer

        return Peer(bandwidth=h, algorithm="ball_tree", rtol=1e-4).fit(self.embedded(x))

    def embedded(self, x):
        return np.concatenate([np.cos(x), np.sin(x)], axis=1) if is_torus(self.law) else x

    def scored(self, tree, x, h):
        points = self.embedded(x)
        flat, kappa = points.shape[1] / 2 * np.log(FULL_TURN * h**2), 1 / h**2
        if self.law == "sphere":
            ours = np.log(FULL_TURN * h**2 * -np.expm1(-2 * kappa))
        elif is_torus(self.law):
            ours = x.shape[1] * np.log(FULL_TURN * i0e(kappa))
        else:
            ours = flat
        return self.wide.mixed(x, by_blocks(tree.score_samples, points, self.threads) + flat - ours)

    def log_density(self, x):
        return self.scored(self.model, x, self.h)


class GaussianMixture:
    def __init__(self, law, x, threads):
        self.law, self.threads, self.wide = law, threads, Wide(law, x)
        self.cut = Cut(x) if is_torus(law) else (lambda rows: rows)
        self.margin = np.pi if x.shape[1] < 3 else 1.5  # of wrapping; on T⁷ wrapped tails beyond it are left out
        rest, held = split(x, MIXTURE_ROWS)
        best = -np.inf
        for components in (5, 10, 20, 40, 80, 160, 320):
            if components > len(rest) // 20:
                break
            self.model = self.mixture(components, rest)
            score = self.log_density(held).mean()
            if score <= best:
                break
            best, chosen = score, components
        self.model = self.mixture(chosen, x)
        self.note = f"{chosen} components"

    def mixture(self, components, x):
        from sklearn.mixture import GaussianMixture as Peer

        return Peer(components, random_state=0, max_iter=200).fit(self.cut(x))

    def on_manifold(self, x):
        if self.law == "sphere":
            return by_blocks(self.projected, x, self.threads)
        if self.law == "plane":
            return self.model.score_samples(x)
        images, row = with_images(self.cut(x), self.margin)
        found = np.full(len(x), -np.inf)
        np.logaddexp.at(found, row, self.model.score_samples(images))
        return found

    def projected(self, x):
        """∫₀^∞ r² g(rx) dr for each component g, in closed form."""
        m = self.model
        x, mean = np.einsum("nd,kde->nke", x, m.precisions_cholesky_), np.einsum("kd,kde->ke", m.means_, m.precisions_cholesky_)
        length = np.linalg.norm(x, axis=2)
        t = np.einsum("nke,ke->nk", x, mean) / length
        constant = np.log(m.weights_) + np.linalg.slogdet(m.precisions_cholesky_)[1] - 1.5 * np.log(FULL_TURN)
        return logsumexp(constant - 3 * np.log(length) - ((mean**2).sum(1) - t**2) / 2 + log_radial(t), axis=1)

    def log_density(self, x):
        return self.wide.mixed(x, self.on_manifold(x))


class GaussianKde:
    def __init__(self, law, x, threads):
        self.law, self.threads, self.wide = law, threads, Wide(law, x)
        self.cut = Cut(x) if is_torus(law) else (lambda rows: rows)
        rest, held = split(x)
        d = x.shape[1]
        factor = tuned(lambda f: self.scored(self.kernels(rest, f), held).mean(), 0.3 * len(x) ** (-1 / (d + 4)))
        self.model = self.kernels(x, factor)
        self.note = f"{factor * len(x) ** (1 / (d + 4)):.2g} times Scott's bandwidth"

    def kernels(self, x, factor):
        """The peer, and the log of what its density has to be divided by."""
        from scipy.stats import gaussian_kde

        rows = self.cut(x)
        if is_torus(self.law):
            reach = 5.0 if x.shape[1] < 3 else 2.5
            rows, _ = with_images(rows, min(np.pi, reach * factor * np.std(rows, axis=0).max()))
        peer = gaussian_kde(rows.T, bw_method=factor)
        return peer, np.log(len(x) / len(rows)) + (self.mass_on_sphere(x, peer.covariance) if self.law == "sphere" else 0.0)

    def mass_on_sphere(self, x, covariance):
        """Mean of the kernels' masses: that of the tangent planes for all kernels, corrected by quadrature of 200 of them."""
        flat = 1 / np.sqrt(FULL_TURN * ((x @ covariance) * x).sum(1))
        return np.log(flat.mean() * kernels_on_sphere(x[:200], covariance).mean() / flat[:200].mean())

    def scored(self, model, x):
        peer, log_mass = model
        return self.wide.mixed(x, by_blocks(lambda rows: peer.logpdf(rows.T), self.cut(x), self.threads) - log_mass)

    def log_density(self, x):
        return self.scored(self.model, x)


class FftKde:
    NOISE = 1e-15  # of the highest density: rounding errors of the transform

    def __init__(self, law, x, threads):
        self.law, self.threads, self.wide = law, threads, Wide(law, x)
        self.cut = Cut(x) if is_torus(law) else (lambda rows: rows)
        rest, held = split(x)
        start = 0.3 * np.std(x, axis=0).mean() * len(x) ** (-1 / 6)
        self.h = tuned(lambda h: np.mean(self.scored(self.grid(rest, h), held)), start)
        self.model = self.grid(x, self.h)
        self.note = f"bandwidth {self.h:.3g}, grid {self.model[2].shape[0]} × {self.model[2].shape[1]}"

    def grid(self, x, h):
        """Lowest corner, steps and values of the density on a grid of at most 4096² points, four to a bandwidth."""
        from KDEpy import FFTKDE

        rows = self.cut(x)
        if is_torus(self.law):
            rows, _ = with_images(rows, min(np.pi, 6 * h))
        low, high = rows.min(0) - 6 * h, rows.max(0) + 6 * h
        size = np.clip(np.ceil(4 * (high - low) / h), 64, 4096).astype(int)
        axes = [np.linspace(*ends) for ends in zip(low, high, size)]
        points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2)
        values = FFTKDE(kernel="gaussian", bw=h).fit(rows).evaluate(points).reshape(size)
        return low, (high - low) / (size - 1), values * (len(rows) / len(x))

    def scored(self, grid, x):
        from scipy.ndimage import map_coordinates

        low, step, values = grid
        found = map_coordinates(values, ((self.cut(x) - low) / step).T, order=1, mode="constant", cval=0.0)
        return self.wide.mixed(x, np.log(np.maximum(found, self.NOISE * values.max())))

    def log_density(self, x):
        return self.scored(self.model, x)


PEERS = {"kernel-density": KernelDensity, "gaussian-mixture": GaussianMixture, "gaussian-kde": GaussianKde, "fft-kde": FftKde}


# ---- stages ---------------------------------------------------------------------------------------------------------


class Watch:
    """Wall and CPU seconds since it was made, those of ended child processes included."""

    def __init__(self):
        self.wall, self.cpu = time.perf_counter(), self.used()

    @staticmethod
    def used():
        usages = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
        return sum(usage.ru_utime + usage.ru_stime for usage in usages)

    def read(self):
        return time.perf_counter() - self.wall, self.used() - self.cpu


def tell(stage, **facts):
    print(json.dumps({"stage": stage} | facts), flush=True)


def judged(log_density, truth):
    """NLL and its excess over the truth on the same rows, each with its standard error."""
    excess, root = truth - log_density, np.sqrt(len(truth))
    return {"nll": -log_density.mean(), "nll_error": log_density.std() / root, "truth_nll": -truth.mean(),
            "excess": excess.mean(), "excess_error": excess.std() / root}


def run(peer, law, train, test, truth, more, threads):
    rows, truth = np.load(test), np.load(truth)
    PEERS[peer](law, np.load(train)[:1000], threads).log_density(rows[:100])  # warm-up: imports and first calls
    watch = Watch()
    model = PEERS[peer](law, np.load(train), threads)
    seconds, cpu = watch.read()
    tell("fit", fit_seconds=seconds, fit_cpu_seconds=cpu, note=model.note)
    model.log_density(rows[:WARM_UP_ROWS])
    watch = Watch()
    found = model.log_density(rows)
    seconds, cpu = watch.read()
    tell("score", score_rows=len(rows), score_seconds=seconds, score_cpu_seconds=cpu, **judged(found, truth))
    if seconds < SHORT_SECONDS:
        many = np.load(more, mmap_mode="r")
        many = np.array(many[: int(len(rows) * TIMED_SECONDS / seconds)])
        watch = Watch()
        for start in range(0, len(many), MOST_ROWS):
            model.log_density(many[start : start + MOST_ROWS])
        seconds, cpu = watch.read()
        tell("more", score_rows=len(many), score_seconds=seconds, score_cpu_seconds=cpu)


def main():
    if sys.argv[1] == "score":
        tell("score", **judged(np.load(sys.argv[2])[:, -2], np.load(sys.argv[3])))
    else:
        run(*sys.argv[1:-1], int(sys.argv[-1]))


if __name__ == "__main__":
    main()
