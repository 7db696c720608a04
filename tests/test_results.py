"""The command of every stored result is still valid."""

import json
import shlex
from pathlib import Path

from parnassus.atlas.index import Atlas
from parnassus.cli.run import check_settings, parse

ATLAS = Atlas()
RESULTS = sorted((Path(__file__).parents[1] / "results").glob("*.json"))


def test_stored_commands_are_parsed_and_match_their_options() -> None:
    assert len(RESULTS) >= 30
    for path in RESULTS:
        result = json.loads(path.read_text(encoding="utf-8"))
        words = shlex.split(result.get("command_now", result["command"]))
        name, *flags = words[words.index("run") + 1 :]
        entry = ATLAS.experiments[name]
        experiment, options, launch = parse(entry, flags)
        check_settings(entry, experiment)
        assert launch.profile == result["profile"], path.name
        assert options.seed == result["options"]["seed"], path.name
