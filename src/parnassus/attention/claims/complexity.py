"""Claims about complexity: operation counts bounded by C · g(n) for n ≥ n₀ (Diehl sec. 4)."""

from itertools import count
from math import ceil, log2

import torch

from parnassus.atlas import Evidence, all_of, claim, close, greater_equal, less_equal, rate
from parnassus.attention.efficient.complexity import (
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
from parnassus.attention.fast.peak_memory import peak_memory

SIZES = (4, 8, 16, 32, 64, 128, 256)


@claim("D4.0.1")
def a_big_o_witness_is_a_constant_and_a_start() -> Evidence:
    """3n² + 100n is O(n²) with C = 4 and n₀ = 100, but not O(n): the smallest constant grows as n (Diehl sec. 4)."""
    sizes = [(n,) for n in (10, 100, 1_000, 10_000)]
    counts = [3 * n * n + 100 * n for (n,) in sizes]
    smallest_constants = [big_o_witness(sizes[:end], counts[:end], float).constant for end in range(1, 5)]
    quadratic = big_o_witness(sizes, counts, lambda n: float(n * n), start=100)
    earlier_start = quadratic._replace(start=10)
    return all_of(
        constant=close(quadratic.constant, 4.0),
        holds_from_the_start=close(float(is_within_bound(quadratic, sizes, counts, lambda n: n * n)), 1.0),
        fails_before=close(float(is_within_bound(earlier_start, sizes, counts, lambda n: n * n)), 0.0),
        exponent=close(growth_exponent([10, 20, 80], [n**1.7 for n in (10, 20, 80)]), 1.7, atol=1e-12),
        linear_constant_grows=rate(
            torch.tensor([1e3, 1e4], dtype=torch.float64),
            torch.tensor(smallest_constants[2:], dtype=torch.float64),
            1.0,
            atol=0.02,
        ),
    )


@claim("D4.0.1")
def attention_is_quadratic_and_linear_attention_linear_in_the_length() -> Evidence:
    """Exact attention is O(n² d), linear attention O(n M d), each with one constant for all sizes (Diehl sec. 4)."""
    pairs = [(n, d) for n in (8, 64, 512) for d in (8, 32, 128)]
    triples = [(n, m, d) for n in (8, 64, 512) for m in (8, 64) for d in (8, 128)]
    exact = big_o_witness(pairs, [exact_attention_operations(*size) for size in pairs], lambda n, d: n * n * d)
    linear = big_o_witness(triples, [linear_attention_operations(*size) for size in triples], lambda n, m, d: n * m * d)
    witnesses_without_square = [
        big_o_witness(pairs[:end], [exact_attention_operations(*size) for size in pairs[:end]], lambda n, d: n * d)
        for end in (3, 6, 9)
    ]
    sizes = [(8, 4), (30, 1), (64, 64)]
    crossovers = [
        next(n for n in count(1) if linear_attention_operations(n, m, d) < exact_attention_operations(n, d))
        for m, d in sizes
    ]
    found = [crossover_length(m, d) for m, d in sizes]

    def two_alive() -> None:
        """Three tensors of 1,000 numbers, of which at most two exist at one time."""
        x = torch.zeros(1_000, dtype=torch.float64)
        x = torch.ones(1_000, dtype=torch.float64)
        del x
        torch.zeros(1_000, dtype=torch.float64)

    return all_of(
        exact=close(exact.constant, 2.0),
        linear=close(linear.constant, 2.0 + 1 / 8),
        crossover=close(torch.tensor(crossovers), torch.tensor(found)),
        bytes_of_two_of_three_tensors=close(float(peak_memory(two_alive)), 2 * 8 * 1_000),
        exact_is_not_linear=rate(
            torch.tensor([8.0, 64.0, 512.0]),
            torch.tensor([witness.constant for witness in witnesses_without_square]),
            1.0,
            atol=1e-9,
        ),
    )


@claim("D4.0.2")
def standard_algorithms_have_their_known_operation_counts() -> Evidence:
    """Array, binary search, list, merge and bubble sort take at most 1, log n, n, n log n and n² (Diehl ex. 4.1)."""
    generator = torch.Generator().manual_seed(0)
    shuffled = [torch.randperm(size, generator=generator).tolist() for size in SIZES]
    search_counts = [max(binary_search(range(n), target).operations for target in range(n)) for n in SIZES]
    merge_counts = [
        max(merge_sort(v).operations for v in (values, values[::-1], sorted(values))) for values in shuffled
    ]
    sizes, n = [(size,) for size in SIZES], torch.tensor(SIZES, dtype=torch.float64)
    return all_of(
        array=close(torch.tensor([array_access(range(size), size - 1).operations for size in SIZES]), 1),
        binary_search=close(torch.tensor(search_counts), torch.tensor([size.bit_length() for size in SIZES])),
        list_access=close(torch.tensor([list_access(linked_list(range(s)), s - 1).operations for s in SIZES]), n),
        merge_sort=less_equal(torch.tensor(merge_counts), torch.tensor([size * ceil(log2(size)) for size in SIZES])),
        merge_sort_constant=less_equal(
            big_o_witness(sizes, merge_counts, lambda size: size * log2(size)).constant, 1.0
        ),
        merge_sort_is_not_linear=greater_equal(big_o_witness(sizes, merge_counts, float).constant, 6.0),
        bubble_sort_of_reversed_input=close(
            torch.tensor([bubble_sort(range(size, 0, -1)).operations for size in SIZES]), n * (n - 1) / 2
        ),
        bubble_sort_of_sorted_input=close(torch.tensor([bubble_sort(range(size)).operations for size in SIZES]), n - 1),
    )
