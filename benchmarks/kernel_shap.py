"""Kernel SHAP beside shap.KernelExplainer: how much sooner it is as exact as that is with its default budget.

A network of 30-64-64-1 units that has learned scikit-learn's breast cancer data, of which the logits are explained;
100 background rows, 100 rows explained. Both sides are given the same and take turns in one process. shap asks
2M + 2048 coalitions a row and solves the plain regression; its default, to keep ten features, stands beside it. Ours
has the least budget of a ladder with which it errs no more by one seed, and must not err more by those that are timed.
The truth is ours from 4,096 coalitions and another seed: by its own standard errors at least five times as exact.
Run it with: python benchmarks/kernel_shap.py (the bench environment has shap)
"""

import argparse
import statistics
import sys
import time
import warnings
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import torch
from sklearn.datasets import load_breast_cancer
from torch import Tensor, nn

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import shap

from parnassus.shapley import (
    Interventional,
    ValueFunction,
    as_model,
    explain,
    interventional_value_function,
    regression_adjustment,
    weighted_regression,
)
from parnassus.shapley.attributions.value_functions import SingleGame
from parnassus.shapley.estimators.kernel_shap import Solver

Side: TypeAlias = Callable[[int], Tensor]
LIMIT, GOAL = 3.0, 10.0
LADDER = (72, 80, 96, 112, 128, 160, 192, 256, 384, 512, 768, 1024, 1536, 2048)


def learned(activation: type[nn.Module]) -> tuple[nn.Sequential, Tensor, Tensor]:
    """The network, its background, and rows to explain which it has not seen."""
    table = load_breast_cancer()
    x, y = torch.from_numpy(table.data), torch.from_numpy(table.target).float()
    torch.manual_seed(0)
    order = torch.randperm(len(x))
    x, y = ((x - x.mean(0)) / x.std(0)).float()[order], y[order]
    network = nn.Sequential(nn.Linear(30, 64), activation(), nn.Linear(64, 64), activation(), nn.Linear(64, 1))
    optimizer = torch.optim.Adam(network.parameters(), 3e-3)
    for _ in range(300):
        rows = torch.randint(400, (64,))
        loss = nn.functional.binary_cross_entropy_with_logits(network(x[rows])[:, 0], y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return network.eval(), x[:100], x[400:500]


def theirs(network: nn.Module, background: Tensor, x: Tensor, **options: object) -> Side:
    """KernelExplainer with its default budget."""

    @torch.no_grad()
    def answers(rows: object) -> object:
        return network(torch.from_numpy(np.asarray(rows, dtype=np.float32)))[:, 0].numpy()

    def found(seed: int) -> Tensor:
        np.random.seed(seed)  # noqa: NPY002 - the generator that shap draws from
        explainer = shap.KernelExplainer(answers, background.numpy())
        return torch.from_numpy(explainer.shap_values(x.numpy(), silent=True, **options))

    return found


def ours(value: ValueFunction, x: Tensor, budget: int, solve: Solver = regression_adjustment) -> Side:
    def found(seed: int) -> Tensor:
        return explain(value, x, budget, solver=solve, generator=torch.Generator().manual_seed(seed)).values[:, 0]

    return found


def timed(side: Side, seed: int, truth: Tensor) -> tuple[float, float]:
    """Seconds, and the root mean square error."""
    began = time.perf_counter()
    found = side(seed)
    return time.perf_counter() - began, float((found - truth).square().mean().sqrt())


def compare(activation: type[nn.Module], turns: int) -> float:
    """Print what is found with this activation, and return how many times as fast ours is."""
    network, background, x = learned(activation)
    value, mixed = interventional_value_function(network, background), Interventional(as_model(network), background)
    exact = explain(value, x, 4_096, generator=torch.Generator().manual_seed(99))
    truth, doubt = exact.values[:, 0], float(exact.errors.square().mean().sqrt())
    print(f"{activation.__name__}: values of {float(truth.square().mean().sqrt()):.3f}, known to {doubt:.4f}")
    reference = theirs(network, background, x, l1_reg=False)
    bar = timed(reference, 0, truth)[1]
    budget = next(size for size in LADDER if timed(ours(value, x, size), 0, truth)[1] <= bar)
    print(f"  {'':50}{'seconds':>8}{'error':>9}")
    for name, side in {
        "shap, ten features kept (its default)": theirs(network, background, x),
        f"ours, {budget} coalitions, the same for all": ours(SingleGame(mixed), x, budget, weighted_regression),
        "  each background row has its own": ours(mixed, x, budget, weighted_regression),
        "  and the first layer is shared": ours(value, x, budget, weighted_regression),
        "  and the game is learned": ours(value, x, budget),
    }.items():
        taken, missed = timed(side, 7, truth)
        print(f"  {name:50}{taken:8.2f}{missed:9.4f}", flush=True)
    mine = ours(value, x, budget)
    rounds = [(timed(mine, 10 + turn, truth), timed(reference, 10 + turn, truth)) for turn in range(turns)]
    ratio = statistics.median(their[0] / own[0] for own, their in rounds)
    own_error, their_error = (statistics.fmean(each[side][1] for each in rounds) for side in (0, 1))
    for name, side_index, missed in (("shap, 2,108 coalitions", 1, their_error), (f"ours, {budget}", 0, own_error)):
        print(f"  {name:50}{statistics.median(each[side_index][0] for each in rounds):8.2f}{missed:9.4f}")
    print(f"  {ratio:.1f} times as fast to the same error (at least {LIMIT}, goal {GOAL})", flush=True)
    fair = own_error <= 1.05 * their_error and doubt <= their_error / 5
    return ratio if fair else 0.0


def main() -> None:
    """Print seconds and errors of both sides; exit code 1 when one network is below the limit."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=3, help="calls of each side that are timed")
    turns = parser.parse_args().turns
    sys.exit(1 if min([compare(activation, turns) for activation in (nn.ReLU, nn.Tanh)]) < LIMIT else 0)


if __name__ == "__main__":
    main()
