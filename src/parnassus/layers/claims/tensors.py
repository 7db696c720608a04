"""Claims about tensors: Einstein summation, tensor products and rank (Diehl sec. 1.2)."""

from itertools import product
from math import sqrt

import torch
from torch import Tensor

from parnassus.atlas import (
    Correction,
    Evidence,
    all_of,
    claim,
    close,
    erratum,
    greater_equal,
    less_equal,
    raises,
    rate,
    runs,
)
from parnassus.layers.einsum import einsum, pure_tensor, tensor_product, unrepeated_indices
from parnassus.layers.tensor_rank import (
    cp_decomposition,
    matrix_multiplication_tensor,
    rank_bounds,
    sum_of_pure_tensors,
    unfolding_ranks,
)
from parnassus.probability import standard_normal

E1, E2 = torch.eye(2, dtype=torch.float64)
W_TENSOR = pure_tensor(E1, E1, E2) + pure_tensor(E1, E2, E1) + pure_tensor(E2, E1, E1)
"""A tensor of rank 3 that is a limit of tensors of rank 2."""


@claim("D1.2.1")
def order_counts_axes_and_is_not_rank() -> Evidence:
    """Scalars, vectors, matrices have orders 0, 1, 2; a tensor of order 3 may have rank 1 or 3 (Diehl sec. 1.2)."""
    orders = [torch.zeros(shape).ndim for shape in ((), (5,), (5, 2), (5, 2, 3))]
    pure = pure_tensor(standard_normal(3), standard_normal(4, seed=1), standard_normal(2, seed=2))
    generator = torch.Generator().manual_seed(0)
    return all_of(
        orders=close(torch.tensor(orders), torch.arange(4)),
        entries=close(float(pure.numel()), 3.0 * 4 * 2),
        same_order=close(float(pure.ndim), float(W_TENSOR.ndim)),
        rank_of_the_first=close(float(rank_bounds(pure, generator=generator).upper), 1.0),
        rank_of_the_second=close(float(rank_bounds(W_TENSOR, generator=generator, max_sweeps=150).upper), 3.0),
    )


@claim("D1.2.2")
def index_notation_expresses_the_usual_products() -> Evidence:
    """The notes' five examples agree with products, traces and loops: repeated indices are summed (Diehl sec. 1.2)."""
    a, b, v, square = (
        standard_normal(3, 4),
        standard_normal(4, 5, seed=1),
        standard_normal(4, seed=2),
        standard_normal(4, 4, seed=3),
    )
    long, other = standard_normal(2, 3, 4, seed=4), standard_normal(3, 4, 5, seed=5)
    loops = torch.zeros(2, 5, dtype=torch.float64)
    for i, k, m, j in product(range(2), range(3), range(4), range(5)):
        loops[i, j] += long[i, k, m] * other[k, m, j]

    def by_rule(terms: str, *tensors: Tensor) -> Tensor:
        return einsum(f"{terms}->{unrepeated_indices(terms)}", *tensors)

    return all_of(
        matrix_vector=close(by_rule("ij,j", a, v), a @ v, atol=1e-14),
        matrix_matrix=close(by_rule("ik,kj", a, b), a @ b, atol=1e-14),
        trace=close(by_rule("ii", square), square.trace(), atol=1e-14),
        transposed=close(by_rule("ik,jk", a, square), a @ square.T, atol=1e-14),
        two_sums=close(by_rule("ikl,klj", long, other), loops, atol=1e-13),
    )


@erratum(
    "D1.2.2", printed="sum every index that occurs at least twice", right="sum every index that is not in the output"
)
def batch_indices_must_be_kept() -> Correction:
    """Batched matrix products share an index without summing it, which the rule cannot express (Diehl sec. 1.2)."""
    a, b = standard_normal(6, 3, 4), standard_normal(6, 4, 5, seed=1)
    summed = einsum("bik,bkj->" + unrepeated_indices("bik,bkj"), a, b)
    return Correction(
        printed=close(summed.expand(6, 3, 5), a @ b, atol=1e-9),
        corrected=all_of(
            explicit=close(einsum("bik,bkj->bij", a, b), a @ b, atol=1e-14),
            the_rule_sums_over_the_batch=close(summed, (a @ b).sum(0), atol=1e-13),
            missing_output_raises=raises(ValueError, lambda: einsum("bik,bkj", a, b)),
        ),
    )


