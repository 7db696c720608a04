"""The parameters of a small network as one vector: what is done to all of them is done at once, not one by one."""

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from parnassus.reinforcement.stacked import clip_each

LINE = 16
"""Numbers that a processor fetches together: each parameter begins with such a line, as it would by itself."""


class OneVector:
    """Parameters, of which each becomes a part of one vector, and their gradients parts of another.

    They stay what they are to everybody else: the same parameters, with the same shapes, numbers and gradients. Between
    the parts are zeros, whose gradient is 0.
    """

    def __init__(self, parameters: Sequence[nn.Parameter]) -> None:
        self.parameters = list(parameters)
        first = self.parameters[0]
        if any((own.device, own.dtype) != (first.device, first.dtype) for own in self.parameters):
            raise ValueError("parameters of several devices or kinds of numbers cannot be one vector")
        self.whole = nn.Parameter(self.joined([own.detach() for own in self.parameters]), requires_grad=False)
        self.whole.grad = torch.zeros_like(self.whole)
        self.slopes = self.parts(self.whole.grad)
        for own, part, slope in zip(self.parameters, self.parts(self.whole), self.slopes, strict=True):
            if own.grad is not None:
                slope.copy_(own.grad.detach())
            own.data, own.grad = part, slope

    def joined(self, tensors: Sequence[Tensor]) -> Float[Tensor, " numbers"]:
        """Numbers of the parameters' shapes as one vector."""
        return torch.cat([nn.functional.pad(own.flatten(), (0, -own.numel() % LINE)) for own in tensors])

    def parts(self, vector: Float[Tensor, " numbers"]) -> list[Tensor]:
        """The same back again: each a view of its part."""
        rooms = vector.split([own.numel() + -own.numel() % LINE for own in self.parameters])
        return [room[: own.numel()].view_as(own) for room, own in zip(rooms, self.parameters, strict=True)]

    def slope(self, most: float, learners: int) -> Float[Tensor, " numbers"]:
        """The gradient, each learner's shortened to the norm `most`; gradients kept elsewhere are fetched."""
        for own, slope in zip(self.parameters, self.slopes, strict=True):
            if own.grad is not slope:
                if own.grad is None:
                    raise ValueError(f"all parameters need gradients here; one of shape {list(own.shape)} has none")
                slope.copy_(own.grad.detach())
                own.grad = slope
        if most < torch.inf:
            clip_each([self.whole] if learners == 1 else self.parameters, most, learners=learners)
        assert self.whole.grad is not None
        return self.whole.grad

    def remembered(self, state: dict[Any, dict[str, Any]], names: Sequence[str]) -> tuple[Tensor, ...]:
        """How many steps there were, and one vector for each name in an optimiser's state; zeros where it has none yet.

        What is there for each parameter becomes a part of these.
        """
        counts = [state[own]["step"] for own in self.parameters if state[own]]
        if any(float(count) != float(counts[0]) for count in counts):
            raise ValueError(f"all parameters have taken the same steps here; got {[float(each) for each in counts]}")
        count = counts[0].clone() if counts else torch.zeros((), device=self.whole.device)
        olds = [[state[own].get(name, torch.zeros_like(own)) for own in self.parameters] for name in names]
        vectors = [self.joined([old.detach() for old in own]) for own in olds]
        parts = zip(*(self.parts(vector) for vector in vectors), strict=True)
        for own, each in zip(self.parameters, parts, strict=True):
            state[own].update({"step": count, **dict(zip(names, each, strict=True))})
        return count, *vectors
