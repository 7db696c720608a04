"""Claims about self-attention layers and the attention maps of models (book sec. 10.1)."""

from functools import partial
from math import log, sqrt

import torch
from torch import Tensor, nn

from parnassus.atlas import Evidence, all_of, claim, close, greater_equal
from parnassus.attention.core.attention_maps import attention_distance, attention_entropy, attention_maps
from parnassus.attention.core.masks import causal_mask
from parnassus.attention.core.multi_head import AttentionWidths, MultiHeadAttention
from parnassus.attention.core.self_attention import SelfAttention
from parnassus.attention.models.seq2seq import seq2seq
from parnassus.attention.positions.relative import RelativePositions, explicit_relative_scores
from parnassus.probability import standard_normal

WIDTH, HEADS = 12, 3


def random_self_attention(*, causal: bool = False, positions: RelativePositions | None = None) -> SelfAttention:
    """A self-attention layer with weights and biases from N(0, 1/4)."""
    layer = SelfAttention(WIDTH, HEADS, causal=causal, positions=positions).double()
    for number, parameter in enumerate(layer.parameters()):
        parameter.data = standard_normal(*parameter.shape, seed=number) / 2
    return layer


def weights_by_hand(query: Tensor, key: Tensor, heads: int, visible: Tensor) -> Tensor:
    """exp(q·k/√d) / Σ over the visible keys, head by head, from projected queries and keys (batch, time, width)."""
    parts = []
    for q, k in zip(query.chunk(heads, -1), key.chunk(heads, -1), strict=True):
        exponentials = torch.einsum("bqd,bkd->bqk", q, k).div(sqrt(q.shape[-1])).exp() * visible
        parts.append(exponentials / exponentials.sum(-1, keepdim=True))
    return torch.stack(parts, 1)


@claim("B10.1-6", "B10.1.3-6", "D2.2.6")
@torch.no_grad()
def self_attention_is_multi_head_attention_of_one_sequence() -> Evidence:
    """With the same weights both layers agree, for any number of pairs, and rows of weights sum to 1 (book sec. 10.1).

    Queries, keys and values are the thirds of one projection.
    """
    layer = random_self_attention()
    separate = MultiHeadAttention(AttentionWidths(WIDTH, WIDTH, WIDTH, WIDTH), HEADS).double()
    for part, weight, bias in zip(
        (separate.query, separate.key, separate.value),
        layer.in_proj.weight.chunk(3),
        layer.in_proj.bias.chunk(3),
        strict=True,
    ):
        part.load_state_dict({"weight": weight, "bias": bias})
    separate.out_proj.load_state_dict(layer.out_proj.state_dict())
    parts = {}
    for length in (1, 5, 40):
        x = standard_normal(2, length, WIDTH, seed=length)
        parts[f"outputs_of_{length}"] = close(layer(x), separate(x, x, x), atol=1e-12)
        parts[f"weights_of_{length}"] = close(layer.weights(x), separate.weights(x, x), atol=1e-12)
        parts[f"sums_of_{length}"] = close(layer.weights(x).sum(-1), 1.0, atol=1e-12)
    x = standard_normal(1, 7, WIDTH)
    return all_of(**parts, heads_differ=greater_equal(layer.weights(x).std(1).mean(), 0.02))


