"""A learned kernel finds out which inputs matter; a fixed one must take them all alike (book sec. 10.1.3)."""

from dataclasses import dataclass
from functools import partial
from math import nan
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from parnassus.attention.kernel_regression import NadarayaWatson
from parnassus.attention.learned_kernel import LearnedKernel
from parnassus.attention.scores import BilinearScore, MetricScore
from parnassus.data import DataError, Dataset, Split, open_data, standardised
from parnassus.data.seeds import mix
from parnassus.optim import Adam
from parnassus.report import FAINT, PALETTE, bars, subplots
from parnassus.train import Run, SideBySide, at_most, between, descend, reported

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("B10.1.3-5", "Z11.11", "B10.1.3-6")
expected = {
    "fixed_error": between(0.33, 0.7, "squared error on unseen points, one width for all inputs, the best"),
    "metric_error": at_most(0.33, "the same with widths learned: exp(−½‖W(q − k)‖²)"),
    "product_error": at_most(0.45, "the same with products learned: exp(qᵀ W_qᵀ W_k k), values mapped by W_v"),
    "noise_error": reported("squared error of the true curve: what nobody can know"),
    "mean_error": reported("squared error of the mean of all examples"),
    "weight_of_the_rest": at_most(
        0.2, "how much the learned widths stretch the largest useless input, over the useful"
    ),
    "with_more_pairs": reported("error of the learned widths asked with four times as many examples, not trained on"),
}
profiles = {"smoke": {"steps": 15, "count": 60}, "gpu": {"count": 2_000, "steps": 2_000}}


@dataclass(frozen=True)
class Experiment:
    data: str = "curve"  # a curve in the first of several inputs, or a table of yours whose last column is the target
    count: int = 500  # examples of the curve
    useless: int = 3  # further inputs that say nothing about the target
    noise: float = 0.5  # deviation of the noise
    steps: int = 400  # gradient steps
    batch: int = 150  # examples a step, each guessed from the others of its batch
    lr: float = 0.03  # Adam's learning rate

    def __call__(self, run: Run) -> dict[str, float]:
        data = standardised(self.examples(run.seed)).to(run.device)
        x, y = data.train.x, target(data.train)
        fixed = NadarayaWatson.fit(x, y)
        fixed = fixed.with_width(fixed.best_width(torch.logspace(-1.3, 0.7, 25).tolist()))
        assert isinstance(fixed.width, float)
        models = SideBySide[LearnedKernel](
            {
                "metric": LearnedKernel(MetricScore(x.shape[1], width=fixed.width)),
                "product": LearnedKernel(ProductOfFeatures(x.shape[1], fixed.width), scaled_identity(y.shape[1])),
            }
        )
        models, optimizer = run.prepare(models, partial(Adam, lr=self.lr))
        for step, loss in descend(run, models, optimizer, Split(x, y).pairs(self.batch, self.steps)):
            run.log(step, loss=loss)

        with torch.no_grad():
            return self.judge(run, data, fixed, models)

    def examples(self, seed: int) -> Dataset:
        if self.data == "curve":
            splits = (self.draw(self.count, mix(seed, 0)), self.draw(1_000, mix(seed, 1)))
            return Dataset("curve", *splits)
        data = open_data(self.data)
        if len(data.shape) != 1 or data.train.y is None or not data.train.y.is_floating_point():
            raise DataError(f"{self.data} must be a table of numbers with a quantity to predict in its last column.")
        return data

    def draw(self, count: int, seed: int) -> Split:
        """2 sin x₁ + x₁ and noise; the other inputs are drawn like the first and do nothing."""
        source = torch.Generator().manual_seed(seed)
        x = 5 * torch.rand(count, 1 + self.useless, generator=source)
        return Split(x, truth(x[:, :1]) + self.noise * torch.randn(count, 1, generator=source))

    def judge(
        self, run: Run, data: Dataset, fixed: NadarayaWatson, models: SideBySide[LearnedKernel]
    ) -> dict[str, float]:
        x, y, unseen, wanted = data.train.x, target(data.train), data.test.x, target(data.test)
        guesses = {
            "mean": y.mean(0).expand_as(wanted),
            "fixed": fixed.predict(unseen),
            **{name: model(unseen, x, y) for name, model in models.every()},
        }
        errors = {name: squared(guess, wanted) for name, guess in guesses.items()}
        metric = models.one("metric")
        assert isinstance(metric.score, MetricScore)
        stretch = metric.score.w.norm(dim=0).cpu()
        known = self.data == "curve"
        run.figure(
            "errors",
            bars(
                errors, x_label="squared error on unseen points", reference=("noise", self.noise**2) if known else None
            ),
            "The mean of the examples, and the same examples asked in three ways. W_q and W_k see each input and its "
            "square, for a product of the inputs alone cannot prefer what is near.",
        )
        run.figure(
            "what counts",
            bars(
                {"fixed": 1 / float(torch.as_tensor(fixed.width))}
                | {f"learned, input {index}": float(value) for index, value in enumerate(stretch, 1)},
                x_label="stretch of an input, 1 / width",
            ),
            "How finely each input is looked at: the fixed kernel has one number for all, the learned one keeps what "
            "helps to guess examples that were left out.",
        )
        run.figure(
            "predictions",
            draw_predictions(
                unseen[:, 0].cpu(), wanted.cpu(), {name: guesses[name].cpu() for name in ("fixed", *models)}
            ),
            "Unseen points against the first input: dots are targets, colours predictions.",
        )
        result = {f"{name}_error": error for name, error in errors.items()}
        if not known:
            return result | {"noise_error": nan, "weight_of_the_rest": nan, "with_more_pairs": nan}
        more = self.draw(4 * self.count, mix(run.seed, 2)).to(run.device)
        raw = self.examples(run.seed).train.x.to(run.device)
        again = (more.x - raw.mean(0)) / raw.std(0, correction=0)
        return result | {
            "noise_error": self.noise**2,
            "weight_of_the_rest": float(stretch[1:].max() / stretch[0]) if self.useless else 0.0,
            "with_more_pairs": squared(metric(unseen, again, target(more)), wanted),
        }


