"""The command `parnassus`: find the verb, import only what it needs, and print errors as one sentence."""

import importlib
import os
import sys
from collections.abc import Callable

from parnassus.cli.error_messages import user_error_message
from parnassus.notices import pass_notices

DESCRIPTION = """Deep learning from one neuron to AlphaZero.

Run experiments, use trained models, and check the claims of the sources.

Start with: parnassus list, then parnassus run NAME"""

OWN_PARSERS = {verb: f"parnassus.cli.{verb}" for verb in ("run", "sample", "predict", "evaluate")}
"""Verbs whose flags depend on the experiment, with the modules that define the functions of the same names."""


def main() -> None:
    """Run the verb on the command line; exit code 2 and one sentence on bad input, 130 when interrupted."""
    arguments = sys.argv[1:]
    limit_thread_spinning()
    try:
        with pass_notices(print_notice):
            code = dispatch(arguments)
        sys.stdout.flush()  # inside the try block, which handles a closed pipe
    except BrokenPipeError:  # the reader closed the pipe: parnassus list | head
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    except KeyboardInterrupt:
        code = 130
    except Exception as error:
        message = user_error_message(error, arguments)
        if message is None or "PARNASSUS_DEBUG" in os.environ:
            raise
        print(f"parnassus: {message}", file=sys.stderr)
        code = 2
    sys.exit(code)


def print_notice(line: str) -> None:
    """Print a message on the user's data; under torchrun, in the first process only."""
    if os.environ.get("RANK", "0") == "0":
        print(line, file=sys.stderr)


def limit_thread_spinning() -> None:
    """Limit how long waiting threads of torch spin; must be called before torch is imported.

    Without the limit, one other busy process slows a run on two cores by a factor of 100 (measured on the denoiser for
    digits: 50 steps per second alone, 0.5 with the other process); with the limit, the rates are 48 and 20.
    """
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", "1000")


def dispatch(arguments: list[str]) -> int:
    """Call the verb; a verb with its own parser parses its flags itself, all others are parsed by `verbs`."""
    verb, rest = (arguments[0], arguments[1:]) if arguments else ("", [])
    if verb == "--version":
        from parnassus import __version__

        print(__version__)
        return 0
    if verb in ("list", "show", "atlas") and is_plain(verb, rest):
        return answer_from_index(verb, *rest)  # avoids the import time of the parser
    own = find_verb_parser(verb, rest)
    if own is not None:
        return own(rest)

    from parnassus.cli import verbs

    return verbs.parse(arguments, DESCRIPTION)


def is_plain(verb: str, rest: list[str]) -> bool:
    """Whether the verb is followed by at most one name and by no flag."""
    return (len(rest) == 1 or (not rest and verb != "show")) and not any(each.startswith("-") for each in rest)


def answer_from_index(verb: str, name: str | None = None) -> int:
    """`list`, `show NAME` and `atlas`, which only read the index."""
    from parnassus.cli import listing

    if verb == "list":
        return listing.list_experiments(name)
    return listing.show_atlas(name, as_json=False) if name is None or verb == "atlas" else listing.show_anything(name)


def find_verb_parser(verb: str, rest: list[str]) -> Callable[[list[str]], int] | None:
    """The function of a verb that parses its own flags (built in or declared by a room); None for other verbs."""
    if not verb or verb.startswith("-"):
        return None
    from parnassus.atlas.index import UnknownError, load_atlas, nearest_names

    atlas = load_atlas()
    if verb == "run" and rest and not rest[0].startswith("-"):
        atlas.experiment(rest[0])  # rejects an unknown name before torch is imported
    if verb in OWN_PARSERS:
        module = OWN_PARSERS[verb]
    elif verb in atlas.commands:
        module = atlas.commands[verb].module
    else:
        from parnassus.cli.verbs import VERBS

        if verb not in VERBS:
            near = nearest_names(verb, [*VERBS, *atlas.commands])
            raise UnknownError(f"unknown verb: {verb!r}{near}; see: parnassus --help")
        return None
    found: Callable[[list[str]], int] = getattr(importlib.import_module(module), verb)
    return found
