"""Claims about moments, ε, layer normalisation and input standardisation (Diehl sec. 1.6, Zhao sec. 8)."""

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from parnassus.atlas import Correction, Evidence, all_of, claim, close, erratum, less_equal
from parnassus.layers.normalisation import LayerNorm, Moments, Standardiser, moments, normalise, standardise
from parnassus.probability import standard_normal


def epsilon_outside(x: Tensor, axes: tuple[int, ...], epsilon: float = 1e-5) -> Tensor:
    """(x − mean) / (√var + ε), as printed (Diehl sec. 1.6)."""
    mean, variance = moments(x, axes)
    return (x - mean) / (variance.sqrt() + epsilon)


def gradient_of(function_of: Tensor, at: Tensor) -> Tensor:
    (gradient,) = torch.autograd.grad(function_of, at)
    return gradient


@claim("D1.6.6")
def the_variance_is_biased() -> Evidence:
    """The variance divides by n, so its expectation is (n − 1)/n of the true variance (Diehl sec. 1.6)."""
    x = standard_normal(100_000, 5)
    mean, variance = moments(x, (1,))
    by_hand = ((x - x.sum(1, keepdim=True) / 5) ** 2).sum(1, keepdim=True) / 5
    return all_of(
        mean=close(mean, x.numpy().mean(1, keepdims=True), atol=1e-14),
        formula=close(variance, by_hand, atol=1e-13),
        numpy=close(variance, np.var(x.numpy(), axis=1, keepdims=True), atol=1e-13),
        expectation_is_four_fifths=close(variance.mean(), 0.8, atol=0.01),
    )


@erratum("D1.6.7", "D1.6.8", printed="(x − mean)/(√var + ε)", right="(x − mean)/√(var + ε)")
def epsilon_belongs_inside_the_root() -> Correction:
    """For a constant feature the printed form has an infinite derivative, and its gradient is NaN (Diehl sec. 1.6)."""
    x = torch.cat([standard_normal(6, 1), torch.ones(6, 1)], 1).requires_grad_()
    outside, inside = epsilon_outside(x, (0,)), standardise(x, (0,))
    small = 1e-3 * standard_normal(6, 4)
    return Correction(
        printed=all_of(
            gradient_is_finite=close(gradient_of(outside.square().sum(), x).isnan().double(), 0.0),
            torch_layer=close(epsilon_outside(small, (1,)), functional.layer_norm(small, (4,)), rtol=1e-6),
        ),
        corrected=all_of(
            gradient_is_finite=close(gradient_of(inside.square().sum(), x).isfinite().double(), 1.0),
            torch_layer=close(standardise(small, (1,)), functional.layer_norm(small, (4,)), rtol=1e-9),
        ),
    )


@claim("D1.6.8", "Z8.3")
def layer_norm_acts_on_each_example_separately() -> Evidence:
    """LN equals torch's, in both modes, independent of other examples and invariant to a x + b1 (Diehl sec. 1.6)."""
    x = 2 * standard_normal(2, 3, 4) + 1
    layer = LayerNorm(4).double()
    layer.scale.data, layer.shift.data = standard_normal(4, seed=1), standard_normal(4, seed=2)
    modified = x.clone()
    modified[1] += 100
    return all_of(
        torch_layer=close(layer(x), functional.layer_norm(x, (4,), layer.scale, layer.shift), atol=1e-13),
        rows=close(standardise(x[:, 0], (-1,)), functional.layer_norm(x[:, 0], (4,)), atol=1e-13),
        over_positions_too=close(LayerNorm(3, 4).double()(x), functional.layer_norm(x, (3, 4)), atol=1e-13),
        independent_of_other_examples=close(layer(modified)[0], layer(x)[0]),
        evaluation=close(layer.eval()(x), layer.train()(x)),
        invariance=close(standardise(5 * x + 9, (-1,)), standardise(x, (-1,)), atol=1e-3),
        negative_scale_flips_sign=close(
            standardise(-5 * x, (-1,), epsilon=0.0), -standardise(x, (-1,), epsilon=0.0), atol=1e-12
        ),
    )


@claim("Z8.3")
def a_layer_normalised_vector_has_norm_root_n() -> Evidence:
    """‖LN(x)‖ = √(n v/(v + ε)) ≈ √n, and its entries sum to 0 (Zhao sec. 8)."""
    x = torch.tensor([[1.0], [0.01], [1e-3]], dtype=torch.float64) * standard_normal(3, 64)
    v = x.var(-1, correction=0)
    normalised = standardise(x, (-1,))
    return all_of(
        norm=close(normalised.norm(dim=-1), (64 * v / (v + 1e-5)).sqrt(), rtol=1e-12),
        close_to_root_n=close(normalised[0].norm(), 8.0, atol=1e-3),
        sum=close(normalised.sum(-1), 0.0, atol=1e-12),
    )


@claim("D1.6.9")
def inputs_are_standardised_with_training_statistics() -> Evidence:
    """Standardised training data have mean 0 and variance 1; a shift of the test data is preserved (Diehl sec. 1.6)."""
    scale = torch.tensor([1.0, 10.0, 0.1], dtype=torch.float64)
    train, test = scale * standard_normal(500, 3) + 4, scale * (standard_normal(500, 3, seed=1) + 1) + 4
    fitted, leaking = Standardiser.fit(train), Standardiser.fit(torch.cat([train, test]))
    return all_of(
        mean=close(fitted.transform(train).mean(0), 0.0, atol=1e-12),
        variance=close(fitted.transform(train).var(0, correction=0), 1.0, rtol=1e-12),
        test_shift_is_preserved=close(fitted.transform(test).mean(0), 1.0, atol=0.15),
        halved_when_fitted_to_both=less_equal(leaking.transform(test).mean(0), 0.6),
        with_given_moments=close(
            fitted.transform(test), normalise(test, Moments(fitted.mean, fitted.std.square()), epsilon=0.0), atol=1e-12
        ),
    )


@claim("D1.6.9")
def an_l2_penalty_is_weight_decay() -> Evidence:
    """A gradient step on ℓ + (α/2)‖w‖² is torch's step with weight decay α: w (1 − ηα) − η∇ℓ (Diehl sec. 1.6)."""
    start, x, y = standard_normal(4), standard_normal(10, 4, seed=1), standard_normal(10, seed=2)
    weight = nn.Parameter(start.clone())
    optimizer = torch.optim.SGD([weight], lr=0.1, weight_decay=0.3)
    ((x @ weight - y).square().mean()).backward()
    plain = weight.grad
    assert plain is not None
    plain = plain.clone()
    optimizer.step()
    w = start.clone().requires_grad_()
    penalised = gradient_of((x @ w - y).square().mean() + 0.15 * w.square().sum(), w)
    return all_of(
        penalty=close(weight, start - 0.1 * penalised, atol=1e-14),
        shrink_then_step=close(weight, (1 - 0.1 * 0.3) * start - 0.1 * plain, atol=1e-14),
    )
