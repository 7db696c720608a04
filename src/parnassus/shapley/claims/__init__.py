"""Claims about Shapley values, each with numerical evidence."""
