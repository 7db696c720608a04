"""Complexity classes 1, log n, n, n log n and n²: counted operations and big-O constants (Diehl ex. 4.1)."""

from collections.abc import Callable
from dataclasses import dataclass
from math import log2
from typing import TYPE_CHECKING

import torch

from parnassus.attention import (
    array_access,
    big_o_witness,
    binary_search,
    bubble_sort,
    linked_list,
    list_access,
    merge_sort,
)
from parnassus.report import PALETTE, subplots
from parnassus.train import Positive, Run, at_most, between

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("D4.0.1", "D4.0.2")
expected = {
    "array": between(1.0, 1.0, "smallest C with count ≤ C for n ≥ 4, array access"),
    "search": at_most(1.5, "smallest C with count ≤ C log₂ n for n ≥ 4, binary search, worst case"),
    "list": between(1.0, 1.0, "smallest C with count ≤ C n for n ≥ 4, last element of a linked list"),
    "merge": at_most(1.0, "smallest C with count ≤ C n log₂ n for n ≥ 4, merge sort of a random permutation"),
    "bubble": at_most(0.5, "smallest C with count ≤ C n² for n ≥ 4, bubble sort of a reversed list"),
}
profiles: dict[str, dict[str, object]] = {"smoke": {"max_log2_size": 6}, "gpu": {}}

START = 4  # n₀


@dataclass(frozen=True)
class Experiment:
    max_log2_size: Positive[int] = 10  # log₂ of the largest size

    def __call__(self, run: Run) -> dict[str, float]:
        sizes = [2**power for power in range(2, self.max_log2_size + 1)]
        algorithms: dict[str, Callable[[int], int]] = {
            "array": lambda n: array_access(range(n), n - 1).operations,
            "search": lambda n: max(binary_search(range(n), target).operations for target in range(n)),
            "list": lambda n: list_access(linked_list(range(n)), n - 1).operations,
            "merge": lambda n: merge_sort(torch.randperm(n).tolist()).operations,
            "bubble": lambda n: bubble_sort(range(n, 0, -1)).operations,
        }
        bounds: dict[str, Callable[[int], float]] = {
            "array": lambda _: 1.0,
            "search": log2,
            "list": float,
            "merge": lambda n: n * log2(n),
            "bubble": lambda n: float(n * n),
        }
        counts = {name: [count(n) for n in sizes] for name, count in algorithms.items()}
        constants = {
            name: big_o_witness([(n,) for n in sizes], counts[name], bound, start=START).constant
            for name, bound in bounds.items()
        }
        run.figure(
            "counts",
            plot_counts(
                sizes, counts, {name: [constants[name] * bound(n) for n in sizes] for name, bound in bounds.items()}
            ),
            "Dots: counted accesses, probes, visited cells and comparisons. Lines: the bound C · g(n) with the "
            f"smallest C that holds for all n ≥ n₀ = {START}.",
        )
        run.table(
            "constants of the bounds",
            [
                {
                    "algorithm": NAMES[name],
                    "g(n)": BOUNDS[name],
                    "C": f"{constants[name]:.3g}",
                    "n₀": f"{START}",
                    f"count at n = {sizes[-1]:,}": f"{counts[name][-1]:,}",
                }
                for name in NAMES
            ],
        )
        return constants


NAMES = {
    "array": "array access",
    "search": "binary search",
    "list": "linked list access",
    "merge": "merge sort",
    "bubble": "bubble sort, worst case",
}
BOUNDS = {"array": "1", "search": "log₂ n", "list": "n", "merge": "n log₂ n", "bubble": "n²"}


def plot_counts(sizes: list[int], counts: dict[str, list[int]], bounds: dict[str, list[float]]) -> "Figure":
    figure, axes = subplots(size=(8.4, 4.6))
    for (name, label), colour in zip(NAMES.items(), PALETTE, strict=False):
        axes[0, 0].loglog(sizes, bounds[name], color=colour, linewidth=1.2)
        axes[0, 0].loglog(sizes, counts[name], "o", color=colour, markersize=5, label=f"{label}, O({BOUNDS[name]})")
    axes[0, 0].set(xlabel="n", ylabel="operations")
    axes[0, 0].set_xticks(sizes, [f"{size}" for size in sizes])
    axes[0, 0].set_xticks([], minor=True)
    handles, labels = axes[0, 0].get_legend_handles_labels()
    axes[0, 0].legend(handles[::-1], labels[::-1], loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure
