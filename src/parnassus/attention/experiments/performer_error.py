"""Performer: approximation error of random features, and accuracy in a trained transformer (Diehl sec. 4.1)."""

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from parnassus.atlas import exponent
from parnassus.attention import (
    Block,
    PerformerAttention,
    VisionTransformer,
    antithetic_pairs,
    fused_attention,
    gaussian_directions,
    orthogonal_directions,
    performer_attention,
    vit,
)
from parnassus.data import Dataset, Split, open_data
from parnassus.layers import Evaluation, check_labels
from parnassus.layers.commands.image_classifiers import evaluate_split
from parnassus.optim import Adam
from parnassus.report import FAINT, PALETTE, curves, subplots
from parnassus.setting_types import ImageData
from parnassus.train import Positive, Run, at_least, at_most, between, descend, no_band
from parnassus.train.timing import measure_seconds

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("D4.1.4", "D4.1.5", "D4.1.6")
expected = {
    "error_exponent": between(-0.6, -0.25, "exponent of the output error in the number k of random features"),
    "cosh_ratio": between(
        0.85, 1.1, "ratio of the error with antithetic pairs to that of plain features, equal k, mean over k"
    ),
    "orthogonal_ratio": at_most(
        1.0, "ratio of the error with orthogonal to that with independent directions, mean over k"
    ),
    "softmax_loss": at_most(0.4, "test loss of the trained model with softmax attention, nats per image"),
    "few_features_loss": no_band("test loss with the fewest random features instead of the softmax, nats per image"),
    "many_features_loss": no_band("test loss with the most random features instead of the softmax, nats per image"),
    "loss_increase_removed": at_least(0.3, "fraction of the loss increase that the most features remove"),
    "softmax_accuracy": at_least(0.88, "test accuracy of the trained model with softmax attention"),
    "performer_accuracy": no_band("test accuracy with the most random features, without fine-tuning"),
    "accuracy_before_finetuning": no_band("test accuracy before fine-tuning, mean over samples of the directions"),
    "finetuned_accuracy": at_least(0.78, "test accuracy after fine-tuning, mean over samples of the directions"),
    "time_exponent": between(0.6, 1.5, "exponent of time in the sequence length for long sequences, Performer"),
    "softmax_time_exponent": no_band("exponent of time in the sequence length for long sequences, exact attention"),
}
profiles: dict[str, dict[str, object]] = {
    "smoke": {
        "steps": 5, "finetune_steps": 2, "feature_counts": (8, 32), "num_draws": 2, "width": 16, "lengths": (64, 128),
    },
    "gpu": {
        "data": "mnist", "patch_size": 4, "steps": 4_000, "finetune_steps": 500, "width": 128, "num_layers": 6,
        "batch_size": 256, "lengths": (1_024, 4_096, 16_384, 65_536),
    },
}  # fmt: skip
Draw = Callable[[int, int], Tensor]


