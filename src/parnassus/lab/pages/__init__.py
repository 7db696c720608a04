"""The pages of the lab."""
