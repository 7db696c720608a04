"""Numbers and names as text, in reports, in the lab and on the command line."""

LARGE, HUGE = 9_999.5, 1e15
"""From the first value on numbers are rounded to integers; from the second on they are written as powers of ten."""


def format_number(value: object, digits: int = 4) -> str:
    """A number with this many significant digits and separated thousands; other values as text, None as a dash."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return "—" if value is None else str(value)
    is_integer = isinstance(value, int) or (abs(value) < HUGE and value == int(value))
    if is_integer or LARGE <= abs(value) < HUGE:
        return f"{round(value):,}"
    return f"{value:.{digits}g}"


def display_name(name: str) -> str:
    """The name of a setting or a metric as it is displayed."""
    return name.replace("_", " ")