class ProductOfFeatures(nn.Module):
    """qᵀ W_qᵀ W_k k of the features (x, x², 1), which begins as the Gaussian kernel of a width: qᵀk/h² − ½‖k‖²/h²."""

    def __init__(self, inputs: int, width: float) -> None:
        super().__init__()
        self.score = BilinearScore(2 * inputs + 1, 2 * inputs + 1)
        with torch.no_grad():
            self.score.m.zero_()
            self.score.m[:inputs, :inputs] = torch.eye(inputs) / width**2
            self.score.m[-1, inputs:-1] = -1 / (2 * width**2)

    def forward(self, query: Tensor, key: Tensor) -> Tensor:
        scores: Tensor = self.score(features(query), features(key))
        return scores


def features(x: Tensor) -> Tensor:
    return torch.cat([x, x.square(), torch.ones_like(x[..., :1])], -1)


def scaled_identity(size: int) -> nn.Linear:
    """W_v, which begins by changing nothing."""
    layer = nn.Linear(size, size)
    nn.init.eye_(layer.weight)
    nn.init.zeros_(layer.bias)
    return layer


def truth(x: Tensor) -> Tensor:
    return 2 * x.sin() + x


def target(split: Split) -> Tensor:
    assert split.y is not None
    return split.y.float().view(len(split), -1)


def squared(guess: Tensor, wanted: Tensor) -> float:
    return float((guess - wanted).square().sum(-1).mean())


def draw_predictions(x: Tensor, wanted: Tensor, guesses: dict[str, Tensor]) -> "Figure":
    figure, axes = subplots(1, len(guesses), size=(3.7 * len(guesses), 3.2))
    for ax, (name, guess), colour in zip(axes[0], guesses.items(), PALETTE, strict=False):
        ax.scatter(x, wanted[:, 0], s=5, color=FAINT, linewidths=0)
        ax.scatter(x, guess[:, 0], s=5, color=colour, linewidths=0)
        ax.set(title=name, xlabel="first input, standardised")
    for ax in axes[0, 1:]:
        ax.sharey(axes[0, 0])
        ax.tick_params(labelleft=False)
    axes[0, 0].set_ylabel("target")
    return figure
