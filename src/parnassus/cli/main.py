"""The command `parnassus`: finds the verb, imports only what it needs, turns errors into sentences."""

import os
import sys

DESCRIPTION = """Deep learning from one neuron to AlphaZero.

Run a method, use its parts, check what the texts claim.

Start with: parnassus list, then parnassus run NAME"""


def main() -> None:
    """Run the verb on the command line; exit code 2 and one sentence on bad input, 130 when interrupted."""
    arguments = sys.argv[1:]
    give_way()
    try:
        code = dispatch(arguments)
        sys.stdout.flush()  # here, where a closed pipe is no surprise
    except BrokenPipeError:  # the reader of our output has seen enough: parnassus list | head
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


def give_way() -> None:
    """Let threads of torch that wait for each other give way soon; it must be said before torch is imported.

    By default they spin so long that one other busy process slows a run on two cores a hundredfold (measured on the
    digits' denoiser: 50 steps a second alone, 0.5 beside it). With this it is 48 and 20.
    """
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", "1000")


def dispatch(arguments: list[str]) -> int:
    """Call the verb; `run` and `sample` take flags that depend on the experiment, so they parse for themselves.

    So does `explain`, whose flags are the fields of a dataclass.
    """
    from parnassus.cli import verbs

    if arguments[:1] == ["--version"]:
        from parnassus import __version__

        print(__version__)
        return 0
    if arguments[:1] == ["run"]:
        if arguments[1:] and not arguments[1].startswith("-"):
            from parnassus.atlas.index import Atlas

            Atlas().experiment(arguments[1])  # a wrong name is told before torch is imported
        from parnassus.cli.run import run

        return run(arguments[1:])
    if arguments[:1] == ["sample"]:
        from parnassus.cli.sample import sample

        return sample(arguments[1:])
    if arguments[:1] == ["explain"]:
        from parnassus.cli.explain import explain_rows

        return explain_rows(arguments[1:])
    if arguments and not arguments[0].startswith("-") and arguments[0] not in verbs.VERBS:
        from parnassus.atlas.index import UnknownError, nearest

        verb = arguments[0]
        raise UnknownError(f"there is no verb {verb!r}{nearest(verb, verbs.VERBS)}; see: parnassus --help")
    return verbs.parse(arguments, DESCRIPTION)


def sentence(error: Exception) -> str | None:
    """What to tell the person; None for what can only be a mistake of ours."""
    from parnassus.atlas.index import UnknownError

    missing_extra = isinstance(error, ImportError) and "pip install" in str(error)
    if missing_extra or isinstance(error, UnknownError):
        return str(error)
    if isinstance(error, OSError):
        if error.errno == 28:
            return f"the disk is full: {error.filename or error}; free some space, then resume the run"
        return f"{error.filename}: {error.strerror}" if error.filename and error.strerror else str(error)
    names = {kind.__name__ for kind in type(error).__mro__}
    if names & {"RunError", "DataError", "ModelError", "BrokenEnvironmentError", "ValueError"}:
        return str(error)
    if isinstance(error, MemoryError) or "OutOfMemoryError" in names:
        return f"out of memory: {str(error).splitlines()[0]}; try a smaller batch or another --device"
    return None
