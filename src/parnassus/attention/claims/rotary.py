"""Claims about rotary positions (Diehl sec. 3; Su et al. 2021)."""

import torch
from torch import Tensor

from parnassus.atlas import Correction, Evidence, all_of, at_least, at_most, claim, close, erratum
from parnassus.attention.dot_product import attention, attention_weights
from parnassus.attention.rotary import long_range_bound, rotate, rotation
from parnassus.attention.sinusoidal import frequencies, waves


def turned(x: Tensor, start: float, *, sign: float = 1.0) -> Tensor:
    """R_m x_m at the places start, start + 1, …; the notes' sign is −1."""
    places = sign * (start + torch.arange(x.shape[-2], dtype=torch.float64))
    sin, cos = waves(places, frequencies(x.shape[-1])).unbind(-2)
    return rotate(x, cos, sin)


def pair(count: int, width: int) -> tuple[Tensor, Tensor]:
    torch.manual_seed(0)
    query, key = torch.randn(2, count, width, dtype=torch.float64).unbind()
    return query, key


@claim("D3.5")
def rotations_form_a_group() -> Evidence:
    """R_0 = I, R_mᵀ R_m = I, R_m R_n = R_{m+n} (Diehl sec. 3)."""
    m, n = rotation(13.0, 16), rotation(1_000.0, 16)
    return all_of(
        identity=close(rotation(0.0, 16), torch.eye(16)),
        orthogonal=close(n.T @ n, torch.eye(16), atol=1e-14),
        product=close(m @ n, rotation(1_013.0, 16), atol=1e-12),
        back=close(rotation(-13.0, 16), m.T, atol=1e-15),
    )


@claim("D3.5")
def the_matrix_need_not_be_formed() -> Evidence:
    """Turning pairs of coordinates takes O(d) and is the product with R_m (Diehl sec. 3)."""
    x, _ = pair(50, 16)
    return close(turned(x, 7.0), torch.stack([rotation(7.0 + t, 16) @ x[t] for t in range(50)]), atol=1e-12)


@claim("D3.5")
def rotary_scores_know_distances_alone() -> Evidence:
    """⟨R_m q, R_n k⟩ = ⟨R_{m−n} q, k⟩: moving the whole sequence changes no score (Diehl sec. 3)."""
    query, key = pair(40, 16)
    scores = turned(query, 0.0) @ turned(key, 0.0).T
    far = turned(query, 1_000.0) @ turned(key, 1_000.0).T
    by_distance = torch.stack(
        [torch.stack([(rotation(float(m - n), 16) @ query[m]) @ key[n] for n in range(40)]) for m in range(40)]
    )
    unturned = query @ key.T
    return all_of(
        moved_by_a_thousand=close(far, scores, atol=1e-11),
        by_the_distance=close(scores, by_distance, atol=1e-12),
        but_distances_matter=at_least((scores - unturned).abs().max(), 1.0),
    )


@claim("D3.5")
def either_sign_serves_but_not_both() -> Evidence:
    """The notes' R_m is RoFormer's transposed: scores with m and n exchanged; mixed signs see m + n (Diehl sec. 3)."""
    query, key = pair(40, 16)

    def moves(sign_q: float, sign_k: float) -> Tensor:
        """How much scores change when the sequence is moved by ten places."""
        near, far = (turned(query, s, sign=sign_q) @ turned(key, s, sign=sign_k).T for s in (0.0, 10.0))
        return (near - far).abs().max()

    one, other = query[:1].expand(40, -1), key[:1].expand(40, -1)  # the same contents at every place
    roformer, notes = (turned(one, 0.0, sign=sign) @ turned(other, 0.0, sign=sign).T for sign in (1.0, -1.0))
    return all_of(
        roformer=at_most(moves(1.0, 1.0), 1e-12),
        notes=at_most(moves(-1.0, -1.0), 1e-12),
        m_and_n_exchanged=close(notes, roformer.T, atol=1e-12),
        not_the_same_scores=at_least((notes - roformer).abs().max(), 1.0),
        mixed=at_least(moves(1.0, -1.0), 1.0),
    )


@claim("D3.5")
def far_apart_can_matter_less() -> Evidence:
    """|⟨R_m q, R_n k⟩| ≤ max_i |h_{i+1} − h_i| Σ_j |S_j|, which falls with distance (Su et al. 2021, eq. 36)."""
    query, key = pair(64, 128)
    distances = torch.arange(1_024, dtype=torch.float64)
    bound = long_range_bound(distances, 128)
    first, second = (torch.view_as_complex(x.unflatten(-1, (-1, 2))) for x in (query, key))
    product = first * second.conj()  # h_i of each pair
    steps = torch.diff(product, append=torch.zeros(64, 1), dim=1).abs().amax(1)
    scores = torch.stack([(turned(query[:, None], float(r))[:, 0] * key).sum(1).abs() for r in distances[::16]], 1)
    averages = bound.view(8, 128).mean(1)
    return all_of(
        bound=at_most(scores, steps[:, None] * bound[::16]),
        falls_by_eighths=at_most(averages.diff()[:4], 0.0),
        far_below_the_start=at_most(averages[-1] / bound[0], 0.3),
        at_no_distance=close(bound[0], 64 * 65 / 2, rtol=1e-12),
    )


@claim("D3.5", "D3.4")
def equal_contents_meet_as_codes_do() -> Evidence:
    """⟨R_m 1, R_n 1⟩ = 2 Σ_i cos((m − n) θ_i), twice the product of the codes made of waves (Diehl sec. 3)."""
    ones = torch.ones(100, 32, dtype=torch.float64)
    code = waves(torch.arange(100, dtype=torch.float64), frequencies(32)).flatten(-2)
    return close(turned(ones, 0.0) @ turned(ones, 0.0).T, 2 * code @ code.T, atol=1e-11)


@erratum("D3.5", printed="f_η(x, m) = R_m W_η x_m, no word on v", right="η ∈ {q, k} only: values are not turned")
def values_are_not_turned() -> Correction:
    """Were values turned like queries and keys, moving the sequence would change the output (Diehl sec. 3)."""
    query, key = pair(30, 16)
    value = torch.randn(30, 16, dtype=torch.float64)
    near, far = ([turned(x, start) for x in (query, key, value)] for start in (0.0, 100.0))
    plain = attention(near[0], near[1], value).output
    return Correction(
        printed=close(attention(*far).output, attention(*near).output, atol=1e-10),
        corrected=all_of(
            outputs=close(attention(far[0], far[1], value).output, plain, atol=1e-10),
            weights=close(attention_weights(far[0], far[1]), attention_weights(near[0], near[1]), atol=1e-10),
        ),
    )
