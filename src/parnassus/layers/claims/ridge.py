"""Claims about weight decay in linear regression: ridge, and what it is good for (book ex. 2.3, Zhao sec. 3)."""

from itertools import combinations_with_replacement
from math import comb

import torch

from parnassus.atlas import Correction, Evidence, all_of, at_least, at_most, claim, close, erratum
from parnassus.data.toy import linear
from parnassus.layers.claims.linear_models import autograd_step, linear_rows
from parnassus.layers.linear_regression import least_squares, linear_sgd_step, with_ones
from parnassus.layers.ridge import ridge_regression
from parnassus.losses.squared import mean_squared_error
from parnassus.optim.weight_decay import penalised_minimiser


@claim("Z3.15", "B2.2-9")
def decay_comes_to_rest_at_ridge() -> Evidence:
    """Steps with decay λ rest at (X_cᵀX_c/n + λI) w = X_cᵀy_c/n; ‖w‖ falls with λ; λ = 0 is plain (Zhao sec. 3)."""
    x, y = linear_rows(100, noise=1.0)
    x = x + torch.tensor([1.0, -0.5], dtype=torch.float64)
    start = torch.zeros(2, dtype=torch.float64), torch.tensor(0.0, dtype=torch.float64)
    w, b = start
    for _ in range(2_000):
        w, b = linear_sgd_step(w, b, x, y, rate=0.2, decay=0.7)
    rest = ridge_regression(x, y, penalty=0.7)
    centred = x - x.mean(0)
    system = centred.T @ centred / 100 + 0.7 * torch.eye(2, dtype=torch.float64)
    norms = [ridge_regression(x, y, penalty=each).w.norm() for each in (0.0, 0.1, 1.0, 10.0, 1e3)]
    design, alpha = with_ones(x), 3.0
    best = torch.linalg.lstsq(design, y[:, None]).solution[:, 0]
    direct = torch.linalg.solve(design.T @ design + alpha * torch.eye(3, dtype=torch.float64), design.T @ y)
    return all_of(
        slopes=close(w, rest.w, atol=1e-10),
        intercept=close(b, rest.b, atol=1e-10),
        system=close(system @ rest.w, centred.T @ y / 100, atol=1e-12),
        step_of_torch=close(
            linear_sgd_step(*start, x, y, rate=0.1, decay=0.7)[0],
            autograd_step(x, y, *start, rate=0.1, decay=0.7)[0],
            atol=1e-14,
        ),
        shrinks=at_most(torch.stack(norms).diff(), 0.0),
        no_penalty=close(ridge_regression(x, y, penalty=0.0).w, least_squares(x, y)[0], atol=1e-12),
        ridge_is_the_quadratic_case=close(penalised_minimiser(design.T @ design, best, alpha), direct, atol=1e-12),
    )


@claim("Z3.15")
def decay_helps_where_examples_are_few() -> Evidence:
    """With 18 noisy features and 20 examples some λ > 0 lowers the error on new data (Zhao sec. 3)."""
    small = linear(20, (0.3,) * 18, 0.05, noise=1.0, seed=0)
    fresh = linear(1_000, (0.3,) * 18, 0.05, noise=1.0, seed=1)
    assert small.y is not None
    assert fresh.y is not None
    x, y = small.x.double(), small.y.double()
    errors = {}
    for penalty in (0.0, 0.3, 1e4):
        model = ridge_regression(x, y, penalty=penalty)
        errors[penalty] = float(mean_squared_error(model.predict(fresh.x.double()), fresh.y.double()))
    return all_of(
        fitted_well_without=at_most(mean_squared_error(ridge_regression(x, y, penalty=0.0).predict(x), y), 0.5),
        some_decay_is_better=at_most(errors[0.3], 0.7 * errors[0.0]),
        too_much_is_not=at_least(errors[1e4], errors[0.3]),
    )


@erratum("Z3.15", printed="w ← … = w − η/|B| Σ xᵢ(…)", right="w ← … = (1 − ηλ) w − η/|B| Σ xᵢ(…)")
def the_shrinking_factor_stays() -> Correction:
    """After its second equals sign the printed step has lost 1 − ηλ: the two sides differ by ηλ w (Zhao sec. 3)."""
    x, y = linear_rows(20, noise=0.5)
    w, b = torch.tensor([1.0, -1.0], dtype=torch.float64), torch.tensor(0.5, dtype=torch.float64)
    right, _ = autograd_step(x, y, w, b, rate=0.1, decay=0.3)
    printed, _ = linear_sgd_step(w, b, x, y, rate=0.1)
    return Correction(
        printed=close(printed, right, rtol=1e-6),
        corrected=all_of(
            with_the_factor=close(linear_sgd_step(w, b, x, y, rate=0.1, decay=0.3)[0], right, atol=1e-15),
            the_gap=close(printed - right, 0.1 * 0.3 * w, atol=1e-15),
        ),
    )


@claim("Z3.15")
def monomials_multiply_with_the_degree() -> Evidence:
    """Monomials of degree exactly d in k variables number C(k−1+d, k−1): 220 for d = 3, 715 for d = 4 (Zhao sec. 3)."""
    cases = [(k, d) for k in (1, 2, 5, 10) for d in (1, 2, 3, 4)]
    counted = [sum(1 for _ in combinations_with_replacement(range(k), d)) for k, d in cases]
    return all_of(
        formula=close(torch.tensor(counted), torch.tensor([comb(k - 1 + d, k - 1) for k, d in cases])),
        ten_variables=close(torch.tensor(counted[-2:]), torch.tensor([220, 715])),
    )
