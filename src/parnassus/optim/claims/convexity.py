"""Claims about convex sets and functions, their minima and their expansions (Zhao sec. 12)."""

from math import e, pi, tanh

import torch
from torch import Tensor
from torch.func import grad, vmap

from parnassus.atlas import Correction, Evidence, all_of, at_least, at_most, claim, close, erratum, rate
from parnassus.optim.claims.convex_sets import cloud, escapes
from parnassus.optim.convex_sets import below_set
from parnassus.optim.convexity import (
    chord_gap,
    find_low_chord,
    least_curvature,
    linearisation_error,
    lower_nearby,
    on_line,
)
from parnassus.optim.gradient_descent import gradient_descent
from parnassus.optim.landscapes import flat_floor, plateau, sampled_wave, upturned_bell, wave
from parnassus.optim.problems import Function, smooth_problems


def saddle(x: Tensor) -> Tensor:
    """x₁² − x₂²."""
    return x[0].square() - x[1].square()


CONVEX: dict[str, Function] = {
    "x²": lambda x: x.square().sum(),
    "exp x": lambda x: x.exp().sum(),
    "log-sum-exp": lambda x: x.logsumexp(-1),
    "−log": lambda x: -(x + 4).log().sum(),  # on x > −4
    "log(1 + exp x)": lambda x: torch.nn.functional.softplus(x).sum(),
}
"""Smooth and convex, of vectors with entries between −2 and 2."""

CONVEX_WITH_KINKS: dict[str, Function] = {
    "|x|": lambda x: x.abs().sum(),
    "max(0, x)": lambda x: x.clamp(min=0).sum(),
    "length": lambda x: x.square().sum().sqrt(),
    "largest entry": lambda x: x.abs().amax(),
}

NOT_CONVEX: dict[str, Function] = {
    "cos πx": lambda x: (pi * x).cos().sum(),
    "sin x": lambda x: x.sin().sum(),
    "x³": lambda x: x.pow(3).sum(),
    "√|x|": lambda x: x.abs().sqrt().sum(),
    "−x²": lambda x: -x.square().sum(),
}


def sags(function: Function, points: Tensor) -> float:
    """1 if the checker finds a chord below the graph, else 0."""
    return float(find_low_chord(function, points, generator=torch.Generator().manual_seed(1)) is not None)


@claim("Z12.4")
def the_chords_of_convex_functions_are_above_the_graph() -> Evidence:
    """λf(x₁) + (1−λ)f(x₂) ≥ f(λx₁ + (1−λ)x₂) of nine convex functions, and not of five others (Zhao sec. 12)."""
    points = {dim: cloud(1_000, dim) for dim in (1, 3)}
    convex = {**CONVEX, **CONVEX_WITH_KINKS}
    return all_of(
        convex=close(torch.tensor([sags(f, p) for f in convex.values() for p in points.values()]), 0.0),
        others=close(torch.tensor([sags(f, p) for f in NOT_CONVEX.values() for p in points.values()]), 1.0),
        test_problems=close(
            torch.tensor([sags(p.loss, cloud(500, len(p.start))) for p in smooth_problems().values()]),
            torch.tensor([float(p.alpha < 0) for p in smooth_problems().values()]),
        ),
    )


@erratum("Z12.4", printed="λf(x₁) + (1−λ)f(x₂) > f(λx₁ + (1−λ)x₂)", right="≥; > only for x₁ ≠ x₂ and 0 < λ < 1")
def with_a_strict_sign_nothing_is_convex() -> Correction:
    """At λ = 0, λ = 1 or x₁ = x₂ both sides are equal, for every function (Zhao sec. 12)."""
    x1, x2 = cloud(300, 2), cloud(300, 2, seed=1)
    ends = torch.tensor([0.0, 1.0], dtype=torch.float64).repeat(150)
    at_ends = torch.cat([chord_gap(f, x1, x2, ends) for f in CONVEX.values()])
    inner = 0.1 + 0.8 * cloud(300, 1, reach=0.5, seed=2)[:, 0].add(0.5)
    inside = torch.cat([chord_gap(CONVEX[name], x1, x2, inner) for name in ("x²", "exp x", "−log")])
    return Correction(
        printed=at_least(at_ends, torch.finfo(torch.float64).tiny),
        corrected=all_of(
            equal_at_the_ends=close(at_ends, 0.0, atol=1e-13),
            strict_inside=at_least(inside, 1e-12),
            affine_never_strict=close(chord_gap(lambda x: 3 * x.sum() - 1, x1, x2, inner), 0.0, atol=1e-13),
        ),
    )


