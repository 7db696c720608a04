"""Errors that stop a run."""

from parnassus.errors import UserError


class RunError(UserError):
    """The run cannot continue; the message states the reason and what to do."""


class NotFiniteError(RunError):
    """A value is NaN or infinite; the message contains its name."""


class RunInterrupted(Exception):  # noqa: N818 - a request, not an error
    """The user requested a stop; the state up to this point is saved."""
