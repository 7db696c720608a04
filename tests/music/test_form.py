"""Generated pieces with modulations: keys, range and seeds."""

import pytest
import torch

from parnassus.music import Key, form_entropy, generate_modulating_pieces, sections
from parnassus.music.form import HIGHEST, LOWEST, train_and_test_pieces


def test_sections_and_pieces_end_on_their_tonics() -> None:
    pieces, home = generate_modulating_pieces(300, bars=3, seed=4)
    assert pieces.shape == (300, 4 * 3 * 4)
    assert torch.equal(pieces[:, -1] % 12, home)
    assert torch.equal(pieces[:, 11] % 12, home)  # the cadence of the first section
    assert torch.equal(pieces[:, 23] % 12, (home + 9) % 12)
    assert LOWEST <= int(pieces.min()) <= int(pieces.max()) <= HIGHEST


def test_all_home_keys_and_the_whole_range_occur() -> None:
    pieces, home = generate_modulating_pieces(5_000, seed=0)
    assert len(home.unique()) == 12
    assert (int(pieces.min()), int(pieces.max())) == (LOWEST, HIGHEST)


def test_equal_seeds_give_equal_pieces() -> None:
    torch.testing.assert_close(generate_modulating_pieces(5, seed=1), generate_modulating_pieces(5, seed=1))
    assert not torch.equal(generate_modulating_pieces(5, seed=1)[0], generate_modulating_pieces(5, seed=2)[0])


def test_training_and_test_pieces_are_different() -> None:
    train, test, home = train_and_test_pieces(20, 20, seed=3)
    assert train.shape == test.shape
    assert not torch.equal(train, test)
    torch.testing.assert_close(home, generate_modulating_pieces(20, seed=7)[1])


def test_sections_of_c_major() -> None:
    assert [str(key) for key in sections(Key(0))] == ["C major", "A minor", "G major", "C major"]


def test_entropy_of_an_additional_bar_matches_closed_form() -> None:
    assert form_entropy(5) - form_entropy(4) == pytest.approx(4 * 1.386294, abs=1e-2)


@pytest.mark.parametrize(("count", "bars"), [(0, 4), (3, 1)])
def test_invalid_arguments_raise_value_error(count: int, bars: int) -> None:
    with pytest.raises(ValueError, match="count must be at least 1 and bars at least 2"):
        generate_modulating_pieces(count, bars=bars)
