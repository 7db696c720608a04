"""The command of every stored result is still valid."""

import json
import shlex
from pathlib import Path

from parnassus.atlas.index import Atlas
from parnassus.atlas.settings import check_limits
from parnassus.cli.run import parse

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
        check_limits(entry.settings, experiment)
        assert launch.profile == result["profile"], path.name
        assert options.seed == result["options"]["seed"], path.name
