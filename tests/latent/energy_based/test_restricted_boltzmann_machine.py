"""Restricted Boltzmann machines against sums over every state of both layers."""

import pytest
import torch
from torch import Tensor

from parnassus.latent.energy_based.restricted_boltzmann_machine import (
    RBM,
    ContrastiveDivergence,
    PersistentContrastiveDivergence,
)
from parnassus.layers.dropout import all_masks


def machine(visible: int = 4, hidden: int = 3, seed: int = 0) -> RBM:
    torch.manual_seed(seed)
    rbm = RBM(visible, hidden).double()
    for parameter in rbm.parameters():
        torch.nn.init.normal_(parameter)
    return rbm


def listed(rbm: RBM) -> tuple[Tensor, Tensor, Tensor]:
    """All v, all h, and −E for every pair (v, h)."""
    hidden, visible = rbm.weight.shape
    v, h = all_masks(visible).double(), all_masks(hidden).double()
    wide = v[:, None].expand(-1, len(h), -1), h.expand(len(v), -1, -1)
    return v, h, -rbm.energy(*wide)


@pytest.mark.parametrize(("visible", "hidden"), [(4, 3), (3, 5), (1, 1)])
def test_log_partition_sums_over_all_pairs_whichever_layer_is_smaller(visible: int, hidden: int) -> None:
    rbm = machine(visible, hidden)
    torch.testing.assert_close(rbm.log_partition(), listed(rbm)[2].flatten().logsumexp(0))


def test_the_free_energy_marginalises_the_hidden_layer() -> None:
    rbm = machine()
    v, _, exponents = listed(rbm)
    torch.testing.assert_close(rbm.free_energy(v), -exponents.logsumexp(1))


def test_probabilities_of_all_visible_states_sum_to_one() -> None:
    rbm = machine()
    torch.testing.assert_close(rbm.log_prob(all_masks(4).double()).exp().sum(), torch.tensor(1.0).double())


def test_conditionals_are_those_of_the_joint() -> None:
    rbm = machine()
    v, h, exponents = listed(rbm)
    p = exponents.flatten().softmax(0).view(len(v), len(h))
    given_v = (p / p.sum(1, keepdim=True)) @ h
    given_h = (p / p.sum(0)).mT @ v
    torch.testing.assert_close(rbm.hidden_logits(v).sigmoid(), given_v)
    torch.testing.assert_close(rbm.visible_logits(h).sigmoid(), given_h)


def test_gibbs_steps_leave_the_model_distribution_invariant() -> None:
    rbm = machine()
    drawn = rbm.gibbs(rbm.exact_sample(40_000), 1)
    expected = rbm.log_prob(all_masks(4).double()).exp()
    codes = (drawn.long() * 2 ** torch.arange(4)).sum(1)
    torch.testing.assert_close(
        torch.bincount(codes, minlength=16) / 40_000, expected, atol=0.01, rtol=0, check_dtype=False
    )


def test_gibbs_chains_from_uniform_states_reach_the_model() -> None:
    rbm = machine()
    share = rbm.log_prob(all_masks(4).double()).exp() @ all_masks(4).double()
    torch.testing.assert_close(rbm.sample(20_000, steps=50).mean(0), share, atol=0.02, rtol=0)


def test_persistent_chains_keep_their_state() -> None:
    rbm = machine()
    rbm.negative_sampler = PersistentContrastiveDivergence(5, 4).double()
    before = rbm.negative_sampler.particles.clone()
    for _ in range(20):
        rbm.loss(torch.ones(7, 4).double())
    assert rbm.negative_sampler.particles.shape == (5, 4)
    assert not torch.equal(rbm.negative_sampler.particles, before)
    assert "negative_sampler.particles" in rbm.state_dict()


def test_the_loss_has_a_gradient_for_every_parameter() -> None:
    rbm = machine()
    rbm.loss(torch.ones(7, 4).double()).backward()
    assert all(parameter.grad is not None and bool(parameter.grad.any()) for parameter in rbm.parameters())


def test_invalid_input_raises() -> None:
    with pytest.raises(ValueError, match="must be positive; got visible=0"):
        RBM(0, 3)
    with pytest.raises(ValueError, match="steps must be positive; got steps=0"):
        ContrastiveDivergence(0)
    with pytest.raises(ValueError, match=r"must be 0 or 1; got values from 0\.5 to 0\.5"):
        machine().log_prob(torch.full((2, 4), 0.5).double())
    with pytest.raises(ValueError, match="at most 20 units; got 21"):
        RBM(30, 21).log_partition()
