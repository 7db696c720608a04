"""Linear autoencoder trained by gradient descent: it finds the principal subspace of PCA (book sec. 4.3)."""

import time
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor
from torch.nn.functional import cosine_similarity
from torch.optim import SGD

from parnassus.data import Split, TableSettings
from parnassus.latent.linear.linear_autoencoder import LinearAutoencoder
from parnassus.latent.linear.pca import PCA
from parnassus.latent.linear.projection import least_squares_code, principal_angles, second_moment
from parnassus.report import curves, heatmap
from parnassus.runs.metrics import read_metrics
from parnassus.setting_types import AnyData
from parnassus.train import Positive, Run, at_most, descend
from parnassus.train.timing import Stopwatch

covers = ("B4.3-1", "B4.3-3", "B4.3-12", "B4.3-13", "B4.3-14")
expected = {
    "largest_angle": at_most(1e-3, "largest angle between the learned and the principal subspace"),
    "excess_error": at_most(3e-5, "relative difference between the error and that of PCA"),
    "code_distance": at_most(0.01, "relative distance of the code to that of the pseudo-inverse"),
    "max_eigenvector_cosine": at_most(
        0.999, "largest cosine between a decoder column and any eigenvector; only the span is determined"
    ),
}
profiles = {"smoke": {"steps": 200}}


@dataclass(frozen=True)
class Experiment(TableSettings):
    data: AnyData = "digits"  # examples: name of a data set, or path of a file or folder
    image_size: Positive[int] | None = None  # resize the images of a folder to squares with sides of this many pixels
    latent_dim: Positive[int] = 4  # dimension of the code
    steps: Positive[int] = 3_000  # steps of full-batch gradient descent
    learning_rate: Positive[float] = 0.02  # learning rate, with momentum 0.9

    def __call__(self, run: Run) -> dict[str, float]:
        x = self.load_data(self.image_size).to(run.device).train.x.flatten(1)
        x = x - x.mean(0)  # centred data need no biases
        start = time.perf_counter()
        pca = PCA.fit(x, self.latent_dim)
        pca_seconds = time.perf_counter() - start

        stopwatch = Stopwatch()
        run.keep("training time", stopwatch)
        model = LinearAutoencoder(x.shape[1], self.latent_dim, bias=False)
        model, optimizer = run.prepare(model, partial(SGD, lr=self.learning_rate, momentum=0.9))
        full_batches = Split(x).batches(len(x), self.steps, shuffle=False)
        for step, loss in descend(run, model, optimizer, full_batches):
            if step % 10 == 0:
                run.record(step, loss=loss, **_distances(model, x, pca))
        training_seconds = stopwatch.seconds

        distances = _distances(model, x, pca)
        self._plot_convergence(run)
        z, scores = model.encode(x).detach(), pca.transform(x)
        names = [f"z{index + 1}" for index in range(self.latent_dim)]
        figure = heatmap(_correlation(z), row_labels=names, column_labels=names, diverging=True, annotate=True)
        run.figure("code", figure, "Correlations of the learned code; PCA scores are uncorrelated.")
        rows: list[dict[str, str | float]] = [
            {
                "": "PCA",
                "seconds": pca_seconds,
                "error": float(pca.residual_variance),
                "largest code correlation": _max_correlation(scores),
            },
            {
                "": "gradient descent",
                "seconds": training_seconds,
                "error": float(model.loss(x).detach()),
                "largest code correlation": _max_correlation(z),
            },
        ]
        run.table("comparison", rows, "Both find the same subspace; only the code of PCA is uncorrelated.")
        columns = model.decoder.weight.detach()
        cosines = cosine_similarity(columns[:, :, None], pca.components[:, None, :], dim=0)
        return {**distances, "max_eigenvector_cosine": float(cosines.abs().max())}

    def _plot_convergence(self, run: Run) -> None:
        history = read_metrics(run.folder / "metrics.csv")
        lines = {
            "largest principal angle": history["largest_angle"],
            "relative excess error": history["excess_error"],
            "relative distance of V x and pInv(W) x": history["code_distance"],
        }
        caption = "The decoder's span converges to that of the top eigenvectors, and the encoder to pInv(W)."
        run.figure("convergence", curves(dict(lines), x_label="step", y_label="distance", log_y=True), caption)


@torch.no_grad()
def _distances(model: LinearAutoencoder, x: Tensor, pca: PCA) -> dict[str, float]:
    """Distances to PCA; codes are compared instead of V, whose entries for constant pixels are arbitrary."""
    W = model.decoder.weight
    z = model.encode(x)
    return {
        "largest_angle": float(principal_angles(W, pca.components).max()),
        "excess_error": max(
            float(model.loss(x)) / float(pca.residual_variance) - 1, 1e-9
        ),  # rounding errors may make it negative
        "code_distance": float((z - least_squares_code(W, x)).norm() / z.norm()),
    }


def _correlation(z: Tensor) -> Tensor:
    z = z - z.mean(0)
    return second_moment(z / z.std(0, correction=0))


def _max_correlation(z: Tensor) -> float:
    """The largest correlation between two coordinates of the code."""
    matrix = _correlation(z)
    return float((matrix - matrix.diag().diag()).abs().max())
