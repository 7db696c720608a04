"""Claims about positions added to tokens: learned tables and sinusoidal encodings (Diehl sec. 3, book sec. 10.1)."""

from math import cos, sin

import torch
from torch import Tensor, nn

from parnassus.atlas import Correction, Evidence, all_of, claim, close, erratum, greater_equal, less_equal, raises
from parnassus.attention.core.dot_product import attention
from parnassus.attention.core.self_attention import SelfAttention
from parnassus.attention.positions.alibi import Alibi
from parnassus.attention.positions.head_positions import HeadPositions, additive_projection
from parnassus.attention.positions.learned import PositionalEmbedding
from parnassus.attention.positions.relative import RelativePositions
from parnassus.attention.positions.rotary import Rotary, rotation_matrix
from parnassus.attention.positions.sinusoidal import (
    SinusoidalEmbedding,
    frequencies,
    sines_and_cosines,
    sinusoidal_encoding,
)
from parnassus.layers.token_embedding import TokenEmbedding, padding_mask


def encodings(length: int, width: int) -> Tensor:
    return sinusoidal_encoding(torch.arange(length, dtype=torch.float64), width)


@claim("D3.4", "B10.1-2")
def sinusoidal_encodings_have_constant_norm() -> Evidence:
    """‖pe_m‖² = d/2 at every position (Diehl sec. 3)."""
    norms = [encodings(2_000, width).square().sum(1) * 2 / width for width in (2, 16, 512)]
    return close(torch.cat(norms), 1.0, rtol=1e-12)


@claim("D3.4", "B10.1-2")
def products_of_encodings_depend_on_the_distance_only() -> Evidence:
    """⟨pe_m, pe_n⟩ = Σ_i cos((m − n) θ_i): products of two encodings depend on m − n only (Diehl sec. 3)."""
    encoding = encodings(200, 64)
    products = encoding @ encoding.T
    distance = torch.arange(200)[:, None] - torch.arange(200)
    formula = (distance[..., None] * frequencies(64)).cos().sum(-1)
    shifted = encodings(1_200, 64)[1_000:]
    torch.manual_seed(0)
    learned = torch.randn(200, 64, dtype=torch.float64)
    standard_deviation = (learned @ learned.T).diagonal(1).std()  # over pairs at distance 1
    return all_of(
        formula=close(products, formula, atol=1e-11),
        shifted_by_a_thousand=close(shifted @ shifted.T, products, atol=1e-10),
        largest_at_distance_zero=greater_equal(products.diagonal() - products.diagonal(1).max(), 1.0),
        varies_in_a_random_table=greater_equal(standard_deviation, 1.0),
    )


@claim("D3.4", "D3.5")
def shifting_a_sinusoidal_encoding_is_a_rotation() -> Evidence:
    """pe_{m+k} is the same rotation of pe_m at every m: R_k as printed for rotary positions (Diehl sec. 3)."""
    encoding, shifts = encodings(300, 32), (1, 7, 100)
    rotated = torch.stack([encoding[:200] @ rotation_matrix(float(k), 32) for k in shifts])  # rows: x R = (Rᵀ x)ᵀ
    return close(rotated, torch.stack([encoding[k : k + 200] for k in shifts]), atol=1e-12)


@claim("D3.3", "D3.4")
@torch.no_grad()
def embeddings_add_the_vector_of_the_position() -> Evidence:
    """token(x_t) + p_t with learned p_t; √d token(x_t) + pe_t with sinusoidal pe_t; from any start (Diehl sec. 3)."""
    torch.manual_seed(0)
    learned, fixed = PositionalEmbedding(9, 12, 6).double(), SinusoidalEmbedding(9, 6).double()
    tokens = torch.tensor([[3, 1, 8, 8], [0, 2, 5, 1]])
    waves = torch.tensor(
        [[f(t / 10_000 ** (2 * i / 6)) for i in range(3) for f in (sin, cos)] for t in range(5, 9)], dtype=torch.float64
    )
    rows = learned.tokens.weight[tokens] + torch.stack([learned.positions.weight[t] for t in range(5, 9)])
    return all_of(
        learned=close(learned(tokens, 5), rows, atol=1e-15),
        sinusoidal=close(fixed(tokens, 5), 6**0.5 * fixed.tokens.weight[tokens] + waves, atol=1e-6),
        later_positions=close(fixed(tokens, 5)[:, 2:], fixed(tokens[:, 2:], 7), atol=1e-12),
    )


@claim("D3.3")
def scores_with_added_positions_have_four_terms() -> Evidence:
    """⟨W_q(x_m + pe_m), W_k(x_n + pe_n)⟩ has four terms of content and position; W mixes m and n (Diehl sec. 3)."""
    torch.manual_seed(0)
    x, encoding = torch.randn(20, 16, dtype=torch.float64), encodings(20, 16)
    w_q, w_k = torch.randn(2, 8, 16, dtype=torch.float64).unbind()
    scores = additive_projection(x, encoding, w_q) @ additive_projection(x, encoding, w_k).T
    parts = [(left @ w_q.T) @ (right @ w_k.T).T for left in (x, encoding) for right in (x, encoding)]
    position_term, unprojected = parts[3], encoding @ encoding.T
    return all_of(
        sum_of_four=close(scores, sum(parts), atol=1e-10),
        without_w_positions_depend_on_the_distance_only=less_equal(unprojected.diagonal(3).std(), 1e-12),
        with_w_they_depend_on_more=greater_equal(position_term.diagonal(3).std(), 1.0),
    )


