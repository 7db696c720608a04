"""Claims about self-attention layers of linear cost: each equals its formula with projected heads (Diehl sec. 4.1)."""

from functools import partial
from math import cos, pi, sqrt

import torch
from torch import Tensor

from parnassus.atlas import Evidence, all_of, claim, close, greater_equal, rate
from parnassus.attention.core.masks import causal_mask
from parnassus.attention.core.self_attention import SelfAttention
from parnassus.attention.efficient.cosformer import causal_cosformer_attention, cosine_weight
from parnassus.attention.efficient.linear_self_attention import LinearSelfAttention
from parnassus.attention.efficient.linformer import LinformerSelfAttention
from parnassus.attention.efficient.neighbour_mixing import NeighbourMixing
from parnassus.attention.efficient.performer import PerformerAttention
from parnassus.attention.efficient.random_features import orthogonal_directions
from parnassus.attention.efficient.sparse import LocalSelfAttention
from parnassus.probability import seeded_generator, standard_normal

WIDTH, HEADS, TIME = 12, 3, 20


def randomise(layer: SelfAttention) -> SelfAttention:
    """Double precision, and every parameter from N(0, 1/4)."""
    for number, parameter in enumerate(layer.double().parameters()):
        parameter.data = standard_normal(*parameter.shape, seed=number) / 2
    return layer


