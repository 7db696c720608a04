"""The one error that data raises when a file, a name or a download is not what it should be."""


class DataError(Exception):
    """One clear sentence for the person at the keyboard: what is wrong, and what to do about it."""
