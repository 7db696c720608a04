"""Claims about Kernel SHAP made quick: fewer questions, cheaper ones, and when to stop asking (book sec. 17.4)."""

from functools import cache

import torch
from torch import Tensor, nn

from parnassus.atlas import Evidence, all_of, at_least, at_most, claim, close
from parnassus.shapley.adjustment import adjusted
from parnassus.shapley.attribution import Attribution, explain, explain_exactly
from parnassus.shapley.convergence import explain_until
from parnassus.shapley.first_layer import LinearFirst, interventional
from parnassus.shapley.game import members
from parnassus.shapley.kernel_shap import regressed
from parnassus.shapley.masking import Interventional, OneGame
from parnassus.shapley.model import as_model
from parnassus.shapley.stopping import largest_error

FEATURES, SEEDS = 10, 12


def normals(*shape: int, seed: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@cache
def explained() -> tuple[LinearFirst, Tensor, Tensor]:
    """A network of two hidden layers before a background, rows, and their exact values."""
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(FEATURES, 24), nn.Tanh(), nn.Linear(24, 24), nn.Tanh(), nn.Linear(24, 2)).double()
    with torch.no_grad():
        for weight in network.parameters():
            weight.mul_(2.5 if weight.ndim > 1 else 1.0)  # as curved as networks that have learned
    value = interventional(network, normals(20, FEATURES, seed=1))
    if not isinstance(value, LinearFirst):
        raise TypeError("a sequence that begins with a linear layer must be shared there")
    x = normals(5, FEATURES, seed=2)
    return value, x, explain_exactly(value, x).values


def root_mean_square(values: Tensor) -> Tensor:
    return values.square().mean().sqrt()


def missed(found: list[Attribution], exact: Tensor) -> tuple[Tensor, Tensor]:
    """The errors that were made, as a root mean square, and those that were said."""
    made = torch.stack([each.values - exact for each in found])
    return root_mean_square(made), root_mean_square(torch.stack([each.errors for each in found]))


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@claim("B17.3-3", "B17.4-1")
def a_linear_first_layer_is_shared_without_loss() -> Evidence:
    """W h_x(S) + c = P_x(S) + Q_b(S): worths of mixed rows without mixing rows, to rounding (book sec. 17.3)."""
    value, x, _ = explained()
    network = nn.Sequential(value.first, value.rest)
    mixed = Interventional(as_model(network), value.background)
    torch.manual_seed(1)
    in_float = nn.Sequential(nn.Linear(FEATURES, 24), nn.Tanh(), nn.Linear(24, 2))
    short = value.background.float()
    return all_of(
        double=close(value(x, members(FEATURES)), mixed(x, members(FEATURES)), atol=1e-12),
        single=close(
            interventional(in_float, short)(x.float(), members(FEATURES)),
            Interventional(as_model(in_float), short)(x.float(), members(FEATURES)),
            atol=1e-6,
        ),
    )


@claim("B17.4-3")
def errors_of_background_rows_cancel() -> Evidence:
    """If each background row has coalitions of its own, as many calls of the model err less (book sec. 17.4)."""
    value, x, exact = explained()
    errors = {
        name: missed([explain(asked, x, 100, solve=regressed, generator=seeded(seed)) for seed in range(SEEDS)], exact)
        for name, asked in (("same", OneGame(value)), ("own", value))
    }
    return all_of(
        less=at_most(errors["own"][0] / errors["same"][0], 0.7),
        error_is_known=close(errors["own"][0] / errors["own"][1], 1.0, rtol=0.15),
    )


@claim("B17.4-1", "B17.4-3")
def a_game_that_is_learned_needs_fewer_questions() -> Evidence:
    """Less what a cheap model of the game explains, as many coalitions err less, and parts add up (book sec. 17.4)."""
    value, x, exact = explained()
    errors = {
        solve: missed([explain(value, x, 200, solve=solve, generator=seeded(seed)) for seed in range(SEEDS)], exact)
        for solve in (regressed, adjusted)
    }
    found = explain(value, x, 200, generator=seeded(0))
    return all_of(
        less=at_most(errors[adjusted][0] / errors[regressed][0], 0.75),
        error_is_known=close(errors[adjusted][0] / errors[adjusted][1], 1.0, rtol=0.15),
        additive=close(found.prediction, value(x, members(FEATURES)[-1:])[..., 0], atol=1e-10),
    )


@claim("B17.4-1", "B17.4-3")
def asking_ends_when_the_error_is_as_wished() -> Evidence:
    """No standard error is above the wish, and ±1 and ±2 of them hold the truth as often as they should."""
    value, x, exact = explained()
    found = [explain_until(value, x, 0.02, most=2**FEATURES, generator=seeded(seed)) for seed in range(SEEDS)]
    shares = torch.stack([(each.values - exact).abs() / each.errors for each in found])
    coarse = explain_until(value, x, 0.08, most=2**FEATURES, generator=seeded(0))
    return all_of(
        as_wished=at_most(max(largest_error(each) for each in found), 0.02),
        within_one=close((shares < 1).double().mean(), 0.683, atol=0.06),
        within_two=close((shares < 2).double().mean(), 0.954, atol=0.03),
        a_quarter_costs_more=at_least(found[0].coalitions / coarse.coalitions, 1.5),
    )
