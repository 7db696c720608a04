"""Optimisation problems with known minimiser and curvature, to test convergence theorems (book sec. 3.1)."""

from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf

import torch
from jaxtyping import Float
from torch import Tensor
from torch.func import grad, vmap
from torch.nn.functional import logsigmoid

from parnassus.errors import check_at_least_one
from parnassus.optim.optimisers.newton import newton_descent

Function = Callable[[Tensor], Tensor]
"""A scalar function f(w) of one vector w."""


@dataclass(frozen=True)
class OptimisationProblem:
    """min_w f(w) with the constants that convergence theorems need (book eq. 3.1).

    Second derivatives in any direction lie between α and β. α > 0: strongly convex; α = 0: convex; α < 0: possibly not
    convex; β = ∞: not differentiable everywhere.

    >>> loss = lambda w: w.square().sum(-1)
    >>> problem = OptimisationProblem(loss, torch.tensor([3.0, 4.0]), torch.zeros(2), alpha=2.0, beta=2.0)
    >>> problem.radius
    5.0
    """

    loss: Function = field(repr=False)
    start: Float[Tensor, " dim"]
    minimiser: Float[Tensor, " dim"]
    alpha: float
    beta: float

    def __post_init__(self) -> None:
        if not (self.alpha <= self.beta and self.beta > 0):
            raise ValueError(f"need alpha ≤ beta and beta > 0; got alpha={self.alpha}, beta={self.beta}")

    @property
    def radius(self) -> float:
        """‖w⁽⁰⁾ − w*‖, the distance of the start from the minimiser."""
        return float(torch.linalg.vector_norm(self.start - self.minimiser))

    def excess(self, path: Float[Tensor, "path dim"]) -> Float[Tensor, " path"]:
        """f(w) − f(w*) for every row."""
        values: Tensor = vmap(self.loss)(path)
        return values - self.loss(self.minimiser)

    def gradients(self, path: Float[Tensor, "path dim"]) -> Float[Tensor, "path dim"]:
        """∇f(w) for every row."""
        gradients: Tensor = vmap(grad(self.loss))(path)
        return gradients


def quadratic(spectrum: Float[Tensor, " dim"], *, generator: torch.Generator) -> OptimisationProblem:
    """½ (w − w*)ᵀ A (w − w*), where A has this spectrum in a random basis, w* and the start are standard normal."""
    if not bool((spectrum >= 0).all()) or not bool(spectrum.any()):
        raise ValueError(f"the spectrum must be ≥ 0 and not all 0; got {spectrum.tolist()}")
    size = len(spectrum)
    basis, _ = torch.linalg.qr(torch.randn(size, size, generator=generator, dtype=spectrum.dtype))
    minimiser, start = torch.randn(2, size, generator=generator, dtype=spectrum.dtype)
    root = spectrum.sqrt()[:, None] * basis.T

    def loss(w: Tensor) -> Tensor:
        stretched: Tensor = root @ (w - minimiser)
        return stretched.square().sum() / 2

    return OptimisationProblem(loss, start, minimiser, alpha=float(spectrum.min()), beta=float(spectrum.max()))


def ellipse(condition_number: float) -> OptimisationProblem:
    """½ (w₁²/κ + w₂²) from (κ, 1): a narrow valley of condition number κ (book fig. 3.1)."""
    check_at_least_one(condition_number=condition_number)
    curvature = torch.tensor([1 / condition_number, 1.0], dtype=torch.float64)

    def loss(w: Tensor) -> Tensor:
        return (curvature * w.square()).sum() / 2

    start = torch.tensor([condition_number, 1.0], dtype=torch.float64)
    return OptimisationProblem(loss, start, torch.zeros_like(start), alpha=1 / condition_number, beta=1.0)


def ridge_logistic(x: Float[Tensor, "count dim"], y: Float[Tensor, " count"], *, ridge: float) -> OptimisationProblem:
    """L2-regularised logistic regression: mean of log(1 + e^(−yᵢ xᵢ·w)) plus ½ λ‖w‖², labels y = ±1, from w = 0.

    α = λ, and β = λ + λ_max(XᵀX)/(4n), as no second derivative of log(1 + e^−z) exceeds ¼.
    The minimiser is computed by Newton's method to machine precision.
    """
    if not bool((y.abs() == 1).all()) or not ridge > 0:
        raise ValueError(f"need labels ±1 and ridge > 0; got labels {y.unique().tolist()}, ridge={ridge}")

    def loss(w: Tensor) -> Tensor:
        return -logsigmoid(y * (x @ w)).mean() + ridge * w.square().sum() / 2

    start = x.new_zeros(x.shape[1])
    minimiser = newton_descent(loss, start, steps=20)[-1]
    largest = float(torch.linalg.matrix_norm(x, 2)) ** 2 / (4 * len(x))
    return OptimisationProblem(loss, start, minimiser, alpha=ridge, beta=ridge + largest)


