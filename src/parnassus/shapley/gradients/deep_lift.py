"""DeepLIFT with the rescale rule, and Deep SHAP, its mean over a background (book sec. 17.3).

Input and baseline pass through the network together. Linear operations propagate differences by their weights; at an
elementwise nonlinearity σ of h the derivative is replaced by the slope of the secant from baseline to input,

    m = (σ(h) − σ(h⁰)) / (h − h⁰)                                          (Shrikumar et al. 2017, rescale rule)

so that backpropagation yields multipliers of x_j − b_j which sum to f(x) − f(b), in one pass and without a path. They
depend on the implementation: two networks that compute the same function may have different attributions.
"""

from collections.abc import Callable
from typing import TypeAlias

import torch
from jaxtyping import Float, Num
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from parnassus.layers.evaluation_mode import evaluation_mode
from parnassus.shapley.attributions.attribution import Attribution
from parnassus.shapley.attributions.batching import tensors_in
from parnassus.shapley.attributions.model_adapters import ModelError, as_output_rows
from parnassus.shapley.gradients.completeness import check_completeness, enforce_completeness
from parnassus.shapley.gradients.model_gradients import (
    MAX_GRADIENT_VALUES,
    ModelGradients,
    check_inputs,
    output_gradients,
)

Function: TypeAlias = Callable[..., Tensor]


def name_set(words: str) -> frozenset[str]:
    """A set of function names."""
    return frozenset(words.split())


POINTWISE = name_set(
    "relu relu6 leaky_relu prelu elu celu selu gelu silu mish tanh sigmoid softplus softsign logsigmoid hardtanh "
    "hardsigmoid hardswish tanhshrink softshrink hardshrink threshold exp expm1 log log1p sqrt rsqrt square pow abs "
    "reciprocal erf sin cos tan atan clamp"
)
"""Elementwise nonlinearities, to which the rescale rule applies."""
POOLING: dict[str, Callable[..., tuple[Tensor, Tensor]]] = {
    "max_pool1d": functional.max_pool1d_with_indices,
    "max_pool2d": functional.max_pool2d_with_indices,
    "max_pool3d": functional.max_pool3d_with_indices,
    "adaptive_max_pool1d": functional.adaptive_max_pool1d_with_indices,
    "adaptive_max_pool2d": functional.adaptive_max_pool2d_with_indices,
    "adaptive_max_pool3d": functional.adaptive_max_pool3d_with_indices,
}
"""Max pooling, with the positions of the maxima."""
LINEAR = name_set(
    "add sub rsub neg linear conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d batch_norm "
    "dropout dropout2d alpha_dropout avg_pool1d avg_pool2d avg_pool3d adaptive_avg_pool1d adaptive_avg_pool2d "
    "adaptive_avg_pool3d sum mean flatten unflatten reshape view permute transpose squeeze unsqueeze expand repeat "
    "cat stack chunk split getitem movedim roll flip pad interpolate to type double float half contiguous clone"
)
"""Linear operations, which propagate differences."""
PRODUCTS = name_set("mul matmul bmm mm addmm einsum div true_divide iadd isub imul itruediv")
"""Linear if only one factor, for quotients the first, depends on the input."""
NON_DIFFERENTIABLE = name_set("get dim size numel is_floating_point stride len eq ne gt ge lt le detach")
"""Operations without gradients."""


