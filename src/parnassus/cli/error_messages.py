"""The sentence that a user reads for an error, by the type of the error."""

import sys
from collections.abc import Sequence
from errno import ENOSPC

from parnassus.cli.memory_errors import describe_memory_error, is_memory_error
from parnassus.errors import ComputationError, UserError, first_line


def user_error_message(error: Exception, arguments: Sequence[str] = ()) -> str | None:
    """The message for an error that the user can correct; None for an internal error."""
    message, cause = None, error.__cause__ if isinstance(error, ComputationError) else error
    if is_memory_error(cause):
        message = describe_memory_error(cause, arguments)
    elif isinstance(error, UserError):
        message = str(error)
    elif isinstance(error, OSError):
        message = _describe_os_error(error)
    elif isinstance(error, RecursionError):
        message = f"a file or an argument is nested too deeply ({first_line(error)}); simplify it"
    elif _is_safetensors_error(error):
        message = f"a file of tensors cannot be read or written: {first_line(error)}; check the file and the free space"
    return message


def _describe_os_error(error: OSError) -> str:
    if error.errno == ENOSPC:
        return f"the disk is full: {error.filename or error}; free some space, then resume the run"
    return f"{error.filename}: {error.strerror}" if error.filename and error.strerror else str(error)


def _is_safetensors_error(error: Exception) -> bool:
    """Whether safetensors raised the error; the module is not imported, without which the error cannot occur."""
    safetensors = sys.modules.get("safetensors")
    return safetensors is not None and isinstance(error, safetensors.SafetensorError)
