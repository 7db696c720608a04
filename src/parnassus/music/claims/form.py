"""Keys and the form of pieces, checked (book sec. 10.1)."""

import torch

from parnassus.atlas import Evidence, all_of, at_least, claim, close
from parnassus.music.form import form_entropy, modulating_pieces, sections
from parnassus.music.keys import KEYS, Key, key_of, key_scores
from parnassus.music.voices import VoiceTokens, transposed


@claim("B10.1-10")
def the_plan_goes_home_by_relative_minor_and_dominant() -> Evidence:
    """From C major the plan is A minor, G major and C major again, and every piece keeps to its keys."""
    plan = [str(key) for key in sections(Key(0))]
    pieces, home = modulating_pieces(200, seed=0)
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
def the_key_of_sixteen_notes_can_be_told() -> Evidence:
    """Krumhansl's profiles name the key of a section; transposed notes have the transposed key."""
    pieces, home = modulating_pieces(500, seed=0)
    wanted = torch.tensor([[KEYS.index(key) for key in sections(Key(tonic))] for tonic in home.tolist()])
    found = key_scores(pieces.view(500, 4, -1)).argmax(-1)
    higher = key_scores(pieces[:, :16] + 5).argmax(-1)
    return all_of(
        sections_named=at_least((found == wanted).double().mean(), 0.9),
        a_fourth_higher=close((higher == (found[:, 0] + 5) % 12 + found[:, 0] // 12 * 12).double().mean(), 1.0, atol=0),
        a_scale=close(float(key_of(torch.tensor([60, 62, 64, 65, 67, 69, 71, 72, 67, 64, 60])) == Key(0)), 1.0, atol=0),
    )


@claim("B10.1-10")
def the_entropy_of_a_piece_is_known() -> Evidence:
    """By counting 400,000 short pieces, with the bias of counting taken off, it is log 12 + log 15 + n log 4 − …"""
    pieces, _ = modulating_pieces(400_000, bars=2, seed=0)
    source = torch.Generator().manual_seed(0)
    code = torch.randint(2**40, (pieces.shape[1],), generator=source)  # a number for each piece, no two alike
    counts = torch.unique((pieces * code).sum(1), return_counts=True)[1].double()
    share = counts / counts.sum()
    counted = -(share * share.log()).sum() + (len(counts) - 1) / (2 * len(pieces))  # Miller & Madow 1955
    return close(counted, form_entropy(2), atol=0.01)


@claim("B10.1.2-4", "B10.1.2-15")
def chorales_and_tokens_stand_for_each_other() -> Evidence:
    """Four voices become four tokens a step and come back as they were, silence and transposition included."""
    piece = torch.tensor([[72, 67, 64, 48], [72, -1, 65, 53], [74, 67, -1, 55]])
    tokens = VoiceTokens.fit([transposed(piece, -12), transposed(piece, 12)])
    again = tokens.decode(tokens.encode(piece))
    cut = tokens.decode(tokens.encode(piece)[:-2])  # a chord without its bass
    return all_of(
        notes=close(again.double(), piece.double(), atol=0),
        whole_chords=close(cut.double(), piece[:2].double(), atol=0),
        tokens=close(float(len(tokens.encode(piece))), 1.0 + 4 * 3, atol=0),
        vocabulary=close(float(tokens.vocabulary), (86 - 36 + 1) + 2.0, atol=0),
    )
