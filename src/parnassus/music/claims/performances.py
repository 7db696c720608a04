"""Claims about performances as events, and about their continuation by a Music Transformer (book sec. 10.1.2)."""

from itertools import islice

import torch
from torch import Tensor
from torch.optim import Adam

from parnassus.atlas import Evidence, all_of, claim, close, greater_equal, less_equal
from parnassus.attention.models.gpt import LanguageModel, gpt
from parnassus.attention.models.music_transformer import music_transformer
from parnassus.music.performance_tokeniser import (
    BEGIN,
    NOTE_OFF,
    NOTE_ON,
    TIME_SHIFT,
    VELOCITY,
    VOCABULARY,
    Performance,
    decode_performance,
    encode_performance,
)
from parnassus.text.generation import stream_tokens
from parnassus.text.sampling import greedy


def random_performance(notes: int = 300) -> Performance:
    """Chords and melodies with pauses of up to 3 s, notes of up to 2.5 s, and all velocities."""
    generator = torch.Generator().manual_seed(0)
    gaps = 3 * torch.rand(notes, generator=generator, dtype=torch.float64) ** 6
    onset = gaps.cumsum(0)
    release = onset + 0.02 + 2.5 * torch.rand(notes, generator=generator, dtype=torch.float64) ** 2
    pitch = 21 + torch.arange(notes) * 7 % 88  # the same pitch only after 88 notes
    return Performance(onset, release, pitch, torch.randint(1, 128, (notes,), generator=generator))


@claim("B10.1.2-15")
def performance_events_keep_timing_and_dynamics() -> Evidence:
    """Decoded onsets and ends differ by at most 5 ms, velocities by 2 of 127, pitches not at all (book sec. 10.1.2)."""
    performance = random_performance()
    tokens = encode_performance(performance)
    decoded = decode_performance(tokens)
    order = torch.argsort(torch.round(performance.onset * 100) * 128 + performance.pitch)
    onset, release, pitch, velocity = (part[order] for part in performance)
    same = encode_performance(decoded)
    return all_of(
        onset=close(decoded.onset, onset, atol=0.005 + 1e-9),
        release=close(decoded.release, release, atol=0.005 + 1e-9),
        pitch=close(decoded.pitch, pitch),
        velocity=close(decoded.velocity, velocity, atol=2.0),
        velocities_are_not_all_equal=greater_equal(decoded.velocity.double().std(), 20.0),
        tokens_of_the_decoded_performance=close(same, tokens),
        vocabulary=close(float(VOCABULARY), 1 + 128 + 128 + 100 + 32),
    )


@claim("B10.1.2-15")
def a_chord_and_a_louder_note_become_known_events() -> Evidence:
    """C and E for 1.23 s, and 0.2 s later a louder G of 10 ms: twelve events in this order (book sec. 10.1.2)."""
    seconds = torch.tensor([[0.0, 1.23], [0.0, 1.23], [1.43, 1.431]])
    chord = Performance(seconds[:, 0], seconds[:, 1], torch.tensor([64, 60, 67]), torch.tensor([66, 67, 127]))
    expected = [
        BEGIN, VELOCITY + 16, NOTE_ON + 60, NOTE_ON + 64, TIME_SHIFT + 99, TIME_SHIFT + 22, NOTE_OFF + 60,
        NOTE_OFF + 64, TIME_SHIFT + 19, VELOCITY + 31, NOTE_ON + 67, TIME_SHIFT, NOTE_OFF + 67,
    ]  # fmt: skip
    unfinished = decode_performance(torch.tensor([BEGIN, NOTE_OFF + 50, NOTE_ON + 60, TIME_SHIFT + 49, NOTE_ON + 61]))
    return all_of(
        events=close(encode_performance(chord), torch.tensor(expected)),
        open_notes_end_with_the_piece=close(unfinished.release, 0.5, atol=1e-12),
        pitches_without_a_velocity=close(torch.stack(unfinished[2:]), torch.tensor([[60, 61], [64, 64]])),
    )


