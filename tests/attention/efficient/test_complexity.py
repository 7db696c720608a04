"""Operation counts of algorithms, and Big-O witnesses."""

import random
from math import ceil, log2

import pytest

from parnassus.attention.efficient.complexity import (
    BigOWitness,
    array_access,
    big_o_witness,
    binary_search,
    bubble_sort,
    crossover_length,
    exact_attention_operations,
    growth_exponent,
    is_within_bound,
    linear_attention_operations,
    linked_list,
    list_access,
    merge_sort,
)


@pytest.mark.parametrize("length", [0, 1, 2, 3, 7, 64, 100])
def test_sorting_is_correct_and_within_its_operation_bound(length: int) -> None:
    values = [random.Random(length).randrange(50) for _ in range(length)]
    merged, bubbled = merge_sort(values), bubble_sort(values)
    assert merged.result == bubbled.result == sorted(values)
    assert merged.operations <= length * ceil(log2(length)) if length else merged.operations == 0
    assert bubbled.operations <= length * (length - 1) // 2
    assert bubble_sort(range(length)).operations == max(0, length - 1)  # one pass suffices
    assert bubble_sort(range(length, 0, -1)).operations == length * (length - 1) // 2


@pytest.mark.parametrize("length", [1, 2, 3, 15, 16, 17, 1000])
def test_binary_search_finds_existing_elements_only(length: int) -> None:
    array = range(0, 2 * length, 2)
    results = [binary_search(array, target) for target in array]
    assert [index for index, _ in results] == list(range(length))
    assert max(comparisons for _, comparisons in results) == length.bit_length()  # ⌊log₂ n⌋ + 1
    assert all(binary_search(array, target).result is None for target in (-1, 1, 2 * length + 1))


def test_access_counts_of_arrays_and_linked_lists() -> None:
    values = [3, 1, 4, 1, 5]
    head = linked_list(values)
    assert [list_access(head, i) for i in range(5)] == [(value, i + 1) for i, value in enumerate(values)]
    assert [array_access(values, i) for i in range(5)] == [(value, 1) for value in values]
    with pytest.raises(IndexError, match="got index=5"):
        list_access(head, 5)
    with pytest.raises(IndexError, match="got index=0"):
        list_access(linked_list([]), 0)


def test_big_o_witness_has_the_smallest_constant() -> None:
    sizes, counts = [(n,) for n in range(1, 100)], [3 * n + 10 for n in range(1, 100)]
    assert big_o_witness(sizes, counts, float) == BigOWitness(13.0, 1)
    assert big_o_witness(sizes, counts, float, start=10) == BigOWitness(4.0, 10)
    assert is_within_bound(BigOWitness(4.0, 10), sizes, counts, float)
    assert not is_within_bound(BigOWitness(4.0, 9), sizes, counts, float)
    pairs = [(n, d) for n in (2, 4, 8) for d in (1, 2)]
    witness = big_o_witness(pairs, [n * n * d + 5 * d for n, d in pairs], lambda n, d: float(n * n * d), start=2)
    assert witness == BigOWitness(1 + 5 / 4, 2)


def test_growth_exponent_and_crossover_length() -> None:
    assert growth_exponent([10, 1000], [7.0, 70_000.0]) == pytest.approx(2.0)
    for features, width in ((64, 64), (256, 64), (7, 1)):
        length = crossover_length(features, width)
        exact = [exact_attention_operations(n, width) for n in (length - 1, length)]
        linear = [linear_attention_operations(n, features, width) for n in (length - 1, length)]
        assert exact[0] <= linear[0]
        assert exact[1] > linear[1]


def test_invalid_arguments_raise_value_error() -> None:
    with pytest.raises(ValueError, match="at least start=5"):
        big_o_witness([(4,)], [1], float, start=5)
    with pytest.raises(ValueError, match="bound must be positive"):
        big_o_witness([(1,)], [1], lambda n: n - 1.0)
    with pytest.raises(ValueError, match="two or more positive sizes"):
        growth_exponent([2], [1.0])
