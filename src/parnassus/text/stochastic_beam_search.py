"""Stochastic beam search: sampling sequences without replacement (Kool et al. 2019; book sec. 9.5).

Add Gumbel noise to the log-probability of every continuation: the k largest sums are k ordered samples without
replacement. The maximum over a node's children equals the node's own perturbed log-probability, so the noise can be
sampled from the root downwards, conditioned on that maximum, without enumerating all continuations.
"""

from dataclasses import dataclass
from math import inf

import torch
from jaxtyping import Float, Int
from torch import Tensor

from parnassus.text.autoregressive_model import AutoregressiveModel
from parnassus.text.beam_search import BeamNode, BeamStep, check_window, search_tree, state_rows, top_extensions


@dataclass(frozen=True)
class BeamSamples:
    """Distinct continuations in sampling order; one that ends early is padded with its stop token.

    `perturbed_log_probs` is log P + Gumbel noise, in decreasing order.

    >>> model = NGramModel.fit(torch.tensor([0, 1, 2, 0, 1, 2]), order=2, vocabulary=3, smoothing=0.1)
    >>> stochastic_beam_search(model, torch.tensor([[0]]), width=2, length=3).tokens.shape
    torch.Size([1, 2, 3])
    """

    tokens: Int[Tensor, "batch width length"]
    log_probs: Float[Tensor, "batch width"]
    perturbed_log_probs: Float[Tensor, "batch width"]
    steps: tuple[BeamStep, ...]

    def mean(self, values: Float[Tensor, "batch width"]) -> Float[Tensor, " batch"]:
        """Unbiased estimate of E[f(x)] from f of all samples; the last one only sets the threshold κ.

        Σ_i p_i f(x_i) / q_i,   q_i = P(log p_i + Gumbel > κ) = 1 − exp(−exp(log p_i − κ))    (Kool et al. 2019)
        """
        if values.shape[1] < 2:
            raise ValueError("an estimate needs at least two samples, one of them for the threshold; got 1")
        kappa = self.perturbed_log_probs[:, -1:]
        log_p = self.log_probs[:, :-1]
        weight = log_p.exp() / -torch.expm1(-(log_p - kappa).exp())
        return torch.where(log_p == -inf, 0.0, weight * values[:, :-1]).sum(1)

    def tree(self, row: int = 0) -> list[BeamNode]:
        """The kept prefixes, parents before children; `rank` is log P + noise."""
        return search_tree(self.steps, row)


@torch.no_grad()
def stochastic_beam_search(
    model: AutoregressiveModel,
    prompt: Int[Tensor, "batch time"],
    *,
    width: int,
    length: int,
    stop: int | None = None,
    generator: torch.Generator | None = None,
) -> BeamSamples:
    """Sample `width` distinct continuations of up to `length` tokens for each prompt, without replacement.

    If fewer exist, the remaining slots have log P = −∞.
    """
    check_window(model, prompt, width=width, length=length)
    logits, state = model.read(prompt)
    batch, vocabulary = logits.shape
    log_prob = logits.new_zeros(batch, 1)
    perturbed = sample_gumbel(log_prob, generator)
    tokens = prompt[:, None, :0]
    is_complete = torch.zeros_like(log_prob, dtype=torch.bool)
    steps: list[BeamStep] = []
    for position in range(length):
        log_probs = logits.log_softmax(1).view(batch, -1, vocabulary)
        if stop is not None:  # a complete continuation has itself as its only child
            only_stop = torch.full_like(log_probs[0, 0], -inf).index_fill(
                0, torch.tensor(stop, device=log_probs.device), 0.0
            )
            log_probs = torch.where(is_complete[:, :, None], only_stop, log_probs)
        children = log_prob[:, :, None] + log_probs
        noisy = sample_gumbel_given_maximum(children, perturbed, generator)
        perturbed, parent, token = top_extensions(noisy, width)
        log_prob = children.flatten(1).gather(1, parent * vocabulary + token)
        tokens = torch.cat([tokens.gather(1, parent[:, :, None].expand(-1, -1, position)), token[:, :, None]], 2)
        is_complete = token == stop if stop is not None else torch.zeros_like(token, dtype=torch.bool)
        steps.append(BeamStep(parent, token, log_prob, perturbed, is_complete).cpu())
        if position == length - 1 or bool(is_complete.all()):
            break
        logits, state = model.read(token.view(-1, 1), state.rows(state_rows(parent, log_probs.shape[1])))
    return BeamSamples(tokens, log_prob, perturbed, tuple(steps))


def sample_gumbel(
    location: Float[Tensor, "*shape"], generator: torch.Generator | None = None
) -> Float[Tensor, "*shape"]:
    """Gumbel samples φ − log E, with E exponential, at each location φ; −∞ stays −∞."""
    exponential = torch.empty_like(location).exponential_(generator=generator)
    return location - exponential.log()


def sample_gumbel_given_maximum(
    location: Float[Tensor, "*shape children"],
    maximum: Float[Tensor, "*shape"],
    generator: torch.Generator | None = None,
) -> Float[Tensor, "*shape children"]:
    """Gumbel samples at these locations, conditioned on their maximum (Kool et al. 2019, app. B).

    G̃_i = −log(exp(−T) − exp(−Z) + exp(−G_i)),   Z = max_i G_i,   T = `maximum`
    """
    unconditioned = sample_gumbel(location, generator)
    largest = unconditioned.max(-1, keepdim=True).values
    target = maximum[..., None]
    # with v = T − G + log(1 − exp(G − Z)) this is T − max(0, v) − log(1 + exp(−|v|)), which does not overflow
    v = target - unconditioned + torch.log1p(-(unconditioned - largest).exp())
    conditioned = target - v.clamp(min=0) - torch.log1p(torch.exp(-v.abs()))
    return torch.where(unconditioned == -inf, -inf, torch.where(unconditioned == largest, target, conditioned))
