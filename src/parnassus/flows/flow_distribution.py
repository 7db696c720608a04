"""A flow as a torch distribution (book sec. 13.1)."""

from math import prod
from typing import ClassVar

import torch
from torch import Tensor
from torch.distributions import Distribution, constraints

from parnassus.flows.flow import Flow


class FlowDistribution(Distribution):
    """A flow with the interface of `torch.distributions`: `sample`, `rsample` and `log_prob` for any sample shape.

    >>> flow = Flow(real_nvp(2, num_layers=2, width=8), GaussianBase((2,)))
    >>> FlowDistribution(flow, (2,)).rsample((64,)).shape  # gradients reach the parameters of the flow
    torch.Size([64, 2])
    """

    arg_constraints: ClassVar[dict[str, constraints.Constraint]] = {}
    has_rsample = True

    def __init__(self, flow: Flow, event_shape: tuple[int, ...], *, validate_args: bool = True) -> None:
        self.flow = flow
        self.validate_args = validate_args
        super().__init__(event_shape=torch.Size(event_shape), validate_args=validate_args)

    @property
    def support(self) -> constraints.Constraint:
        """All real values; the density is 0 outside the image of the transform."""
        return constraints.independent(constraints.real, len(self.event_shape))

    def rsample(self, sample_shape: torch.Size | list[int] | tuple[int, ...] = ()) -> Tensor:
        """Samples T(z) with z ~ p_z, differentiable with respect to the parameters of the flow."""
        x, _ = self.flow.sample_with_log_prob(prod(sample_shape))
        return x.reshape(*sample_shape, *self.event_shape)

    def log_prob(self, value: Tensor) -> Tensor:
        """The exact log-density of every example of `value`."""
        split = value.dim() - len(self.event_shape)
        batch, event = value.shape[:split], value.shape[split:]
        if self.validate_args and event != self.event_shape:
            raise ValueError(f"value must end in the event's shape {tuple(self.event_shape)}; got {tuple(value.shape)}")
        if self.validate_args and not bool(self.support.check(value).all()):
            raise ValueError(f"value must lie within the support, {self.support}; got NaN")
        return self.flow.log_prob(value.reshape(-1, *self.event_shape)).reshape(batch)
