"""Seeds as a person gives them."""

from parnassus.runs.errors import RunError


def demand_a_seed(seed: int) -> None:
    """Refuse in a sentence what torch would refuse in an error."""
    if not 0 <= seed < 2**63:
        raise RunError(f"seed must be a whole number from 0 to 2⁶³ − 1; got {seed}")
