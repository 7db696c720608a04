"""`parnassus lab`: open the lab, a web page for runs, claims and probes."""

from importlib.util import find_spec
from pathlib import Path

from parnassus.atlas.index import load_atlas
from parnassus.runs import RunError
from parnassus.runs.lookup import check_root


def open_lab(root: Path, *, host: str | None, port: int | None, browser: bool) -> int:
    """Serve the lab until it is stopped with Ctrl-C."""
    if find_spec("nicegui") is None:
        raise RunError("the lab needs NiceGUI, which is not installed: pip install 'parnassus[lab]'")
    check_root(root)
    from parnassus.lab.serve import serve

    return serve(root, load_atlas(), host=host, port=port, browser=browser)
