"""Claims about multi-head attention and cross-attention (Diehl sec. 2.2; book sec. 10.1)."""

from itertools import pairwise

import torch
from torch import Tensor, nn

from parnassus.atlas import Correction, Evidence, all_of, claim, close, erratum, greater_equal, runs
from parnassus.attention.core.dot_product import attention
from parnassus.attention.core.masks import length_mask
from parnassus.attention.core.multi_head import AttentionWidths, MultiHeadAttention, cross_attention
from parnassus.attention.core.self_attention import SelfAttention
from parnassus.attention.models.block import Block, DecoderBlock, feed_forward
from parnassus.probability import standard_normal


def randomise_parameters(layer: MultiHeadAttention) -> MultiHeadAttention:
    """Convert the layer to double precision and draw every weight and bias from N(0, 1/4)."""
    for number, parameter in enumerate(layer.double().parameters()):
        parameter.data = standard_normal(*parameter.shape, seed=100 + number) / 2
    return layer


def library_layer(ours: MultiHeadAttention) -> nn.MultiheadAttention:
    """nn.MultiheadAttention with the weights of `ours`, whose widths must all be equal."""
    width = ours.query.in_features
    library = nn.MultiheadAttention(width, ours.heads, batch_first=True, dtype=torch.float64)
    library.load_state_dict(
        {
            "in_proj_weight": torch.cat([ours.query.weight, ours.key.weight, ours.value.weight]),
            "in_proj_bias": torch.cat([ours.query.bias, ours.key.bias, ours.value.bias]),
            "out_proj.weight": ours.out_proj.weight,
            "out_proj.bias": ours.out_proj.bias,
        }
    )
    return library


@claim("B10.1-6", "B10.1.1-2", "D2.2.6")
@torch.no_grad()
def multi_head_attention_matches_torch() -> Evidence:
    """Concatenated heads and a dense layer: torch's layer with these weights, masked or not (book sec. 10.1)."""
    ours = randomise_parameters(cross_attention(12, 3))
    library = library_layer(ours)
    x, memory = standard_normal(2, 4, 12), standard_normal(2, 6, 12, seed=1)
    mask = length_mask(torch.tensor([6, 2]), 6)
    plain, weights = library(x, memory, memory, average_attn_weights=False)
    masked, _ = library(x, memory, memory, key_padding_mask=~mask[:, 0])
    return all_of(
        output=close(ours(x, memory, memory), plain, rtol=1e-9, atol=1e-12),
        weights=close(ours.weights(x, memory), weights, rtol=1e-9),
        masked=close(ours(x, memory, memory, mask), masked, rtol=1e-9, atol=1e-12),
        heads_differ=greater_equal((weights[:, 0] - weights[:, 1]).abs().mean(), 0.05),
    )


@claim("D2.2.6", "C-04")
@torch.no_grad()
def one_head_is_plain_attention() -> Evidence:
    """With one head and A = I the layer is softmax((QW^Q)(KW^K)ᵀ) VW^V (Diehl sec. 2.2).

    Parameters: Σ (d_q k + d_k k + d_v v) over the heads, h v d_out + d_out, and h (2k + v) for the projections' biases.
    """
    layer = randomise_parameters(
        MultiHeadAttention(AttentionWidths(5, 7, 3, 4), 1, key_width=6, value_width=4, bias=False, scale=1.0)
    )
    layer.out_proj.weight.data = torch.eye(4, dtype=torch.float64)
    query, key, value = standard_normal(2, 8, 5), standard_normal(2, 9, 7, seed=1), standard_normal(2, 9, 3, seed=2)
    single = attention(
        query @ layer.query.weight.mT, key @ layer.key.weight.mT, value @ layer.value.weight.mT, scale=1.0
    ).output
    five_heads = MultiHeadAttention(AttentionWidths(11, 13, 17, 11), 5, key_width=3)
    count = sum(parameter.numel() for parameter in five_heads.parameters())
    return all_of(
        output=close(layer(query, key, value), single, rtol=1e-12, atol=1e-14),
        shape=close(torch.tensor(single.shape), torch.tensor([2, 8, 4])),
        parameters=close(float(count), 5 * (11 + 13 + 17) * 3 + 5 * 3 * 11 + 11 + 5 * 3 * 3),
    )


