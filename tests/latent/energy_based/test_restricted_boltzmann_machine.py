"""Restricted Boltzmann machines compared with sums over all states."""

import pytest
import torch
from torch import Tensor

from parnassus.latent.energy_based.restricted_boltzmann_machine import (
    RBM,
    ContrastiveDivergence,
    PersistentContrastiveDivergence,
)
from parnassus.layers.dropout import all_masks


def random_rbm(visible: int = 4, hidden: int = 3, seed: int = 0) -> RBM:
    torch.manual_seed(seed)
    rbm = RBM(visible, hidden).double()
    for parameter in rbm.parameters():
        torch.nn.init.normal_(parameter)
    return rbm


def enumerate_states(rbm: RBM) -> tuple[Tensor, Tensor, Tensor]:
    """All v, all h, and −E for every pair (v, h)."""
    hidden, visible = rbm.weight.shape
    v, h = all_masks(visible).double(), all_masks(hidden).double()
    pairs = v[:, None].expand(-1, len(h), -1), h.expand(len(v), -1, -1)
    return v, h, -rbm.energy(*pairs)


@pytest.mark.parametrize(("visible", "hidden"), [(4, 3), (3, 5), (1, 1)])
def test_log_partition_matches_enumeration(visible: int, hidden: int) -> None:
    rbm = random_rbm(visible, hidden)
    torch.testing.assert_close(rbm.log_partition(), enumerate_states(rbm)[2].flatten().logsumexp(0))


def test_free_energy_marginalises_the_hidden_layer() -> None:
    rbm = random_rbm()
    v, _, exponents = enumerate_states(rbm)
    torch.testing.assert_close(rbm.free_energy(v), -exponents.logsumexp(1))


def test_probabilities_of_all_visible_states_sum_to_one() -> None:
    rbm = random_rbm()
    torch.testing.assert_close(rbm.log_prob(all_masks(4).double()).exp().sum(), torch.tensor(1.0).double())


def test_conditionals_match_the_joint_distribution() -> None:
    rbm = random_rbm()
    v, h, exponents = enumerate_states(rbm)
    p = exponents.flatten().softmax(0).view(len(v), len(h))
    given_v = (p / p.sum(1, keepdim=True)) @ h
    given_h = (p / p.sum(0)).mT @ v
    torch.testing.assert_close(rbm.hidden_logits(v).sigmoid(), given_v)
    torch.testing.assert_close(rbm.visible_logits(h).sigmoid(), given_h)


def test_gibbs_steps_leave_the_model_distribution_invariant() -> None:
    rbm = random_rbm()
    samples = rbm.gibbs(rbm.exact_sample(40_000), 1)
    expected = rbm.log_prob(all_masks(4).double()).exp()
    codes = (samples.long() * 2 ** torch.arange(4)).sum(1)
    torch.testing.assert_close(
        torch.bincount(codes, minlength=16) / 40_000, expected, atol=0.01, rtol=0, check_dtype=False
    )


def test_gibbs_chains_converge_to_the_model_distribution() -> None:
    rbm = random_rbm()
    marginals = rbm.log_prob(all_masks(4).double()).exp() @ all_masks(4).double()
    torch.testing.assert_close(rbm.sample(20_000, steps=50).mean(0), marginals, atol=0.02, rtol=0)


def test_persistent_chains_keep_their_state() -> None:
    rbm = random_rbm()
    rbm.negative_sampler = PersistentContrastiveDivergence(5, 4).double()
    before = rbm.negative_sampler.particles.clone()
    for _ in range(20):
        rbm.loss(torch.ones(7, 4).double())
    assert rbm.negative_sampler.particles.shape == (5, 4)
    assert not torch.equal(rbm.negative_sampler.particles, before)
    assert "negative_sampler.particles" in rbm.state_dict()


def test_every_parameter_has_a_gradient() -> None:
    rbm = random_rbm()
    rbm.loss(torch.ones(7, 4).double()).backward()
    assert all(parameter.grad is not None and bool(parameter.grad.any()) for parameter in rbm.parameters())


def test_invalid_input_raises() -> None:
    with pytest.raises(ValueError, match="must be positive; got visible=0"):
        RBM(0, 3)
    with pytest.raises(ValueError, match="steps must be positive; got steps=0"):
        ContrastiveDivergence(0)
    with pytest.raises(ValueError, match=r"must be 0 or 1; got values from 0\.5 to 0\.5"):
        random_rbm().log_prob(torch.full((2, 4), 0.5).double())
    with pytest.raises(ValueError, match="at most 20 units; got 21"):
        RBM(30, 21).log_partition()
