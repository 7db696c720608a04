"""Claims about rotary positions (Diehl sec. 3; Su et al. 2021)."""

import torch
from torch import Tensor

from parnassus.atlas import Correction, Evidence, all_of, claim, close, erratum, greater_equal, less_equal
from parnassus.attention.core.dot_product import attention, attention_weights
from parnassus.attention.positions.rotary import apply_rotation, long_range_bound, rotation_matrix
from parnassus.attention.positions.sinusoidal import frequencies, sines_and_cosines


def rotate(x: Tensor, start: float, *, sign: float = 1.0) -> Tensor:
    """R_m x_m at the positions start, start + 1, …; the notes' sign is −1."""
    positions = sign * (start + torch.arange(x.shape[-2], dtype=torch.float64))
    sin, cos = sines_and_cosines(positions, frequencies(x.shape[-1])).unbind(-2)
    return apply_rotation(x, cos, sin)


def normal_queries_and_keys(count: int, width: int) -> tuple[Tensor, Tensor]:
    torch.manual_seed(0)
    query, key = torch.randn(2, count, width, dtype=torch.float64).unbind()
    return query, key


@claim("D3.5")
def rotations_form_a_group() -> Evidence:
    """R_0 = I, R_mᵀ R_m = I, R_m R_n = R_{m+n} (Diehl sec. 3)."""
    m, n = rotation_matrix(13.0, 16), rotation_matrix(1_000.0, 16)
    return all_of(
        identity=close(rotation_matrix(0.0, 16), torch.eye(16)),
        orthogonal=close(n.T @ n, torch.eye(16), atol=1e-14),
        product=close(m @ n, rotation_matrix(1_013.0, 16), atol=1e-12),
        inverse=close(rotation_matrix(-13.0, 16), m.T, atol=1e-15),
    )


@claim("D3.5")
def rotating_pairs_equals_the_matrix_product() -> Evidence:
    """Rotating pairs of coordinates costs O(d) and equals the product with R_m (Diehl sec. 3)."""
    x, _ = normal_queries_and_keys(50, 16)
    return close(rotate(x, 7.0), torch.stack([rotation_matrix(7.0 + t, 16) @ x[t] for t in range(50)]), atol=1e-12)


@claim("D3.5")
def rotary_scores_depend_on_the_distance_only() -> Evidence:
    """⟨R_m q, R_n k⟩ = ⟨R_{m−n} q, k⟩: shifting the whole sequence changes no score (Diehl sec. 3)."""
    query, key = normal_queries_and_keys(40, 16)
    scores = rotate(query, 0.0) @ rotate(key, 0.0).T
    shifted = rotate(query, 1_000.0) @ rotate(key, 1_000.0).T
    by_distance = torch.stack(
        [torch.stack([(rotation_matrix(float(m - n), 16) @ query[m]) @ key[n] for n in range(40)]) for m in range(40)]
    )
    unrotated = query @ key.T
    return all_of(
        shifted_by_a_thousand=close(shifted, scores, atol=1e-11),
        by_the_distance=close(scores, by_distance, atol=1e-12),
        effect_of_the_rotation=greater_equal((scores - unrotated).abs().max(), 1.0),
    )


@claim("D3.5")
def rotary_queries_and_keys_need_the_same_sign() -> Evidence:
    """The notes' R_m is RoFormer's transposed, which swaps m and n; mixed signs depend on m + n (Diehl sec. 3)."""
    query, key = normal_queries_and_keys(40, 16)

    def shift_effect(sign_q: float, sign_k: float) -> Tensor:
        """Largest change of a score when the sequence is shifted by ten positions."""
        original, shifted = (rotate(query, s, sign=sign_q) @ rotate(key, s, sign=sign_k).T for s in (0.0, 10.0))
        return (original - shifted).abs().max()

    queries, keys = query[:1].expand(40, -1), key[:1].expand(40, -1)  # the same contents at every position
    roformer, notes = (rotate(queries, 0.0, sign=sign) @ rotate(keys, 0.0, sign=sign).T for sign in (1.0, -1.0))
    return all_of(
        roformer=less_equal(shift_effect(1.0, 1.0), 1e-12),
        notes=less_equal(shift_effect(-1.0, -1.0), 1e-12),
        m_and_n_exchanged=close(notes, roformer.T, atol=1e-12),
        scores_differ=greater_equal((notes - roformer).abs().max(), 1.0),
        mixed_signs=greater_equal(shift_effect(1.0, -1.0), 1.0),
    )


@claim("D3.5")
def rotary_scores_have_a_bound_that_decreases_with_distance() -> Evidence:
    """|⟨R_m q, R_n k⟩| ≤ max_i |h_{i+1} − h_i| Σ_j |S_j|, decreasing with distance (Su et al. 2021, eq. 36)."""
    query, key = normal_queries_and_keys(64, 128)
    distances = torch.arange(1_024, dtype=torch.float64)
    bound = long_range_bound(distances, 128)
    first, second = (torch.view_as_complex(x.unflatten(-1, (-1, 2))) for x in (query, key))
    product = first * second.conj()  # h_i of each pair
    largest_steps = torch.diff(product, append=torch.zeros(64, 1), dim=1).abs().amax(1)
    scores = torch.stack([(rotate(query[:, None], float(r))[:, 0] * key).sum(1).abs() for r in distances[::16]], 1)
    averages = bound.view(8, 128).mean(1)
    return all_of(
        bound=less_equal(scores, largest_steps[:, None] * bound[::16]),
        bound_decreases=less_equal(averages.diff()[:4], 0.0),
        bound_at_large_distances=less_equal(averages[-1] / bound[0], 0.3),
        bound_at_distance_zero=close(bound[0], 64 * 65 / 2, rtol=1e-12),
    )


@claim("D3.5", "D3.4")
def rotary_products_of_ones_equal_products_of_sinusoidal_encodings() -> Evidence:
    """⟨R_m 1, R_n 1⟩ = 2 Σ_i cos((m − n) θ_i), twice the product of sinusoidal encodings (Diehl sec. 3)."""
    ones = torch.ones(100, 32, dtype=torch.float64)
    encoding = sines_and_cosines(torch.arange(100, dtype=torch.float64), frequencies(32)).flatten(-2)
    return close(rotate(ones, 0.0) @ rotate(ones, 0.0).T, 2 * encoding @ encoding.T, atol=1e-11)


@erratum("D3.5", printed="f_η(x, m) = R_m W_η x_m, v not specified", right="η ∈ {q, k} only: values are not rotated")
def values_are_not_rotated() -> Correction:
    """If values were rotated like queries and keys, shifting the sequence would change the output (Diehl sec. 3)."""
    query, key = normal_queries_and_keys(30, 16)
    value = torch.randn(30, 16, dtype=torch.float64)
    original, shifted = ([rotate(x, start) for x in (query, key, value)] for start in (0.0, 100.0))
    expected = attention(original[0], original[1], value).output
    return Correction(
        printed=close(attention(*shifted).output, attention(*original).output, atol=1e-10),
        corrected=all_of(
            outputs=close(attention(shifted[0], shifted[1], value).output, expected, atol=1e-10),
            weights=close(
                attention_weights(shifted[0], shifted[1]), attention_weights(original[0], original[1]), atol=1e-10
            ),
        ),
    )
