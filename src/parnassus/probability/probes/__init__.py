"""Interactive probes of Gaussian conditioning and expectation-maximisation."""
