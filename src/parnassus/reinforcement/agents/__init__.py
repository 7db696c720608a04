"""Agents with networks: REINFORCE, A2C, PPO, TRPO and DQN, and the parts they are made of."""
