"""Claims about keys and the form of pieces (book sec. 10.1)."""

import torch

from parnassus.atlas import Evidence, all_of, claim, close, greater_equal
from parnassus.music.form import form_entropy, generate_modulating_pieces, sections
from parnassus.music.keys import KEYS, Key, estimate_key, fraction_in_key, key_scores
from parnassus.music.voice_tokeniser import VoiceTokeniser, transpose


@claim("B10.1-10")
def pieces_modulate_by_relative_minor_and_dominant() -> Evidence:
    """The keys are C major, A minor, G major, C major, and every note belongs to the scale of its section."""
    plan = [str(key) for key in sections(Key(0))]
    pieces, home = generate_modulating_pieces(200, seed=0)
    inside = [
        bool(torch.isin(part % 12, torch.tensor(key.scale)).all())
        for piece, tonic in zip(pieces, home.tolist(), strict=True)
        for part, key in zip(piece.view(4, -1), sections(Key(tonic)), strict=True)
    ]
    return all_of(
        keys=close(float(plan == ["C major", "A minor", "G major", "C major"]), 1.0, atol=0),
        notes_of_the_scale=close(sum(inside) / len(inside), 1.0, atol=0),
    )


@claim("B10.1-10")
def the_key_of_sixteen_notes_can_be_estimated() -> Evidence:
    """Krumhansl's profiles identify the key of a section; transposed notes have the transposed key."""
    pieces, home = generate_modulating_pieces(500, seed=0)
    expected = torch.tensor([[KEYS.index(key) for key in sections(Key(tonic))] for tonic in home.tolist()])
    estimated = key_scores(pieces.view(500, 4, -1)).argmax(-1)
    higher = key_scores(pieces[:, :16] + 5).argmax(-1)
    scale = torch.tensor([60, 62, 64, 65, 67, 69, 71])
    fractions = torch.tensor([fraction_in_key(scale, key) for key in (Key(0), Key(7), Key(6), Key(9, is_minor=True))])
    return all_of(
        notes_of_c_major_in_other_keys=close(7 * fractions, torch.tensor([7.0, 6.0, 2.0, 7.0]), atol=1e-6),
        sections=greater_equal((estimated == expected).double().mean(), 0.9),
        a_fourth_higher=close(
            (higher == (estimated[:, 0] + 5) % 12 + estimated[:, 0] // 12 * 12).double().mean(), 1.0, atol=0
        ),
        key_of_a_scale=close(
            float(estimate_key(torch.tensor([60, 62, 64, 65, 67, 69, 71, 72, 67, 64, 60])) == Key(0)), 1.0, atol=0
        ),
    )


@claim("B10.1-10")
def the_entropy_of_a_piece_is_known() -> Evidence:
    """A bias-corrected plug-in estimate from 400,000 short pieces equals log 12 + log 15 + n log 4 − …"""
    pieces, _ = generate_modulating_pieces(400_000, bars=2, seed=0)
    generator = torch.Generator().manual_seed(0)
    code = torch.randint(2**40, (pieces.shape[1],), generator=generator)  # random hash; distinct for distinct pieces
    counts = torch.unique((pieces * code).sum(1), return_counts=True)[1].double()
    frequency = counts / counts.sum()
    counted = -(frequency * frequency.log()).sum() + (len(counts) - 1) / (2 * len(pieces))  # Miller & Madow 1955
    return close(counted, form_entropy(2), atol=0.01)


@claim("B10.1.2-4", "B10.1.2-15", "B10.1.2-16")
def voice_tokens_are_lossless() -> Evidence:
    """Four voices become four tokens per step and are decoded exactly, including silence and transposition."""
    piece = torch.tensor([[72, 67, 64, 48], [72, -1, 65, 53], [74, 67, -1, 55]])
    tokeniser = VoiceTokeniser.fit([transpose(piece, -12), transpose(piece, 12)])
    decoded = tokeniser.decode(tokeniser.encode(piece))
    truncated = tokeniser.decode(tokeniser.encode(piece)[:-2])  # the last chord is incomplete
    return all_of(
        notes=close(decoded.double(), piece.double(), atol=0),
        whole_chords=close(truncated.double(), piece[:2].double(), atol=0),
        tokens=close(float(len(tokeniser.encode(piece))), 1.0 + 4 * 3, atol=0),
        vocabulary=close(float(tokeniser.vocabulary), (86 - 36 + 1) + 2.0, atol=0),
    )