@dataclass(frozen=True)
class Experiment:
    data: ImageData = "digits"  # images by class: name of a data set, or path of a folder
    image_size: Positive[int] | None = None  # resize the images of a folder to squares with sides of this many pixels
    steps: Positive[int] = 400  # gradient steps with softmax attention
    batch_size: Positive[int] = 64  # images per gradient step
    patch_size: Positive[int] = 2  # side of a patch in pixels
    width: Positive[int] = 32  # width of the vision transformer
    num_heads: Positive[int] = 2  # attention heads per layer
    num_layers: Positive[int] = 2  # transformer blocks
    num_features: Positive[int] = 64  # random features in fine-tuning
    finetune_steps: Positive[int] = 100  # gradient steps of fine-tuning with random features
    feature_counts: tuple[Positive[int], ...] = (16, 64, 256, 1_024)  # numbers of random features k
    num_draws: Positive[int] = 8  # draws of the directions over which results are averaged
    lengths: tuple[Positive[int], ...] = (256, 512, 1_024, 2_048, 4_096)  # sequence lengths for the time measurement

    def model(self, shape: Sequence[int], classes: int) -> VisionTransformer:
        return vit(shape, classes, patch=self.patch_size, width=self.width, heads=self.num_heads, depth=self.num_layers)

    def __call__(self, run: Run) -> dict[str, float]:
        errors = self.errors(run.device)
        run.figure(
            "output error",
            curves(errors, x_label="random features k", y_label="relative RMS error", log_x=True, log_y=True),
            "Error of Performer attention against softmax attention for random queries and keys, at equal numbers of "
            "features. All errors decrease as 1/√k; orthogonal directions reduce them. Antithetic pairs have hardly "
            "any effect: they at least halve the variance per direction, but also halve the number of directions.",
        )

        data = open_data(self.data, size=self.image_size).to(run.device)
        test = Split(data.test.x[:1_000], check_labels(data.test.y, len(data.classes))[:1_000])
        model = run.build(self.model, shape=list(data.shape), classes=len(data.classes))
        model, optimizer = run.prepare(model, partial(Adam, lr=3e-3))
        for step, loss in descend(run, model, optimizer, data.train.pairs(self.batch_size, self.steps)):
            run.log(step, loss=loss)
        exact = evaluate_split(model, test)
        evaluations = {
            name: [self.evaluate_with_random_features(model, count, draw, test) for count in self.feature_counts]
            for name, draw in DRAWS.items()
        }
        run.figure(
            "trained model",
            plot_with_random_features(self.feature_counts, evaluations, exact),
            "Random features replace the softmax in a trained vision transformer without fine-tuning: test loss (left) "
            "and test accuracy (right).",
        )
        before, after = self.finetune(run, model, data, test)
        times = self.times(run.device)
        run.figure(
            "time",
            curves(times, x_label="sequence length (tokens)", y_label="time (s)", log_x=True, log_y=True),
            "Time of one attention head against the sequence length: linear with random features.",
        )
        best = evaluations["orthogonal, antithetic"]
        run.note(
            "results",
            f"The test loss is {exact.loss:.3f} nats per image with the softmax, {best[0].loss:.3f} with "
            f"{self.feature_counts[0]} and {best[-1].loss:.3f} with {self.feature_counts[-1]} random features instead. "
            "Trained weights produce large scores, and the variance of the estimate grows with e^{‖q+k‖²}, so that a "
            "trained model needs more features than random queries. Fine-tuning is cheaper: "
            f"{self.finetune_steps} steps with {self.num_features} features, resampled at each step, raise the "
            f"accuracy from {before.accuracy:.1%} to {after.accuracy:.1%}, both averaged over draws of the directions.",
        )
        mean = {name: torch.tensor(values) for name, (_, values) in errors.items()}
        return {
            "error_exponent": exponent(*errors["independent"]),
            "cosh_ratio": float((mean["independent, antithetic"] / mean["independent"]).mean()),
            "orthogonal_ratio": float((mean["orthogonal"] / mean["independent"]).mean()),
            "softmax_loss": exact.loss,
            "few_features_loss": best[0].loss,
            "many_features_loss": best[-1].loss,
            "loss_increase_removed": (best[0].loss - best[-1].loss) / max(best[0].loss - exact.loss, 1e-9),
            "softmax_accuracy": exact.accuracy,
            "performer_accuracy": best[-1].accuracy,
            "accuracy_before_finetuning": before.accuracy,
            "finetuned_accuracy": after.accuracy,
            "time_exponent": tail_exponent(*times["Performer"]),
            "softmax_time_exponent": tail_exponent(*times["softmax"]),
        }

    @torch.no_grad()
    def errors(self, device: torch.device) -> dict[str, tuple[tuple[int, ...], list[float]]]:
        """Relative error of the output by kind of directions and number of features, root mean square over draws."""
        q, k, v = (0.5 * torch.randn(4, 128, 16, device=device) for _ in range(3))
        exact = fused_attention(q, k, v)

        def error(draw: Draw, count: int) -> float:
            out = torch.stack([performer_attention(q, k, v, draw(count, 16).to(device)) for _ in range(self.num_draws)])
            return float(((out - exact).square().mean() / exact.square().mean()).sqrt())

        return {
            name: (self.feature_counts, [error(draw, count) for count in self.feature_counts])
            for name, draw in DRAWS.items()
        }

    def evaluate_with_random_features(
        self, model: VisionTransformer, count: int, draw: Draw, test: Split
    ) -> Evaluation:
        """The test results with random features in every layer, mean over at most four draws."""
        evaluations = [evaluate_split(with_performer(model, count, draw), test) for _ in range(min(self.num_draws, 4))]
        return Evaluation(*torch.tensor(evaluations).mean(0).tolist())

    def finetune(self, run: Run, model: VisionTransformer, data: Dataset, test: Split) -> tuple[Evaluation, ...]:
        """The test results before and after fine-tuning with random features that are resampled at each step."""
        performer, optimizer = run.prepare(
            with_performer(model, self.num_features, orthogonal_directions), partial(Adam, lr=1e-3)
        )
        before = self.evaluate_over_draws(performer, test)
        layers = performer_layers(performer)
        for step, loss in descend(run, performer, optimizer, data.train.pairs(self.batch_size, self.finetune_steps)):
            run.log(step, loss_with_features=loss)
            for layer in layers:
                layer.redraw()
        return before, self.evaluate_over_draws(performer, test)

    def evaluate_over_draws(self, model: VisionTransformer, test: Split) -> Evaluation:
        """The test results, mean over new draws of the directions."""
        evaluations = []
        for _ in range(self.num_draws):
            for layer in performer_layers(model):
                layer.redraw()
            evaluations.append(evaluate_split(model, test))
        return Evaluation(*torch.tensor(evaluations).mean(0).tolist())

    @torch.no_grad()
    def times(self, device: torch.device) -> dict[str, tuple[tuple[int, ...], list[float]]]:
        """Seconds per call for each length, minimum of five."""
        directions = orthogonal_directions(64, 32).to(device)
        kinds: dict[str, Callable[[Tensor, Tensor, Tensor], Tensor]] = {
            "softmax": fused_attention,
            "Performer": partial(performer_attention, directions=directions),
        }
        times: dict[str, tuple[tuple[int, ...], list[float]]] = {name: (self.lengths, []) for name in kinds}
        for length in self.lengths:
            inputs = [torch.randn(1, 1, length, 32, device=device) for _ in range(3)]
            for name, attend in kinds.items():
                times[name][1].append(measure_seconds(partial(attend, *inputs), device, repeats=5))
        return times


