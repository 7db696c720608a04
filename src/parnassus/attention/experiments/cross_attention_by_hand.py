"""Cross-attention of three words to two others, matrix by matrix, and the block around it (book secs. 10.1, 10.1.1)."""

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from parnassus.attention import DecoderBlock, MultiHeadAttention, SelfAttention, Widths, cross_attention, feed_forward
from parnassus.report import draw_blocks, subplots
from parnassus.report.ink import DIVERGING
from parnassus.train import Run, at_most, between

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("B10.1-8", "B10.1.1-1", "B10.1.1-2", "Z11.10")
expected = {
    "output_rows": between(3, 3, "as many as there are queries"),
    "output_columns": between(5, 5, "the width of the values"),
    "off_by": at_most(1e-5, "largest distance from the fused kernel of torch"),
    "dense_share": between(0.45, 0.55, "share of the parameters of a decoder block that its dense network has"),
}
profiles: dict[str, dict[str, object]] = {"smoke": {}, "gpu": {}}


@dataclass(frozen=True)
class Experiment:
    source: int = 2  # words that are looked at
    target: int = 3  # words that look
    width: int = 512  # of the decoder block whose parameters are counted

    def __call__(self, run: Run) -> dict[str, float]:
        memory, x = torch.randn(1, self.source, 3), 3 * torch.randn(1, self.target, 4)
        layer = MultiHeadAttention(Widths(4, 3, 3, 5), 1, key_width=4, value_width=5, bias=False)
        with torch.no_grad():
            layer.answer.weight.copy_(torch.eye(5))  # one head needs no mixing
            parts = {
                "source": memory[0], "keys = source W_Kᵀ": layer.key(memory)[0],
                "values = source W_Vᵀ": layer.value(memory)[0], "target": x[0],
                "queries = target W_Qᵀ": layer.query(x)[0],
                "weights = softmax(QKᵀ/√4)": layer.weights(x, memory)[0, 0],
                "output = weights · values": layer(x, memory, memory)[0],
            }  # fmt: skip
        query, key, value, output = (list(parts.values())[place] for place in (4, 1, 2, 6))
        run.figure(
            "matrices",
            matrices_figure(parts),
            "A row is a word. The words of the target ask, those of the source answer, and each row of the output is a "
            "mean of the rows of the values: as many rows as there are queries, as wide as the values. W_K is 4×3, W_V "
            "5×3 and W_Q 4×4; the book prints 5×2 for W_V, which cannot act on words of width 3 (book fig. 10.2).",
        )
        run.figure(
            "blocks",
            blocks_figure(),
            "A block of the encoder and one of the decoder as Vaswani et al. have them. Down each column runs the "
            "residual stream: what a part finds is added to it, then normalised. The dense network is two linear maps "
            "with one ReLU between them (book fig. 10.1).",
        )
        block = decoder_block(self.width)
        dense, whole = (sum(p.numel() for p in module.parameters()) for module in (block.dense, block))
        run.note(
            "where the parameters are",
            f"Of the {whole:,} parameters of a decoder block of width {self.width}, {dense / whole:.0%} are in its "
            "dense network, and half as many in each of its two attentions.",
        )
        expected_output = scaled_dot_product_attention(query, key, value)
        return {
            "output_rows": float(output.shape[0]),
            "output_columns": float(output.shape[1]),
            "off_by": float((output - expected_output).abs().max()),
            "dense_share": dense / whole,
        }


def decoder_block(width: int) -> DecoderBlock:
    heads = max(1, width // 64)
    return DecoderBlock(
        SelfAttention(width, heads, causal=True),
        cross_attention(width, heads),
        feed_forward(width),
        norm=lambda: nn.LayerNorm(width),
    )


def matrices_figure(parts: dict[str, Tensor]) -> "Figure":
    """Each matrix with its numbers; the source and what it offers above, the target and what it gets below."""
    figure, axes = subplots(2, 4, size=(11.0, 4.6))
    limit = max(float(matrix.abs().max()) for matrix in parts.values())
    places = [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2), (1, 3)]
    for (row, column), (name, matrix) in zip(places, parts.items(), strict=True):
        ax = axes[row, column]
        ax.imshow(matrix.numpy(), cmap=DIVERGING, vmin=-limit, vmax=limit)
        for place in torch.cartesian_prod(*(torch.arange(size) for size in matrix.shape)).tolist():
            number = float(matrix[place[0], place[1]])
            colour = "#f8f8f8" if abs(number) > 0.6 * limit else "#111111"
            ax.text(place[1], place[0], f"{number:.2f}", ha="center", va="center", fontsize=8, color=colour)
        ax.set_title(f"{name}\n{matrix.shape[0]} × {matrix.shape[1]}", fontsize=9)
    for ax in axes.flat:
        ax.set(xticks=[], yticks=[])
        ax.grid(visible=False)
        ax.spines[:].set_visible(False)
    return figure


def blocks_figure() -> "Figure":
    """The residual streams of an encoder block and of a decoder block, with the parts beside them."""
    figure, axes = subplots(size=(9.6, 5.2))
    encoder = {"x": (0.0, 0.0), "+": (0.0, -1.0), "norm": (0.0, -2.0), "+ ": (0.0, -3.0), "norm ": (0.0, -4.0)}
    reading = {"self-attention": (-2.4, -0.5), "dense, ReLU, dense": (-2.4, -2.5)}
    decoder = {"y": (6.8, 0.0), "+  ": (6.8, -1.0), "norm  ": (6.8, -2.0), "+   ": (6.8, -3.0), "norm   ": (6.8, -4.0),
               "+    ": (6.8, -5.0), "norm    ": (6.8, -6.0)}  # fmt: skip
    writing = {"causal self-attention": (4.0, -0.5), "cross-attention": (4.0, -2.5), "dense, ReLU, dense ": (4.0, -4.5)}
    arrows = [*_stream(list(encoder), list(reading)), *_stream(list(decoder), list(writing))]
    arrows.append(("norm ", "cross-attention"))  # keys and values
    draw_blocks(axes[0, 0], {**encoder, **reading, **decoder, **writing}, arrows)
    return figure


def _stream(column: list[str], parts: list[str]) -> list[tuple[str, str]]:
    """Down the column, and at every second place through a part to the sum below."""
    down = list(pairwise(column))
    through = [
        arrow
        for start, total, part in zip(column[::2], column[1::2], parts, strict=False)
        for arrow in ((start, part), (part, total))
    ]
    return [*down, *through]
