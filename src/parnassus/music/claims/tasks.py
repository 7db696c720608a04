"""Solos over chords, gaps in melodies, melodies for a rhythm: what each task asks for, checked (book sec. 10.1.2)."""

import torch
from torch import nn

from parnassus.atlas import Correction, Evidence, all_of, at_least, at_most, claim, close, erratum
from parnassus.attention.bert import bert
from parnassus.attention.gpt import gpt
from parnassus.attention.seq2seq import seq2seq
from parnassus.music.form import LOWEST, modulating_pieces
from parnassus.music.inpainting import vary
from parnassus.music.rhythm import VOCABULARY, factorised, melodies, rhythm_tokens, strong, strong_tone_share
from parnassus.music.solo import chord_tone_share, chord_tones, solo_nats, solos_over_chords
from parnassus.text.choosing import chooser


@claim("B10.1.2-7")
def a_solo_has_notes_of_the_chord_on_every_beat() -> Evidence:
    """Solos fit their own chords always, those of other pieces rarely: of the scale's 7 notes 3 are in a chord."""
    solos = solos_over_chords(2_000, keys=1, seed=0)
    other = solos.chords.roll(1, 0)[:, 1:-2]  # the first and the last two are the same in every piece
    middle = solos.notes.view(2_000, -1, 4)[:, 1:-2].flatten(1)
    return all_of(
        own=close(chord_tone_share(solos.notes, solos.chords), 1.0, atol=0),
        other=at_most(chord_tone_share(middle, other), 0.6),
        notes_of_a_chord=close(chord_tones(torch.arange(24)).double().sum(1), torch.full((24,), 3.0).double(), atol=0),
    )


@claim("B10.1.2-7")
def the_solo_is_a_product_of_shifted_steps() -> Evidence:
    """p(solo | chords) = Π_t p(s_t | s_1 … s_{t−1}, chords): all at once as note by note (book sec. 10.1.2)."""
    torch.manual_seed(0)
    model = seq2seq((25, 26), 16, width=16, depth=1).double().eval()
    solos = solos_over_chords(5, bars=4, seed=0)
    chords, notes = solos.chords + 1, nn.functional.pad(solos.notes - 58, (1, 0), value=1)
    reader, state, total = model.given(chords), None, torch.zeros(5, dtype=torch.float64)
    for time in range(16):
        logits, state = reader.read(notes[:, time : time + 1], state)
        total += logits.log_softmax(-1).gather(1, notes[:, time + 1 : time + 2])[:, 0]
    with torch.no_grad():
        return close(total, model.log_prob(chords, notes), rtol=1e-9)


@claim("B10.1.2-7")
def shifted_by_one_step_no_note_sees_itself() -> Evidence:
    """A change of note t moves no prediction up to that of t, and the next one does move (book sec. 10.1.2)."""
    torch.manual_seed(0)
    model = seq2seq((25, 26), 16, width=16, depth=2).double().eval()
    chords, notes = torch.randint(1, 25, (1, 4)), torch.randint(2, 25, (1, 16))
    changed = notes.clone()
    changed[0, 7] += 1  # it is what the seventh prediction is about: the input begins one step earlier
    with torch.no_grad():
        moved = (model(chords, changed) - model(chords, notes)).abs().amax((0, 2))
    return all_of(before=close(moved[:7], torch.zeros(7).double(), atol=0), after=at_least(moved[7], 1e-6))


@claim("B10.1.2-7")
def the_price_of_a_solo_is_known() -> Evidence:
    """By the law each allowed note is as likely: counted frequencies of the first note agree with its nats."""
    solos = solos_over_chords(20_000, bars=3, keys=1, seed=0)
    first = solos.notes[:, 0]
    share = torch.unique(first, return_counts=True)[1].double() / len(first)
    entropy = -(share * share.log()).sum()
    return close(entropy, solo_nats(solos)[:, 0].mean(), atol=1e-3)


@erratum(
    "B10.1.2-7",
    printed="a sequence of chords can be input into a decoder",
    right="the chords are input into the encoder, whose attention is global",
)
def a_decoder_would_not_hear_the_chords_to_come() -> Correction:
    """Change the last chord: a decoder's first note cannot know, an encoder's can (book sec. 10.1.2)."""
    torch.manual_seed(0)
    chords = torch.randint(1, 25, (1, 8))
    other = chords.clone()
    other[0, -1] = 1 + chords[0, -1] % 24
    decoder, begin = gpt(25, 8, width=16), torch.ones(1, 1, dtype=torch.int64)
    both = seq2seq((25, 26), 32, width=16)
    with torch.no_grad():
        in_decoder = (decoder(other) - decoder(chords))[0, 0].abs().max()
        in_encoder = (both(other, begin) - both(chords, begin))[0, 0].abs().max()
    return Correction(printed=at_least(in_decoder, 1e-6), corrected=at_least(in_encoder, 1e-6))


@claim("B10.1.2-5")
def a_variation_leaves_the_rest_untouched() -> Evidence:
    """What is not hidden stays as it was, and what is filled depends on both of its sides (book sec. 10.1.2)."""
    torch.manual_seed(0)
    model = bert(35, 16, width=16).eval()
    tokens = modulating_pieces(20, bars=2, seed=0)[0][:, :16] - LOWEST + model.FIRST
    places = torch.zeros(16, dtype=torch.bool)
    places[4:8] = True
    varied = vary(model, tokens, places, chooser(generator=torch.Generator().manual_seed(0)))
    gap = tokens[:1].masked_fill(places, model.MASK)
    sides = gap.repeat(3, 1)
    sides[1, 3], sides[2, 8] = 2 + sides[1, 3] % 30, 2 + sides[2, 8] % 30  # the neighbours before and after
    with torch.no_grad():
        logits = model(sides)[:, 5]
    return all_of(
        kept=close((varied == tokens)[:, ~places].double().mean(), 1.0, atol=0),
        anew=at_least((varied != tokens)[:, places].double().mean(), 0.1),
        past=at_least((logits[1] - logits[0]).abs().max(), 1e-6),
        future=at_least((logits[2] - logits[0]).abs().max(), 1e-6),
    )


@claim("B10.1.2-6")
def rhythm_and_pitch_are_two_factors_of_one_law() -> Evidence:
    """p(r, x) = Π_n p(r_n | r_<n, x_<n) · p(x_n | r_≤n, x_<n): two halves of one sum of logs (book sec. 10.1.2)."""
    torch.manual_seed(0)
    model = gpt(VOCABULARY, 33, width=16, depth=1).double().eval()
    music = melodies(5, seed=0)
    tokens = factorised(rhythm_tokens(music.durations), music.pitches)
    with torch.no_grad():
        nll = model.nll(tokens)
        pitch, rhythm = -nll[:, 1::2].sum(1), -nll[:, ::2].sum(1)
        return all_of(
            factors=close(pitch + rhythm, model.log_prob(tokens), rtol=1e-9),
            notes=close(float(nll[:, 1::2].shape[1]), 16.0, atol=0),
        )


@claim("B10.1.2-6")
def who_hears_no_rhythm_must_miss_something() -> Evidence:
    """On strong beats all notes are of the tonic chord, elsewhere only some: the pitch depends on the metre."""
    music = melodies(2_000, seed=0)
    beat = strong(music.durations)
    of_chord = torch.isin(music.pitches % 12, torch.tensor([0, 4, 7]))
    return all_of(
        strong=close(strong_tone_share(music.pitches, music.durations), 1.0, atol=0),
        weak=at_most(of_chord[~beat].double().mean(), 0.5),
    )
