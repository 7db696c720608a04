"""Attention with a learned kernel suppresses irrelevant inputs in kernel regression (book sec. 10.1.3)."""

from dataclasses import dataclass
from functools import partial
from math import nan
from typing import TYPE_CHECKING, Annotated

import torch
from torch import Tensor, nn

from parnassus.attention.core.scores import BilinearScore, MahalanobisScore
from parnassus.attention.regression.kernel_regression import NadarayaWatson
from parnassus.attention.regression.learned_kernel import LearnedKernel
from parnassus.data import DataError, Dataset, Split, open_data, standardise_features
from parnassus.data.seeds import derive_seed
from parnassus.optim import Adam
from parnassus.report import FAINT, PALETTE, bar_chart, subplots
from parnassus.train import BuiltIn, ModelCollection, NonNegative, Positive, Run, at_most, between, descend, no_band

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("B10.1.3-5", "Z11.11", "B10.1.3-6")
expected = {
    "fixed_error": between(0.33, 0.7, "mean squared error on test points, Gaussian kernel, bandwidth by leave-one-out"),
    "metric_error": at_most(0.33, "mean squared error on test points, learned metric: exp(−½‖W(q − k)‖²)"),
    "product_error": at_most(
        0.45, "mean squared error on test points, bilinear score: exp(qᵀ W_qᵀ W_k k), values mapped by W_v"
    ),
    "noise_error": no_band("irreducible error: noise variance"),
    "mean_error": no_band("mean squared error of the training mean"),
    "irrelevant_scale": at_most(
        0.2, "ratio of the largest learned scale of an irrelevant input to that of the relevant input"
    ),
    "more_examples_error": no_band(
        "mean squared error of the learned metric with four times as many examples, no retraining"
    ),
}
profiles = {"smoke": {"steps": 15, "num_examples": 60}, "gpu": {"num_examples": 2_000, "steps": 2_000}}


@dataclass(frozen=True)
class Experiment:
    data: Annotated[str, BuiltIn("curve")] = "curve"  # data set, or path of a table whose last column is the target
    num_examples: Positive[int] = 500  # training examples of the curve
    num_irrelevant: Positive[int] = 3  # additional inputs that are independent of the target
    noise_std: NonNegative[float] = 0.5  # standard deviation of the noise
    steps: Positive[int] = 400  # gradient steps
    batch_size: Positive[int] = 150  # examples per gradient step, each predicted from the others
    learning_rate: Positive[float] = 0.03  # learning rate of Adam

    def __call__(self, run: Run) -> dict[str, float]:
        data = standardise_features(self.examples(run.seed)).to(run.device)
        x, y = data.train.x, target(data.train)
        fixed = NadarayaWatson.fit(x, y)
        fixed = fixed.with_bandwidth(fixed.best_bandwidth(torch.logspace(-1.3, 0.7, 25).tolist()))
        assert isinstance(fixed.bandwidth, float)
        models = ModelCollection[LearnedKernel](
            {
                "metric": LearnedKernel(MahalanobisScore(x.shape[1], sigma=fixed.bandwidth)),
                "product": LearnedKernel(
                    QuadraticFeatureScore(x.shape[1], fixed.bandwidth), identity_layer(y.shape[1])
                ),
            }
        )
        models, optimizer = run.prepare(models, partial(Adam, lr=self.learning_rate))
        for step, loss in descend(run, models, optimizer, Split(x, y).pairs(self.batch_size, self.steps)):
            run.log(step, loss=loss)

        with torch.no_grad():
            return self.evaluate(run, data, fixed, models)

    def examples(self, seed: int) -> Dataset:
        if self.data == "curve":
            splits = (self.draw(self.num_examples, derive_seed(seed, 0)), self.draw(1_000, derive_seed(seed, 1)))
            return Dataset("curve", *splits)
        data = open_data(self.data)
        if len(data.shape) != 1 or data.train.y is None or not data.train.y.is_floating_point():
            raise DataError(f"{self.data} must be a numeric table with the target in its last column")
        return data

    def draw(self, count: int, seed: int) -> Split:
        """2 sin x₁ + x₁ plus noise; the irrelevant inputs have the distribution of the first."""
        generator = torch.Generator().manual_seed(seed)
        x = 5 * torch.rand(count, 1 + self.num_irrelevant, generator=generator)
        return Split(x, true_function(x[:, :1]) + self.noise_std * torch.randn(count, 1, generator=generator))

    def evaluate(
        self, run: Run, data: Dataset, fixed: NadarayaWatson, models: ModelCollection[LearnedKernel]
    ) -> dict[str, float]:
        x, y, test, targets = data.train.x, target(data.train), data.test.x, target(data.test)
        predictions = {
            "mean": y.mean(0).expand_as(targets),
            "fixed": fixed.predict(test),
            **{name: model(test, x, y) for name, model in models.named_models()},
        }
        errors = {name: mean_squared_error(prediction, targets) for name, prediction in predictions.items()}
        metric = models.model("metric")
        assert isinstance(metric.score, MahalanobisScore)
        scales = metric.score.w.norm(dim=0).cpu()
        is_curve = self.data == "curve"
        run.figure(
            "errors",
            bar_chart(
                errors,
                x_label="mean squared error on test points",
                reference=("noise", self.noise_std**2) if is_curve else None,
            ),
            "The training mean and three kernels on the same examples. The bilinear score acts on each input and its "
            "square, since a bilinear form of the inputs alone cannot express a distance.",
        )
        run.figure(
            "scales",
            bar_chart(
                {"fixed": 1 / float(torch.as_tensor(fixed.bandwidth))}
                | {f"learned, input {index}": float(value) for index, value in enumerate(scales, 1)},
                x_label="scale of an input, 1 / bandwidth",
            ),
            "The scale of each input in the kernel. The fixed kernel has one scale for all inputs; the learned metric "
            "suppresses the irrelevant ones.",
        )
        run.figure(
            "predictions",
            plot_predictions(
                test[:, 0].cpu(), targets.cpu(), {name: predictions[name].cpu() for name in ("fixed", *models)}
            ),
            "Test points against the first input: targets in grey, predictions in colour.",
        )
        result = {f"{name}_error": error for name, error in errors.items()}
        if not is_curve:
            return result | {"noise_error": nan, "irrelevant_scale": nan, "more_examples_error": nan}
        more_examples = self.draw(4 * self.num_examples, derive_seed(run.seed, 2)).to(run.device)
        raw = self.examples(run.seed).train.x.to(run.device)
        more_x = (more_examples.x - raw.mean(0)) / raw.std(0, correction=0)
        return result | {
            "noise_error": self.noise_std**2,
            "irrelevant_scale": float(scales[1:].max() / scales[0]) if self.num_irrelevant else 0.0,
            "more_examples_error": mean_squared_error(metric(test, more_x, target(more_examples)), targets),
        }


