"""Nothing that is shown is invisible."""

from parnassus.text.visible import visible


def test_blanks_new_lines_and_nothing_can_be_seen() -> None:
    assert visible("a b\n") == "a␣b⏎"
    assert visible("") == "·"
    assert visible("word") == "word"
