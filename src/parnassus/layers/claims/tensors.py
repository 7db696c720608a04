"""Claims about tensors: Einstein summation, tensor products and rank (Diehl sec. 1.2)."""

from itertools import product
from math import sqrt

import torch
from torch import Tensor

from parnassus.atlas import Correction, Evidence, all_of, at_least, at_most, claim, close, erratum, raises, rate, runs
from parnassus.layers.einsum import einsum, indices_seen_once, pure_tensor, tensor_product
from parnassus.layers.tensor_rank import (
    decompose,
    matrix_product_tensor,
    rank_bounds,
    sum_of_pure_tensors,
    unfolding_ranks,
)

E1, E2 = torch.eye(2, dtype=torch.float64)
W_TENSOR = pure_tensor(E1, E1, E2) + pure_tensor(E1, E2, E1) + pure_tensor(E2, E1, E1)
"""Of rank 3, and the limit of tensors of rank 2."""


def normals(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@claim("D1.2.1")
def order_counts_axes_and_is_not_rank() -> Evidence:
    """Scalars, vectors and matrices have orders 0, 1, 2; a tensor of order 3 may have rank 1 or 3 (Diehl sec. 1.2)."""
    orders = [torch.zeros(shape).ndim for shape in ((), (5,), (5, 2), (5, 2, 3))]
    pure = pure_tensor(normals(3), normals(4, seed=1), normals(2, seed=2))
    source = torch.Generator().manual_seed(0)
    return all_of(
        orders=close(torch.tensor(orders), torch.arange(4)),
        entries=close(float(pure.numel()), 3.0 * 4 * 2),
        same_order=close(float(pure.ndim), float(W_TENSOR.ndim)),
        rank_of_the_first=close(float(rank_bounds(pure, generator=source).at_most), 1.0),
        rank_of_the_second=close(float(rank_bounds(W_TENSOR, generator=source, sweeps=150).at_most), 3.0),
    )


@claim("D1.2.2")
def index_notation_names_the_usual_products() -> Evidence:
    """The notes' five examples agree with products, traces and loops, repeated indices summed (Diehl sec. 1.2)."""
    a, b, v, square = normals(3, 4), normals(4, 5, seed=1), normals(4, seed=2), normals(4, 4, seed=3)
    long, other = normals(2, 3, 4, seed=4), normals(3, 4, 5, seed=5)
    loops = torch.zeros(2, 5, dtype=torch.float64)
    for i, k, m, j in product(range(2), range(3), range(4), range(5)):
        loops[i, j] += long[i, k, m] * other[k, m, j]

    def by_rule(terms: str, *tensors: Tensor) -> Tensor:
        return einsum(f"{terms}->{indices_seen_once(terms)}", *tensors)

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
def batches_need_their_index_kept() -> Correction:
    """A batch of matrix products shares its index and keeps it, which the rule cannot say (Diehl sec. 1.2)."""
    a, b = normals(6, 3, 4), normals(6, 4, 5, seed=1)
    summed = einsum("bik,bkj->" + indices_seen_once("bik,bkj"), a, b)
    return Correction(
        printed=close(summed.expand(6, 3, 5), a @ b, atol=1e-9),
        corrected=all_of(
            explicit=close(einsum("bik,bkj->bij", a, b), a @ b, atol=1e-14),
            the_rule_adds_the_batch_up=close(summed, (a @ b).sum(0), atol=1e-13),
            no_output_is_refused=raises(ValueError, lambda: einsum("bik,bkj", a, b)),
        ),
    )


@claim("C-02", "D1.2.2")
def the_tutorial_in_index_notation() -> Evidence:
    """Slices, squeezes, products and batches as the tutorial asks, by index and by library (Diehl sec. 1.2)."""
    m, n = normals(3, 4), normals(3, 4, seed=1)
    x, y, z = normals(2, 3, 4), normals(2, 3, 4, seed=1), normals(3, 4, 2, seed=2)
    last = torch.eye(4, dtype=torch.float64)[3]
    stack = normals(5, 4, 2, seed=3)
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
        matmul_is_no_star=runs(lambda: x @ z.movedim(2, 0).mT, unless=RuntimeError),
        star_wants_equal_shapes=raises(RuntimeError, lambda: x * z),
    )


@claim("C-02")
def the_shapes_can_be_guessed_first() -> Evidence:
    """What each operation of the tutorial does to a shape, said before it is computed (Diehl sec. 1.2)."""
    m, x, z = normals(3, 4), normals(2, 3, 4), normals(3, 4, 2)
    a, b = normals(2, 2), normals(2, 2, seed=1)  # announced as 3×3, given as 2×2
    guesses: list[tuple[Tensor, tuple[int, ...]]] = [
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
        all_guessed=close(sum(tuple(each.shape) == shape for each, shape in guesses), len(guesses)),
        rows_times_columns=close(a @ b, by_hand, atol=1e-15),
        which_is_not_entry_by_entry=at_least((a @ b - a * b).abs().max(), 0.1),
    )


