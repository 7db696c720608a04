"""What a point says about its code: the posterior of probabilistic PCA under the pointer (book sec. 5.1)."""

from typing import Annotated

import torch
from torch import Tensor

from parnassus.atlas.marks import probe
from parnassus.latent.pca import PCA
from parnassus.latent.ppca import PPCA
from parnassus.probability import normal_density
from parnassus.touch import Answer, Curves, Numbers, Path, Plane, Point, Real

AXIS = torch.tensor([0.8, 0.6])  # along which the points were drawn
REACH, FINE = 6.0, 81  # half a side of the plane, and places along it where the density is worked out


def _points() -> Tensor:
    """Three hundred points along a line, with noise of deviation 0.7 around it."""
    source = torch.Generator().manual_seed(0)
    model = PPCA(torch.zeros(2), 2 * AXIS[:, None], torch.tensor(0.5))
    return model.sample(300, generator=source)


POINTS = _points()
FITTED = PCA.fit(POINTS, 1)
PLANE = Plane((-REACH, REACH), (-REACH, REACH), POINTS, across_name="x₁", up_name="x₂")


def _model(variance: float) -> PPCA:
    """PPCA along the principal axis with noise of this size, which takes its part of the axis' own variance."""
    noise = torch.tensor(variance)
    return PPCA(FITTED.mean, FITTED.components * (FITTED.variances - noise).clamp(min=1e-6).sqrt(), noise)


@probe()
@torch.no_grad()
def ppca_posterior(
    place: Annotated[tuple[float, float], Point("a point x", PLANE)] = (3.0, -1.0),
    variance: Annotated[float, Real("noise variance, σ²", 1e-3, 3.0, log=True)] = 0.5,
) -> list[Answer]:
    """What a point says about its code, and how it is rebuilt from it (book sec. 5.1).

    Begin with little noise: the code is the foot of the point on the line, and certain. Then add noise: the copy draws
    back towards the mean, for a part of the point is now taken for noise, and the code becomes uncertain up to its
    prior N(0, 1). A point off the line has the code of its foot: only its density tells the two apart.
    """
    model = _model(variance)
    x = torch.tensor([place])
    posterior = model.posterior(x)
    mean, deviation = float(posterior.mean), float(posterior.variance.sqrt())
    copy, foot = model.reconstruct(x), FITTED.reconstruct(x)
    best = float(FITTED.residual)
    numbers: dict[str, float | str] = {
        "E[ν | x]": mean,
        "deviation of ν given x": deviation,
        "copy W E[ν | x] + μ": f"({float(copy[0, 0]):.2f}, {float(copy[0, 1]):.2f})",
        "foot of x on the line, PCA's copy": f"({float(foot[0, 0]):.2f}, {float(foot[0, 1]):.2f})",
        "ln p(x)": float(model.log_prob(x)),
        "ln p of all points, their mean": float(model.log_prob(POINTS).mean()),
        "σ² of maximum likelihood": best,
    }
    about = "The mean over all points is largest where σ² is that of maximum likelihood."
    return [_picture(model, x, copy, foot), _codes(mean, deviation), Numbers("In numbers", numbers, about=about)]


def _picture(model: PPCA, x: Tensor, copy: Tensor, foot: Tensor) -> Path:
    """The point, its copies, and where codes from two deviations below to two above lie, over the density."""
    line = torch.linspace(-REACH, REACH, FINE)
    up, across = torch.meshgrid(line, line, indexing="ij")
    density = model.log_prob(torch.stack([across, up], -1).reshape(-1, 2)).view(FINE, FINE)
    posterior = model.posterior(x)
    spread = posterior.mean + posterior.variance.sqrt() * torch.tensor([[-2.0], [2.0]])
    places = {
        "from x to its copy": torch.cat([x, copy]),
        "from x to its foot": torch.cat([x, foot]),
        "codes within two deviations": model.inverse(spread),
    }
    about = "Level lines are those of −ln p(x)."
    return Path("The point, its copy and the density", places, line, line, -density, about=about)


def _codes(mean: float, deviation: float) -> Curves:
    v = torch.linspace(-4, 4, 321)
    lines = {
        "p(ν | x)": (v.tolist(), normal_density(v, mean=mean, variance=deviation**2).tolist()),
        "p(ν), before x was seen": (v.tolist(), normal_density(v, mean=0.0, variance=1.0).tolist()),
    }
    return Curves("The code, given x", lines, x_label="ν", y_label="density", marked=max(-4.0, min(4.0, mean)))
