"""A classifier p(y | x_t, t) of noised images, for classifier guidance (book sec. 13.3)."""

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import silu

from parnassus.arrays import accepts_arrays
from parnassus.diffusion.chain.forward_process import diffuse
from parnassus.diffusion.chain.schedules import Schedule
from parnassus.diffusion.networks.timestep_embedding import ConditionEmbedding
from parnassus.diffusion.networks.unet import Downsample, UNetBlock
from parnassus.losses.classification import cross_entropy


class NoisyClassifier(nn.Module):
    """Logits of p(y | x_t, t) for noised images: the encoder of a U-Net and a mean over pixels.

    It is trained on noised images (book sec. 13.3), since the gradient of a classifier of clean images is not
    informative at x_t.

    >>> classifier = NoisyClassifier((1, 8, 8), 10, schedule=linear_schedule(10), width=8)
    >>> classifier(torch.zeros(2, 1, 8, 8), torch.tensor([0, 9])).shape
    torch.Size([2, 10])
    """

    def __init__(
        self,
        shape: tuple[int, int, int],
        classes: int,
        *,
        schedule: Schedule,
        width: int = 32,
        multipliers: Sequence[int] = (1, 2),
        blocks: int = 1,
    ) -> None:
        super().__init__()
        if classes < 2:
            raise ValueError(f"classes must be at least 2; got classes={classes}")
        self.shape, self.classes, self.schedule = tuple(shape), classes, schedule
        embed_dim = 4 * width
        self.condition = ConditionEmbedding(embed_dim)
        self.proj_in = nn.Conv2d(shape[0], width, 3, padding=1)
        self.parts, channels = nn.ModuleList(), width
        for level, multiplier in enumerate(multipliers):
            if level > 0:
                self.parts.append(Downsample(channels))
            for _ in range(blocks):
                self.parts.append(UNetBlock(channels, width * multiplier, embed_dim))
                channels = width * multiplier
        self.proj_out = nn.Linear(channels, classes)

    def forward(
        self, x: Float[Tensor, "batch channels height width"], t: Int[Tensor, " batch"]
    ) -> Float[Tensor, "batch classes"]:
        embedding = silu(self.condition(t))
        h = self.proj_in(x)
        for part in self.parts:
            h = part(h) if isinstance(part, Downsample) else part(h, embedding)
        logits: Tensor = self.proj_out(silu(h).mean((2, 3)))
        return logits

    @accepts_arrays
    def loss(self, x: Float[Tensor, "batch channels height width"], y: Int[Tensor, " batch"]) -> Float[Tensor, ""]:
        """Mean cross-entropy on images noised to one random step each."""
        t = torch.randint(len(self.schedule), (len(x),), device=x.device)
        return cross_entropy(self(diffuse(self.schedule, x, t, torch.randn_like(x)), t), y).mean()