@erratum(
    "D2.2.6",
    printed="A · (head_1; …; head_h) + b, heads stacked as matrices",
    right="[head_1 … head_h] W^O + b, heads concatenated at each time step",
)
@torch.no_grad()
def heads_are_concatenated_along_the_features() -> Correction:
    """Stacked on top of each other, heads mix time steps; where shapes agree, values are wrong (Diehl sec. 2.2)."""
    n = 6  # time steps, value width and output width: the printed product requires them to be equal
    ours = randomise_parameters(MultiHeadAttention(AttentionWidths(n, n, n, n), 2, key_width=n, value_width=n))
    x = standard_normal(1, n, n)
    heads = ours.weights(x, x) @ ours.value(x).unflatten(-1, (2, n)).transpose(1, 2)  # (1, heads, time, width)

    def stacked_product(times: int) -> Tensor:
        return ours.out_proj.weight.matmul(heads[0, :, :times].flatten(0, 1)) + ours.out_proj.bias

    concatenated = torch.stack([ours.out_proj.weight @ heads[0, :, t].flatten() + ours.out_proj.bias for t in range(n)])
    return Correction(
        printed=all_of(
            value=close(stacked_product(n), concatenated, rtol=1e-6),
            five_time_steps=runs(lambda: stacked_product(5), unless=RuntimeError),
        ),
        corrected=close(ours(x, x, x)[0], concatenated, rtol=1e-9, atol=1e-12),
    )


@claim("C-10")
@torch.no_grad()
def multi_head_attention_equals_its_index_form() -> Evidence:
    """The tutorial's layer as sums over indices, with the biases that the tutorial sets to 0 (Diehl sec. 2.2).

    scores_bhqk = Σ_d Q_bqhd K_bkhd / √3,   output_bqo = Σ_hd (Σ_k weights_bhqk V_bkhd) O_hdo
    """
    layer = randomise_parameters(MultiHeadAttention(AttentionWidths(11, 13, 17, 11), 5, key_width=3))
    query, key, value = standard_normal(2, 7, 11), standard_normal(2, 9, 13, seed=1), standard_normal(2, 9, 17, seed=2)

    def kernel(linear: nn.Linear) -> Tensor:
        """The weight in the layout of Keras: (in, heads, width)."""
        return linear.weight.view(5, 3, -1).permute(2, 0, 1)

    def index_form(bias: float) -> Tensor:
        q, k, v = (
            torch.einsum("btd,dhk->bthk", x, kernel(linear)) + bias * linear.bias.view(5, 3)
            for x, linear in ((query, layer.query), (key, layer.key), (value, layer.value))
        )
        weights = (torch.einsum("bqhd,bkhd->bhqk", q, k) / 3**0.5).softmax(-1)
        mixed = torch.einsum("bhqk,bkhd->bqhd", weights, v)
        return torch.einsum("bqhd,ohd->bqo", mixed, layer.out_proj.weight.view(11, 5, 3)) + bias * layer.out_proj.bias

    with_biases = layer(query, key, value)
    without_bias = MultiHeadAttention(AttentionWidths(11, 13, 17, 11), 5, key_width=3, bias=False).double()
    without_bias.load_state_dict(layer.state_dict(), strict=False)
    return all_of(
        with_biases=close(with_biases, index_form(1.0), rtol=1e-9, atol=1e-12),
        without_biases=close(without_bias(query, key, value), index_form(0.0), rtol=1e-9, atol=1e-12),
        effect_of_the_biases=greater_equal((with_biases - index_form(0.0)).abs().max(), 0.5),
        shape=close(torch.tensor(with_biases.shape), torch.tensor([2, 7, 11])),
    )


