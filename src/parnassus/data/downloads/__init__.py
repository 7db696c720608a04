"""Public data sets: verified downloads, the data directory, and what is in it."""
