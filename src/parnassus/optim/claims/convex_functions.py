"""Claims about convex functions, their minima and linearisations (Zhao sec. 12)."""

from math import e, pi, tanh

import torch
from torch import Tensor
from torch.func import grad, vmap

from parnassus.atlas import Correction, Evidence, all_of, claim, close, erratum, greater_equal, less_equal, rate
from parnassus.optim.claims.convex_sets import is_refuted, sample_cube
from parnassus.optim.convexity.convex_functions import (
    chord_gap,
    find_violating_chord,
    linearisation_error,
    min_hessian_eigenvalue,
    nearby_lower_point,
    restrict_to_line,
)
from parnassus.optim.convexity.convex_sets import sublevel_set
from parnassus.optim.landscapes.problems import Function, smooth_problems
from parnassus.optim.landscapes.scalar_functions import (
    cosine_risk,
    empirical_cosine_risk,
    flat_minimum,
    inverted_gaussian,
    tanh_plateau,
)
from parnassus.optim.optimisers.gradient_descent import gradient_descent


def saddle(x: Tensor) -> Tensor:
    """x₁² − x₂²."""
    return x[0].square() - x[1].square()


SMOOTH_CONVEX: dict[str, Function] = {
    "x²": lambda x: x.square().sum(),
    "exp x": lambda x: x.exp().sum(),
    "log-sum-exp": lambda x: x.logsumexp(-1),
    "−log": lambda x: -(x + 4).log().sum(),  # on x > −4
    "log(1 + exp x)": lambda x: torch.nn.functional.softplus(x).sum(),
}
"""Smooth and convex, of vectors with entries between −2 and 2."""

NONSMOOTH_CONVEX: dict[str, Function] = {
    "|x|": lambda x: x.abs().sum(),
    "max(0, x)": lambda x: x.clamp(min=0).sum(),
    "length": lambda x: x.square().sum().sqrt(),
    "largest entry": lambda x: x.abs().amax(),
}

NONCONVEX: dict[str, Function] = {
    "cos πx": lambda x: (pi * x).cos().sum(),
    "sin x": lambda x: x.sin().sum(),
    "x³": lambda x: x.pow(3).sum(),
    "√|x|": lambda x: x.abs().sqrt().sum(),
    "−x²": lambda x: -x.square().sum(),
}


def has_chord_below_graph(function: Function, points: Tensor) -> float:
    """1 if the test finds a chord below the graph, else 0."""
    return float(find_violating_chord(function, points, generator=torch.Generator().manual_seed(1)) is not None)


@claim("Z12.4")
def chords_of_convex_functions_lie_above_the_graph() -> Evidence:
    """λf(x₁) + (1−λ)f(x₂) ≥ f(λx₁ + (1−λ)x₂) for nine convex functions, but not for five others (Zhao sec. 12)."""
    points = {dim: sample_cube(1_000, dim) for dim in (1, 3)}
    convex = {**SMOOTH_CONVEX, **NONSMOOTH_CONVEX}
    return all_of(
        convex=close(
            torch.tensor([has_chord_below_graph(f, p) for f in convex.values() for p in points.values()]), 0.0
        ),
        nonconvex=close(
            torch.tensor([has_chord_below_graph(f, p) for f in NONCONVEX.values() for p in points.values()]), 1.0
        ),
        test_problems=close(
            torch.tensor(
                [has_chord_below_graph(p.loss, sample_cube(500, len(p.start))) for p in smooth_problems().values()]
            ),
            torch.tensor([float(p.alpha < 0) for p in smooth_problems().values()]),
        ),
    )


