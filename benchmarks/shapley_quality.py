"""What a model call buys: error against exact Shapley values, ours beside shap's and captum's, in one figure.

Models of 12 features, for which all 4 096 coalitions can be asked: a network, which is smooth, with a background of 50
rows; with a single baseline, all that captum knows; and a forest, which is not smooth. A call is one row that the model
is asked about. For every way of a peer and every budget `parnassus.shapley.explain` gets no more calls than the peer
took, and must err less.
Run it with: python benchmarks/shapley_quality.py (the bench environment has shap and captum)
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
    Interventional,
    as_model,
    balanced_permutation_sampling,
    explain,
    explain_exactly,
    explain_with_estimator,
    sample_coalitions,
)
from parnassus.shapley.experiments.shapley_estimator_errors import FEATURES, examples

Model: TypeAlias = Callable[[Tensor], Tensor]
"""Rows in, a number for each."""
Way: TypeAlias = Callable[[Model, Tensor, Tensor, int], Tensor]
"""Values of rows (rows, features) from a model, the rows, a background and about how many calls a row."""
DOCS = Path(__file__).parents[1] / "docs"
BUDGETS = (64, 128, 256, 512, 1_024)
"""Coalitions of 4 096; each is a call for every row of the background."""
KEPT = 3
"""Coalitions left for both ends, and for asking twice of one row whether the model is steady."""


class Counted:
    """A model that counts the rows it is asked about."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.asked = 0

    def __call__(self, x: Tensor) -> Tensor:
        self.asked += len(x)
        return self.model(x)


class Point(NamedTuple):
    """Calls a row, and the root mean square error of a value."""

    calls: float
    error: float


def of_arrays(model: Model) -> Callable[[np.ndarray], np.ndarray]:
    return lambda x: model(torch.from_numpy(np.asarray(x))).numpy()


def ours(model: Model, x: Tensor, background: Tensor, calls: int) -> Tensor:
    allowed = calls // len(background) - KEPT
    budget = next(b for b in range(allowed, 1, -1) if len(sample_coalitions(FEATURES, b).coalitions) <= allowed)
    return explain(Interventional(as_model(model), background), x, budget).values[:, 0]


