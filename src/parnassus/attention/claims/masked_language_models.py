"""Claims about masked language models and sentence embeddings (book secs. 10.1.1-10.1.2)."""

import torch
from scipy.stats import chisquare
from torch import Tensor, nn

from parnassus.atlas import Correction, Evidence, accepts, all_of, claim, close, erratum, greater_equal, rate
from parnassus.attention.core.self_attention import SelfAttention
from parnassus.attention.efficient.neighbour_mixing import MetaFormerBlock, NeighbourMixing
from parnassus.attention.models.bert import MaskedLanguageModel, bert, mask_tokens
from parnassus.attention.models.block import feed_forward
from parnassus.attention.models.encoder import encoder
from parnassus.attention.models.gpt import gpt
from parnassus.recurrent.encoder import RecurrentEncoder


@claim("B10.1.1-9")
def bert_masks_tokens_in_the_stated_proportions() -> Evidence:
    """85 % unselected, 12 % masked, 1.5 % replaced, 1.5 % kept; padding is never selected (Devlin et al. 2019)."""
    vocabulary, mask = 1_002, 1
    generator = torch.Generator().manual_seed(0)
    tokens = torch.randint(2, vocabulary, (400, 250), generator=generator)
    tokens[:, -10:] = 0
    masking = mask_tokens(tokens, mask_token_id=mask, ordinary=range(2, vocabulary), generator=generator)
    text = tokens != 0
    masked, same = masking.tokens == mask, masking.tokens == tokens
    counts = [
        int((~masking.selected & text).sum()),
        int(masked.sum()),
        int((masking.selected & ~masked & ~same).sum()),
        int((masking.selected & same).sum()),
    ]
    unchanged = 0.015 / (vocabulary - 2)  # replaced by the same token
    proportions = torch.tensor([0.85, 0.12, 0.015 - unchanged, 0.015 + unchanged], dtype=torch.float64)
    return all_of(
        proportions=accepts(float(chisquare(counts, (proportions * sum(counts)).numpy()).pvalue)),
        unselected_tokens_are_unchanged=close(masking.tokens[~masking.selected], tokens[~masking.selected]),
        padding_is_never_selected=close(masking.selected[~text].double(), 0.0),
    )


@claim("B10.1.1-9")
def the_masked_loss_uses_selected_positions_only() -> Evidence:
    """Logits at unselected positions do not enter the loss (book sec. 10.1.1)."""
    torch.manual_seed(0)
    model = bert(30, 12, width=16)
    tokens = torch.randint(2, 30, (4, 12))
    masking = model.mask_tokens(tokens)
    logits = model(masking.tokens).detach()
    selected_loss = nn.functional.cross_entropy(logits[masking.selected], tokens[masking.selected])
    return close(model.masked_loss(tokens, masking), selected_loss, rtol=1e-5)


@erratum(
    "B10.1.1-9",
    printed="such masking models are applied only to the decoder in the BERT language model",
    right="BERT is an encoder: a masked token is predicted from both sides",
)
def a_causal_decoder_cannot_use_the_right_context() -> Correction:
    """Replacing the token after a mask changes BERT's prediction, not a causal model's (book sec. 10.1.2)."""
    torch.manual_seed(0)
    before = torch.randint(2, 30, (1, 8))
    before[0, 3] = MaskedLanguageModel.MASK
    after = before.clone()
    after[0, 4] = 2 + (after[0, 4] - 1) % 28
    change = {
        name: (model(after) - model(before))[0, 3].abs().max()
        for name, model in {"decoder": gpt(30, 8, width=16), "encoder": bert(30, 8, width=16)}.items()
    }
    return Correction(printed=greater_equal(change["decoder"], 1e-6), corrected=greater_equal(change["encoder"], 1e-6))


