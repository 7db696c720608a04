"""An autoencoder draws images in the plane: what its map is good for, and what not (book sec. 4.5).

By default it draws digits (book ex. 4.1); `--data fashion_mnist --epochs 5` is the run of the text.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.optim import Adam

from parnassus.data import Dataset, open_data
from parnassus.latent import maps
from parnassus.latent.autoencoder import Autoencoder, dense_decoder, dense_encoder
from parnassus.latent.pca import PCA
from parnassus.optim.schedules import step_decay
from parnassus.report import FAINT, PALETTE, image_grid, scatter, subplots
from parnassus.train import Run, at_most, between, descend, reported

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = (
    "B4.1-2", "B4.2-1", "B4.5-1", "B4.5-2", "B4.5-3", "B4.5-4", "B4.5-5", "B4.5-6", "B4.5-7", "B4.5-8", "B4.5-9",
    "B4.5-10",
)  # fmt: skip
expected = {
    "test_error": at_most(0.0495, "squared error a pixel on unseen images, two numbers an image"),
    "pca_error": reported("the same for two principal components"),
    "mean_image_error": reported("the same for the mean image, no number at all"),
    "error_over_pca": at_most(0.9, "the first over the second"),
    "centre_offset": reported("distance of the codes' centre from 0, in their spread"),
    "anisotropy": between(1.05, 2.0, "longest axis of the cloud of codes over its shortest"),
    "coverage": reported("share of the cells of the plane that hold a code"),
    "hole_depth": reported("how far from every code the places between codes are"),
    "neighbour_accuracy": reported("share of the codes whose nearest neighbour is of their class"),
}
profiles = {"smoke": {"epochs": 1, "examples": 640}, "gpu": {"data": "fashion_mnist", "epochs": 30}}


@dataclass(frozen=True)
class Experiment:
    data: str = "mnist_mini"  # fashion_mnist is the text's; mnist and mnist_mini answer Problem 4.1; or your own folder
    epochs: int = 12  # passes over the training images
    batch: int = 64  # images per step
    width: int = 512  # hidden units of encoder and decoder
    fall: int = 10  # epochs after which the learning rate falls to a tenth
    examples: int = 60_000  # training images to use at most

    def model(self, shape: Sequence[int]) -> Autoencoder:
        return Autoencoder(dense_encoder(shape, 2, width=self.width), dense_decoder(2, shape, width=self.width))

    def __call__(self, run: Run) -> dict[str, float]:
        data = open_data(self.data).to(run.device)
        train, test = data.train.take(self.examples), data.test.x
        run.figure("network", _diagram(), "N numbers in, K in the middle, N out (book fig. 4.1).")

        epoch_length = train.batches(self.batch, 0).epoch
        model = run.build(self.model, shape=data.shape)
        model, optimizer = run.prepare(model, partial(Adam, lr=step_decay(0, every=self.fall)))
        for step, loss in descend(run, model, optimizer, train.batches(self.batch, self.epochs * epoch_length)):
            run.log(step, loss=loss)
            epochs, rest = divmod(step + 1, epoch_length)
            if rest == 0:
                optimizer.param_groups[0]["lr"] = step_decay(epochs, every=self.fall)
                run.record(step, test_error=_error(model, test))
        run.note("learning rate", self._about_the_schedule())

        model.eval()  # otherwise batch normalisation would judge an image by its neighbours
        with torch.no_grad():
            z = torch.cat([model.encode(x) for x in train.x[:3_200].split(800)])  # 50 batches of 64, as in the text
            errors = self._compare(run, model, train.x, test)
            self._draw(run, model, z, data)
            return {**errors, **self._measure(run, model, z, data)}

    def _about_the_schedule(self) -> str:
        last = step_decay(max(0, self.epochs - 1), every=self.fall)
        if self.epochs <= self.fall:
            return (
                f"The learning rate stayed {last:g}: it falls after {self.fall} epochs, and there were {self.epochs}."
            )
        return f"The learning rate fell to a tenth every {self.fall} epochs; in the last it was {last:g}."

    def _compare(self, run: Run, model: Autoencoder, train: Tensor, test: Tensor) -> dict[str, float]:
        """The network beside principal components, by squared error a pixel on seen and unseen images."""
        seen, unseen = train.flatten(1), test.flatten(1)
        fits = {size: PCA.fit(seen, size) for size in (2, 16)}
        errors = {"mean image": [float((x - fits[2].mean).square().mean()) for x in (seen, unseen)]}
        for size, pca in fits.items():
            errors[f"PCA, K = {size}"] = [float((x - pca.reconstruct(x)).square().mean()) for x in (seen, unseen)]
        errors["autoencoder, K = 2"] = [_error(model, x) for x in (train, test)]
        rows: list[dict[str, str | float]] = [
            {"": name, "seen": pair[0], "unseen": pair[1]} for name, pair in errors.items()
        ]
        run.table("errors", rows, "Squared error a pixel.")
        shown = test[:10]
        images = torch.cat([shown, model(shown), fits[2].reconstruct(unseen[:10]).view_as(shown)])
        figure = image_grid(images, columns=len(shown), row_labels=["original", "autoencoder", "PCA"])
        run.figure("reconstructions", figure, "Unseen images, rebuilt from two numbers each.")
        mean, linear, own = (errors[name][1] for name in ("mean image", "PCA, K = 2", "autoencoder, K = 2"))
        return {"test_error": own, "pca_error": linear, "mean_image_error": mean, "error_over_pca": own / linear}

    def _draw(self, run: Run, model: Autoencoder, z: Tensor, data: Dataset) -> None:
        horizontal, vertical = maps.latent_range(z)
        grid = maps.latent_grid(horizontal, vertical).to(z.device)
        picture = maps.mosaic(model.decode(grid).mean(1), columns=12)
        figure, axes = subplots(size=(6.4, 6.0))
        ax = axes[0, 0]
        ax.imshow(picture.cpu().numpy(), cmap="gray", extent=(*horizontal, *vertical), aspect="auto", vmin=0, vmax=1)
        ax.grid(visible=False)
        ax.set(xlabel="z₁", ylabel="z₂")
        run.figure("mosaic", figure, "Images decoded from a raster of codes (book fig. 4.3).")
        labels = None if data.train.y is None else data.train.y[: len(z)]
        figure = scatter(z, labels=labels, classes=data.classes, x_label="z₁", y_label="z₂")
        run.figure("codes", figure, "Where the training images lie (book fig. 4.4, whose caption is that of 4.3).")

    def _measure(self, run: Run, model: Autoencoder, z: Tensor, data: Dataset) -> dict[str, float]:
        """How well the plane is used, beside a standard normal cloud of as many points (book ex. 4.2)."""
        normal = torch.randn_like(z)
        clouds = {"codes": (z, data.train.y), "normal": (normal, None)}
        rows, found = [], maps.holes(z)
        for name, (cloud, labels) in clouds.items():
            row: dict[str, str | float] = {
                "": name,
                "centre offset": float(maps.centre_offset(cloud)),
                "anisotropy": float(maps.anisotropy(cloud)),
                "coverage": float(maps.coverage(cloud)),
                "hole depth": float(maps.holes(cloud).depth.quantile(0.95)),
            }
            if labels is not None:
                row["neighbour accuracy"] = float(maps.neighbour_accuracy(cloud, labels[: len(cloud)]))
            rows.append(row)
        run.table("use of the plane", rows, "A well used latent space looks like the second row.")
        figure = image_grid(model.decode(found.deepest(12)), columns=12)
        run.figure("holes", figure, "Decoded half way between two codes and far from every code.")
        numbers = {name.replace(" ", "_"): float(value) for name, value in rows[0].items() if name}
        run.note("Problem 4.2", _verdict(numbers))
        return numbers


def _verdict(numbers: dict[str, float]) -> str:
    """The answer to Problem 4.2 in words."""
    overlap = ""
    if "neighbour_accuracy" in numbers:
        overlap = f"{1 - numbers['neighbour_accuracy']:.0%} of the codes lie among codes of other classes; "
    return (
        f"Is the latent space well used? Not very: {overlap}its longest axis is {numbers['anisotropy']:.1f} times its "
        "shortest, its centre is wherever training left it, and places between codes decode to blends of images. "
        "Nothing in the loss asks for more; the variational autoencoder does."
    )


@torch.no_grad()
def _error(model: Autoencoder, x: Tensor) -> float:
    """Squared error a pixel in evaluation mode; the text's own loop forgets to go back to training mode."""
    was_training = model.training
    model.eval()
    errors = torch.cat([model.reconstruction_error(part) for part in x.split(1_000)])
    model.train(was_training)
    return float(errors.mean())


def _diagram(inputs: int = 8, latent: int = 3) -> "Figure":
    """The N-K-N network as dots and lines."""
    figure, axes = subplots(size=(5.0, 3.6))
    ax = axes[0, 0]
    layers = [
        [(x, index - (count - 1) / 2) for index in range(count)] for x, count in ((0, inputs), (2, latent), (4, inputs))
    ]
    for left, right in pairwise(layers):
        for start in left:
            for end in right:
                ax.plot(*zip(start, end, strict=True), color=FAINT, linewidth=0.6, zorder=1)
    names = ("x, N numbers", "h(x) = g(Vx + b₁), K numbers", "f(h(x)) ≈ x")
    for dots, name, colour in zip(layers, names, PALETTE, strict=False):
        ax.scatter(*zip(*dots, strict=True), s=120, color=colour, zorder=2)
        ax.text(dots[0][0], -inputs / 2 - 0.5, name, ha="center", va="top")
    ax.set_axis_off()
    ax.margins(0.15)
    return figure
