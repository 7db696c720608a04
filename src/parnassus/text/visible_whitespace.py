"""Visible symbols for white space in displayed tokens."""


def show_whitespace(text: str) -> str:
    """The text with ␣ for each space and ⏎ for each newline; · if it is empty."""
    return text.replace("\n", "⏎").replace(" ", "␣") or "·"
