"""Reinforcement learning: tabular methods, policy gradients, actor-critic methods and deep Q-learning."""

from parnassus.reinforcement.agents.a2c import a2c_loss
from parnassus.reinforcement.agents.action_distributions import Categorical, DiagonalGaussian
from parnassus.reinforcement.agents.actor_critic import ActorCritic
from parnassus.reinforcement.agents.actor_parameters import ActorParameters
from parnassus.reinforcement.agents.dqn import dqn_loss, epsilon_greedy, epsilon_greedy_actor, q_loss, update_target
from parnassus.reinforcement.agents.ppo import ppo_loss
from parnassus.reinforcement.agents.q_learning_targets import (
    double_q_targets,
    q_targets,
    squared_td_loss,
    values_of_actions,
)
from parnassus.reinforcement.agents.q_network import DuelingQNetwork, QNetwork, dueling_q_values
from parnassus.reinforcement.agents.reinforce import (
    EpisodeBatch,
    collect_episodes,
    gradient_variance,
    reinforce_objective,
    reinforce_weights,
)
from parnassus.reinforcement.agents.stacked_networks import StackedLinear, StackedMLP
from parnassus.reinforcement.agents.surrogate import clipped_surrogate, policy_ratio
from parnassus.reinforcement.agents.trpo import trust_region_update
from parnassus.reinforcement.environments import BrokenEnvironmentError, Environments, make_environments
from parnassus.reinforcement.evaluation.episode_returns import bootstrap_interval, episode_returns, interquartile_mean
from parnassus.reinforcement.evaluation.stop_on_reward_threshold import StopOnRewardThreshold
from parnassus.reinforcement.experience.collector import Collector, Experience
from parnassus.reinforcement.experience.generalised_advantage import generalised_advantages, td_errors
from parnassus.reinforcement.experience.prioritised_replay import PrioritisedReplayBuffer
from parnassus.reinforcement.experience.replay_buffer import ReplayBuffer, ReplaySample
from parnassus.reinforcement.experience.returns import discounted_returns
from parnassus.reinforcement.experience.rollout_batch import RolloutBatch, estimate_advantages
from parnassus.reinforcement.experience.running_statistics import RewardNormaliser, RunningMeanStd
from parnassus.reinforcement.experience.transitions import NStepTransitions, Transitions
from parnassus.reinforcement.fast.dqn_backward import q_loss_gradient
from parnassus.reinforcement.fast.flat_adam import FlatAdam
from parnassus.reinforcement.fast.gradient_clipping import clip_grad_norm_per_learner
from parnassus.reinforcement.fast.relu_network import ReLUMLP
from parnassus.reinforcement.tabular.categorical_sampling import sample_categorical
from parnassus.reinforcement.tabular.control import (
    NextStep,
    expected_sarsa_value,
    q_learning_value,
    sarsa_value,
    td_control,
)
from parnassus.reinforcement.tabular.double_q_learning import double_q_learning
from parnassus.reinforcement.tabular.epsilon_greedy_learners import LearningRecord, TabularLearners
from parnassus.reinforcement.tabular.expected_advantage import expected_advantages
from parnassus.reinforcement.tabular.exploration import add_exploration, epsilon_greedy_policy
from parnassus.reinforcement.tabular.grid_world import GridWorld
from parnassus.reinforcement.tabular.markov_decision_process import MarkovDecisionProcess
from parnassus.reinforcement.tabular.markov_reward_process import MarkovRewardProcess, solve_bellman
from parnassus.reinforcement.tabular.n_step_control import n_step_td_control
from parnassus.reinforcement.tabular.policy_gradient import (
    expected_return,
    mean_and_variance,
    optimal_baseline,
    policy_gradient,
    reinforce_estimates,
    return_weights,
    softmax_policy,
)
from parnassus.reinforcement.tabular.prediction import monte_carlo_values, td_lambda
from parnassus.reinforcement.tabular.rollout import Rollout, rollout
from parnassus.reinforcement.tabular.step_sizes import constant_step_size, polynomial_step_size
from parnassus.reinforcement.tabular.synchronous_q_learning import synchronous_q_learning
from parnassus.reinforcement.tabular.trajectories import TrajectoryDistribution, enumerate_trajectories
from parnassus.reinforcement.tabular.trust_region import (
    fisher_product,
    improvement_lower_bound,
    occupancy_weighted_kl,
    surrogate_return,
    trust_region_step,
)
from parnassus.reinforcement.tabular.value_and_policy_iteration import (
    PlanningResult,
    backward_induction,
    modified_policy_iteration,
    optimal_backup,
    policy_iteration,
    value_iterates,
    value_iteration,
)
from parnassus.reinforcement.textbook.cat import cat_chain, cat_decision_process, cat_reward_process

__all__ = [
    "ActorCritic",
    "ActorParameters",
    "BrokenEnvironmentError",
    "Categorical",
    "Collector",
    "DiagonalGaussian",
    "DuelingQNetwork",
    "Environments",
    "EpisodeBatch",
    "Experience",
    "FlatAdam",
    "GridWorld",
    "LearningRecord",
    "MarkovDecisionProcess",
    "MarkovRewardProcess",
    "NStepTransitions",
    "NextStep",
    "PlanningResult",
    "PrioritisedReplayBuffer",
    "QNetwork",
    "ReLUMLP",
    "ReplayBuffer",
    "ReplaySample",
    "RewardNormaliser",
    "Rollout",
    "RolloutBatch",
    "RunningMeanStd",
    "StackedLinear",
    "StackedMLP",
    "StopOnRewardThreshold",
    "TabularLearners",
    "TrajectoryDistribution",
    "Transitions",
    "a2c_loss",
    "add_exploration",
    "backward_induction",
    "bootstrap_interval",
    "cat_chain",
    "cat_decision_process",
    "cat_reward_process",
    "clip_grad_norm_per_learner",
    "clipped_surrogate",
    "collect_episodes",
    "constant_step_size",
    "discounted_returns",
    "double_q_learning",
    "double_q_targets",
    "dqn_loss",
    "dueling_q_values",
    "enumerate_trajectories",
    "episode_returns",
    "epsilon_greedy",
    "epsilon_greedy_actor",
    "epsilon_greedy_policy",
    "estimate_advantages",
    "expected_advantages",
    "expected_return",
    "expected_sarsa_value",
    "fisher_product",
    "generalised_advantages",
    "gradient_variance",
    "improvement_lower_bound",
    "interquartile_mean",
    "make_environments",
    "mean_and_variance",
    "modified_policy_iteration",
    "monte_carlo_values",
    "n_step_td_control",
    "occupancy_weighted_kl",
    "optimal_backup",
    "optimal_baseline",
    "policy_gradient",
    "policy_iteration",
    "policy_ratio",
    "polynomial_step_size",
    "ppo_loss",
    "q_learning_value",
    "q_loss",
    "q_loss_gradient",
    "q_targets",
    "reinforce_estimates",
    "reinforce_objective",
    "reinforce_weights",
    "return_weights",
    "rollout",
    "sample_categorical",
    "sarsa_value",
    "softmax_policy",
    "solve_bellman",
    "squared_td_loss",
    "surrogate_return",
    "synchronous_q_learning",
    "td_control",
    "td_errors",
    "td_lambda",
    "trust_region_step",
    "trust_region_update",
    "update_target",
    "value_iterates",
    "value_iteration",
    "values_of_actions",
]
