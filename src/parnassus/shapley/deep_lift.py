"""DeepLIFT by the rule of rescaling, and Deep SHAP, its mean over a background (book sec. 17.3).

Input and baseline go through the network side by side. Whatever is linear passes differences on by its weights; where
a number h goes through a nonlinearity σ, its slope is replaced by the secant from baseline to input,

    m = (σ(h) − σ(h⁰)) / (h − h⁰)                                          (Shrikumar et al. 2017, rule of rescaling)

so that backpropagation yields multipliers of x_j − b_j which sum to f(x) − f(b), in one pass and without a path. They
depend on how the function is written: two networks that say the same of every input may be explained differently.
"""

from collections.abc import Callable
from typing import TypeAlias

import torch
from jaxtyping import Float, Num
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from parnassus.shapley.attribution import Attribution
from parnassus.shapley.gradients import closed, demand_no_jump
from parnassus.shapley.model import ModelError, answer_rows
from parnassus.shapley.portions import tensors_in
from parnassus.shapley.slopes import TOGETHER, Slopes, demand_inputs, evaluating, pulled_back

Function: TypeAlias = Callable[..., Tensor]


def named(words: str) -> frozenset[str]:
    return frozenset(words.split())


POINTWISE = named(
    "relu relu6 leaky_relu prelu elu celu selu gelu silu mish tanh sigmoid softplus softsign logsigmoid hardtanh "
    "hardsigmoid hardswish tanhshrink softshrink hardshrink threshold exp expm1 log log1p sqrt rsqrt square pow abs "
    "reciprocal erf sin cos tan atan clamp"
)
"""Nonlinearities of one number: their secants are taken."""
WINDOWS: dict[str, Callable[..., tuple[Tensor, Tensor]]] = {
    "max_pool1d": functional.max_pool1d_with_indices,
    "max_pool2d": functional.max_pool2d_with_indices,
    "max_pool3d": functional.max_pool3d_with_indices,
    "adaptive_max_pool1d": functional.adaptive_max_pool1d_with_indices,
    "adaptive_max_pool2d": functional.adaptive_max_pool2d_with_indices,
    "adaptive_max_pool3d": functional.adaptive_max_pool3d_with_indices,
}
"""Maxima over places, with the places."""
LINEAR = named(
    "add sub rsub neg linear conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d batch_norm "
    "dropout dropout2d alpha_dropout avg_pool1d avg_pool2d avg_pool3d adaptive_avg_pool1d adaptive_avg_pool2d "
    "adaptive_avg_pool3d sum mean flatten unflatten reshape view permute transpose squeeze unsqueeze expand repeat "
    "cat stack chunk split getitem movedim roll flip pad interpolate to type double float half contiguous clone"
)
"""What passes differences on."""
PRODUCTS = named("mul matmul bmm mm addmm einsum div true_divide iadd isub imul itruediv")
"""Linear as long as one factor alone, the first of a quotient, depends on the input."""
QUESTIONS = named("get dim size numel is_floating_point stride len eq ne gt ge lt le detach")
"""What is asked of a tensor, but does not go on."""


