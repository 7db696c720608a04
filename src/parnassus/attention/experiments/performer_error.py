"""How well do random features imitate softmax attention, and in a trained model? (Diehl sec. 4.1)."""

import copy
import time
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
    attend,
    gaussian_directions,
    orthogonal_directions,
    paired,
    performer_attention,
    vit,
)
from parnassus.data import Dataset, Split, open_data
from parnassus.layers import Evaluation, evaluate, require_labels
from parnassus.optim import Adam
from parnassus.report import FAINT, PALETTE, curves, subplots
from parnassus.train import Run, at_least, at_most, between, descend, reported

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("D4.1.4", "D4.1.5", "D4.1.6")
expected = {
    "error_exponent": between(-0.6, -0.25, "slope of the output's error against features, in logarithms"),
    "cosh_ratio": between(0.85, 1.1, "error with paired signs over plain features, equal feature counts, mean"),
    "orthogonal_ratio": at_most(1.0, "error with orthogonal directions over independent ones, mean"),
    "softmax_loss": at_most(0.4, "nats an unseen picture costs the trained model with softmax"),
    "few_features_loss": reported("the same with the fewest random features in its place"),
    "many_features_loss": reported("the same with the most"),
    "recovered": at_least(0.3, "share of what is lost that the most features win back"),
    "softmax_accuracy": at_least(0.88, "share of unseen pictures that the trained model names right"),
    "performer_accuracy": reported("the same with the most random features, never trained with them"),
    "swapped_accuracy": reported("the same with the features with which it learns on, before it does, mean over draws"),
    "learned_on_accuracy": at_least(0.78, "and after a few steps, the directions drawn anew at each, mean over draws"),
    "time_exponent": between(0.6, 1.5, "slope of Performer's time against length, in logarithms, long sequences"),
    "softmax_time_exponent": reported("the same of exact attention"),
}
profiles: dict[str, dict[str, object]] = {
    "smoke": {"steps": 5, "further": 2, "counts": (8, 32), "draws": 2, "width": 16, "lengths": (64, 128)},
    "gpu": {
        "data": "mnist", "patch": 4, "steps": 4_000, "further": 500, "width": 128, "depth": 6, "batch": 256,
        "lengths": (1_024, 4_096, 16_384, 65_536),
    },
}  # fmt: skip
Draw = Callable[[int, int], Tensor]


