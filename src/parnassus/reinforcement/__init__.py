"""Reinforcement learning: acting so that the rewards to come are large."""

from parnassus.reinforcement.a2c import a2c_loss
from parnassus.reinforcement.actor_critic import ActorCritic
from parnassus.reinforcement.actor_vector import ActorVector
from parnassus.reinforcement.advantage import generalised_advantages, td_errors
from parnassus.reinforcement.bootstrap import bootstrap_interval
from parnassus.reinforcement.cat import cat_chain, cat_decisions, cat_rewards
from parnassus.reinforcement.collector import Collector, Experience
from parnassus.reinforcement.conjugate_gradient import conjugate_gradient
from parnassus.reinforcement.decision import MarkovDecisionProcess
from parnassus.reinforcement.double_q import double_q_learning
from parnassus.reinforcement.dqn import explored, exploring, hold, q_loss, q_slope
from parnassus.reinforcement.draws import draw
from parnassus.reinforcement.environments import BrokenEnvironmentError, Environments, environments
from parnassus.reinforcement.evaluation import episode_returns, interquartile_mean
from parnassus.reinforcement.expected_advantage import expected_advantages
from parnassus.reinforcement.exploration import epsilon_greedy, trembling
from parnassus.reinforcement.grid_world import GridWorld
from parnassus.reinforcement.judged import Judged, judged
from parnassus.reinforcement.laws import Choice, Spread
from parnassus.reinforcement.lean_adam import LeanAdam
from parnassus.reinforcement.markov_reward import MarkovRewardProcess, solve_bellman
from parnassus.reinforcement.moments import Moments, RewardScale
from parnassus.reinforcement.n_step import learn_n_steps
from parnassus.reinforcement.planning import (
    Plan,
    finite_horizon,
    modified_policy_iteration,
    optimal_backup,
    policy_iteration,
    value_iterates,
    value_iteration,
)
from parnassus.reinforcement.policy_gradient import (
    expected_return,
    mean_and_variance,
    policy_gradient,
    quietest_baseline,
    reinforce,
    return_weights,
    softmax_policy,
)
from parnassus.reinforcement.ppo import ppo_loss
from parnassus.reinforcement.prediction import sampled_values, temporal_differences
from parnassus.reinforcement.prioritised import PrioritisedReplay
from parnassus.reinforcement.q_network import DuelingQNetwork, QNetwork, dueling
from parnassus.reinforcement.rectified import RectifiedMLP
from parnassus.reinforcement.replay import Remembered, Replay
from parnassus.reinforcement.returns import discounted_returns
from parnassus.reinforcement.rollout import Rollout, rollout
from parnassus.reinforcement.solved import UntilSolved
from parnassus.reinforcement.stacked import StackedLinear, StackedMLP, clip_each
from parnassus.reinforcement.step_sizes import constant, shrinking
from parnassus.reinforcement.surrogate import clipped_surrogate, policy_ratio
from parnassus.reinforcement.sweeps import sweeping_q_learning
from parnassus.reinforcement.tabular import Ahead, best_next, drawn_next, expected_next, learn
from parnassus.reinforcement.targets import double_q_targets, half_squared_error, q_targets, taken
from parnassus.reinforcement.trajectories import Trajectories, trajectories
from parnassus.reinforcement.transitions import NSteps, Transitions
from parnassus.reinforcement.trpo import natural_step
from parnassus.reinforcement.trust_region import (
    fisher_product,
    improvement_floor,
    mean_kl,
    surrogate_return,
    trust_region_step,
)
from parnassus.reinforcement.walks import Learned, Walks
from parnassus.reinforcement.whole_episodes import (
    Episodes,
    reinforce_objective,
    reinforce_weights,
    slope_variance,
    whole_episodes,
)

__all__ = [
    "ActorCritic",
    "ActorVector",
    "Ahead",
    "BrokenEnvironmentError",
    "Choice",
    "Collector",
    "DuelingQNetwork",
    "Environments",
    "Episodes",
    "Experience",
    "GridWorld",
    "Judged",
    "LeanAdam",
    "Learned",
    "MarkovDecisionProcess",
    "MarkovRewardProcess",
    "Moments",
    "NSteps",
    "Plan",
    "PrioritisedReplay",
    "QNetwork",
    "RectifiedMLP",
    "Remembered",
    "Replay",
    "RewardScale",
    "Rollout",
    "Spread",
    "StackedLinear",
    "StackedMLP",
    "Trajectories",
    "Transitions",
    "UntilSolved",
    "Walks",
    "a2c_loss",
    "best_next",
    "bootstrap_interval",
    "cat_chain",
    "cat_decisions",
    "cat_rewards",
    "clip_each",
    "clipped_surrogate",
    "conjugate_gradient",
    "constant",
    "discounted_returns",
    "double_q_learning",
    "double_q_targets",
    "draw",
    "drawn_next",
    "dueling",
    "environments",
    "episode_returns",
    "epsilon_greedy",
    "expected_advantages",
    "expected_next",
    "expected_return",
    "explored",
    "exploring",
    "finite_horizon",
    "fisher_product",
    "generalised_advantages",
    "half_squared_error",
    "hold",
    "improvement_floor",
    "interquartile_mean",
    "judged",
    "learn",
    "learn_n_steps",
    "mean_and_variance",
    "mean_kl",
    "modified_policy_iteration",
    "natural_step",
    "optimal_backup",
    "policy_gradient",
    "policy_iteration",
    "policy_ratio",
    "ppo_loss",
    "q_loss",
    "q_slope",
    "q_targets",
    "quietest_baseline",
    "reinforce",
    "reinforce_objective",
    "reinforce_weights",
    "return_weights",
    "rollout",
    "sampled_values",
    "shrinking",
    "slope_variance",
    "softmax_policy",
    "solve_bellman",
    "surrogate_return",
    "sweeping_q_learning",
    "taken",
    "td_errors",
    "temporal_differences",
    "trajectories",
    "trembling",
    "trust_region_step",
    "value_iterates",
    "value_iteration",
    "whole_episodes",
]
