"""A linear autoencoder, trained by descent, turns into the principal subspace (book sec. 4.3)."""

import time
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor
from torch.nn.functional import cosine_similarity
from torch.optim import SGD

from parnassus.data import Split, open_data
from parnassus.latent.linear_autoencoder import LinearAutoencoder
from parnassus.latent.pca import PCA
from parnassus.latent.projection import best_code, principal_angles, second_moment
from parnassus.report import curves, heatmap
from parnassus.runs.metrics import read_metrics
from parnassus.train import Run, at_most, descend

covers = ("B4.3-1", "B4.3-3", "B4.3-12", "B4.3-13", "B4.3-14")
expected = {
    "largest_angle": at_most(1e-3, "largest angle between the learned and the principal subspace"),
    "excess_error": at_most(3e-5, "error above the least possible one, relative"),
    "encoder_gap": at_most(0.01, "distance of the code to the pseudo-inverse's, relative"),
    "cosine_to_an_eigenvector": at_most(
        0.999, "largest cosine between a learned direction and any eigenvector: only the span is found"
    ),
}
profiles = {"smoke": {"steps": 200}}


@dataclass(frozen=True)
class Experiment:
    data: str = "digits"  # a built-in name, or your own folder or file
    latent: int = 4  # numbers in the code
    steps: int = 3_000  # steps of descent, each over all examples
    lr: float = 0.02  # learning rate; the momentum is 0.9

    def __call__(self, run: Run) -> dict[str, float]:
        x = open_data(self.data).to(run.device).train.x.flatten(1)
        x = x - x.mean(0)  # centred data need no biases
        began = time.perf_counter()
        pca = PCA.fit(x, self.latent)
        closed_form = time.perf_counter() - began

        began = time.perf_counter()
        model = LinearAutoencoder(x.shape[1], self.latent, bias=False)
        model, optimizer = run.prepare(model, partial(SGD, lr=self.lr, momentum=0.9))
        everything = Split(x).batches(len(x), self.steps, shuffle=False)
        for step, loss in descend(run, model, optimizer, everything):
            if step % 10 == 0:
                run.record(step, loss=loss, **_distances(model, x, pca))
        training = time.perf_counter() - began

        distances = _distances(model, x, pca)
        self._draw(run)
        z, scores = model.encode(x).detach(), pca.transform(x)
        names = [f"z{index + 1}" for index in range(self.latent)]
        figure = heatmap(_correlation(z), row_labels=names, column_labels=names, diverging=True, annotate=True)
        run.figure("code", figure, "Correlations of the learnt code; those of principal scores would be zero.")
        rows: list[dict[str, str | float]] = [
            {"": "PCA", "seconds": closed_form, "error": float(pca.residual), "code correlation": _tangle(scores)},
            {
                "": "descent",
                "seconds": training,
                "error": float(model.loss(x).detach()),
                "code correlation": _tangle(z),
            },
        ]
        run.table("comparison", rows, "An eigensolver and descent find the same subspace; only PCA's code is in order.")
        columns = model.decoder.weight.detach()
        cosines = cosine_similarity(columns[:, :, None], pca.components[:, None, :], dim=0)
        return {**distances, "cosine_to_an_eigenvector": float(cosines.abs().max())}

    def _draw(self, run: Run) -> None:
        history = read_metrics(run.folder / "metrics.csv")
        lines = {
            "largest principal angle": history["largest_angle"],
            "error over the least error, less one": history["excess_error"],
            "codes V x against pInv(W) x": history["encoder_gap"],
        }
        caption = "Descent turns the decoder's span into that of the top eigenvectors and the encoder into pInv(W)."
        run.figure("convergence", curves(dict(lines), x_label="step", y_label="distance", log_y=True), caption)


@torch.no_grad()
def _distances(model: LinearAutoencoder, x: Tensor, pca: PCA) -> dict[str, float]:
    """How far from PCA; codes are compared, not V itself, of which pixels that never vary say nothing."""
    W = model.decoder.weight
    z = model.encode(x)
    return {
        "largest_angle": float(principal_angles(W, pca.components).max()),
        "excess_error": max(float(model.loss(x)) / float(pca.residual) - 1, 1e-9),  # rounding may end below the least
        "encoder_gap": float((z - best_code(W, x)).norm() / z.norm()),
    }


def _correlation(z: Tensor) -> Tensor:
    z = z - z.mean(0)
    return second_moment(z / z.std(0, correction=0))


def _tangle(z: Tensor) -> float:
    """The largest correlation between two coordinates of the code."""
    matrix = _correlation(z)
    return float((matrix - matrix.diag().diag()).abs().max())