@claim("B10.1-6", "B10.1-9", "C-14")
@torch.no_grad()
def attention_maps_are_the_weights_of_every_layer() -> Evidence:
    """Recomputed from the inputs of each layer of an encoder-decoder, with padding and causal mask (book sec. 10.1)."""
    torch.manual_seed(0)
    model = seq2seq((15, 20), 12, width=WIDTH, heads=HEADS, depth=2, dropout=0.3).double()
    source, target = torch.randint(1, 15, (2, 7)), torch.randint(1, 20, (2, 5))
    source[1, 4:] = 0
    maps = attention_maps(model, source, target)
    inputs: dict[str, Tensor] = {}

    def keep_input(name: str, _: nn.Module, args: tuple[Tensor, ...]) -> None:
        inputs[name] = args[0]

    attentions = {
        name: layer for name, layer in model.named_modules() if isinstance(layer, SelfAttention | MultiHeadAttention)
    }
    projections = {
        f"{name}.{part}": getattr(layer, part)
        for name, layer in attentions.items()
        for part in (("in_proj",) if isinstance(layer, SelfAttention) else ("query", "key"))
    }
    for name, projection in projections.items():
        projection.register_forward_pre_hook(partial(keep_input, name))
    model.eval()(source, target)
    parts, not_padding = {}, (source != 0)[:, None]
    for name, layer in attentions.items():
        if isinstance(layer, SelfAttention):
            query, key, _ = layer.in_proj(inputs[f"{name}.in_proj"]).chunk(3, -1)
            visible = causal_mask(5) if layer.causal else not_padding
        else:
            query, key = (getattr(layer, part)(inputs[f"{name}.{part}"]) for part in ("query", "key"))
            visible = not_padding
        by_hand = weights_by_hand(query, key, HEADS, visible)
        parts[name.replace(".", "_")] = close(maps[name], by_hand, atol=1e-12)
    return all_of(**parts, layers=close(float(len(maps)), 6.0))


@claim("B10.1-6")
def the_distance_and_entropy_of_attention_have_their_formulas() -> Evidence:
    """Σ_j α_ij ‖p_i − p_j‖ for positions in one and two dimensions, and log n for uniform weights (book sec. 10.1)."""
    weights = torch.tensor([[0.1, 0.2, 0.3, 0.4], [0.0, 0.0, 0.0, 1.0]], dtype=torch.float64)
    corners = torch.tensor([[0.0, 0.0], [3.0, 4.0], [3.0, 0.0], [0.0, 4.0]], dtype=torch.float64)
    return all_of(
        in_a_sequence=close(attention_distance(weights), torch.tensor([2 * 0.1 + 0.2 + 0.4, 0.0]), atol=1e-7),
        in_the_plane=close(
            attention_distance(weights, corners), torch.tensor([3 * 0.1 + 4 * 0.2 + 5 * 0.4, 0.0]), atol=1e-7
        ),
        entropy=close(attention_entropy(torch.full((1, 9), 1 / 9, dtype=torch.float64)), log(9), rtol=1e-12),
    )


@claim("B10.1-9")
@torch.no_grad()
def relative_positions_add_their_scores_before_the_scaling() -> Evidence:
    """The layer computes softmax((QKᵀ + S_rel)/√d) V, and shifting all positions changes nothing (book sec. 10.1).

    S_rel is computed from one vector per pair of positions; far distances share the last of five.
    """
    positions = RelativePositions(HEADS, WIDTH // HEADS, 5)
    layer = random_self_attention(causal=True, positions=positions)
    x = standard_normal(2, 9, WIDTH, seed=8)
    query, key, value = (part.unflatten(-1, (HEADS, -1)).transpose(1, 2) for part in layer.in_proj(x).chunk(3, -1))
    scores = (query @ key.mT + explicit_relative_scores(query, positions.table, 9)) / sqrt(WIDTH / HEADS)
    weights = scores.masked_fill(~causal_mask(9), -torch.inf).softmax(-1)
    expected = layer.out_proj((weights @ value).transpose(1, 2).flatten(-2))
    shifted, hidden = torch.cat([standard_normal(2, 4, WIDTH, seed=9), x], 1), torch.arange(13) >= 4
    plain = random_self_attention(causal=True)
    return all_of(
        weights=close(layer.weights(x), weights, atol=1e-12),
        output=close(layer(x), expected, atol=1e-12),
        shifted_by_four=close(layer(shifted, hidden.expand(2, 13, 13))[:, 4:], expected, atol=1e-12),
        effect_of_the_positions=greater_equal((plain.weights(x) - weights).abs().max(), 0.1),
    )
