"""What turns densities of vectors into densities on spheres and tori, for the peers of bench/compare-fit."""

import numpy as np

FULL_TURN = 2 * np.pi


def is_torus(law):
    return law.startswith("torus")


class Cut:
    """Angles as plain numbers in [0, 2π), counted from the angle that is rarest among the rows."""

    def __init__(self, angles):
        bins = [np.histogram(column % FULL_TURN, 64, (0, FULL_TURN)) for column in angles.T]
        self.origin = np.array([edges[np.argmin(count)] + FULL_TURN / 128 for count, edges in bins])

    def __call__(self, angles):
        return (angles - self.origin) % FULL_TURN


def with_images(x, margin):
    """Rows, and their images a turn away when an angle is within the margin of the cut; and the row that each came from."""
    row = np.arange(len(x))
    for j in range(x.shape[1]):
        low, high = x[:, j] < margin, x[:, j] > FULL_TURN - margin
        turn = np.eye(x.shape[1])[j] * FULL_TURN
        x = np.concatenate([x, x[low] + turn, x[high] - turn])
        row = np.concatenate([row, row[low], row[high]])
    return x, row


class Wide:
    """A wide density, of which every peer contains the share 1/n."""

    def __init__(self, law, x):
        self.share, self.normal = 1 / len(x), None
        self.constant = -np.log(2 * FULL_TURN) if law == "sphere" else -x.shape[1] * np.log(FULL_TURN)
        if law == "plane":
            from scipy.stats import multivariate_normal

            self.normal = multivariate_normal(x.mean(0), 4 * np.cov(x.T))

    def mixed(self, x, log_density):
        wide = self.normal.logpdf(x) if self.normal else self.constant
        return np.logaddexp(log_density + np.log1p(-self.share), wide + np.log(self.share))


def kernels_on_sphere(centres, covariance, nodes=41, reach=6.0):
    """∫ over S² of a normal density around each centre: a grid in the tangent plane, projected from the origin."""
    line, step = np.linspace(-1, 1, nodes, retstep=True)
    scale = reach * np.sqrt(np.linalg.eigvalsh(covariance)[-1])
    a, b = (scale * t.ravel() for t in np.meshgrid(line, line))
    jacobian = (1 + a**2 + b**2) ** -1.5 * (scale * step) ** 2
    precision, constant = np.linalg.inv(covariance), np.sqrt(np.linalg.det(FULL_TURN * covariance))
    masses = np.empty(len(centres))
    for i, centre in enumerate(centres):
        side = np.cross(centre, np.eye(3)[np.argmin(np.abs(centre))])
        side /= np.linalg.norm(side)
        y = centre + a[:, None] * side + b[:, None] * np.cross(centre, side)
        away = y / np.sqrt(1 + a**2 + b**2)[:, None] - centre
        masses[i] = np.exp(-((away @ precision) * away).sum(1) / 2) @ jacobian / constant
    return masses
