"""Claims about models that fill gaps, and about vectors for whole sentences (book secs. 10.1.1-10.1.2)."""

import torch
from scipy.stats import chisquare
from torch import Tensor, nn

from parnassus.atlas import Correction, Evidence, accepts, all_of, at_least, claim, close, erratum, rate
from parnassus.attention.bert import MaskedLanguageModel, bert, hide
from parnassus.attention.block import feed_forward
from parnassus.attention.encoder import encoder
from parnassus.attention.gpt import gpt
from parnassus.attention.lean import LeanBlock, NeighbourMixing
from parnassus.attention.recurrent_encoder import RecurrentEncoder
from parnassus.attention.self_attention import SelfAttention


@claim("B10.1.1-9")
def what_becomes_of_the_tokens() -> Evidence:
    """85 % left, 12 % masked, 1.5 % drawn anew, 1.5 % kept though chosen; filler never chosen (Devlin et al. 2019)."""
    vocabulary, mask = 1_002, 1
    source = torch.Generator().manual_seed(0)
    tokens = torch.randint(2, vocabulary, (400, 250), generator=source)
    tokens[:, -10:] = 0
    hidden = hide(tokens, mask=mask, ordinary=range(2, vocabulary), generator=source)
    text = tokens != 0
    masked, same = hidden.tokens == mask, hidden.tokens == tokens
    counts = [
        int((~hidden.chosen & text).sum()),
        int(masked.sum()),
        int((hidden.chosen & ~masked & ~same).sum()),
        int((hidden.chosen & same).sum()),
    ]
    lucky = 0.015 / (vocabulary - 2)  # drawn anew, and the same by chance
    shares = torch.tensor([0.85, 0.12, 0.015 - lucky, 0.015 + lucky], dtype=torch.float64)
    return all_of(
        shares=accepts(float(chisquare(counts, (shares * sum(counts)).numpy()).pvalue)),
        not_chosen_not_changed=close(hidden.tokens[~hidden.chosen], tokens[~hidden.chosen]),
        filler=close(hidden.chosen[~text].double(), 0.0),
    )


@claim("B10.1.1-9")
def the_loss_asks_for_the_gaps_alone() -> Evidence:
    """Logits at places that were not chosen have no part in the loss (book sec. 10.1.1)."""
    torch.manual_seed(0)
    model = bert(30, 12, width=16)
    tokens = torch.randint(2, 30, (4, 12))
    hidden = model.hide(tokens)
    logits = model(hidden.tokens).detach()
    at_gaps = nn.functional.cross_entropy(logits[hidden.chosen], tokens[hidden.chosen])
    return close(model.gap_loss(tokens, hidden), at_gaps, rtol=1e-5)


@erratum(
    "B10.1.1-9",
    printed="such masking models are applied only to the decoder in the BERT language model",
    right="BERT is an encoder alone: a gap is filled from both sides",
)
def a_decoder_could_not_see_what_follows_the_gap() -> Correction:
    """Change the word after a gap: a causal model's guess cannot move, BERT's does (book sec. 10.1.2)."""
    torch.manual_seed(0)
    before = torch.randint(2, 30, (1, 8))
    before[0, 3] = MaskedLanguageModel.MASK
    after = before.clone()
    after[0, 4] = 2 + (after[0, 4] - 1) % 28
    moved = {
        name: (model(after) - model(before))[0, 3].abs().max()
        for name, model in {"decoder": gpt(30, 8, width=16), "encoder": bert(30, 8, width=16)}.items()
    }
    return Correction(printed=at_least(moved["decoder"], 1e-6), corrected=at_least(moved["encoder"], 1e-6))


@claim("B10.1.2-8", "B10.1.1-8")
def a_sentence_has_one_vector_whatever_filler_follows() -> Evidence:
    """The pooled last layer and the recurrent thought vector: one vector for any length (book sec. 10.1.2)."""
    torch.manual_seed(0)
    short = torch.randint(1, 20, (3, 5))
    padded = torch.cat([short, short.new_zeros(3, 4)], 1)
    pooling, recurrent = encoder(20, 9, width=16), RecurrentEncoder(20, width=16)
    with torch.no_grad():
        return all_of(
            pooled=close(pooling.pooled(padded), pooling.pooled(short), atol=1e-5),
            thought=close(recurrent.thought(padded), recurrent.thought(short), atol=1e-5),
        )


@claim("B10.1.2-13")
def two_readings_side_by_side() -> Evidence:
    """h_t = [h→_t, h←_t]: an LSTM forwards and one on the reversed sequence, joined (book sec. 10.1.2)."""
    torch.manual_seed(0)
    both = RecurrentEncoder(20, width=16).double()
    halves = [nn.LSTM(16, 8, batch_first=True).double() for _ in range(2)]
    for half, end in zip(halves, ("", "_reverse"), strict=True):
        half.load_state_dict({name: getattr(both.network, name + end) for name, _ in half.named_parameters()})
    tokens = torch.randint(1, 20, (3, 7))
    x = both.embedding(tokens)
    forwards, backwards = halves[0](x)[0], halves[1](x.flip(1))[0].flip(1)
    return close(both(tokens), torch.cat([forwards, backwards], -1), atol=1e-12)


@claim("B10.1.2-12")
def a_lean_layer_sees_its_neighbours() -> Evidence:
    """L layers of reach r see 2Lr + 1 places, attention all of them in one layer (book sec. 10.1.2)."""
    torch.manual_seed(0)
    x = torch.randn(1, 25, 8, dtype=torch.float64)
    seen = {}
    for depth in (1, 2, 3):
        blocks = [LeanBlock(NeighbourMixing(8, 2), feed_forward(8), norm=lambda: nn.LayerNorm(8)) for _ in range(depth)]
        seen[depth] = _places_that_reach(nn.Sequential(*blocks).double(), x)
    return all_of(
        lean=close(torch.tensor(list(seen.values())), torch.tensor([5, 9, 13])),
        attention=close(float(_places_that_reach(SelfAttention(8, 2).double(), x)), 25.0),
    )


@claim("B10.1.2-12")
def a_lean_layer_costs_in_proportion_to_the_length() -> Evidence:
    """Multiplications against the length: ∝ T for neighbours, ∝ T² for attention's products (book sec. 10.1.2)."""
    from torch.utils.flop_counter import FlopCounterMode

    lengths = torch.tensor([64, 128, 256, 512])
    lean, full = NeighbourMixing(8, 2), SelfAttention(8, 2)
    costs: dict[str, list[int]] = {"lean": [], "full": []}
    for length in lengths.tolist():
        x = torch.zeros(1, length, 8, device="meta")
        for name, layer in (("lean", lean), ("full", full)):
            with FlopCounterMode(display=False) as counter, torch.no_grad():
                layer.to("meta")(x)
            counts = counter.get_flop_counts()["Global"]
            affine = 2 * 8 * 32 * length if name == "full" else 0  # the maps to queries, keys, values and back
            costs[name].append(sum(counts.values()) - affine)
    return all_of(
        lean=rate(lengths, torch.tensor(costs["lean"]), 1.0, atol=1e-6),
        attention=rate(lengths, torch.tensor(costs["full"]), 2.0, atol=1e-6),
    )


def _places_that_reach(layer: nn.Module, x: Tensor) -> int:
    """How many inputs move the output in the middle."""
    x = x.clone().requires_grad_()
    layer(x)[0, x.shape[1] // 2].square().sum().backward()
    assert x.grad is not None
    return int((x.grad[0].abs().amax(1) > 0).sum())
