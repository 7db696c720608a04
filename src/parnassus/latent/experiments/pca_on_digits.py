"""Principal components of handwritten digits: how few numbers an image needs (book sec. 4.3)."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from parnassus.data import DataError, Dataset, open_data
from parnassus.latent.pca import PCA
from parnassus.latent.projection import principal_angles
from parnassus.report import PALETTE, curves, image_grid, scatter, subplots
from parnassus.train import Run, at_most, between

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("B4.1-4", "B4.3-4", "B4.3-5", "B4.3-9")
expected = {
    "explained_by_2": between(0.28, 0.29, "share of the variance along two components"),
    "explained_by_up_to_16": between(0.845, 0.855, "the same for the most components up to 16"),
    "unseen_over_seen_error": between(0.95, 1.05, "error on unseen digits over that on fitted ones"),
    "gap_to_eigenvalues": at_most(1e-4, "error against the sum of the eigenvalues left out, relative"),
    "plane_angle": at_most(0.12, "angle to a hidden plane found in noisy points"),
}
profiles = {"smoke": {"shown": 4}}
ROUNDING = 1e-7
"""Eigenvalues below this are zeros that single precision did not quite meet."""


@dataclass(frozen=True)
class Experiment:
    data: str = "digits"  # a built-in name, or your own folder or file
    shown: int = 10  # unseen examples to rebuild
    noise: float = 0.3  # spread of the points in space around their plane

    def __call__(self, run: Run) -> dict[str, float]:
        data = open_data(self.data).to(run.device)
        train, test = data.train.x.flatten(1), data.test.x.flatten(1)
        features = train.shape[1]
        if features < 3:
            raise DataError(f"{self.data} must have at least three numbers an example; it has {features}.")
        full = PCA.fit(train, features)
        sizes = [size for size in (1, 2, 5, 10, 16, 24, 32, 48) if size < features]
        fits = {size: full.keep(size) for size in sizes}

        seen = {size: _error(pca, train) for size, pca in fits.items()}
        unseen = {size: _error(pca, test) for size, pca in fits.items()}
        predicted = {size: float(pca.residual) for size, pca in fits.items()}
        self._draw_errors(run, seen, unseen, full)
        self._draw_spectrum(run, full)
        if len(data.shape) == 3:
            self._draw_images(run, data, fits, full)
        self._draw_codes(run, fits[2].transform(test), data)

        points, plane = _points_near_a_plane(self.noise, run.seed)
        found = PCA.fit(points, 2)
        caption = "Points in space, the plane that PCA finds and the feet of the points on it (book fig. 4.2)."
        run.figure("plane", _plane(points, found), caption)
        middle = max(size for size in sizes if size <= 16)
        return {
            "explained_by_2": float(fits[2].explained.sum()),
            "explained_by_up_to_16": float(fits[middle].explained.sum()),
            "unseen_over_seen_error": unseen[middle] / seen[middle],
            "gap_to_eigenvalues": max(abs(seen[size] / predicted[size] - 1) for size in sizes),
            "plane_angle": float(principal_angles(found.components, plane).max()),
        }

    def _draw_errors(self, run: Run, seen: dict[int, float], unseen: dict[int, float], full: PCA) -> None:
        left_out = full.eigenvalues.double().flip(0).cumsum(0).flip(0)[1:]
        left_out = left_out[left_out > ROUNDING].cpu()
        figure, axes = subplots()
        ax = axes[0, 0]
        ax.semilogy(range(1, len(left_out) + 1), left_out, label="Σ of the eigenvalues left out")
        for marker, (name, errors) in zip("ox", {"fitted": seen, "unseen": unseen}.items(), strict=True):
            ax.semilogy(list(errors), list(errors.values()), marker, label=name, markersize=7)
        ax.set(xlabel="components K", ylabel="⟨‖x − x̂‖²⟩")
        ax.legend()
        run.figure("error", figure, "On the fitted examples the error is the sum of the eigenvalues left out.")

    def _draw_spectrum(self, run: Run, full: PCA) -> None:
        positive = full.eigenvalues[full.eigenvalues > ROUNDING]
        lines = {"λ": (range(1, len(positive) + 1), positive)}
        figure = curves(lines, x_label="i", y_label="eigenvalue λ_i of the covariance", log_y=True)
        run.figure("spectrum", figure, "Variance along each principal direction.")

    def _draw_images(self, run: Run, data: Dataset, fits: dict[int, PCA], full: PCA) -> None:
        x = data.test.x[: self.shown].flatten(1)
        rows = {"original": x, **{f"K = {size}": pca.reconstruct(x) for size, pca in fits.items()}}
        images = torch.cat(list(rows.values())).view(-1, *data.shape)
        figure = image_grid(images, columns=len(x), row_labels=list(rows))
        run.figure("reconstructions", figure, "Unseen examples, each rebuilt from K numbers.")
        axes = full.components[:, :9].mT
        grey = 0.5 + 0.5 * axes / axes.abs().amax(1, keepdim=True)
        images = torch.cat([full.mean[None], grey]).view(-1, *data.shape)
        names = ["x̄", *(f"u_{index + 1}" for index in range(len(grey)))]
        figure = image_grid(images, columns=len(images), titles=names)
        run.figure("components", figure, "The mean and the first directions; grey is zero.")

    def _draw_codes(self, run: Run, z: Tensor, data: Dataset) -> None:
        figure = scatter(
            z, labels=data.test.y, classes=data.classes, x_label="first component", y_label="second component"
        )
        run.figure("codes", figure, "Unseen examples in the plane of the first two components.")


def _error(pca: PCA, x: Tensor) -> float:
    return float((x - pca.reconstruct(x)).square().sum(1).double().mean())


def _points_near_a_plane(noise: float, seed: int) -> tuple[Tensor, Tensor]:
    """Sixty points scattered around a plane, and two directions that span it."""
    generator = torch.Generator().manual_seed(seed)
    plane = torch.tensor([[1.0, 0.2, 0.5], [-0.3, 1.0, 0.3]]).mT
    inside = torch.randn(60, 2, generator=generator) * torch.tensor([1.5, 0.9]) @ plane.mT
    normal = torch.linalg.cross(plane[:, 0], plane[:, 1])
    return inside + noise * torch.randn(60, 1, generator=generator) * normal / normal.norm(), plane


def _plane(points: Tensor, pca: PCA) -> "Figure":
    figure, grid = subplots(size=(6.0, 5.0), three_d=True)
    ax = grid[0, 0]
    reach = 1.1 * pca.transform(points).abs().amax(0)
    ends = torch.tensor([-1.0, 1.0])
    sheet = pca.inverse(torch.cartesian_prod(reach[0] * ends, reach[1] * ends)).view(2, 2, 3).numpy()
    ax.plot_surface(*sheet.transpose(2, 0, 1), color=PALETTE[5], alpha=0.25, linewidth=0)
    feet = pca.reconstruct(points)
    for point, foot in zip(points.tolist(), feet.tolist(), strict=True):
        ax.plot(*zip(point, foot, strict=True), color=PALETTE[7], linewidth=0.8)
    ax.scatter(*points.mT.numpy(), color=PALETTE[0], s=16, label="points", depthshade=False)
    ax.scatter(*feet.mT.numpy(), color=PALETTE[1], s=8, label="projections", depthshade=False)
    ax.set_box_aspect((points.amax(0) - points.amin(0)).tolist(), zoom=1.2)
    ax.view_init(elev=20, azim=-75)
    ax.legend(loc="upper left")
    return figure
