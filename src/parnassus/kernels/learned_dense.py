"""Dense layers whose variances are learned: which prior over weights do the data speak for (book secs. 15.1, 15.3)?"""

from typing import ClassVar

import torch
from torch import nn

from parnassus.kernels.covariance import log_parameter
from parnassus.kernels.layer import Dense, Shape, counted_inputs
from parnassus.kernels.pair import Pair


class LearnedDense(nn.Module):
    """`Dense` with both variances as parameters, kept as logarithms: Σ ← e^a Σ + e^b and Θ ← Σ + e^a Θ.

    `NNGP` and `NTK` of a network that has such layers find their parameters, so that `learn_hyperparameters` ascends
    the evidence in them: each weight variance turns up or down what its layer hears, each bias variance what it says
    to no input at all. `module` draws weights at the variances as they stand.
    """

    mixes_places: ClassVar[bool] = False
    needs_variances: ClassVar[bool] = False
    has_weights: ClassVar[bool] = True

    def __init__(self, weight: float = 1.0, bias: float = 0.1, *, divide: bool = True) -> None:
        super().__init__()
        self.log_weight = log_parameter("weight", weight)
        self.log_bias = log_parameter("bias", bias)
        self.divide = divide

    @property
    def weight(self) -> float:
        return float(self.log_weight.detach().exp())

    @property
    def bias(self) -> float:
        return float(self.log_bias.detach().exp())

    def kernel(self, pair: Pair) -> Pair:
        weight, bias = counted_inputs(pair, divide=self.divide) * self.log_weight.exp(), self.log_bias.exp()
        nngp, left, right = (weight * part + bias for part in (pair.nngp, pair.left, pair.right))
        return Pair(nngp, None if pair.ntk is None else torch.addcmul(nngp, weight, pair.ntk), left, right)

    def module(self, shape: Shape, width: int) -> tuple[nn.Module, Shape]:
        return Dense(self.weight, self.bias, self.divide).module(shape, width)
