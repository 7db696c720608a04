"""Claims about Kernel SHAP: why a weighted regression gives Shapley values, and how fast (book sec. 17.4)."""

import torch
from torch import Tensor

from parnassus.atlas import Correction, Evidence, all_of, at_most, claim, close, erratum
from parnassus.shapley.coalitions import every_coalition, shapley_kernel
from parnassus.shapley.game import looked_up, members
from parnassus.shapley.kernel_shap import kernel_shap, limiting_inverse, regressed
from parnassus.shapley.orders import by_orders
from parnassus.shapley.values import shapley_values


def random_game(players: int, seed: int = 0) -> Tensor:
    return torch.randn(2**players, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def design(players: int) -> tuple[Tensor, Tensor]:
    """Rows z of all coalitions but the empty and the full one, and their weights π."""
    rows = members(players)[1:-1]
    return rows.double(), shapley_kernel(players)[rows.sum(1)]


def heavy_fit(worth: Tensor, heavy: float) -> Tensor:
    """φ = (XᵀWX)⁻¹XᵀW(y − v(∅)) over all coalitions, the full one with a large weight instead of a constraint."""
    players = len(worth).bit_length() - 1
    rows, weight = design(players)
    x = torch.cat([rows, torch.ones(1, players, dtype=torch.float64)])
    w = torch.cat([weight, torch.tensor([heavy], dtype=torch.float64)])
    fitted: Tensor = torch.linalg.solve(x.mT @ (w[:, None] * x), x.mT @ (w * (worth[1:] - worth[0])))
    return fitted


@claim("B17.4-1")
def a_weighted_regression_finds_shapley_values() -> Evidence:
    """With both ends as constraints or of large weight it is exact; inner rows alone shift all φ (book sec. 17.4)."""
    worth = random_game(5)
    exact = shapley_values(worth - worth[0])
    constrained = regressed(every_coalition(5), worth[1:-1], worth[0], worth[-1]).values
    rows, weight = design(5)
    alone = torch.linalg.solve(rows.mT @ (weight[:, None] * rows), rows.mT @ (weight * (worth[1:-1] - worth[0])))
    shift = alone - exact
    return all_of(
        constrained=close(constrained, exact, atol=1e-12),
        large_weight=close(heavy_fit(worth, 1e6), exact, atol=1e-5),
        shift_is_common=close(shift, shift.mean().expand(5), atol=1e-12),
    )


@claim("B17.4-2")
def the_inverse_is_a_limit() -> Evidence:
    """(XᵀWX)⁻¹ → I + (I − J)/(M − 1) like 1/weight; with it the regression is Shapley's formula (book eq. 17.13)."""
    players = 5
    rows, weight = design(players)
    inner = rows.mT @ (weight[:, None] * rows)
    ones = torch.ones(players, players, dtype=torch.float64)
    off = [
        (torch.linalg.inv(inner + heavy * ones) - limiting_inverse(players)).abs().max() for heavy in (1e2, 1e4, 1e6)
    ]
    harmonic = sum(1 / number for number in range(1, players))
    worth = random_game(players, seed=1)
    closed = limiting_inverse(players) @ (rows.mT @ (weight * (worth[1:-1] - worth[0])))
    return all_of(
        hundredfold=close(off[0] / off[1], 100.0, rtol=0.02),
        and_again=close(off[1] / off[2], 100.0, rtol=0.02),
        diagonal=close(inner.diagonal(), ((players - 1) / players * harmonic) * ones[0], atol=1e-12),
        beside_it=close(inner[0, 1], (players - 1) / players * (harmonic - 1), atol=1e-12),
        closed_form=close(closed + (worth[-1] - worth[0]) / players, shapley_values(worth - worth[0]), atol=1e-12),
    )


@claim("B17.4-3")
def regression_needs_fewer_coalitions_than_orders() -> Evidence:
    """At equal budgets the regression errs less than sampled orders, and knows by how much (book sec. 17.4)."""
    players, budget = 10, 240
    generator = torch.Generator().manual_seed(0)
    hidden = torch.randn(players, 16, generator=generator, dtype=torch.float64)
    readout = torch.randn(16, generator=generator, dtype=torch.float64)
    worth = (members(players).double() @ hidden).tanh() @ readout
    exact = shapley_values(worth - worth[0])
    found = [kernel_shap(looked_up(worth), players, budget, generator=generator) for _ in range(60)]
    orders = [
        by_orders(looked_up(worth), players, budget, mirrored=True, generator=generator).values - exact
        for _ in range(60)
    ]
    missed = torch.stack([each.values - exact for each in found]).square().mean().sqrt()
    said = torch.stack([each.errors for each in found]).square().mean().sqrt()
    return all_of(
        less=at_most(missed / torch.stack(orders).square().mean().sqrt(), 0.5),
        error_is_known=close(missed / said, 1.0, rtol=0.2),
        always_efficient=close(found[0].values.sum(), worth[-1] - worth[0], atol=1e-12),
    )


@erratum(
    "B17.4-1", "B17.4-2", printed="(XWX)⁻¹, an approximation", right="(XᵀWX)⁻¹, whose limit needs the efficiency term"
)
def the_limit_alone_misses_a_term() -> Correction:
    """The limiting inverse applied to the inner rows must be helped by (v(all) − v(∅))/M (book sec. 17.4)."""
    worth = random_game(5, seed=2)
    rows, weight = design(5)
    limit = limiting_inverse(5) @ (rows.mT @ (weight * (worth[1:-1] - worth[0])))
    exact = shapley_values(worth - worth[0])
    return Correction(
        printed=close(limit, exact, atol=1e-3),
        corrected=close(limit + (worth[-1] - worth[0]) / 5, exact, atol=1e-12),
    )
