"""Does a rise help to repay a loan? A straight line gives one answer to everybody, a curve does not (Zhao sec. 5)."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn
from torch.optim import Adam

from parnassus.layers import LinearRegression, mlp, sigmoid
from parnassus.report import curves, network_diagram
from parnassus.train import Run, at_least, at_most, between

covers = ("Z5.1", "Z5.2", "Z5.3")
expected = {
    "line_ratio": between(0.999, 1.001, "what the first 50,000 are worth over 50,000 on top of a million: a line"),
    "log_ratio": at_least(1_000.0, "the same with a logistic map of the outcome and a logarithm of the income"),
    "line_outside": at_least(0.005, "share of people whose chance is outside [0, 1] by the line"),
    "loss_logistic": between(0.44, 0.56, "test loss of the logistic map of a line"),
    "loss_log": at_most(0.47, "test loss with the logarithm of the income"),
    "loss_network": at_most(0.48, "test loss of a network with four hidden units, which sees the income itself"),
}
profiles: dict[str, dict[str, object]] = {"smoke": {"steps": 30, "people": 500}, "gpu": {}}

BASE = 1_000.0
STEPS = torch.tensor([0.0, 50_000.0, 1_000_000.0, 1_050_000.0])


@dataclass(frozen=True)
class Experiment:
    people: int = 8_000  # people in the sample, half of them held out
    steps: int = 800  # full-batch steps of Adam
    rate: float = 0.03  # its learning rate
    hidden: int = 4  # hidden units of the network

    def __call__(self, run: Run) -> dict[str, float]:
        income = 30_000 * torch.exp(1.4 * torch.randn(self.people, 1))
        repaid = torch.bernoulli(true_chance(income))
        half = self.people // 2
        line = LinearRegression.fit(income[:half].double(), repaid[:half, 0].double())
        unit = 100_000.0
        models: dict[str, nn.Module] = {
            "logistic of the income": nn.Sequential(Scaled(unit), *mlp((1, 1), output=sigmoid)),
            "logistic of its logarithm": nn.Sequential(Logarithm(), *mlp((1, 1), output=sigmoid)),
            "network on the income": nn.Sequential(Scaled(unit), *mlp((1, self.hidden, 1), output=sigmoid)),
        }
        for name, model in models.items():
            self.fit(run, name, model, income[:half], repaid[:half])
        chances: dict[str, Callable[[Tensor], Tensor]] = {
            "straight line": lambda x: line.predict(x.double())[:, None].float(),
            **models,
        }

        x = torch.linspace(0, 300_000, 601)[:, None]
        with torch.no_grad():
            lines = {name: (x[:, 0] / 1_000, chance(x)[:, 0]) for name, chance in chances.items()}
            worth = {name: chance(STEPS[:, None])[:, 0].diff()[::2] for name, chance in chances.items()}
            loss = {name: float(log_loss(model(income[half:]), repaid[half:])) for name, model in models.items()}
            outside = (chances["straight line"](income) > 1).float().mean()
        run.figure(
            "one layer",
            network_diagram((4, 1), units=[["x₁", "x₂", "x₃", "x₄"], ["o"]]),
            "A linear model is a network with a single layer: inputs joined to one output (Zhao fig. 1).",
        )
        run.figure(
            "a hidden layer",
            network_diagram((4, 4, 3), units=[["x₁", "x₂", "x₃", "x₄"], ["h₁", "h₂", "h₃", "h₄"], ["o₁", "o₂", "o₃"]]),
            "A multilayer perceptron with a hidden layer of four units (Zhao fig. 2): the first layer learns what to "
            "look at, the last is linear in it.",
        )
        lines["the truth"] = (x[:, 0] / 1_000, true_chance(x)[:, 0])
        run.figure(
            "chance to repay",
            curves(lines, x_label="income in thousands", y_label="chance"),
            "Four answers to the same data, and the law they were drawn from. To the line a rise is worth the same for "
            "everybody, and large incomes take it out of [0, 1]; a logistic map of the outcome keeps it inside; a "
            "logarithm of the income, or a few hidden units that find it out themselves, get the shape.",
        )
        rows: list[dict[str, str | float]] = [
            {"model": name, "first 50,000": f"{float(rise[0]):.3f}", "from 1 to 1.05 million": f"{float(rise[1]):.2g}"}
            for name, rise in worth.items()
        ]
        run.table("what a rise is worth", rows, "The change of the chance to repay.")
        ratio = {name: float(rise[0] / rise[1].clamp(min=1e-9)) for name, rise in worth.items()}
        return {
            "line_ratio": ratio["straight line"],
            "log_ratio": ratio["logistic of its logarithm"],
            "line_outside": float(outside),
            "loss_logistic": loss["logistic of the income"],
            "loss_log": loss["logistic of its logarithm"],
            "loss_network": loss["network on the income"],
        }

    def fit(self, run: Run, name: str, model: nn.Module, x: Tensor, y: Tensor) -> None:
        _, optimizer = run.prepare(model, partial(Adam, lr=self.rate))
        x, y = x.to(run.device), y.to(run.device)
        for step, _ in run.steps(self.steps):
            loss = log_loss(model(x), y)
            run.update(optimizer, loss)
            run.log(step, **{f"loss/{name}": loss.detach()})
        model.cpu()


def true_chance(income: Tensor) -> Tensor:
    """The law of this small world: logistic in the logarithm, one half at 20,000."""
    return sigmoid(1.5 * torch.log((income + BASE) / 20_000))


def log_loss(chance: Tensor, outcome: Tensor) -> Tensor:
    return nn.functional.binary_cross_entropy(chance, outcome)


class Logarithm(nn.Module):
    """log((income + 1,000) / 20,000)."""

    def forward(self, income: Tensor) -> Tensor:
        return torch.log((income + BASE) / 20_000)


class Scaled(nn.Module):
    """The income in a unit that makes it a number of moderate size."""

    def __init__(self, unit: float) -> None:
        super().__init__()
        self.unit = unit

    def forward(self, income: Tensor) -> Tensor:
        return income / self.unit
