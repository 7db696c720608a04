"""Performer attention compared with its definition."""

from collections.abc import Callable
from functools import partial

import pytest
import torch
from torch import Tensor

from parnassus.attention import (
    Alibi,
    PerformerAttention,
    Rotary,
    SelfAttention,
    causal_performer_attention,
    gaussian_directions,
    orthogonal_directions,
    performer_attention,
    positive_features,
)
from parnassus.attention.efficient.performer import MAX_CACHED_SCORES


def normal_inputs(time: int = 20) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(2, 3, time, 4, generator=generator, dtype=torch.float64) for _ in range(3))
    return q, k, v, gaussian_directions(16, 4, generator=generator).double()


def reference_attention(q: Tensor, k: Tensor, v: Tensor, directions: Tensor, mask: Tensor) -> Tensor:
    scale = q.shape[-1] ** -0.25
    kernel = positive_features(q * scale, directions) @ positive_features(k * scale, directions).mT * mask
    return kernel @ v / kernel.sum(-1, keepdim=True)


def test_attention_matches_reference() -> None:
    q, k, v, directions = normal_inputs()
    full_mask, causal_mask = torch.ones(20, 20), torch.ones(20, 20).tril()
    torch.testing.assert_close(
        performer_attention(q, k, v, directions), reference_attention(q, k, v, directions, full_mask)
    )
    torch.testing.assert_close(
        causal_performer_attention(q, k, v, directions), reference_attention(q, k, v, directions, causal_mask)
    )


def test_masked_keys_have_no_effect_and_a_full_mask_gives_zero() -> None:
    q, k, v, directions = normal_inputs()
    visible = torch.ones(2, 1, 20, dtype=torch.bool)
    visible[0, 0, 15:] = False
    v[0, :, 15:] = torch.nan
    output = performer_attention(q, k, v, directions, visible=visible)
    torch.testing.assert_close(output[0], performer_attention(q[0], k[0, :, :15], v[0, :, :15], directions))
    causal = causal_performer_attention(q, k, v, directions, visible=visible)
    expected = causal_performer_attention(q[0, :, :15], k[0, :, :15], v[0, :, :15], directions)
    torch.testing.assert_close(causal[0, :, :15], expected)
    no_keys = torch.zeros(2, 1, 20, dtype=torch.bool)
    for attend in (performer_attention, causal_performer_attention):
        assert not attend(q, k, v, directions, visible=no_keys).any()


def test_gradients_match_reference() -> None:
    q, k, v, directions = normal_inputs(8)
    mask = torch.ones(8, 8)

    def gradients(attend: Callable[[Tensor, Tensor, Tensor], Tensor]) -> tuple[Tensor, ...]:
        leaves = [x.clone().requires_grad_() for x in (q, k, v)]
        return torch.autograd.grad(attend(*leaves).square().sum(), leaves)

    actual_gradients = gradients(partial(performer_attention, directions=directions))
    expected_gradients = gradients(partial(reference_attention, directions=directions, mask=mask))
    for actual, expected in zip(actual_gradients, expected_gradients, strict=True):
        torch.testing.assert_close(actual, expected)


