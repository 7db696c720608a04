"""A classifier p(y | x_t, t) that knows noise, whose gradient can guide a diffusion model (book sec. 13.3)."""

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import silu

from parnassus.diffusion.denoisers import Condition
from parnassus.diffusion.process import diffuse
from parnassus.diffusion.schedules import Schedule
from parnassus.diffusion.unet import Halve, Stage
from parnassus.losses.classification import cross_entropy


class NoisyClassifier(nn.Module):
    """log p(y | x_t, t) for pictures at every step of a schedule: a U-Net's way down, then a mean over pixels.

    It is trained on noised pictures (book sec. 13.3): one that has seen clean ones only says little about x_t, and its
    gradient points nowhere.
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
            raise ValueError(f"a classifier needs at least two classes; got classes={classes}")
        self.shape, self.classes, self.schedule = tuple(shape), classes, schedule
        code = 4 * width
        self.condition = Condition(code)
        self.enter = nn.Conv2d(shape[0], width, 3, padding=1)
        self.parts, here = nn.ModuleList(), width
        for level, multiplier in enumerate(multipliers):
            if level > 0:
                self.parts.append(Halve(here))
            for _ in range(blocks):
                self.parts.append(Stage(here, width * multiplier, code))
                here = width * multiplier
        self.leave = nn.Linear(here, classes)

    def forward(
        self, x: Float[Tensor, "batch channels height width"], t: Int[Tensor, " batch"]
    ) -> Float[Tensor, "batch classes"]:
        code = silu(self.condition(t))
        h = self.enter(x)
        for part in self.parts:
            h = part(h) if isinstance(part, Halve) else part(h, code)
        logits: Tensor = self.leave(silu(h).mean((2, 3)))
        return logits

    def loss(self, x: Float[Tensor, "batch channels height width"], y: Int[Tensor, " batch"]) -> Float[Tensor, ""]:
        """Mean cross-entropy on pictures noised to one random step each."""
        t = torch.randint(len(self.schedule), (len(x),), device=x.device)
        return cross_entropy(self(diffuse(self.schedule, x, t, torch.randn_like(x)), t), y).mean()
