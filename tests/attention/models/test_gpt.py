"""GPT compared with an einsum reference of GPT-2, cached decoding, and invalid arguments."""

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


def make_model() -> LanguageModel:
    torch.manual_seed(0)
    return gpt(TOKENS, WINDOW, width=WIDTH, heads=HEADS, depth=2).double()


def random_tokens(time: int = WINDOW) -> Tensor:
    return torch.randint(0, TOKENS, (2, 10), generator=torch.Generator().manual_seed(1))[:, :time]


def reference_logits(weights: dict[str, Tensor], tokens: Tensor) -> Tensor:
    """Logits of GPT-2 with the given weights, by einsum."""
    time, head_width = tokens.shape[1], WIDTH // HEADS
    x = weights["embedding.tokens.weight"][tokens] + weights["embedding.positions.weight"][:time]
    for block in ("blocks.0.", "blocks.1."):
        w = {key.removeprefix(block): value for key, value in weights.items()}
        h = layer_norm(x, (WIDTH,), w["norms.0.weight"], w["norms.0.bias"])
        qkv = torch.einsum("btd,ed->bte", h, w["attention.in_proj.weight"]) + w["attention.in_proj.bias"]
        q, k, v = qkv.view(*tokens.shape, 3, HEADS, head_width).unbind(2)
        scores = torch.einsum("bqhd,bkhd->bhqk", q, k) / sqrt(head_width)
        scores = scores.masked_fill(torch.ones(time, time).triu(1).bool(), -torch.inf)
        attended = torch.einsum("bhqk,bkhd->bqhd", scores.softmax(-1), v).flatten(2)
        x = x + attended @ w["attention.out_proj.weight"].T + w["attention.out_proj.bias"]
        h = layer_norm(x, (WIDTH,), w["norms.1.weight"], w["norms.1.bias"])
        h = gelu(h @ w["dense.0.weight"].T + w["dense.0.bias"], approximate="tanh")
        x = x + h @ w["dense.2.weight"].T + w["dense.2.bias"]
    return layer_norm(x, (WIDTH,), weights["norm.weight"], weights["norm.bias"]) @ weights["embedding.tokens.weight"].T


def test_logits_match_reference_gpt2() -> None:
    model = make_model()
    torch.testing.assert_close(model(random_tokens()), reference_logits(dict(model.state_dict()), random_tokens()))


@pytest.mark.parametrize("build", [gpt, rotary_gpt])
@pytest.mark.parametrize("parts", [(1,) * WINDOW, (4, 5), (3, 1, 5)])
def test_incremental_decoding_matches_full_pass(build: Callable[..., LanguageModel], parts: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    model, state = build(TOKENS, WINDOW, width=WIDTH, heads=HEADS, depth=2).double(), None
    assert isinstance(model, AutoregressiveModel)
    expected = model(random_tokens())
    for start, end in zip(torch.tensor((0, *parts)).cumsum(0), torch.tensor(parts).cumsum(0), strict=False):
        logits, state = model.read(random_tokens()[:, start:end], state)
        torch.testing.assert_close(logits, expected[:, end - 1])


def test_selected_cache_rows_continue_independently() -> None:
    model = make_model()
    _, state = model.read(random_tokens(5))
    rows = torch.tensor([1, 1, 0])
    logits, _ = model.read(random_tokens()[rows, 5:7], state.rows(rows))
    torch.testing.assert_close(logits, model(random_tokens(7)[rows])[:, -1])


def test_loss_nll_and_log_prob_are_consistent() -> None:
    model = make_model()
    nll = model.nll(random_tokens())
    log_probs = model(random_tokens()[:, :-1]).log_softmax(-1).gather(2, random_tokens()[:, 1:, None])[..., 0]
    torch.testing.assert_close(nll, -log_probs)
    torch.testing.assert_close(model.loss(random_tokens()), nll.mean())
    torch.testing.assert_close(model.log_prob(random_tokens()), -nll.sum(1))
    torch.testing.assert_close(cross_entropy(model(random_tokens()[:, :-1]).mT, random_tokens()[:, 1:]), nll.mean())


def test_output_weights_of_residual_branches_are_scaled_down() -> None:
    torch.manual_seed(0)
    model = gpt(100, 8, width=128, heads=4, depth=8)
    stds = {name: float(weight.detach().std()) for name, weight in model.named_parameters() if weight.ndim == 2}
    for name, std in stds.items():
        ends_branch = name.endswith(("out_proj.weight", "dense.2.weight"))
        assert std == pytest.approx(0.02 / 4 if ends_branch else 0.02, rel=0.1), name


def test_language_model_learns_to_copy() -> None:
    torch.manual_seed(0)
    model = rotary_gpt(5, 12, width=32, heads=2, depth=2)
    optimizer = torch.optim.Adam(model.parameters(), 5e-3)
    for _ in range(150):
        sequence = torch.randint(0, 5, (32, 6))
        optimizer.zero_grad()
        model.nll(torch.cat([sequence, sequence], 1))[:, 6:].mean().backward()
        optimizer.step()
    sequence = torch.randint(0, 5, (64, 6))
    nll = model.nll(torch.cat([sequence, sequence], 1))[:, 6:].detach().mean()
    assert float(nll) < 0.2  # log 5 = 1.6 without attention


def test_invalid_arguments_raise() -> None:
    with pytest.raises(ValueError, match=r"at most window=9 tokens; got 10"):
        make_model()(random_tokens(10))
    _, state = make_model().read(random_tokens(8))
    with pytest.raises(ValueError, match=r"at most window=9 tokens; got 10"):
        make_model().read(random_tokens(2), state)
    with pytest.raises(TypeError, match=r"must be a Cache; got State"):
        make_model().read(random_tokens(2), State())
    with pytest.raises(ValueError, match="at least one token is needed; got none"):
        make_model().read(random_tokens(0))
    with pytest.raises(ValueError, match="at least one block is needed; got none"):
        rotary_gpt(TOKENS, WINDOW, width=WIDTH, heads=HEADS, depth=0)
    with pytest.raises(ValueError, match=f"width must be a multiple of heads; got width={WIDTH}, heads=0"):
        rotary_gpt(TOKENS, WINDOW, width=WIDTH, heads=0)
    bidirectional = Block(SelfAttention(WIDTH, HEADS), feed_forward(WIDTH), norm=lambda: nn.LayerNorm(WIDTH))
    with pytest.raises(ValueError, match=r"every block of a language model must be causal"):
        LanguageModel(TokenEmbedding(TOKENS, WIDTH), [bidirectional], window=WINDOW)


class State:
    """The state of a different model."""

    def rows(self, index: Tensor) -> "State":
        return self
