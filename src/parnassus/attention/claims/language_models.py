"""Claims about language models: nothing comes from the future, and what they say adds up (book sec. 10.1.1)."""

import torch
from torch import Tensor

from parnassus.atlas import Evidence, all_of, at_least, at_most, claim, close
from parnassus.attention.bert import bert
from parnassus.attention.gpt import LanguageModel, gpt, rotary_gpt
from parnassus.attention.maps import attention_maps
from parnassus.text.choosing import greedy
from parnassus.text.enumeration import every_continuation
from parnassus.text.generation import written

TOKENS, WINDOW = 7, 12


def small(*, places: bool = False) -> LanguageModel:
    """A language model of random weights, large enough to have opinions."""
    torch.manual_seed(0)
    model = (gpt if places else rotary_gpt)(TOKENS, WINDOW, width=16, heads=2, depth=2).double().eval()
    with torch.no_grad():
        for matrix in (parameter for parameter in model.parameters() if parameter.ndim == 2):
            matrix.mul_(10.0)
    return model


def text(rows: int, time: int = WINDOW) -> Tensor:
    return torch.randint(2, TOKENS, (rows, time), generator=torch.Generator().manual_seed(1))


def differences(model: torch.nn.Module, tokens: Tensor, place: int) -> Tensor:
    """How far the output at each place moves when the token at `place` is exchanged."""
    other = tokens.clone()
    other[:, place] = 2 + (tokens[:, place] - 1) % (TOKENS - 2)  # another ordinary token
    moved: Tensor = model(other) - model(tokens)
    return moved.abs().amax((0, 2))


@claim("B10.1.1-10", "B10.1.2-14")
@torch.no_grad()
def gpt_cannot_see_the_future_and_bert_can() -> Evidence:
    """Exchange token t: GPT's outputs before t stay as they were, BERT's change everywhere (book sec. 10.1.1)."""
    torch.manual_seed(0)
    both_sides = bert(TOKENS, WINDOW, width=16, heads=2, depth=2).double().eval()
    tokens, place = text(4), 6
    causal = {name: differences(small(places=places), tokens, place) for name, places in (("a", True), ("b", False))}
    seen = differences(both_sides, tokens, place)
    return all_of(
        gpt_before=close(causal["a"][:place], torch.zeros(place)),
        rotary_before=close(causal["b"][:place], torch.zeros(place)),
        gpt_from_there_on=at_least(causal["a"][place:], 1e-6),
        bert_before=at_least(seen[:place], 1e-9),
    )


@claim("B10.1.1-10", "B10.1.2-14")
def the_jacobian_is_triangular() -> Evidence:
    """∂output_s / ∂x_t = 0 for s < t, where x_t is the embedding of token t (book sec. 10.1.1)."""
    model = small(places=True)
    embedded = model.embedding(text(1)).detach()

    def outputs(x: Tensor) -> Tensor:
        for block in model.blocks:
            x = block(x)
        return x[0].sum(1)

    jacobian = torch.autograd.functional.jacobian(outputs, embedded)[:, 0].norm(dim=2)  # of output s by token t
    return all_of(
        future=close(jacobian.triu(1), torch.zeros(WINDOW, WINDOW)),
        past=at_least(jacobian[torch.ones(WINDOW, WINDOW).tril().bool()], 1e-6),
    )


@claim("B10.1.2-14")
@torch.no_grad()
def masked_weights_are_triangular_and_add_up_to_one() -> Evidence:
    """Weights_ts = 0 for s > t, and each row sums to 1; the first token looks at itself alone (book sec. 10.1.2)."""
    weights = torch.stack(list(attention_maps(small(), text(3)).values()))
    rows = weights.sum(-1)
    return all_of(
        future=close(weights.triu(1), torch.zeros_like(weights)),
        rows=close(rows, torch.ones_like(rows), atol=1e-12),
        first=close(weights[..., 0, 0], torch.ones_like(weights[..., 0, 0]), atol=1e-12),
    )


@claim("B10.1.1-8", "B10.1.1-10")
@torch.no_grad()
def a_cache_changes_nothing_but_the_work() -> Evidence:
    """Read token by token with a cache, the logits are those of one pass over all tokens (book sec. 10.1.1)."""
    found, wanted = [], []
    for model in (small(), small(places=True)):
        tokens, state, steps = text(3), None, []
        for place in range(WINDOW):
            logits, state = model.read(tokens[:, place : place + 1], state)
            steps.append(logits)
        found.append(torch.stack(steps, 1))
        wanted.append(model(tokens))
    return close(torch.stack(found), torch.stack(wanted), atol=1e-9)


@claim("B10.1.1-8", "B10.1.1-10")
@torch.no_grad()
def probabilities_of_all_texts_add_up_to_one() -> Evidence:
    """Σ p(x_2 … x_T | x_1) = 1 over all texts, for each factor is a law of the next token (book sec. 10.1.1)."""
    model, start = small(), torch.tensor([3])
    every = every_continuation(model, start, length=4)
    whole = torch.cat([start.expand(len(every.tokens), 1), every.tokens], 1)
    in_one_pass = model.log_prob(whole)
    return all_of(
        total=close(in_one_pass.exp().sum(), 1.0, atol=1e-10),
        step_by_step=close(in_one_pass, every.log_probs, atol=1e-9),
    )


@claim("B10.1.1-10")
@torch.no_grad()
def before_training_every_token_is_as_likely() -> Evidence:
    """With weights of spread 0.02 the loss is log V: perplexity begins at the number of tokens (book sec. 10.1.1)."""
    torch.manual_seed(0)
    fresh, tokens = rotary_gpt(50, WINDOW, width=32, heads=2, depth=2), torch.randint(0, 50, (64, WINDOW))
    perplexity = fresh.loss(tokens).exp()
    nll = small().nll(text(8))
    return all_of(
        start=close(perplexity, 50.0, rtol=0.02),
        at_least_one=at_least(nll.mean().exp(), 1.0),
        is_the_mean=close(small().loss(text(8)), nll.mean(), atol=1e-12),
    )


@claim("B10.1.1-11")
@torch.no_grad()
def it_has_the_layout_and_the_size_of_gpt_2() -> Evidence:
    """12 blocks of width 768: 124,439,808 weights, first and last layer shared, as in GPT-2 (book sec. 10.1.1)."""
    with torch.device("meta"):
        model = gpt(50_257, 1_024, width=768, heads=12, depth=12)
    count = sum(parameter.numel() for parameter in model.parameters())
    tied = small()
    before = tied(text(1))
    tied.embedding.tokens.weight[0] += 1.0  # a token that the text does not hold: only its logit moves
    moved = (tied(text(1)) - before).abs().amax((0, 1))
    return all_of(
        weights=close(float(count), 124_439_808.0),
        shared=at_least(moved[0], 1e-3),
        others_stay=at_most(moved[1:], 1e-12),
    )


@claim("B10.1.1-8")
@torch.no_grad()
def the_likeliest_text_is_not_found_greedily() -> Evidence:
    """Greedy writing is never likelier than the best of all continuations, and sometimes less (book sec. 10.1.1)."""
    gaps = []
    model = small()
    for token in range(TOKENS):
        every = every_continuation(model, torch.tensor([token]), length=3)
        chosen = written(model, torch.tensor([[token]]), greedy, 3)[0]
        place = (every.tokens == chosen).all(1)
        gaps.append(float(every.log_probs.max() - every.log_probs[place]))
    return all_of(never_likelier=at_least(torch.tensor(gaps), -1e-12), sometimes_less=at_least(max(gaps), 0.1))