def projected_heads(layer: SelfAttention, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, keys and values (batch, heads, time, width / heads)."""
    query, key, value = layer.in_proj(x).unflatten(-1, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
    return query, key, value


def layer_output(layer: SelfAttention, weights: Tensor, value: Tensor) -> Tensor:
    """The output from the weights of every head."""
    output: Tensor = layer.out_proj((weights @ value).transpose(1, 2).flatten(-2))
    return output


@claim("D4.1.1")
@torch.no_grad()
def a_linformer_layer_attends_to_projected_keys() -> Evidence:
    """softmax(Q (E K)ᵀ/√d) F V for every head, with the first columns of E and F for a shorter sequence."""
    layer = LinformerSelfAttention(WIDTH, HEADS, length=30, rank=7)
    randomise(layer)
    x = standard_normal(2, TIME, WIDTH)
    query, key, value = projected_heads(layer, x)
    e, f = layer.key_projection[:, :TIME], layer.value_projection[:, :TIME]
    weights = torch.softmax(query @ (e @ key).mT / sqrt(WIDTH / HEADS), -1) @ f
    return all_of(
        output=close(layer(x), layer_output(layer, weights, value), atol=1e-12),
        weights=close(layer.weights(x), weights, atol=1e-12),
    )


@claim("D4.1.2")
@torch.no_grad()
def a_linear_attention_layer_is_a_recurrent_network() -> Evidence:
    """Weights ∝ ⟨φ(q), φ(k)⟩, φ = elu + 1; token by token with running sums the output is the same (Diehl sec. 4.1)."""
    layer, x = LinearSelfAttention(WIDTH, HEADS, causal=True, chunk=6), standard_normal(2, TIME, WIDTH)
    randomise(layer)
    query, key, value = projected_heads(layer, x)
    phi_q, phi_k = (torch.where(part > 0, part + 1, part.exp()) for part in (query, key))
    products = (phi_q @ phi_k.mT) * causal_mask(TIME)
    expected = layer_output(layer, products / products.sum(-1, keepdim=True), value)
    cache = layer.empty_cache(2, TIME)
    steps = [layer(x[:, t : t + 1], cache=cache) for t in range(TIME)]
    return all_of(
        parallel=close(layer(x), expected, atol=1e-12),
        recurrent=close(torch.cat(steps, 1), expected, atol=1e-12),
        tokens_in_the_cache=close(float(cache.count), TIME),
    )


@claim("D4.1.6")
@torch.no_grad()
def performer_replaces_the_softmax_of_a_layer() -> Evidence:
    """With the weights of a softmax layer its output error falls as 1/√k with k features (Diehl sec. 4.1).

    The last positions are masked; for a causal layer and for one that is not.
    """
    x, mask = standard_normal(1, TIME, WIDTH), (torch.arange(TIME) < TIME - 4)[None, None]
    counts, parts = torch.tensor([64, 256, 1_024]), {}
    for name, causal in (("both_sides", False), ("causal", True)):
        softmax = randomise(SelfAttention(WIDTH, HEADS, causal=causal))
        softmax.in_proj.weight[: 2 * WIDTH] *= 0.15  # scores of moderate size
        exact, errors = softmax(x, mask), []
        for count in counts.tolist():
            draws = [partial(orthogonal_directions, generator=seeded_generator(seed)) for seed in range(16)]
            layers = [PerformerAttention.from_softmax(softmax, features=count, draw=draw) for draw in draws]
            errors.append(torch.stack([layer(x, mask) - exact for layer in layers]).square().mean().sqrt())
        parts[name] = rate(counts, torch.stack(errors), -0.5, atol=0.15)
        parts[f"size_of_the_output_{name}"] = greater_equal(exact.square().mean().sqrt() / errors[-1], 20.0)
    return all_of(**parts)


@claim("C-20")
def causal_cosformer_has_the_cosine_weights() -> Evidence:
    """Weights ∝ ⟨relu(q_i), relu(k_j)⟩ cos(π(i − j)/2M) over the past, computed pair by pair (Diehl sec. 4.1)."""
    query, key, value = (standard_normal(TIME, 5, seed=seed) for seed in range(3))
    query, key = query.abs(), key + 1  # the relu removes some, not all, of every key
    horizon, rows = 33, []
    for i in range(TIME):
        products = [float(query[i].relu() @ key[j].relu()) * cos(pi * (i - j) / (2 * horizon)) for j in range(i + 1)]
        rows.append(torch.tensor(products, dtype=torch.float64) / sum(products) @ value[: i + 1])
    distances = torch.tensor([0.0, 11.0, 33.0], dtype=torch.float64)
    cosines = torch.tensor([1.0, sqrt(3) / 2, 0.0], dtype=torch.float64)
    output = causal_cosformer_attention(query, key, value, horizon=horizon, chunk=6)
    return all_of(
        output=close(output, torch.stack(rows), atol=1e-12),
        weight=close(cosine_weight(distances, 33), cosines, atol=1e-15),
    )


@claim("C-22")
@torch.no_grad()
def a_local_layer_attends_to_its_neighbours() -> Evidence:
    """Softmax over |i − j| ≤ 3 for every head, causal or not; a change reaches three positions (Diehl sec. 4)."""
    parts = {}
    position = torch.arange(TIME)
    for name, causal in (("both_sides", False), ("causal", True)):
        layer, x = LocalSelfAttention(WIDTH, HEADS, reach=3, causal=causal), standard_normal(2, TIME, WIDTH)
        randomise(layer)
        query, key, value = projected_heads(layer, x)
        distance = position[:, None] - position
        visible = (distance <= 3) & (distance >= (0 if causal else -3))
        scores = (query @ key.mT / sqrt(WIDTH / HEADS)).masked_fill(~visible, -torch.inf)
        parts[name] = close(layer(x), layer_output(layer, scores.softmax(-1), value), atol=1e-12)
        changed = x.clone()
        changed[:, 10] += 1
        reached = (layer(changed) - layer(x)).abs().amax((0, 2)) > 1e-9
        parts[f"reach_{name}"] = close(reached.nonzero()[:, 0], torch.arange(10 if causal else 7, 14))
    return all_of(**parts)


@claim("B10.1.2-12")
@torch.no_grad()
def neighbour_mixing_equals_its_sum() -> Evidence:
    """y_t = W relu(Σ_{|s| ≤ r} c_s ⊙ x_{t+s} + a) + b, with zeros beyond both ends and at masked positions."""
    torch.manual_seed(0)
    layer, x = NeighbourMixing(5, 2).double(), standard_normal(1, 9, 5)
    visible = torch.arange(9) < 7
    padded = torch.cat([torch.zeros(2, 5).double(), x[0] * visible[:, None], torch.zeros(2, 5).double()])
    assert layer.filter.bias is not None
    filters, offset = layer.filter.weight[:, 0], layer.filter.bias
    sums = torch.stack([sum((filters[:, s] * padded[t + s] for s in range(5)), offset) for t in range(9)])
    expected = sums.clamp(min=0) @ layer.mix.weight.mT + layer.mix.bias
    return all_of(
        output=close(layer(x, visible[None, None])[0], expected, atol=1e-12),
        both_signs_before_the_relu=close(torch.unique(sums > 0), torch.tensor([0.0, 1.0])),
    )
