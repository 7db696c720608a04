"""Loan repayment by income: a linear model against logistic regression and a small network (Zhao sec. 5)."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn
from torch.optim import Adam

from parnassus.layers import LinearRegression, mlp, sigmoid
from parnassus.report import curves, network_diagram
from parnassus.train import Positive, Run, at_least, at_most, between

covers = ("Z5.1", "Z5.2", "Z5.3")
expected = {
    "linear_effect_ratio": between(
        0.999,
        1.001,
        "ratio of the effect of the first 50,000 of income to that of 50,000 above a million, linear model",
    ),
    "logistic_effect_ratio": at_least(
        1_000.0, "ratio of the two effects for logistic regression on the logarithm of the income"
    ),
    "linear_fraction_above_1": at_least(
        0.005, "fraction of people whose predicted probability exceeds 1, linear model"
    ),
    "loss_logistic": between(0.44, 0.56, "test loss of logistic regression on the income"),
    "loss_logistic_log_income": at_most(0.47, "test loss of logistic regression on the logarithm of the income"),
    "loss_network": at_most(0.48, "test loss of a network with four hidden units on the income"),
}
profiles: dict[str, dict[str, object]] = {"smoke": {"steps": 30, "num_examples": 500}, "gpu": {}}

BASE = 1_000.0
INCOMES = torch.tensor([0.0, 50_000.0, 1_000_000.0, 1_050_000.0])


@dataclass(frozen=True)
class Experiment:
    num_examples: Positive[int] = 8_000  # people, half of them held out for testing
    steps: Positive[int] = 800  # full-batch steps of Adam
    learning_rate: Positive[float] = 0.03  # learning rate of Adam
    width: Positive[int] = 4  # hidden units of the network

    def __call__(self, run: Run) -> dict[str, float]:
        income = 30_000 * torch.exp(1.4 * torch.randn(self.num_examples, 1))
        repaid = torch.bernoulli(true_probability(income))
        half = self.num_examples // 2
        linear = LinearRegression.fit(income[:half].double(), repaid[:half, 0].double())
        unit = 100_000.0
        models: dict[str, nn.Module] = {
            "logistic on income": nn.Sequential(Scale(unit), *mlp((1, 1), output=sigmoid)),
            "logistic on log income": nn.Sequential(Logarithm(), *mlp((1, 1), output=sigmoid)),
            "network on income": nn.Sequential(Scale(unit), *mlp((1, self.width, 1), output=sigmoid)),
        }
        for name, model in models.items():
            self.fit(run, name, model, income[:half], repaid[:half])
        predictors: dict[str, Callable[[Tensor], Tensor]] = {
            "linear": lambda x: linear.predict(x.double())[:, None].float(),
            **models,
        }

        x = torch.linspace(0, 300_000, 601)[:, None]
        with torch.no_grad():
            lines = {name: (x[:, 0] / 1_000, model(x)[:, 0]) for name, model in predictors.items()}
            effects = {name: model(INCOMES[:, None])[:, 0].diff()[::2] for name, model in predictors.items()}
            loss = {name: float(log_loss(model(income[half:]), repaid[half:])) for name, model in models.items()}
            outside = (predictors["linear"](income) > 1).float().mean()
        run.figure(
            "single-layer network",
            network_diagram((4, 1), units=[["x₁", "x₂", "x₃", "x₄"], ["o"]]),
            "A linear model is a network with a single layer (Zhao fig. 1).",
        )
        run.figure(
            "multilayer perceptron",
            network_diagram((4, 4, 3), units=[["x₁", "x₂", "x₃", "x₄"], ["h₁", "h₂", "h₃", "h₄"], ["o₁", "o₂", "o₃"]]),
            "A multilayer perceptron with a hidden layer of four units (Zhao fig. 2): the first layer learns features, "
            "the last is linear in them.",
        )
        lines["true probability"] = (x[:, 0] / 1_000, true_probability(x)[:, 0])
        run.figure(
            "probability of repayment",
            curves(lines, x_label="income in thousands", y_label="probability of repayment"),
            "Four models of the same data, and the true probability. In the linear model a raise has the same effect "
            "at every income, and large incomes give values outside [0, 1]. Logistic regression stays inside; the "
            "logarithm of the income or a hidden layer is needed for the right shape.",
        )
        rows: list[dict[str, str | float]] = [
            {
                "model": name,
                "first 50,000": f"{float(effect[0]):.3f}",
                "from 1 to 1.05 million": f"{float(effect[1]):.2g}",
            }
            for name, effect in effects.items()
        ]
        run.table("effect of a raise", rows, "Change of the predicted probability of repayment.")
        ratio = {name: float(effect[0] / effect[1].clamp(min=1e-9)) for name, effect in effects.items()}
        return {
            "linear_effect_ratio": ratio["linear"],
            "logistic_effect_ratio": ratio["logistic on log income"],
            "linear_fraction_above_1": float(outside),
            "loss_logistic": loss["logistic on income"],
            "loss_logistic_log_income": loss["logistic on log income"],
            "loss_network": loss["network on income"],
        }

    def fit(self, run: Run, name: str, model: nn.Module, x: Tensor, y: Tensor) -> None:
        _, optimizer = run.prepare(model, partial(Adam, lr=self.learning_rate))
        x, y = x.to(run.device), y.to(run.device)
        for step, _ in run.steps(self.steps):
            loss = log_loss(model(x), y)
            run.update(optimizer, loss)
            run.log(step, **{f"loss/{name}": loss.detach()})
        model.cpu()


def true_probability(income: Tensor) -> Tensor:
    """Probability of repayment: logistic in the logarithm of the income, about one half at 20,000."""
    return sigmoid(1.5 * torch.log((income + BASE) / 20_000))


def log_loss(probability: Tensor, outcome: Tensor) -> Tensor:
    return nn.functional.binary_cross_entropy(probability, outcome)


class Logarithm(nn.Module):
    """log((income + 1,000) / 20,000)."""

    def forward(self, income: Tensor) -> Tensor:
        return torch.log((income + BASE) / 20_000)


class Scale(nn.Module):
    """income / unit."""

    def __init__(self, unit: float) -> None:
        super().__init__()
        self.unit = unit

    def forward(self, income: Tensor) -> Tensor:
        return income / self.unit
