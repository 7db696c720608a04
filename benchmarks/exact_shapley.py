"""Exact Shapley values at 16 features beside shap's ExactExplainer: at least 5 times as fast.

Both sides explain the same rows of the same model with the same 100 rows of background and take turns in one process:
65,536 coalitions, 6.5 million inputs a row. The models are a network 16-64-64-1 in float32, whose answers are nearly
all of our time, and a forest of ten trees. Of the network we use that it begins and ends with a linear layer, of the
forest its leaves, and ask it nothing. Beside it stands the time of the plain way, which takes any function of many
rows. The CPU seconds, of all threads, tell more than those of the clock where others use the machine.
Run it with: python benchmarks/exact_shapley.py (the bench environment has shap)
"""

import argparse
import contextlib
import io
import statistics
import sys
import time
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np
import shap
import torch
from numpy.typing import NDArray
from sklearn.ensemble import RandomForestRegressor
from torch import Tensor, nn

from parnassus.shapley import Interventional, as_model, explain_exactly, tree_shap
from parnassus.shapley.attributions.linear_first_layer import interventional_value_function

Side: TypeAlias = Callable[[], Tensor]
FEATURES, OTHERS, LIMIT, TOLERANCE = 16, 100, 5.0, 1e-6


class Taken(NamedTuple):
    """Seconds by the clock, and of all threads."""

    wall: float
    busy: float


def race(sides: dict[str, Side], turns: int) -> tuple[dict[str, list[Taken]], float]:
    """Times of all sides in turn, and the largest difference between their values."""
    times: dict[str, list[Taken]] = {name: [] for name in sides}
    apart = 0.0
    for turn in range(turns):
        values = {}
        for name in list(sides)[:: 1 if turn % 2 else -1]:
            began, busy = time.perf_counter(), time.process_time()
            values[name] = sides[name]()
            times[name].append(Taken(time.perf_counter() - began, time.process_time() - busy))
        apart = max(apart, *(float((found - values["shap"]).abs().max()) for found in values.values()))
    return times, apart


def ratios(theirs: list[Taken], ours: list[Taken]) -> Taken:
    """The medians of their seconds by ours, turn by turn."""
    pairs = list(zip(theirs, ours, strict=True))
    return Taken(
        statistics.median(a.wall / b.wall for a, b in pairs), statistics.median(a.busy / b.busy for a, b in pairs)
    )


def by_shap(function: Callable[[NDArray[np.float32]], NDArray[np.float64]], x: Tensor, background: Tensor) -> Side:
    explainer = shap.ExactExplainer(function, shap.maskers.Independent(background.numpy(), max_samples=len(background)))

    def explain() -> Tensor:
        with contextlib.redirect_stderr(io.StringIO()):  # its progress bar
            return torch.tensor(explainer(x.numpy()).values).reshape(len(x), -1).double()

    return explain


def network(x: Tensor, background: Tensor) -> dict[str, Side]:
    model = nn.Sequential(
        nn.Linear(FEATURES, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1)
    ).requires_grad_(requires_grad=False)
    return {
        "shap": by_shap(lambda inputs: model(torch.from_numpy(inputs).float())[:, 0].numpy(), x, background),
        "ours": lambda: explain_exactly(interventional_value_function(model, background), x).values[:, 0],
        "plain": lambda: explain_exactly(Interventional(as_model(model), background), x).values[:, 0],
    }


def forest(x: Tensor, background: Tensor) -> dict[str, Side]:
    training = torch.randn(500, FEATURES)
    model = RandomForestRegressor(10, random_state=0).fit(training, (training[:, 0] * training[:, 1] + training[:, 2]))
    return {
        "shap": by_shap(model.predict, x, background),
        "ours": lambda: tree_shap(model, x, background).values[:, 0],
        "plain": lambda: explain_exactly(Interventional(as_model(model), background), x).values[:, 0],
    }


def main() -> None:
    """Print seconds of all sides and the medians of their ratios; exit code 1 when one is below the limit."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=3, help="times that each side explains all rows")
    parser.add_argument("--rows", type=int, default=3, help="rows explained at once")
    turns, rows = vars(parser.parse_args()).values()
    torch.manual_seed(0)
    x, background = torch.randn(rows, FEATURES), torch.randn(OTHERS, FEATURES)
    by_shap(lambda inputs: inputs.sum(1), x[:, :4], background[:, :4])()  # compiles what it compiles
    print(f"{FEATURES} features, {2**FEATURES:,} coalitions, {rows} rows, {torch.get_num_threads()} threads")
    failed = False
    for name, sides in (("network", network(x, background)), ("forest", forest(x, background))):
        times, apart = race(sides, turns)
        taken = {side: statistics.median(one.wall for one in own) for side, own in times.items()}
        ratio, plain = (ratios(times["shap"], times[side]) for side in ("ours", "plain"))
        failed |= ratio.wall < LIMIT or apart > TOLERANCE
        print(
            f"{name}: shap {taken['shap']:.2f} s, ours {taken['ours']:.2f} s, {ratio.wall:.1f} times as fast "
            f"(at least {LIMIT}; CPU {ratio.busy:.1f} times)\n"
            f"  the plain way {taken['plain']:.2f} s, {plain.wall:.1f} times (CPU {plain.busy:.1f} times); "
            f"values differ by {apart:.1e}",
            flush=True,
        )
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
