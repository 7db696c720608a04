"""Claims about solos over chords, inpainting, and melodies for a given rhythm (book sec. 10.1.2)."""

import torch
from torch import nn

from parnassus.atlas import Correction, Evidence, all_of, claim, close, erratum, greater_equal, less_equal
from parnassus.attention.models.bert import bert
from parnassus.attention.models.gpt import gpt
from parnassus.attention.models.seq2seq import seq2seq
from parnassus.music.form import LOWEST, generate_modulating_pieces
from parnassus.music.inpainting import resample_notes
from parnassus.music.rhythm import (
    FIRST_PITCH,
    VOCABULARY,
    generate_melodies,
    generate_melody,
    interleave_tokens,
    is_strong_beat,
    rhythm_tokens,
    strong_chord_tone_fraction,
)
from parnassus.music.solo import LOWEST as LOWEST_NOTE
from parnassus.music.solo import chord_tone_fraction, chord_tones, generate_solos, solo_nll
from parnassus.text.sampling import greedy, token_sampler


@claim("B10.1.2-7")
def solos_have_chord_tones_on_every_beat() -> Evidence:
    """Solos always match their own chords and rarely those of other pieces: 3 of the 7 scale notes are chord tones."""
    solos = generate_solos(2_000, keys=1, seed=0)
    other = solos.chords.roll(1, 0)[:, 1:-2]  # the other chords are the same in all pieces
    middle = solos.notes.view(2_000, -1, 4)[:, 1:-2].flatten(1)
    return all_of(
        own_chords=close(chord_tone_fraction(solos.notes, solos.chords), 1.0, atol=0),
        other_chords=less_equal(chord_tone_fraction(middle, other), 0.6),
        notes_of_a_chord=close(chord_tones(torch.arange(24)).double().sum(1), torch.full((24,), 3.0).double(), atol=0),
    )


@claim("B10.1.2-7")
def the_decoder_factorises_the_solo() -> Evidence:
    """p(solo | chords) = Π_t p(s_t | s_1 … s_{t−1}, chords), in parallel as incrementally (book sec. 10.1.2)."""
    torch.manual_seed(0)
    model = seq2seq((25, 26), 16, width=16, depth=1).double().eval()
    solos = generate_solos(5, bars=4, seed=0)
    chords, notes = solos.chords + 1, nn.functional.pad(solos.notes - 58, (1, 0), value=1)
    conditioned_decoder, state, total = model.condition_on(chords), None, torch.zeros(5, dtype=torch.float64)
    for time in range(16):
        logits, state = conditioned_decoder.read(notes[:, time : time + 1], state)
        total += logits.log_softmax(-1).gather(1, notes[:, time + 1 : time + 2])[:, 0]
    with torch.no_grad():
        return close(total, model.log_prob(chords, notes), rtol=1e-9)


@claim("B10.1.2-7")
def the_shifted_decoder_is_causal() -> Evidence:
    """Changing note t leaves the predictions of notes up to t unchanged and changes the next (book sec. 10.1.2)."""
    torch.manual_seed(0)
    model = seq2seq((25, 26), 16, width=16, depth=2).double().eval()
    chords, notes = torch.randint(1, 25, (1, 4)), torch.randint(2, 25, (1, 16))
    changed = notes.clone()
    changed[0, 7] += 1  # the target of prediction 6: inputs are shifted by one step
    with torch.no_grad():
        change = (model(chords, changed) - model(chords, notes)).abs().amax((0, 2))
    return all_of(before=close(change[:7], torch.zeros(7).double(), atol=0), after=greater_equal(change[7], 1e-6))


@claim("B10.1.2-7")
def the_entropy_of_a_solo_is_known() -> Evidence:
    """Allowed notes are equally likely: the empirical entropy of the first note equals the mean of its `solo_nll`."""
    solos = generate_solos(20_000, bars=3, keys=1, seed=0)
    first = solos.notes[:, 0]
    frequency = torch.unique(first, return_counts=True)[1].double() / len(first)
    entropy = -(frequency * frequency.log()).sum()
    return close(entropy, solo_nll(solos)[:, 0].mean(), atol=1e-3)


