"""Claims about weight decay in linear regression: ridge regression and its use (book ex. 2.3, Zhao sec. 3)."""

from itertools import combinations_with_replacement
from math import comb

import torch

from parnassus.atlas import Correction, Evidence, all_of, claim, close, erratum, greater_equal, less_equal
from parnassus.data.built_in.toy import linear
from parnassus.layers.claims.linear_models import autograd_step, sample_linear
from parnassus.layers.linear_models.linear_regression import append_ones, least_squares, linear_sgd_step
from parnassus.layers.linear_models.ridge_regression import effective_parameters, ridge_path, ridge_regression
from parnassus.losses.regression import mean_squared_error
from parnassus.optim.optimisers.weight_decay import penalised_minimiser
from parnassus.probability import standard_normal


@claim("Z3.15", "B2.2-9")
def weight_decay_converges_to_ridge() -> Evidence:
    """With weight decay λ, (X_cᵀX_c/n + λI) w = X_cᵀy_c/n; ‖w‖ decreases in λ; λ = 0 is OLS (Zhao sec. 3)."""
    x, y = sample_linear(100, noise=1.0)
    x = x + torch.tensor([1.0, -0.5], dtype=torch.float64)
    start = torch.zeros(2, dtype=torch.float64), torch.tensor(0.0, dtype=torch.float64)
    w, b = start
    for _ in range(2_000):
        w, b = linear_sgd_step(w, b, x, y, learning_rate=0.2, weight_decay=0.7)
    ridge = ridge_regression(x, y, penalty=0.7)
    centred = x - x.mean(0)
    system = centred.T @ centred / 100 + 0.7 * torch.eye(2, dtype=torch.float64)
    norms = [ridge_regression(x, y, penalty=each).w.norm() for each in (0.0, 0.1, 1.0, 10.0, 1e3)]
    design, alpha = append_ones(x), 3.0
    best = torch.linalg.lstsq(design, y[:, None]).solution[:, 0]
    direct = torch.linalg.solve(design.T @ design + alpha * torch.eye(3, dtype=torch.float64), design.T @ y)
    return all_of(
        slopes=close(w, ridge.w, atol=1e-10),
        intercept=close(b, ridge.b, atol=1e-10),
        system=close(system @ ridge.w, centred.T @ y / 100, atol=1e-12),
        torch_step=close(
            linear_sgd_step(*start, x, y, learning_rate=0.1, weight_decay=0.7)[0],
            autograd_step(x, y, *start, learning_rate=0.1, weight_decay=0.7)[0],
            atol=1e-14,
        ),
        norm_decreases=less_equal(torch.stack(norms).diff(), 0.0),
        no_penalty=close(ridge_regression(x, y, penalty=0.0).w, least_squares(x, y)[0], atol=1e-12),
        path=close(
            ridge_path(x, y, penalties=torch.tensor([0.0, 0.7, 5.0], dtype=torch.float64)),
            torch.stack([ridge_regression(x, y, penalty=each).w for each in (0.0, 0.7, 5.0)]),
            atol=1e-12,
        ),
        ridge_is_the_quadratic_case=close(penalised_minimiser(design.T @ design, best, alpha), direct, atol=1e-12),
    )


@claim("Z3.15")
def weight_decay_helps_with_few_examples() -> Evidence:
    """With 18 features and 20 noisy examples some λ > 0 lowers the error on new data (Zhao sec. 3)."""
    train = linear(20, (0.3,) * 18, 0.05, noise=1.0, seed=0)
    test = linear(1_000, (0.3,) * 18, 0.05, noise=1.0, seed=1)
    assert train.y is not None
    assert test.y is not None
    x, y = train.x.double(), train.y.double()
    errors = {}
    for penalty in (0.0, 0.3, 1e4):
        model = ridge_regression(x, y, penalty=penalty)
        errors[penalty] = float(mean_squared_error(model.predict(test.x.double()), test.y.double()))
    return all_of(
        training_error_without_decay=less_equal(
            mean_squared_error(ridge_regression(x, y, penalty=0.0).predict(x), y), 0.5
        ),
        some_decay_lowers_test_error=less_equal(errors[0.3], 0.7 * errors[0.0]),
        too_much_raises_it=greater_equal(errors[1e4], errors[0.3]),
    )


@erratum("Z3.15", printed="w ← … = w − η/|B| Σ xᵢ(…)", right="w ← … = (1 − ηλ) w − η/|B| Σ xᵢ(…)")
def the_decay_factor_stays() -> Correction:
    """The right-hand side of the printed step omits 1 − ηλ: the two sides differ by ηλ w (Zhao sec. 3)."""
    x, y = sample_linear(20, noise=0.5)
    w, b = torch.tensor([1.0, -1.0], dtype=torch.float64), torch.tensor(0.5, dtype=torch.float64)
    expected, _ = autograd_step(x, y, w, b, learning_rate=0.1, weight_decay=0.3)
    printed, _ = linear_sgd_step(w, b, x, y, learning_rate=0.1)
    return Correction(
        printed=close(printed, expected, rtol=1e-6),
        corrected=all_of(
            with_the_factor=close(
                linear_sgd_step(w, b, x, y, learning_rate=0.1, weight_decay=0.3)[0], expected, atol=1e-15
            ),
            difference=close(printed - expected, 0.1 * 0.3 * w, atol=1e-15),
        ),
    )


@claim("Z3.15")
def the_number_of_monomials_grows_with_the_degree() -> Evidence:
    """Monomials of degree d in k variables number C(k−1+d, k−1): 220 for k = 10, d = 3, 715 for d = 4 (Zhao sec. 3)."""
    cases = [(k, d) for k in (1, 2, 5, 10) for d in (1, 2, 3, 4)]
    counts = [len(list(combinations_with_replacement(range(k), d))) for k, d in cases]
    x = standard_normal(60, 3)
    columns = [x[:, list(each)].prod(1) for d in (1, 2, 3) for each in combinations_with_replacement(range(3), d)]
    features = torch.stack(columns, 1)
    centred = features - features.mean(0)
    hat = centred @ torch.linalg.solve(centred.T @ centred + 60 * 0.4 * torch.eye(19, dtype=torch.float64), centred.T)
    return all_of(
        formula=close(torch.tensor(counts), torch.tensor([comb(k - 1 + d, k - 1) for k, d in cases])),
        ten_variables=close(torch.tensor(counts[-2:]), torch.tensor([220, 715])),
        effective_parameters_without_decay=close(effective_parameters(features, penalty=0.0), 3 + 6 + 10, rtol=1e-12),
        effective_parameters_with_decay=close(effective_parameters(features, penalty=0.4), hat.trace(), rtol=1e-10),
    )