@claim("B10.1-2", "D3.3", "D3.4", "D3.5")
def self_attention_ignores_order_without_positions() -> Evidence:
    """Permuting the input of self-attention permutes its output, unless positions are encoded (book sec. 10.1)."""
    torch.manual_seed(0)
    x, order = torch.randn(2, 12, 8), torch.randperm(12)

    def equivariance_error(encoding: Tensor | None, positions: HeadPositions | None) -> Tensor:
        """Largest deviation of the output for a permuted input from the permuted output."""
        layer = SelfAttention(8, 2, positions=positions).requires_grad_(False)
        added = torch.zeros(12, 8) if encoding is None else encoding
        difference: Tensor = layer(x[:, order] + added) - layer(x + added)[:, order]
        return difference.abs().max()

    return all_of(
        no_positions=less_equal(equivariance_error(None, None), 1e-6),
        sinusoidal=greater_equal(equivariance_error(encodings(12, 8).float(), None), 1e-2),
        learned=greater_equal(equivariance_error(torch.randn(12, 8), None), 1e-2),
        rotary=greater_equal(equivariance_error(None, Rotary(4, 12)), 1e-2),
        alibi=greater_equal(equivariance_error(None, Alibi(2)), 1e-2),
        relative=greater_equal(equivariance_error(None, RelativePositions(2, 4, 12)), 1e-2),
    )


@claim("B10.1.1-3", "B10.1-2")
def positional_embedding_matches_the_listing() -> Evidence:
    """token(x_t) + position(t), positions from 0, and a mask of the non-zero tokens (book sec. 10.1.1)."""
    torch.manual_seed(0)
    layer = PositionalEmbedding(50, 12, 8).requires_grad_(False)
    tokens = torch.randint(50, (3, 12))
    one_hot = nn.functional.one_hot(tokens, 50).float()
    return all_of(
        sum_of_two_tables=close(layer(tokens), one_hot @ layer.tokens.weight + layer.positions.weight, atol=1e-6),
        shorter_input=close(layer(tokens[:, :5]), layer(tokens)[:, :5]),
        mask=close(padding_mask(tokens)[:, 0].float(), tokens.sign().float()),
    )


@claim("B10.1.1-3", "B10.1-2")
def learned_positions_have_a_maximum_length() -> Evidence:
    """A learned table has a last position; sinusoidal or no positions accept any length (book sec. 10.1.1)."""
    tokens = torch.zeros(1, 13, dtype=torch.int64)
    learned, sinusoidal = PositionalEmbedding(50, 12, 8), SinusoidalEmbedding(50, 8).requires_grad_(False)
    plain = TokenEmbedding(50, 8).requires_grad_(False)
    return all_of(
        learned=raises(ValueError, lambda: learned(tokens)),
        sinusoidal=less_equal(sinusoidal(tokens).abs().max(), 100.0),
        no_positions=close(plain(tokens)[:, -1], plain.tokens.weight[:1]),
    )


@erratum("D3.3", printed="v_m = f_k(v_m, m)", right="v_m = f_v(x_m, m)")
def values_have_their_own_projection() -> Correction:
    """The notes project values by the keys' function, and from v_m instead of x_m (Diehl sec. 3)."""
    torch.manual_seed(0)
    x, encoding = torch.randn(1, 7, 8, dtype=torch.float64), encodings(7, 8)
    library = nn.MultiheadAttention(8, 1, bias=False, batch_first=True, dtype=torch.float64).requires_grad_(False)
    library.out_proj.weight.copy_(torch.eye(8))
    w_q, w_k, w_v = library.in_proj_weight.chunk(3)
    expected = library(*[x + encoding] * 3)[0]
    query, key = additive_projection(x, encoding, w_q), additive_projection(x, encoding, w_k)
    printed, right = (attention(query, key, additive_projection(x, encoding, w)).output for w in (w_k, w_v))
    return Correction(
        printed=close(printed, expected, atol=1e-12),
        corrected=close(right, expected, atol=1e-12),
    )


@erratum("D3.4", printed="pos = 1, …, d_model", right="pos over the positions of the sequence, 0, …, n − 1")
def positions_are_not_limited_by_the_width() -> Correction:
    """The notes count positions up to the width, so longer sequences would have no encodings (Diehl sec. 3)."""
    length, width = 100, 16
    as_printed = sinusoidal_encoding(torch.arange(1, width + 1, dtype=torch.float64), width)
    return Correction(
        printed=close(len(as_printed), length),
        corrected=all_of(
            one_encoding_per_position=close(len(encodings(length, width)), length),
            encodings_are_distinct=greater_equal(torch.pdist(encodings(length, width)).min(), 0.5),
        ),
    )


@erratum("C-12", "D3.4", printed="pos / 10000^(2·i/d) for i = 0, 2, 4, …", right="pos / 10000^(i/d) for i = 0, 2, 4, …")
def the_tutorial_doubles_an_even_exponent() -> Correction:
    """With i even already, 2·i makes half of the entries constant over all 2,000 positions plotted (Diehl sec. 3)."""
    even = torch.arange(0, 512, 2, dtype=torch.float64)
    positions = torch.arange(2_000, dtype=torch.float64)
    doubled, corrected = (
        sines_and_cosines(positions, 10_000.0 ** (-factor * even / 512)).mT.flatten(-2) for factor in (2, 1)
    )
    constant_if_doubled, constant_if_corrected = (
        (encoding.amax(0) - encoding.amin(0) < 0.5).double().mean() for encoding in (doubled, corrected)
    )
    return Correction(
        printed=close(doubled, encodings(2_000, 512), atol=1e-9),
        corrected=all_of(
            encodings=close(corrected, encodings(2_000, 512), atol=1e-9),
            fraction_of_constant_entries=less_equal(constant_if_corrected, 0.2),
            fraction_as_printed=greater_equal(constant_if_doubled, 0.5),
        ),
    )
