"""The voice tokeniser: lossless encoding and transposition."""

import pytest
import torch

from parnassus.music import VoiceTokeniser, transpose


def test_decoding_inverts_encoding() -> None:
    generator = torch.Generator().manual_seed(0)
    pieces = [torch.randint(35, 80, (length, 4), generator=generator) for length in (1, 5, 30)]
    pieces = [torch.where(torch.rand(piece.shape, generator=generator) < 0.1, -1, piece) for piece in pieces]
    tokeniser = VoiceTokeniser.fit(pieces)
    for piece in pieces:
        encoded = tokeniser.encode(piece)
        assert int(encoded[0]) == 0
        assert 1 <= int(encoded[1:].min()) <= int(encoded.max()) < tokeniser.vocabulary
        assert torch.equal(tokeniser.decode(encoded), piece)


def test_transpose_preserves_silence_and_is_invertible() -> None:
    piece = torch.tensor([[60, -1, 55, 40]])
    assert transpose(piece, 2).tolist() == [[62, -1, 57, 42]]
    assert torch.equal(transpose(transpose(piece, 5), -5), piece)


def test_notes_out_of_range_and_silent_pieces_raise_value_error() -> None:
    with pytest.raises(ValueError, match="pitches must be from 50 to 60; got 60 to 61"):
        VoiceTokeniser(50, 60).encode(torch.tensor([[60, 61, -1, -1]]))
    with pytest.raises(ValueError, match="all are silent"):
        VoiceTokeniser.fit([torch.full((3, 4), -1)])
