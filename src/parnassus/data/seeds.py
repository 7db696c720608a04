"""Seeds derived from several integers, so that adjacent seeds, epochs and steps have independent streams."""

_MASK = (1 << 64) - 1


def derive_seed(*parts: int) -> int:
    """Fold integers into one 63-bit seed (splitmix64, Steele et al. 2014)."""
    state = 0
    for part in parts:
        state = _splitmix64(state + part)
    return state >> 1


def _splitmix64(state: int) -> int:
    state = (state + 0x9E3779B97F4A7C15) & _MASK
    state = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    state = ((state ^ (state >> 27)) * 0x94D049BB133111EB) & _MASK
    return state ^ (state >> 31)
