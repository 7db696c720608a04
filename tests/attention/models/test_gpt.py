"""GPT against an einsum reference of GPT-2, decoding with a cache, and error messages."""

from collections.abc import Callable
from math import sqrt

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, gelu, layer_norm

from parnassus.attention import Block, LanguageModel, SelfAttention, feed_forward, gpt, rotary_gpt
from parnassus.layers import TokenEmbedding
from parnassus.text.autoregressive_model import AutoregressiveModel

TOKENS, WINDOW, WIDTH, HEADS = 11, 9, 12, 3


def model() -> LanguageModel:
    torch.manual_seed(0)
    return gpt(TOKENS, WINDOW, width=WIDTH, heads=HEADS, depth=2).double()


def text(time: int = WINDOW) -> Tensor:
    return torch.randint(0, TOKENS, (2, 10), generator=torch.Generator().manual_seed(1))[:, :time]


def by_hand(weights: dict[str, Tensor], tokens: Tensor) -> Tensor:
    """A reference implementation of GPT-2 from its weights."""
    time, part = tokens.shape[1], WIDTH // HEADS
    x = weights["embedding.tokens.weight"][tokens] + weights["embedding.positions.weight"][:time]
    for block in ("blocks.0.", "blocks.1."):
        w = {key.removeprefix(block): value for key, value in weights.items()}
        h = layer_norm(x, (WIDTH,), w["norms.0.weight"], w["norms.0.bias"])
        asked = torch.einsum("btd,ed->bte", h, w["attention.in_proj.weight"]) + w["attention.in_proj.bias"]
        q, k, v = asked.view(*tokens.shape, 3, HEADS, part).unbind(2)
        scores = torch.einsum("bqhd,bkhd->bhqk", q, k) / sqrt(part)
        scores = scores.masked_fill(torch.ones(time, time).triu(1).bool(), -torch.inf)
        mixed = torch.einsum("bhqk,bkhd->bqhd", scores.softmax(-1), v).flatten(2)
        x = x + mixed @ w["attention.out_proj.weight"].T + w["attention.out_proj.bias"]
        h = layer_norm(x, (WIDTH,), w["norms.1.weight"], w["norms.1.bias"])
        h = gelu(h @ w["dense.0.weight"].T + w["dense.0.bias"], approximate="tanh")
        x = x + h @ w["dense.2.weight"].T + w["dense.2.bias"]
    return layer_norm(x, (WIDTH,), weights["norm.weight"], weights["norm.bias"]) @ weights["embedding.tokens.weight"].T


def test_it_is_gpt_2() -> None:
    ours = model()
    torch.testing.assert_close(ours(text()), by_hand(dict(ours.state_dict()), text()))


@pytest.mark.parametrize("shape", [gpt, rotary_gpt])
@pytest.mark.parametrize("parts", [(1,) * WINDOW, (4, 5), (3, 1, 5)])
def test_decoding_in_parts_equals_one_pass(shape: Callable[..., LanguageModel], parts: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    reader, state = shape(TOKENS, WINDOW, width=WIDTH, heads=HEADS, depth=2).double(), None
    assert isinstance(reader, AutoregressiveModel)
    whole = reader(text())
    for start, end in zip(torch.tensor((0, *parts)).cumsum(0), torch.tensor(parts).cumsum(0), strict=False):
        logits, state = reader.read(text()[:, start:end], state)
        torch.testing.assert_close(logits, whole[:, end - 1])


def test_selected_rows_of_a_cache_continue_independently() -> None:
    reader = model()
    _, state = reader.read(text(5))
    chosen = torch.tensor([1, 1, 0])
    logits, _ = reader.read(text()[chosen, 5:7], state.rows(chosen))
    torch.testing.assert_close(logits, reader(text(7)[chosen])[:, -1])


def test_loss_nll_and_log_prob_agree() -> None:
    reader = model()
    nll = reader.nll(text())
    picked = reader(text()[:, :-1]).log_softmax(-1).gather(2, text()[:, 1:, None])[..., 0]
    torch.testing.assert_close(nll, -picked)
    torch.testing.assert_close(reader.loss(text()), nll.mean())
    torch.testing.assert_close(reader.log_prob(text()), -nll.sum(1))
    torch.testing.assert_close(cross_entropy(reader(text()[:, :-1]).mT, text()[:, 1:]), nll.mean())


def test_weights_at_the_end_of_residual_branches_are_smaller() -> None:
    torch.manual_seed(0)
    deep = gpt(100, 8, width=128, heads=4, depth=8)
    spread = {name: float(weight.detach().std()) for name, weight in deep.named_parameters() if weight.ndim == 2}
    for name, found in spread.items():
        writes = name.endswith(("out_proj.weight", "dense.2.weight"))
        assert found == pytest.approx(0.02 / 4 if writes else 0.02, rel=0.1), name


def test_a_language_model_learns_to_copy() -> None:
    torch.manual_seed(0)
    learner = rotary_gpt(5, 12, width=32, heads=2, depth=2)
    optimizer = torch.optim.Adam(learner.parameters(), 5e-3)
    for _ in range(150):
        half = torch.randint(0, 5, (32, 6))
        optimizer.zero_grad()
        learner.nll(torch.cat([half, half], 1))[:, 6:].mean().backward()
        optimizer.step()
    half = torch.randint(0, 5, (64, 6))
    assert float(learner.nll(torch.cat([half, half], 1))[:, 6:].detach().mean()) < 0.2  # log 5 = 1.6 without attention


def test_invalid_arguments_raise() -> None:
    with pytest.raises(ValueError, match=r"at most window=9 tokens; got 10"):
        model()(text(10))
    _, state = model().read(text(8))
    with pytest.raises(ValueError, match=r"at most window=9 tokens; got 10"):
        model().read(text(2), state)
    with pytest.raises(TypeError, match=r"must be a Cache; got State"):
        model().read(text(2), State())
    with pytest.raises(ValueError, match="at least one token is needed; got none"):
        model().read(text(0))
    with pytest.raises(ValueError, match="at least one block is needed; got none"):
        rotary_gpt(TOKENS, WINDOW, width=WIDTH, heads=HEADS, depth=0)
    with pytest.raises(ValueError, match=f"width must be a multiple of heads; got width={WIDTH}, heads=0"):
        rotary_gpt(TOKENS, WINDOW, width=WIDTH, heads=0)
    seeing = Block(SelfAttention(WIDTH, HEADS), feed_forward(WIDTH), norm=lambda: nn.LayerNorm(WIDTH))
    with pytest.raises(ValueError, match=r"every block of a language model must be causal"):
        LanguageModel(TokenEmbedding(TOKENS, WIDTH), [seeing], window=WINDOW)


class State:
    """The state of another model."""

    def rows(self, index: Tensor) -> "State":
        return self
