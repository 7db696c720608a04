"""The command `parnassus`: find the verb, import only what it needs, print errors as sentences."""

import importlib
import os
import sys
from collections.abc import Callable
from errno import ENOSPC

DESCRIPTION = """Deep learning from one neuron to AlphaZero.

Run a method, use its parts, check what the texts claim.

Start with: parnassus list, then parnassus run NAME"""

OWN_PARSERS = {verb: f"parnassus.cli.{verb}" for verb in ("run", "sample", "predict", "evaluate")}
"""Verbs whose flags depend on the experiment, and the module with the function of the same name."""


def main() -> None:
    """Run the verb on the command line; exit code 2 and one sentence on bad input, 130 when interrupted."""
    arguments = sys.argv[1:]
    limit_spinning()
    try:
        code = dispatch(arguments)
        sys.stdout.flush()  # here, where a closed pipe is no surprise
    except BrokenPipeError:  # the reader closed our output: parnassus list | head
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    except KeyboardInterrupt:
        code = 130
    except Exception as error:
        message = sentence(error)
        if message is None or "PARNASSUS_DEBUG" in os.environ:
            raise
        print(f"parnassus: {message}", file=sys.stderr)
        code = 2
    sys.exit(code)


def limit_spinning() -> None:
    """Limit how long waiting threads of torch spin; this must be set before torch is imported.

    By default one other busy process slows a run on two cores by a factor of 100 (measured on the denoiser for digits:
    50 steps per second alone, 0.5 beside it); with this limit the rates are 48 and 20.
    """
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", "1000")


def dispatch(arguments: list[str]) -> int:
    """Call the verb: one with flags of its own kind parses them itself, all others are parsed by `verbs`."""
    verb, rest = (arguments[0], arguments[1:]) if arguments else ("", [])
    if verb == "--version":
        from parnassus import __version__

        print(__version__)
        return 0
    if verb in ("list", "show", "atlas") and is_plain(verb, rest):
        return answer_from_index(verb, *rest)  # without the time that it takes to import the parser
    own = own_parser(verb, rest)
    if own is not None:
        return own(rest)

    from parnassus.cli import verbs

    return verbs.parse(arguments, DESCRIPTION)


def is_plain(verb: str, rest: list[str]) -> bool:
    """Whether there is at most one name behind the verb and no flag."""
    return (len(rest) == 1 or (not rest and verb != "show")) and not any(each.startswith("-") for each in rest)


def answer_from_index(verb: str, name: str | None = None) -> int:
    """`list`, `show NAME` and `atlas`, which only read the index."""
    from parnassus.cli import listing

    if verb == "list":
        return listing.list_experiments(name)
    return listing.show_atlas(name, as_json=False) if name is None or verb == "atlas" else listing.show_anything(name)


def own_parser(verb: str, rest: list[str]) -> Callable[[list[str]], int] | None:
    """The function of a verb that parses its own flags: one of the command line's, or one that a room declares."""
    if not verb or verb.startswith("-"):
        return None
    from parnassus.atlas.index import Atlas, UnknownError, nearest

    atlas = Atlas()
    if verb == "run" and rest and not rest[0].startswith("-"):
        atlas.experiment(rest[0])  # an unknown name is refused before torch is imported
    if verb in OWN_PARSERS:
        module = OWN_PARSERS[verb]
    elif verb in atlas.commands:
        module = atlas.commands[verb].module
    else:
        from parnassus.cli.verbs import VERBS

        if verb not in VERBS:
            near = nearest(verb, [*VERBS, *atlas.commands])
            raise UnknownError(f"there is no verb {verb!r}{near}; see: parnassus --help")
        return None
    found: Callable[[list[str]], int] = getattr(importlib.import_module(module), verb)
    return found


def sentence(error: Exception) -> str | None:
    """What to print for an error that the user can put right; None for a mistake of ours."""
    from parnassus.errors import UserError

    if isinstance(error, UserError | ValueError):
        return str(error)
    if isinstance(error, OSError):
        if error.errno == ENOSPC:
            return f"the disk is full: {error.filename or error}; free some space, then resume the run"
        return f"{error.filename}: {error.strerror}" if error.filename and error.strerror else str(error)
    if isinstance(error, MemoryError) or is_out_of_memory(error):
        return f"out of memory: {str(error).splitlines()[0]}; try a smaller batch or another --device"
    return None


def is_out_of_memory(error: Exception) -> bool:
    """Whether a device has no memory left; torch is not imported to ask, for without it there is no such error."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(error, torch.OutOfMemoryError)
