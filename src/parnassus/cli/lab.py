"""`parnassus lab`: the web page over the same runs."""

from concurrent.futures import ProcessPoolExecutor
from importlib.util import find_spec
from multiprocessing import get_context
from pathlib import Path

from parnassus.atlas.index import read_atlas
from parnassus.runs import RunError


def open_lab(root: Path, *, host: str | None, port: int | None, browser: bool) -> int:
    """Serve until Ctrl-C."""
    if find_spec("nicegui") is None:
        raise RunError("the lab needs NiceGUI, which is not installed: pip install 'parnassus[lab]'")
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as beside:
        reading = beside.submit(read_atlas)  # while this process imports what serves: each takes half a second
        from parnassus.lab.serve import serve

        atlas = reading.result()
    return serve(root, atlas, host=host, port=port, browser=browser)
