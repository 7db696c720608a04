"""What a loss can be taken of: as many predictions as targets, and at least one."""

from torch import Tensor


def require_alike(prediction: Tensor, target: Tensor) -> None:
    """Refuse what does not fit: (n, 1) beside (n,) would silently become n × n differences."""
    if prediction.shape != target.shape:
        raise ValueError(
            f"prediction and target must have one shape; got {(*prediction.shape,)} and {(*target.shape,)}"
        )
    if prediction.numel() == 0:
        raise ValueError(f"a loss needs at least one example; got shape {(*prediction.shape,)}")