@claim("D1.2.3")
def the_tensor_product_is_associative() -> Evidence:
    """(S⊗T)⊗U = S⊗(T⊗U) with the shapes in a row; S⊗T and T⊗S differ by an order of axes (Diehl sec. 1.2)."""
    s, t, u = normals(2, 3), normals(4, seed=1), normals(3, 2, seed=2)
    swapped = tensor_product(t, s)
    return all_of(
        shape=close(torch.tensor(tensor_product(s, t, u).shape), torch.tensor([2, 3, 4, 3, 2])),
        entry=close(tensor_product(s, t)[1, 2, 3], s[1, 2] * t[3]),
        associative=close(tensor_product(tensor_product(s, t), u), tensor_product(s, tensor_product(t, u)), atol=1e-15),
        not_commutative=at_least((tensor_product(t, normals(4)) - tensor_product(normals(4), t)).abs().max(), 0.1),
        commutes_up_to_axes=close(swapped.movedim(0, 2), tensor_product(s, t)),
        as_indices=close(tensor_product(s, t), einsum("ij,k->ijk", s, t)),
    )


@claim("D1.2.4")
def a_pure_tensor_unfolds_to_rank_one() -> Evidence:
    """Every unfolding of v₁ ⊗ … ⊗ v_n ≠ 0 has matrix rank 1; a sum of two has not (Diehl sec. 1.2)."""
    sizes = (3, 2, 4, 3)
    pure = pure_tensor(*(normals(size, seed=seed) for seed, size in enumerate(sizes)))
    other = pure_tensor(*(normals(size, seed=9 + seed) for seed, size in enumerate(sizes)))
    return all_of(
        pure=close(torch.tensor(unfolding_ranks(pure)), 1.0),
        sum_of_two=close(torch.tensor(unfolding_ranks(pure + other)), 2.0),
    )


@erratum("D1.2.5", printed="pure tensors have rank one", right="nonzero ones; v₁ ⊗ … ⊗ 0 is the zero tensor, of rank 0")
def the_zero_tensor_is_pure() -> Correction:
    """A product with a zero vector is pure, and the empty sum makes it (Diehl sec. 1.2)."""
    source = torch.Generator().manual_seed(0)
    zero = rank_bounds(pure_tensor(normals(2), torch.zeros(3, dtype=torch.float64), normals(2)), generator=source)
    nonzero = rank_bounds(pure_tensor(normals(2), normals(3), normals(2)), generator=source)
    return Correction(
        printed=close(torch.tensor(zero), 1.0),
        corrected=all_of(zero=close(torch.tensor(zero), 0.0), nonzero=close(torch.tensor(nonzero), 1.0)),
    )


@claim("D1.2.5")
def decompositions_find_the_rank_of_small_tensors() -> Evidence:
    """Matrix rank for order 2, and the number of terms that made them for small tensors of order 3 (Diehl sec. 1.2)."""
    source = torch.Generator().manual_seed(0)
    matrix = normals(5, 2) @ normals(2, 4, seed=1)
    found = [
        rank_bounds(sum_of_pure_tensors([normals(4, terms, seed=seed) for seed in range(3)]), generator=source)
        for terms in (1, 2, 3, 4)
    ]
    return all_of(
        matrix=close(torch.tensor(rank_bounds(matrix, generator=source)), 2.0),
        from_below=close(torch.tensor([each.at_least for each in found]), torch.arange(1, 5)),
        from_above=close(torch.tensor([each.at_most for each in found]), torch.arange(1, 5)),
    )


@claim("D1.2.5")
def the_w_tensor_is_a_limit_of_lower_rank() -> Evidence:
    """W has rank 3, yet sums of two come as close as one likes, with terms that grow as 1/√error (Diehl sec. 1.2)."""
    width = torch.tensor([0.1, 0.03, 0.01, 0.003], dtype=torch.float64)
    near = torch.stack([(_cube(E1 + eps * E2) - _cube(E1 - eps * E2)) / (2 * eps) for eps in width])
    errors = (near - W_TENSOR).flatten(1).norm(dim=1)
    terms = torch.stack([_cube(E1 + eps * E2).norm() / (2 * eps) for eps in width])
    found = {
        count: decompose(W_TENSOR, count, generator=torch.Generator().manual_seed(0), starts=1, sweeps=sweeps)
        for count, sweeps in ((1, 100), (2, 1_000), (3, 300))
    }
    sweep = torch.arange(100, 1_001, 100)
    return all_of(
        one_term=close(found[1].error, sqrt(5) / 3, atol=1e-9),
        two_by_hand=rate(width, errors, 2.0, atol=1e-6),
        growing_terms=rate(errors, terms, -0.5, atol=0.01),
        two_terms_keep_coming=rate(sweep, found[2].errors[sweep], -0.5, atol=0.05),
        two_terms_never_fit=at_least(found[2].error, 1e-3),
        three_terms=at_most(found[3].error, 1e-12),
        three_terms_are_small=at_most(found[3].largest_term, 5.0),
    )


@claim("D1.2.5")
def seven_products_multiply_two_by_two_matrices() -> Evidence:
    """The tensor of 2×2 matrix products has rank 7, not 8: least squares finds Strassen's saving (Diehl sec. 1.2)."""
    tensor = matrix_product_tensor(2)
    seven = decompose(tensor, 7, generator=torch.Generator().manual_seed(0), starts=16, sweeps=300)
    six = decompose(tensor, 6, generator=torch.Generator().manual_seed(0), starts=16, sweeps=300)
    a, b = normals(2, 2), normals(2, 2, seed=1)
    left, right, out = seven.factors
    products = (a.flatten() @ left) * (b.flatten() @ right)
    return all_of(
        seven=at_most(seven.error, 1e-8),
        six=at_least(six.error, 0.1),
        seven_numbers=close(float(products.numel()), 7.0),
        they_make_the_product=close((out @ products).reshape(2, 2), a @ b, atol=1e-6),
    )


def _cube(v: Tensor) -> Tensor:
    return pure_tensor(v, v, v)
