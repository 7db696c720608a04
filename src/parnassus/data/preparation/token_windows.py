"""Windows of a long token sequence: overlapping ones in batches for training, consecutive ones for evaluation."""

import torch
from jaxtyping import Int
from torch import Tensor

from parnassus.data.errors import DataError
from parnassus.data.splits import Batches
from parnassus.errors import check_at_least_one


def window_batches(tokens: Int[Tensor, " time"], window: int, *, size: int, steps: int) -> Batches[Tensor]:
    """Batches of `size` windows of window + 1 consecutive tokens; every start position occurs once per epoch."""
    check_at_least_one(window=window)
    if len(tokens) <= window:
        raise DataError(
            f"the text is too short: training with a window of {window} needs {window + 1} tokens; got {len(tokens)}; "
            "try a smaller window"
        )
    offsets = torch.arange(window + 1, device=tokens.device)
    return Batches(
        lambda starts: tokens[starts[:, None] + offsets],
        len(tokens) - window,
        size=size,
        steps=steps,
        device=tokens.device,
    )


def split_windows(tokens: Int[Tensor, " time"], window: int) -> Int[Tensor, "window window_and_one"]:
    """Consecutive windows of window + 1 tokens; each begins with the last token of the previous one."""
    if len(tokens) < 2:
        raise DataError(f"the text is too short: at least 2 tokens are required for the test; got {len(tokens)}")
    return tokens.unfold(0, min(window + 1, len(tokens)), min(window, len(tokens)))
