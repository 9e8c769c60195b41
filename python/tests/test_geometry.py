"""Manifolds on arrays."""

import pickle
from math import gamma

import numpy as np
import pytest

import minvel

NAMES = ["euclidean:2", "sphere:1", "sphere:2", "sphere:5", "projective:2", "torus:2", "hyperbolic:2", "so3", "product(sphere:2,torus:1)"]


@pytest.mark.parametrize("name", NAMES)
def test_the_exponential_inverts_the_logarithm(name):
    m = minvel.manifold(name)
    x, y = m.random_base(5000, random_state=1), m.random_base(5000, random_state=2)
    m.check(x)
    v = m.log(x, y)
    # f64: near the cut locus the angle has half the digits
    assert np.abs(m.distance(m.exp(x, v), y)).max() < 1e-6
    assert np.abs(m.norm(x, v) - m.distance(x, y)).max() < 1e-9
    assert np.abs(m.project(x, v) - v).max() < 1e-9, "it is a tangent vector"
    assert np.abs(m.settle(x) - x).max() < 1e-12


def test_distances_are_those_of_closed_forms():
    rng = np.random.default_rng(1)
    x = rng.normal(size=(2, 100, 3))
    x /= np.linalg.norm(x, axis=-1, keepdims=True)
    sphere = minvel.manifold("sphere:2")
    assert np.abs(sphere.distance(x[0], x[1]) - np.arccos((x[0] * x[1]).sum(-1))).max() < 1e-9
    assert sphere.volume == pytest.approx(4 * np.pi) and minvel.manifold("euclidean:2").volume is None
    ball = rng.uniform(-0.6, 0.6, size=(2, 100, 2))
    gap = ((ball[0] - ball[1]) ** 2).sum(-1)
    depth = (1 - (ball[0] ** 2).sum(-1)) * (1 - (ball[1] ** 2).sum(-1))
    assert np.abs(minvel.manifold("hyperbolic:2").distance(*ball) - np.arccosh(1 + 2 * gap / depth)).max() < 1e-9


def test_arrays_broadcast_as_those_of_numpy():
    torus = minvel.manifold("torus:2")
    x = torus.random_uniform(7, random_state=1)
    table = torus.distance(x[:, None], x[None])
    assert table.shape == (7, 7) and np.allclose(table, table.T) and np.allclose(np.diag(table), 0)
    assert torus.distance([0, 0], [0, 1]).shape == ()
    with pytest.raises(ValueError, match="last axis"):
        torus.distance([0, 0, 0], [0, 1, 2])


def test_uniform_points_have_the_moments_of_their_law():
    x = minvel.manifold("sphere:2").random_uniform(20_000, random_state=3)
    z = x.mean(0) * np.sqrt(3 * len(x))
    print("z-scores", z)
    assert (np.abs(z) < 4).all()
    tilted = x + [0, 0, 0.05]  # the twin
    assert np.abs(tilted.mean(0) * np.sqrt(3 * len(x))).max() > 4
    with pytest.raises(ValueError, match="infinite"):
        minvel.manifold("euclidean:2").random_uniform(3)


def test_names_are_checked_and_manifolds_are_pickled():
    with pytest.raises(ValueError, match="sphere:2"):
        minvel.manifold("sphere")
    assert pickle.loads(pickle.dumps(minvel.manifold("so3"))) == minvel.manifold("so3")
    with pytest.raises(ValueError, match="row 1.*length"):
        minvel.manifold("sphere:2").check([[1, 0, 0], [1, 1, 0]])


@pytest.mark.parametrize("name", NAMES)
def test_projections_are_tangent_and_orthogonal(name):
    m = minvel.manifold(name)
    rng = np.random.default_rng(4)
    x, v = m.random_base(500, random_state=1), rng.normal(size=(500, m.ambient))
    p = m.project(x, v)
    assert np.abs(m.project(x, p) - p).max() < 1e-12, "twice is once"
    tangent = m.project(x, rng.normal(size=(500, m.ambient)))
    assert np.abs(((v - p) * tangent).sum(-1)).max() < 1e-10, "what is left is orthogonal to every tangent vector"
    assert (m.norm(x, p) >= 0).all() and m.log_volume(x, 0 * p) == pytest.approx(np.zeros(500), abs=1e-12)


def test_volumes_are_those_of_closed_forms():
    def sphere(n):
        return 2 * np.pi ** ((n + 1) / 2) / gamma((n + 1) / 2)

    for n in (1, 2, 3, 7):
        assert minvel.manifold(f"sphere:{n}").volume == pytest.approx(sphere(n), rel=1e-12)
        assert minvel.manifold(f"projective:{n}").volume == pytest.approx(sphere(n) / 2, rel=1e-12)
        assert minvel.manifold(f"torus:{n}").volume == pytest.approx((2 * np.pi) ** n, rel=1e-12)
    assert minvel.manifold("product(sphere:2,torus:1)").volume == pytest.approx(8 * np.pi**2, rel=1e-12)
    for name in ("euclidean:2", "hyperbolic:2", "product(sphere:2,euclidean:1)"):
        assert minvel.manifold(name).volume is None
    # of rotations: by the metric that distances have, the mean of |exp's Jacobian| over a ball of radius π of the tangent space
    so3 = minvel.manifold("so3")
    x = so3.random_uniform(1, random_state=1)[0]
    radius = so3.injectivity
    v = so3.project(x, np.random.default_rng(1).normal(size=(200_000, 4)))
    v *= (radius * np.random.default_rng(2).random(200_000) ** (1 / 3) / so3.norm(x, v))[:, None]
    values = np.exp(so3.log_volume(x, v)) * 4 / 3 * np.pi * radius**3
    z = (values.mean() - so3.volume) / (values.std() / np.sqrt(len(values)))
    print(f"volume of so3 {so3.volume:.4f}, by exp {values.mean():.4f}, z {z:.2f}")
    assert abs(z) < 4 and abs(values.mean() - 2 * so3.volume) > 100 * values.std() / np.sqrt(len(values))
