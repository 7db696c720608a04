"""The room's commands: `parnassus watch`, and the evaluation of trained agents."""

COMMANDS = {"watch": "record episodes of a trained agent as an animation (.gif): parnassus watch RUN [flags]"}


def watch(arguments: list[str]) -> int:
    """Record episodes of a trained agent as an animation, and print their returns."""
    from parnassus.reinforcement.commands.record_episodes import parse_watch, record_episodes

    return record_episodes(parse_watch(arguments))
