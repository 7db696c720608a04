"""What is claimed of losses: what they measure, how they slope, what makes them least; each with its number."""
