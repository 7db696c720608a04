"""Errors that stop a run."""

from parnassus.errors import UserError


class RunError(UserError):
    """The run cannot go on; the message says why and what to do."""


class NotFiniteError(RunError):
    """A number that should be finite is not; the message names it."""


class Interrupted(Exception):  # noqa: N818 - a request, not an error
    """The person asked to stop; everything up to here is saved."""
