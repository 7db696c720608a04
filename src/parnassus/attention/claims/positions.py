"""Claims about places that are added to tokens: learned tables and waves (Diehl sec. 3, book sec. 10.1)."""

import torch
from torch import Tensor, nn

from parnassus.atlas import Correction, Evidence, all_of, at_least, at_most, claim, close, erratum, raises
from parnassus.attention.alibi import Alibi
from parnassus.attention.dot_product import attention
from parnassus.attention.embedding import PositionalEmbedding, TokenEmbedding
from parnassus.attention.head_positions import HeadPositions, additive_map
from parnassus.attention.masks import padding_mask
from parnassus.attention.relative import RelativePositions
from parnassus.attention.rotary import Rotary, rotation
from parnassus.attention.self_attention import SelfAttention
from parnassus.attention.sinusoidal import SinusoidalEmbedding, frequencies, sinusoidal, waves


def codes(places: int, width: int) -> Tensor:
    return sinusoidal(torch.arange(places, dtype=torch.float64), width)


@claim("D3.4", "B10.1-2")
def every_code_has_the_same_length() -> Evidence:
    """‖pe_m‖² = d/2 at every place: where a token stands never makes it louder (Diehl sec. 3)."""
    lengths = [codes(2_000, width).square().sum(1) * 2 / width for width in (2, 16, 512)]
    return close(torch.cat(lengths), 1.0, rtol=1e-12)


@claim("D3.4", "B10.1-2")
def products_of_codes_know_distances_alone() -> Evidence:
    """⟨pe_m, pe_n⟩ = Σ_i cos((m − n) θ_i): the products of two codes depend on m − n only (Diehl sec. 3)."""
    code = codes(200, 64)
    products = code @ code.T
    distance = torch.arange(200)[:, None] - torch.arange(200)
    formula = (distance[..., None] * frequencies(64)).cos().sum(-1)
    moved = codes(1_200, 64)[1_000:]
    torch.manual_seed(0)
    learned = torch.randn(200, 64, dtype=torch.float64)
    spread = (learned @ learned.T).diagonal(1).std()  # of pairs at distance 1
    return all_of(
        formula=close(products, formula, atol=1e-11),
        moved_by_a_thousand=close(moved @ moved.T, products, atol=1e-10),
        nearest_is_itself=at_least(products.diagonal() - products.diagonal(1).max(), 1.0),
        not_so_for_a_random_table=at_least(spread, 1.0),
    )


@claim("D3.4", "D3.5")
def a_shift_is_a_rotation() -> Evidence:
    """pe_{m+k} is the same rotation of pe_m at every m: R_k as the notes print it for rotary places (Diehl sec. 3)."""
    code, shifts = codes(300, 32), (1, 7, 100)
    turned = torch.stack([code[:200] @ rotation(float(k), 32) for k in shifts])  # rows: x R = (Rᵀ x)ᵀ
    return close(turned, torch.stack([code[k : k + 200] for k in shifts]), atol=1e-12)


@claim("D3.3")
def scores_of_added_places_have_four_parts() -> Evidence:
    """⟨W_q(x_m + pe_m), W_k(x_n + pe_n)⟩ is content and place, each with each; W mixes m and n up (Diehl sec. 3)."""
    torch.manual_seed(0)
    x, code = torch.randn(20, 16, dtype=torch.float64), codes(20, 16)
    w_q, w_k = torch.randn(2, 8, 16, dtype=torch.float64).unbind()
    scores = additive_map(x, code, w_q) @ additive_map(x, code, w_k).T
    parts = [(left @ w_q.T) @ (right @ w_k.T).T for left in (x, code) for right in (x, code)]
    places_alone, unprojected = parts[3], code @ code.T
    return all_of(
        sum_of_four=close(scores, sum(parts), atol=1e-10),
        without_w_places_know_distances=at_most(unprojected.diagonal(3).std(), 1e-12),
        with_w_they_do_not=at_least(places_alone.diagonal(3).std(), 1.0),
    )


@claim("B10.1-2", "D3.3", "D3.4", "D3.5")
def order_is_invisible_without_positions() -> Evidence:
    """Permuting the input of self-attention permutes its output; any positions end this (book sec. 10.1)."""
    torch.manual_seed(0)
    x, order = torch.randn(2, 12, 8), torch.randperm(12)

    def gap(code: Tensor | None, positions: HeadPositions | None) -> Tensor:
        """How far the answer to a permuted input is from the permuted answer."""
        layer = SelfAttention(8, 2, positions=positions).requires_grad_(False)
        added = torch.zeros(12, 8) if code is None else code
        difference: Tensor = layer(x[:, order] + added) - layer(x + added)[:, order]
        return difference.abs().max()

    return all_of(
        none=at_most(gap(None, None), 1e-6),
        waves=at_least(gap(codes(12, 8).float(), None), 1e-2),
        learned=at_least(gap(torch.randn(12, 8), None), 1e-2),
        rotary=at_least(gap(None, Rotary(4, 12)), 1e-2),
        alibi=at_least(gap(None, Alibi(2)), 1e-2),
        relative=at_least(gap(None, RelativePositions(2, 4, 12)), 1e-2),
    )