@erratum(
    "Z12.4",
    printed="λf(x₁) + (1−λ)f(x₂) > f(λx₁ + (1−λ)x₂)",
    right="≥; > requires x₁ ≠ x₂, 0 < λ < 1 and strict convexity",
)
def strict_inequality_excludes_every_function() -> Correction:
    """At λ = 0, λ = 1 or x₁ = x₂ both sides are equal, for every function (Zhao sec. 12)."""
    x1, x2 = sample_cube(300, 2), sample_cube(300, 2, seed=1)
    ends = torch.tensor([0.0, 1.0], dtype=torch.float64).repeat(150)
    at_ends = torch.cat([chord_gap(f, x1, x2, ends) for f in SMOOTH_CONVEX.values()])
    inner = 0.1 + 0.8 * sample_cube(300, 1, half_width=0.5, seed=2)[:, 0].add(0.5)
    inside = torch.cat([chord_gap(SMOOTH_CONVEX[name], x1, x2, inner) for name in ("x²", "exp x", "−log")])
    return Correction(
        printed=greater_equal(at_ends, torch.finfo(torch.float64).tiny),
        corrected=all_of(
            equality_at_the_ends=close(at_ends, 0.0, atol=1e-13),
            strict_in_the_interior=greater_equal(inside, 1e-12),
            equality_for_affine_functions=close(chord_gap(lambda x: 3 * x.sum() - 1, x1, x2, inner), 0.0, atol=1e-13),
        ),
    )


@claim("Z12.7")
def gradient_descent_on_convex_functions_reaches_one_value() -> Evidence:
    """From 40 starts gradient descent finds one value on convex functions, several on x cos πx (Zhao sec. 12)."""
    convex = {
        "x²": SMOOTH_CONVEX["x²"],
        "log(1 + exp x) + x²/4": lambda x: SMOOTH_CONVEX["log(1 + exp x)"](x) + x.square().sum() / 4,
    }
    final_values = {name: vmap(f)(final_points(f)) for name, f in convex.items()}
    minimisers = final_points(flat_minimum)
    return all_of(
        **{name: close(values, values.min(), atol=1e-9) for name, values in final_values.items()},
        many_minimisers=greater_equal(minimisers.max() - minimisers.min(), 1.5),
        one_minimum=close(vmap(flat_minimum)(minimisers), 0.0, atol=0.05),
        several_values_without_convexity=greater_equal(
            float(len((vmap(cosine_risk)(final_points(cosine_risk, rate=0.02)) * 1e3).round().unique())), 3.0
        ),
    )


def final_points(function: Function, *, rate: float = 0.05) -> Tensor:
    starts = torch.linspace(-2.4, 2.4, 40, dtype=torch.float64)[:, None]
    return gradient_descent(lambda x: vmap(function)(x).sum(), starts, learning_rate=rate, steps=400)[-1]


@claim("Z12.7")
def local_minima_of_convex_functions_are_global() -> Evidence:
    """If f is convex and f(x₀) < f(x*), every neighbourhood of x* contains a lower point (Zhao sec. 12)."""
    high, low = torch.tensor([1.5, -1.0]).double(), torch.tensor([0.2, 0.1]).double()
    decreases, distances, margins = [], [], []
    radii = [1e-1, 1e-2, 1e-3]
    for function in (SMOOTH_CONVEX["x²"], NONSMOOTH_CONVEX["|x|"], NONSMOOTH_CONVEX["length"]):
        for radius in radii:
            nearby = nearby_lower_point(function, high, low, radius=radius)
            decreases.append(float(function(high)) - nearby.bound)
            margins.append(nearby.bound - nearby.value)
            distances.append(float(torch.linalg.vector_norm(nearby.point - high)) / radius)
    bump = nearby_lower_point(
        NONCONVEX["cos πx"], torch.tensor([1.0]).double(), torch.tensor([3.1]).double(), radius=0.5
    )
    return all_of(
        lower=greater_equal(torch.tensor(decreases), 1e-5),
        below_the_chord=greater_equal(torch.tensor(margins), -1e-12),
        within_the_radius=close(torch.tensor(distances), 1.0, rtol=1e-6),
        not_without_convexity=greater_equal(bump.value - bump.bound, 0.1),
    )


