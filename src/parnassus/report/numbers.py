"""Numbers as people write them: in reports, in the lab and on the command line."""

LARGE, IMMENSE = 9_999.5, 1e15
"""From the first on whole numbers are precise enough; from the second on nobody reads the digits."""


def number(value: object, digits: int = 4) -> str:
    """So many digits that count, thousands apart; anything but a number as it is, nothing as a dash."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return "—" if value is None else str(value)
    whole = isinstance(value, int) or (abs(value) < IMMENSE and value == int(value))
    if whole or LARGE <= abs(value) < IMMENSE:
        return f"{round(value):,}"
    return f"{value:.{digits}g}"
