"""A flow as a distribution of torch, to be used wherever one is asked for (book sec. 13.1)."""

from math import prod
from typing import ClassVar

import torch
from torch import Tensor
from torch.distributions import Distribution, constraints

from parnassus.flows.flow import Flow


class FlowDistribution(Distribution):
    """The density of a flow under torch's interface: `sample`, `rsample` and `log_prob`, of any sample shape.

    >>> FlowDistribution(flow, (2,)).rsample((64,))  # gradients reach the flow's parameters
    """

    arg_constraints: ClassVar[dict[str, constraints.Constraint]] = {}
    has_rsample = True

    def __init__(self, flow: Flow, event_shape: tuple[int, ...], *, validate_args: bool | None = None) -> None:
        self.flow = flow
        super().__init__(event_shape=torch.Size(event_shape), validate_args=validate_args)

    @property
    def support(self) -> constraints.Constraint:
        """Real numbers: what a transform cannot reach has density zero by its own inverse."""
        return constraints.independent(constraints.real, len(self.event_shape))

    def rsample(self, sample_shape: torch.Size | list[int] | tuple[int, ...] = ()) -> Tensor:
        """T(z) with z ~ p_z, a function of the flow's parameters."""
        x, _ = self.flow.sample_with_log_prob(prod(sample_shape))
        return x.reshape(*sample_shape, *self.event_shape)

    def log_prob(self, value: Tensor) -> Tensor:
        """The exact log-density for every example of `value`."""
        if self._validate_args:
            self._validate_sample(value)
        batch = value.shape[: value.dim() - len(self.event_shape)]
        return self.flow.log_prob(value.reshape(-1, *self.event_shape)).reshape(batch)