@claim("C-02", "D1.2.2")
def einsum_agrees_with_torch_operations() -> Evidence:
    """Slices, squeezes, products and batches of the tutorial agree between einsum and torch (Diehl sec. 1.2)."""
    m, n = standard_normal(3, 4), standard_normal(3, 4, seed=1)
    x, y, z = standard_normal(2, 3, 4), standard_normal(2, 3, 4, seed=1), standard_normal(3, 4, 2, seed=2)
    last = torch.eye(4, dtype=torch.float64)[3]
    stack = standard_normal(5, 4, 2, seed=3)
    return all_of(
        column=close(einsum("ij,j->i", m, last), m[:, 3], atol=1e-15),
        submatrix=close(m[1:, :2], torch.stack([m[1, :2], m[2, :2]])),
        element_wise=close(einsum("ij,ij->ij", m, n), m * n),
        sum_last_axis=close(einsum("ijk->ij", x), x.sum(-1), atol=1e-14),
        contract_last_axes=close(einsum("ijk,jkl->il", x, z), x.reshape(2, 12) @ z.reshape(12, 2), atol=1e-13),
        inner_over_last=close(einsum("bik,bjk->bij", x, y), x @ y.mT, atol=1e-14),
        broadcast_product=close(einsum("ijk,jk->ijk", x, m), x * m),
        broadcast_matmul=close(einsum("bik,nkl->bnil", x, stack), x[:, None] @ stack, atol=1e-14),
        batched_outer=close(einsum("bi,bj->bij", m, n), m[:, :, None] * n[:, None, :]),
        squeeze=close(m[None].squeeze(0), m),
        matmul_of_these_shapes=runs(lambda: x @ z.movedim(2, 0).mT, unless=RuntimeError),
        star_needs_broadcastable_shapes=raises(RuntimeError, lambda: x * z),
    )


@claim("C-02")
def shapes_can_be_predicted() -> Evidence:
    """The results of all operations of the tutorial have the predicted shapes (Diehl sec. 1.2)."""
    m, x, z = standard_normal(3, 4), standard_normal(2, 3, 4), standard_normal(3, 4, 2)
    a, b = standard_normal(2, 2), standard_normal(2, 2, seed=1)  # called 3×3 in the notes, printed as 2×2
    predictions: list[tuple[Tensor, tuple[int, ...]]] = [
        (m[1], (4,)),
        (m[1:2], (1, 4)),
        (m[:, 2], (3,)),
        (m[:2, 1:3], (2, 2)),
        (x.unsqueeze(0), (1, 2, 3, 4)),
        (x.unsqueeze(-1).squeeze(-1), (2, 3, 4)),
        (x * m, (2, 3, 4)),
        (x @ m.T, (2, 3, 3)),
        (x @ z.movedim(2, 0).mT, (2, 3, 3)),
        (torch.einsum("ijk,jkl->il", x, z), (2, 2)),
        (torch.einsum("bi,bj->bij", m, m), (3, 4, 4)),
        (x[:, None] * x[None], (2, 2, 3, 4)),
    ]
    by_hand = torch.stack([torch.stack([a[i].dot(b[:, j]) for j in range(2)]) for i in range(2)])
    return all_of(
        all_shapes=close(sum(tuple(each.shape) == shape for each, shape in predictions), len(predictions)),
        rows_times_columns=close(a @ b, by_hand, atol=1e-15),
        not_element_wise=greater_equal((a @ b - a * b).abs().max(), 0.1),
    )


@claim("D1.2.3")
def the_tensor_product_is_associative() -> Evidence:
    """(S⊗T)⊗U = S⊗(T⊗U) with concatenated shapes; S⊗T and T⊗S differ by the order of axes (Diehl sec. 1.2)."""
    s, t, u = standard_normal(2, 3), standard_normal(4, seed=1), standard_normal(3, 2, seed=2)
    swapped = tensor_product(t, s)
    return all_of(
        shape=close(torch.tensor(tensor_product(s, t, u).shape), torch.tensor([2, 3, 4, 3, 2])),
        entry=close(tensor_product(s, t)[1, 2, 3], s[1, 2] * t[3]),
        associative=close(tensor_product(tensor_product(s, t), u), tensor_product(s, tensor_product(t, u)), atol=1e-15),
        not_commutative=greater_equal(
            (tensor_product(t, standard_normal(4)) - tensor_product(standard_normal(4), t)).abs().max(), 0.1
        ),
        commutes_up_to_axes=close(swapped.movedim(0, 2), tensor_product(s, t)),
        as_indices=close(tensor_product(s, t), einsum("ij,k->ijk", s, t)),
    )


@claim("D1.2.4")
def a_pure_tensor_unfolds_to_rank_one() -> Evidence:
    """Every unfolding of v₁ ⊗ … ⊗ v_n ≠ 0 has matrix rank 1, those of a sum of two have rank 2 (Diehl sec. 1.2)."""
    sizes = (3, 2, 4, 3)
    pure = pure_tensor(*(standard_normal(size, seed=seed) for seed, size in enumerate(sizes)))
    other = pure_tensor(*(standard_normal(size, seed=9 + seed) for seed, size in enumerate(sizes)))
    return all_of(
        pure=close(torch.tensor(unfolding_ranks(pure)), 1.0),
        sum_of_two=close(torch.tensor(unfolding_ranks(pure + other)), 2.0),
    )