@claim("Z12.8")
def sublevel_sets_of_convex_functions_are_convex() -> Evidence:
    """{x : f(x) ≤ b} is convex for every b if f is; the converse fails for √|x| (Zhao sec. 12)."""
    points = sample_cube(3_000, 2)
    refuted = []
    for function in (*SMOOTH_CONVEX.values(), *NONSMOOTH_CONVEX.values()):
        levels = vmap(function)(points).quantile(torch.tensor([0.05, 0.3, 0.8]).double())
        refuted += [is_refuted(sublevel_set(function, float(level)), points) for level in levels]
    line = sample_cube(2_000, 1)
    root = NONCONVEX["√|x|"]
    quasi = [is_refuted(sublevel_set(root, level), line) for level in (0.2, 0.7, 1.2)]
    return all_of(
        convex=close(torch.tensor(refuted), 0.0),
        root_has_convex_sublevel_sets=close(torch.tensor(quasi), 0.0),
        root_is_not_convex=close(has_chord_below_graph(root, line), 1.0),
        cosine_has_nonconvex_sublevel_sets=close(is_refuted(sublevel_set(NONCONVEX["cos πx"], 0.0), line), 1.0),
    )


@erratum("Z12.9", printed="convex sublevel sets (Z12.8 repeated)", right="f convex ⇔ ∇²f ⪰ 0 everywhere")
def convexity_is_a_positive_semidefinite_hessian() -> Correction:
    """The notes repeat the sublevel-set theorem, which also holds for an inverted Gaussian (Zhao sec. 12)."""
    points, line = sample_cube(300, 3), sample_cube(400, 1)
    smooth = {**SMOOTH_CONVEX, **{name: f for name, f in NONCONVEX.items() if name != "√|x|"}}
    by_hessian = torch.tensor([float(min_hessian_eigenvalue(f, points).min() < -1e-9) for f in smooth.values()])
    by_chord = torch.tensor([has_chord_below_graph(f, points) for f in smooth.values()])
    by_sublevel_sets = max(is_refuted(sublevel_set(inverted_gaussian, level), line) for level in (0.2, 0.5, 0.9))
    return Correction(
        printed=close(by_sublevel_sets, has_chord_below_graph(inverted_gaussian, line)),
        corrected=all_of(
            tests_agree=close(by_hessian, by_chord),
            inverted_gaussian_has_negative_curvature=less_equal(
                min_hessian_eigenvalue(inverted_gaussian, line).min(), -1.0
            ),
            quadratic_has_unit_hessian=close(
                min_hessian_eigenvalue(lambda x: x.square().sum() / 2, points), 1.0, atol=1e-14
            ),
        ),
    )


@claim("Z12.9")
def convexity_holds_on_every_line() -> Evidence:
    """g(z) = f(zx + (1−z)y) has g″ ≥ 0 on all random lines for convex f, not for others (Zhao sec. 12)."""
    ends = sample_cube(60, 3)
    z = torch.linspace(0, 1, 21, dtype=torch.float64)[:, None]
    min_curvatures = {
        name: torch.stack(
            [
                min_hessian_eigenvalue(restrict_to_line(f, x, y), z).min()
                for x, y in zip(ends[:30], ends[30:], strict=True)
            ]
        )
        for name, f in {**SMOOTH_CONVEX, "saddle": saddle, "x³": NONCONVEX["x³"]}.items()
    }
    step = 1e-4
    x = torch.linspace(-2, 2, 41, dtype=torch.float64)
    second = (torch.exp(x + step) - 2 * torch.exp(x) + torch.exp(x - step)) / step**2
    return all_of(
        convex=greater_equal(torch.stack([min_curvatures[name] for name in SMOOTH_CONVEX]), -1e-12),
        nonconvex=less_equal(torch.stack([min_curvatures[name].min() for name in ("saddle", "x³")]), -0.1),
        finite_differences=greater_equal(second, 0.0),
        match_the_hessian=close(second, min_hessian_eigenvalue(SMOOTH_CONVEX["exp x"], x[:, None]), rtol=1e-4),
    )


