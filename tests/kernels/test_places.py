"""Gradients kept as factors, against the same written out."""

import pytest
import torch
from torch import Tensor

from parnassus.kernels.places import Places


def drawn(n: int, places: int, into: int, *, outputs: int, out: int, seed: int = 0) -> Places:
    source = torch.Generator().manual_seed(seed)
    g = torch.randn(n, places, into, generator=source, dtype=torch.float64)
    b = torch.randn(outputs, n, places, out, generator=source, dtype=torch.float64)
    return Places(g, tuple(b))


def written(part: Places) -> Places:
    return Places.of_gradients([part.gradients(output).flatten(1) for output in range(len(part.cotangents))])


@pytest.mark.parametrize("places", [1, 3, 20])
@pytest.mark.parametrize("outputs", [1, 2])
def test_products_of_factors_are_products_of_gradients(places: int, outputs: int) -> None:
    left, right = drawn(4, places, 5, outputs=outputs, out=6), drawn(3, places, 5, outputs=outputs, out=6, seed=1)
    for one, other in ((left, right), (left, left)):
        mine, theirs = (torch.stack([own[:, 0] for own in written(side).cotangents], 1) for side in (one, other))
        exact = torch.einsum("nkp,mlp->nmkl", mine, theirs)
        torch.testing.assert_close(one.dot(other), exact)
        torch.testing.assert_close(one.trace(other), exact.diagonal(dim1=2, dim2=3).sum(-1))
        torch.testing.assert_close(written(one).dot(written(other)), exact)
        torch.testing.assert_close(written(one).trace(written(other)), exact.diagonal(dim1=2, dim2=3).sum(-1))


@pytest.mark.parametrize(("places", "size", "outputs"), [(1, 50, []), (30, 5, [0, 1])])
def test_only_many_places_of_a_small_matrix_are_written_out(
    places: int, size: int, outputs: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    part, asked, exact = drawn(8, places, size, outputs=2, out=size), list[int](), Places.gradients

    def gradients(own: Places, output: int) -> Tensor:
        asked.append(output)
        return exact(own, output)

    monkeypatch.setattr(Places, "gradients", gradients)
    part.trace(part)
    assert asked == outputs
