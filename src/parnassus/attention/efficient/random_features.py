"""Random features: their inner product is a kernel in expectation (Diehl sec. 4.1, Rahimi & Recht 2007)."""

import torch
from jaxtyping import Float
from torch import Tensor

from parnassus.errors import check_positive


def gaussian_directions(
    count: int, width: int, *, generator: torch.Generator | None = None
) -> Float[Tensor, "{count} {width}"]:
    """ω_1 … ω_k, independent samples of N(0, I_d) (Diehl sec. 4.1)."""
    _check_sizes(count, width)
    return torch.randn(count, width, generator=generator)


def orthogonal_directions(
    count: int, width: int, *, generator: torch.Generator | None = None
) -> Float[Tensor, "{count} {width}"]:
    """Samples of N(0, I_d), orthogonal within each block of d (Choromanski et al. 2021).

    Each has the same marginal distribution as an independent sample, so estimators stay unbiased, with less variance.
    """
    _check_sizes(count, width)
    blocks = -(-count // width)
    gauss = torch.randn(blocks, width, width, generator=generator)
    basis, triangle = torch.linalg.qr(gauss)
    basis = basis * triangle.diagonal(dim1=-2, dim2=-1).sign().unsqueeze(-2)  # uniform over all rotations
    lengths = torch.randn(count, width, generator=generator).norm(dim=1, keepdim=True)
    directions: Tensor = basis.mT.reshape(-1, width)[:count] * lengths
    return directions


def antithetic_pairs(directions: Float[Tensor, "count width"]) -> Float[Tensor, "2*count width"]:
    """Each direction with both signs, whose positive features are those of the hyperbolic cosine (Diehl sec. 4.1)."""
    return torch.cat([directions, -directions])


def log_positive_features(
    x: Float[Tensor, "*batch width"], directions: Float[Tensor, "count width"]
) -> Float[Tensor, "*batch count"]:
    """Logarithms of `positive_features`, ω_i·x − ‖x‖²/2 − ½ log k, for sums without overflow or underflow."""
    count = len(directions)
    return x @ directions.mT - x.square().sum(-1, keepdim=True) / 2 - torch.log(x.new_tensor(count)) / 2


def positive_features(
    x: Float[Tensor, "*batch width"], directions: Float[Tensor, "count width"]
) -> Float[Tensor, "*batch count"]:
    """The non-negative features of the Performer, with E ψ(x)ᵀψ(y) = exp⟨x, y⟩ (Diehl eq. 3).

    ψ(x) = exp(−‖x‖²/2) / √k · (exp(ω_1·x), …, exp(ω_k·x))
    """
    return log_positive_features(x, directions).exp()


def cosh_features(
    x: Float[Tensor, "*batch width"], directions: Float[Tensor, "count width"]
) -> Float[Tensor, "*batch 2*count"]:
    """ψ(x) = exp(−‖x‖²/2) / √(2k) · (exp(±ω_i·x))_i, with less variance from the same directions (Diehl sec. 4.1).

    ψ(x)ᵀψ(y) = exp(−‖x‖²/2 − ‖y‖²/2) · 1/k Σ_i cosh(ω_i·(x + y))
    """
    return positive_features(x, antithetic_pairs(directions))


def positive_variance(x: Float[Tensor, "*batch width"], y: Float[Tensor, "*batch width"]) -> Float[Tensor, "*batch"]:
    """Var ψ(x)ᵀψ(y) = exp(−‖x‖² − ‖y‖²) (e^{2s} − e^{s}), s = ‖x + y‖², for one direction; 1/k of it for k.

    Computed as e^{2⟨x,y⟩} (e^{s} − 1). It grows without bound with ‖x + y‖ and is zero at y = −x (Diehl sec. 4.1).
    """
    return (2 * (x * y).sum(-1)).exp() * torch.expm1((x + y).square().sum(-1))


def cosh_variance(x: Float[Tensor, "*batch width"], y: Float[Tensor, "*batch width"]) -> Float[Tensor, "*batch"]:
    """½ exp(−‖x‖² − ‖y‖²) (e^{s} − 1)² for a pair ±ω: ½ (1 − e^{−s}) times `positive_variance` (Diehl sec. 4.1)."""
    return positive_variance(x, y) * -torch.expm1(-(x + y).square().sum(-1)) / 2


def positive_rbf_features(
    x: Float[Tensor, "*batch width"], directions: Float[Tensor, "count width"], *, gamma: float
) -> Float[Tensor, "*batch count"]:
    """Positive features of exp(−γ‖x − y‖²) (Diehl sec. 4.1).

        exp(−γ‖x − y‖²) = e^{−γ‖x‖²} e^{−γ‖y‖²} e^{2γ⟨x,y⟩}
        ψ(x) = e^{−2γ‖x‖²} / √k · (exp(√(2γ) ω_i·x))_i

    The notes print e^{γ⟨x,y⟩}; the square gives the 2.
    """
    check_positive(gamma=gamma)
    log_factor = -gamma * x.square().sum(-1, keepdim=True)
    return (log_factor + log_positive_features((2 * gamma) ** 0.5 * x, directions)).exp()


def fourier_features(
    x: Float[Tensor, "*batch width"],
    directions: Float[Tensor, "count width"],
    phases: Float[Tensor, " count"],
    *,
    gamma: float,
) -> Float[Tensor, "*batch count"]:
    """√(2/k) · (cos(√(2γ) ω_i·x + b_i))_i with b_i uniform on [0, 2π), for exp(−γ‖x − y‖²) (Rahimi & Recht 2007).

    Their error is bounded uniformly in x and y, but they are not positive: a normaliser computed from them may vanish.
    """
    check_positive(gamma=gamma)
    angles = (2 * gamma) ** 0.5 * x @ directions.mT + phases
    features: Tensor = (2 / len(directions)) ** 0.5 * angles.cos()
    return features


def draw_phases(count: int, *, generator: torch.Generator | None = None) -> Float[Tensor, " {count}"]:
    """b_1 … b_k, uniform on [0, 2π)."""
    _check_sizes(count, 1)
    return 2 * torch.pi * torch.rand(count, generator=generator)


def _check_sizes(count: int, width: int) -> None:
    if count < 1 or width < 1:
        raise ValueError(f"count and width must be at least 1; got count={count}, width={width}")
