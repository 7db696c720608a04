"""Weight parametrisation: one matrix, a product of two, a bottleneck, trained on one linear map (Diehl sec. 1)."""

from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor
from torch.optim import SGD

from parnassus.data import Split
from parnassus.layers import Dense, identity, merge_affine_layers, mlp, xavier_normal
from parnassus.losses import mean_squared_error
from parnassus.report import curves
from parnassus.train import Positive, Run, at_least, at_most, between

covers = ("C-07", "D1.0.3")
expected = {
    "error_one_matrix": at_most(1e-20, "squared error with one matrix"),
    "error_two_matrices": at_most(1e-9, "squared error with two matrices"),
    "bottleneck_error_ratio": between(0.999, 1.1, "ratio of the squared error with a bottleneck to its minimum"),
    "bottleneck_rank": between(5, 5, "rank of the merged matrix of the bottleneck"),
    "step_ratio_two_matrices": at_least(1.2, "ratio of steps to reduce the error by 10⁶, two matrices to one"),
    "error_ill_conditioned": at_most(1e-9, "relative error with one matrix after 60 steps, singular values 10^±6"),
    "step_ratio_singular_values": at_least(
        30.0, "ratio of steps to learn singular value 0.1 to steps to learn 10, two matrices"
    ),
}
profiles: dict[str, dict[str, object]] = {"smoke": {"steps": 60, "num_examples": 500, "exact_steps": 3_000}, "gpu": {}}