def our_orders(model: Model, x: Tensor, background: Tensor, calls: int) -> Tensor:
    estimator = partial(balanced_permutation_sampling, antithetic=True)
    value = Interventional(as_model(model), background)
    return explain_with_estimator(estimator, value, x, calls // len(background) - KEPT).values[:, 0]


def shap_kernel(model: Model, x: Tensor, background: Tensor, calls: int) -> Tensor:
    explainer = shap.KernelExplainer(of_arrays(model), background.numpy())
    found = explainer.shap_values(x.numpy(), nsamples=calls // len(background), l1_reg=False, silent=True)
    return torch.from_numpy(found)


def shap_orders(model: Model, x: Tensor, background: Tensor, calls: int) -> Tensor:
    masker = shap.maskers.Independent(background.numpy(), max_samples=len(background))
    explainer = shap.PermutationExplainer(of_arrays(model), masker)
    found = explainer(x.numpy(), max_evals=max(calls // len(background), 2 * FEATURES + 1), silent=True)
    return torch.from_numpy(found.values)


def shap_sampling(model: Model, x: Tensor, background: Tensor, calls: int) -> Tensor:
    explainer = shap.SamplingExplainer(of_arrays(model), background.numpy())
    return torch.from_numpy(explainer.shap_values(x.numpy(), nsamples=calls // 2, silent=True))


def captum_orders(model: Model, x: Tensor, background: Tensor, calls: int) -> Tensor:
    orders = max(1, calls // FEATURES)
    found: Tensor = ShapleyValueSampling(model).attribute(
        x, baselines=background, n_samples=orders, perturbations_per_eval=128
    )
    return found


def captum_kernel(model: Model, x: Tensor, background: Tensor, calls: int) -> Tensor:
    explainer = KernelShap(model)
    asked = {"baselines": background, "n_samples": calls, "perturbations_per_eval": 128}
    rows = [explainer.attribute(row[None], **asked) for row in x]
    return torch.cat(rows)


OURS: dict[str, Way] = {"ours: explain": ours, "ours: balanced, mirrored orders": our_orders}
SHAP: dict[str, Way] = {
    "shap: KernelExplainer": shap_kernel,
    "shap: PermutationExplainer": shap_orders,
    "shap: SamplingExplainer": shap_sampling,
}
CAPTUM: dict[str, Way] = {"captum: ShapleyValueSampling": captum_orders, "captum: KernelShap": captum_kernel}


@dataclass(frozen=True)
class Case:
    """Rows of a model to be explained beside a background."""

    model: Model
    x: Tensor
    background: Tensor
    turns: int

    @cached_property
    def exact(self) -> Tensor:
        return explain_exactly(Interventional(as_model(self.model), self.background), self.x).values[:, 0]

    def measured(self, way: Way, calls: int) -> Point:
        """The error over some seeds, and the calls that were made."""
        model, off = Counted(self.model), []
        for seed in range(self.turns):
            np.random.seed(seed)  # noqa: NPY002 (shap draws from this one)
            torch.manual_seed(seed)
            off.append(way(model, self.x, self.background, calls).double() - self.exact)
        return Point(model.asked / len(self.x) / self.turns, float(torch.stack(off).square().mean().sqrt()))


def network() -> Model:
    """One that has learned a function of eight of the twelve features."""
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
    """The same by a forest: steps instead of slopes."""
    x, y = examples(2_000, seed=0)
    trees = RandomForestRegressor(20, random_state=0).fit(x.numpy(), y.numpy())
    return lambda rows: torch.from_numpy(trees.predict(rows.numpy()))


def main() -> None:
    """Print errors at equal calls and draw them; exit code 1 when ours are not the smallest somewhere."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=3, help="seeds of each way and budget")
    parser.add_argument("--rows", type=int, default=6, help="rows that are explained")
    parser.add_argument("--figure", type=Path, default=DOCS / "shapley_quality", help="where the picture goes")
    turns, count, place = vars(parser.parse_args()).values()
    x, rows = examples(count, seed=1)[0].double(), examples(50, seed=2)[0].double()
    figure, axes = subplots(1, 3, size=(13.2, 4.4))
    worst = float("inf")
    smooth, stepped, mean = network(), forest(), rows.mean(0, keepdim=True)
    cases = (
        ("a network, 50 background rows", smooth, rows, SHAP),
        ("a network, one baseline", smooth, mean, SHAP | CAPTUM),
        ("a forest, one baseline", stepped, mean, SHAP | CAPTUM),
    )
    for ax, (title, model, background, peers) in zip(axes[0], cases, strict=True):
        case = Case(model, x, background, turns)
        budgets = [len(background) * coalitions for coalitions in BUDGETS]
        print(f"\n{title:40}{'calls a row':>14}{'error':>11}{'ours':>11}{'ratio':>8}")
        lines = {name: [case.measured(way, calls) for calls in budgets] for name, way in (OURS | peers).items()}
        for name in peers:
            for theirs in lines[name]:
                equal = case.measured(ours, int(theirs.calls))
                assert equal.calls <= theirs.calls, (name, equal, theirs)
                ratio = theirs.error / equal.error
                worst = min(worst, ratio)
                print(f"{name:40}{theirs.calls:14,.0f}{theirs.error:11.2e}{equal.error:11.2e}{ratio:8.1f}", flush=True)
        for (name, line), colour in zip(lines.items(), PALETTE, strict=False):
            calls, errors = zip(*line, strict=True)
            wide = 2.6 if name.endswith("explain") else 1.4
            ax.plot(calls, errors, color=colour, marker="o", markersize=4, label=name, linewidth=wide)
        ax.set(xscale="log", yscale="log", xlabel="model calls for each row", title=title)
        ax.xaxis.set_minor_formatter("")
    axes[0, 0].set_ylabel("root mean square error of a value", color=INK)
    axes[0, -1].legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    save_figure(figure, place)
    print(
        f"\nat equal calls the least of their errors is {worst:.2f} times ours (more than 1); drawn: {place}.svg, .png"
    )
    sys.exit(0 if worst > 1 else 1)


if __name__ == "__main__":
    main()
