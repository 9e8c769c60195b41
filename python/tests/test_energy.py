"""Energies learnt and sampled from Python."""

import pickle

import numpy as np
import pytest

import minvel


@pytest.fixture(scope="module")
def energy():
    x = np.random.default_rng(1).normal(size=(4000, 2))
    return minvel.Energy("euclidean:2", hidden=(32,), verbose=0).fit(x, minvel.objective("minimum-velocity", step=1e-3), steps=3000, rate=3e-3)


def test_the_score_of_a_gaussian_is_learnt(energy):
    x = np.random.default_rng(2).normal(size=(500, 2))
    error = ((energy.gradient(x) - x) ** 2).sum(1).mean() / 2
    print(f"mean squared error of the score, per dimension: {error:.3f} (the score's own square is 1)")
    assert error < 0.1
    wrong = ((energy.gradient(x) + x) ** 2).sum(1).mean() / 2  # the twin: a flipped sign
    assert wrong > 1
    step = np.array([1e-2, 0])
    slope = (energy(x + step) - energy(x - step)) / 2e-2
    assert np.abs(slope - energy.gradient(x)[:, 0]).max() < 1e-2, "the gradient is the slope"


def test_chains_draw_the_law_and_say_how_well(energy):
    chains = minvel.sample_energy(energy, chains=8, draws=2000, random_state=1)
    assert chains.draws.shape == (8, 2000, 2) and 0.4 < chains.acceptance < 0.95
    arviz = pytest.importorskip("arviz")
    summary = arviz.summary(chains.to_arviz(), round_to=6)
    assert (summary["r_hat"] < 1.05).all()
    z = summary["mean"] / np.sqrt(summary["mcse_mean"] ** 2 + 0.1**2)
    print("means over their errors", z.to_numpy())
    assert (np.abs(z) < 4).all() and np.abs(summary["sd"] - 1).max() < 0.2


OBJECTIVES = ["minimum-velocity", "score-matching", "sliced", "denoising", "contrastive", "probability-flow", "transport-reaction"]
FLOWS = ["langevin", "chart", "stein", "blend", "birth-death", "wasserstein-fisher-rao"]
CASES = [{"name": name} for name in OBJECTIVES] + [{"name": "minimum-velocity", "flow": flow} for flow in FLOWS]
CASES += [{"name": name, "reduction": "antithetic"} for name in ("minimum-velocity", "denoising", "probability-flow")]
CASES += [{"name": "denoising", "reduction": "none"}, {"name": "minimum-velocity", "adaptive": True, "penalty": 1e-3}]


@pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join(map(str, case.values())))
def test_every_objective_and_flow_learns_by_name(case):
    x = np.random.default_rng(1).normal(size=(500, 2)) + 3
    seen = []
    energy = minvel.Energy("euclidean:2", hidden=(16,), verbose=0)
    energy.fit(x, minvel.objective(**{"step": 1e-2, **case}), steps=200, rate=1e-2, callback=lambda *at: seen.append(at))
    assert len(seen) == 100 and seen[-1][0] == 200 and np.isfinite([loss for _, loss in seen]).all()
    below, above = -(energy.gradient([[2.0, 2.0], [4.0, 4.0]]) @ [1.0, 1.0])
    assert above < -0.5 and below > 0.5, "on both sides the score points to the mean; its truth is 2 and −2"


def test_the_control_variate_keeps_losses_of_short_steps_steady():
    """Without it the loss of denoising has the variance 2d/ε² of each row (docs/math §2.3); with it the variance is bounded."""
    x = np.random.default_rng(1).normal(size=(2000, 2))

    def deviation(reduction):
        losses = []
        objective = minvel.objective("denoising", step=1e-2, reduction=reduction)
        minvel.Energy("euclidean:2", hidden=(8,), verbose=0).fit(x, objective, steps=60, rate=1e-6, every=1, callback=lambda _, loss: losses.append(loss))
        return np.std(losses)

    plain = np.sqrt(2 * 2 / 1e-2**2 / 256) / 2  # of a batch of 256 rows, in the scale of J
    print(f"deviation of the loss: {deviation('control-variate'):.3f}, without {deviation('none'):.3f}, expected {plain:.3f}")
    assert 0.7 * plain < deviation("none") < 1.4 * plain and deviation("control-variate") < 0.1 * plain


def test_births_and_deaths_learn_the_masses_of_separated_modes():
    """Transport says nothing about the masses of modes that lie apart; births and deaths do."""
    rng = np.random.default_rng(1)
    heavy = np.where(rng.random((4000, 1)) < 0.85, 1.0, -1.0) * 4 + 0.7 * rng.normal(size=(4000, 1))
    truth = np.log((heavy > 0).mean() / (heavy < 0).mean())

    def error(flow):
        """Of the log ratio of the masses, for the law and for its mirror image."""
        errors = []
        for side in (1, -1):
            objective = minvel.objective("minimum-velocity", flow=flow, step=1e-3, bandwidth=0.3)
            energy = minvel.Energy("euclidean:1", hidden=(32,), verbose=0).fit(side * heavy, objective, steps=600, rate=1e-2)
            grid = np.linspace(0.004, 8, 2000)[:, None]
            masses = [np.exp(-energy(s * grid)).sum() for s in (1, -1)]
            errors.append(np.log(masses[0] / masses[1]) - side * truth)
        return np.abs(errors).max()

    found = {flow: error(flow) for flow in ("birth-death", "langevin")}
    print(f"log ratio {truth:.2f}, errors {found}")
    assert found["birth-death"] < 0.5 < found["langevin"]


