"""Interpolation and traversals of codes."""

import pytest
import torch

from parnassus.latent.latent_space.interpolation import latent_traversal, linear_interpolation, spherical_interpolation

DOUBLE = torch.float64


def random_ends(latent: int = 6) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    first, second = torch.randn(2, latent, generator=generator, dtype=DOUBLE)
    return first, second


@pytest.mark.parametrize("interpolate", [linear_interpolation, spherical_interpolation])
def test_interpolation_includes_both_ends(interpolate) -> None:  # type: ignore[no-untyped-def]  # functions with the same signature
    start, end = random_ends()
    codes = interpolate(start, end, count=7)
    assert codes.shape == (7, 6)
    torch.testing.assert_close(codes[0], start)
    torch.testing.assert_close(codes[-1], end)
    torch.testing.assert_close(interpolate(end, start, count=7), codes.flip(0))


def test_linear_interpolation_has_equal_steps() -> None:
    steps = linear_interpolation(*random_ends(), count=9).diff(dim=0)
    torch.testing.assert_close(steps, steps[:1].expand_as(steps))


def test_spherical_interpolation_has_equal_angles() -> None:
    start, end = random_ends()
    codes = spherical_interpolation(start, end, count=9)
    lengths = torch.linalg.vector_norm(codes, dim=1)
    torch.testing.assert_close(
        lengths,
        torch.linspace(1, 0, 9, dtype=DOUBLE) * start.norm() + torch.linspace(0, 1, 9, dtype=DOUBLE) * end.norm(),
    )
    cosines = (codes[1:] * codes[:-1]).sum(1) / (lengths[1:] * lengths[:-1])
    torch.testing.assert_close(cosines, cosines[:1].expand_as(cosines))
    assert int(torch.linalg.matrix_rank(codes, rtol=1e-9)) == 2


def test_spherical_interpolation_preserves_the_norm() -> None:
    start, end = (code / code.norm() * 10 for code in random_ends(100))
    assert float(spherical_interpolation(start, end, count=3)[1].norm()) == pytest.approx(10)
    assert float(linear_interpolation(start, end, count=3)[1].norm()) < 8


def test_spherical_interpolation_of_collinear_codes_is_linear() -> None:
    start, _ = random_ends()
    for end in (2 * start, -start, start):
        torch.testing.assert_close(
            spherical_interpolation(start, end, count=5), linear_interpolation(start, end, count=5)
        )


def test_traversal_varies_one_coordinate() -> None:
    code = torch.arange(4, dtype=DOUBLE)
    codes = latent_traversal(code, 2, limit=1.5, count=4)
    assert codes[:, 2].tolist() == [-1.5, -0.5, 0.5, 1.5]
    kept = torch.tensor([0, 1, 3])
    torch.testing.assert_close(codes[:, kept], code[kept].expand(4, 3))
    assert code.tolist() == [0, 1, 2, 3]


def test_invalid_arguments_raise_value_error() -> None:
    start, end = random_ends()
    with pytest.raises(ValueError, match="at least 2, for both ends; got count=1"):
        linear_interpolation(start, end, count=1)
    with pytest.raises(ValueError, match="away from the origin"):
        spherical_interpolation(start, torch.zeros_like(end))
    with pytest.raises(ValueError, match="between 0 and 5; got coordinate=6"):
        latent_traversal(start, 6)
