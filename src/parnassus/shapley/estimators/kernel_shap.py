"""Kernel SHAP: Shapley values by weighted least squares, and its weights (book sec. 17.4; Lundberg and Lee 2017)."""

from math import comb, inf
from typing import NamedTuple, Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor

from parnassus.errors import check_positive
from parnassus.shapley.estimators.coalition_sampling import CoalitionSample, sample_coalitions
from parnassus.shapley.estimators.estimate import ShapleyEstimate, small_sample_errors
from parnassus.shapley.games.cooperative_games import CharacteristicFunction

RANK_TOLERANCE = 1e-6
"""Relative singular value below which a direction is treated as undetermined, such as that of all players."""
MAX_PAIRS_WITH_CROSS_TERMS = 1024
"""Number of pairs above which degrees of freedom are large and computed without cross terms."""


def kernel_shap_weights(players: int) -> Float[Tensor, " sizes"]:
    """Shapley kernel π(s) = (M − 1) / (C(M, s) s (M − s)) for s = 0 … M; infinite at both ends (book eq. 17.10)."""
    check_positive(players=players)
    inner = [(players - 1) / (comb(players, size) * size * (players - size)) for size in range(1, players)]
    return torch.tensor([inf, *inner, inf], dtype=torch.float64)


@runtime_checkable
class KernelShapSolver(Protocol):
    """Shapley values from the worths of sampled coalitions: `weighted_regression` or `regression_adjustment`."""

    def __call__(
        self,
        sample: CoalitionSample,
        worth: Float[Tensor, "*games count"],
        empty: Float[Tensor, "*games"],
        grand: Float[Tensor, "*games"],
    ) -> ShapleyEstimate: ...


def weighted_regression(
    sample: CoalitionSample,
    worth: Float[Tensor, "*games count"],
    empty: Float[Tensor, "*games"],
    grand: Float[Tensor, "*games"],
) -> ShapleyEstimate:
    """The φ that minimises Σ_z π(z)/p(z) (v(z) − v(∅) − Σ_j φ_j z_j)², with Σ_j φ_j = v(N) − v(∅) (book eq. 17.9).

    π is infinite for the empty and the grand coalition, which are therefore constraints. p(z) is the inclusion
    probability of z; coalitions with p = 1 contribute no sampling error. Worths of several sets of coalitions have
    shape (sets, games, count). Errors are infinite with no more pairs than the regression needs.
    """
    equal = (grand - empty) / sample.coalitions.shape[-1]
    if sample.coalitions.shape[-1] == 1:
        return ShapleyEstimate(equal[..., None], torch.zeros_like(equal[..., None]))
    pairs = PairedRegression.build(sample, worth)
    odd = pairs.odd_part(worth, equal)
    values = odd @ pairs.influence
    loo_residuals = (odd - values @ pairs.centred.mT) / pairs.one_minus_leverage
    return ShapleyEstimate(values + equal[..., None], pairs.standard_errors(loo_residuals))


