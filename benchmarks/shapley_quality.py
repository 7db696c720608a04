"""Benchmark of the error of Shapley value estimators per model call against shap and captum, drawn as a figure.

The models have 12 features, so that exact values can be computed from all 4,096 coalitions: a smooth network with 50
background rows, the same network with a single baseline (the only case captum supports), and a random forest, which is
not smooth. A call is one row evaluated by the model. For every method of the other libraries and every budget,
`parnassus.shapley.explain` may use at most as many calls as that method did.
Limit: the root mean square error of `explain` is smaller in every comparison.
Run: python benchmarks/shapley_quality.py (requires shap and captum, part of the bench environment)
"""

import argparse
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np
import torch
from sklearn.ensemble import RandomForestRegressor
from torch import Tensor, nn

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import shap
    from captum.attr import KernelShap, ShapleyValueSampling

from parnassus.report.style import INK, PALETTE, save_figure, subplots
from parnassus.shapley import (
    InterventionalValue,
    as_model,
    balanced_permutation_sampling,
    explain,
    explain_exactly,
    explain_with_estimator,
    sample_coalitions,
)
from parnassus.shapley.experiments.shapley_estimator_errors import FEATURES, examples

Model: TypeAlias = Callable[[Tensor], Tensor]
"""A function from rows to one number per row."""
Estimator: TypeAlias = Callable[[Model, Tensor, Tensor, int], Tensor]
"""Estimates values of shape (rows, features) from a model, rows, a background and the approximate calls per row."""
DOCS = Path(__file__).parents[1] / "docs"
BUDGETS = (64, 128, 256, 512, 1_024)
"""Numbers of coalitions, out of 4,096; each costs one call per background row."""
RESERVED = 3
"""Coalitions reserved for the empty and the full one, and for the check that the model is deterministic."""


