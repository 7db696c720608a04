"""Estimators of Shapley values from a budget of coalitions: Kernel SHAP, permutations, strata."""