class QuadraticFeatureScore(nn.Module):
    """qᵀ W_qᵀ W_k k of the features (x, x², 1), initialised as a Gaussian kernel of bandwidth h: qᵀk/h² − ½‖k‖²/h²."""

    def __init__(self, inputs: int, bandwidth: float) -> None:
        super().__init__()
        self.score = BilinearScore(2 * inputs + 1, 2 * inputs + 1)
        with torch.no_grad():
            self.score.m.zero_()
            self.score.m[:inputs, :inputs] = torch.eye(inputs) / bandwidth**2
            self.score.m[-1, inputs:-1] = -1 / (2 * bandwidth**2)

    def forward(self, query: Tensor, key: Tensor) -> Tensor:
        scores: Tensor = self.score(features(query), features(key))
        return scores


def features(x: Tensor) -> Tensor:
    return torch.cat([x, x.square(), torch.ones_like(x[..., :1])], -1)


def identity_layer(size: int) -> nn.Linear:
    """W_v, initialised as the identity."""
    layer = nn.Linear(size, size)
    nn.init.eye_(layer.weight)
    nn.init.zeros_(layer.bias)
    return layer


def true_function(x: Tensor) -> Tensor:
    return 2 * x.sin() + x


def target(split: Split) -> Tensor:
    assert split.y is not None
    return split.y.float().view(len(split), -1)


def mean_squared_error(prediction: Tensor, targets: Tensor) -> float:
    return float((prediction - targets).square().sum(-1).mean())


def plot_predictions(x: Tensor, targets: Tensor, predictions: dict[str, Tensor]) -> "Figure":
    """Targets and predictions against x, a panel for each model."""
    figure, axes = subplots(1, len(predictions), size=(3.7 * len(predictions), 3.2))
    for ax, (name, prediction), colour in zip(axes[0], predictions.items(), PALETTE, strict=False):
        ax.scatter(x, targets[:, 0], s=5, color=FAINT, linewidths=0)
        ax.scatter(x, prediction[:, 0], s=5, color=colour, linewidths=0)
        ax.set(title=name, xlabel="first input, standardised")
    for ax in axes[0, 1:]:
        ax.sharey(axes[0, 0])
        ax.tick_params(labelleft=False)
    axes[0, 0].set_ylabel("target")
    return figure
