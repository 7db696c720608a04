"""µ-law companding: known values, tokens, error bound and invalid arguments."""

import pytest
import torch

from parnassus.audio import compand, companded_levels, expand, mu_law_decode, mu_law_encode, quantisation_error_bound


def test_compand_matches_known_values() -> None:
    x = torch.tensor([-1.0, 0.0, 1 / 255, 1.0], dtype=torch.float64)
    torch.testing.assert_close(compand(x), torch.tensor([-1.0, 0.0, 1 / 8, 1.0], dtype=torch.float64))  # ln 2 / ln 256


def test_compand_is_odd_and_expand_is_its_inverse() -> None:
    x = torch.linspace(-1, 1, 1_001, dtype=torch.float64)
    torch.testing.assert_close(compand(-x), -compand(x))
    torch.testing.assert_close(expand(compand(x)), x)
    torch.testing.assert_close(compand(expand(x)), x)


def test_tokens_increase_with_the_wave_from_0_to_255() -> None:
    tokens = mu_law_encode(expand(torch.linspace(-0.9999, 0.9999, 10_001)))
    assert (int(tokens[0]), int(tokens[-1])) == (0, 255)
    assert set(tokens.diff().unique().tolist()) == {0, 1}
    assert mu_law_encode(torch.zeros(2, 3)).unique().tolist() == [128]


def test_encoding_inverts_decoding() -> None:
    tokens = torch.arange(256)
    assert torch.equal(mu_law_encode(mu_law_decode(tokens)), tokens)
    torch.testing.assert_close(companded_levels(tokens).diff(), torch.full((255,), 2 / 256))


def test_quantisation_error_is_within_its_bound() -> None:
    x = torch.tensor([0.001, 0.01, 0.1, 0.9])
    error = (mu_law_decode(mu_law_encode(x)) - x).abs()
    assert bool((error <= quantisation_error_bound(x)).all())
    assert float(quantisation_error_bound(torch.tensor(0.0))) == pytest.approx(8.587e-5, rel=1e-3)
    assert float(quantisation_error_bound(torch.tensor(1.0))) == pytest.approx(0.021983, rel=1e-3)


@pytest.mark.parametrize("value", [1.5, -1.01, float("nan"), float("inf")])
def test_out_of_range_waves_raise_value_error(value: float) -> None:
    with pytest.raises(ValueError, match=r"must lie in \[−1, 1\]"):
        mu_law_encode(torch.tensor([0.0, value]))


@pytest.mark.parametrize("value", [-1, 256])
def test_invalid_tokens_raise_value_error(value: int) -> None:
    with pytest.raises(ValueError, match="tokens must lie between 0 and 255"):
        mu_law_decode(torch.tensor([0, value]))
