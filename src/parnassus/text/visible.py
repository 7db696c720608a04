"""White space made visible, where tokens are shown one by one."""


def visible(text: str) -> str:
    """A token as it can be seen: ␣ for a blank, ⏎ for a new line, · for nothing."""
    return text.replace("\n", "⏎").replace(" ", "␣") or "·"
