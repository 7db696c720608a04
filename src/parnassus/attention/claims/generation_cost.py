"""Claims about the cost of generation and about several heads instead of one (book secs. 10.1.1, 10.1.2)."""

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.optim import Adam
from torch.utils.flop_counter import FlopCounterMode

from parnassus.atlas import Evidence, all_of, claim, close, greater_equal, less_equal, rate
from parnassus.attention.core.cache import Cache, KeyValueCache
from parnassus.attention.core.multi_head import AttentionWidths, MultiHeadAttention
from parnassus.attention.efficient.linear_self_attention import LinearSelfAttention, RunningSumsCache
from parnassus.attention.models.block import Block, feed_forward
from parnassus.attention.models.gpt import LanguageModel, gpt
from parnassus.layers.token_embedding import TokenEmbedding
from parnassus.recurrent.language_model import RecurrentLanguageModel, RecurrentState
from parnassus.text.generation import generate
from parnassus.text.sampling import greedy

LENGTHS = torch.tensor([64, 128, 256, 512])
VOCABULARY, WIDTH = 5, 8


def linear_attention_model() -> LanguageModel:
    """A language model whose layers keep running sums."""
    block = Block(LinearSelfAttention(WIDTH, 2, causal=True), feed_forward(WIDTH), norm=lambda: nn.LayerNorm(WIDTH))
    return LanguageModel(TokenEmbedding(VOCABULARY, WIDTH), [block], window=2_048)


def multiplications(model: LanguageModel, tokens: Tensor, state: Cache | None = None) -> int:
    """Multiplications and additions of the layers of a model for these tokens."""
    with torch.inference_mode(), sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        model.hidden_states(tokens, state)
    return int(counter.get_total_flops())


def stored_numbers(state: Cache | RecurrentState) -> int:
    """Numbers in a state that the next token depends on."""
    if isinstance(state, RecurrentState):
        return state.hidden.numel() + state.cell.numel()
    total = 0
    for layer in state.layers:
        if isinstance(layer, KeyValueCache):
            total += 2 * layer.keys[:, :, : layer.count].numel()
        elif isinstance(layer, RunningSumsCache) and layer.sums is not None:
            total += layer.sums.values.numel() + layer.sums.normaliser.numel()
    return total


@claim("B10.1.2-17")
@torch.no_grad()
def the_cost_of_a_token_depends_on_what_is_kept() -> Evidence:
    """Work for token T: T² without a cache, T with it, constant for running sums; the state grows as T or not at all.

    Beyond terms that do not grow: read off from differences between lengths (book sec. 10.1.2).
    """
    torch.manual_seed(0)
    model, linear = gpt(VOCABULARY, 2_048, width=WIDTH, heads=2, depth=1), linear_attention_model()
    recurrent = RecurrentLanguageModel(VOCABULARY, width=WIDTH)
    work: dict[str, list[int]] = {"again": [], "twice": [], "cache": [], "sums": []}
    numbers: dict[str, list[int]] = {"cache": [], "sums": [], "recurrent": []}
    next_token = torch.zeros(1, 1, dtype=torch.int64)
    for length in LENGTHS.tolist():
        tokens = torch.randint(VOCABULARY, (1, length))
        cache, sums, hidden = model.read(tokens)[1], linear.read(tokens)[1], recurrent.read(tokens)[1]
        numbers["cache"].append(stored_numbers(cache))
        numbers["sums"].append(stored_numbers(sums))
        numbers["recurrent"].append(stored_numbers(hidden))
        work["again"].append(multiplications(model, tokens))
        work["twice"].append(multiplications(model, tokens.repeat(1, 2)))
        work["cache"].append(multiplications(model, next_token, cache))
        work["sums"].append(multiplications(linear, next_token, sums))
    again, twice = (torch.tensor(work[name]) for name in ("again", "twice"))
    text = generate(model, tokens[:, :20], greedy, 30)
    whole = model(torch.cat([tokens[:, :20], text], 1))[:, 19:-1].argmax(-1)
    return all_of(
        without_a_cache=rate(LENGTHS, twice - 2 * again, 2.0, atol=1e-6),
        with_a_cache=rate(LENGTHS[1:], torch.tensor(work["cache"]).diff(), 1.0, atol=1e-6),
        with_running_sums=close(torch.tensor(work["sums"]), float(work["sums"][0])),
        numbers_in_the_cache=close(torch.tensor(numbers["cache"]), 2 * WIDTH * LENGTHS),
        numbers_in_the_sums=close(torch.tensor(numbers["sums"]), 2 * (4 * 4 + 4)),
        numbers_in_a_recurrent_state=close(torch.tensor(numbers["recurrent"]), 2 * WIDTH),
        the_same_text=close(text, whole),
    )


def error_of_two_positions(heads: int, *, steps: int = 150) -> float:
    """Squared error per coordinate of the vectors at two of six positions, read by one trained query (variance 1)."""
    torch.manual_seed(0)
    layer = MultiHeadAttention(AttentionWidths(1, 6, 8, 16), heads, key_width=16 // heads)
    optimizer = Adam(layer.parameters(), lr=2e-2)
    keys, loss = torch.eye(6).expand(128, 6, 6), torch.zeros(())
    for _ in range(steps):
        values = torch.randn(128, 6, 8)
        output = layer(torch.ones(128, 1, 1), keys, values)[:, 0]
        loss = (output - values[:, [1, 4]].flatten(1)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return float(loss.detach())


@claim("B10.1.1-14")
def one_head_averages_two_positions_and_several_keep_both() -> Evidence:
    """One head returns a linear map of a single average: of two vectors at least half the variance is lost.

    Two and four heads of the same total width learn to return both (book sec. 10.1.1).
    """
    one, two, four = (error_of_two_positions(heads) for heads in (1, 2, 4))
    return all_of(one_head=greater_equal(one, 0.48), two_heads=less_equal(two, 0.05), four_heads=less_equal(four, 0.05))
