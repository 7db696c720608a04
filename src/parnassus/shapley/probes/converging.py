"""Estimates that converge, to touch: ask more, and see error bars close in on what is exact (book sec. 17.4)."""

from functools import partial
from typing import Annotated

import torch
from torch import Tensor

from parnassus.atlas.marks import probe
from parnassus.shapley.game import looked_up, members
from parnassus.shapley.kernel_shap import kernel_shap
from parnassus.shapley.orders import by_balanced_orders, by_orders
from parnassus.shapley.sampling import Estimator
from parnassus.shapley.strata import by_sizes
from parnassus.shapley.values import Estimate, shapley_values
from parnassus.touch import Answer, Bars, Curves, Numbers, Pick, Whole

WAYS: dict[str, Estimator] = {
    "random orders": by_orders,
    "mirrored orders": partial(by_orders, mirrored=True),
    "balanced orders": by_balanced_orders,
    "size by size": by_sizes,
    "Kernel SHAP": kernel_shap,
}
MOST, STEPS = 3_000, 6  # coalitions, and budgets on the way to it
NAUGHT = 1e-5  # an error that is not there, on a scale of factors


def _game(features: int) -> Tensor:
    """What a small network says when only these features are known."""
    source = torch.Generator().manual_seed(0)
    hidden, readout = torch.randn(features, 8, generator=source), torch.randn(8, generator=source)
    return ((members(features).float() @ hidden).tanh() @ readout).double()


def _least(way: str, features: int) -> int:
    """Coalitions from which a way can know its error."""
    if way == "size by size":
        return 2 * features * (1 + 2 * (features - 2))
    return 4 * features


@probe()
def estimate_converging(
    *,
    budget: Annotated[int, Whole("coalitions that may be asked", 10, MOST)] = 250,
    estimator: Annotated[int, Pick("way to ask", tuple(WAYS))] = 0,
    features: Annotated[int, Whole("features", 3, 12)] = 10,
    seed: Annotated[int, Whole("seed", 0, 99)] = 0,
) -> list[Answer]:
    """Shapley values from some coalitions, with their error bars, beside the exact ones (book sec. 17.4).

    Begin with random orders and change the seed: the bars jump, and most whiskers hold the stroke that is right. Four
    times the budget halves the whiskers. Then mirror the orders, balance them, and at last take Kernel SHAP, which asks
    nothing twice: once the budget has all coalitions, nothing is left to chance.
    """
    worth = _game(features)
    exact = shapley_values(worth - worth[0])
    name = list(WAYS)[estimator]
    least = _least(name, features)

    def asked(count: int) -> Estimate:
        source = torch.Generator().manual_seed(seed)
        return WAYS[name](looked_up(worth), features, max(least, count), generator=source)

    found = asked(budget)
    budgets = [round(least * (MOST / least) ** (step / STEPS)) for step in range(STEPS + 1)]
    line = [asked(count) for count in budgets]
    spent = [float(count) for count in budgets]
    missed = [float((each.values - exact).square().mean().sqrt().clamp(min=NAUGHT)) for each in line]
    said = [float(each.errors.square().mean().sqrt().clamp(min=NAUGHT)) for each in line]
    within = int(((found.values - exact).abs() <= 2 * found.errors + 1e-9).sum())
    return [
        Bars(
            "Estimates and what is exact",
            [f"feature {place + 1}" for place in range(features)],
            found.values,
            about="Whiskers are two standard errors either way; the stroke is the exact value.",
            errors=2 * found.errors,
            truth=exact,
        ),
        Curves(
            "The error, as the budget grows",
            {"missed": (spent, missed), "said": (spent, said)},
            x_label="coalitions that may be asked",
            y_label="root mean square error",
            log_y=True,
            marked=float(max(least, budget)),
        ),
        Numbers(
            "In numbers",
            {
                "budget, at least what the way needs": float(max(least, budget)),
                "coalitions that there are": float(2**features),
                "missed, root mean square": float((found.values - exact).square().mean().sqrt()),
                "said, root mean square": float(found.errors.square().mean().sqrt()),
                "within two standard errors": f"{within} of {features}",
                "parts sum to the whole but for": float((found.values.sum() - worth[-1] + worth[0]).abs()),
            },
        ),
    ]