@dataclass(frozen=True)
class Experiment:
    data: str = "digits"  # pictures with classes: digits, mnist_mini, mnist, cifar10, or a folder of yours
    steps: int = 400  # gradient steps with softmax attention
    batch: int = 64  # pictures a step
    patch: int = 2  # pixels on a side of a patch
    width: int = 32  # of the model
    heads: int = 2  # of each layer
    depth: int = 2  # layers
    features: int = 64  # random features with which the trained model learns on
    further: int = 100  # steps of that
    counts: tuple[int, ...] = (16, 64, 256, 1_024)  # random features
    draws: int = 8  # draws of the directions over which errors are averaged
    lengths: tuple[int, ...] = (256, 512, 1_024, 2_048, 4_096)  # tokens, for the times

    def model(self, shape: Sequence[int], classes: int) -> VisionTransformer:
        return vit(shape, classes, patch=self.patch, width=self.width, heads=self.heads, depth=self.depth)

    def __call__(self, run: Run) -> dict[str, float]:
        errors = self.errors(run.device)
        run.figure(
            "error of the output",
            curves(errors, x_label="random features", y_label="relative error", log_x=True, log_y=True),
            "How far Performer attention is from softmax attention on random queries and keys, at equal numbers of "
            "features. All fall as 1/√k, and directions at right angles take something off. Paired signs hardly do: "
            "a direction then has half the variance or less, but as many features make half as many directions.",
        )

        data = open_data(self.data).to(run.device)
        unseen = Split(data.test.x[:1_000], require_labels(data.test.y, len(data.classes))[:1_000])
        model = run.build(self.model, shape=list(data.shape), classes=len(data.classes))
        model, optimizer = run.prepare(model, partial(Adam, lr=3e-3))
        for step, loss in descend(run, model, optimizer, data.train.pairs(self.batch, self.steps)):
            run.log(step, loss=loss)
        exact = judged(model, unseen)
        swapped = {
            name: [self.swapped(model, count, draw, unseen) for count in self.counts] for name, draw in DRAWS.items()
        }
        run.figure(
            "in a trained model",
            draw_swapped(self.counts, swapped, exact),
            "Random features take the place of softmax in a trained vision transformer, without any further training: "
            "the loss on unseen pictures (left) and the share named right (right).",
        )
        before, after = self.learn_on(run, model, data, unseen)
        times = self.times(run.device)
        run.figure(
            "time",
            curves(times, x_label="tokens", y_label="seconds", log_x=True, log_y=True),
            "Time of one head's attention against the length: the features make it linear.",
        )
        best = swapped["orthogonal, paired"]
        run.note(
            "what to see",
            f"With softmax an unseen picture costs {exact.loss:.3f} nats; with {self.counts[0]} features in its place "
            f"{best[0].loss:.3f}, with {self.counts[-1]} {best[-1].loss:.3f}. Trained weights make large scores, and "
            "the variance of the estimate grows with e^{‖q+k‖²}: a trained model asks for more features than random "
            f"queries do. It is cheaper to let it learn on: {self.further} steps with {self.features} features, drawn "
            f"anew at each step, bring {before.accuracy:.1%} of the pictures named right up to {after.accuracy:.1%}. "
            "One draw of the directions is better than another, so each share is a mean over draws.",
        )
        mean = {name: torch.tensor(values) for name, (_, values) in errors.items()}
        return {
            "error_exponent": exponent(*errors["independent"]),
            "cosh_ratio": float((mean["independent, paired"] / mean["independent"]).mean()),
            "orthogonal_ratio": float((mean["orthogonal"] / mean["independent"]).mean()),
            "softmax_loss": exact.loss,
            "few_features_loss": best[0].loss,
            "many_features_loss": best[-1].loss,
            "recovered": (best[0].loss - best[-1].loss) / max(best[0].loss - exact.loss, 1e-9),
            "softmax_accuracy": exact.accuracy,
            "performer_accuracy": best[-1].accuracy,
            "swapped_accuracy": before.accuracy,
            "learned_on_accuracy": after.accuracy,
            "time_exponent": long_slope(*times["Performer"]),
            "softmax_time_exponent": long_slope(*times["softmax"]),
        }

    @torch.no_grad()
    def errors(self, device: torch.device) -> dict[str, tuple[tuple[int, ...], list[float]]]:
        """Relative error of the output by kind of directions and number of features, root mean square over draws."""
        q, k, v = (0.5 * torch.randn(4, 128, 16, device=device) for _ in range(3))
        exact = attend(q, k, v)

        def error(draw: Draw, count: int) -> float:
            out = torch.stack([performer_attention(q, k, v, draw(count, 16).to(device)) for _ in range(self.draws)])
            return float(((out - exact).square().mean() / exact.square().mean()).sqrt())

        return {name: (self.counts, [error(draw, count) for count in self.counts]) for name, draw in DRAWS.items()}

    def swapped(self, model: VisionTransformer, count: int, draw: Draw, unseen: Split) -> Evaluation:
        """The model judged with random features in every layer, mean over a few draws."""
        judgements = [judged(performer_of(model, count, draw), unseen) for _ in range(min(self.draws, 4))]
        return Evaluation(*torch.tensor(judgements).mean(0).tolist())

    def learn_on(self, run: Run, model: VisionTransformer, data: Dataset, unseen: Split) -> tuple[Evaluation, ...]:
        """The model with few features, before and after some steps in which the directions are drawn anew each time."""
        other, optimizer = run.prepare(
            performer_of(model, self.features, orthogonal_directions), partial(Adam, lr=1e-3)
        )
        before = self.redrawn(other, unseen)
        layers = performers(other)
        for step, loss in descend(run, other, optimizer, data.train.pairs(self.batch, self.further)):
            run.log(step, loss_with_features=loss)
            for layer in layers:
                layer.redraw()
        return before, self.redrawn(other, unseen)

    def redrawn(self, model: VisionTransformer, unseen: Split) -> Evaluation:
        """The model judged with its random features drawn anew several times, mean over the draws."""
        judgements = []
        for _ in range(self.draws):
            for layer in performers(model):
                layer.redraw()
            judgements.append(judged(model, unseen))
        return Evaluation(*torch.tensor(judgements).mean(0).tolist())

    @torch.no_grad()
    def times(self, device: torch.device) -> dict[str, tuple[tuple[int, ...], list[float]]]:
        """Seconds of one call for each length, the least of a few."""
        directions = orthogonal_directions(64, 32).to(device)
        kinds: dict[str, Callable[[Tensor, Tensor, Tensor], Tensor]] = {
            "softmax": attend,
            "Performer": partial(performer_attention, directions=directions),
        }
        found: dict[str, tuple[tuple[int, ...], list[float]]] = {name: (self.lengths, []) for name in kinds}
        for length in self.lengths:
            inputs = [torch.randn(1, 1, length, 32, device=device) for _ in range(3)]
            for name, kind in kinds.items():
                found[name][1].append(min(seconds(kind, inputs) for _ in range(5)))
        return found


