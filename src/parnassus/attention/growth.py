"""How cost grows: Big-O with a pair (C, n₀) that bears witness, and five textbook algorithms counted (Diehl sec. 4)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import log
from typing import NamedTuple


class Counted(NamedTuple):
    """What an algorithm found, and how many elementary operations that took."""

    result: int | list[int] | None
    operations: int


class Witness(NamedTuple):
    """The pair (C, n₀) of the definition: cost ≤ C · g as soon as every size is at least n₀ (Diehl sec. 4)."""

    constant: float
    start: int


@dataclass(frozen=True)
class Cell:
    """A cell of a linked list: a value, and the cell after it."""

    value: int
    rest: "Cell | None"


def big_o_witness(
    sizes: Sequence[tuple[int, ...]], counts: Sequence[int], bound: Callable[..., float], *, start: int = 1
) -> Witness:
    """The least C with count(n₁, …, n_d) ≤ C g(n₁, …, n_d) at all measured sizes n_i ≥ n₀ = start (Diehl sec. 4).

    It speaks for the sizes that were measured. That a cost is *not* O(g) shows in a C that grows with the largest of
    them.
    """
    beyond = [(size, count) for size, count in zip(sizes, counts, strict=True) if min(size) >= start]
    if not beyond:
        raise ValueError(f"no measured size reaches start={start}; got {list(sizes)}")
    if any(bound(*size) <= 0 for size, _ in beyond):
        raise ValueError(f"the bound must be positive at all sizes from start={start} on")
    return Witness(max(count / bound(*size) for size, count in beyond), start)


def bears_witness(
    witness: Witness, sizes: Sequence[tuple[int, ...]], counts: Sequence[int], bound: Callable[..., float]
) -> bool:
    """Whether count ≤ C · g at all these sizes from n₀ on."""
    measured = zip(sizes, counts, strict=True)
    return all(count <= witness.constant * bound(*size) for size, count in measured if min(size) >= witness.start)


def growth_exponent(sizes: Sequence[int], costs: Sequence[float]) -> float:
    """The exponent r of cost ∝ nʳ between the first and the last size."""
    if len(sizes) != len(costs) or len(sizes) < 2 or min(*sizes, *costs) <= 0 or sizes[0] == sizes[-1]:
        raise ValueError(f"an exponent needs costs > 0 at two sizes > 0 or more; got {sizes} and {costs}")
    return log(costs[-1] / costs[0]) / log(sizes[-1] / sizes[0])


def array_access(array: Sequence[int], index: int) -> Counted:
    """One operation, wherever it stands: O(1) (Diehl ex. 4.1)."""
    return Counted(array[index], 1)


def binary_search(array: Sequence[int], wanted: int) -> Counted:
    """The place of `wanted` in a sorted array, by halving: O(log n), at most ⌊log₂ n⌋ + 1 probes (Diehl ex. 4.1)."""
    low, high, probes = 0, len(array), 0
    while low < high:
        middle = (low + high) // 2
        probes += 1
        if array[middle] == wanted:
            return Counted(middle, probes)
        low, high = (middle + 1, high) if array[middle] < wanted else (low, middle)
    return Counted(None, probes)


def linked_list(values: Sequence[int]) -> Cell | None:
    """Cells in the order of the values; None when there are none."""
    head: Cell | None = None
    for value in reversed(values):
        head = Cell(value, head)
    return head


def list_access(head: Cell | None, index: int) -> Counted:
    """The value at `index`, by walking there from the head: O(n), index + 1 cells visited (Diehl ex. 4.1)."""
    cell, visited = head, 1
    while cell is not None and visited <= index:
        cell, visited = cell.rest, visited + 1
    if cell is None or index < 0:
        raise IndexError(f"the list has no place {index}")
    return Counted(cell.value, visited)


def merge_sort(values: Sequence[int]) -> Counted:
    """Sorted by merging sorted halves: O(n log n), at most n ⌈log₂ n⌉ comparisons (Diehl ex. 4.1)."""
    if len(values) < 2:
        return Counted(list(values), 0)
    middle = len(values) // 2
    (left, first), (right, second) = (_sorted_half(half) for half in (values[:middle], values[middle:]))
    merged: list[int] = []
    i = j = comparisons = 0
    while i < len(left) and j < len(right):
        comparisons += 1
        if left[i] <= right[j]:
            merged.append(left[i])
            i += 1
        else:
            merged.append(right[j])
            j += 1
    return Counted(merged + left[i:] + right[j:], first + second + comparisons)


def _sorted_half(values: Sequence[int]) -> tuple[list[int], int]:
    ordered, comparisons = merge_sort(values)
    assert isinstance(ordered, list)
    return ordered, comparisons


def bubble_sort(values: Sequence[int]) -> Counted:
    """Sorted by exchanging neighbours: O(n²), n(n − 1)/2 comparisons at worst, n − 1 when in order (Diehl ex. 4.1)."""
    ordered, comparisons = list(values), 0
    for end in range(len(ordered) - 1, 0, -1):
        exchanged = False
        for i in range(end):
            comparisons += 1
            if ordered[i] > ordered[i + 1]:
                ordered[i], ordered[i + 1] = ordered[i + 1], ordered[i]
                exchanged = True
        if not exchanged:
            break
    return Counted(ordered, comparisons)


def exact_attention_operations(length: int, width: int) -> int:
    """Multiplications of Q Kᵀ and of weights times V, n² d each: O(n² d) (Diehl sec. 4)."""
    return 2 * length**2 * width


def linear_attention_operations(length: int, features: int, width: int) -> int:
    """Multiplications of φ(K)ᵀ V and of φ(Q) S, n M d each, and n M of the normalisers: O(n M d) (Diehl sec. 4.1)."""
    return 2 * length * features * width + length * features


def crossover_length(features: int, width: int) -> int:
    """The first length at which linear attention multiplies less often than exact attention: n > M (1 + 1/2d)."""
    return int(features * (2 * width + 1) / (2 * width)) + 1
