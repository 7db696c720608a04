"""Cooperative games: tables of worths, Shapley and Banzhaf values, bankruptcy problems."""
