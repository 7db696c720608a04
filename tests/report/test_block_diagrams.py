"""Block diagrams contain every block and arrow, without overlaps."""

import pytest
from matplotlib.patches import FancyBboxPatch
from matplotlib.text import Annotation, Text

from parnassus.report.block_diagrams import draw_blocks
from parnassus.report.style import subplots

BLOCKS = {"x": (0.0, 0.0), "encoder": (2.0, 0.0), "z": (4.0, 0.0), "noise": (4.0, 1.2)}


def draw_diagram() -> tuple[list[str], list[Annotation], list[FancyBboxPatch]]:
    figure, axes = subplots()
    ax = axes[0, 0]
    arrows = [("x", "encoder"), ("encoder", "z"), ("noise", "z")]
    draw_blocks(ax, BLOCKS, arrows, random=["noise"], gradients=[("z", "encoder")], blocked=[("z", "noise")])
    names = [text.get_text() for text in ax.texts if type(text) is Text]
    heads = [text for text in ax.texts if isinstance(text, Annotation)]
    boxes = [patch for patch in ax.patches if isinstance(patch, FancyBboxPatch)]
    assert figure is not None
    return names, heads, boxes


def test_every_block_has_a_name_and_every_arrow_a_head() -> None:
    names, heads, boxes = draw_diagram()
    assert sorted(names) == sorted(BLOCKS)
    assert len(boxes) == len(BLOCKS)
    assert len(heads) == 5


def test_arrows_end_outside_their_blocks() -> None:
    _, heads, boxes = draw_diagram()
    for head in heads:
        for box in boxes:
            left, low, right, high = box.get_bbox().extents
            for x, y in (head.xy, head.xyann):
                assert not (left < x < right and low < y < high)


def test_blocks_can_have_equal_labels() -> None:
    _, axes = subplots()
    draw_blocks(axes[0, 0], {"z": (0.0, 0.0), "z ": (2.0, 0.0)}, [("z", "z ")])
    assert [text.get_text() for text in axes[0, 0].texts if type(text) is Text] == ["z", "z"]


def test_unknown_blocks_raise_value_error() -> None:
    _, axes = subplots()
    with pytest.raises(ValueError, match="got 'decoder', which is not in"):
        draw_blocks(axes[0, 0], BLOCKS, [("z", "decoder")])
    with pytest.raises(ValueError, match="got 'chance', which is not in"):
        draw_blocks(axes[0, 0], BLOCKS, [], random=["chance"])
