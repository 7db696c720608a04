"""Cross-attention of three tokens to two others: every matrix, and the transformer blocks (book secs. 10.1, 10.1.1)."""

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from parnassus.attention import (
    AttentionWidths,
    DecoderBlock,
    MultiHeadAttention,
    SelfAttention,
    cross_attention,
    feed_forward,
)
from parnassus.report import draw_blocks, subplots
from parnassus.report.style import DIVERGING
from parnassus.train import Positive, Run, at_most, between

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("B10.1-8", "B10.1.1-1", "B10.1.1-2", "Z11.10")
expected = {
    "output_rows": between(3, 3, "rows of the output, the number of queries"),
    "output_columns": between(5, 5, "columns of the output, the width of the values"),
    "max_error": at_most(1e-5, "maximum difference from torch's scaled_dot_product_attention"),
    "mlp_fraction": between(0.45, 0.55, "fraction of the parameters of a decoder block in its MLP"),
}
profiles: dict[str, dict[str, object]] = {"smoke": {}, "gpu": {}}


@dataclass(frozen=True)
class Experiment:
    source_length: Positive[int] = 2  # source tokens (keys and values)
    target_length: Positive[int] = 3  # target tokens (queries)
    width: Positive[int] = 512  # width of the decoder block whose parameters are counted

    def __call__(self, run: Run) -> dict[str, float]:
        memory, x = torch.randn(1, self.source_length, 3), 3 * torch.randn(1, self.target_length, 4)
        layer = MultiHeadAttention(AttentionWidths(4, 3, 3, 5), 1, key_width=4, value_width=5, bias=False)
        with torch.no_grad():
            layer.out_proj.weight.copy_(torch.eye(5))  # no output projection
            parts = {
                "source": memory[0], "keys = source W_Kᵀ": layer.key(memory)[0],
                "values = source W_Vᵀ": layer.value(memory)[0], "target": x[0],
                "queries = target W_Qᵀ": layer.query(x)[0],
                "weights = softmax(QKᵀ/√4)": layer.weights(x, memory)[0, 0],
                "output = weights · values": layer(x, memory, memory)[0],
            }  # fmt: skip
        query, key, value, output = (list(parts.values())[index] for index in (4, 1, 2, 6))
        run.figure(
            "matrices",
            plot_matrices(parts),
            "A row is a token. Queries come from the target, keys and values from the source; each row of the output "
            "is a weighted mean of the rows of the values. The output has one row per query and the width of the "
            "values. W_K is 4×3, W_V 5×3 and W_Q 4×4; the book prints 5×2 for W_V, which cannot act on tokens of "
            "width 3 (book fig. 10.2).",
        )
        run.figure(
            "blocks",
            plot_blocks(),
            "An encoder block and a decoder block of Vaswani et al. 2017. Each column is the residual stream: the "
            "output of a sublayer is added to it and then normalised. The MLP is two linear maps with a ReLU in "
            "between (book fig. 10.1).",
        )
        block = decoder_block(self.width)
        dense, total = (sum(p.numel() for p in module.parameters()) for module in (block.dense, block))
        run.note(
            "parameters",
            f"Of the {total:,} parameters of a decoder block of width {self.width}, {dense / total:.0%} are in its "
            "MLP, and half as many in each of its two attention layers.",
        )
        expected_output = scaled_dot_product_attention(query, key, value)
        return {
            "output_rows": float(output.shape[0]),
            "output_columns": float(output.shape[1]),
            "max_error": float((output - expected_output).abs().max()),
            "mlp_fraction": dense / total,
        }


def decoder_block(width: int) -> DecoderBlock:
    heads = max(1, width // 64)
    return DecoderBlock(
        SelfAttention(width, heads, causal=True),
        cross_attention(width, heads),
        feed_forward(width),
        norm=lambda: nn.LayerNorm(width),
    )


def plot_matrices(parts: dict[str, Tensor]) -> "Figure":
    """Each matrix with its entries; source, keys and values in the first row, the target side in the second."""
    figure, axes = subplots(2, 4, size=(11.0, 4.6))
    limit = max(float(matrix.abs().max()) for matrix in parts.values())
    panels = [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2), (1, 3)]
    for panel, (name, matrix) in zip(panels, parts.items(), strict=True):
        ax = axes[panel]
        ax.imshow(matrix.numpy(), cmap=DIVERGING, vmin=-limit, vmax=limit)
        for row, column in torch.cartesian_prod(*(torch.arange(size) for size in matrix.shape)).tolist():
            entry = float(matrix[row, column])
            colour = "#f8f8f8" if abs(entry) > 0.6 * limit else "#111111"
            ax.text(column, row, f"{entry:.2f}", ha="center", va="center", fontsize=8, color=colour)
        ax.set_title(f"{name}\n{matrix.shape[0]} × {matrix.shape[1]}", fontsize=9)
    for ax in axes.flat:
        ax.set(xticks=[], yticks=[])
        ax.grid(visible=False)
        ax.spines[:].set_visible(False)
    return figure


def plot_blocks() -> "Figure":
    """The residual streams of an encoder block and a decoder block with their sublayers."""
    figure, axes = subplots(size=(9.6, 5.2))
    encoder = {"x": (0.0, 0.0), "+": (0.0, -1.0), "norm": (0.0, -2.0), "+ ": (0.0, -3.0), "norm ": (0.0, -4.0)}
    encoder_layers = {"self-attention": (-2.4, -0.5), "dense, ReLU, dense": (-2.4, -2.5)}
    decoder = {"y": (6.8, 0.0), "+  ": (6.8, -1.0), "norm  ": (6.8, -2.0), "+   ": (6.8, -3.0), "norm   ": (6.8, -4.0),
               "+    ": (6.8, -5.0), "norm    ": (6.8, -6.0)}  # fmt: skip
    decoder_layers = {
        "causal self-attention": (4.0, -0.5), "cross-attention": (4.0, -2.5), "dense, ReLU, dense ": (4.0, -4.5),
    }  # fmt: skip
    arrows = [
        *_stream_arrows(list(encoder), list(encoder_layers)),
        *_stream_arrows(list(decoder), list(decoder_layers)),
    ]
    arrows.append(("norm ", "cross-attention"))  # keys and values
    draw_blocks(axes[0, 0], {**encoder, **encoder_layers, **decoder, **decoder_layers}, arrows)
    return figure


def _stream_arrows(column: list[str], layers: list[str]) -> list[tuple[str, str]]:
    """The residual stream along the column, with one branch through each sublayer to the next sum."""
    branches = [
        arrow
        for start, total, layer in zip(column[::2], column[1::2], layers, strict=False)
        for arrow in ((start, layer), (layer, total))
    ]
    return [*pairwise(column), *branches]
