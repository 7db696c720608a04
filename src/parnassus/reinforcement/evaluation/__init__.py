"""Evaluation of trained agents: episode returns, reward thresholds and confidence intervals."""