def independent_pairs(count: int, width: int) -> Tensor:
    return paired(gaussian_directions(count // 2, width))


def orthogonal_pairs(count: int, width: int) -> Tensor:
    return paired(orthogonal_directions(count // 2, width))


DRAWS: dict[str, Draw] = {
    "independent": gaussian_directions,
    "independent, paired": independent_pairs,
    "orthogonal": orthogonal_directions,
    "orthogonal, paired": orthogonal_pairs,
}


def performer_of(model: VisionTransformer, features: int, draw: Draw) -> VisionTransformer:
    """A copy with random features in every layer."""
    other = copy.deepcopy(model)
    for block in other.blocks:
        assert isinstance(block, Block)
        block.attention = PerformerAttention.like(block.attention, features=features, draw=draw)
    return other


def performers(model: VisionTransformer) -> list[PerformerAttention]:
    """Its layers with random features."""
    return [layer for layer in model.modules() if isinstance(layer, PerformerAttention)]


def judged(model: VisionTransformer, unseen: Split) -> Evaluation:
    assert unseen.y is not None
    return evaluate(model, unseen.x, unseen.y)


def seconds(kind: Callable[[Tensor, Tensor, Tensor], Tensor], inputs: list[Tensor]) -> float:
    began = time.perf_counter()
    float(kind(*inputs).sum())  # waits for the device too
    return time.perf_counter() - began


def long_slope(x: tuple[int, ...], y: list[float]) -> float:
    """The slope over the longest three: at short lengths the calls themselves take most of the time."""
    return exponent(x[-3:], y[-3:])


def draw_swapped(counts: tuple[int, ...], swapped: dict[str, list[Evaluation]], exact: Evaluation) -> "Figure":
    figure, axes = subplots(1, 2, size=(10.0, 3.8))
    for (name, judged), colour in zip(swapped.items(), PALETTE, strict=False):
        for ax, values in zip(axes[0], zip(*judged, strict=True), strict=True):
            ax.semilogx(counts, values, "o-", color=colour, label=name, markersize=4)
    for ax, value, label in zip(axes[0], exact, ("loss (nats)", "named right"), strict=True):
        ax.axhline(value, color=FAINT, linestyle="--", linewidth=1.2, label="softmax")
        ax.set(xlabel="random features", ylabel=label)
    axes[0, 0].set_yscale("log")
    axes[0, 0].legend(loc="center left")
    return figure
