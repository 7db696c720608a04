"""Digits named without training: every example votes, nearer ones more (Zhao sec. 11)."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from parnassus.attention.kernel_regression import NadarayaWatson
from parnassus.attention.kernels import Kernel, boxcar, epanechnikov, gaussian, triangular
from parnassus.data import DataError, Dataset, open_data
from parnassus.report import confusion, curves, image_grid
from parnassus.train import Run, at_least, between, reported

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("Z11.5", "Z11.2", "B10.1.3-4")
expected = {
    "accuracy_gaussian": at_least(0.95, "share of unseen digits named rightly, width chosen by examples left out"),
    "accuracy_epanechnikov": at_least(0.95, "the same with Epanechnikov's kernel"),
    "accuracy_triangular": at_least(0.95, "the same with the triangular one"),
    "accuracy_boxcar": at_least(0.95, "the same with the boxcar"),
    "accuracy_nearest": at_least(0.94, "the same of the nearest neighbour alone, the kernel of width 0"),
    "accuracy_wide": between(0.05, 0.95, "the same with a width of 20 times the best"),
    "width": reported("width of the Gaussian that examples left out chose"),
    "voters": reported("effective number of examples that name a digit: 1 / Σ α²"),
}
profiles = {"smoke": {"examples": 150, "candidates": 4}, "gpu": {"data": "mnist", "examples": 20_000}}

KERNELS: dict[str, Kernel] = {
    "gaussian": gaussian,
    "epanechnikov": epanechnikov,
    "triangular": triangular,
    "boxcar": boxcar,
}


@dataclass(frozen=True)
class Experiment:
    data: str = "digits"  # labelled pictures or rows: digits, mnist_mini, mnist, iris, wine, or a file of yours
    examples: int = 1_000  # examples that vote, at most
    candidates: int = 14  # widths to choose from, evenly by factors

    def __call__(self, run: Run) -> dict[str, float]:
        data = self.labelled().to(run.device)
        assert data.train.y is not None
        assert data.test.y is not None
        x, labels = data.train.x.flatten(1)[: self.examples], data.train.y[: self.examples]
        unseen, wanted = data.test.x.flatten(1)[: self.examples], data.test.y[: self.examples]
        apart = torch.cdist(x[:300], x[:300])
        typical = float(apart[apart > 0].quantile(0.05))
        widths = (typical * torch.logspace(-1.2, 0.9, self.candidates)).tolist()
        named, wrong, chosen = {}, {}, {}
        for name, kernel in KERNELS.items():
            voters = NadarayaWatson.fit_classes(x, labels, len(data.classes), kernel=kernel)
            votes = [voters.with_width(width).left_out() for width in widths]
            wrong[name] = [share_wrong(vote, labels) for vote in votes]
            distance = [float((vote - voters.value).square().sum()) for vote in votes]
            chosen[name] = voters.with_width(widths[min(range(len(widths)), key=distance.__getitem__)])
            named[name] = chosen[name].predict(unseen)
        best = chosen["gaussian"]
        assert isinstance(best.width, float)
        run.figure(
            "choosing the width",
            curves(
                {name: (widths, rates) for name, rates in wrong.items()},
                x_label="width",
                y_label="named wrongly",
                log_x=True,
            ),
            "Each example named by all others. With a narrow kernel the nearest one decides; with a wide one all "
            "classes look alike: left out, an example makes its own class one smaller, so that all are named wrongly.",
        )
        if len(data.shape) == 3:
            run.figure(
                "who voted",
                draw_voters(data.test.x[:6], data.train.x[: self.examples], best.weights(unseen[:6])),
                "Left, an unseen picture; right, the five examples that count most, with their weights.",
            )
        run.figure(
            "confusion",
            confusion(wanted.cpu(), named["gaussian"].argmax(1).cpu(), data.classes),
            "Unseen digits and what the Gaussian kernel names them.",
        )
        right = {name: 1 - share_wrong(votes, wanted) for name, votes in named.items()}
        others = {"nearest": best.with_width(1e-6 * best.width), "wide": best.with_width(20 * best.width)}
        right |= {name: 1 - share_wrong(fit.predict(unseen), wanted) for name, fit in others.items()}
        return {
            **{f"accuracy_{name}": share for name, share in right.items()},
            "width": best.width,
            "voters": float((1 / best.weights(unseen).square().sum(1)).median()),
        }

    def labelled(self) -> Dataset:
        data = open_data(self.data)
        if not data.classes:
            raise DataError(f"{self.data} has no classes to vote for: its targets must be names or whole numbers.")
        return data


def share_wrong(votes: Tensor, labels: Tensor) -> float:
    return float((votes.argmax(1) != labels).double().mean())


def draw_voters(pictures: Tensor, examples: Tensor, weights: Tensor) -> "Figure":
    """A row for each picture: itself, then those that count most."""
    most = weights.topk(5)
    rows = torch.cat([pictures[:, None], examples[most.indices]], 1)
    titles = [["asked", *(f"{weight:.2f}" for weight in row)] for row in most.values.tolist()]
    return image_grid(rows.flatten(0, 1), columns=6, titles=[title for row in titles for title in row])