@claim("Z12.7")
def convex_descent_ends_at_one_value() -> Evidence:
    """Descent from 40 starts ends at one value on convex functions, at several on x cos πx (Zhao sec. 12)."""
    convex = {"x²": CONVEX["x²"], "log(1 + exp x) + x²/4": lambda x: CONVEX["log(1 + exp x)"](x) + x.square().sum() / 4}
    ends = {name: vmap(f)(_ends(f)) for name, f in convex.items()}
    resting = _ends(flat_floor)
    return all_of(
        **{name: close(values, values.min(), atol=1e-9) for name, values in ends.items()},
        many_minimisers=at_least(resting.max() - resting.min(), 1.5),
        of_one_value=close(vmap(flat_floor)(resting), 0.0, atol=0.05),
        wave_has_several=at_least(float(len((vmap(wave)(_ends(wave, rate=0.02)) * 1e3).round().unique())), 3.0),
    )


def _ends(function: Function, *, rate: float = 0.05) -> Tensor:
    starts = torch.linspace(-2.4, 2.4, 40, dtype=torch.float64)[:, None]
    return gradient_descent(lambda x: vmap(function)(x).sum(), starts, rate=rate, steps=400)[-1]


@claim("Z12.7")
def a_lower_point_pulls_down_points_at_hand() -> Evidence:
    """Wherever f(x₀) < f(x*), a point within any reach of x* is lower than x* too, if f is convex (Zhao sec. 12)."""
    high, low = torch.tensor([1.5, -1.0]).double(), torch.tensor([0.2, 0.1]).double()
    drops, distances, granted = [], [], []
    reaches = [1e-1, 1e-2, 1e-3]
    for function in (CONVEX["x²"], CONVEX_WITH_KINKS["|x|"], CONVEX_WITH_KINKS["length"]):
        for reach in reaches:
            nearby = lower_nearby(function, high, low, reach=reach)
            drops.append(float(function(high)) - nearby.granted)
            granted.append(nearby.granted - nearby.value)
            distances.append(float(torch.linalg.vector_norm(nearby.point - high)) / reach)
    bump = lower_nearby(NOT_CONVEX["cos πx"], torch.tensor([1.0]).double(), torch.tensor([3.1]).double(), reach=0.5)
    return all_of(
        lower=at_least(torch.tensor(drops), 1e-5),
        as_granted=at_least(torch.tensor(granted), -1e-12),
        within_reach=close(torch.tensor(distances), 1.0, rtol=1e-6),
        not_granted_without_convexity=at_least(bump.value - bump.granted, 0.1),
    )


@claim("Z12.8")
def below_sets_of_convex_functions_are_convex() -> Evidence:
    """{x : f(x) ≤ b} is convex at every level b of a convex f; √|x| has the same and is not convex (Zhao sec. 12)."""
    points = cloud(3_000, 2)
    found = []
    for function in (*CONVEX.values(), *CONVEX_WITH_KINKS.values()):
        levels = vmap(function)(points).quantile(torch.tensor([0.05, 0.3, 0.8]).double())
        found += [escapes(below_set(function, float(level)), points) for level in levels]
    line = cloud(2_000, 1)
    root = NOT_CONVEX["√|x|"]
    quasi = [escapes(below_set(root, level), line) for level in (0.2, 0.7, 1.2)]
    return all_of(
        convex=close(torch.tensor(found), 0.0),
        root_has_intervals=close(torch.tensor(quasi), 0.0),
        but_low_chords=close(sags(root, line), 1.0),
        cosine_has_gaps=close(escapes(below_set(NOT_CONVEX["cos πx"], 0.0), line), 1.0),
    )


@erratum("Z12.9", printed="convex below sets (Z12.8 once more)", right="f convex ⇔ ∇²f ⪰ 0 everywhere")
def second_derivatives_decide() -> Correction:
    """Under this heading the notes repeat the below-set theorem, which an upturned bell meets too (Zhao sec. 12)."""
    points, line = cloud(300, 3), cloud(400, 1)
    smooth = {**CONVEX, **{name: f for name, f in NOT_CONVEX.items() if name != "√|x|"}}
    by_hessian = torch.tensor([float(least_curvature(f, points).min() < -1e-9) for f in smooth.values()])
    by_chord = torch.tensor([sags(f, points) for f in smooth.values()])
    by_below_sets = max(escapes(below_set(upturned_bell, level), line) for level in (0.2, 0.5, 0.9))
    return Correction(
        printed=close(by_below_sets, sags(upturned_bell, line)),
        corrected=all_of(
            tests_agree=close(by_hessian, by_chord),
            bell_curves_down=at_most(least_curvature(upturned_bell, line).min(), -1.0),
            bowl_has_hessian_one=close(least_curvature(lambda x: x.square().sum() / 2, points), 1.0, atol=1e-14),
        ),
    )


