"""Helmholtz machines compared with sums over all hidden states."""

import pytest
import torch

from parnassus.latent.energy_based.helmholtz_machine import HelmholtzMachine, bernoulli_log_prob
from parnassus.layers.dropout import all_masks


def random_machine(*sizes: int, seed: int = 0) -> HelmholtzMachine:
    torch.manual_seed(seed)
    model = HelmholtzMachine(sizes).double()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter)
    return model


@pytest.mark.parametrize("sizes", [(3, 2), (4, 3, 2), (2, 1, 2, 1)])
def test_probabilities_of_all_inputs_sum_to_one(sizes: tuple[int, ...]) -> None:
    total = random_machine(*sizes).log_prob(all_masks(sizes[0]).double()).exp().sum().detach()
    assert float(total) == pytest.approx(1, abs=1e-12)


def test_log_prob_with_one_hidden_unit_matches_closed_form() -> None:
    model = random_machine(2, 1)
    x = all_masks(2).double()
    p_on = model.top_bias.sigmoid()
    probabilities = [model.down[0](torch.tensor([float(z)]).double()).sigmoid() for z in (0, 1)]
    likelihood = [(x * p + (1 - x) * (1 - p)).prod(1) for p in probabilities]
    torch.testing.assert_close(model.log_prob(x).exp(), (1 - p_on) * likelihood[0] + p_on * likelihood[1])


def test_sample_frequencies_match_probabilities() -> None:
    model = random_machine(3, 2, 1)
    samples = model.sample(40_000)
    frequencies = torch.bincount((samples.long() * 2 ** torch.arange(3)).sum(1), minlength=8) / len(samples)
    expected = model.log_prob(all_masks(3).double()).exp()
    torch.testing.assert_close(frequencies, expected, atol=0.01, rtol=0, check_dtype=False)


def test_recognition_distribution_sums_to_one() -> None:
    model = random_machine(3, 2, 1)
    z = all_masks(3).double()
    x = torch.tensor([1.0, 0.0, 1.0]).double().expand(8, 3)
    assert float(model.log_recognition([x, z[:, :2], z[:, 2:]]).exp().sum().detach()) == pytest.approx(1, abs=1e-12)


def test_mean_log_weights_match_the_exact_bound() -> None:
    model, x = random_machine(3, 2, 1), all_masks(3).double()
    log_weights = model.log_weights(x, 20_000)
    torch.testing.assert_close(log_weights.mean(0), model.exact_bound(x), atol=0.1, rtol=0)
    torch.testing.assert_close(log_weights.exp().mean(0), model.log_prob(x).exp(), atol=0.02, rtol=0)
    assert bool((model.exact_bound(x) < model.log_prob(x)).all())


def test_each_phase_has_gradients_for_its_own_weights_only() -> None:
    model, x = random_machine(3, 2, 1), all_masks(3).double()
    model.wake_loss(x).backward()
    assert all(parameter.grad is None for parameter in model.up.parameters())
    assert all(parameter.grad is not None for parameter in [*model.down.parameters(), model.top_bias])
    model.zero_grad()
    model.sleep_loss(50).backward()
    assert all(parameter.grad is None for parameter in [*model.down.parameters(), model.top_bias])
    assert all(parameter.grad is not None for parameter in model.up.parameters())


def test_bernoulli_log_prob_of_extreme_logits_is_finite() -> None:
    log_prob = bernoulli_log_prob(torch.tensor([1.0, 0.0]), torch.tensor([500.0, 500.0]))
    assert float(log_prob) == -500.0


def test_invalid_input_raises() -> None:
    with pytest.raises(ValueError, match=r"at least one hidden layer, all positive; got sizes=\[4\]"):
        HelmholtzMachine([4])
    with pytest.raises(ValueError, match="must be 0 or 1; got values from -1 to 1"):
        random_machine(2, 1).log_prob(torch.tensor([[1.0, -1.0]]).double())
    with pytest.raises(ValueError, match="at most 16 hidden units; got 20"):
        random_machine(4, 12, 8).log_prob(torch.zeros(1, 4).double())


def test_certain_states_keep_the_digits_of_their_log_probability() -> None:
    """Log σ(20) = −2·10⁻⁹, which 20 + log σ(−20) rounds to 0 in float32."""
    log_prob = bernoulli_log_prob(torch.tensor([[1.0], [0.0]]), torch.tensor([[20.0], [-20.0]]))
    torch.testing.assert_close(log_prob, torch.full((2,), -2.0611537e-09), rtol=1e-6, atol=0)