def log_cosh(start: Float[Tensor, " dim"]) -> OptimisationProblem:
    """Σ log cosh wᵢ: curvature at most 1, and almost 0 far from the minimum."""

    def loss(w: Tensor) -> Tensor:
        return torch.logaddexp(w, -w).sum() - len(start) * torch.log(w.new_tensor(2.0))

    return OptimisationProblem(loss, start, torch.zeros_like(start), alpha=0.0, beta=1.0)


def quartic(start: Float[Tensor, " dim"]) -> OptimisationProblem:
    """¼ Σ wᵢ⁴, with zero curvature at the minimum; β = 3 max wᵢ² holds on the cube that contains the iterates."""

    def loss(w: Tensor) -> Tensor:
        return w.pow(4).sum() / 4

    return OptimisationProblem(loss, start, torch.zeros_like(start), alpha=0.0, beta=3 * float(start.abs().max()) ** 2)


def huber_worst_case(displacement: float, *, beta: float = 1.0, radius: float = 1.0) -> OptimisationProblem:
    """The Huber loss on which a gradient method attains its worst case (Drori & Teboulle 2014).

        f(w) = ½ β w²                for |w| ≤ τ = R/(2c + 1)
        f(w) = β τ |w| − ½ β τ²      beyond

    c = `displacement` is that of the method under a constant gradient g, in units of g/β: gradient descent
    with η = 1/β has c = T after T steps, Nesterov's φ has c = (T² + 5T + 2)/8. From w = R it ends on the linear part,
    at f = βR²/(4c + 2).
    """
    if not displacement >= 0 or not radius > 0:
        raise ValueError(f"need displacement ≥ 0 and radius > 0; got displacement={displacement}, radius={radius}")
    threshold = radius / (2 * displacement + 1)

    def loss(w: Tensor) -> Tensor:
        size = w.abs()
        return beta * torch.where(size <= threshold, size.square() / 2, threshold * size - threshold**2 / 2).sum()

    start = torch.tensor([radius], dtype=torch.float64)
    return OptimisationProblem(loss, start, torch.zeros_like(start), alpha=0.0, beta=beta)


def infinity_norm(start: Float[Tensor, " dim"]) -> OptimisationProblem:
    """Maximum norm max |wᵢ|: convex, Lipschitz continuous, not differentiable everywhere (β = ∞)."""

    def loss(w: Tensor) -> Tensor:
        return w.abs().amax()

    return OptimisationProblem(loss, start, torch.zeros_like(start), alpha=0.0, beta=inf)


def egg_box(start: Float[Tensor, " dim"]) -> OptimisationProblem:
    """Σ ½ wᵢ² + 2 (1 − cos 2wᵢ): global minimum at 0, many local minima, curvature from −7 to 9."""

    def loss(w: Tensor) -> Tensor:
        return (w.square() / 2 + 2 * (1 - (2 * w).cos())).sum()

    return OptimisationProblem(loss, start, torch.zeros_like(start), alpha=-7.0, beta=9.0)


def smooth_problems(seed: int = 0) -> dict[str, OptimisationProblem]:
    """One problem of each kind with finite β, by name: five convex ones and the non-convex egg box."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(60, 5, generator=generator, dtype=torch.float64)
    y = (x @ torch.randn(5, generator=generator, dtype=torch.float64)).sign()
    start = 3 * torch.randn(4, generator=generator, dtype=torch.float64)
    return {
        "quadratic": quadratic(torch.logspace(-2, 0, 10, dtype=torch.float64), generator=generator),
        "ellipse": ellipse(25.0),
        "ridge logistic": ridge_logistic(x, y, ridge=0.05),
        "log cosh": log_cosh(start),
        "quartic": quartic(start),
        "egg box": egg_box(start),
    }
