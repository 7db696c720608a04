"""Claims about order: attention does not see it unless it is told (Diehl sec. 3; book sec. 10.1)."""

import torch
from torch import Tensor, nn

from parnassus.atlas import Correction, Evidence, all_of, at_least, at_most, claim, close, erratum
from parnassus.attention.block import Block, feed_forward
from parnassus.attention.dot_product import attention
from parnassus.attention.embedding import PositionalEmbedding, TokenEmbedding
from parnassus.attention.linear import linear_attention
from parnassus.attention.multi_head import cross_attention
from parnassus.attention.rotary import Rotary
from parnassus.attention.self_attention import SelfAttention
from parnassus.text.bag_of_words import bag_of_words

KEYS, QUERIES, WIDTH = 7, 5, 8
SHUFFLED_KEYS, SHUFFLED_QUERIES = torch.tensor([4, 2, 6, 0, 5, 1, 3]), torch.tensor([3, 0, 4, 1, 2])


def normals(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def three() -> tuple[Tensor, Tensor, Tensor]:
    return normals(1, QUERIES, WIDTH), normals(1, KEYS, WIDTH, seed=1), normals(1, KEYS, WIDTH, seed=2)


def distance(first: Tensor, second: Tensor) -> Tensor:
    return (first - second).abs().max()


@claim("D3.1")
@torch.no_grad()
def the_order_of_keys_does_not_matter() -> Evidence:
    """Attention(Q, K_τ, V_τ) = Attention(Q, K, V) for τ ∈ S_{n_k}, with many heads and linear too (Diehl sec. 3)."""
    torch.manual_seed(0)
    query, key, value = three()
    shuffled = key[:, SHUFFLED_KEYS], value[:, SHUFFLED_KEYS]
    heads = cross_attention(WIDTH, 2).double()
    mixed = attention(query, key, value).output
    return all_of(
        attention=at_most(distance(attention(query, *shuffled).output, mixed), 1e-14),
        heads=at_most(distance(heads(query, *shuffled), heads(query, key, value)), 1e-14),
        linear=at_most(distance(linear_attention(query, *shuffled), linear_attention(query, key, value)), 1e-13),
        keys_alone_may_not_be_shuffled=at_least(distance(attention(query, shuffled[0], value).output, mixed), 0.1),
    )


@claim("D3.2")
@torch.no_grad()
def answers_follow_their_queries() -> Evidence:
    """Attention(Q_τ, K, V)_t = Attention(Q, K, V)_τ(t) for τ ∈ S_{n_q}, multi-head and linear too (Diehl sec. 3)."""
    torch.manual_seed(0)
    query, key, value = three()
    shuffled = query[:, SHUFFLED_QUERIES]
    heads = cross_attention(WIDTH, 2).double()
    mixed = attention(query, key, value).output
    linear = linear_attention(query, key, value)
    return all_of(
        attention=at_most(distance(attention(shuffled, key, value).output, mixed[:, SHUFFLED_QUERIES]), 1e-14),
        heads=at_most(distance(heads(shuffled, key, value), heads(query, key, value)[:, SHUFFLED_QUERIES]), 1e-14),
        linear=at_most(distance(linear_attention(shuffled, key, value), linear[:, SHUFFLED_QUERIES]), 1e-13),
    )


@claim("D3.2", "D3.1")
@torch.no_grad()
def places_break_the_symmetry() -> Evidence:
    """SA(X_τ) = SA(X)_τ also for whole blocks; with rotary places or in causal order no longer (Diehl sec. 3)."""
    torch.manual_seed(0)
    x = normals(1, KEYS, WIDTH)

    def excess(layer: nn.Module) -> Tensor:
        return distance(layer(x[:, SHUFFLED_KEYS]), layer(x)[:, SHUFFLED_KEYS])

    def norm() -> nn.LayerNorm:
        return nn.LayerNorm(WIDTH)

    plain = SelfAttention(WIDTH, 2).double()
    turning = SelfAttention(WIDTH, 2, positions=Rotary(WIDTH // 2, KEYS)).double()
    causal = SelfAttention(WIDTH, 2, causal=True).double()
    return all_of(
        plain=at_most(excess(plain), 1e-14),
        block=at_most(excess(Block(plain, feed_forward(WIDTH).double(), norm=norm).double()), 1e-13),
        rotary=at_least(excess(turning), 1e-3),
        causal=at_least(excess(causal), 1e-3),
    )


@erratum(
    "D3.1",
    printed="τ ∈ S_n in both laws",
    right="τ ∈ S_{n_k} for keys and values, τ ∈ S_{n_q} for queries",
)
@torch.no_grad()
def keys_and_queries_have_permutations_of_their_own() -> Correction:
    """With five queries and seven keys, τ ∈ S_5 cannot shuffle the keys: it leaves two of them out (Diehl sec. 3)."""
    query, key, value = three()
    mixed = attention(query, key, value).output

    def shuffled(order: Tensor) -> Tensor:
        return attention(query, key[:, order], value[:, order]).output

    return Correction(
        printed=close(shuffled(SHUFFLED_QUERIES), mixed, rtol=1e-6),
        corrected=close(shuffled(SHUFFLED_KEYS), mixed, rtol=1e-9, atol=1e-12),
    )


@claim("B10.1-1")
@torch.no_grad()
def bags_and_histograms_lose_the_order() -> Evidence:
    """A bag of words is the same for every order of a text, as a histogram is for all pixels (book sec. 10.1)."""
    torch.manual_seed(0)
    text = torch.tensor([[3, 1, 4, 1, 5, 9, 2]])
    other = text[:, SHUFFLED_KEYS]
    picture = torch.arange(64.0).view(8, 8)
    scrambled = picture.flatten()[torch.randperm(64)]
    by_place, without = PositionalEmbedding(10, KEYS, WIDTH), TokenEmbedding(10, WIDTH)
    return all_of(
        bag=close(bag_of_words(text, 10), bag_of_words(other, 10)),
        histogram=close(picture.histc(16), scrambled.histc(16)),
        sum_of_embeddings=close(without(text).sum(1), without(other).sum(1), atol=1e-5),
        with_places_each_order_is_another=at_least(
            distance(by_place(text), by_place(other)[:, SHUFFLED_KEYS.argsort()]), 0.5
        ),
        different_words=at_least((bag_of_words(text, 10) - bag_of_words(text + 1, 11)[:, :10]).abs().sum(), 1),
    )
