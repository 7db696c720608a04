"""One matrix, two matrices, a bottleneck: the same affine maps learned on different paths (Diehl sec. 1)."""

from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor
from torch.optim import SGD

from parnassus.data import Split
from parnassus.layers import Dense, collapse, identity, mlp, xavier_normal
from parnassus.losses import mean_squared_error
from parnassus.report import curves
from parnassus.train import Run, at_least, at_most, between

covers = ("C-07", "D1.0.3")
expected = {
    "one_matrix": at_most(1e-20, "squared error of one matrix"),
    "two_matrices": at_most(1e-9, "squared error of two"),
    "bottleneck_over_best": between(0.999, 1.1, "squared error of a bottleneck over the least it can have"),
    "bottleneck_rank": between(5, 5, "rank of the bottleneck folded into one matrix"),
    "slower": at_least(1.2, "steps of two matrices over steps of one until the error is a millionth"),
    "one_matrix_ill_conditioned": at_most(1e-9, "relative error of one matrix after 60 steps, singular values 10^±6"),
    "slowest_over_fastest": at_least(30.0, "steps to learn singular value 0.1 over steps to learn 10, two matrices"),
}
profiles: dict[str, dict[str, object]] = {"smoke": {"steps": 60, "samples": 500, "long": 3_000}, "gpu": {}}


@dataclass(frozen=True)
class Experiment:
    size: int = 10  # inputs and outputs
    bottleneck: int = 5  # width of the narrow layer
    samples: int = 10_000  # examples
    batch: int = 16  # examples a step
    steps: int = 3_000  # steps of SGD
    rate: float = 0.02  # learning rate
    long: int = 20_000  # steps on the exact loss, for the singular values

    def __call__(self, run: Run) -> dict[str, float]:
        target = torch.randn(self.size, self.size, dtype=torch.float64)
        x = torch.randn(self.samples, self.size, dtype=torch.float64)
        split = Split(x, x @ target).to(run.device)
        shapes = {
            "one matrix": (self.size, self.size),
            "two matrices": (self.size, self.size, self.size),
            "bottleneck": (self.size, self.bottleneck, self.size),
        }
        folded = {name: self.learn(run, name, sizes, split) for name, sizes in shapes.items()}
        lines = {name: run.curve(f"error/{name}") for name in shapes}
        run.figure(
            "a random matrix",
            curves(lines, x_label="step", y_label="squared error", log_y=True, smooth=True),
            f"A random linear map of {self.size} numbers learned from examples. One and two matrices can both be any "
            f"linear map; a bottleneck of {self.bottleneck} can only be of rank {self.bottleneck}, and comes to rest "
            "at the sum of the squares of the singular values it must leave out.",
        )
        least = float(torch.linalg.svdvals(target)[self.bottleneck :].square().sum()) / self.size
        error = {name: self.error(layer, target) for name, layer in folded.items()}
        wild = self.ill_conditioned()
        learned = self.mode_by_mode(run)
        needed = {name: first_below(values, values[0] / 1e6) for name, (_, values) in lines.items()}
        run.note(
            "what to see",
            "With one matrix the loss is a bowl whose curvature is that of the inputs: what the target is does not "
            "matter, and even singular values from 10⁻⁶ to 10⁶ are learned at one speed. With two, each singular "
            "value s is learned at a speed proportional to s, and the stable rate is set by the largest: for 10⁻⁶ to "
            "10⁶ the smallest would need some 10¹² steps.",
        )
        return {
            "one_matrix": error["one matrix"],
            "two_matrices": error["two matrices"],
            "bottleneck_over_best": error["bottleneck"] / least,
            "bottleneck_rank": float(torch.linalg.matrix_rank(folded["bottleneck"].weight.detach(), rtol=1e-9)),
            "slower": needed["two matrices"] / needed["one matrix"],
            "one_matrix_ill_conditioned": wild,
            "slowest_over_fastest": learned[0] / learned[-1],
        }

    def learn(self, run: Run, name: str, sizes: tuple[int, ...], split: Split) -> Dense:
        """Minibatch SGD on the layers; returns them folded into one."""
        start = mlp(sizes, activation=identity, initialise=xavier_normal()).double()
        network, optimizer = run.prepare(start, partial(SGD, lr=self.rate))
        for step, (x, y) in run.steps(split.pairs(self.batch, self.steps)):
            loss = mean_squared_error(network(x), y)
            run.update(optimizer, loss)
            run.log(step, **{f"error/{name}": loss.detach()})
        return collapse(network).cpu()

    def error(self, layer: Dense, target: Tensor) -> float:
        """The mean squared error on all of N(0, I), exactly."""
        return float(((layer.weight - target).square().sum() + layer.bias.square().sum()).detach()) / self.size

    def ill_conditioned(self) -> float:
        """One matrix on the exact loss ½‖W − A‖², rate ½, A with singular values from 10⁻⁶ to 10⁶."""
        target = with_singular_values(torch.logspace(-6, 6, self.size, dtype=torch.float64))
        weight = torch.zeros_like(target)
        for _ in range(60):
            weight = weight - 0.5 * (weight - target)
        return float((weight - target).norm() / target.norm())

    def mode_by_mode(self, run: Run) -> list[float]:
        """Two small matrices on the exact loss: after how many steps each singular value is half learned."""
        values = torch.logspace(-1, 1, 7, dtype=torch.float64)
        target = with_singular_values(values)
        left, _, right = torch.linalg.svd(target)
        left, right = left.flip(1), right.flip(0)  # the smallest first, as in `values`
        first, second = (1e-2 * torch.randn(7, 7, dtype=torch.float64) for _ in range(2))
        rate, way = 0.1 / float(values.max()), []
        for _ in range(self.long):
            slope = first @ second - target
            first, second = first - rate * slope @ second.T, second - rate * first.T @ slope
            way.append((left.T @ first @ second @ right.T).diagonal())
        share = torch.stack(way) / values
        steps = torch.arange(1, self.long + 1)
        run.figure(
            "one singular value after the other",
            curves(
                {f"{float(s):.2g}": (steps, share[:, i]) for i, s in enumerate(values)},
                x_label="step",
                y_label="share that is learned",
                log_x=True,
            ),
            "Two matrices from a small start, on the exact loss of a target with these singular values: the large ones "
            "are learned first, each in a time that goes as one over its size. One matrix would learn all of them at "
            "once.",
        )
        return [first_above(share[:, i], 0.5) for i in range(7)]


def with_singular_values(values: Tensor) -> Tensor:
    """A random square matrix that has these."""
    left, right = (torch.linalg.qr(torch.randn(len(values), len(values)).to(values)).Q for _ in range(2))
    matrix: Tensor = left * values @ right.T
    return matrix


def first_below(values: list[float], bound: float) -> float:
    """The number of points until a curve is below the bound; all of them and one more if it never is."""
    return float(next((index for index, value in enumerate(values, 1) if value < bound), len(values) + 1))


def first_above(values: Tensor, bound: float) -> float:
    reached = (values > bound).nonzero()
    return float(reached[0, 0] + 1 if len(reached) else len(values) + 1)
