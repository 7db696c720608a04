"""Gaussian-process regression on large training sets: kernel in blocks, amplitude estimated (book sec. 15.1)."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from parnassus.arrays import accepts_arrays
from parnassus.kernels.gaussian_processes.covariance import Kernel
from parnassus.kernels.gaussian_processes.gp_regression import GPPrediction, check_training_data
from parnassus.kernels.solvers.kernel_matrix import BLOCK, KernelMatrix, evaluate_in_blocks
from parnassus.kernels.solvers.linear_solvers import LinearSolver, Solution, choose_solver, relative_residual


@dataclass(frozen=True, eq=False)
class BlockedRegression:
    """The posterior of y ~ GP(0, v K) after t = y(x) + ε with ε ~ N(0, v ρ), by Cholesky or conjugate gradients.

        α = (K + ρI)⁻¹ t,   E[y | t] = kᵀα                                                   (book eq. 15.9)
        Var(y | t) = v (K(x, x) − kᵀ (K + ρI)⁻¹ k),   Var(t | t_N) = Var(y | t) + v ρ         (book eq. 15.10, with σ²)

    The mean depends on ρ = σ²/v alone; v = tᵀα / n maximises the marginal likelihood over all outputs. For a few
    thousand points, and for gradients, use `GPRegression`.
    """

    kernel: Kernel
    x: Float[Tensor, "n *shape"]
    solver: LinearSolver
    solution: Solution
    ratio: float
    amplitude: float
    block: int
    devices: Sequence[torch.device]

    @classmethod
    @accepts_arrays
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
        """Fit with noise ratio ρ = `ratio`; kernels larger than `memory` bytes (default: free memory) are not stored.

        For float32 points, the residual reported is computed with the kernel in float64.
        """
        check_training_data(x, t)
        matrix = KernelMatrix(kernel, x, None, block, devices)
        solver = choose_solver(matrix, noise=ratio, memory=memory)
        solution = solver.solve(t)
        if x.dtype != torch.float64:  # the solver measured it with the float32 kernel
            error = relative_residual(matrix, t, solution.weights, noise=ratio + solution.jitter)
            solution = solution._replace(residual=error)
        amplitude = float((t * solution.weights).mean())
        return cls(kernel, x, solver, solution, ratio, amplitude, block, devices)

    @torch.no_grad()
    @accepts_arrays
    def predict(self, x: Float[Tensor, "m *size"]) -> GPPrediction:
        """Mean and variances at each point, computed `block` points at a time."""
        means, variances = [], []
        for rows in x.split(self.block):
            k = evaluate_in_blocks(self.kernel, self.x, rows, block=self.block, devices=self.devices)
            means.append(k.mT @ self.solution.weights)
            remaining = self.kernel.diagonal(rows) - self.solver.explained_variance(k)
            variances.append(self.amplitude * remaining.clamp(min=0))  # rounding may make it negative
        variance = torch.cat(variances)
        return GPPrediction(torch.cat(means), variance, variance + self.amplitude * self.ratio)