@claim("D2.2.4")
@torch.no_grad()
def self_attention_can_be_stacked() -> Evidence:
    """The length is kept, n × d → n × v, so layers of any widths can be stacked (Diehl sec. 2.2)."""
    widths = (5, 8, 3, 8)
    x = standard_normal(2, 6, widths[0])
    shapes = []
    for before, after in pairwise(widths):
        layer = randomise_parameters(MultiHeadAttention(AttentionWidths(before, before, before, after), 1, key_width=4))
        x = layer(x, x, x)
        shapes.append(list(x.shape))
    cross, self_attention = randomise_parameters(cross_attention(8, 2)), SelfAttention(8, 2).double()
    self_attention.in_proj.weight.data = torch.cat([cross.query.weight, cross.key.weight, cross.value.weight])
    self_attention.in_proj.bias.data = torch.cat([cross.query.bias, cross.key.bias, cross.value.bias])
    self_attention.out_proj.load_state_dict(cross.out_proj.state_dict())
    return all_of(
        shapes=close(torch.tensor(shapes), torch.tensor([[2, 6, after] for after in widths[1:]])),
        cross_attention_to_itself=close(self_attention(x), cross(x, x, x), rtol=1e-9, atol=1e-12),
    )


@claim("B10.1.1-2")
@torch.no_grad()
def cross_attention_has_the_shapes_of_the_figure() -> Evidence:
    """Two source tokens of width 3 give keys 2×4 and values 2×5; three queries give a 3×5 output (book fig. 10.2)."""
    source, target = standard_normal(1, 2, 3), standard_normal(1, 3, 4, seed=1)
    layer = randomise_parameters(MultiHeadAttention(AttentionWidths(4, 3, 3, 5), 1, key_width=4, value_width=5))
    keys, values, scores = layer.key(source), layer.value(source), layer.weights(target, source)[:, 0]
    output = layer(target, source, source)
    shapes = [list(x.shape[1:]) for x in (keys, values, scores, output)]
    return all_of(
        shapes=close(torch.tensor(shapes), torch.tensor([[2, 4], [2, 5], [3, 2], [3, 5]])),
        key_map=close(torch.tensor(layer.key.weight.shape), torch.tensor([4, 3])),
        output_has_the_length_of_the_queries=close(float(output.shape[1]), float(target.shape[1])),
    )


@erratum("B10.1.1-2", printed="W_V is a 5×2 matrix", right="W_V is a 5×3 matrix")
def the_value_projection_acts_on_the_width() -> Correction:
    """The transposed source of two tokens is 3×2; a 5×2 matrix cannot multiply it (book fig. 10.2)."""
    source = standard_normal(2, 3)
    return Correction(
        printed=runs(lambda: standard_normal(5, 2) @ source.mT, unless=RuntimeError),
        corrected=close(torch.tensor((standard_normal(5, 3) @ source.mT).mT.shape), torch.tensor([2, 5])),
    )


@claim("B10.1.1-1")
@torch.no_grad()
def encoder_and_decoder_lengths_are_independent() -> Evidence:
    """x_1 … x_n is encoded as z_1 … z_n and decoded to y_1 … y_m; n and m may differ (book sec. 10.1.1)."""
    torch.manual_seed(0)

    def norm() -> nn.LayerNorm:
        return nn.LayerNorm(8)

    encoder = Block(SelfAttention(8, 2), feed_forward(8), norm=norm).double()
    decoder = DecoderBlock(SelfAttention(8, 2, causal=True), cross_attention(8, 2), feed_forward(8), norm=norm).double()
    x, y = standard_normal(1, 5, 8), standard_normal(1, 3, 8, seed=1)
    z = encoder(x)
    output, output_for_another_source = decoder(y, z), decoder(y, encoder(standard_normal(1, 5, 8, seed=2)))
    return all_of(
        codes=close(torch.tensor(z.shape), torch.tensor([1, 5, 8])),
        output=close(torch.tensor(output.shape), torch.tensor([1, 3, 8])),
        output_depends_on_the_code=greater_equal((output - output_for_another_source).abs().amin(1).max(), 1e-3),
    )
