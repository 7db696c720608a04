"""The error of a file, a name or a download that is not what it should be."""

from parnassus.errors import UserError


class DataError(UserError):
    """Data cannot be read; the message says what is wrong and what to do."""
