import torch
from torch import Tensor


def stripes(count: int, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Images of vertical and horizontal stripes with noise, one class each."""
    source = torch.Generator().manual_seed(seed)
    label = torch.arange(count) % 2
    wave = (torch.arange(8) % 4 < 2).float()
    vertical = wave.expand(1, 8, 8)
    images = torch.where(label[:, None, None, None] == 0, vertical, vertical.mT)
    return (0.5 * images + 0.5 * torch.rand(images.shape, generator=source)).clamp(0, 1), label