@dataclass(frozen=True)
class Experiment:
    num_features: Positive[int] = 10  # number of inputs and of outputs
    bottleneck: Positive[int] = 5  # width of the bottleneck layer
    num_examples: Positive[int] = 10_000  # training examples
    batch_size: Positive[int] = 16  # examples per gradient step
    steps: Positive[int] = 3_000  # gradient steps of SGD
    learning_rate: Positive[float] = 0.02  # learning rate of SGD
    exact_steps: Positive[int] = 20_000  # gradient steps on the exact loss, for the singular values

    def __call__(self, run: Run) -> dict[str, float]:
        target = torch.randn(self.num_features, self.num_features, dtype=torch.float64)
        x = torch.randn(self.num_examples, self.num_features, dtype=torch.float64)
        split = Split(x, x @ target).to(run.device)
        shapes = {
            "one matrix": (self.num_features, self.num_features),
            "two matrices": (self.num_features, self.num_features, self.num_features),
            "bottleneck": (self.num_features, self.bottleneck, self.num_features),
        }
        merged = {name: self.train(run, name, sizes, split) for name, sizes in shapes.items()}
        lines = {name: run.curve(f"error/{name}") for name in shapes}
        run.figure(
            "squared error",
            curves(lines, x_label="step", y_label="squared error", log_y=True, smooth=True),
            f"A random linear map in {self.num_features} dimensions learned from examples. One and two matrices can "
            f"both represent any linear map; a bottleneck of width {self.bottleneck} is limited to rank "
            f"{self.bottleneck}, and converges to the sum of squares of the remaining singular values.",
        )
        min_error = float(torch.linalg.svdvals(target)[self.bottleneck :].square().sum()) / self.num_features
        error = {name: self.expected_error(layer, target) for name, layer in merged.items()}
        ill_conditioned_error = self.fit_ill_conditioned()
        steps_per_mode = self.count_steps_per_mode(run)
        steps_needed = {name: first_below(values, values[0] / 1e6) for name, (_, values) in lines.items()}
        run.note(
            "results",
            "With one matrix the loss is quadratic and its Hessian depends only on the inputs, not on the target: "
            "singular values from 10⁻⁶ to 10⁶ are learned at the same rate. With two matrices, each singular value "
            "s is learned at a rate proportional to s, and the largest one limits the learning rate: for 10⁻⁶ to "
            "10⁶ the smallest would need about 10¹² steps.",
        )
        return {
            "error_one_matrix": error["one matrix"],
            "error_two_matrices": error["two matrices"],
            "bottleneck_error_ratio": error["bottleneck"] / min_error,
            "bottleneck_rank": float(torch.linalg.matrix_rank(merged["bottleneck"].weight.detach(), rtol=1e-9)),
            "step_ratio_two_matrices": steps_needed["two matrices"] / steps_needed["one matrix"],
            "error_ill_conditioned": ill_conditioned_error,
            "step_ratio_singular_values": steps_per_mode[0] / steps_per_mode[-1],
        }

    def train(self, run: Run, name: str, sizes: tuple[int, ...], split: Split) -> Dense:
        """Train the layers by mini-batch SGD and return them merged into one."""
        start = mlp(sizes, activation=identity, initialise=xavier_normal()).double()
        network, optimizer = run.prepare(start, partial(SGD, lr=self.learning_rate))
        for step, (x, y) in run.steps(split.pairs(self.batch_size, self.steps)):
            loss = mean_squared_error(network(x), y)
            run.update(optimizer, loss)
            run.log(step, **{f"error/{name}": loss.detach()})
        return merge_affine_layers(network).cpu()

    def expected_error(self, layer: Dense, target: Tensor) -> float:
        """Exact mean squared error for inputs from N(0, I)."""
        return float(((layer.weight - target).square().sum() + layer.bias.square().sum()).detach()) / self.num_features

    def fit_ill_conditioned(self) -> float:
        """Relative error of one matrix on the exact loss ½‖W − A‖²; A has singular values from 10⁻⁶ to 10⁶."""
        target = random_matrix(torch.logspace(-6, 6, self.num_features, dtype=torch.float64))
        weight = torch.zeros_like(target)
        for _ in range(60):
            weight = weight - 0.5 * (weight - target)
        return float((weight - target).norm() / target.norm())

    def count_steps_per_mode(self, run: Run) -> list[float]:
        """Steps until each singular value is half learned, two matrices of small initial values on the exact loss."""
        values = torch.logspace(-1, 1, 7, dtype=torch.float64)
        target = random_matrix(values)
        left, _, right = torch.linalg.svd(target)
        left, right = left.flip(1), right.flip(0)  # the smallest first, as in `values`
        first, second = (1e-2 * torch.randn(7, 7, dtype=torch.float64) for _ in range(2))
        rate, history = 0.1 / float(values.max()), []
        for _ in range(self.exact_steps):
            gradient = first @ second - target
            first, second = first - rate * gradient @ second.T, second - rate * first.T @ gradient
            history.append((left.T @ first @ second @ right.T).diagonal())
        fraction = torch.stack(history) / values
        steps = torch.arange(1, self.exact_steps + 1)
        run.figure(
            "singular values",
            curves(
                {f"{float(s):.2g}": (steps, fraction[:, i]) for i, s in enumerate(values)},
                x_label="step",
                y_label="learned fraction of the singular value",
                log_x=True,
            ),
            "Two matrices with small initial values, trained on the exact loss of a target with these singular "
            "values: the large ones are learned first, in a time inversely proportional to their size. One matrix "
            "learns all of them at the same rate.",
        )
        return [first_above(fraction[:, i], 0.5) for i in range(7)]


def random_matrix(values: Tensor) -> Tensor:
    """Random square matrix with these singular values."""
    left, right = (torch.linalg.qr(torch.randn(len(values), len(values)).to(values)).Q for _ in range(2))
    matrix: Tensor = left * values @ right.T
    return matrix


def first_below(values: list[float], bound: float) -> float:
    """Index (from 1) of the first value below the bound, or the number of values + 1 if there is none."""
    return float(next((index for index, value in enumerate(values, 1) if value < bound), len(values) + 1))


def first_above(values: Tensor, bound: float) -> float:
    reached = (values > bound).nonzero()
    return float(reached[0, 0] + 1 if len(reached) else len(values) + 1)
