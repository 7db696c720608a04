import torch
from torch import Tensor


def striped_images(count: int, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Noisy images of vertical and horizontal stripes, and their classes."""
    generator = torch.Generator().manual_seed(seed)
    label = torch.arange(count) % 2
    profile = (torch.arange(8) % 4 < 2).float()
    vertical = profile.expand(1, 8, 8)
    images = torch.where(label[:, None, None, None] == 0, vertical, vertical.mT)
    return (0.5 * images + 0.5 * torch.rand(images.shape, generator=generator)).clamp(0, 1), label