def enlarge_weights(model: LanguageModel) -> LanguageModel:
    """Double precision, with larger weights, so that predictions are far from uniform."""
    with torch.no_grad():
        for parameter in model.double().eval().parameters():
            if parameter.ndim >= 2:
                parameter.mul_(5.0)
    return model


@claim("B10.1.2-15")
@torch.no_grad()
def a_music_transformer_knows_distances_but_no_positions() -> Evidence:
    """A repeated token has the same prediction everywhere, as in no model with absolute positions; order matters."""
    torch.manual_seed(0)
    model, absolute = (enlarge_weights(build(20, 16, width=16, heads=2, depth=2)) for build in (music_transformer, gpt))
    repeated, tokens = torch.full((1, 16), 7), torch.randint(20, (1, 16))
    reordered = torch.cat([tokens[:, :-1].flip(1), tokens[:, -1:]], 1)
    changed = tokens.clone()
    changed[:, 9] = (tokens[:, 9] + 1) % 20
    change = (model(changed) - model(tokens)).abs().amax((0, 2))
    return all_of(
        repeated_token=close(model(repeated)[0], model(repeated)[0, :1].expand(16, -1), atol=1e-12),
        with_absolute_positions=greater_equal(absolute(repeated)[0].std(0).max(), 0.05),
        order=greater_equal((model(reordered) - model(tokens))[0, -1].abs().max(), 0.05),
        past_is_unchanged=close(change[:9], 0.0),
        future_changes=greater_equal(change[9:], 1e-9),
    )


@claim("B10.1.2-4")
@torch.no_grad()
def streamed_notes_are_those_of_one_pass() -> Evidence:
    """Note by note from a cache, a continuation is the argmax of a pass over the piece so far (book sec. 10.1.2)."""
    torch.manual_seed(0)
    model, prompt = enlarge_weights(music_transformer(20, 40, width=16, heads=2, depth=2)), torch.randint(20, (3, 6))
    streamed = torch.stack(list(islice(stream_tokens(model, prompt, greedy, 30), 25)), 1)
    piece = prompt
    for _ in range(25):
        piece = torch.cat([piece, model(piece)[:, -1:].argmax(-1)], 1)
    return all_of(
        notes=close(streamed, piece[:, 6:]), different_notes=greater_equal(float(len(streamed.unique())), 3.0)
    )


def repeated_motifs(count: int) -> Tensor:
    """Motifs of three notes out of twelve, four times each."""
    return torch.randint(12, (count, 3)).repeat(1, 4)


@claim("B10.1.2-4", slow=True)
def a_trained_model_continues_a_new_motif() -> Evidence:
    """After training on repeated motifs, continuations have the notes of their prompts (book sec. 10.1.2).

    The total variation distance between their frequencies is near 0; between the notes of other pieces it is 0.7.
    """
    torch.manual_seed(0)
    model = music_transformer(12, 12, width=32, heads=4, depth=2)
    optimizer = Adam(model.parameters(), lr=4e-3)
    for _ in range(200):
        optimizer.zero_grad()
        model.loss(repeated_motifs(64)).backward()
        optimizer.step()
    pieces = repeated_motifs(300)
    prompt = pieces[:, :6]
    continued = torch.stack(list(stream_tokens(model.eval(), prompt, greedy, 6)), 1)
    frequency, own = (torch.nn.functional.one_hot(part, 12).double().mean(1) for part in (prompt, continued))
    return all_of(
        notes=greater_equal((continued == pieces[:, 6:]).double().mean(), 0.95),
        distance_to_the_prompt=less_equal((frequency - own).abs().sum(1).mean() / 2, 0.05),
        distance_to_another=greater_equal((frequency.roll(1, 0) - own).abs().sum(1).mean() / 2, 0.6),
    )
