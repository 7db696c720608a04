"""Gradients kept as factors, against the same written out."""

import pytest
import torch

from parnassus.kernels.places import Places


def drawn(n: int, places: int, into: int, *, outputs: int, out: int, seed: int = 0) -> Places:
    source = torch.Generator().manual_seed(seed)
    g = torch.randn(n, places, into, generator=source, dtype=torch.float64)
    return Places(g, torch.randn(n, outputs, places, out, generator=source, dtype=torch.float64))


@pytest.mark.parametrize("places", [1, 3])
@pytest.mark.parametrize("outputs", [1, 2])
def test_products_of_factors_are_products_of_gradients(places: int, outputs: int) -> None:
    left, right = drawn(4, places, 5, outputs=outputs, out=6), drawn(3, places, 5, outputs=outputs, out=6, seed=1)
    written = torch.einsum("nkp,mlp->nmkl", left.gradients(), right.gradients())
    torch.testing.assert_close(left.dot(right), written)
    torch.testing.assert_close(left.cheapest().dot(right.cheapest()), written)
    torch.testing.assert_close(left.folded().dot(right.folded())[:, :, 0, 0], written.diagonal(dim1=2, dim2=3).sum(-1))


def test_many_places_of_a_small_matrix_are_written_out() -> None:
    few, many = drawn(2, 1, 50, outputs=1, out=50), drawn(2, 30, 5, outputs=1, out=5)
    assert few.cheapest() is few
    assert many.cheapest().cotangents.shape == (2, 1, 1, 25)