@erratum(
    "B10.1.2-7",
    printed="a sequence of chords can be input into a decoder",
    right="the chords are input into the encoder, whose attention is global",
)
def a_decoder_cannot_see_future_chords() -> Correction:
    """Changing the last chord can affect the first output with an encoder, but not without one (book sec. 10.1.2)."""
    torch.manual_seed(0)
    chords = torch.randint(1, 25, (1, 8))
    other = chords.clone()
    other[0, -1] = 1 + chords[0, -1] % 24
    decoder, begin = gpt(25, 8, width=16), torch.ones(1, 1, dtype=torch.int64)
    encoder_decoder = seq2seq((25, 26), 32, width=16)
    with torch.no_grad():
        in_decoder = (decoder(other) - decoder(chords))[0, 0].abs().max()
        in_encoder = (encoder_decoder(other, begin) - encoder_decoder(chords, begin))[0, 0].abs().max()
    return Correction(printed=greater_equal(in_decoder, 1e-6), corrected=greater_equal(in_encoder, 1e-6))


@claim("B10.1.2-5")
def inpainting_keeps_unmasked_notes() -> Evidence:
    """Unmasked notes are unchanged; predictions depend on the notes before and after the gap (book sec. 10.1.2)."""
    torch.manual_seed(0)
    model = bert(35, 16, width=16).eval()
    tokens = generate_modulating_pieces(20, bars=2, seed=0)[0][:, :16] - LOWEST + model.FIRST
    positions = torch.zeros(16, dtype=torch.bool)
    positions[4:8] = True
    variation = resample_notes(model, tokens, positions, token_sampler(generator=torch.Generator().manual_seed(0)))
    gap = tokens[:1].masked_fill(positions, model.MASK)
    sides = gap.repeat(3, 1)
    sides[1, 3], sides[2, 8] = 2 + sides[1, 3] % 30, 2 + sides[2, 8] % 30  # the neighbours before and after
    with torch.no_grad():
        logits = model(sides)[:, 5]
    return all_of(
        kept=close((variation == tokens)[:, ~positions].double().mean(), 1.0, atol=0),
        resampled=greater_equal((variation != tokens)[:, positions].double().mean(), 0.1),
        past=greater_equal((logits[1] - logits[0]).abs().max(), 1e-6),
        future=greater_equal((logits[2] - logits[0]).abs().max(), 1e-6),
    )


@claim("B10.1.2-6", "B10.1.2-16")
def rhythm_and_pitch_factorise() -> Evidence:
    """p(r, x) = Π_n p(r_n | r_<n, x_<n) · p(x_n | r_≤n, x_<n) (book sec. 10.1.2)."""
    torch.manual_seed(0)
    model = gpt(VOCABULARY, 33, width=16, depth=1).double().eval()
    music = generate_melodies(5, seed=0)
    tokens = interleave_tokens(rhythm_tokens(music.durations), music.pitches)
    with torch.no_grad():
        nll = model.nll(tokens)
        pitch, rhythm = -nll[:, 1::2].sum(1), -nll[:, ::2].sum(1)
        return all_of(
            factors=close(pitch + rhythm, model.log_prob(tokens), rtol=1e-9),
            notes=close(float(nll[:, 1::2].shape[1]), 16.0, atol=0),
        )


@claim("B10.1.2-6")
@torch.no_grad()
def a_melody_for_a_rhythm_reads_the_rhythm_of_each_note_first() -> Evidence:
    """Pitch n is the argmax of p(x_n | r_1, x_1, …, r_n), in one pass over rhythm and pitches so far."""
    torch.manual_seed(0)
    model = gpt(VOCABULARY, 17, width=16, depth=1).double().eval()
    for parameter in model.parameters():
        parameter.mul_(6.0)
    durations = generate_melodies(4, notes=8, seed=0).durations
    rhythm = rhythm_tokens(durations)
    pitches = generate_melody(model, rhythm, greedy)
    expected = torch.full_like(pitches, 60)
    for n in range(8):
        tokens = interleave_tokens(rhythm, expected)[:, : 2 * n + 2]
        expected[:, n] = model(tokens)[:, -1, FIRST_PITCH:].argmax(-1) + LOWEST_NOTE
    other = generate_melody(model, rhythm.flip(1), greedy)
    return all_of(
        pitches=close(pitches, expected),
        effect_of_the_rhythm=greater_equal((other != pitches).double().mean(), 0.1),
        tokens_of_the_rhythm=close(rhythm, 1 + 4 * ((durations.cumsum(1) - durations) % 8) + durations - 1),
    )


@claim("B10.1.2-6")
def pitch_depends_on_the_metre() -> Evidence:
    """On strong beats all notes belong to the tonic chord, on weak beats at most half."""
    music = generate_melodies(2_000, seed=0)
    beat = is_strong_beat(music.durations)
    of_chord = torch.isin(music.pitches % 12, torch.tensor([0, 4, 7]))
    return all_of(
        strong_beats=close(strong_chord_tone_fraction(music.pitches, music.durations), 1.0, atol=0),
        weak_beats=less_equal(of_chord[~beat].double().mean(), 0.5),
    )