@claim("B10.1.1-3", "B10.1-2")
def the_layer_of_the_listing() -> Evidence:
    """token(x_t) + place(t), positions from 0, and a mask where the token is not 0 (book sec. 10.1.1)."""
    torch.manual_seed(0)
    layer = PositionalEmbedding(50, 12, 8).requires_grad_(False)
    tokens = torch.randint(50, (3, 12))
    one_hot = nn.functional.one_hot(tokens, 50).float()
    return all_of(
        sum_of_two_tables=close(layer(tokens), one_hot @ layer.tokens.weight + layer.places.weight, atol=1e-6),
        shorter_is_fine=close(layer(tokens[:, :5]), layer(tokens)[:, :5]),
        mask=close(padding_mask(tokens)[:, 0].float(), tokens.sign().float()),
    )


@claim("B10.1.1-3", "B10.1-2")
def a_learned_table_ends() -> Evidence:
    """Beyond its last place a learned table has nothing to add; waves and plain tokens go on (book sec. 10.1.1)."""
    tokens = torch.zeros(1, 13, dtype=torch.int64)
    learned, made = PositionalEmbedding(50, 12, 8), SinusoidalEmbedding(50, 8).requires_grad_(False)
    plain = TokenEmbedding(50, 8).requires_grad_(False)
    return all_of(
        learned=raises(ValueError, lambda: learned(tokens)),
        waves=at_most(made(tokens).abs().max(), 100.0),
        tokens=close(plain(tokens)[:, -1], plain.tokens.weight[:1]),
    )


@erratum("D3.3", printed="v_m = f_k(v_m, m)", right="v_m = f_v(x_m, m)")
def values_have_a_map_of_their_own() -> Correction:
    """The notes map values by the keys' function, and from themselves (Diehl sec. 3)."""
    torch.manual_seed(0)
    x, code = torch.randn(1, 7, 8, dtype=torch.float64), codes(7, 8)
    theirs = nn.MultiheadAttention(8, 1, bias=False, batch_first=True, dtype=torch.float64).requires_grad_(False)
    theirs.out_proj.weight.copy_(torch.eye(8))
    w_q, w_k, w_v = theirs.in_proj_weight.chunk(3)
    expected = theirs(*[x + code] * 3)[0]
    query, key = additive_map(x, code, w_q), additive_map(x, code, w_k)
    printed, right = (attention(query, key, additive_map(x, code, w)).output for w in (w_k, w_v))
    return Correction(
        printed=close(printed, expected, atol=1e-12),
        corrected=close(right, expected, atol=1e-12),
    )


@erratum("D3.4", printed="pos = 1, …, d_model", right="pos over the places of the sequence, 0, …, n − 1")
def places_do_not_end_at_the_width() -> Correction:
    """The notes count places up to the width, so that a longer sequence would have no codes (Diehl sec. 3)."""
    length, width = 100, 16
    as_printed = sinusoidal(torch.arange(1, width + 1, dtype=torch.float64), width)
    return Correction(
        printed=close(len(as_printed), length),
        corrected=all_of(
            a_code_for_each=close(len(codes(length, width)), length),
            all_different=at_least(torch.pdist(codes(length, width)).min(), 0.5),
        ),
    )


@erratum("C-12", "D3.4", printed="pos / 10000^(2·i/d) for i = 0, 2, 4, …", right="pos / 10000^(i/d) for i = 0, 2, 4, …")
def the_tutorial_doubles_the_exponent_twice() -> Correction:
    """With i even already, 2·i makes half the code stand still over all 2,000 places it is drawn for (Diehl sec. 3)."""
    even = torch.arange(0, 512, 2, dtype=torch.float64)
    places = torch.arange(2_000, dtype=torch.float64)
    twice, once = (waves(places, 10_000.0 ** (-factor * even / 512)).mT.flatten(-2) for factor in (2, 1))
    still_twice, still_once = ((code.amax(0) - code.amin(0) < 0.5).double().mean() for code in (twice, once))
    return Correction(
        printed=close(twice, codes(2_000, 512), atol=1e-9),
        corrected=all_of(
            waves=close(once, codes(2_000, 512), atol=1e-9),
            share_that_stands_still=at_most(still_once, 0.2),
            as_printed=at_least(still_twice, 0.5),
        ),
    )
