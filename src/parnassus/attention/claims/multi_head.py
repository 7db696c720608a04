"""Claims about heads side by side and attention between two sequences (Diehl sec. 2.2; book sec. 10.1)."""

from itertools import pairwise

import torch
from torch import Tensor, nn

from parnassus.atlas import Correction, Evidence, all_of, at_least, claim, close, erratum, runs
from parnassus.attention.block import Block, DecoderBlock, feed_forward
from parnassus.attention.dot_product import attention
from parnassus.attention.masks import length_mask
from parnassus.attention.multi_head import MultiHeadAttention, Widths, cross_attention
from parnassus.attention.self_attention import SelfAttention


def normals(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def seeded(layer: MultiHeadAttention) -> MultiHeadAttention:
    """The layer in double precision, every weight and bias from N(0, 1/4)."""
    for number, parameter in enumerate(layer.double().parameters()):
        parameter.data = normals(*parameter.shape, seed=100 + number) / 2
    return layer


def library_layer(ours: MultiHeadAttention) -> nn.MultiheadAttention:
    """The layer of torch with the weights of ours, which has one width throughout."""
    width = ours.query.in_features
    theirs = nn.MultiheadAttention(width, ours.heads, batch_first=True, dtype=torch.float64)
    theirs.load_state_dict(
        {
            "in_proj_weight": torch.cat([ours.query.weight, ours.key.weight, ours.value.weight]),
            "in_proj_bias": torch.cat([ours.query.bias, ours.key.bias, ours.value.bias]),
            "out_proj.weight": ours.answer.weight,
            "out_proj.bias": ours.answer.bias,
        }
    )
    return theirs


@claim("B10.1-6", "D2.2.6")
@torch.no_grad()
def heads_are_those_of_torch() -> Evidence:
    """Heads side by side, then a dense map: the layer of torch with these weights, masked or not (book sec. 10.1)."""
    ours = seeded(cross_attention(12, 3))
    theirs = library_layer(ours)
    x, memory = normals(2, 4, 12), normals(2, 6, 12, seed=1)
    mask = length_mask(torch.tensor([6, 2]), 6)
    plain, weights = theirs(x, memory, memory, average_attn_weights=False)
    masked, _ = theirs(x, memory, memory, key_padding_mask=~mask[:, 0])
    return all_of(
        output=close(ours(x, memory, memory), plain, rtol=1e-9, atol=1e-12),
        weights=close(ours.weights(x, memory), weights, rtol=1e-9),
        masked=close(ours(x, memory, memory, mask), masked, rtol=1e-9, atol=1e-12),
        heads_look_in_different_ways=at_least((weights[:, 0] - weights[:, 1]).abs().mean(), 0.05),
    )


@claim("D2.2.6", "C-04")
@torch.no_grad()
def one_head_is_plain_attention() -> Evidence:
    """With one head and A = I the layer is softmax((QW^Q)(KW^K)ᵀ) VW^V; its parameters are as counted (Diehl sec. 2.2).

    Σ (d_q k + d_k k + d_v v) over the heads, h v d_out + d_out, and h (2k + v) for the biases of the projections.
    """
    layer = seeded(MultiHeadAttention(Widths(5, 7, 3, 4), 1, key_width=6, value_width=4, bias=False, scale=1.0))
    layer.answer.weight.data = torch.eye(4, dtype=torch.float64)
    query, key, value = normals(2, 8, 5), normals(2, 9, 7, seed=1), normals(2, 9, 3, seed=2)
    single = attention(
        query @ layer.query.weight.mT, key @ layer.key.weight.mT, value @ layer.value.weight.mT, scale=1.0
    ).output
    five = MultiHeadAttention(Widths(11, 13, 17, 11), 5, key_width=3)
    count = sum(parameter.numel() for parameter in five.parameters())
    return all_of(
        same=close(layer(query, key, value), single, rtol=1e-12, atol=1e-14),
        shape=close(torch.tensor(single.shape), torch.tensor([2, 8, 4])),
        parameters=close(float(count), 5 * (11 + 13 + 17) * 3 + 5 * 3 * 11 + 11 + 5 * 3 * 3),
    )


@erratum(
    "D2.2.6",
    printed="A · (head_1; …; head_h) + b, heads stacked as matrices",
    right="[head_1 … head_h] W^O + b, heads beside each other at each time",
)
@torch.no_grad()
def heads_are_joined_at_each_time() -> Correction:
    """Stacked on top of each other, heads mix times; where shapes fit at all, values are wrong (Diehl sec. 2.2)."""
    n = 6  # times, value width and output width alike: the only shape that the printed product allows
    ours = seeded(MultiHeadAttention(Widths(n, n, n, n), 2, key_width=n, value_width=n))
    x = normals(1, n, n)
    heads = ours.weights(x, x) @ ours.value(x).unflatten(-1, (2, n)).transpose(1, 2)  # (1, heads, time, width)

    def stacked(times: int) -> Tensor:
        return ours.answer.weight.matmul(heads[0, :, :times].flatten(0, 1)) + ours.answer.bias

    beside = torch.stack([ours.answer.weight @ heads[0, :, t].flatten() + ours.answer.bias for t in range(n)])
    return Correction(
        printed=all_of(
            value=close(stacked(n), beside, rtol=1e-6),
            shapes_for_five_times=runs(lambda: stacked(5), unless=RuntimeError),
        ),
        corrected=close(ours(x, x, x)[0], beside, rtol=1e-9, atol=1e-12),
    )


@claim("C-10")
@torch.no_grad()
def multi_head_attention_by_indices() -> Evidence:
    """The tutorial's layer by sums over indices, and with the biases that it takes for 0 (Diehl sec. 2.2).

    scores_bhqk = Σ_d Q_bqhd K_bkhd / √3,   output_bqo = Σ_hd (Σ_k weights_bhqk V_bkhd) O_hdo
    """
    layer = seeded(MultiHeadAttention(Widths(11, 13, 17, 11), 5, key_width=3))
    query, key, value = normals(2, 7, 11), normals(2, 9, 13, seed=1), normals(2, 9, 17, seed=2)

    def kernel(linear: nn.Linear) -> Tensor:
        """As Keras keeps it: (in, heads, width)."""
        return linear.weight.view(5, 3, -1).permute(2, 0, 1)

    def by_indices(bias: float) -> Tensor:
        q, k, v = (
            torch.einsum("btd,dhk->bthk", x, kernel(linear)) + bias * linear.bias.view(5, 3)
            for x, linear in ((query, layer.query), (key, layer.key), (value, layer.value))
        )
        weights = (torch.einsum("bqhd,bkhd->bhqk", q, k) / 3**0.5).softmax(-1)
        mixed = torch.einsum("bhqk,bkhd->bqhd", weights, v)
        return torch.einsum("bqhd,ohd->bqo", mixed, layer.answer.weight.view(11, 5, 3)) + bias * layer.answer.bias

    with_biases = layer(query, key, value)
    bare = MultiHeadAttention(Widths(11, 13, 17, 11), 5, key_width=3, bias=False).double()
    bare.load_state_dict(layer.state_dict(), strict=False)
    return all_of(
        with_biases=close(with_biases, by_indices(1.0), rtol=1e-9, atol=1e-12),
        without_biases=close(bare(query, key, value), by_indices(0.0), rtol=1e-9, atol=1e-12),
        biases_forgotten=at_least((with_biases - by_indices(0.0)).abs().max(), 0.5),
        shape=close(torch.tensor(with_biases.shape), torch.tensor([2, 7, 11])),
    )


@claim("D2.2.4")
@torch.no_grad()
def self_attention_can_be_stacked() -> Evidence:
    """The length is kept, n × d → n × v, so layers of any widths follow one another (Diehl sec. 2.2)."""
    widths = (5, 8, 3, 8)
    x = normals(2, 6, widths[0])
    shapes = []
    for before, after in pairwise(widths):
        layer = seeded(MultiHeadAttention(Widths(before, before, before, after), 1, key_width=4))
        x = layer(x, x, x)
        shapes.append(list(x.shape))
    across, within = seeded(cross_attention(8, 2)), SelfAttention(8, 2).double()
    within.ask.weight.data = torch.cat([across.query.weight, across.key.weight, across.value.weight])
    within.ask.bias.data = torch.cat([across.query.bias, across.key.bias, across.value.bias])
    within.answer.load_state_dict(across.answer.state_dict())
    return all_of(
        shapes=close(torch.tensor(shapes), torch.tensor([[2, 6, after] for after in widths[1:]])),
        one_sequence_in_three_roles=close(within(x), across(x, x, x), rtol=1e-9, atol=1e-12),
    )


@claim("B10.1.1-2")
@torch.no_grad()
def cross_attention_has_the_shapes_of_the_figure() -> Evidence:
    """Two source tokens of width 3 become keys 2×4 and values 2×5; three queries get a 3×5 output (book fig. 10.2)."""
    source, target = normals(1, 2, 3), normals(1, 3, 4, seed=1)
    layer = seeded(MultiHeadAttention(Widths(4, 3, 3, 5), 1, key_width=4, value_width=5))
    keys, values, scores = layer.key(source), layer.value(source), layer.weights(target, source)[:, 0]
    output = layer(target, source, source)
    shapes = [list(x.shape[1:]) for x in (keys, values, scores, output)]
    return all_of(
        shapes=close(torch.tensor(shapes), torch.tensor([[2, 4], [2, 5], [3, 2], [3, 5]])),
        key_map=close(torch.tensor(layer.key.weight.shape), torch.tensor([4, 3])),
        as_long_as_the_queries=close(float(output.shape[1]), float(target.shape[1])),
    )


@erratum("B10.1.1-2", printed="W_V is a 5×2 matrix", right="W_V is a 5×3 matrix")
def the_value_map_acts_on_the_width() -> Correction:
    """The source of two tokens is 3×2 when transposed; a 5×2 matrix cannot act on it (book fig. 10.2)."""
    source = normals(2, 3)
    return Correction(
        printed=runs(lambda: normals(5, 2) @ source.mT, unless=RuntimeError),
        corrected=close(torch.tensor((normals(5, 3) @ source.mT).mT.shape), torch.tensor([2, 5])),
    )


@claim("B10.1.1-1")
@torch.no_grad()
def an_encoder_keeps_the_length_a_decoder_has_its_own() -> Evidence:
    """x_1 … x_n becomes z_1 … z_n, and these y_1 … y_m; n and m need not agree (book sec. 10.1.1)."""
    torch.manual_seed(0)

    def norm() -> nn.LayerNorm:
        return nn.LayerNorm(8)

    reading = Block(SelfAttention(8, 2), feed_forward(8), norm=norm).double()
    writing = DecoderBlock(SelfAttention(8, 2, causal=True), cross_attention(8, 2), feed_forward(8), norm=norm).double()
    x, y = normals(1, 5, 8), normals(1, 3, 8, seed=1)
    z = reading(x)
    written, changed = writing(y, z), writing(y, reading(normals(1, 5, 8, seed=2)))
    return all_of(
        codes=close(torch.tensor(z.shape), torch.tensor([1, 5, 8])),
        output=close(torch.tensor(written.shape), torch.tensor([1, 3, 8])),
        output_depends_on_the_code=at_least((written - changed).abs().amin(1).max(), 1e-3),
    )