class PairedRegression(NamedTuple):
    """Kernel SHAP's regression on complementary pairs, which depends only on the odd part ½ (v(z) − v(not z)).

    After subtraction of the equal split, φ = Σ odd · influence, where influence = w Pz (Σ w Pz zᵀP)⁺, w = 2 π(z)/p(z)
    and P = I − J/M projects onto directions that sum to 0.
    """

    centred: Float[Tensor, "*sets pairs players"]
    influence: Float[Tensor, "*sets pairs players"]
    size: Float[Tensor, " pairs"]
    inclusion_probability: Float[Tensor, " pairs"]

    @classmethod
    def build(cls, sample: CoalitionSample, like: Tensor) -> "PairedRegression":
        """The regression on a sample, for all games on its coalitions; one for each set, in the dtype of `like`."""
        half = sample.coalitions.chunk(2, -2)[0]
        players = half.shape[-1]
        number = half.reshape(-1, *half.shape[-2:])[0].sum(-1)  # all sets have the same sizes
        size, probability = number.to(like), sample.inclusion_probability[: len(number)].to(like)
        weight = 2 * kernel_shap_weights(players).to(like)[number.to(like.device)] / probability
        centred = half.to(like) - (size / players)[:, None]
        weighted = weight[:, None] * centred
        inverse = torch.linalg.pinv(centred.mT @ weighted, rtol=RANK_TOLERANCE, hermitian=True)
        return cls(centred, weighted @ inverse, size, probability)

    def odd_part(
        self, worth: Float[Tensor, "*games count"], equal: Float[Tensor, "*games"]
    ) -> Float[Tensor, "*games pairs"]:
        """½ (v(z) − v(not z)) minus the equal split: the response of the regression."""
        coalition, complement = worth.chunk(2, -1)
        return (coalition - complement.flip(-1)) / 2 - equal[..., None] * (self.size - self.centred.shape[-1] / 2)

    @property
    def one_minus_leverage(self) -> Float[Tensor, "*sets pairs"]:
        """1 − h: the residual of a pair divided by its leave-one-out residual."""
        rest: Tensor = 1 - torch.linalg.vecdot(self.influence, self.centred).clamp(max=0.95)
        return rest if rest.ndim == 1 else rest[..., None, :]  # for all games of a set

    def standard_errors(self, loo_residuals: Float[Tensor, "*games pairs"]) -> Float[Tensor, "*games players"]:
        """√Var φ from leave-one-out residuals: a pair with inclusion probability p contributes 1 − p of its square.

        A leave-one-out residual contains the error of the regression too, hence the factor 1 − h (White's
        heteroscedasticity-consistent estimator, MacKinnon and White 1985).
        """
        if self.influence.shape[-2] < self.influence.shape[-1] and bool((self.inclusion_probability < 1).any()):
            return loo_residuals.new_full((*loo_residuals.shape[:-1], self.influence.shape[-1]), inf)
        squares = (1 - self.inclusion_probability) * self.one_minus_leverage * loo_residuals.square()
        return (squares @ self.influence.square()).sqrt()

    def degrees_of_freedom(self) -> Float[Tensor, " players"]:
        """Degrees of freedom of the χ² with the moments of each squared error; infinite if every pair is included.

        For Σ_i a_i e_i² with e = (I − H) ε, H = centred · influence, that is (Σ_i a_i (1 − h_i))² / Σ_ik a_i a_k R_ik
        R_ki with R = I − H (Bell and McCaffrey 2002). For many pairs only the terms R_ii are used.
        """
        diagonal: Tensor = 1 - torch.linalg.vecdot(self.influence, self.centred).clamp(max=0.95)
        weight = (1 - self.inclusion_probability)[:, None] * self.influence.square() / diagonal[:, None]
        mean = (weight * diagonal[:, None]).sum(0)
        twice = (weight * diagonal[:, None]).square().sum(0)
        if len(diagonal) <= MAX_PAIRS_WITH_CROSS_TERMS:
            hat = self.centred @ self.influence.mT
            twice = twice + (weight * ((hat * hat.mT).fill_diagonal_(0) @ weight)).sum(0)
        degrees: Tensor = torch.where(mean > 0, mean.square() / twice.clamp(min=1e-300), inf)
        return degrees


def kernel_shap(
    worth: CharacteristicFunction,
    players: int,
    budget: int,
    *,
    solver: KernelShapSolver = weighted_regression,
    generator: torch.Generator | None = None,
) -> ShapleyEstimate:
    """Shapley values and their standard errors from about `budget` coalitions; exact once it reaches 2^M − 2.

    `worth` returns v of many coalitions, for one game or for several games on the same coalitions.
    """
    ends = worth(torch.tensor([[False] * players, [True] * players]))
    sample = sample_coalitions(players, budget, generator=generator)
    inner = worth(sample.coalitions) if len(sample.coalitions) else ends[..., :0]
    found = solver(sample, inner, ends[..., 0], ends[..., 1])
    if players < 2:
        return found
    return ShapleyEstimate(
        found.values, small_sample_errors(found.errors, PairedRegression.build(sample, inner).degrees_of_freedom())
    )


def limiting_inverse(players: int) -> Float[Tensor, "players players"]:
    """(XᵀWX)⁻¹ → I + (I − J)/(M − 1) as the weight of the grand coalition grows (book eq. 17.13)."""
    if players < 2:
        raise ValueError(f"players must be at least two; got players={players}")
    eye = torch.eye(players, dtype=torch.float64)
    return eye + (eye - 1) / (players - 1)
