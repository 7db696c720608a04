"""The tangent kernel of a finite network: inner products of parameter gradients (book eqs. 15.45, 15.57)."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import accumulate, pairwise

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.func import functional_call, jacrev, vjp, vmap
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.dropout import _DropoutNd

from parnassus.kernels.places import Places, Record, is_linear, recorded

BLOCK = 256
"""Inputs on each side whose gradients are held together."""


def empirical_ntk(
    module: nn.Module,
    x: Float[Tensor, "n *features"],
    y: Float[Tensor, "m *features"] | None = None,
    *,
    block: int = BLOCK,
) -> Float[Tensor, "n m"]:
    """K(x, x') = ⟨∂f(x)/∂θ, ∂f(x')/∂θ⟩ over all parameters that are trained (book eq. 15.45).

    Of several outputs the mean of their own kernels, (1/k) Σ_i ⟨∂f_i(x)/∂θ, ∂f_i(x')/∂θ⟩. The text calls it a
    correlation; nothing is centred. Dense layers and convolutions keep their gradients as factors (`Places`), all other
    parameters as numbers. `block` is the memory: the gradients of so many inputs on each side exist at a time.
    """
    total = _filled(module, x, y, block, folded=True)[:, :, 0, 0]
    with torch.no_grad():
        return total.div_(module(x[:1]).numel())


def empirical_ntk_of_outputs(
    module: nn.Module,
    x: Float[Tensor, "n *features"],
    y: Float[Tensor, "m *features"] | None = None,
    *,
    block: int = BLOCK,
) -> Float[Tensor, "n m outputs outputs"]:
    """⟨∂f_i(x)/∂θ, ∂f_j(x')/∂θ⟩ for every pair of outputs; at infinite width it is K*(x, x') where i = j, else 0."""
    return _filled(module, x, y, block, folded=False)


def jacobian_ntk(
    module: nn.Module, x: Float[Tensor, "n *features"], y: Float[Tensor, "m *features"] | None = None
) -> Float[Tensor, "n m outputs outputs"]:
    """The definition as it stands: every gradient written out, then all inner products (book eq. 15.57).

    It holds n · outputs · parameters numbers, and is there to compare with.
    """
    names = _trained(module)
    left = _jacobian(module, names, x)
    right = left if y is None else _jacobian(module, names, y)
    return torch.einsum("nkp,mlp->nmkl", left, right)


def tangent_product(
    module: nn.Module,
    x: Float[Tensor, "n *features"],
    vector: Float[Tensor, "m *outputs"],
    y: Float[Tensor, "m *features"] | None = None,
) -> Float[Tensor, "n *outputs"]:
    """K(x, y) v = J(x) (J(y)ᵀ v) in the memory of a gradient, without kernel or Jacobian (book eq. 15.59).

    v has the shape of the outputs at y. Along gradient flow du/dt = −K (u − y) is minus this product. J(x) is applied
    as the transpose of Jᵀ(x), by going back through a pass back: not every operation of torch can go forward.
    """
    parameters = {name: module.get_parameter(name).detach() for name in _trained(module)}

    def run(points: Tensor) -> Callable[[dict[str, Tensor]], Tensor]:
        return lambda theta: functional_call(module, theta, (points,))

    made, back, *_ = vjp(run(x), parameters)
    (direction,) = back(vector) if y is None else vjp(run(y), parameters)[1](vector)
    _, forth, *_ = vjp(back, torch.zeros_like(made))
    (product,) = forth((direction,))
    moved: Tensor = product
    return moved


@dataclass(frozen=True)
class _Plan:
    """Which linear modules keep factors, and the names of the parameters that must be written out."""

    factored: list[tuple[nn.Module, tuple[str, ...]]]
    written: list[str]


def _filled(module: nn.Module, x: Tensor, y: Tensor | None, block: int, *, folded: bool) -> Tensor:
    if block < 1:
        raise ValueError(f"a block needs at least one input; got block={block}")
    _require_own_rows(module, x)
    plan = _planned(module, x[:1])
    own, y = y is None, x if y is None else y
    with torch.no_grad():
        outputs = 1 if folded else module(x[:1]).numel()
    kernel = x.new_empty(len(x), len(y), outputs, outputs)
    for top in range(0, len(x), block):
        left = _gradients(module, x[top : top + block], plan)
        for start in range(top if own else 0, len(y), block):
            same = own and start == top
            right = left if same else _gradients(module, y[start : start + block], plan)
            part = _summed(left, right, folded=folded)
            kernel[top : top + block, start : start + block] = part
            if own and not same:
                kernel[start : start + block, top : top + block] = part.movedim(0, 1).mT
    return kernel


def _summed(left: list[Places], right: list[Places], *, folded: bool) -> Float[Tensor, "n m k k"]:
    """Inner products over all parts; where `folded`, with the sum over the outputs in place of each pair of them."""
    pairs = zip(left, right, strict=True)
    parts = (own.trace(other)[:, :, None, None] if folded else own.dot(other) for own, other in pairs)
    total = next(parts)
    for part in parts:
        total += part
    return total


def _gradients(module: nn.Module, x: Tensor, plan: _Plan) -> list[Places]:
    """The gradients of all outputs at the inputs x, one part a parameter, in the same order every time."""
    parts = []
    with recorded([layer for layer, _ in plan.factored]) as records:
        outputs = _outputs(module, x)
        cotangents = _cotangents(records, outputs.sum(0))
    for record, own, (_, names) in zip(records, cotangents, plan.factored, strict=True):
        found = record.parts(own)
        parts += [found[name] for name in names]
    if plan.written:
        parts.append(Places.of_gradients(_jacobian(module, plan.written, x).unbind(1)))
    return parts


def _cotangents(records: list[Record], outputs: Float[Tensor, " k"]) -> list[list[tuple[Tensor, ...]]]:
    """For each record and each k, ∂out_k by the outputs of its calls.

    As rows do not meet, outputs summed over rows have every row's own. One pass back an output: batched passes are
    slower through convolutions and pooling, which then run one by one and are copied together.
    """
    flat = [made for record in records for made in record.outputs]
    if not flat:
        return []
    passes = [
        torch.autograd.grad(output, flat, retain_graph=True, allow_unused=True, materialize_grads=True)
        for output in outputs
    ]
    ends = list(accumulate((len(record.outputs) for record in records), initial=0))
    return [[found[start:end] for found in passes] for start, end in pairwise(ends)]


def _planned(module: nn.Module, first: Tensor) -> _Plan:
    """Factors for the layers whose own gradients at a first input they give; the rest is written out.

    The comparison finds weights that are also used elsewhere, or that something else than the layer uses.
    """
    trained = dict(module.named_parameters())
    names = {parameter: name for name, parameter in trained.items() if parameter.requires_grad}
    layers = [
        part for part in module.modules() if is_linear(part) and any(own.requires_grad for own in part.parameters())
    ]
    with recorded(layers) as records:
        outputs = _outputs(module, first)
        direction = torch.linspace(1, 2, outputs.numel(), dtype=outputs.dtype, device=outputs.device)
        along = outputs @ direction
        whole = dict(zip(names, _whole_gradients(along, list(names)), strict=True))
        cotangents = _cotangents(records, along)
    factored, kept = [], set()
    for record, own in zip(records, cotangents, strict=True):
        parts = record.parts(own) if record.outputs and all(len(x) == 1 for x in record.inputs) else {}
        good = tuple(
            name
            for name, part in parts.items()
            if (parameter := getattr(record.module, name)) in whole
            and _alike(part.gradients(0)[0].mT.flatten(), whole[parameter].flatten())
        )
        kept |= {names[getattr(record.module, name)] for name in good}
        if good:
            factored.append((record.module, good))
    return _Plan(factored, [name for name in names.values() if name not in kept])


def _whole_gradients(output: Tensor, parameters: list[Tensor]) -> tuple[Tensor, ...]:
    return torch.autograd.grad(output, parameters, retain_graph=True, allow_unused=True, materialize_grads=True)


def _alike(a: Tensor, b: Tensor) -> bool:
    slack = torch.finfo(a.dtype).eps ** 0.5
    return bool((a - b).norm() <= slack * (b.norm() + slack))


def _outputs(module: nn.Module, x: Tensor) -> Float[Tensor, "n outputs"]:
    with torch.enable_grad():
        outputs: Tensor = module(x)
    return outputs.reshape(len(x), -1)


@torch.no_grad()
def _jacobian(module: nn.Module, names: list[str], x: Tensor) -> Float[Tensor, "n outputs numbers"]:
    """∂f(x)/∂θ for the parameters of these names, one input at a time under vmap."""
    parameters = {name: module.get_parameter(name).detach() for name in names}

    def outputs(theta: dict[str, Tensor], point: Tensor) -> Tensor:
        made: Tensor = functional_call(module, theta, (point[None],))
        return made.flatten()

    found = vmap(jacrev(outputs), in_dims=(None, 0))(parameters, x)
    return torch.cat([part.flatten(2) for part in found.values()], 2)


def _trained(module: nn.Module) -> list[str]:
    return [name for name, parameter in module.named_parameters() if parameter.requires_grad]


def _mixing(module: nn.Module) -> Iterator[nn.Module]:
    return (part for part in module.modules() if isinstance(part, _BatchNorm | _DropoutNd) and part.training)


def _require_own_rows(module: nn.Module, x: Tensor) -> None:
    """Every output must be a function of its own row, or "its gradient" has no meaning."""
    if not len(x) or not _trained(module):
        raise ValueError(f"need inputs and parameters that are trained; got {len(x)} inputs and {module}")
    wrong = next(_mixing(module), None)
    if wrong is not None:
        raise ValueError(
            f"an output must depend on its own row alone, and on no chance; got {type(wrong).__name__} in training: "
            "call module.eval() first"
        )
    with torch.no_grad():
        alone, beside = module(x[:1]), module(x[:2])[:1]
    if not torch.allclose(alone, beside, rtol=1e-3, atol=float(1e-3 * beside.abs().max())):
        apart = float((alone - beside).abs().max())
        raise ValueError(f"an output must depend on its own row alone; one moved by {apart:.3g} when a row was added")
