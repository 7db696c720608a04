"""Events of performances: degenerate and invalid input."""

import pytest
import torch

from parnassus.music import Performance, decode_performance, encode_performance
from parnassus.music.performance_tokeniser import BEGIN, NOTE_OFF, NOTE_ON, TIME_SHIFT, VELOCITY, VOCABULARY


def performance(*notes: tuple[float, float, int, int]) -> Performance:
    onset, release, pitch, velocity = zip(*notes, strict=True)
    return Performance(torch.tensor(onset), torch.tensor(release), torch.tensor(pitch), torch.tensor(velocity))


def test_a_repeated_note_ends_before_it_begins_again() -> None:
    repeated = performance((0.0, 0.5, 60, 64), (0.5, 1.0, 60, 64))
    tokens = encode_performance(repeated).tolist()
    assert tokens[4:6] == [NOTE_OFF + 60, NOTE_ON + 60]
    decoded = decode_performance(torch.tensor(tokens))
    torch.testing.assert_close(decoded.release.float(), repeated.release)


def test_a_performance_without_notes() -> None:
    silence = Performance(torch.zeros(0), torch.zeros(0), *torch.zeros(2, 0, dtype=torch.int64))
    assert encode_performance(silence).tolist() == [BEGIN]
    assert all(len(part) == 0 for part in decode_performance(torch.tensor([BEGIN, VELOCITY, TIME_SHIFT, NOTE_OFF])))


def test_all_tokens_are_decoded() -> None:
    tokens = torch.randint(VOCABULARY, (5_000,), generator=torch.Generator().manual_seed(0))
    decoded = decode_performance(tokens)
    assert len(decoded.onset) == int(((tokens >= NOTE_ON) & (tokens < NOTE_OFF)).sum())
    assert bool((decoded.release >= decoded.onset).all())
    assert 1 <= int(decoded.velocity.min()) <= int(decoded.velocity.max()) <= 127


def test_invalid_notes_raise_value_error() -> None:
    with pytest.raises(ValueError, match="pitch must be from 0 to 127; got 128 to 128"):
        encode_performance(performance((0.0, 1.0, 128, 64)))
    with pytest.raises(ValueError, match="velocity must be from 1 to 127; got 0 to 0"):
        encode_performance(performance((0.0, 1.0, 60, 0)))
    with pytest.raises(ValueError, match="onset must be at least 0 s; got -1"):
        encode_performance(performance((-1.0, 1.0, 60, 64)))
    with pytest.raises(ValueError, match="release must not be before onset"):
        encode_performance(performance((1.0, 0.5, 60, 64)))
