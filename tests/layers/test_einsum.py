"""einsum against `torch.einsum`."""

import pytest
import torch
from torch import Tensor

from parnassus.layers import einsum, pure_tensor, tensor_product, unrepeated_indices

SIZES = {"a": 2, "b": 3, "c": 4, "d": 5, "i": 3, "j": 4, "k": 2}


def random_tensors(formula: str) -> list[Tensor]:
    generator = torch.Generator().manual_seed(0)
    terms = formula.partition("->")[0].replace(" ", "").split(",")
    shapes = [[SIZES[index] for index in term] for term in terms]
    return [torch.randn(shape, generator=generator, dtype=torch.float64) for shape in shapes]


@pytest.mark.parametrize(
    "formula",
    [
        "ij,j->i",
        "ij,jk->ik",
        "ij,jk->ki",
        "ii->",
        "ii->i",
        "iji->j",
        "iij,jk->ik",
        "iii->i",
        "abc->cab",
        "abc->b",
        "ab,cd->acbd",
        "aij,ajk->aik",
        "a,b,c->abc",
        "ab, bc, cd -> ad",
        "i,i->",
        ",ij->ij",
        "->",
    ],
)
def test_matches_torch(formula: str) -> None:
    tensors = random_tensors(formula)
    torch.testing.assert_close(einsum(formula, *tensors), torch.einsum(formula, *tensors))


def test_gradient_of_the_matrix_product() -> None:
    a, b = (tensor.requires_grad_() for tensor in random_tensors("ij,jk->ik"))
    einsum("ij,jk->ik", a, b).sum().backward()
    torch.testing.assert_close(a.grad, b.detach().sum(1).expand(3, 4))


def test_result_does_not_share_memory_with_the_input() -> None:
    """Writing to the result must not modify the input."""
    v = torch.ones(3)
    einsum("i->i", v).zero_()
    assert v.tolist() == [1.0, 1.0, 1.0]


@pytest.mark.parametrize(
    ("terms", "expected"), [("ik,kj", "ij"), ("ii", ""), ("ij, j", "i"), ("bik,bkj", "ij"), ("i,j", "ij")]
)
def test_unrepeated_indices(terms: str, expected: str) -> None:
    assert unrepeated_indices(terms) == expected


@pytest.mark.parametrize(
    ("formula", "message"),
    [
        ("ij,jk", "the output indices must follow ->; got 'ij,jk'"),
        ("i1,jk->i", "indices must be letters"),
        ("ij->ij", "equally many; got 1 terms in 'ij->ij' and 2 tensors"),
        ("ij,jk->iz", "must be distinct and occur in the inputs"),
        ("ij,jk->ii", "must be distinct and occur in the inputs"),
        ("ijk,jk->i", r"one index per axis; got 'ijk' in 'ijk,jk->i' for shape \(3, 4\)"),
        ("ij,ik->jk", "one size; got 3 and 4 for 'i' in 'ij,ik->jk'"),
    ],
)
def test_invalid_formulas_raise_value_error(formula: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        einsum(formula, torch.zeros(3, 4), torch.zeros(4, 2))


def test_tensor_products_match_hand_computed_values() -> None:
    assert tensor_product(torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0])).tolist() == [[3.0, 4.0], [6.0, 8.0]]
    assert pure_tensor(torch.ones(2), torch.ones(3), torch.ones(4)).shape == (2, 3, 4)
    assert float(tensor_product(torch.tensor(2.0), torch.tensor(3.0))) == 6.0
    with pytest.raises(ValueError, match="needs at least one factor"):
        tensor_product()
