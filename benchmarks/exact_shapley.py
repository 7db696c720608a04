"""Benchmark of exact Shapley values for 16 features against the ExactExplainer of shap.

Both implementations explain the same rows of the same model with the same 100 background rows, alternately in one
process: 65,536 coalitions, or 6.5 million inputs per row. The models are a 16-64-64-1 network in float32, whose forward
passes take most of the time, and a random forest of ten trees. Parnassus exploits that the first and last layers of the
network are linear, and reads the leaves of the forest instead of evaluating it. The generic method, which accepts any
model as a function of a batch of rows, is timed as well. CPU seconds (summed over threads) are also printed; they are
more reliable than wall-clock seconds on a busy machine.
Limits: at least 5 times as fast as shap by wall-clock time; values equal within 10⁻⁶.
Run: python benchmarks/exact_shapley.py (requires shap, part of the bench environment)
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

from parnassus.shapley import InterventionalValue, as_model, explain_exactly, tree_shap
from parnassus.shapley.attributions.linear_first_layer import interventional_value_function

Method: TypeAlias = Callable[[], Tensor]
FEATURES, BACKGROUND_ROWS, LIMIT, TOLERANCE = 16, 100, 5.0, 1e-6


class Timing(NamedTuple):
    """Wall-clock seconds, and CPU seconds summed over threads."""

    wall: float
    cpu: float


def measure(methods: dict[str, Method], turns: int) -> tuple[dict[str, list[Timing]], float]:
    """Return the alternately measured times of all methods and the largest difference between their values."""
    times: dict[str, list[Timing]] = {name: [] for name in methods}
    difference = 0.0
    for turn in range(turns):
        values = {}
        for name in list(methods)[:: 1 if turn % 2 else -1]:
            start_time, start_cpu = time.perf_counter(), time.process_time()
            values[name] = methods[name]()
            times[name].append(Timing(time.perf_counter() - start_time, time.process_time() - start_cpu))
        difference = max(difference, *(float((result - values["shap"]).abs().max()) for result in values.values()))
    return times, difference


def ratios(baseline: list[Timing], own: list[Timing]) -> Timing:
    """Return the medians over turns of the baseline times divided by our times."""
    pairs = list(zip(baseline, own, strict=True))
    return Timing(
        statistics.median(a.wall / b.wall for a, b in pairs), statistics.median(a.cpu / b.cpu for a, b in pairs)
    )


def shap_method(
    function: Callable[[NDArray[np.float32]], NDArray[np.float64]], x: Tensor, background: Tensor
) -> Method:
    explainer = shap.ExactExplainer(function, shap.maskers.Independent(background.numpy(), max_samples=len(background)))

    def explain() -> Tensor:
        with contextlib.redirect_stderr(io.StringIO()):  # hides the progress bar
            return torch.tensor(explainer(x.numpy()).values).reshape(len(x), -1).double()

    return explain


def network(x: Tensor, background: Tensor) -> dict[str, Method]:
    model = nn.Sequential(
        nn.Linear(FEATURES, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1)
    ).requires_grad_(requires_grad=False)
    return {
        "shap": shap_method(lambda inputs: model(torch.from_numpy(inputs).float())[:, 0].numpy(), x, background),
        "parnassus": lambda: explain_exactly(interventional_value_function(model, background), x).values[:, 0],
        "generic": lambda: explain_exactly(InterventionalValue(as_model(model), background), x).values[:, 0],
    }


def forest(x: Tensor, background: Tensor) -> dict[str, Method]:
    training = torch.randn(500, FEATURES)
    model = RandomForestRegressor(10, random_state=0).fit(training, (training[:, 0] * training[:, 1] + training[:, 2]))
    return {
        "shap": shap_method(model.predict, x, background),
        "parnassus": lambda: tree_shap(model, x, background).values[:, 0],
        "generic": lambda: explain_exactly(InterventionalValue(as_model(model), background), x).values[:, 0],
    }


def main() -> None:
    """Print the seconds of all methods and the median ratios; exit with 1 if a limit is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=3, help="number of timed runs per method")
    parser.add_argument("--rows", type=int, default=3, help="number of rows per run")
    turns, rows = vars(parser.parse_args()).values()
    torch.manual_seed(0)
    x, background = torch.randn(rows, FEATURES), torch.randn(BACKGROUND_ROWS, FEATURES)
    shap_method(
        lambda inputs: inputs.sum(1), x[:, :4], background[:, :4]
    )()  # triggers just-in-time compilation in shap
    print(f"{FEATURES} features, {2**FEATURES:,} coalitions, {rows} rows, {torch.get_num_threads()} threads")
    failed = False
    for name, methods in (("network", network(x, background)), ("forest", forest(x, background))):
        times, difference = measure(methods, turns)
        seconds = {method: statistics.median(timing.wall for timing in each) for method, each in times.items()}
        ratio, generic = (ratios(times["shap"], times[method]) for method in ("parnassus", "generic"))
        failed |= ratio.wall < LIMIT or difference > TOLERANCE
        print(
            f"{name}: shap {seconds['shap']:.2f} s, Parnassus {seconds['parnassus']:.2f} s, "
            f"{ratio.wall:.1f} times as fast "
            f"(limit: at least {LIMIT}; {ratio.cpu:.1f} times by CPU time)\n"
            f"  generic method {seconds['generic']:.2f} s, "
            f"{generic.wall:.1f} times as fast ({generic.cpu:.1f} times by CPU time); "
            f"largest difference {difference:.1e}",
            flush=True,
        )
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
