"""The logit transform against autograd, bits per dimension against known distributions, NaN."""

from math import log

import pytest
import torch
from torch import Tensor, nn

from parnassus.flows import (
    Chain,
    DequantisedFlow,
    Flow,
    GaussianBase,
    Logit,
    bits_per_dimension,
    count_grey_levels,
    dequantise,
    independent_bits,
    quantise,
)


class NaNTransform(nn.Module):
    """A map with a NaN log-determinant for every tenth example, as produced by an overflow."""

    def forward(self, z: Tensor) -> tuple[Tensor, Tensor]:
        return z, z.new_zeros(len(z))

    def inverse(self, x: Tensor) -> tuple[Tensor, Tensor]:
        log_det = x.new_zeros(len(x))
        log_det[::10] = float("nan")
        return x, log_det


def test_inverse_and_log_determinant_of_the_logit() -> None:
    torch.manual_seed(0)
    logit = Logit(0.03)
    z = 3 * torch.randn(4, 2, 3, dtype=torch.float64)
    x, log_det = logit(z)
    z_back, log_det_back = logit.inverse(x)
    torch.testing.assert_close(z_back, z, atol=1e-10, rtol=0)
    torch.testing.assert_close(log_det, -log_det_back, atol=1e-10, rtol=0)
    for example, expected in zip(z, log_det, strict=True):
        jacobian = torch.func.jacrev(lambda row: logit(row[None])[0][0])(example).reshape(6, 6)
        torch.testing.assert_close(torch.linalg.slogdet(jacobian).logabsdet, expected)


def test_logits_of_0_and_1_are_finite() -> None:
    z, log_det = Logit(0.05).inverse(torch.tensor([[0.0, 1.0]]))
    assert bool(z.isfinite().all())
    assert bool(log_det.isfinite())
    torch.testing.assert_close(Logit(0.05)(z)[0], torch.tensor([[0.0, 1.0]]), atol=1e-6, rtol=0)


def test_dequantised_values_stay_in_their_cell() -> None:
    x = torch.arange(5.0)[:, None] / 4
    for noise in (0.0, 0.5, 0.999):
        dequantised = dequantise(x, torch.full_like(x, noise), levels=5)
        assert bool((dequantised >= 0).all())
        assert bool((dequantised < 1).all())
        torch.testing.assert_close((dequantised * 5).floor() / 4, x)


def test_pixels_are_rounded_to_the_nearest_level() -> None:
    assert quantise(torch.tensor([[-0.2, 0.1, 0.3, 0.9, 1.4]]), levels=3).tolist() == [[0, 0, 0.5, 1, 1]]


@pytest.mark.parametrize("levels", [2, 5, 17, 256])
def test_count_grey_levels(levels: int) -> None:
    assert count_grey_levels(torch.arange(levels) / (levels - 1)) == levels
    assert count_grey_levels(torch.rand(1_000)) == 256


def test_bits_of_the_uniform_density() -> None:
    assert bits_per_dimension(torch.zeros(3), 10, levels=256).tolist() == [8, 8, 8]
    torch.testing.assert_close(bits_per_dimension(torch.full((1,), 10 * log(2.0)), 10, levels=4), torch.ones(1))


def test_bits_are_a_bound_of_the_exact_log_probability() -> None:
    torch.manual_seed(0)
    flow = Flow(Chain([Logit(0.05)]), GaussianBase((1,)))
    model = DequantisedFlow(flow, (1,), levels=4)
    edges = flow.transform.inverse(torch.linspace(0, 1, 5)[:, None])[0][:, 0]
    normal = torch.distributions.Normal(0.0, 1.0)
    exact = (normal.cdf(edges[1:]) - normal.cdf(edges[:-1])).log()  # log-probabilities of the four levels
    levels = torch.arange(4.0)[:, None] / 3
    log_probs = model.log_prob(levels.repeat(50_000, 1)).reshape(-1, 4)
    assert bool((log_probs.mean(0) < exact).all())
    torch.testing.assert_close(log_probs.logsumexp(0) - log(len(log_probs)), exact, atol=0.01, rtol=0)
    torch.manual_seed(1)
    bits = model.bits(levels)
    torch.manual_seed(1)
    torch.testing.assert_close(bits, -model.log_prob(levels) / log(2))
    torch.manual_seed(1)
    torch.testing.assert_close(bits.mean(), model.loss(levels))


def test_decode_inverts_encode_and_samples_are_quantised() -> None:
    torch.manual_seed(0)
    model = DequantisedFlow(Flow(Chain([Logit()]), GaussianBase((6,))), (6,), levels=17)
    x = torch.randint(17, (20, 6)) / 16
    torch.testing.assert_close(model.decode(model.encode(x)), x)
    samples = model.sample(50, temperature=3.0)
    torch.testing.assert_close(samples, quantise(samples, levels=17))
    assert model.sample(50, temperature=0.01).unique().numel() <= 2  # all near the image of z = 0


def test_independent_bits_match_smoothed_frequencies() -> None:
    train = torch.tensor([[0.0, 1.0], [0.0, 0.5], [1.0, 1.0]])  # smoothed counts 3, 1, 2 and 1, 2, 3 of 6
    test = torch.tensor([[0.0, 0.5], [0.5, 1.0]])
    bits = (log(6 / 3) + log(6 / 2) + log(6 / 1) + log(6 / 3)) / log(2)
    assert independent_bits(train, test, levels=3) == pytest.approx(bits / 4)
    assert independent_bits(train[:0], test, levels=4) == pytest.approx(2.0)  # no training images: uniform


def test_nan_log_densities_are_not_ignored() -> None:
    model = DequantisedFlow(Flow(NaNTransform(), GaussianBase((2,))), (2,), levels=4)
    x = torch.zeros(20, 2)
    assert bool(model.loss(x).isnan())
    with pytest.raises(ValueError, match="must not be NaN; got 2 NaN of 20"):
        model.bits(x)


def test_invalid_arguments_raise_value_error() -> None:
    with pytest.raises(ValueError, match=r"between 0 and ½; got margin=0\.5"):
        Logit(0.5)
    with pytest.raises(ValueError, match="at least 2; got levels=1"):
        quantise(torch.zeros(1, 1), levels=1)
    with pytest.raises(ValueError, match="at least 1; got dimensions=0"):
        bits_per_dimension(torch.zeros(1), 0, levels=2)
    with pytest.raises(ValueError, match="temperature must be positive; got temperature=0"):
        DequantisedFlow(Flow(Logit(), GaussianBase((2,))), (2,)).sample(1, temperature=0.0)
