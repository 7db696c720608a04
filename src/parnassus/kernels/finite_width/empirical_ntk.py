"""The empirical NTK of a finite network: inner products of parameter gradients (book eqs. 15.45, 15.57)."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import accumulate, pairwise

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.func import functional_call, jacrev, vjp, vmap

from parnassus.errors import check_positive
from parnassus.kernels.finite_width.factored_gradients import (
    FactoredGradients,
    LayerRecord,
    is_supported_layer,
    record_layers,
)

BLOCK = 256
"""Inputs on each side whose gradients are in memory together."""
BATCH_DEPENDENT = (
    nn.BatchNorm1d,
    nn.BatchNorm2d,
    nn.BatchNorm3d,
    nn.SyncBatchNorm,
    nn.Dropout,
    nn.Dropout1d,
    nn.Dropout2d,
    nn.Dropout3d,
    nn.AlphaDropout,
    nn.FeatureAlphaDropout,
)
"""Modules whose training mode mixes rows or is random."""


def empirical_ntk(
    module: nn.Module,
    x: Float[Tensor, "n *features"],
    y: Float[Tensor, "m *features"] | None = None,
    *,
    block: int = BLOCK,
) -> Float[Tensor, "n m"]:
    """K(x, x') = ⟨∂f(x)/∂θ, ∂f(x')/∂θ⟩ over all trainable parameters (book eq. 15.45).

    With k outputs, the mean of their kernels, (1/k) Σ_i ⟨∂f_i(x)/∂θ, ∂f_i(x')/∂θ⟩. (The book calls it a correlation,
    but nothing is centred.) Gradients of dense layers and convolutions are kept as `FactoredGradients`, those of other
    parameters are formed. `block` bounds the memory: gradients of that many inputs per side exist at a time.
    """
    total = _fill_kernel(module, x, y, block, sum_outputs=True)[:, :, 0, 0]
    with torch.no_grad():
        return total.div_(module(x[:1]).numel())


def full_empirical_ntk(
    module: nn.Module,
    x: Float[Tensor, "n *features"],
    y: Float[Tensor, "m *features"] | None = None,
    *,
    block: int = BLOCK,
) -> Float[Tensor, "n m outputs outputs"]:
    """⟨∂f_i(x)/∂θ, ∂f_j(x')/∂θ⟩ for every pair of outputs; at infinite width K*(x, x') if i = j, else 0."""
    return _fill_kernel(module, x, y, block, sum_outputs=False)


def jacobian_ntk(
    module: nn.Module, x: Float[Tensor, "n *features"], y: Float[Tensor, "m *features"] | None = None
) -> Float[Tensor, "n m outputs outputs"]:
    """The NTK by its definition: full Jacobians and their inner products (book eq. 15.57).

    A reference implementation: it stores n · outputs · parameters values.
    """
    names = _trainable_names(module)
    left = _jacobian(module, names, x)
    right = left if y is None else _jacobian(module, names, y)
    return torch.einsum("nkp,mlp->nmkl", left, right)


def ntk_vector_product(
    module: nn.Module,
    x: Float[Tensor, "n *features"],
    vector: Float[Tensor, "m *outputs"],
    y: Float[Tensor, "m *features"] | None = None,
) -> Float[Tensor, "n *outputs"]:
    """K(x, y) v = J(x) (J(y)ᵀ v) in the memory of one gradient, without kernel or Jacobian (book eq. 15.59).

    v has the shape of the outputs at y. Gradient flow moves the outputs by du/dt = −K (u − y). J(x) is applied by
    double backward, as the transpose of Jᵀ(x), because not every torch operation supports forward mode.
    """
    parameters = {name: module.get_parameter(name).detach() for name in _trainable_names(module)}

    def model(points: Tensor) -> Callable[[dict[str, Tensor]], Tensor]:
        return lambda theta: functional_call(module, theta, (points,))

    outputs, pullback, *_ = vjp(model(x), parameters)
    (direction,) = pullback(vector) if y is None else vjp(model(y), parameters)[1](vector)
    _, pushforward, *_ = vjp(pullback, torch.zeros_like(outputs))
    product: Tensor = pushforward((direction,))[0]
    return product


@dataclass(frozen=True)
class _Plan:
    """Layers whose gradients are kept as factors, and the names of parameters whose gradients are formed."""

    factored: list[tuple[nn.Module, tuple[str, ...]]]
    formed: list[str]


def _fill_kernel(module: nn.Module, x: Tensor, y: Tensor | None, block: int, *, sum_outputs: bool) -> Tensor:
    check_positive(block=block)
    _check_independent_rows(module, x)
    plan = _plan_gradients(module, x[:1])
    symmetric, y = y is None, x if y is None else y
    with torch.no_grad():
        outputs = 1 if sum_outputs else module(x[:1]).numel()
    kernel = x.new_empty(len(x), len(y), outputs, outputs)
    for top in range(0, len(x), block):
        left = _gradients(module, x[top : top + block], plan)
        for start in range(top if symmetric else 0, len(y), block):
            same = symmetric and start == top
            right = left if same else _gradients(module, y[start : start + block], plan)
            part = _sum_inner_products(left, right, sum_outputs=sum_outputs)
            kernel[top : top + block, start : start + block] = part
            if symmetric and not same:
                kernel[start : start + block, top : top + block] = part.movedim(0, 1).mT
    return kernel


def _sum_inner_products(
    left: list[FactoredGradients], right: list[FactoredGradients], *, sum_outputs: bool
) -> Float[Tensor, "n m k k"]:
    """Inner products over all parts, for each pair of outputs or with `sum_outputs` summed over equal outputs."""
    pairs = zip(left, right, strict=True)
    parts = (a.trace(b)[:, :, None, None] if sum_outputs else a.dot(b) for a, b in pairs)
    total = next(parts)
    for part in parts:
        total += part
    return total


def _gradients(module: nn.Module, x: Tensor, plan: _Plan) -> list[FactoredGradients]:
    """The gradients of all outputs at the inputs x, one entry per parameter, in a fixed order."""
    parts = []
    with record_layers([layer for layer, _ in plan.factored]) as records:
        outputs = _outputs(module, x)
        cotangents = _cotangents(records, outputs.sum(0))
    for record, layer_cotangents, (_, names) in zip(records, cotangents, plan.factored, strict=True):
        gradients = record.gradients(layer_cotangents)
        parts += [gradients[name] for name in names]
    if plan.formed:
        parts.append(FactoredGradients.from_gradients(_jacobian(module, plan.formed, x).unbind(1)))
    return parts


def _cotangents(records: list[LayerRecord], outputs: Float[Tensor, " k"]) -> list[list[tuple[Tensor, ...]]]:
    """For each record and each k, ∂out_k by the outputs of its calls.

    Rows are independent, so the gradient of outputs summed over rows holds that of every row. One backward pass per
    output: batched passes are slower through convolutions and pooling.
    """
    flat = [output for record in records for output in record.outputs]
    if not flat:
        return []
    passes = [
        torch.autograd.grad(output, flat, retain_graph=True, allow_unused=True, materialize_grads=True)
        for output in outputs
    ]
    ends = list(accumulate((len(record.outputs) for record in records), initial=0))
    return [[gradients[start:end] for gradients in passes] for start, end in pairwise(ends)]


def _plan_gradients(module: nn.Module, first: Tensor) -> _Plan:
    """Use factors for layers where they reproduce the gradient at a first input; form all other gradients.

    The comparison detects weights that are shared or used outside their layer.
    """
    trained = dict(module.named_parameters())
    names = {parameter: name for name, parameter in trained.items() if parameter.requires_grad}
    layers = [
        part
        for part in module.modules()
        if is_supported_layer(part) and any(own.requires_grad for own in part.parameters())
    ]
    with record_layers(layers) as records:
        outputs = _outputs(module, first)
        direction = torch.linspace(1, 2, outputs.numel(), dtype=outputs.dtype, device=outputs.device)
        combination = outputs @ direction
        exact = dict(zip(names, _parameter_gradients(combination, list(names)), strict=True))
        cotangents = _cotangents(records, combination)
    factored, kept = [], set()
    for record, layer_cotangents in zip(records, cotangents, strict=True):
        gradients = (
            record.gradients(layer_cotangents) if record.outputs and all(len(x) == 1 for x in record.inputs) else {}
        )
        reproduced = tuple(
            name
            for name, part in gradients.items()
            if (parameter := getattr(record.module, name)) in exact
            and _is_close(part.gradients(0)[0].mT.flatten(), exact[parameter].flatten())
        )
        kept |= {names[getattr(record.module, name)] for name in reproduced}
        if reproduced:
            factored.append((record.module, reproduced))
    return _Plan(factored, [name for name in names.values() if name not in kept])


def _parameter_gradients(output: Tensor, parameters: list[Tensor]) -> tuple[Tensor, ...]:
    return torch.autograd.grad(output, parameters, retain_graph=True, allow_unused=True, materialize_grads=True)


def _is_close(a: Tensor, b: Tensor) -> bool:
    tolerance = torch.finfo(a.dtype).eps ** 0.5
    return bool((a - b).norm() <= tolerance * (b.norm() + tolerance))


def _outputs(module: nn.Module, x: Tensor) -> Float[Tensor, "n outputs"]:
    with torch.enable_grad():
        outputs: Tensor = module(x)
    return outputs.reshape(len(x), -1)


@torch.no_grad()
def _jacobian(module: nn.Module, names: list[str], x: Tensor) -> Float[Tensor, "n outputs parameters"]:
    """∂f(x)/∂θ for the named parameters, one input at a time under vmap."""
    parameters = {name: module.get_parameter(name).detach() for name in names}

    def outputs(theta: dict[str, Tensor], point: Tensor) -> Tensor:
        value: Tensor = functional_call(module, theta, (point[None],))
        return value.flatten()

    jacobians = vmap(jacrev(outputs), in_dims=(None, 0))(parameters, x)
    return torch.cat([part.flatten(2) for part in jacobians.values()], 2)


def _trainable_names(module: nn.Module) -> list[str]:
    return [name for name, parameter in module.named_parameters() if parameter.requires_grad]


def _batch_dependent_modules(module: nn.Module) -> Iterator[nn.Module]:
    return (part for part in module.modules() if isinstance(part, BATCH_DEPENDENT) and part.training)


def _check_independent_rows(module: nn.Module, x: Tensor) -> None:
    """Raise unless every output is a deterministic function of its own row."""
    if not len(x) or not _trainable_names(module):
        raise ValueError(f"need inputs and trainable parameters; got {len(x)} inputs and {module}")
    dependent = next(_batch_dependent_modules(module), None)
    if dependent is not None:
        raise ValueError(
            f"outputs must depend on their own row only and not be random; got {type(dependent).__name__} in training "
            "mode: call module.eval() first"
        )
    with torch.no_grad():
        single, paired = module(x[:1]), module(x[:2])[:1]
    if not torch.allclose(single, paired, rtol=1e-3, atol=float(1e-3 * paired.abs().max())):
        change = float((single - paired).abs().max())
        raise ValueError(f"outputs must depend on their own row only; one changed by {change:.3g} when a row was added")