@claim("Z12.9")
def a_function_is_convex_if_it_is_on_every_line() -> Evidence:
    """g(z) = f(zx + (1−z)y) has g″ ≥ 0 on random lines for convex f; others fail on some (Zhao sec. 12)."""
    ends = cloud(60, 3)
    z = torch.linspace(0, 1, 21, dtype=torch.float64)[:, None]
    least = {
        name: torch.stack(
            [least_curvature(on_line(f, x, y), z).min() for x, y in zip(ends[:30], ends[30:], strict=True)]
        )
        for name, f in {**CONVEX, "saddle": saddle, "x³": NOT_CONVEX["x³"]}.items()
    }
    step = 1e-4
    x = torch.linspace(-2, 2, 41, dtype=torch.float64)
    second = (torch.exp(x + step) - 2 * torch.exp(x) + torch.exp(x - step)) / step**2
    return all_of(
        convex=at_least(torch.stack([least[name] for name in CONVEX]), -1e-12),
        others=at_most(torch.stack([least[name].min() for name in ("saddle", "x³")]), -0.1),
        by_differences=at_least(second, 0.0),
        which_agree=close(second, least_curvature(CONVEX["exp x"], x[:, None]), rtol=1e-4),
    )


@claim("Z12.10")
def the_tangent_errs_by_the_square_of_the_step() -> Evidence:
    """f(x + ε) − f(x) − εf′(x) is about ½f″(x)ε²: for exp at 1 it is ε² e/2 (Zhao sec. 12)."""
    one = torch.ones(1, dtype=torch.float64)
    steps = torch.tensor([0.1, 0.01, 0.001], dtype=torch.float64)
    error = linearisation_error(CONVEX["exp x"], one, steps[:, None])
    return all_of(
        over_the_square=close(error / steps.square(), torch.tensor([1.406, 1.364, 1.3596]), atol=6e-4),
        limit=close(error[-1] / steps[-1] ** 2, e / 2, rtol=1e-3),
        exponent=rate(steps, error, 2.0, atol=0.02),
    )


@claim("Z12.10")
def a_step_against_the_slope_goes_down_if_it_is_small() -> Evidence:
    """x² from 10, ten steps: η = 0.2 → 0.0605, 0.05 → 3.487, 1.1 → 61.9; x₁² + 2x₂² likewise (Zhao sec. 12)."""
    ten = torch.tensor([10.0], dtype=torch.float64)
    ends = torch.cat([gradient_descent(CONVEX["x²"], ten, rate=eta, steps=10)[-1] for eta in (0.2, 0.05, 1.1)])
    plane = gradient_descent(
        lambda x: x[0] ** 2 + 2 * x[1] ** 2, torch.tensor([-5.0, -2.0]).double(), rate=0.1, steps=20
    )[-1]
    return all_of(
        line=close(ends, torch.tensor([0.0605, 3.487, 61.9]), rtol=1e-3),
        plane=close(plane, torch.tensor([-0.0576, -7.31e-5]), rtol=2e-3),
    )


@claim("Z12.1")
def a_sample_moves_the_minimum_and_slopes_can_vanish() -> Evidence:
    """Risk and its sample are least apart; a false minimum, a saddle, a plateau hold descent (Zhao sec. 12)."""
    x = torch.linspace(0.5, 1.5, 10_001, dtype=torch.float64)[:, None]
    wide = torch.linspace(-1, 2, 3_001, dtype=torch.float64)[:, None]
    risk, sampled = vmap(wave)(x), vmap(sampled_wave)(x)
    held = gradient_descent(wave, torch.tensor([-0.6]).double(), rate=0.02, steps=300)[-1]
    zero = torch.zeros(2, dtype=torch.float64)
    slope = grad(plateau)(torch.tensor([4.0]).double())
    return all_of(
        apart=at_least((x[risk.argmin()] - x[sampled.argmin()]).abs(), 0.05),
        sample_promises_too_much=at_most(sampled.min(), risk.min()),
        held_above=at_least(wave(held) - vmap(wave)(wide).min(), 0.5),
        without_slope=close(grad(wave)(held), 0.0, atol=1e-6),
        saddle_has_no_slope=close(grad(saddle)(zero), 0.0),
        but_goes_down=at_most(least_curvature(saddle, zero[None]), -1.0),
        cubic_too=close(grad(NOT_CONVEX["x³"])(zero[:1]), 0.0),
        slope_of_tanh_at_4=close(slope, 1 - tanh(4.0) ** 2, rtol=1e-12),
        is_tiny=close(slope, 0.0013, atol=5e-5),
    )
