"""Masks by eye, causality by changing pixels, draws against the exact law."""

from math import log

import pytest
import torch

from parnassus.convolution import MaskedConv2d, PixelCNN, bits_per_pixel, causal_mask


def small(levels: int = 2) -> PixelCNN:
    torch.manual_seed(0)
    return PixelCNN((3, 3), levels=levels, channels=8, blocks=2, first=3).double()


def test_the_two_masks_differ_in_the_middle_alone() -> None:
    before = [[1.0, 1.0, 1.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
    assert causal_mask(3, sees_itself=False).tolist() == before
    before[1][1] = 1.0
    assert causal_mask(3, sees_itself=True).tolist() == before


def test_a_masked_convolution_is_a_convolution_with_a_masked_filter() -> None:
    torch.manual_seed(0)
    layer = MaskedConv2d(2, 3, 5, sees_itself=True)
    x = torch.randn(1, 2, 6, 6)
    before = layer(x)
    with torch.no_grad():
        layer.convolution.weight.mul_(layer.mask)
    torch.testing.assert_close(before, layer.convolution(x))


@pytest.mark.parametrize("pixel", range(9))
def test_changing_a_pixel_changes_only_later_laws(pixel: int) -> None:
    model = small(levels=4)
    x = torch.randint(4, (1, 3, 3), generator=torch.Generator().manual_seed(1))
    other = x.clone()
    other.view(-1)[pixel] = (other.view(-1)[pixel] + 1) % 4
    with torch.no_grad():
        changed = (model(x) != model(other)).any(1).flatten().nonzero()[:, 0].tolist()
    assert all(place > pixel for place in changed)
    assert pixel == 8 or pixel + 1 in changed or pixel % 3 == 2  # the right neighbour hears of it


def test_draws_follow_the_exact_law() -> None:
    torch.manual_seed(0)
    model = PixelCNN((2, 2), channels=8, blocks=1, first=3)
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(3)  # far from uniform
        pictures = torch.cartesian_prod(*[torch.arange(2)] * 4).reshape(-1, 2, 2)
        law = model.log_prob(pictures).exp()
    drawn = model.sample(40_000).flatten(1) @ torch.tensor([8, 4, 2, 1])
    torch.testing.assert_close(torch.bincount(drawn, minlength=16) / 40_000, law, atol=0.01, rtol=0)
    assert float(law.std()) > 0.01


def test_the_loss_is_the_likelihood_of_a_pixel() -> None:
    model, x = small(), torch.randint(2, (5, 3, 3))
    torch.testing.assert_close(model.loss(x), -model.log_prob(x).mean() / 9)


def test_completing_keeps_the_rows_given_and_ignores_the_rest() -> None:
    model, x = small(), torch.randint(2, (20, 3, 3))
    torch.manual_seed(2)
    first = model.complete(x, rows=2)
    torch.manual_seed(2)
    other = x.clone()
    other[:, 2] = 1 - other[:, 2]
    assert torch.equal(first, model.complete(other, rows=2))
    assert torch.equal(first[:, :2], x[:, :2])


def test_a_cold_draw_takes_the_likeliest_value_each_time() -> None:
    model = small(levels=3)
    cold = model.sample(3, temperature=1e-6)
    with torch.no_grad():
        assert torch.equal(model(cold).argmax(1), cold)


def test_a_fair_coin_costs_a_bit() -> None:
    assert bits_per_pixel(64 * log(2), 64) == pytest.approx(1.0)


def test_what_cannot_work_gets_a_sentence() -> None:
    with pytest.raises(ValueError, match="an odd size; got size=4"):
        causal_mask(4, sees_itself=True)
    with pytest.raises(ValueError, match="at least two levels and one pixel; got levels=1"):
        PixelCNN((3, 3), levels=1)
    with pytest.raises(ValueError, match="the values 0 … 1; got 0 … 2"):
        small().log_prob(torch.tensor([[[0, 1, 2]] * 3]))
    with pytest.raises(ValueError, match="temperature must be positive; got temperature=0"):
        small().sample(1, temperature=0.0)
    with pytest.raises(ValueError, match="at least one pixel; got pixels=0"):
        bits_per_pixel(1.0, 0)