@claim("Z12.10")
def linearisation_error_is_quadratic_in_the_step() -> Evidence:
    """f(x + ε) − f(x) − εf′(x) ≈ ½f″(x)ε²: for exp at 1 it is ε² e/2 (Zhao sec. 12)."""
    one = torch.ones(1, dtype=torch.float64)
    steps = torch.tensor([0.1, 0.01, 0.001], dtype=torch.float64)
    error = linearisation_error(SMOOTH_CONVEX["exp x"], one, steps[:, None])
    return all_of(
        over_squared_step=close(error / steps.square(), torch.tensor([1.406, 1.364, 1.3596]), atol=6e-4),
        limit=close(error[-1] / steps[-1] ** 2, e / 2, rtol=1e-3),
        exponent=rate(steps, error, 2.0, atol=0.02),
    )


@claim("Z12.10")
def small_gradient_steps_decrease_the_function() -> Evidence:
    """x² from 10, ten steps: η = 0.2 → 0.0605, 0.05 → 3.487, 1.1 → 61.9; similarly x₁² + 2x₂² (Zhao sec. 12)."""
    ten = torch.tensor([10.0], dtype=torch.float64)
    ends = torch.cat(
        [gradient_descent(SMOOTH_CONVEX["x²"], ten, learning_rate=eta, steps=10)[-1] for eta in (0.2, 0.05, 1.1)]
    )
    plane = gradient_descent(
        lambda x: x[0] ** 2 + 2 * x[1] ** 2, torch.tensor([-5.0, -2.0]).double(), learning_rate=0.1, steps=20
    )[-1]
    return all_of(
        one_dimension=close(ends, torch.tensor([0.0605, 3.487, 61.9]), rtol=1e-3),
        two_dimensions=close(plane, torch.tensor([-0.0576, -7.31e-5]), rtol=2e-3),
    )


@claim("Z12.1")
def sampling_shifts_the_minimum_and_gradients_can_vanish() -> Evidence:
    """Risk and empirical risk have different minimisers; descent stops at stationary points (Zhao sec. 12)."""
    x = torch.linspace(0.5, 1.5, 10_001, dtype=torch.float64)[:, None]
    grid = torch.linspace(-1, 2, 3_001, dtype=torch.float64)[:, None]
    risk, empirical = vmap(cosine_risk)(x), vmap(empirical_cosine_risk)(x)
    stuck = gradient_descent(cosine_risk, torch.tensor([-0.6]).double(), learning_rate=0.02, steps=300)[-1]
    zero = torch.zeros(2, dtype=torch.float64)
    gradient = grad(tanh_plateau)(torch.tensor([4.0]).double())
    return all_of(
        minimisers_differ=greater_equal((x[risk.argmin()] - x[empirical.argmin()]).abs(), 0.05),
        empirical_minimum_is_lower=less_equal(empirical.min(), risk.min()),
        local_minimum_is_higher=greater_equal(cosine_risk(stuck) - vmap(cosine_risk)(grid).min(), 0.5),
        local_minimum_is_stationary=close(grad(cosine_risk)(stuck), 0.0, atol=1e-6),
        saddle_is_stationary=close(grad(saddle)(zero), 0.0),
        saddle_has_negative_curvature=less_equal(min_hessian_eigenvalue(saddle, zero[None]), -1.0),
        cubic_is_stationary_at_0=close(grad(NONCONVEX["x³"])(zero[:1]), 0.0),
        derivative_of_tanh_at_4=close(gradient, 1 - tanh(4.0) ** 2, rtol=1e-12),
        derivative_is_small=close(gradient, 0.0013, atol=5e-5),
    )
