"""Interactive probes of trained flows."""
