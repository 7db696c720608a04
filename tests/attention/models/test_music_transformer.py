"""The Music Transformer: cached decoding and relative positions."""

import torch

from parnassus.attention.models.music_transformer import music_transformer


def test_cached_decoding_matches_full_pass_and_is_causal() -> None:
    torch.manual_seed(0)
    model = music_transformer(9, 12, width=16, heads=2, depth=2).eval()
    tokens = torch.randint(9, (2, 12))
    logits, cache = model.read(tokens[:, :5])
    for position in range(5, 12):
        logits, cache = model.read(tokens[:, position : position + 1], cache)
    torch.testing.assert_close(logits, model(tokens)[:, -1].detach(), rtol=1e-4, atol=1e-5)
    changed = tokens.clone()
    changed[:, 7] = (changed[:, 7] + 1) % 9
    torch.testing.assert_close(model(changed)[:, :7], model(tokens)[:, :7])


def test_logits_do_not_depend_on_the_start_position() -> None:
    """A sequence of equal tokens has equal logits at all positions."""
    torch.manual_seed(0)
    model = music_transformer(9, 12, width=16, heads=2, depth=1).eval()
    constant = torch.full((1, 12), 4)
    torch.testing.assert_close(model(constant)[:, :1].expand(-1, 12, -1), model(constant), rtol=1e-4, atol=1e-5)
