"""PPO's loss, its batches and its settings."""

from dataclasses import dataclass

import pytest
import torch

from parnassus.reinforcement.actor_critic import ActorCritic
from parnassus.reinforcement.environments import Discrete
from parnassus.reinforcement.judged import Judged
from parnassus.reinforcement.ppo import TUNED, Settings, minibatches, ppo_backward, ppo_loss
from parnassus.reinforcement.tuned import settled


def drawn(rows: int, learners: int = 2) -> Judged:
    torch.manual_seed(0)
    return Judged(
        torch.randn(learners, rows, 4),
        torch.randint(2, (learners, rows)),
        torch.full((learners, rows), -0.6),
        torch.randn(learners, rows),
        torch.randn(learners, rows),
    )


def test_the_loss_is_what_the_paper_writes() -> None:
    batch, model = drawn(30), ActorCritic(4, Discrete(2), learners=2)
    found = ppo_loss(model, batch, clip=0.1, value_weight=0.3, entropy_weight=0.2)
    for learner in range(2):
        law, values = model(batch.observations)
        logs = law.logits[learner].log_softmax(1)
        ratio = (logs.gather(1, batch.actions[learner, :, None])[:, 0] + 0.6).exp()
        gain = batch.advantages[learner]
        gain = (gain - gain.mean()) / (gain.std() + 1e-8)
        surrogate = torch.minimum(ratio * gain, ratio.clamp(0.9, 1.1) * gain).mean()
        entropy = -(logs.exp() * logs).sum(1).mean()
        error = (values[learner] - batch.returns[learner]).square().mean()
        assert torch.allclose(found[learner], -surrogate + 0.3 * error - 0.2 * entropy, atol=1e-6)


@pytest.mark.parametrize("entropy", [0.0, 0.2])
def test_slopes_written_down_are_those_of_the_loss(entropy: float) -> None:
    batch, model = drawn(30), ActorCritic(4, Discrete(2), learners=2)
    model.choose.weight.data *= 100  # so that some ratios are clipped and some are not
    told = {"clip": 0.1, "value_weight": 0.3, "entropy_weight": entropy}
    ppo_loss(model, batch, **told).sum().backward()
    wanted = [p.grad.clone() for p in model.parameters() if p.grad is not None]
    model.zero_grad()
    ppo_backward(model, batch, **told)
    for p, other in zip(model.parameters(), wanted, strict=True):
        torch.testing.assert_close(p.grad, other, atol=1e-6, rtol=1e-5)


def test_every_row_comes_once_an_epoch() -> None:
    batch = drawn(12)
    parts = list(minibatches(batch, 4, 2))
    assert len(parts) == 6
    for learner in range(2):
        for epoch in (parts[:3], parts[3:]):
            rows = torch.cat([part.returns[learner] for part in epoch])
            assert torch.equal(rows.sort().values, batch.returns[learner].sort().values)
    assert not torch.equal(parts[0].returns, parts[3].returns)
    assert [part is batch for part in minibatches(batch, 12, 2)] == [True, True]


def test_settings_are_as_told_or_as_known() -> None:
    @dataclass
    class Told:
        lr: float | None = 0.5
        copies: int | None = None

    found = settled(TUNED["Acrobot-v1"], Told())
    assert (found.lr, found.copies, found.decay) == (0.5, 16, 0.94)
    assert settled(Settings(), object()) == Settings()
