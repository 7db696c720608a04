"""One-line messages on how the user's data were read, such as which line of a table was taken for its header.

They are records of the logger `parnassus.data` at level INFO: the command line prints them, a run stores them for its
report, and a program that uses the library sees them if it configures logging.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager

LOGGER = logging.getLogger("parnassus.data")


def notify(line: str) -> None:
    """Log a message on the user's data."""
    LOGGER.info(line)


class _Recipient(logging.Handler):
    """Passes every distinct message to a function once."""

    def __init__(self, receive: Callable[[str], None]) -> None:
        super().__init__(logging.INFO)
        self.receive = receive
        self.seen: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        line = record.getMessage()
        if line not in self.seen:
            self.seen.add(line)
            self.receive(line)


@contextmanager
def pass_notices(receive: Callable[[str], None]) -> Iterator[None]:
    """Call `receive` with every distinct message that is logged inside the context."""
    recipient, level = _Recipient(receive), LOGGER.level
    LOGGER.addHandler(recipient)
    LOGGER.setLevel(min(level, logging.INFO) if level else logging.INFO)
    try:
        yield
    finally:
        LOGGER.removeHandler(recipient)
        LOGGER.setLevel(level)
