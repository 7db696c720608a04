"""Claims about the game of two networks (Diehl sec. 5.2)."""

from math import log

import torch
from torch import Tensor, nn
from torch.func import grad

from parnassus.adversarial.gan import (
    discriminator_loss,
    minimax_loss,
    non_saturating_loss,
    optimal_discriminator,
)
from parnassus.atlas import Evidence, all_of, at_least, at_most, claim, close
from parnassus.probability import jensen_shannon, normal_density
from parnassus.probability.claims.distances import random_distributions


def value(judge: Tensor, p: Tensor, q: Tensor) -> Tensor:
    """E_p log D + E_q log(1 − D) for laws p and q on finitely many points."""
    return (p * judge.log() + q * (1 - judge).log()).sum(-1)


@claim("D5.2.3")
def the_best_judge_is_the_share_of_the_data() -> Evidence:
    """D⋆ = p/(p + q) has the largest value, 2 JS(p, q) − log 4; every other judge has less (Diehl sec. 5.2)."""
    p, q = random_distributions(50, 6), random_distributions(50, 6, seed=1)
    best = optimal_discriminator(p, q)
    source = torch.Generator().manual_seed(2)
    others = torch.rand(1_000, 50, 6, generator=source, dtype=torch.float64)
    near = (best.logit() + 0.01 * torch.randn(1_000, 50, 6, generator=source, dtype=torch.float64)).sigmoid()
    return all_of(
        worth=close(value(best, p, q), 2 * jensen_shannon(p, q) - log(4), atol=1e-12),
        others_have_less=at_most(value(others, p, q), value(best, p, q)),
        near_ones_too=at_most(value(near, p, q), value(best, p, q)),
    )


@claim("D5.2.3")
def forgeries_like_the_data_leave_the_judge_a_coin() -> Evidence:
    """For q = p the best judge says ½ and the game is worth −log 4; any other q is worth more (Diehl sec. 5.2)."""
    p, q = random_distributions(200, 5), random_distributions(200, 5, seed=1)
    even = optimal_discriminator(p, p)
    return all_of(
        coin=close(even, 0.5, atol=1e-15),
        worth=close(value(even, p, p), -log(4), atol=1e-12),
        others_are_worth_more=at_least(value(optimal_discriminator(p, q), p, q), -log(4) + 1e-4),
    )


@claim("D5.2.3")
def a_sure_judge_stops_the_minimax_forger() -> Evidence:
    """Where D = sigmoid(−10), the slope of log(1 − D) is 4.5·10⁻⁵ and that of −log D nearly 1 (Diehl sec. 5.2)."""
    sure = torch.tensor([-10.0], dtype=torch.float64)
    even = torch.zeros(1, dtype=torch.float64)
    return all_of(
        minimax=close(grad(minimax_loss)(sure), -sure.sigmoid(), rtol=1e-9),
        tiny=at_most(grad(minimax_loss)(sure).abs(), 1e-4),
        non_saturating=close(grad(non_saturating_loss)(sure), -1.0, atol=1e-4),
        alike_where_the_judge_is_not_sure=close(grad(minimax_loss)(even), grad(non_saturating_loss)(even)),
    )


@claim("D5.2.3")
def a_trained_judge_finds_the_ratio_of_densities() -> Evidence:
    """Trained on draws of N(0, 1) and N(1, ¼) alone, a quadratic judge comes to p/(p + q) (Diehl sec. 5.2)."""
    torch.manual_seed(0)
    real, fake = torch.randn(40_000, 1, dtype=torch.float64), 1 + torch.randn(40_000, 1, dtype=torch.float64) / 2
    judge = nn.Linear(2, 1, dtype=torch.float64)
    optimizer = torch.optim.LBFGS(judge.parameters(), max_iter=60, line_search_fn="strong_wolfe")

    def logits(x: Tensor) -> Tensor:
        judged: Tensor = judge(torch.cat([x, x.square()], 1))
        return judged[:, 0]

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss = discriminator_loss(logits(real), logits(fake))
        loss.backward()
        return loss

    optimizer.step(closure)
    x = torch.linspace(-3, 3, 61, dtype=torch.float64)
    best = optimal_discriminator(normal_density(x, mean=0.0, variance=1.0), normal_density(x, mean=1.0, variance=0.25))
    return close(logits(x[:, None]).sigmoid(), best, atol=0.03)


@claim("D5.2.3")
def a_forger_against_the_best_judge_finds_the_law() -> Evidence:
    """G(z) = az + b, each step against D⋆ of the moment, goes from N(0, 1) to the data's N(3, ¼) (Diehl sec. 5.2)."""
    theta = torch.tensor([1.0, 0.0], dtype=torch.float64)  # a and b
    z = torch.distributions.Normal(0.0, 1.0).icdf((torch.arange(2_000, dtype=torch.float64) + 0.5) / 2_000)

    def forger_loss(theta: Tensor, judged_by: Tensor) -> Tensor:
        forged = theta[0] * z + theta[1]
        data = normal_density(forged, mean=3.0, variance=0.25)
        forger = normal_density(forged, mean=judged_by[1], variance=judged_by[0].square())
        return non_saturating_loss((data + 1e-300).log() - (forger + 1e-300).log())  # the logit of D⋆

    for _ in range(400):
        theta = theta - 0.05 * grad(forger_loss)(theta, theta.detach())
    return all_of(mean=close(theta[1], 3.0, atol=0.01), deviation=close(theta[0].abs(), 0.5, atol=0.01))
