"""Stochastic beam search: draws from a model of sequences, none of them twice (Kool et al. 2019; book sec. 9.5).

Add Gumbel noise to the log-probability of every continuation: the k largest sums are k draws without replacement, in
order. The search finds them without visiting all: the maximum of a node's children is the node's own sum, so the noise
can be drawn from the root downwards, given that maximum.
"""

from dataclasses import dataclass
from math import inf

import torch
from jaxtyping import Float, Int
from torch import Tensor

from parnassus.text.beam import Node, Step, best_extensions, demand_room, kept_tree, slots
from parnassus.text.reading import Reader


@dataclass(frozen=True)
class Draws:
    """Different continuations in the order drawn; one that ends early goes on with its stop token.

    `perturbed` is log P + Gumbel noise, which falls from draw to draw.
    """

    tokens: Int[Tensor, "batch width length"]
    log_probs: Float[Tensor, "batch width"]
    perturbed: Float[Tensor, "batch width"]
    steps: tuple[Step, ...]

    def mean(self, values: Float[Tensor, "batch width"]) -> Float[Tensor, " batch"]:
        """An unbiased estimate of E[f(x)] from f of all draws, the last of which only sets a threshold κ.

        Σ_i p_i f(x_i) / q_i,   q_i = P(log p_i + Gumbel > κ) = 1 − exp(−exp(log p_i − κ))    (Kool et al. 2019)
        """
        if values.shape[1] < 2:
            raise ValueError("one draw sets the threshold, so at least two are needed; got 1")
        kappa = self.perturbed[:, -1:]
        log_p = self.log_probs[:, :-1]
        weight = log_p.exp() / -torch.expm1(-(log_p - kappa).exp())
        return torch.where(log_p == -inf, 0.0, weight * values[:, :-1]).sum(1)

    def tree(self, row: int = 0) -> list[Node]:
        """The beginnings kept on the way, parents before children; `rank` is log P + noise."""
        return kept_tree(self.steps, row)


@torch.no_grad()
def stochastic_beam_search(
    reader: Reader,
    prompt: Int[Tensor, "batch time"],
    *,
    width: int,
    length: int,
    stop: int | None = None,
    generator: torch.Generator | None = None,
) -> Draws:
    """`width` different continuations of each prompt, by at most `length` tokens, drawn without replacement.

    Where there are not so many, the places left over have log P = −∞.
    """
    demand_room(reader, prompt, width=width, length=length)
    logits, state = reader.read(prompt)
    batch, vocabulary = logits.shape
    log_prob = logits.new_zeros(batch, 1)
    perturbed = gumbel(log_prob, generator)
    tokens = prompt[:, None, :0]
    ended = torch.zeros_like(log_prob, dtype=torch.bool)
    steps: list[Step] = []
    for place in range(length):
        law = logits.log_softmax(1).view(batch, -1, vocabulary)
        if stop is not None:  # what has ended has one child: itself
            only_stop = torch.full_like(law[0, 0], -inf).index_fill(0, torch.tensor(stop, device=law.device), 0.0)
            law = torch.where(ended[:, :, None], only_stop, law)
        children = log_prob[:, :, None] + law
        noisy = conditioned_on_maximum(children, perturbed, generator)
        perturbed, parent, token = best_extensions(noisy, width)
        log_prob = children.flatten(1).gather(1, parent * vocabulary + token)
        tokens = torch.cat([tokens.gather(1, parent[:, :, None].expand(-1, -1, place)), token[:, :, None]], 2)
        ended = token == stop if stop is not None else torch.zeros_like(token, dtype=torch.bool)
        steps.append(Step(parent, token, log_prob, perturbed, ended).cpu())
        if place == length - 1 or bool(ended.all()):
            break
        logits, state = reader.read(token.view(-1, 1), state.rows(slots(parent, law.shape[1])))
    return Draws(tokens, log_prob, perturbed, tuple(steps))


def gumbel(location: Float[Tensor, "*shape"], generator: torch.Generator | None = None) -> Float[Tensor, "*shape"]:
    """φ − log E with E exponential: a Gumbel draw at each location φ; −∞ stays −∞."""
    exponential = torch.empty_like(location).exponential_(generator=generator)
    return location - exponential.log()


def conditioned_on_maximum(
    location: Float[Tensor, "*shape children"],
    maximum: Float[Tensor, "*shape"],
    generator: torch.Generator | None = None,
) -> Float[Tensor, "*shape children"]:
    """Gumbel draws at these locations, given that the largest of them is `maximum` (Kool et al. 2019, app. B).

    G̃_i = −log(exp(−T) − exp(−Z) + exp(−G_i)),   Z = max_i G_i,   T = `maximum`
    """
    free = gumbel(location, generator)
    largest = free.max(-1, keepdim=True).values
    top = maximum[..., None]
    # with v = T − G + log(1 − exp(G − Z)) this is T − max(0, v) − log(1 + exp(−|v|)), and nothing overflows
    v = top - free + torch.log1p(-(free - largest).exp())
    moved = top - v.clamp(min=0) - torch.log1p(torch.exp(-v.abs()))
    return torch.where(free == -inf, -inf, torch.where(free == largest, top, moved))
