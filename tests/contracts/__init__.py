"""Contracts: what every public member of a family holds to. The members are discovered, not listed."""
