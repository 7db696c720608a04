"""Claims about moments, ε, layer normalisation and standardised inputs (Diehl sec. 1.6, Zhao sec. 8)."""

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from parnassus.atlas import Correction, Evidence, all_of, at_most, claim, close, erratum
from parnassus.layers.claims.dense import normal
from parnassus.layers.normalisation import LayerNorm, Moments, Standardiser, moments, normalise, standardise


def epsilon_outside(x: Tensor, axes: tuple[int, ...], epsilon: float = 1e-5) -> Tensor:
    """(x − mean) / (√var + ε), as printed (Diehl sec. 1.6)."""
    by = moments(x, axes)
    return (x - by.mean) / (by.variance.sqrt() + epsilon)


def slope(function_of: Tensor, at: Tensor) -> Tensor:
    (found,) = torch.autograd.grad(function_of, at)
    return found


@claim("D1.6.6")
def the_variance_is_biased() -> Evidence:
    """The variance divides by n, so that on average it is (n − 1)/n of the true one (Diehl sec. 1.6)."""
    x = normal(100_000, 5)
    mean, variance = moments(x, (1,))
    by_hand = ((x - x.sum(1, keepdim=True) / 5) ** 2).sum(1, keepdim=True) / 5
    return all_of(
        mean=close(mean, x.numpy().mean(1, keepdims=True), atol=1e-14),
        formula=close(variance, by_hand, atol=1e-13),
        numpy=close(variance, np.var(x.numpy(), axis=1, keepdims=True), atol=1e-13),
        too_small_by_a_fifth=close(variance.mean(), 0.8, atol=0.01),
    )


@erratum("D1.6.7", "D1.6.8", printed="(x − mean)/(√var + ε)", right="(x − mean)/√(var + ε)")
def epsilon_belongs_inside_the_root() -> Correction:
    """At a constant feature the printed form has an infinite inner slope, and its gradient is NaN (Diehl sec. 1.6)."""
    x = torch.cat([normal(6, 1), torch.ones(6, 1)], 1).requires_grad_()
    outside, inside = epsilon_outside(x, (0,)), standardise(x, (0,))
    small = 1e-3 * normal(6, 4)
    return Correction(
        printed=all_of(
            slope_is_a_number=close(slope(outside.square().sum(), x).isnan().double(), 0.0),
            torch_layer=close(epsilon_outside(small, (1,)), functional.layer_norm(small, (4,)), rtol=1e-6),
        ),
        corrected=all_of(
            slope_is_a_number=close(slope(inside.square().sum(), x).isfinite().double(), 1.0),
            torch_layer=close(standardise(small, (1,)), functional.layer_norm(small, (4,)), rtol=1e-9),
        ),
    )


@claim("D1.6.8", "Z8.3")
def layer_norm_looks_at_one_example_alone() -> Evidence:
    """LN is torch's, the same in both modes and whatever the neighbours; a x + b1 changes nothing (Diehl sec. 1.6)."""
    x = 2 * normal(2, 3, 4) + 1
    layer = LayerNorm(4).double()
    layer.scale.data, layer.shift.data = normal(4, seed=1), normal(4, seed=2)
    moved = x.clone()
    moved[1] += 100
    return all_of(
        torch_layer=close(layer(x), functional.layer_norm(x, (4,), layer.scale, layer.shift), atol=1e-13),
        rows=close(standardise(x[:, 0], (-1,)), functional.layer_norm(x[:, 0], (4,)), atol=1e-13),
        over_positions_too=close(LayerNorm(3, 4).double()(x), functional.layer_norm(x, (3, 4)), atol=1e-13),
        neighbours=close(layer(moved)[0], layer(x)[0]),
        evaluation=close(layer.eval()(x), layer.train()(x)),
        place_and_scale=close(standardise(5 * x + 9, (-1,)), standardise(x, (-1,)), atol=1e-3),
        negative_scale_flips=close(
            standardise(-5 * x, (-1,), epsilon=0.0), -standardise(x, (-1,), epsilon=0.0), atol=1e-12
        ),
    )


@claim("Z8.3")
def a_normalised_vector_has_length_root_n() -> Evidence:
    """‖LN(x)‖ = √(n v/(v + ε)), about √n, and its entries sum to 0 (Zhao sec. 8)."""
    x = torch.tensor([[1.0], [0.01], [1e-3]], dtype=torch.float64) * normal(3, 64)
    v = x.var(-1, correction=0)
    found = standardise(x, (-1,))
    return all_of(
        length=close(found.norm(dim=-1), (64 * v / (v + 1e-5)).sqrt(), rtol=1e-12),
        about_root_n=close(found[0].norm(), 8.0, atol=1e-3),
        sum=close(found.sum(-1), 0.0, atol=1e-12),
    )


@claim("D1.6.9")
def inputs_are_standardised_by_the_training_part() -> Evidence:
    """The training part comes out with mean 0 and variance 1; the test part, moved, shows its move (Diehl sec. 1.6)."""
    scale = torch.tensor([1.0, 10.0, 0.1], dtype=torch.float64)
    train, test = scale * normal(500, 3) + 4, scale * (normal(500, 3, seed=1) + 1) + 4
    fitted, leaking = Standardiser.fit(train), Standardiser.fit(torch.cat([train, test]))
    return all_of(
        mean=close(fitted.apply(train).mean(0), 0.0, atol=1e-12),
        variance=close(fitted.apply(train).var(0, correction=0), 1.0, rtol=1e-12),
        the_shift_of_the_test_part_stays=close(fitted.apply(test).mean(0), 1.0, atol=0.15),
        fitted_to_both_it_is_halved=at_most(leaking.apply(test).mean(0), 0.6),
        as_given_moments=close(
            fitted.apply(test), normalise(test, Moments(fitted.mean, fitted.std.square()), epsilon=0.0), atol=1e-12
        ),
    )


@claim("D1.6.9")
def a_squared_penalty_shrinks_weights_in_each_step() -> Evidence:
    """A step down ℓ + (α/2)‖w‖² is torch's step with weight decay α: w (1 − ηα) − η∇ℓ (Diehl sec. 1.6)."""
    start, x, y = normal(4), normal(10, 4, seed=1), normal(10, seed=2)
    decayed = nn.Parameter(start.clone())
    optimizer = torch.optim.SGD([decayed], lr=0.1, weight_decay=0.3)
    ((x @ decayed - y).square().mean()).backward()
    plain = decayed.grad
    assert plain is not None
    plain = plain.clone()
    optimizer.step()
    w = start.clone().requires_grad_()
    penalised = slope((x @ w - y).square().mean() + 0.15 * w.square().sum(), w)
    return all_of(
        penalty=close(decayed, start - 0.1 * penalised, atol=1e-14),
        shrink_then_step=close(decayed, (1 - 0.1 * 0.3) * start - 0.1 * plain, atol=1e-14),
    )
