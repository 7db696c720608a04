"""Exact densities: autoregressive models of images, and flows that carry a simple density through invertible maps."""

from parnassus.flows.distribution import FlowDistribution
from parnassus.flows.flow import Chain, Flow, GaussianBase, Inverted, Invertible

__all__ = [
    "Chain",
    "Flow",
    "FlowDistribution",
    "GaussianBase",
    "Inverted",
    "Invertible",
]
