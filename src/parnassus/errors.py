"""The errors that are meant for the person at the keyboard: one sentence, no traceback."""


class UserError(Exception):
    """Something that the user can put right; the message says what is wrong and what to do."""


class MissingExtraError(UserError, ImportError):
    """An optional dependency is not installed; the message names the command that installs it."""