class CallCounter:
    """A model that counts the rows it evaluates."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.calls = 0

    def __call__(self, x: Tensor) -> Tensor:
        self.calls += len(x)
        return self.model(x)


class Point(NamedTuple):
    """Calls per row, and the root mean square error of a value."""

    calls: float
    error: float


def as_numpy_function(model: Model) -> Callable[[np.ndarray], np.ndarray]:
    return lambda x: model(torch.from_numpy(np.asarray(x))).numpy()


def parnassus_explain(model: Model, x: Tensor, background: Tensor, calls: int) -> Tensor:
    allowed = calls // len(background) - RESERVED
    budget = next(b for b in range(allowed, 1, -1) if len(sample_coalitions(FEATURES, b).coalitions) <= allowed)
    return explain(InterventionalValue(as_model(model), background), x, budget).values[:, 0]


def parnassus_permutations(model: Model, x: Tensor, background: Tensor, calls: int) -> Tensor:
    estimator = partial(balanced_permutation_sampling, antithetic=True)
    value = InterventionalValue(as_model(model), background)
    return explain_with_estimator(estimator, value, x, calls // len(background) - RESERVED).values[:, 0]


def shap_kernel(model: Model, x: Tensor, background: Tensor, calls: int) -> Tensor:
    explainer = shap.KernelExplainer(as_numpy_function(model), background.numpy())
    values = explainer.shap_values(x.numpy(), nsamples=calls // len(background), l1_reg=False, silent=True)
    return torch.from_numpy(values)


def shap_permutations(model: Model, x: Tensor, background: Tensor, calls: int) -> Tensor:
    masker = shap.maskers.Independent(background.numpy(), max_samples=len(background))
    explainer = shap.PermutationExplainer(as_numpy_function(model), masker)
    explanation = explainer(x.numpy(), max_evals=max(calls // len(background), 2 * FEATURES + 1), silent=True)
    return torch.from_numpy(explanation.values)


def shap_sampling(model: Model, x: Tensor, background: Tensor, calls: int) -> Tensor:
    explainer = shap.SamplingExplainer(as_numpy_function(model), background.numpy())
    return torch.from_numpy(explainer.shap_values(x.numpy(), nsamples=calls // 2, silent=True))


def captum_permutations(model: Model, x: Tensor, background: Tensor, calls: int) -> Tensor:
    permutations = max(1, calls // FEATURES)
    values: Tensor = ShapleyValueSampling(model).attribute(
        x, baselines=background, n_samples=permutations, perturbations_per_eval=128
    )
    return values


def captum_kernel(model: Model, x: Tensor, background: Tensor, calls: int) -> Tensor:
    explainer = KernelShap(model)
    arguments = {"baselines": background, "n_samples": calls, "perturbations_per_eval": 128}
    rows = [explainer.attribute(row[None], **arguments) for row in x]
    return torch.cat(rows)


PARNASSUS: dict[str, Estimator] = {
    "Parnassus: explain": parnassus_explain,
    "Parnassus: balanced antithetic permutations": parnassus_permutations,
}
SHAP: dict[str, Estimator] = {
    "shap: KernelExplainer": shap_kernel,
    "shap: PermutationExplainer": shap_permutations,
    "shap: SamplingExplainer": shap_sampling,
}
CAPTUM: dict[str, Estimator] = {
    "captum: ShapleyValueSampling": captum_permutations,
    "captum: KernelShap": captum_kernel,
}


@dataclass(frozen=True)
class Case:
    """A model with the rows to explain and the background rows."""

    model: Model
    x: Tensor
    background: Tensor
    turns: int

    @cached_property
    def exact(self) -> Tensor:
        return explain_exactly(InterventionalValue(as_model(self.model), self.background), self.x).values[:, 0]

    def measure(self, estimator: Estimator, calls: int) -> Point:
        """Return the error over all seeds and the number of calls per row."""
        model, errors = CallCounter(self.model), []
        for seed in range(self.turns):
            np.random.seed(seed)  # noqa: NPY002 (shap uses the global generator)
            torch.manual_seed(seed)
            errors.append(estimator(model, self.x, self.background, calls).double() - self.exact)
        return Point(model.calls / len(self.x) / self.turns, float(torch.stack(errors).square().mean().sqrt()))


def network() -> Model:
    """Train a network on a function of eight of the twelve features."""
    torch.manual_seed(0)
    x, y = examples(2_000, seed=0)
    layers = nn.Sequential(nn.Linear(FEATURES, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1))
    optimizer = torch.optim.Adam(layers.parameters(), lr=5e-3)
    for _ in range(400):
        optimizer.zero_grad()
        (layers(x)[:, 0] - y).square().mean().backward()
        optimizer.step()
    layers.requires_grad_(requires_grad=False)
    return lambda rows: layers(rows.float())[:, 0].double()


def forest() -> Model:
    """Train a random forest, which is piecewise constant, on the same function."""
    x, y = examples(2_000, seed=0)
    trees = RandomForestRegressor(20, random_state=0).fit(x.numpy(), y.numpy())
    return lambda rows: torch.from_numpy(trees.predict(rows.numpy()))


def main() -> None:
    """Print errors at equal calls and draw them; exit with 1 if an error of `explain` is not the smaller one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=3, help="number of seeds per method and budget")
    parser.add_argument("--rows", type=int, default=6, help="number of rows to explain")
    parser.add_argument(
        "--figure", type=Path, default=DOCS / "shapley_quality", help="path of the figure, without suffix"
    )
    turns, count, path = vars(parser.parse_args()).values()
    x, rows = examples(count, seed=1)[0].double(), examples(50, seed=2)[0].double()
    figure, axes = subplots(1, 3, size=(13.2, 4.4))
    min_ratio = float("inf")
    smooth_model, forest_model, mean = network(), forest(), rows.mean(0, keepdim=True)
    cases = (
        ("a network, 50 background rows", smooth_model, rows, SHAP),
        ("a network, one baseline", smooth_model, mean, SHAP | CAPTUM),
        ("a forest, one baseline", forest_model, mean, SHAP | CAPTUM),
    )
    for ax, (title, model, background, peers) in zip(axes[0], cases, strict=True):
        case = Case(model, x, background, turns)
        budgets = [len(background) * coalitions for coalitions in BUDGETS]
        print(f"\n{title:40}{'calls per row':>14}{'error':>11}{'Parnassus':>11}{'ratio':>8}")
        lines = {
            name: [case.measure(estimator, calls) for calls in budgets]
            for name, estimator in (PARNASSUS | peers).items()
        }
        for name in peers:
            for peer in lines[name]:
                own = case.measure(parnassus_explain, int(peer.calls))
                assert own.calls <= peer.calls, (name, own, peer)
                ratio = peer.error / own.error
                min_ratio = min(min_ratio, ratio)
                print(f"{name:40}{peer.calls:14,.0f}{peer.error:11.2e}{own.error:11.2e}{ratio:8.1f}", flush=True)
        for (name, line), color in zip(lines.items(), PALETTE, strict=False):
            calls, errors = zip(*line, strict=True)
            linewidth = 2.6 if name.endswith("explain") else 1.4
            ax.plot(calls, errors, color=color, marker="o", markersize=4, label=name, linewidth=linewidth)
        ax.set(xscale="log", yscale="log", xlabel="model calls per row", title=title)
        ax.xaxis.set_minor_formatter("")
    axes[0, 0].set_ylabel("root mean square error of a value", color=INK)
    axes[0, -1].legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    save_figure(figure, path)
    print(f"\nsmallest error ratio at equal calls: {min_ratio:.2f} (limit: more than 1); figure: {path}.svg, .png")
    sys.exit(0 if min_ratio > 1 else 1)


if __name__ == "__main__":
    main()
