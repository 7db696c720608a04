"""Sinusoidal encodings and embeddings."""

from math import cos, sin

import pytest
import torch

from parnassus.attention import SinusoidalEmbedding, frequencies, sines_and_cosines, sinusoidal_encoding
from parnassus.diffusion import sinusoidal_embedding


def test_encoding_matches_its_formula() -> None:
    encoding = sinusoidal_encoding(torch.arange(30, dtype=torch.float64), 6)
    for position in (0, 1, 7, 29):
        for i in range(3):
            angle = position / 10_000 ** (2 * i / 6)
            assert encoding[position, 2 * i] == pytest.approx(sin(angle), abs=1e-14)
            assert encoding[position, 2 * i + 1] == pytest.approx(cos(angle), abs=1e-14)


def test_frequencies_form_a_geometric_sequence() -> None:
    """The first frequency is 1, and the next term after the last one would be 1 / base."""
    theta = frequencies(8, base=16.0)
    torch.testing.assert_close(theta, torch.tensor([1.0, 0.5, 0.25, 0.125], dtype=torch.float64))


def test_positions_can_have_any_shape_and_be_fractional() -> None:
    grid = torch.tensor([[0.0, 0.5], [1.0, 2.5]], dtype=torch.float64)
    encodings = sinusoidal_encoding(grid, 4)
    assert encodings.shape == (2, 2, 4)
    torch.testing.assert_close(encodings[1, 1], sinusoidal_encoding(torch.tensor(2.5, dtype=torch.float64), 4))


def test_time_embedding_of_diffusion_matches_the_formula() -> None:
    """Frequencies end at 1 / period, and all sines precede all cosines."""
    t = torch.tensor([0, 3, 500])
    omega = torch.logspace(0, -4, 8)
    expected = torch.cat([(t[:, None] * omega).sin(), (t[:, None] * omega).cos()], 1)
    torch.testing.assert_close(sinusoidal_embedding(t, 16), expected, atol=2e-4, rtol=0)
    assert sines_and_cosines(t, omega).shape == (3, 2, 8)


def test_embedding_adds_the_encoding_from_the_start_position() -> None:
    torch.manual_seed(0)
    embedding, tokens = SinusoidalEmbedding(11, 8), torch.randint(11, (2, 9))
    expected = embedding(tokens)
    torch.testing.assert_close(embedding(tokens[:, 5:], 5), expected[:, 5:])
    encoding = sinusoidal_encoding(torch.arange(9.0), 8)
    torch.testing.assert_close(expected - encoding, embedding.tokens(tokens) * 8**0.5)


def test_embedding_has_no_maximum_length() -> None:
    embedded = SinusoidalEmbedding(3, 4)(torch.zeros(1, 5_000, dtype=torch.int64))
    assert bool(embedded.isfinite().all())


def test_tokens_and_encoding_have_similar_norms() -> None:
    torch.manual_seed(0)
    embedding = SinusoidalEmbedding(5_000, 64)
    squared_norm = (embedding.tokens.weight.detach() * 64**0.5).square().sum(1).mean()
    assert float(squared_norm) == pytest.approx(64, rel=0.05)  # the squared norm of the encoding is 32


@pytest.mark.parametrize("width", [0, 1, 7, -2])
def test_odd_or_nonpositive_width_raises_value_error(width: int) -> None:
    with pytest.raises(ValueError, match=f"width must be positive and even; got width={width}"):
        frequencies(width)


def test_invalid_arguments_raise_value_error() -> None:
    with pytest.raises(ValueError, match="must be positive; got base=0"):
        sinusoidal_encoding(torch.arange(3.0), 4, base=0.0)
    with pytest.raises(ValueError, match="width must be positive and even"):
        SinusoidalEmbedding(10, 5)