@claim("B10.1.2-8", "B10.1.1-8")
def sentence_embeddings_do_not_depend_on_padding() -> Evidence:
    """The mean-pooled last layer and the final recurrent state are unchanged by padding (book sec. 10.1.2)."""
    torch.manual_seed(0)
    short = torch.randint(1, 20, (3, 5))
    padded = torch.cat([short, short.new_zeros(3, 4)], 1)
    pooling, recurrent = encoder(20, 9, width=16), RecurrentEncoder(20, width=16)
    with torch.no_grad():
        return all_of(
            mean_pooling=close(pooling.mean_pool(padded), pooling.mean_pool(short), atol=1e-5),
            final_state=close(recurrent.final_state(padded), recurrent.final_state(short), atol=1e-5),
        )


@claim("B10.1.2-13")
def a_bidirectional_lstm_concatenates_both_directions() -> Evidence:
    """h_t = [h→_t, h←_t]: an LSTM and one on the reversed sequence, concatenated (book sec. 10.1.2)."""
    torch.manual_seed(0)
    bidirectional = RecurrentEncoder(20, width=16).double()
    directions = [nn.LSTM(16, 8, batch_first=True).double() for _ in range(2)]
    for lstm, suffix in zip(directions, ("", "_reverse"), strict=True):
        lstm.load_state_dict(
            {name: getattr(bidirectional.network, name + suffix) for name, _ in lstm.named_parameters()}
        )
    tokens = torch.randint(1, 20, (3, 7))
    x = bidirectional.embedding(tokens)
    forwards, backwards = directions[0](x)[0], directions[1](x.flip(1))[0].flip(1)
    return close(bidirectional(tokens), torch.cat([forwards, backwards], -1), atol=1e-12)


@claim("B10.1.2-12")
def neighbour_mixing_has_a_linear_receptive_field() -> Evidence:
    """L layers of reach r have receptive field 2Lr + 1; one attention layer covers all inputs (book sec. 10.1.2)."""
    torch.manual_seed(0)
    x = torch.randn(1, 25, 8, dtype=torch.float64)
    receptive_fields = {}
    for num_layers in (1, 2, 3):
        blocks = [
            MetaFormerBlock(NeighbourMixing(8, 2), feed_forward(8), norm=lambda: nn.LayerNorm(8))
            for _ in range(num_layers)
        ]
        receptive_fields[num_layers] = _receptive_field(nn.Sequential(*blocks).double(), x)
    return all_of(
        neighbour_mixing=close(torch.tensor(list(receptive_fields.values())), torch.tensor([5, 9, 13])),
        attention=close(float(_receptive_field(SelfAttention(8, 2).double(), x)), 25.0),
    )


@claim("B10.1.2-12")
def neighbour_mixing_cost_is_linear_in_the_length() -> Evidence:
    """Multiplications grow as T for neighbour mixing and as T² for attention's products (book sec. 10.1.2)."""
    from torch.utils.flop_counter import FlopCounterMode

    lengths = torch.tensor([64, 128, 256, 512])
    mixing, dense = NeighbourMixing(8, 2), SelfAttention(8, 2)
    costs: dict[str, list[int]] = {"mixing": [], "dense": []}
    for length in lengths.tolist():
        x = torch.zeros(1, length, 8, device="meta")
        for name, layer in (("mixing", mixing), ("dense", dense)):
            with FlopCounterMode(display=False) as counter, torch.no_grad():
                layer.to("meta")(x)
            counts = counter.get_flop_counts()["Global"]
            affine = 2 * 8 * 32 * length if name == "dense" else 0  # query, key, value and output projections
            costs[name].append(sum(counts.values()) - affine)
    return all_of(
        neighbour_mixing=rate(lengths, torch.tensor(costs["mixing"]), 1.0, atol=1e-6),
        attention=rate(lengths, torch.tensor(costs["dense"]), 2.0, atol=1e-6),
    )


def _receptive_field(layer: nn.Module, x: Tensor) -> int:
    """Number of input positions on which the middle output depends."""
    x = x.clone().requires_grad_()
    layer(x)[0, x.shape[1] // 2].square().sum().backward()
    assert x.grad is not None
    return int((x.grad[0].abs().amax(1) > 0).sum())
