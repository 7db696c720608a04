"""Dense layers with trainable weight and bias variances (book secs. 15.1, 15.3)."""

from typing import ClassVar

import torch
from torch import nn

from parnassus.kernels.gaussian_processes.covariance import log_parameter
from parnassus.kernels.infinite_width.kernel_state import KernelState
from parnassus.kernels.infinite_width.layer import Dense, Shape, fan_in_factor


class TrainableDense(nn.Module):
    """`Dense` with both variances as parameters, kept as logarithms: Σ ← e^a Σ + e^b and Θ ← Σ + e^a Θ.

    `NNGP` and `NTK` of a network expose the parameters of such layers, so that `learn_hyperparameters` maximises the
    evidence over them. `module` samples weights with the current variances.

    >>> Network((TrainableDense(2.0, 0.5),)).kernels(torch.ones(1, 3)).nngp.item()
    2.5
    """

    mixes_positions: ClassVar[bool] = False
    needs_variances: ClassVar[bool] = False
    has_weights: ClassVar[bool] = True

    def __init__(self, weight_variance: float = 1.0, bias_variance: float = 0.1, *, divide: bool = True) -> None:
        super().__init__()
        self.log_weight_variance = log_parameter("weight_variance", weight_variance)
        self.log_bias_variance = log_parameter("bias_variance", bias_variance)
        self.divide = divide

    @property
    def weight_variance(self) -> float:
        return float(self.log_weight_variance.detach().exp())

    @property
    def bias_variance(self) -> float:
        return float(self.log_bias_variance.detach().exp())

    def kernel(self, state: KernelState) -> KernelState:
        weight = fan_in_factor(state, divide=self.divide) * self.log_weight_variance.exp()
        bias = self.log_bias_variance.exp()
        nngp, left, right = (weight * part + bias for part in (state.nngp, state.left, state.right))
        return KernelState(nngp, None if state.ntk is None else torch.addcmul(nngp, weight, state.ntk), left, right)

    def module(self, shape: Shape, width: int) -> tuple[nn.Module, Shape]:
        return Dense(self.weight_variance, self.bias_variance, self.divide).module(shape, width)