def deep_lift(
    model: Callable[[Tensor], Tensor], x: Num[Tensor, "rows *shape"], background: Num[Tensor, "others *shape"]
) -> Attribution:
    """φ_j = E_b m_j (x_j − b_j) with the multipliers of the rule of rescaling; parts sum to f(x) − E f(b).

    For networks of linear maps, convolutions, nonlinearities of one number and pooling, written with modules or with
    functions; anything else, a softmax or a product of features for one, gets a sentence. `coalitions` counts inputs.
    """
    demand_inputs(x, background)
    slopes, others = Slopes(model), len(background)
    base, prediction = slopes.answers(background).mean(0).expand(len(x), -1), slopes.answers(x)
    parts = x.new_zeros(len(x), prediction.shape[1], x[0].numel(), dtype=torch.float64)
    portion = max(1, min(TOGETHER // parts[0].numel(), slopes.at_once(x, 2 * len(x) * others) // 2))
    for some in torch.arange(len(x) * others, device=x.device).split(portion):
        high, low = x[some // others], background[some % others]
        step = (high - low).flatten(1).double()
        parts.index_add_(0, some // others, multipliers(slopes, high, low) * step[:, None] / others)
    rounded = slopes.precision(x) * parts
    demand_no_jump(prediction, base, parts, torch.zeros_like(base))
    values = closed(parts, rounded.square(), prediction - base)
    return Attribution(base=base, values=values, errors=rounded.abs(), coalitions=2 * others)


def multipliers(
    slopes: Slopes, high: Float[Tensor, "pairs *shape"], low: Float[Tensor, "pairs *shape"]
) -> Float[Tensor, "pairs outputs features"]:
    """Of each pair of input and baseline: by backpropagation through secants instead of slopes."""
    model = slopes.model
    with torch.enable_grad(), evaluating(model):
        inputs = slopes.at_weights(high).detach().requires_grad_()
        both = torch.cat([inputs, slopes.at_weights(low).detach()])
        fixed = {name: each.detach() for name, each in model.named_parameters()} if isinstance(model, nn.Module) else {}
        with Secants(len(both)):
            answers = functional_call(model, fixed, (both,)) if isinstance(model, nn.Module) else model(both)
        return pulled_back(answer_rows(answers, len(both))[: len(high)], inputs).to(high.device)


class Secants(TorchFunctionMode):
    """While it is on, nonlinearities of what depends on the input have secants for slopes; the values stay."""

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
        moving = [each for each in tensors_in([*args, *options.values()]) if each.requires_grad]
        if not moving or name in LINEAR or name in QUESTIONS:
            return func(*args, **options)
        one = len(moving) == 1 and args[0] is moving[0]
        if name in PRODUCTS and len(moving) == 1 and (one or not name.endswith(("div", "divide"))):
            return func(*args, **options)
        if one and name in POINTWISE | WINDOWS.keys() and not func.__name__.endswith("_"):
            if len(moving[0]) != self.count:
                raise ModelError(f"DeepLIFT pairs inputs by rows; {name} was given {tuple(moving[0].shape)}")
            rule = pooled if name in WINDOWS else pointwise
            return rule(func, moving[0], args[1:], {**options, "inplace": False} if "inplace" in options else options)
        raise ModelError(
            f"DeepLIFT has no rule for {func.__name__} of {len(moving)} tensors that depend on the input; use "
            "integrated_gradients, or explain what comes before it (logits, say, for a softmax)"
        )


def pointwise(func: Function, h: Tensor, args: tuple[object, ...], options: dict[str, object]) -> Tensor:
    """σ(h) with the slope (σ(h) − σ(h⁰)) / (h − h⁰); where both are the same, with its own."""
    high, low = h.chunk(2)
    inner = high.detach().clone().requires_grad_()
    value, value_low = func(inner, *args, **options), func(low.detach().clone(), *args, **options)
    (own,) = torch.autograd.grad(value.sum(), inner)
    return with_slope(value, value_low, secant(value - value_low, high - low, own), high)


def pooled(func: Function, h: Tensor, args: tuple[object, ...], options: dict[str, object]) -> Tensor:
    """A maximum goes with the place where the larger one of its two values is: of the input, or of the baseline."""
    value, place = WINDOWS[func.__name__](h.detach(), *args, **options)
    (high, low), (value, value_low), (here, there) = h.chunk(2), value.chunk(2), place.chunk(2)
    axes = value.ndim - 2
    chosen = torch.where(value >= value_low, here, there).flatten(-axes)
    at_high, at_low = (each.flatten(-axes).gather(-1, chosen).view_as(value) for each in (high, low))
    slope = secant(value - value_low, at_high - at_low, torch.ones_like(value))
    return with_slope(value, value_low, slope, at_high)


def secant(rise: Tensor, run: Tensor, own: Tensor) -> Tensor:
    """The slope rise / run; where the run is nothing but rounding, the own one."""
    small = run.abs() <= 1_000 * torch.finfo(run.dtype).eps
    return torch.where(small, own, rise / torch.where(small, 1.0, run)).detach()


def with_slope(value: Tensor, value_low: Tensor, slope: Tensor, through: Tensor) -> Tensor:
    """These values, of input and baseline, with this slope of the former."""
    line = slope * through
    return torch.cat([value.detach() + (line - line.detach()), value_low.detach()])
