"""Claims about permutation symmetry: attention ignores order without positions (Diehl sec. 3; book sec. 10.1)."""

import torch
from torch import Tensor, nn

from parnassus.atlas import Correction, Evidence, all_of, claim, close, erratum, greater_equal, less_equal
from parnassus.attention.core.dot_product import attention
from parnassus.attention.core.multi_head import cross_attention
from parnassus.attention.core.self_attention import SelfAttention
from parnassus.attention.efficient.linear_attention import linear_attention
from parnassus.attention.models.block import Block, feed_forward
from parnassus.attention.positions.learned import PositionalEmbedding
from parnassus.attention.positions.rotary import Rotary
from parnassus.layers.token_embedding import TokenEmbedding
from parnassus.probability import standard_normal
from parnassus.text.bag_of_words import bag_of_words

KEYS, QUERIES, WIDTH = 7, 5, 8
KEY_PERMUTATION, QUERY_PERMUTATION = torch.tensor([4, 2, 6, 0, 5, 1, 3]), torch.tensor([3, 0, 4, 1, 2])


def normal_inputs() -> tuple[Tensor, Tensor, Tensor]:
    return (
        standard_normal(1, QUERIES, WIDTH),
        standard_normal(1, KEYS, WIDTH, seed=1),
        standard_normal(1, KEYS, WIDTH, seed=2),
    )


def largest_difference(first: Tensor, second: Tensor) -> Tensor:
    return (first - second).abs().max()


@claim("D3.1")
@torch.no_grad()
def attention_is_invariant_to_the_order_of_keys() -> Evidence:
    """Attention(Q, K_τ, V_τ) = Attention(Q, K, V) for τ ∈ S_{n_k}, with many heads and linear too (Diehl sec. 3)."""
    torch.manual_seed(0)
    query, key, value = normal_inputs()
    permuted = key[:, KEY_PERMUTATION], value[:, KEY_PERMUTATION]
    heads = cross_attention(WIDTH, 2).double()
    output = attention(query, key, value).output
    return all_of(
        attention=less_equal(largest_difference(attention(query, *permuted).output, output), 1e-14),
        heads=less_equal(largest_difference(heads(query, *permuted), heads(query, key, value)), 1e-14),
        linear=less_equal(
            largest_difference(linear_attention(query, *permuted), linear_attention(query, key, value)), 1e-13
        ),
        permuting_keys_alone=greater_equal(
            largest_difference(attention(query, permuted[0], value).output, output), 0.1
        ),
    )


@claim("D3.2")
@torch.no_grad()
def attention_is_equivariant_to_the_order_of_queries() -> Evidence:
    """Attention(Q_τ, K, V)_t = Attention(Q, K, V)_τ(t) for τ ∈ S_{n_q}, multi-head and linear too (Diehl sec. 3)."""
    torch.manual_seed(0)
    query, key, value = normal_inputs()
    permuted = query[:, QUERY_PERMUTATION]
    heads = cross_attention(WIDTH, 2).double()
    output = attention(query, key, value).output
    linear = linear_attention(query, key, value)
    return all_of(
        attention=less_equal(
            largest_difference(attention(permuted, key, value).output, output[:, QUERY_PERMUTATION]), 1e-14
        ),
        heads=less_equal(
            largest_difference(heads(permuted, key, value), heads(query, key, value)[:, QUERY_PERMUTATION]), 1e-14
        ),
        linear=less_equal(
            largest_difference(linear_attention(permuted, key, value), linear[:, QUERY_PERMUTATION]), 1e-13
        ),
    )


@claim("D3.2", "D3.1")
@torch.no_grad()
def positions_break_permutation_equivariance() -> Evidence:
    """SA(X_τ) = SA(X)_τ holds for whole blocks, but not with rotary positions or a causal mask (Diehl sec. 3)."""
    torch.manual_seed(0)
    x = standard_normal(1, KEYS, WIDTH)

    def equivariance_error(layer: nn.Module) -> Tensor:
        return largest_difference(layer(x[:, KEY_PERMUTATION]), layer(x)[:, KEY_PERMUTATION])

    def norm() -> nn.LayerNorm:
        return nn.LayerNorm(WIDTH)

    plain = SelfAttention(WIDTH, 2).double()
    with_rotary = SelfAttention(WIDTH, 2, positions=Rotary(WIDTH // 2, KEYS)).double()
    causal = SelfAttention(WIDTH, 2, causal=True).double()
    return all_of(
        plain=less_equal(equivariance_error(plain), 1e-14),
        block=less_equal(equivariance_error(Block(plain, feed_forward(WIDTH).double(), norm=norm).double()), 1e-13),
        rotary=greater_equal(equivariance_error(with_rotary), 1e-3),
        causal=greater_equal(equivariance_error(causal), 1e-3),
    )


@erratum(
    "D3.1",
    printed="τ ∈ S_n in both identities",
    right="τ ∈ S_{n_k} for keys and values, τ ∈ S_{n_q} for queries",
)
@torch.no_grad()
def keys_and_queries_have_separate_permutations() -> Correction:
    """With five queries and seven keys, τ ∈ S_5 does not permute the keys: it omits two of them (Diehl sec. 3)."""
    query, key, value = normal_inputs()
    expected = attention(query, key, value).output

    def output_for(order: Tensor) -> Tensor:
        return attention(query, key[:, order], value[:, order]).output

    return Correction(
        printed=close(output_for(QUERY_PERMUTATION), expected, rtol=1e-6),
        corrected=close(output_for(KEY_PERMUTATION), expected, rtol=1e-9, atol=1e-12),
    )


@claim("B10.1-1")
@torch.no_grad()
def bags_of_words_and_histograms_ignore_the_order() -> Evidence:
    """A bag of words is equal for all orders of a text, as a histogram is for all orders of pixels (book sec. 10.1)."""
    torch.manual_seed(0)
    text = torch.tensor([[3, 1, 4, 1, 5, 9, 2]])
    other = text[:, KEY_PERMUTATION]
    image = torch.arange(64.0).view(8, 8)
    scrambled = image.flatten()[torch.randperm(64)]
    with_positions, without_positions = PositionalEmbedding(10, KEYS, WIDTH), TokenEmbedding(10, WIDTH)
    return all_of(
        bag=close(bag_of_words(text, 10), bag_of_words(other, 10)),
        histogram=close(image.histc(16), scrambled.histc(16)),
        sum_of_embeddings=close(without_positions(text).sum(1), without_positions(other).sum(1), atol=1e-5),
        embeddings_with_positions_differ=greater_equal(
            largest_difference(with_positions(text), with_positions(other)[:, KEY_PERMUTATION.argsort()]), 0.5
        ),
        different_words=greater_equal((bag_of_words(text, 10) - bag_of_words(text + 1, 11)[:, :10]).abs().sum(), 1),
    )
