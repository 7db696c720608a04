"""The posterior of probabilistic PCA for a point in the plane (book sec. 5.1)."""

from typing import Annotated

import torch
from torch import Tensor

from parnassus.atlas.decorators import probe
from parnassus.latent.linear.pca import PCA
from parnassus.latent.linear.probabilistic_pca import PPCA
from parnassus.probability import normal_density
from parnassus.widgets import Answer, Curves, FloatSlider, Numbers, Plane, PointPicker, Trajectories

AXIS = torch.tensor([0.8, 0.6])  # direction of W of the model that the points are sampled from
LIMIT, GRID_SIZE = 6.0, 81  # limit of both coordinates of the plane, and grid points per axis


def _sample_points() -> Tensor:
    """Three hundred points along a line, with noise of standard deviation 0.7 around it."""
    generator = torch.Generator().manual_seed(0)
    model = PPCA(torch.zeros(2), 2 * AXIS[:, None], torch.tensor(0.5))
    return model.sample(300, generator=generator)


POINTS = _sample_points()
FITTED = PCA.fit(POINTS, 1)
PLANE = Plane((-LIMIT, LIMIT), (-LIMIT, LIMIT), POINTS, x_label="x₁", y_label="x₂")


def _ppca(variance: float) -> PPCA:
    """PPCA along the principal axis with this noise variance, which also explains part of the axis' own variance."""
    noise = torch.tensor(variance)
    W = FITTED.components * (FITTED.explained_variance - noise).clamp(min=1e-6).sqrt()
    return PPCA(FITTED.mean, W, noise)


@probe()
@torch.no_grad()
def ppca_posterior(
    place: Annotated[tuple[float, float], PointPicker("a point x", PLANE)] = (3.0, -1.0),
    variance: Annotated[float, FloatSlider("noise variance, σ²", 1e-3, 3.0, log=True)] = 0.5,
) -> list[Answer]:
    """The posterior of the code of a point, and the reconstruction from it (book sec. 5.1).

    For small noise the posterior mean is the projection of the point on the principal axis, and its variance is small.
    With more noise the reconstruction shrinks towards the mean, and the posterior approaches the prior N(0, 1). Points
    with the same projection have the same posterior; only their density differs.
    """
    model = _ppca(variance)
    x = torch.tensor([place])
    posterior = model.posterior(x)
    mean, deviation = float(posterior.mean), float(posterior.variance.sqrt())
    reconstruction, projection = model.reconstruct(x), FITTED.reconstruct(x)
    values: dict[str, float | str] = {
        "E[ν | x]": mean,
        "standard deviation of ν given x": deviation,
        "reconstruction W E[ν | x] + μ": _format_point(reconstruction),
        "projection of x by PCA": _format_point(projection),
        "ln p(x)": float(model.log_prob(x)),
        "mean ln p(x) of all points": float(model.log_prob(POINTS).mean()),
        "maximum-likelihood σ²": float(FITTED.residual_variance),
    }
    about = "The mean over all points is largest at the maximum-likelihood σ²."
    return [
        _plot_density(model, x, reconstruction, projection),
        _plot_posterior(mean, deviation),
        Numbers("Posterior and density", values, about=about),
    ]


def _format_point(point: Tensor) -> str:
    return f"({float(point[0, 0]):.2f}, {float(point[0, 1]):.2f})"


def _plot_density(model: PPCA, x: Tensor, reconstruction: Tensor, projection: Tensor) -> Trajectories:
    """The point, its reconstruction and projection, and the posterior ± two standard deviations, over the density."""
    line = torch.linspace(-LIMIT, LIMIT, GRID_SIZE)
    up, across = torch.meshgrid(line, line, indexing="ij")
    density = model.log_prob(torch.stack([across, up], -1).reshape(-1, 2)).view(GRID_SIZE, GRID_SIZE)
    posterior = model.posterior(x)
    interval = posterior.mean + posterior.variance.sqrt() * torch.tensor([[-2.0], [2.0]])
    places = {
        "x to its reconstruction": torch.cat([x, reconstruction]),
        "x to its projection": torch.cat([x, projection]),
        "posterior mean ± 2 standard deviations": model.inverse_transform(interval),
    }
    about = "Contours are those of −ln p(x)."
    return Trajectories("Point, reconstruction and density", places, line, line, -density, about=about)


def _plot_posterior(mean: float, deviation: float) -> Curves:
    v = torch.linspace(-4, 4, 321)
    lines = {
        "posterior p(ν | x)": (v.tolist(), normal_density(v, mean=mean, variance=deviation**2).tolist()),
        "prior p(ν)": (v.tolist(), normal_density(v, mean=0.0, variance=1.0).tolist()),
    }
    return Curves("Posterior of the code", lines, x_label="ν", y_label="density", marked=max(-4.0, min(4.0, mean)))
