"""Einstein summation, tensor products and pure tensors (Diehl sec. 1.2).

A tensor of order n has n axes; its shape is the tuple of their sizes. Order is not rank.
"""

from functools import reduce

import torch
from jaxtyping import Float
from torch import Tensor


def einsum(formula: str, *tensors: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    """Σ over every index that is not an output index, of the product of the entries (Diehl sec. 1.2).

        einsum("ij,j->i", A, v)     (Av)_i = Σ_j A_ij v_j
        einsum("ii->", A)           Tr A
        einsum("bij,bjk->bik", …)   a batch of products: b is repeated, yet not summed

    One letter an index. The output must be spelled out: with the notes' rule, to sum what is repeated, no index could
    be shared and kept. `indices_seen_once` gives the output of that rule.
    """
    terms, output = _parse(formula, tensors)
    sizes = _sizes(formula, terms, tensors)
    summed = [index for index in sizes if index not in output]
    layout = [*output, *summed]
    product = torch.ones((), dtype=tensors[0].dtype, device=tensors[0].device)
    for term, tensor in zip(terms, tensors, strict=True):
        product = product * _aligned(tensor, term, layout)
    product = product.expand([sizes[index] for index in layout])
    return product.sum(dim=tuple(range(len(output), len(layout)))) if summed else product.clone()


def indices_seen_once(terms: str) -> str:
    """The indices that a formula keeps when all repeated ones are summed: "ik,kj" ↦ "ij" (Diehl sec. 1.2)."""
    letters = terms.replace(",", "").replace(" ", "")
    return "".join(letter for letter in letters if letters.count(letter) == 1)


def tensor_product(*tensors: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    """(S ⊗ T)_{i…j…} = S_{i…} T_{j…}: every entry times every entry, shapes one after the other (Diehl sec. 1.2)."""
    if not tensors:
        raise ValueError("a tensor product needs at least one factor; got none")
    return reduce(lambda left, right: left[(..., *[None] * right.ndim)] * right, tensors)


def pure_tensor(*vectors: Float[Tensor, " _"]) -> Float[Tensor, "..."]:
    """v₁ ⊗ v₂ ⊗ … ⊗ v_n: a tensor of order n that a product of vectors makes (Diehl sec. 1.2)."""
    return tensor_product(*vectors)


def _parse(formula: str, tensors: tuple[Tensor, ...]) -> tuple[list[str], str]:
    inputs, arrow, output = formula.replace(" ", "").partition("->")
    terms = inputs.split(",")
    if not arrow:
        raise ValueError(f"the output indices must be spelled out after ->; got {formula!r}")
    if not all(term.isalpha() or not term for term in [*terms, output]):
        raise ValueError(f"indices are letters, terms are parted by commas; got {formula!r}")
    if len(terms) != len(tensors):
        raise ValueError(
            f"need a tensor for every term; {formula!r} has {len(terms)} terms, got {len(tensors)} tensors"
        )
    strangers = sorted(set(output) - set(inputs))
    if strangers or len(set(output)) < len(output):
        raise ValueError(f"output indices must occur among the inputs and only once in the output; got {formula!r}")
    return terms, output


def _sizes(formula: str, terms: list[str], tensors: tuple[Tensor, ...]) -> dict[str, int]:
    """How long each index is, in the order of first sight."""
    sizes: dict[str, int] = {}
    for term, tensor in zip(terms, tensors, strict=True):
        if len(term) != tensor.ndim:
            raise ValueError(f"{term!r} in {formula!r} has {len(term)} indices, its tensor shape {tuple(tensor.shape)}")
        for index, size in zip(term, tensor.shape, strict=True):
            if sizes.setdefault(index, size) != size:
                raise ValueError(f"index {index!r} of {formula!r} has two sizes: {sizes[index]} and {size}")
    return sizes


def _aligned(tensor: Tensor, term: str, layout: list[str]) -> Tensor:
    """The tensor with its axes in the order of `layout`, an axis of size 1 for every index it does not have."""
    while len(set(term)) < len(term):  # an index twice within one term: keep the diagonal
        twice = next(index for index in term if term.count(index) > 1)
        first, second = term.index(twice), term.rindex(twice)
        tensor = tensor.diagonal(dim1=first, dim2=second)
        term = term[:first] + term[first + 1 : second] + term[second + 1 :] + twice
    present = [index for index in layout if index in term]
    tensor = tensor.permute([term.index(index) for index in present])
    return tensor.reshape([tensor.shape[present.index(index)] if index in term else 1 for index in layout])
