"""The verb `watch`, and the `Evaluate` that experiments with agents share."""

from parnassus.errors import convert_computation_errors

COMMANDS = {"watch": "Record episodes of a trained agent as an animation (.gif): parnassus watch RUN [flags]."}

RUN_EXAMPLES = {"watch": ("watch {run}", "act")}


def watch(arguments: list[str]) -> int:
    """Record episodes of a trained agent as an animation, and print their returns."""
    from parnassus.reinforcement.commands.record_episodes import parse_watch, record_episodes

    settings = parse_watch(arguments)
    with convert_computation_errors():
        return record_episodes(settings)
