"""Waves as positions, against their formula entry by entry and against the laws they are made for."""

from math import cos, sin

import pytest
import torch

from parnassus.attention import SinusoidalEmbedding, frequencies, sinusoidal, waves
from parnassus.diffusion import sinusoidal_embedding


def test_every_entry_is_that_of_the_formula() -> None:
    code = sinusoidal(torch.arange(30, dtype=torch.float64), 6)
    for place in (0, 1, 7, 29):
        for i in range(3):
            angle = place / 10_000 ** (2 * i / 6)
            assert code[place, 2 * i] == pytest.approx(sin(angle), abs=1e-14)
            assert code[place, 2 * i + 1] == pytest.approx(cos(angle), abs=1e-14)


def test_the_base_is_the_number_of_places_in_which_the_slowest_wave_would_turn_once_more() -> None:
    """θ_1 = 1, and one step beyond the last frequency is 1 / base."""
    theta = frequencies(8, base=16.0)
    torch.testing.assert_close(theta, torch.tensor([1.0, 0.5, 0.25, 0.125], dtype=torch.float64))


def test_places_may_have_any_shape_and_lie_between_whole_numbers() -> None:
    grid = torch.tensor([[0.0, 0.5], [1.0, 2.5]], dtype=torch.float64)
    codes = sinusoidal(grid, 4)
    assert codes.shape == (2, 2, 4)
    torch.testing.assert_close(codes[1, 1], sinusoidal(torch.tensor(2.5, dtype=torch.float64), 4))


def test_diffusion_reads_its_time_steps_from_the_same_waves() -> None:
    """Its frequencies end at 1/period, and all sines stand before all cosines."""
    t = torch.tensor([0, 3, 500])
    omega = torch.logspace(0, -4, 8)
    expected = torch.cat([(t[:, None] * omega).sin(), (t[:, None] * omega).cos()], 1)
    torch.testing.assert_close(sinusoidal_embedding(t, 16), expected, atol=2e-4, rtol=0)
    assert waves(t, omega).shape == (3, 2, 8)


def test_the_embedding_adds_the_code_of_the_place_where_reading_goes_on() -> None:
    torch.manual_seed(0)
    embedding, tokens = SinusoidalEmbedding(11, 8), torch.randint(11, (2, 9))
    whole = embedding(tokens)
    torch.testing.assert_close(embedding(tokens[:, 5:], 5), whole[:, 5:])
    code = sinusoidal(torch.arange(9.0), 8)
    torch.testing.assert_close(whole - code, embedding.tokens(tokens) * 8**0.5)


def test_the_embedding_has_no_longest_sequence() -> None:
    far = SinusoidalEmbedding(3, 4)(torch.zeros(1, 5_000, dtype=torch.int64))
    assert bool(far.isfinite().all())


def test_token_and_code_begin_with_like_size() -> None:
    torch.manual_seed(0)
    embedding = SinusoidalEmbedding(5_000, 64)
    size = (embedding.tokens.weight.detach() * 64**0.5).square().sum(1).mean()
    assert float(size) == pytest.approx(64, rel=0.05)  # the code's is 32


@pytest.mark.parametrize("width", [0, 1, 7, -2])
def test_an_odd_width_gets_a_sentence(width: int) -> None:
    with pytest.raises(ValueError, match=f"width must be even, .* got width={width}"):
        frequencies(width)


def test_a_base_that_is_no_base_gets_a_sentence() -> None:
    with pytest.raises(ValueError, match="must be positive; got base=0"):
        sinusoidal(torch.arange(3.0), 4, base=0.0)
    with pytest.raises(ValueError, match="width must be even"):
        SinusoidalEmbedding(10, 5)
