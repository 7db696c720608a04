"""Claims about discounted returns of rollouts that hold several episodes (book sec. 18.4)."""

import torch

from parnassus.atlas import Evidence, claim, close
from parnassus.reinforcement.experience.returns import discounted_returns


@claim("B18.4-1")
def returns_do_not_continue_into_the_next_episode() -> Evidence:
    """Rewards (1, 2), (3) and (4, …) of three episodes, γ = 0.9, last value 10: exact returns (book sec. 18.4)."""
    rewards = torch.tensor([1.0, 2.0, 3.0, 4.0], dtype=torch.float64)[:, None]
    ended = torch.tensor([False, True, True, False])[:, None]
    last = torch.tensor([10.0], dtype=torch.float64)
    returns = discounted_returns(rewards, ended, gamma=0.9, last_values=last)
    return close(returns[:, 0], torch.tensor([1 + 0.9 * 2, 2.0, 3.0, 4 + 0.9 * 10], dtype=torch.float64), rtol=1e-12)