def independent_pairs(count: int, width: int) -> Tensor:
    return antithetic_pairs(gaussian_directions(count // 2, width))


def orthogonal_pairs(count: int, width: int) -> Tensor:
    return antithetic_pairs(orthogonal_directions(count // 2, width))


DRAWS: dict[str, Draw] = {
    "independent": gaussian_directions,
    "independent, antithetic": independent_pairs,
    "orthogonal": orthogonal_directions,
    "orthogonal, antithetic": orthogonal_pairs,
}


def with_performer(model: VisionTransformer, features: int, draw: Draw) -> VisionTransformer:
    """A copy of the model with random features in every attention layer."""
    performer = copy.deepcopy(model)
    for block in performer.blocks:
        assert isinstance(block, Block)
        block.attention = PerformerAttention.from_softmax(block.attention, features=features, draw=draw)
    return performer


def performer_layers(model: VisionTransformer) -> list[PerformerAttention]:
    return [layer for layer in model.modules() if isinstance(layer, PerformerAttention)]


def tail_exponent(x: tuple[int, ...], y: list[float]) -> float:
    """The exponent over the three longest sequences; at short lengths the overhead of a call dominates."""
    return exponent(x[-3:], y[-3:])


def plot_with_random_features(
    counts: tuple[int, ...], evaluations: dict[str, list[Evaluation]], exact: Evaluation
) -> "Figure":
    """Test loss and accuracy against the number of random features."""
    figure, axes = subplots(1, 2, size=(10.0, 3.8))
    for (name, by_count), colour in zip(evaluations.items(), PALETTE, strict=False):
        for ax, values in zip(axes[0], zip(*by_count, strict=True), strict=True):
            ax.semilogx(counts, values, "o-", color=colour, label=name, markersize=4)
    for ax, value, label in zip(axes[0], exact, ("test loss (nats per image)", "test accuracy"), strict=True):
        ax.axhline(value, color=FAINT, linestyle="--", linewidth=1.2, label="softmax")
        ax.set(xlabel="random features", ylabel=label)
    axes[0, 0].set_yscale("log")
    axes[0, 0].legend(loc="center left")
    return figure
