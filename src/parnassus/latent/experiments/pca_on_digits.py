"""Principal components of handwritten digits: how few numbers an image needs (book sec. 4.3)."""

from dataclasses import dataclass
from math import pi
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from parnassus.data import open_data
from parnassus.latent.pca import PCA
from parnassus.latent.projection import principal_angles
from parnassus.report import PALETTE, curves, image_grid, scatter, subplots
from parnassus.train import Run, at_least, at_most, between

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("B4.3-4", "B4.3-5", "B4.3-9", "B4.3-14", "B4.1-4")
expected = {
    "explained_by_2": between(0.27, 0.30),
    "explained_by_16": between(0.84, 0.86),
    "test_error_over_train_16": between(0.9, 1.1),
    "largest_gap_to_eigenvalues": at_most(1e-4),
    "plane_angle": at_most(0.05),
}
profiles = {"smoke": {"shown": 4}, "gpu": {}}


@dataclass(frozen=True)
class Experiment:
    data: str = "digits"  # a built-in name, or your own folder or file
    shown: int = 10  # test examples to rebuild
    noise: float = 0.15  # spread of the three-dimensional points around their plane

    def __call__(self, run: Run) -> dict[str, float]:
        data = open_data(self.data).to(run.device)
        train, test = data.train.x.flatten(1), data.test.x.flatten(1)
        full = PCA.fit(train, train.shape[1])
        sizes = [size for size in (1, 2, 5, 10, 16, 20, 30, 40, 50) if size < train.shape[1]]
        fits = {size: PCA(full.mean, full.components[:, :size], full.eigenvalues) for size in sizes}

        error = {size: _error(pca, train) for size, pca in fits.items()}
        unseen = {size: _error(pca, test) for size, pca in fits.items()}
        residual = {size: float(pca.residual) for size, pca in fits.items()}
        lines = {
            "training examples": (sizes, list(error.values())),
            "unseen examples": (sizes, list(unseen.values())),
            "Σ of the eigenvalues left out": (sizes, list(residual.values())),
        }
        run.figure(
            "error", curves(lines, x_label="components K", y_label="⟨‖x − x̂‖²⟩", log_y=True),
            "The error on the fitted examples is the sum of the eigenvalues left out, at every K.",
        )  # fmt: skip
        order = torch.arange(1, len(full.eigenvalues) + 1)
        run.figure(
            "spectrum",
            curves({"λ": (order, full.eigenvalues.clamp(min=1e-6))}, x_label="i", y_label="eigenvalue λ_i", log_y=True),
            "The spectrum of the covariance.",
        )
        if len(data.shape) == 3:
            self._draw_images(run, data.shape, test, fits, full)
        self._draw_codes(run, fits[2].transform(test), data.test.y, data.classes)
        angle = self._draw_plane(run)
        return {
            "explained_by_2": float(fits[2].explained.sum()),
            "explained_by_16": float(fits[16].explained.sum()),
            "test_error_over_train_16": unseen[16] / error[16],
            "largest_gap_to_eigenvalues": max(abs(error[size] / residual[size] - 1) for size in sizes),
            "plane_angle": angle,
        }

    def _draw_images(
        self, run: Run, shape: tuple[int, ...], test: Tensor, fits: dict[int, PCA], full: PCA
    ) -> None:
        x = test[: self.shown]
        rows = {"original": x, **{f"K = {size}": pca.reconstruct(x) for size, pca in fits.items()}}
        images = torch.cat(list(rows.values())).view(-1, *shape)
        run.figure(
            "reconstructions",
            image_grid(images, columns=len(x), row_labels=list(rows)),
            "Unseen examples rebuilt from K numbers each.",
        )
        parts = full.components[:, :10].mT.reshape(-1, *shape)
        scaled = 0.5 + 0.5 * parts / parts.abs().flatten(1).amax(1)[:, None, None, None]
        eigen = torch.cat([full.mean.view(1, *shape), scaled])
        names = ["mean", *(f"u{index}" for index in range(1, len(scaled) + 1))]
        run.figure("components", image_grid(eigen, columns=len(eigen), titles=names), "The mean and the first axes.")

    def _draw_codes(self, run: Run, z: Tensor, labels: Tensor | None, classes: tuple[str, ...]) -> None:
        figure = scatter(z, labels=labels, classes=classes, x_label="first component", y_label="second component")
        run.figure("codes", figure, "Unseen examples in the plane of the first two components.")

    def _draw_plane(self, run: Run) -> float:
        """Points near a plane in space, the plane that PCA finds, and the feet of the points on it (book fig. 4.2)."""
        generator = torch.Generator().manual_seed(run.seed)
        axes = torch.tensor([[1.0, 0.2, 0.5], [-0.3, 1.0, 0.3]]).mT
        normal = torch.linalg.cross(axes[:, 0], axes[:, 1])
        flat = torch.randn(80, 2, generator=generator) * torch.tensor([1.5, 0.8]) @ axes.mT
        x = flat + self.noise * torch.randn(80, 1, generator=generator) * normal / torch.linalg.vector_norm(normal)
        pca = PCA.fit(x, 2)
        run.figure(
            "plane", _plane(x, pca), "Three-dimensional points and the two-dimensional subspace PCA finds (book fig. 4.2)."
        )
        return float(principal_angles(pca.components, axes).max())


def _error(pca: PCA, x: Tensor) -> float:
    return float((x - pca.reconstruct(x)).double().square().sum(1).mean())


def _plane(x: Tensor, pca: PCA) -> "Figure":
    feet = pca.reconstruct(x)
    figure, grid = subplots(size=(6.0, 5.0), three_d=True)
    ax = grid[0, 0]
    reach = 1.15 * pca.transform(x).abs().amax(0)
    steps = torch.linspace(-1, 1, 2)
    corners = torch.cartesian_prod(reach[0] * steps, reach[1] * steps)
    sheet = pca.inverse(corners).view(2, 2, 3)
    ax.plot_surface(*(sheet[:, :, axis].numpy() for axis in range(3)), color=PALETTE[5], alpha=0.25, linewidth=0)
    for point, foot in zip(x.tolist(), feet.tolist(), strict=True):
        ax.plot(*zip(point, foot, strict=True), color=PALETTE[7], linewidth=0.8)
    ax.scatter(*x.mT.numpy(), color=PALETTE[0], s=16, label="points", depthshade=False)
    ax.scatter(*feet.mT.numpy(), color=PALETTE[1], s=8, label="projections", depthshade=False)
    ax.set_box_aspect([float(extent) for extent in x.amax(0) - x.amin(0)])
    ax.view_init(elev=18, azim=-60)
    ax.legend(loc="upper left")
    return figure
