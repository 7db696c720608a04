"""Claims about language models: causality, caching and normalisation (book sec. 10.1.1)."""

import torch
from torch import Tensor

from parnassus.atlas import Evidence, all_of, claim, close, greater_equal, less_equal
from parnassus.attention.core.attention_maps import attention_maps
from parnassus.attention.models.bert import bert
from parnassus.attention.models.gpt import LanguageModel, gpt, rotary_gpt
from parnassus.text.enumeration import enumerate_continuations
from parnassus.text.generation import generate
from parnassus.text.sampling import greedy

TOKENS, WINDOW = 7, 12


def small_language_model(*, learned_positions: bool = False) -> LanguageModel:
    """A language model with random weights, scaled so that its predictions are far from uniform."""
    torch.manual_seed(0)
    model = (gpt if learned_positions else rotary_gpt)(TOKENS, WINDOW, width=16, heads=2, depth=2).double().eval()
    with torch.no_grad():
        for matrix in (parameter for parameter in model.parameters() if parameter.ndim == 2):
            matrix.mul_(10.0)
    return model


def random_tokens(rows: int, time: int = WINDOW) -> Tensor:
    return torch.randint(2, TOKENS, (rows, time), generator=torch.Generator().manual_seed(1))


def output_changes(model: torch.nn.Module, tokens: Tensor, position: int) -> Tensor:
    """Largest change of the output at each position when the token at `position` is replaced."""
    changed = tokens.clone()
    changed[:, position] = 2 + (tokens[:, position] - 1) % (TOKENS - 2)  # another ordinary token
    change: Tensor = model(changed) - model(tokens)
    return change.abs().amax((0, 2))


@claim("B10.1.1-10", "B10.1.2-14")
@torch.no_grad()
def gpt_is_causal_and_bert_is_not() -> Evidence:
    """Replacing token t leaves GPT's outputs before t unchanged; BERT's change everywhere (book sec. 10.1.1)."""
    torch.manual_seed(0)
    bert_model = bert(TOKENS, WINDOW, width=16, heads=2, depth=2).double().eval()
    tokens, position = random_tokens(4), 6
    gpt_changes = {
        name: output_changes(small_language_model(learned_positions=learned), tokens, position)
        for name, learned in (("learned", True), ("rotary", False))
    }
    bert_changes = output_changes(bert_model, tokens, position)
    return all_of(
        gpt_before_t=close(gpt_changes["learned"][:position], torch.zeros(position)),
        rotary_before_t=close(gpt_changes["rotary"][:position], torch.zeros(position)),
        gpt_from_t_on=greater_equal(gpt_changes["learned"][position:], 1e-6),
        bert_before_t=greater_equal(bert_changes[:position], 1e-9),
    )


@claim("B10.1.1-10", "B10.1.2-14")
def the_jacobian_is_triangular() -> Evidence:
    """∂output_s / ∂x_t = 0 for s < t, where x_t is the embedding of token t (book sec. 10.1.1)."""
    model = small_language_model(learned_positions=True)
    embedded = model.embedding(random_tokens(1)).detach()

    def outputs(x: Tensor) -> Tensor:
        for block in model.blocks:
            x = block(x)
        return x[0].sum(1)

    jacobian = torch.autograd.functional.jacobian(outputs, embedded)[:, 0].norm(dim=2)  # of output s by token t
    return all_of(
        future=close(jacobian.triu(1), torch.zeros(WINDOW, WINDOW)),
        past=greater_equal(jacobian[torch.ones(WINDOW, WINDOW).tril().bool()], 1e-6),
    )


@claim("B10.1.2-14")
@torch.no_grad()
def causal_attention_weights_are_triangular_and_sum_to_one() -> Evidence:
    """Weights_ts = 0 for s > t, and each row sums to 1; the first token attends to itself only (book sec. 10.1.2)."""
    weights = torch.stack(list(attention_maps(small_language_model(), random_tokens(3)).values()))
    row_sums = weights.sum(-1)
    return all_of(
        future=close(weights.triu(1), torch.zeros_like(weights)),
        row_sums=close(row_sums, torch.ones_like(row_sums), atol=1e-12),
        first_token=close(weights[..., 0, 0], torch.ones_like(weights[..., 0, 0]), atol=1e-12),
    )


