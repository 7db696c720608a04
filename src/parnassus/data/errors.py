"""The error for data that cannot be read or downloaded."""

from parnassus.errors import UserError


class DataError(UserError):
    """Data cannot be read; the message states what is wrong and what to do."""