def deep_lift(
    model: Callable[[Tensor], Tensor], x: Num[Tensor, "rows *shape"], background: Num[Tensor, "others *shape"]
) -> Attribution:
    """φ_j = E_b m_j (x_j − b_j) with the multipliers of the rescale rule; values sum to f(x) − E f(b).

    For networks of linear layers, convolutions, elementwise nonlinearities and pooling, written with modules or with
    functions; other operations, such as a softmax or a product of features, raise a ModelError. `evaluations` counts
    inputs.
    """
    check_inputs(x, background)
    gradients, others = ModelGradients(model), len(background)
    base_values, prediction = gradients.base_values_and_prediction(x, background)
    attributions = x.new_zeros(len(x), prediction.shape[1], x[0].numel(), dtype=torch.float64)
    batch_size = min(
        MAX_GRADIENT_VALUES // attributions[0].numel(), gradients.max_batch_size(x, 2 * len(x) * others) // 2
    )
    for batch in torch.arange(len(x) * others, device=x.device).split(max(1, batch_size)):
        high, low = x[batch // others], background[batch % others]
        step = (high - low).flatten(1).double()
        attributions.index_add_(0, batch // others, multipliers(gradients, high, low) * step[:, None] / others)
    rounding = gradients.eps(x) * attributions
    check_completeness(prediction, base_values, attributions, torch.zeros_like(base_values))
    values = enforce_completeness(attributions, rounding.square(), prediction - base_values)
    return Attribution(base_values=base_values, values=values, errors=rounding.abs(), evaluations=2 * others)


def multipliers(
    gradients: ModelGradients, high: Float[Tensor, "pairs *shape"], low: Float[Tensor, "pairs *shape"]
) -> Float[Tensor, "pairs outputs features"]:
    """Multipliers of each pair of input and baseline, by backpropagation with the rescale rule."""
    model = gradients.model
    with torch.enable_grad(), evaluation_mode(model):
        inputs = gradients.match_weights(high).detach().requires_grad_()
        both = torch.cat([inputs, gradients.match_weights(low).detach()])
        fixed = {name: each.detach() for name, each in model.named_parameters()} if isinstance(model, nn.Module) else {}
        with RescaleRule(len(both)):
            outputs = functional_call(model, fixed, (both,)) if isinstance(model, nn.Module) else model(both)
        return output_gradients(as_output_rows(outputs, len(both))[: len(high)], inputs).to(high.device)


class RescaleRule(TorchFunctionMode):
    """While active, the derivatives of nonlinearities of the input are those of secants; outputs are unchanged."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.count = count

    def __torch_function__(
        self,
        func: Function,
        types: object,
        args: tuple[object, ...] = (),
        kwargs: dict[str, object] | None = None,
    ) -> object:
        options = kwargs or {}
        name = func.__name__.strip("_")
        dependent = [each for each in tensors_in([*args, *options.values()]) if each.requires_grad]
        if not dependent or name in LINEAR or name in NON_DIFFERENTIABLE:
            return func(*args, **options)
        is_first_alone = len(dependent) == 1 and args[0] is dependent[0]
        if name in PRODUCTS and len(dependent) == 1 and (is_first_alone or not name.endswith(("div", "divide"))):
            return func(*args, **options)
        if is_first_alone and name in POINTWISE | POOLING.keys() and not func.__name__.endswith("_"):
            if len(dependent[0]) != self.count:
                raise ModelError(
                    "DeepLIFT pairs rows of inputs and baselines, so the first axis must be the batch; "
                    f"{name} received shape {tuple(dependent[0].shape)}"
                )
            rule = rescale_pooling if name in POOLING else rescale_pointwise
            fixed = {**options, "inplace": False} if "inplace" in options else options
            return rule(func, dependent[0], args[1:], fixed)
        raise ModelError(
            f"DeepLIFT has no rule for {func.__name__} of {len(dependent)} tensors that depend on the input; use "
            "integrated_gradients, or explain its input (for a softmax the logits)"
        )


def rescale_pointwise(func: Function, h: Tensor, args: tuple[object, ...], options: dict[str, object]) -> Tensor:
    """σ(h) with the derivative (σ(h) − σ(h⁰)) / (h − h⁰), or σ′(h) where h = h⁰."""
    high, low = h.chunk(2)
    inner = high.detach().clone().requires_grad_()
    value, value_low = func(inner, *args, **options), func(low.detach().clone(), *args, **options)
    (derivative,) = torch.autograd.grad(value.sum(), inner)
    return replace_gradient(value, value_low, secant_slope(value - value_low, high - low, derivative), high)


def rescale_pooling(func: Function, h: Tensor, args: tuple[object, ...], options: dict[str, object]) -> Tensor:
    """A maximum is attributed to the position of the larger of its two values, of the input or the baseline."""
    value, position = POOLING[func.__name__](h.detach(), *args, **options)
    (high, low), (value, value_low), (position_high, position_low) = h.chunk(2), value.chunk(2), position.chunk(2)
    axes = value.ndim - 2
    chosen = torch.where(value >= value_low, position_high, position_low).flatten(-axes)
    at_high, at_low = (each.flatten(-axes).gather(-1, chosen).view_as(value) for each in (high, low))
    slope = secant_slope(value - value_low, at_high - at_low, torch.ones_like(value))
    return replace_gradient(value, value_low, slope, at_high)


def secant_slope(rise: Tensor, run: Tensor, derivative: Tensor) -> Tensor:
    """The slope rise / run, or the derivative where the run is within rounding."""
    is_small = run.abs() <= 1_000 * torch.finfo(run.dtype).eps
    return torch.where(is_small, derivative, rise / torch.where(is_small, 1.0, run)).detach()


def replace_gradient(value: Tensor, value_low: Tensor, slope: Tensor, through: Tensor) -> Tensor:
    """The values of input and baseline, with `slope` as derivative of the former with respect to `through`."""
    line = slope * through
    return torch.cat([value.detach() + (line - line.detach()), value_low.detach()])
