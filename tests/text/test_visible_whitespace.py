"""Visible symbols for white space."""

from parnassus.text.visible_whitespace import show_whitespace


def test_spaces_newlines_and_empty_texts_are_visible() -> None:
    assert show_whitespace("a b\n") == "a␣b⏎"
    assert show_whitespace("") == "·"
    assert show_whitespace("word") == "word"