@claim("B10.1.1-8", "B10.1.1-10")
@torch.no_grad()
def cached_decoding_equals_one_pass() -> Evidence:
    """Computed token by token with a cache, the logits are those of one pass over all tokens (book sec. 10.1.1)."""
    cached, expected = [], []
    for model in (small_language_model(), small_language_model(learned_positions=True)):
        tokens, state, steps = random_tokens(3), None, []
        for position in range(WINDOW):
            logits, state = model.read(tokens[:, position : position + 1], state)
            steps.append(logits)
        cached.append(torch.stack(steps, 1))
        expected.append(model(tokens))
    return close(torch.stack(cached), torch.stack(expected), atol=1e-9)


@claim("B10.1.1-8", "B10.1.1-10")
@torch.no_grad()
def sequence_probabilities_sum_to_one() -> Evidence:
    """Σ p(x_2 … x_T | x_1) = 1 over all sequences: each factor is a next-token distribution (book sec. 10.1.1)."""
    model, start = small_language_model(), torch.tensor([3])
    continuations = enumerate_continuations(model, start, length=4)
    sequences = torch.cat([start.expand(len(continuations.tokens), 1), continuations.tokens], 1)
    in_one_pass = model.log_prob(sequences)
    return all_of(
        sum=close(in_one_pass.exp().sum(), 1.0, atol=1e-10),
        step_by_step=close(in_one_pass, continuations.log_probs, atol=1e-9),
    )


@claim("B10.1.1-10")
@torch.no_grad()
def initial_perplexity_is_the_vocabulary_size() -> Evidence:
    """With weights of standard deviation 0.02 the initial loss is log V, the perplexity V (book sec. 10.1.1)."""
    torch.manual_seed(0)
    model, tokens = rotary_gpt(50, WINDOW, width=32, heads=2, depth=2), torch.randint(0, 50, (64, WINDOW))
    perplexity = model.loss(tokens).exp()
    nll = small_language_model().nll(random_tokens(8))
    return all_of(
        initial_perplexity=close(perplexity, 50.0, rtol=0.02),
        at_least_one=greater_equal(nll.mean().exp(), 1.0),
        loss_is_the_mean=close(small_language_model().loss(random_tokens(8)), nll.mean(), atol=1e-12),
    )


@claim("B10.1.1-11")
@torch.no_grad()
def gpt_has_the_architecture_and_parameter_count_of_gpt_2() -> Evidence:
    """12 blocks of width 768: 124,439,808 parameters with tied embeddings, as in GPT-2 (book sec. 10.1.1)."""
    with torch.device("meta"):
        model = gpt(50_257, 1_024, width=768, heads=12, depth=12)
    count = sum(parameter.numel() for parameter in model.parameters())
    tied = small_language_model()
    logits = tied(random_tokens(1))
    tied.embedding.tokens.weight[0] += 1.0  # a token absent from the input: only its logit changes
    change = (tied(random_tokens(1)) - logits).abs().amax((0, 1))
    return all_of(
        parameters=close(float(count), 124_439_808.0),
        tied_logit_changes=greater_equal(change[0], 1e-3),
        other_logits_do_not=less_equal(change[1:], 1e-12),
    )


@claim("B10.1.1-8")
@torch.no_grad()
def greedy_decoding_can_miss_the_most_likely_sequence() -> Evidence:
    """Greedy decoding is never more probable than the best continuation, and sometimes less (book sec. 10.1.1)."""
    gaps = []
    model = small_language_model()
    for token in range(TOKENS):
        candidates = enumerate_continuations(model, torch.tensor([token]), length=3)
        chosen = generate(model, torch.tensor([[token]]), greedy, 3)[0]
        match = (candidates.tokens == chosen).all(1)
        gaps.append(float(candidates.log_probs.max() - candidates.log_probs[match]))
    return all_of(
        never_above_the_maximum=greater_equal(torch.tensor(gaps), -1e-12),
        sometimes_below_it=greater_equal(max(gaps), 0.1),
    )
