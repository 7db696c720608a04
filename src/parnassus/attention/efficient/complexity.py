"""Computational complexity: Big-O witnesses (C, n₀) and operation counts of textbook algorithms (Diehl sec. 4)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import log
from typing import NamedTuple


class CountedResult(NamedTuple):
    """The result of an algorithm and the number of elementary operations.

    >>> CountedResult(result=3, operations=12).operations
    12
    """

    result: int | list[int] | None
    operations: int


class BigOWitness(NamedTuple):
    """The pair (C, n₀) of the definition: cost ≤ C · g if every size is at least n₀ (Diehl sec. 4).

    >>> BigOWitness(constant=3.0, start=2).constant
    3.0
    """

    constant: float
    start: int


@dataclass(frozen=True)
class ListNode:
    """A node of a linked list: a value and the next node."""

    value: int
    next: "ListNode | None"


def big_o_witness(
    sizes: Sequence[tuple[int, ...]], counts: Sequence[int], bound: Callable[..., float], *, start: int = 1
) -> BigOWitness:
    """The smallest C with count(n₁, …, n_d) ≤ C g(n₁, …, n_d) at all measured sizes n_i ≥ n₀ = start (Diehl sec. 4).

    It holds for the measured sizes only. If the cost is *not* O(g), C grows with the largest size.
    """
    measured = [(size, count) for size, count in zip(sizes, counts, strict=True) if min(size) >= start]
    if not measured:
        raise ValueError(f"some size must be at least start={start}; got {list(sizes)}")
    if any(bound(*size) <= 0 for size, _ in measured):
        raise ValueError(f"the bound must be positive at all sizes from start={start}")
    return BigOWitness(max(count / bound(*size) for size, count in measured), start)


def is_within_bound(
    witness: BigOWitness, sizes: Sequence[tuple[int, ...]], counts: Sequence[int], bound: Callable[..., float]
) -> bool:
    """Whether count ≤ C · g at all given sizes from n₀ on."""
    measured = zip(sizes, counts, strict=True)
    return all(count <= witness.constant * bound(*size) for size, count in measured if min(size) >= witness.start)


def growth_exponent(sizes: Sequence[int], costs: Sequence[float]) -> float:
    """The exponent r of cost ∝ nʳ between the first and the last size."""
    if len(sizes) != len(costs) or len(sizes) < 2 or min(*sizes, *costs) <= 0 or sizes[0] == sizes[-1]:
        raise ValueError(f"positive costs at two or more positive sizes are needed; got {sizes} and {costs}")
    return log(costs[-1] / costs[0]) / log(sizes[-1] / sizes[0])


def array_access(array: Sequence[int], index: int) -> CountedResult:
    """One operation at any index: O(1) (Diehl ex. 4.1)."""
    return CountedResult(array[index], 1)


def binary_search(array: Sequence[int], target: int) -> CountedResult:
    """The index of `target` in a sorted array: O(log n), at most ⌊log₂ n⌋ + 1 comparisons (Diehl ex. 4.1)."""
    low, high, comparisons = 0, len(array), 0
    while low < high:
        middle = (low + high) // 2
        comparisons += 1
        if array[middle] == target:
            return CountedResult(middle, comparisons)
        low, high = (middle + 1, high) if array[middle] < target else (low, middle)
    return CountedResult(None, comparisons)


def linked_list(values: Sequence[int]) -> ListNode | None:
    """The head of a linked list of the values; None if there are none."""
    head: ListNode | None = None
    for value in reversed(values):
        head = ListNode(value, head)
    return head


def list_access(head: ListNode | None, index: int) -> CountedResult:
    """The value at `index`, reached from the head: O(n), index + 1 nodes visited (Diehl ex. 4.1)."""
    node, visited = head, 1
    while node is not None and visited <= index:
        node, visited = node.next, visited + 1
    if node is None or index < 0:
        raise IndexError(f"index must lie within the list; got index={index}")
    return CountedResult(node.value, visited)


def merge_sort(values: Sequence[int]) -> CountedResult:
    """Merge sort: O(n log n), at most n ⌈log₂ n⌉ comparisons (Diehl ex. 4.1)."""
    if len(values) < 2:
        return CountedResult(list(values), 0)
    middle = len(values) // 2
    (left, first), (right, second) = (_sort_half(half) for half in (values[:middle], values[middle:]))
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
    return CountedResult(merged + left[i:] + right[j:], first + second + comparisons)


def _sort_half(values: Sequence[int]) -> tuple[list[int], int]:
    ordered, comparisons = merge_sort(values)
    assert isinstance(ordered, list)
    return ordered, comparisons


def bubble_sort(values: Sequence[int]) -> CountedResult:
    """Bubble sort: O(n²), n(n − 1)/2 comparisons in the worst case, n − 1 if already sorted (Diehl ex. 4.1)."""
    ordered, comparisons = list(values), 0
    for end in range(len(ordered) - 1, 0, -1):
        swapped = False
        for i in range(end):
            comparisons += 1
            if ordered[i] > ordered[i + 1]:
                ordered[i], ordered[i + 1] = ordered[i + 1], ordered[i]
                swapped = True
        if not swapped:
            break
    return CountedResult(ordered, comparisons)


def exact_attention_operations(length: int, width: int) -> int:
    """Multiplications of Q Kᵀ and of weights times V, n² d each: O(n² d) (Diehl sec. 4)."""
    return 2 * length**2 * width


def linear_attention_operations(length: int, features: int, width: int) -> int:
    """Multiplications of φ(K)ᵀ V and of φ(Q) S, n M d each, and n M of the normalisers: O(n M d) (Diehl sec. 4.1)."""
    return 2 * length * features * width + length * features


def crossover_length(features: int, width: int) -> int:
    """The smallest length with fewer multiplications for linear than for exact attention: n > M (1 + 1/2d)."""
    return int(features * (2 * width + 1) / (2 * width)) + 1