def test_directions_receive_gradients_and_vmap_is_supported() -> None:
    q, k, v, directions = normal_inputs(8)
    first, second = (directions.clone().requires_grad_() for _ in range(2))
    performer_attention(q, k, v, first).square().sum().backward()
    reference_attention(q, k, v, second, torch.ones(8, 8)).square().sum().backward()
    torch.testing.assert_close(first.grad, second.grad)

    def loss(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return performer_attention(q, k, v, directions).square().sum()

    by_row = torch.func.vmap(torch.func.grad(loss))(q, k, v)
    torch.testing.assert_close(by_row, torch.func.grad(loss)(q, k, v))


def test_autocast_gradients_match_single_precision() -> None:
    torch.manual_seed(0)
    layer, x = PerformerAttention(16, 2, features=32), torch.randn(2, 9, 16)
    exact = layer(x)
    (expected_gradient,) = torch.autograd.grad(exact.square().sum(), layer.in_proj.weight)
    with torch.autocast("cpu", torch.bfloat16):
        low_precision = layer(x)
        loss = low_precision.square().sum()
    assert low_precision.dtype == torch.bfloat16
    torch.testing.assert_close(low_precision.float(), exact, atol=0.05, rtol=0)
    (gradient,) = torch.autograd.grad(loss, layer.in_proj.weight)
    assert float((gradient - expected_gradient).norm()) < 0.05 * float(expected_gradient.norm())


def test_per_head_processing_of_long_sequences_matches_joint_processing() -> None:
    generator = torch.Generator().manual_seed(0)
    q, k, v = (
        torch.randn(2, 1, MAX_CACHED_SCORES // 256, 4, generator=generator, dtype=torch.float64) for _ in range(3)
    )
    directions = gaussian_directions(256, 4, generator=generator).double()
    all_keys = torch.ones(1, 1, MAX_CACHED_SCORES // 256, dtype=torch.bool)  # a mask disables processing per head
    expected = performer_attention(q, k, v, directions, visible=all_keys)
    torch.testing.assert_close(performer_attention(q, k, v, directions), expected)


def test_large_scores_give_finite_outputs() -> None:
    q, k, v, directions = (x.float() for x in normal_inputs())
    assert performer_attention(1e3 * q, 1e3 * k, v, directions).isfinite().all()
    assert causal_performer_attention(1e3 * q, 1e3 * k, v, directions).isfinite().all()


def test_many_features_approximate_softmax_attention() -> None:
    torch.manual_seed(0)
    exact = SelfAttention(8, 2, causal=True, positions=Rotary(4, 12)).double()
    x = 0.5 * torch.randn(2, 12, 8).double()
    layer = PerformerAttention.from_softmax(exact, features=20_000)
    torch.testing.assert_close(layer(x), exact(x), atol=0.02, rtol=0)
    torch.testing.assert_close(layer.weights(x), exact.weights(x), atol=0.02, rtol=0)


def test_cached_decoding_matches_full_pass() -> None:
    torch.manual_seed(0)
    layer = PerformerAttention(8, 2, features=32, causal=True).double()
    x = torch.randn(3, 9, 8).double()
    cache = layer.empty_cache(3, 9)
    outputs = [layer(x[:, a:b], cache=cache) for a, b in ((0, 4), (4, 5), (5, 9))]
    torch.testing.assert_close(torch.cat(outputs, 1), layer(x))
    assert cache.count == 9


def test_cached_decoding_with_a_mask_matches_full_pass() -> None:
    torch.manual_seed(0)
    layer = PerformerAttention(8, 2, features=32, causal=True).double()
    x, mask = torch.randn(3, 9, 8).double(), torch.rand(3, 1, 9) < 0.7
    cache = layer.empty_cache(3, 9)
    outputs = [layer(x[:, a:b], mask[..., a:b], cache) for a, b in ((0, 4), (4, 5), (5, 9))]
    torch.testing.assert_close(torch.cat(outputs, 1), layer(x, mask))


def test_empty_keys_give_zero() -> None:
    q, k, v, directions = normal_inputs()
    output = performer_attention(q, k[..., :0, :], v[..., :0, :], directions)
    torch.testing.assert_close(output, torch.zeros_like(q))
    for causal in (False, True):
        assert PerformerAttention(8, 2, features=4, causal=causal)(torch.zeros(2, 0, 8)).shape == (2, 0, 8)


def test_redraw_changes_the_directions_only() -> None:
    torch.manual_seed(0)
    layer = PerformerAttention(8, 2, features=32, draw=orthogonal_directions)
    before, parameters = layer.directions.clone(), [p.clone() for p in layer.parameters()]
    layer.redraw()
    assert not torch.equal(layer.directions, before)
    assert all(torch.equal(a, b) for a, b in zip(parameters, layer.parameters(), strict=True))
    assert "directions" in layer.state_dict()  # directions are saved with the model


def test_invalid_arguments_raise() -> None:
    layer = PerformerAttention(8, 2, features=4)
    with pytest.raises(ValueError, match="the same for all queries"):
        layer(torch.zeros(1, 3, 8), torch.ones(3, 3, dtype=torch.bool).tril())
    with pytest.raises(TypeError, match="must be a RunningSumsCache"):
        layer(torch.zeros(1, 3, 8), cache=layer.empty_cache(1, 3))
    with pytest.raises(ValueError, match="no bias on the scores"):
        PerformerAttention(8, 2, positions=Alibi(2))(torch.zeros(1, 3, 8))
