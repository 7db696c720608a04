"""Interactive probes: kernel regression, positions, attention maps and next-token distributions (book ch. 10)."""
