"""The Helmholtz machine against sums over all hidden states."""

import pytest
import torch

from parnassus.latent.energy_based.helmholtz_machine import HelmholtzMachine, bernoulli_log_prob
from parnassus.layers.dropout import all_masks


def machine(*sizes: int, seed: int = 0) -> HelmholtzMachine:
    torch.manual_seed(seed)
    model = HelmholtzMachine(sizes).double()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter)
    return model


@pytest.mark.parametrize("sizes", [(3, 2), (4, 3, 2), (2, 1, 2, 1)])
def test_the_evidence_sums_to_one_over_all_inputs(sizes: tuple[int, ...]) -> None:
    total = machine(*sizes).log_prob(all_masks(sizes[0]).double()).exp().sum().detach()
    assert float(total) == pytest.approx(1, abs=1e-12)


def test_the_evidence_of_one_hidden_unit_by_hand() -> None:
    model = machine(2, 1)
    x = all_masks(2).double()
    on = model.top_bias.sigmoid()
    shares = [model.down[0](torch.tensor([float(z)]).double()).sigmoid() for z in (0, 1)]
    likelihood = [(x * share + (1 - x) * (1 - share)).prod(1) for share in shares]
    torch.testing.assert_close(model.log_prob(x).exp(), (1 - on) * likelihood[0] + on * likelihood[1])


def test_samples_follow_the_evidence() -> None:
    model = machine(3, 2, 1)
    drawn = model.sample(40_000)
    share = torch.bincount((drawn.long() * 2 ** torch.arange(3)).sum(1), minlength=8) / len(drawn)
    expected = model.log_prob(all_masks(3).double()).exp()
    torch.testing.assert_close(share, expected, atol=0.01, rtol=0, check_dtype=False)


def test_the_recognition_distribution_sums_to_one() -> None:
    model = machine(3, 2, 1)
    z = all_masks(3).double()
    x = torch.tensor([1.0, 0.0, 1.0]).double().expand(8, 3)
    assert float(model.log_recognition([x, z[:, :2], z[:, 2:]]).exp().sum().detach()) == pytest.approx(1, abs=1e-12)


def test_sampled_log_weights_average_to_the_exact_bound() -> None:
    model, x = machine(3, 2, 1), all_masks(3).double()
    drawn = model.log_weights(x, 20_000)
    torch.testing.assert_close(drawn.mean(0), model.exact_bound(x), atol=0.1, rtol=0)
    torch.testing.assert_close(drawn.exp().mean(0), model.log_prob(x).exp(), atol=0.02, rtol=0)
    assert bool((model.exact_bound(x) < model.log_prob(x)).all())


def test_each_phase_has_gradients_for_its_own_weights_only() -> None:
    model, x = machine(3, 2, 1), all_masks(3).double()
    model.wake_loss(x).backward()
    assert all(parameter.grad is None for parameter in model.up.parameters())
    assert all(parameter.grad is not None for parameter in [*model.down.parameters(), model.top_bias])
    model.zero_grad()
    model.sleep_loss(50).backward()
    assert all(parameter.grad is None for parameter in [*model.down.parameters(), model.top_bias])
    assert all(parameter.grad is not None for parameter in model.up.parameters())


def test_bernoulli_units_with_extreme_logits_stay_finite() -> None:
    found = bernoulli_log_prob(torch.tensor([1.0, 0.0]), torch.tensor([500.0, 500.0]))
    assert float(found) == -500.0


def test_invalid_input_raises() -> None:
    with pytest.raises(ValueError, match=r"at least one hidden layer, all positive; got sizes=\[4\]"):
        HelmholtzMachine([4])
    with pytest.raises(ValueError, match="must be 0 or 1; got values from -1 to 1"):
        machine(2, 1).log_prob(torch.tensor([[1.0, -1.0]]).double())
    with pytest.raises(ValueError, match="at most 16 hidden units; got 20"):
        machine(4, 12, 8).log_prob(torch.zeros(1, 4).double())