def test_in_flat_space_equal_parts_of_transport_and_birth_are_the_flow_of_birth_and_death():
    x = np.random.default_rng(1).normal(size=(300, 2))

    def slopes(flow, ratio):
        objective = minvel.objective(flow=flow, step=1e-2, ratio=ratio)
        return minvel.Energy("euclidean:2", hidden=(8,), verbose=0).fit(x, objective, steps=50, rate=1e-2).gradient(x)

    both = slopes("wasserstein-fisher-rao", 1.0)
    assert np.abs(both - slopes("birth-death", 1.0)).max() < 1e-3 * np.abs(both).max()
    assert np.abs(both - slopes("wasserstein-fisher-rao", 5.0)).max() > 1e-2 * np.abs(both).max(), "no power"


@pytest.mark.parametrize("method", ["metropolis", "hamiltonian", "langevin", "stein", "blend", "birth-death", "wasserstein-fisher-rao"])
def test_every_sampler_finds_a_known_law(method):
    law = minvel.law("banana")
    start = law.sample(200, random_state=1) * 0.1
    steps = {"metropolis": 0.1, "hamiltonian": 0.1, "stein": 0.2}
    settings = {"step": steps.get(method, 0.02), "bandwidth": 0.5}
    chains = minvel.sample_energy(law, method=method, chains=200, draws=20, thin=20, warm_up=600, start=start, random_state=1, verbose=0, **settings)
    truth = law.sample(20_000, random_state=2)
    moved, known = chains.draws[:, -10:].reshape(-1, 2), truth
    gap = np.abs(moved.mean(0) - known.mean(0)) / known.std(0)
    before = np.abs(start.mean(0) - known.mean(0)) / known.std(0)
    print(f"{method}: means off by {gap} deviations, {before} at the start; spread {moved.std(0) / known.std(0)}")
    assert (gap < 0.35).all() and (np.abs(np.log(moved.std(0) / known.std(0))) < 0.35).all()
    assert (np.abs(np.log(start.std(0) / known.std(0))) > 1).all(), "no power"


def test_laws_have_densities_draws_and_gradients():
    for name, dimension in [("banana", None), ("ring", None), ("mog", None), ("sphere", None), ("banana", 4)]:
        law = minvel.law(name, dimension)
        x = law.sample(4000, random_state=1)
        law.manifold.check(x)
        assert (x == law.sample(4000, random_state=1)).all() and x.shape == (4000, law.manifold.ambient)
        if law.information is not None:
            squares = law.manifold.norm(x, law.gradient(x)) ** 2
            z = (squares.mean() - law.information) / (squares.std() / np.sqrt(len(x)))
            print(f"{law}: mean of |grad E|² {squares.mean():.3f}, known {law.information:.3f}, z {z:.2f}")
            assert abs(z) < 4
    grid = np.linspace(-8, 8, 4001)[:, None]
    assert np.exp(minvel.law("mog").log_density(grid)).sum() * (grid[1, 0] - grid[0, 0]) == pytest.approx(1, abs=1e-6)
    assert pickle.loads(pickle.dumps(minvel.law("banana", 3))).manifold.name == "euclidean:3"
    with pytest.raises(ValueError, match="banana"):
        minvel.law("bananas")
    with pytest.raises(ValueError, match="dimension"):
        minvel.law("sphere", 7)


def test_what_is_wrong_with_names_and_numbers_is_said():
    x = np.random.default_rng(1).normal(size=(50, 2))
    energy = minvel.Energy("euclidean:2", hidden=(4,), verbose=0)
    cases = [({"name": "minimum"}, "minimum-velocity"), ({"flow": "langevine"}, "wasserstein-fisher-rao"), ({"step": -1.0}, "step is -1"), ({"reduction": "some"}, "antithetic")]
    for case, why in cases:
        with pytest.raises(ValueError, match=why):
            energy.fit(x, minvel.objective(**case), steps=1)
    torus = minvel.manifold("torus:2").random_uniform(50, random_state=1)
    with pytest.raises(ValueError, match="births and deaths need"):
        minvel.Energy("torus:2", verbose=0).fit(torus, minvel.objective(flow="birth-death"), steps=1)
    energy.fit(x, steps=1)
    with pytest.raises(ValueError, match="needs a bandwidth"):
        minvel.sample_energy(energy, method="birth-death")
    with pytest.raises(ValueError, match="hamiltonian"):
        minvel.sample_energy(energy, method="magic")
    with pytest.raises(TypeError, match="parameters"):
        pickle.dumps(energy)


def test_a_sphere_has_its_own_flow_and_a_callback_can_stop():
    sphere = minvel.manifold("sphere:2")
    x = sphere.exp([0, 0, 1], 0.3 * sphere.project([0, 0, 1], np.random.default_rng(1).normal(size=(1000, 3))))
    energy = minvel.Energy("sphere:2", hidden=(16,), verbose=0).fit(x, steps=1000, rate=1e-2, every=10, callback=lambda step, _: step >= 600)
    assert energy.losses_[-1][0] == 600
    assert energy([[0, 0, 1]]) < energy([[0, 0, -1]])
    chains = minvel.sample_energy(energy, chains=4, draws=100, warm_up=200, start=x[:4], random_state=1)
    sphere.check(chains.points)
    assert chains.points[:, 2].mean() > 0.5
    for flow in ("stein", "geodesics"):
        with pytest.raises(ValueError, match="langevin"):
            minvel.Energy("sphere:2").fit(x, minvel.objective("minimum-velocity", flow=flow))
    with pytest.raises(ValueError, match="score-matching"):
        minvel.Energy("sphere:2").fit(x, minvel.objective("denoising"))
    with pytest.raises(ValueError, match="row 0"):
        minvel.Energy("sphere:2").fit(2 * x)
