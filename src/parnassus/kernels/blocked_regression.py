"""Gaussian-process regression on as many points as there are: in blocks, with its own amplitude (book sec. 15.1)."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from parnassus.kernels.blocks import BLOCK, KernelMatrix, blocked
from parnassus.kernels.covariance import Kernel
from parnassus.kernels.gp_regression import Prediction
from parnassus.kernels.solve import Solution, Solver, relative_residual, solver_for


@dataclass(frozen=True, eq=False)
class BlockedRegression:
    """The posterior of y ~ GP(0, v K) after t = y(x) + ε with ε ~ N(0, v ρ), by Cholesky or conjugate gradients.

        α = (K + ρI)⁻¹ t,   E[y | t] = kᵀα                                                   (book eq. 15.9)
        Var(y | t) = v (K(x, x) − kᵀ (K + ρI)⁻¹ k),   Var(t | t_N) = Var(y | t) + v ρ         (book eq. 15.10, with σ²)

    The mean depends on ρ = σ²/v alone; v = tᵀα / n is that of the largest marginal likelihood over all outputs.
    What `GPRegression` does for some thousand points with gradients, this does for many without.
    """

    kernel: Kernel
    x: Float[Tensor, "n *shape"]
    solver: Solver
    solution: Solution
    ratio: float
    amplitude: float
    block: int
    devices: Sequence[torch.device]

    @classmethod
    def fit(
        cls,
        kernel: Kernel,
        x: Float[Tensor, "n *shape"],
        t: Float[Tensor, "rows outputs"],
        *,
        ratio: float,
        block: int = BLOCK,
        devices: Sequence[torch.device] = (),
        memory: int | None = None,
    ) -> "BlockedRegression":
        """Beyond `memory` bytes (by default what the device has free) the kernel is not held. `ratio` is ρ.

        In float32, the residual reported is that of the kernel in float64.
        """
        if len(x) != len(t) or not len(x):
            raise ValueError(f"need a target for each point, and at least one; got {len(x)} points, {len(t)} targets")
        if not bool(x.isfinite().all() and t.isfinite().all()):
            raise ValueError("points and targets must be finite; got NaN or ∞")
        matrix = KernelMatrix(kernel, x, None, block, devices)
        solver = solver_for(matrix, noise=ratio, memory=memory)
        solution = solver.solve(t)
        if x.dtype != torch.float64:  # a root knows its rounded kernel only
            error = relative_residual(matrix, t, solution.weights, noise=ratio + solution.jitter)
            solution = solution._replace(residual=error)
        amplitude = float((t * solution.weights).mean())
        return cls(kernel, x, solver, solution, ratio, amplitude, block, devices)

    @torch.no_grad()
    def predict(self, x: Float[Tensor, "m *size"]) -> Prediction:
        """Mean and variances at each point, `block` points at a time."""
        means, variances = [], []
        for rows in x.split(self.block):
            k = blocked(self.kernel, self.x, rows, block=self.block, devices=self.devices)
            means.append(k.mT @ self.solution.weights)
            left = self.kernel.diagonal(rows) - self.solver.explained(k)
            variances.append(self.amplitude * left.clamp(min=0))  # rounding must not make it negative
        variance = torch.cat(variances)
        return Prediction(torch.cat(means), variance, variance + self.amplitude * self.ratio)
