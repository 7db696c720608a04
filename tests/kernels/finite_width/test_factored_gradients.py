"""Factored gradients against formed gradients."""

import pytest
import torch
from torch import Tensor, nn

from parnassus.kernels.finite_width.factored_gradients import FactoredGradients, record_layers


def sample_factors(n: int, positions: int, inputs: int, *, outputs: int, out: int, seed: int = 0) -> FactoredGradients:
    generator = torch.Generator().manual_seed(seed)
    g = torch.randn(n, positions, inputs, generator=generator, dtype=torch.float64)
    b = torch.randn(outputs, n, positions, out, generator=generator, dtype=torch.float64)
    return FactoredGradients(g, tuple(b))


def form_gradients(factors: FactoredGradients) -> FactoredGradients:
    return FactoredGradients.from_gradients(
        [factors.gradients(output).flatten(1) for output in range(len(factors.cotangents))]
    )


@pytest.mark.parametrize("positions", [1, 3, 20])
@pytest.mark.parametrize("outputs", [1, 2])
def test_dot_and_trace_match_explicit_gradients(positions: int, outputs: int) -> None:
    left, right = (
        sample_factors(4, positions, 5, outputs=outputs, out=6),
        sample_factors(3, positions, 5, outputs=outputs, out=6, seed=1),
    )
    for first, second in ((left, right), (left, left)):
        first_gradients, second_gradients = (
            torch.stack([gradient[:, 0] for gradient in form_gradients(side).cotangents], 1) for side in (first, second)
        )
        exact = torch.einsum("nkp,mlp->nmkl", first_gradients, second_gradients)
        torch.testing.assert_close(first.dot(second), exact)
        torch.testing.assert_close(first.trace(second), exact.diagonal(dim1=2, dim2=3).sum(-1))
        torch.testing.assert_close(form_gradients(first).dot(form_gradients(second)), exact)
        torch.testing.assert_close(
            form_gradients(first).trace(form_gradients(second)), exact.diagonal(dim1=2, dim2=3).sum(-1)
        )


@pytest.mark.parametrize(("positions", "size", "outputs"), [(1, 50, []), (30, 5, [0, 1])])
def test_gradients_are_formed_for_many_positions_of_a_small_matrix_only(
    positions: int, size: int, outputs: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    factors, formed, exact = (
        sample_factors(8, positions, size, outputs=2, out=size),
        list[int](),
        FactoredGradients.gradients,
    )

    def gradients(self: FactoredGradients, output: int) -> Tensor:
        formed.append(output)
        return exact(self, output)

    monkeypatch.setattr(FactoredGradients, "gradients", gradients)
    factors.trace(factors)
    assert formed == outputs


@pytest.mark.parametrize(
    "layer",
    [
        nn.Conv2d(2, 3, (3, 5), padding="same", dilation=(1, 2)),
        nn.Conv2d(2, 3, (3, 2), padding="valid", stride=2),
        nn.Conv2d(2, 3, 3, padding=(1, 2), stride=(2, 1)),
        nn.Conv2d(2, 3, 3, padding=1),
    ],
    ids=["same", "valid", "tuple", "int"],
)
def test_factors_of_a_convolution_match_autograd_for_every_padding(layer: nn.Conv2d) -> None:
    torch.manual_seed(0)
    layer = layer.double()
    x = torch.randn(1, 2, 7, 6, dtype=torch.float64)
    with record_layers([layer]) as (record,):
        output = layer(x)
    cotangent = torch.randn_like(output)
    (exact,) = torch.autograd.grad(output, [layer.weight], cotangent)
    factored = record.gradients([[cotangent]])["weight"].gradients(0)[0].mT
    torch.testing.assert_close(factored.view_as(exact), exact)
