"""Autoencoder of images with a two-dimensional code, and the quality of its latent space (book sec. 4.5).

By default the images are digits (book ex. 4.1); `--data fashion_mnist --epochs 5` is the run of the text.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.optim import Adam

from parnassus.data import Dataset, open_data
from parnassus.latent.autoencoders.autoencoder import Autoencoder, mean_reconstruction_error
from parnassus.latent.autoencoders.dense_networks import dense_decoder, dense_encoder
from parnassus.latent.commands.evaluate_autoencoder import AutoencoderEvaluate as Evaluate  # noqa: F401 - declares `parnassus evaluate`
from parnassus.latent.latent_space import quality_metrics
from parnassus.latent.latent_space.latent_grid import latent_grid, latent_range, tile_images
from parnassus.latent.linear.pca import PCA
from parnassus.optim.training.learning_rate_schedules import step_decay
from parnassus.report import FAINT, PALETTE, image_grid, scatter, subplots
from parnassus.setting_types import GreyImageData
from parnassus.train import Positive, Run, at_most, between, descend, no_band

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = (
    "B4.1-2", "B4.2-1", "B4.5-1", "B4.5-2", "B4.5-3", "B4.5-4", "B4.5-5", "B4.5-6", "B4.5-7", "B4.5-8", "B4.5-9",
    "B4.5-10",
)  # fmt: skip
expected = {
    "test_error": at_most(0.0495, "squared error per pixel of test images, two-dimensional code"),
    "pca_error": no_band("squared error per pixel of test images, two principal components"),
    "mean_image_error": no_band("squared error per pixel of test images, mean image"),
    "error_over_pca": at_most(0.9, "ratio of the autoencoder's error to that of two principal components"),
    "centre_offset": no_band("distance of the mean code from 0, in standard deviations of the codes"),
    "anisotropy": between(1.05, 2.0, "ratio of the longest to the shortest axis of the codes"),
    "coverage": no_band("fraction of the cells of the plane that contain a code"),
    "hole_depth": no_band("95 % quantile of the relative distance of midpoints between codes to the nearest code"),
    "neighbour_accuracy": no_band("fraction of codes whose nearest neighbour has the same class"),
}
profiles = {"smoke": {"epochs": 1, "num_examples": 640}, "gpu": {"data": "fashion_mnist", "epochs": 30}}


@dataclass(frozen=True)
class Experiment:
    data: GreyImageData = "mnist_mini"  # images: name of a data set, or path of a folder
    image_size: Positive[int] | None = None  # resize the images of a folder to squares with sides of this many pixels
    epochs: Positive[int] = 12  # epochs of training
    batch_size: Positive[int] = 64  # images per gradient step
    width: Positive[int] = 512  # hidden units of encoder and decoder
    decay_epochs: Positive[int] = 10  # epochs between divisions of the learning rate by 10
    num_examples: Positive[int] = 60_000  # maximum number of training images

    def model(self, shape: Sequence[int]) -> Autoencoder:
        return Autoencoder(dense_encoder(shape, 2, width=self.width), dense_decoder(2, shape, width=self.width))

    def __call__(self, run: Run) -> dict[str, float]:
        data = open_data(self.data, size=self.image_size).to(run.device)
        train, test = data.train.take(self.num_examples), data.test.x
        run.figure(
            "network",
            _plot_network(),
            "Autoencoder with N inputs, a code of dimension K and N outputs (book fig. 4.1).",
        )

        epoch_length = train.batches(self.batch_size, 0).steps_per_epoch
        model = run.build(self.model, shape=data.shape)
        model, optimizer = run.prepare(model, partial(Adam, lr=step_decay(0, step_size=self.decay_epochs)))
        for step, loss in descend(run, model, optimizer, train.batches(self.batch_size, self.epochs * epoch_length)):
            run.log(step, loss=loss)
            epochs, rest = divmod(step + 1, epoch_length)
            if rest == 0:
                optimizer.param_groups[0]["lr"] = step_decay(epochs, step_size=self.decay_epochs)
                run.record(step, test_error=mean_reconstruction_error(model, test))
        run.note("learning rate", self._describe_schedule())

        model.eval()  # otherwise batch normalisation depends on the other images of the batch
        with torch.no_grad():
            z = torch.cat([model.encode(x) for x in train.x[:3_200].split(800)])  # 50 batches of 64, as in the text
            errors = self._compare_errors(run, model, train.x, test)
            self._plot_latent_plane(run, model, z, data)
            return {**errors, **self._evaluate_latent_plane(run, model, z, data)}

    def _describe_schedule(self) -> str:
        last = step_decay(max(0, self.epochs - 1), step_size=self.decay_epochs)
        if self.epochs <= self.decay_epochs:
            return f"The learning rate was constant at {last:g}: it decays only after {self.decay_epochs} epochs."
        return f"The learning rate was divided by 10 every {self.decay_epochs} epochs; in the last it was {last:g}."

    def _compare_errors(self, run: Run, model: Autoencoder, train: Tensor, test: Tensor) -> dict[str, float]:
        """Squared error per pixel of the autoencoder, PCA and the mean image on training and test images."""
        train_rows, test_rows = train.flatten(1), test.flatten(1)
        fits = {size: PCA.fit(train_rows, size) for size in (2, 16)}
        errors = {"mean image": [float((x - fits[2].mean).square().mean()) for x in (train_rows, test_rows)]}
        for size, pca in fits.items():
            errors[f"PCA, K = {size}"] = [
                float((x - pca.reconstruct(x)).square().mean()) for x in (train_rows, test_rows)
            ]
        errors["autoencoder, K = 2"] = [mean_reconstruction_error(model, x) for x in (train, test)]
        rows: list[dict[str, str | float]] = [
            {"": name, "training": pair[0], "test": pair[1]} for name, pair in errors.items()
        ]
        run.table("errors", rows, "Squared error per pixel.")
        shown = test[:10]
        images = torch.cat([shown, model(shown), fits[2].reconstruct(test_rows[:10]).view_as(shown)])
        figure = image_grid(images, columns=len(shown), row_labels=["original", "autoencoder", "PCA"])
        run.figure("reconstructions", figure, "Test images, reconstructed from two-dimensional codes.")
        mean_error, pca_error, error = (errors[name][1] for name in ("mean image", "PCA, K = 2", "autoencoder, K = 2"))
        return {
            "test_error": error,
            "pca_error": pca_error,
            "mean_image_error": mean_error,
            "error_over_pca": error / pca_error,
        }

    def _plot_latent_plane(self, run: Run, model: Autoencoder, z: Tensor, data: Dataset) -> None:
        horizontal, vertical = latent_range(z)
        grid = latent_grid(horizontal, vertical).to(z.device)
        tiles = tile_images(model.decode(grid).mean(1), columns=12)
        figure, axes = subplots(size=(6.4, 6.0))
        ax = axes[0, 0]
        ax.imshow(tiles.cpu().numpy(), cmap="gray", extent=(*horizontal, *vertical), aspect="auto", vmin=0, vmax=1)
        ax.grid(visible=False)
        ax.set(xlabel="z₁", ylabel="z₂")
        run.figure("mosaic", figure, "Images decoded from a grid of codes (book fig. 4.3).")
        labels = None if data.train.y is None else data.train.y[: len(z)]
        figure = scatter(z, labels=labels, classes=data.classes, x_label="z₁", y_label="z₂")
        run.figure("codes", figure, "Codes of the training images (book fig. 4.4, whose caption is that of 4.3).")

    def _evaluate_latent_plane(self, run: Run, model: Autoencoder, z: Tensor, data: Dataset) -> dict[str, float]:
        """Quality metrics of the codes and of as many standard normal points (book ex. 4.2)."""
        normal = torch.randn_like(z)
        clouds = {"codes": (z, data.train.y), "normal": (normal, None)}
        rows, holes = [], quality_metrics.find_holes(z)
        for name, (cloud, labels) in clouds.items():
            row: dict[str, str | float] = {
                "": name,
                "centre offset": float(quality_metrics.centre_offset(cloud)),
                "anisotropy": float(quality_metrics.anisotropy(cloud)),
                "coverage": float(quality_metrics.grid_coverage(cloud)),
                "hole depth": float(quality_metrics.find_holes(cloud).depth.quantile(0.95)),
            }
            if labels is not None:
                row["neighbour accuracy"] = float(quality_metrics.neighbour_accuracy(cloud, labels[: len(cloud)]))
            rows.append(row)
        run.table("latent space", rows, "A well-used latent space has values similar to the second row.")
        figure = image_grid(model.decode(holes.deepest(12)), columns=12)
        run.figure("holes", figure, "Images decoded from midpoints between two codes that are far from every code.")
        metrics = {name.replace(" ", "_"): float(value) for name, value in rows[0].items() if name}
        normal_metrics = {name.replace(" ", "_"): float(value) for name, value in rows[1].items() if name}
        run.note("Problem 4.2", _describe_latent_space(metrics, normal_metrics))
        return metrics


COMPARED: dict[str, tuple[str, Callable[[float, float], bool]]] = {
    "centre_offset": ("the offset of the centre", lambda codes, normal: codes > max(2 * normal, 0.2)),
    "anisotropy": ("the ratio of the longest to the shortest axis", lambda codes, normal: codes > 1.5 * normal),
    "coverage": ("the fraction of the covered area", lambda codes, normal: codes < 0.8 * normal),
    "hole_depth": ("the depth of the holes", lambda codes, normal: codes > 1.5 * normal),
}
"""Metrics of the codes, their names, and when they are worse than those of standard normal points."""


def _describe_latent_space(metrics: dict[str, float], normal: dict[str, float]) -> str:
    """The answer to Problem 4.2 in words: the metrics that differ from those of as many standard normal points."""
    faults = [
        f"{name} is {metrics[key]:.2g} instead of {normal[key]:.2g}"
        for key, (name, is_worse) in COMPARED.items()
        if is_worse(metrics[key], normal[key])
    ]
    overlap = ""
    if "neighbour_accuracy" in metrics:
        overlap = f"{1 - metrics['neighbour_accuracy']:.0%} of the codes lie among codes of other classes. "
    if not faults:
        return f"The latent space is used as well as by standard normal points: {overlap or 'all metrics are similar.'}"
    return (
        f"Compared with as many standard normal points, the latent space is not well used: {'; '.join(faults)}. "
        f"{overlap}"
        "The reconstruction loss does not constrain the codes; the loss of a variational autoencoder does."
    )


def _plot_network(inputs: int = 8, latent: int = 3) -> "Figure":
    """The N-K-N network as a graph."""
    figure, axes = subplots(size=(5.0, 3.6))
    ax = axes[0, 0]
    layers = [
        [(x, index - (count - 1) / 2) for index in range(count)] for x, count in ((0, inputs), (2, latent), (4, inputs))
    ]
    for left, right in pairwise(layers):
        for start in left:
            for end in right:
                ax.plot(*zip(start, end, strict=True), color=FAINT, linewidth=0.6, zorder=1)
    names = ("x, N values", "h(x) = g(Vx + b₁), K values", "f(h(x)) ≈ x")
    for dots, name, colour in zip(layers, names, PALETTE, strict=False):
        ax.scatter(*zip(*dots, strict=True), s=120, color=colour, zorder=2)
        ax.text(dots[0][0], -inputs / 2 - 0.5, name, ha="center", va="top")
    ax.set_axis_off()
    ax.margins(0.15)
    return figure
