"""`parnassus lab`: the web page over the same runs."""

from importlib.util import find_spec
from pathlib import Path

from parnassus.atlas.index import Atlas
from parnassus.runs import RunError


def open_lab(root: Path, *, host: str | None, port: int | None, browser: bool) -> int:
    """Serve until Ctrl-C."""
    if find_spec("nicegui") is None:
        raise RunError("the lab needs NiceGUI, which is not installed: pip install 'parnassus[lab]'")
    from parnassus.lab.serve import serve

    return serve(root, Atlas(), host=host, port=port, browser=browser)
