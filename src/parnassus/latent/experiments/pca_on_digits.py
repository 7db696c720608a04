"""PCA of handwritten digits: explained variance and reconstruction errors (book sec. 4.3)."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from parnassus.data import DataError, Dataset, TableSettings
from parnassus.latent.linear.pca import EIGENVALUE_TOLERANCE, PCA
from parnassus.latent.linear.projection import principal_angles
from parnassus.report import PALETTE, curves, image_grid, scatter, subplots
from parnassus.setting_types import AnyData
from parnassus.train import NonNegative, Positive, Run, at_most, between

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("B4.1-4", "B4.3-4", "B4.3-5", "B4.3-9")
expected = {
    "explained_by_2": between(0.28, 0.29, "fraction of the variance explained by two components"),
    "explained_by_up_to_16": between(0.845, 0.855, "fraction of the variance explained by up to 16 components"),
    "test_train_error_ratio": between(0.95, 1.05, "ratio of the test to the training error"),
    "eigenvalue_sum_error": at_most(
        1e-4, "relative difference between the error and the sum of the omitted eigenvalues"
    ),
    "plane_angle": at_most(0.12, "angle between the plane fitted to noisy points and the true one"),
}
profiles = {"smoke": {"num_shown": 4}}


@dataclass(frozen=True)
class Experiment(TableSettings):
    data: AnyData = "digits"  # examples: name of a data set, or path of a file or folder
    image_size: Positive[int] | None = None  # resize the images of a folder to squares with sides of this many pixels
    num_shown: Positive[int] = 10  # test examples to reconstruct
    noise_std: NonNegative[float] = 0.3  # standard deviation of the points around their plane in space

    def __call__(self, run: Run) -> dict[str, float]:
        data = self.load_data(self.image_size).to(run.device)
        train, test = data.train.x.flatten(1), data.test.x.flatten(1)
        features = train.shape[1]
        if features < 3:
            raise DataError(f"examples must have at least 3 features; those of {self.data} have {features}")
        full = PCA.fit(train, features)
        sizes = [size for size in (1, 2, 5, 10, 16, 24, 32, 48) if size < features]
        fits = {size: full.truncate(size) for size in sizes}

        train_errors = {size: _error(pca, train) for size, pca in fits.items()}
        test_errors = {size: _error(pca, test) for size, pca in fits.items()}
        predicted = {size: float(pca.residual_variance) for size, pca in fits.items()}
        self._plot_errors(run, train_errors, test_errors, full)
        self._plot_spectrum(run, full)
        if len(data.shape) == 3:
            self._plot_images(run, data, fits, full)
        self._plot_codes(run, fits[2].transform(test), data)

        points, plane = _sample_points_near_plane(self.noise_std, run.seed)
        fitted = PCA.fit(points, 2)
        caption = "Points in space, the plane fitted by PCA and the projections of the points (book fig. 4.2)."
        run.figure("plane", _plot_plane(points, fitted), caption)
        up_to_16 = max(size for size in sizes if size <= 16)
        return {
            "explained_by_2": float(fits[2].explained_variance_ratio.sum()),
            "explained_by_up_to_16": float(fits[up_to_16].explained_variance_ratio.sum()),
            "test_train_error_ratio": test_errors[up_to_16] / train_errors[up_to_16],
            "eigenvalue_sum_error": max(abs(train_errors[size] / predicted[size] - 1) for size in sizes),
            "plane_angle": float(principal_angles(fitted.components, plane).max()),
        }

    def _plot_errors(self, run: Run, train: dict[int, float], test: dict[int, float], full: PCA) -> None:
        omitted = full.eigenvalues.double().flip(0).cumsum(0).flip(0)[1:]
        omitted = omitted[omitted > EIGENVALUE_TOLERANCE].cpu()
        figure, axes = subplots()
        ax = axes[0, 0]
        ax.semilogy(range(1, len(omitted) + 1), omitted, label="sum of the omitted eigenvalues")
        for marker, (name, errors) in zip(
            "ox", {"training examples": train, "test examples": test}.items(), strict=True
        ):
            ax.semilogy(list(errors), list(errors.values()), marker, label=name, markersize=7)
        ax.set(xlabel="components K", ylabel="⟨‖x − x̂‖²⟩")
        ax.legend()
        run.figure("error", figure, "On the training examples the error equals the sum of the omitted eigenvalues.")

    def _plot_spectrum(self, run: Run, full: PCA) -> None:
        positive = full.eigenvalues[full.eigenvalues > EIGENVALUE_TOLERANCE]
        lines = {"λ": (range(1, len(positive) + 1), positive)}
        figure = curves(lines, x_label="i", y_label="eigenvalue λ_i of the covariance", log_y=True)
        run.figure("spectrum", figure, "Variance of each principal component.")

    def _plot_images(self, run: Run, data: Dataset, fits: dict[int, PCA], full: PCA) -> None:
        x = data.test.x[: self.num_shown].flatten(1)
        rows = {"original": x, **{f"K = {size}": pca.reconstruct(x) for size, pca in fits.items()}}
        images = torch.cat(list(rows.values())).view(-1, *data.shape)
        figure = image_grid(images, columns=len(x), row_labels=list(rows))
        run.figure("reconstructions", figure, "Test examples and their reconstructions from K components.")
        axes = full.components[:, :9].mT
        grey = 0.5 + 0.5 * axes / axes.abs().amax(1, keepdim=True)
        images = torch.cat([full.mean[None], grey]).view(-1, *data.shape)
        names = ["x̄", *(f"u_{index + 1}" for index in range(len(grey)))]
        figure = image_grid(images, columns=len(images), titles=names)
        run.figure("components", figure, "The mean and the first components; in the components, grey is 0.")

    def _plot_codes(self, run: Run, z: Tensor, data: Dataset) -> None:
        figure = scatter(
            z, labels=data.test.y, classes=data.classes, x_label="first component", y_label="second component"
        )
        run.figure("codes", figure, "Test examples in the plane of the first two components.")


def _error(pca: PCA, x: Tensor) -> float:
    return float((x - pca.reconstruct(x)).square().sum(1).double().mean())


def _sample_points_near_plane(noise: float, seed: int) -> tuple[Tensor, Tensor]:
    """Sixty points near a plane, and two vectors that span it."""
    generator = torch.Generator().manual_seed(seed)
    plane = torch.tensor([[1.0, 0.2, 0.5], [-0.3, 1.0, 0.3]]).mT
    inside = torch.randn(60, 2, generator=generator) * torch.tensor([1.5, 0.9]) @ plane.mT
    normal = torch.linalg.cross(plane[:, 0], plane[:, 1])
    return inside + noise * torch.randn(60, 1, generator=generator) * normal / normal.norm(), plane


def _plot_plane(points: Tensor, pca: PCA) -> "Figure":
    figure, grid = subplots(size=(6.0, 5.0), three_d=True)
    ax = grid[0, 0]
    extent = 1.1 * pca.transform(points).abs().amax(0)
    ends = torch.tensor([-1.0, 1.0])
    corners = pca.inverse_transform(torch.cartesian_prod(extent[0] * ends, extent[1] * ends)).view(2, 2, 3).numpy()
    ax.plot_surface(*corners.transpose(2, 0, 1), color=PALETTE[5], alpha=0.25, linewidth=0)
    projections = pca.reconstruct(points)
    for point, projection in zip(points.tolist(), projections.tolist(), strict=True):
        ax.plot(*zip(point, projection, strict=True), color=PALETTE[7], linewidth=0.8)
    ax.scatter(*points.mT.numpy(), color=PALETTE[0], s=16, label="points", depthshade=False)
    ax.scatter(*projections.mT.numpy(), color=PALETTE[1], s=8, label="projections", depthshade=False)
    ax.set_box_aspect((points.amax(0) - points.amin(0)).tolist(), zoom=1.2)
    ax.view_init(elev=20, azim=-75)
    ax.legend(loc="upper left")
    return figure
