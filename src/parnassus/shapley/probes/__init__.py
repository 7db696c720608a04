"""Interactive views of Shapley values: small games, estimators, explanations."""
