"""Nothing that is shown is invisible."""

from parnassus.text.visible_whitespace import show_whitespace


def test_blanks_new_lines_and_nothing_can_be_seen() -> None:
    assert show_whitespace("a b\n") == "a␣b⏎"
    assert show_whitespace("") == "·"
    assert show_whitespace("word") == "word"
