"""PPO: loss, minibatches and settings."""

from types import ModuleType

import pytest
import torch

from parnassus.atlas.index import Atlas
from parnassus.cli.run import parse, with_profile
from parnassus.reinforcement.agents import a2c, dqn, ppo, trpo
from parnassus.reinforcement.agents.actor_critic import ActorCritic
from parnassus.reinforcement.agents.ppo import PPOSettings, minibatches, ppo_loss
from parnassus.reinforcement.environments import Discrete
from parnassus.reinforcement.experience.rollout_batch import RolloutBatch
from parnassus.reinforcement.fast.ppo_backward import ppo_backward


def random_batch(rows: int, num_learners: int = 2) -> RolloutBatch:
    torch.manual_seed(0)
    return RolloutBatch(
        torch.randn(num_learners, rows, 4),
        torch.randint(2, (num_learners, rows)),
        torch.full((num_learners, rows), -0.6),
        torch.randn(num_learners, rows),
        torch.randn(num_learners, rows),
    )


def test_loss_matches_the_definition_of_the_paper() -> None:
    batch, model = random_batch(30), ActorCritic(4, Discrete(2), num_learners=2)
    losses = ppo_loss(model, batch, clip_range=0.1, vf_coef=0.3, ent_coef=0.2)
    for learner in range(2):
        distribution, values = model(batch.observations)
        log_probs = distribution.logits[learner].log_softmax(1)
        ratio = (log_probs.gather(1, batch.actions[learner, :, None])[:, 0] + 0.6).exp()
        advantages = batch.advantages[learner]
        advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
        surrogate = torch.minimum(ratio * advantages, ratio.clamp(0.9, 1.1) * advantages).mean()
        entropy = -(log_probs.exp() * log_probs).sum(1).mean()
        value_error = (values[learner] - batch.returns[learner]).square().mean()
        assert torch.allclose(losses[learner], -surrogate + 0.3 * value_error - 0.2 * entropy, atol=1e-6)


@pytest.mark.parametrize("entropy", [0.0, 0.2])
def test_ppo_backward_matches_autograd(entropy: float) -> None:
    batch, model = random_batch(30), ActorCritic(4, Discrete(2), num_learners=2)
    model.actor_head.weight.data *= 100  # some ratios are clipped and some are not
    coefficients = {"clip_range": 0.1, "vf_coef": 0.3, "ent_coef": entropy}
    ppo_loss(model, batch, **coefficients).sum().backward()
    expected = [p.grad.clone() for p in model.parameters() if p.grad is not None]
    model.zero_grad()
    ppo_backward(model, batch, **coefficients)
    for p, gradient in zip(model.parameters(), expected, strict=True):
        torch.testing.assert_close(p.grad, gradient, atol=1e-6, rtol=1e-5)


def test_minibatches_contain_every_row_once_per_epoch() -> None:
    batch = random_batch(12)
    parts = list(minibatches(batch, 4, 2))
    assert len(parts) == 6
    for learner in range(2):
        for epoch in (parts[:3], parts[3:]):
            rows = torch.cat([part.returns[learner] for part in epoch])
            assert torch.equal(rows.sort().values, batch.returns[learner].sort().values)
    assert not torch.equal(parts[0].returns, parts[3].returns)
    assert [part is batch for part in minibatches(batch, 12, 2)] == [True, True]


def test_flags_override_settings_tuned_for_the_environment() -> None:
    entry = Atlas().experiment("ppo")
    tuned, _, _ = parse(entry, ["--env", "Acrobot-v1", "--learning-rate", "0.5"])
    assert tuned == with_profile(entry, "laptop", {"env": "Acrobot-v1", "learning_rate": 0.5})
    assert isinstance(tuned, PPOSettings)
    assert (tuned.learning_rate, tuned.n_envs, tuned.gae_lambda) == (0.5, 16, 0.94)
    other, _, _ = parse(entry, ["--env=CartPole-v1"])
    assert isinstance(other, PPOSettings)
    assert (other.n_envs, other.gae_lambda) == (8, 0.98)
    smoke, _, _ = parse(entry, ["--profile", "smoke", "--env", "Acrobot-v1"])
    assert isinstance(smoke, PPOSettings)
    assert (smoke.total_timesteps, smoke.n_envs) == (1_024, 16)


@pytest.mark.parametrize("module", [a2c, dqn, ppo, trpo])
def test_tuned_settings_differ_from_the_defaults(module: ModuleType) -> None:
    settings = getattr(
        module,
        {"a2c": "A2CSettings", "dqn": "DQNSettings", "ppo": "PPOSettings", "trpo": "TRPOSettings"}[
            module.__name__.split(".")[-1]
        ],
    )
    for preset in module.TUNED.values():
        for name, value in preset.items():
            assert getattr(settings(), name) != getattr(settings(**preset), name) == value
