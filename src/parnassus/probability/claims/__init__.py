"""What is claimed of distributions: distances, codes, expectations and inequalities, each claim with its number."""