@erratum(
    "D1.2.5", printed="pure tensors have rank one", right="nonzero ones do; v₁ ⊗ … ⊗ 0 is the zero tensor, of rank 0"
)
def the_zero_tensor_is_pure() -> Correction:
    """A product with a zero vector is pure, yet equals the empty sum, of rank 0 (Diehl sec. 1.2)."""
    generator = torch.Generator().manual_seed(0)
    zero = rank_bounds(
        pure_tensor(standard_normal(2), torch.zeros(3, dtype=torch.float64), standard_normal(2)), generator=generator
    )
    nonzero = rank_bounds(pure_tensor(standard_normal(2), standard_normal(3), standard_normal(2)), generator=generator)
    return Correction(
        printed=close(torch.tensor(zero), 1.0),
        corrected=all_of(zero=close(torch.tensor(zero), 0.0), nonzero=close(torch.tensor(nonzero), 1.0)),
    )


@claim("D1.2.5")
def decompositions_find_the_rank_of_small_tensors() -> Evidence:
    """The rank is the matrix rank for order 2, the number of terms for small tensors of order 3 (Diehl sec. 1.2)."""
    generator = torch.Generator().manual_seed(0)
    matrix = standard_normal(5, 2) @ standard_normal(2, 4, seed=1)
    bounds = [
        rank_bounds(
            sum_of_pure_tensors([standard_normal(4, terms, seed=seed) for seed in range(3)]), generator=generator
        )
        for terms in (1, 2, 3, 4)
    ]
    return all_of(
        matrix=close(torch.tensor(rank_bounds(matrix, generator=generator)), 2.0),
        lower_bounds=close(torch.tensor([each.lower for each in bounds]), torch.arange(1, 5)),
        upper_bounds=close(torch.tensor([each.upper for each in bounds]), torch.arange(1, 5)),
    )


@claim("D1.2.5")
def the_w_tensor_is_a_limit_of_lower_rank() -> Evidence:
    """W has rank 3, yet rank-2 tensors come arbitrarily close, with terms of order 1/√error (Diehl sec. 1.2)."""
    width = torch.tensor([0.1, 0.03, 0.01, 0.003], dtype=torch.float64)
    near = torch.stack([(cube(E1 + eps * E2) - cube(E1 - eps * E2)) / (2 * eps) for eps in width])
    errors = (near - W_TENSOR).flatten(1).norm(dim=1)
    terms = torch.stack([cube(E1 + eps * E2).norm() / (2 * eps) for eps in width])
    fits = {
        count: cp_decomposition(
            W_TENSOR, count, generator=torch.Generator().manual_seed(0), num_starts=1, max_sweeps=sweeps
        )
        for count, sweeps in ((1, 100), (2, 1_000), (3, 300))
    }
    sweep = torch.arange(100, 1_001, 100)
    return all_of(
        one_term=close(fits[1].error, sqrt(5) / 3, atol=1e-9),
        explicit_rank_two_error=rate(width, errors, 2.0, atol=1e-6),
        growing_terms=rate(errors, terms, -0.5, atol=0.01),
        two_terms_keep_improving=rate(sweep, fits[2].errors[sweep], -0.5, atol=0.05),
        two_terms_never_fit=greater_equal(fits[2].error, 1e-3),
        three_terms=less_equal(fits[3].error, 1e-12),
        three_terms_are_small=less_equal(fits[3].largest_term, 5.0),
    )


@claim("D1.2.5")
def seven_products_multiply_two_by_two_matrices() -> Evidence:
    """The tensor of 2×2 matrix products has rank 7, not 8, as found by alternating least squares (Diehl sec. 1.2)."""
    tensor = matrix_multiplication_tensor(2)
    seven = cp_decomposition(tensor, 7, generator=torch.Generator().manual_seed(0), num_starts=16, max_sweeps=300)
    six = cp_decomposition(tensor, 6, generator=torch.Generator().manual_seed(0), num_starts=16, max_sweeps=300)
    a, b = standard_normal(2, 2), standard_normal(2, 2, seed=1)
    left, right, out = seven.factors
    products = (a.flatten() @ left) * (b.flatten() @ right)
    return all_of(
        seven=less_equal(seven.error, 1e-8),
        six=greater_equal(six.error, 0.1),
        number_of_products=close(float(products.numel()), 7.0),
        reconstructed_product=close((out @ products).reshape(2, 2), a @ b, atol=1e-6),
    )


def cube(v: Tensor) -> Tensor:
    return pure_tensor(v, v, v)
