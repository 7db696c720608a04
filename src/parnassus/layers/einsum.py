"""Einstein summation, tensor products and pure tensors (Diehl sec. 1.2).

A tensor of order n has n axes. The order is not the rank; see `tensor_rank`.
"""

from functools import reduce

import torch
from jaxtyping import Float
from torch import Tensor


def einsum(formula: str, *tensors: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    """Sum of products of entries over all indices that are not output indices (Diehl sec. 1.2).

        einsum("ij,j->i", A, v)     (Av)_i = Σ_j A_ij v_j
        einsum("ii->", A)           Tr A
        einsum("bij,bjk->bik", …)   batched products: b is repeated but not summed

    Indices are single letters and the output is explicit: the notes' rule to sum all repeated indices cannot express
    batched products. `unrepeated_indices` gives the output of that rule.
    """
    terms, output = _parse(formula, tensors)
    sizes = _sizes(formula, terms, tensors)
    summed = [index for index in sizes if index not in output]
    layout = [*output, *summed]
    product = torch.ones((), dtype=tensors[0].dtype, device=tensors[0].device)
    for term, tensor in zip(terms, tensors, strict=True):
        product = product * _align(tensor, term, layout)
    product = product.expand([sizes[index] for index in layout])
    return product.sum(dim=tuple(range(len(output), len(layout)))) if summed else product.clone()


def unrepeated_indices(terms: str) -> str:
    """The output indices when all repeated indices are summed: "ik,kj" ↦ "ij" (Diehl sec. 1.2)."""
    letters = terms.replace(",", "").replace(" ", "")
    return "".join(letter for letter in letters if letters.count(letter) == 1)


def tensor_product(*tensors: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    """Tensor product (S ⊗ T)_{i…j…} = S_{i…} T_{j…}, with concatenated shapes (Diehl sec. 1.2)."""
    if not tensors:
        raise ValueError("a tensor product needs at least one factor; got none")
    return reduce(lambda left, right: left[(..., *[None] * right.ndim)] * right, tensors)


def pure_tensor(*vectors: Float[Tensor, " _"]) -> Float[Tensor, "..."]:
    """v₁ ⊗ v₂ ⊗ … ⊗ v_n, a rank-one tensor of order n (Diehl sec. 1.2)."""
    return tensor_product(*vectors)


def _parse(formula: str, tensors: tuple[Tensor, ...]) -> tuple[list[str], str]:
    inputs, arrow, output = formula.replace(" ", "").partition("->")
    terms = inputs.split(",")
    if not arrow:
        raise ValueError(f"the output indices must follow ->; got {formula!r}")
    if not all(term.isalpha() or not term for term in [*terms, output]):
        raise ValueError(f"indices must be letters and terms separated by commas; got {formula!r}")
    if len(terms) != len(tensors):
        raise ValueError(
            f"terms and tensors must be equally many; got {len(terms)} terms in {formula!r} and {len(tensors)} tensors"
        )
    if not set(output) <= set(inputs) or len(set(output)) < len(output):
        raise ValueError(f"output indices must be distinct and occur in the inputs; got {formula!r}")
    return terms, output


def _sizes(formula: str, terms: list[str], tensors: tuple[Tensor, ...]) -> dict[str, int]:
    """The size of each index, in order of first occurrence."""
    sizes: dict[str, int] = {}
    for term, tensor in zip(terms, tensors, strict=True):
        if len(term) != tensor.ndim:
            raise ValueError(
                f"each term needs one index per axis; got {term!r} in {formula!r} for shape {tuple(tensor.shape)}"
            )
        for index, size in zip(term, tensor.shape, strict=True):
            if sizes.setdefault(index, size) != size:
                raise ValueError(
                    f"an index must have one size; got {sizes[index]} and {size} for {index!r} in {formula!r}"
                )
    return sizes


def _align(tensor: Tensor, term: str, layout: list[str]) -> Tensor:
    """The tensor with its axes in the order of `layout`, and axes of size 1 for indices it does not have."""
    while len(set(term)) < len(term):  # an index repeated within one term: take the diagonal
        twice = next(index for index in term if term.count(index) > 1)
        first, second = term.index(twice), term.rindex(twice)
        tensor = tensor.diagonal(dim1=first, dim2=second)
        term = term[:first] + term[first + 1 : second] + term[second + 1 :] + twice
    present = [index for index in layout if index in term]
    tensor = tensor.permute([term.index(index) for index in present])
    return tensor.reshape([tensor.shape[present.index(index)] if index in term else 1 for index in layout])
