"""Only files in the folder of a run are served, by name, and without permission to run scripts."""

import asyncio
import re
import shutil
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from fastapi import FastAPI

from lab.conftest import StartLab
from lab.wire import Response, Wire
from parnassus.lab.files import DOWNLOADS, SANDBOX, file_routes
from parnassus.lab.guard import Guard
from parnassus.lab.library import Library

SECRET = b"content of another file"
HOST = "127.0.0.1:8700"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory, lab_runs: Path) -> Path:
    """Runs with additional files and links in their folders, and files outside of them."""
    outside = tmp_path_factory.mktemp("outside")
    root = outside / "runs"
    for name in ("seed-0", "seed-1"):
        shutil.copytree(lab_runs / name, root / name)
    for prefix in ("secret.txt", "secret.svg", "runs/secret.txt", "runs/seed-0/secret.txt", "runs/seed-0/.secret"):
        (outside / prefix).write_bytes(SECRET)
    (root / ".hidden").mkdir()
    (root / ".hidden" / "run.json").write_bytes(SECRET)
    for name in ("seed-0", "seed-1"):
        (root / name / "samples").mkdir()
        (root / name / "samples" / "seed-3.svg").write_text("<svg/>")
    (root / "seed-0" / "samples" / "out.svg").symlink_to(outside / "secret.svg")
    figures = root / "seed-0" / "figures"
    (figures / ".secret.svg").write_bytes(SECRET)
    (figures / "out.svg").symlink_to(outside / "secret.svg")
    (figures / "inside.svg").symlink_to(figures / ".secret.svg")
    (figures / "folder.svg").mkdir()
    linked = root / "linked"
    linked.mkdir()
    (linked / "run.json").write_text("{}")
    (linked / "figures").symlink_to(outside)
    (linked / "report.html").symlink_to(outside / "secret.txt")
    (linked / "log.txt").symlink_to(root / "seed-0" / ".secret")
    return root


def get(root: Path, target: str) -> Response:
    """The response to exactly this target, which a client would normalise first."""
    path, _, query = target.partition("?")
    scope = {
        "type": "http",
        "method": "GET",
        "path": unquote(path),
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "headers": [(b"host", HOST.encode())],
        "http_version": "1.1",
        "scheme": "http",
        "root_path": "",
    }
    sent: list[dict[str, Any]] = []
    messages = iter([{"type": "http.request", "body": b""}])

    async def receive() -> dict[str, Any]:
        for message in messages:
            return message
        await asyncio.Event().wait()  # the client keeps the connection open
        raise AssertionError("unreachable")

    async def send(message: Any) -> None:
        sent.append(message)

    app = FastAPI()
    app.include_router(file_routes(Library(root)))
    asyncio.run(Guard(app, hosts=[HOST])(scope, receive, send))
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in sent[0]["headers"]}
    return Response(sent[0]["status"], headers, b"".join(message.get("body", b"") for message in sent[1:]))


def test_files_of_a_run_are_served_unchanged(root: Path) -> None:
    for name in DOWNLOADS:
        response = get(root, f"/files/seed-1/{name}")
        assert response.status == 200, name
        assert response.body == (root / "seed-1" / name).read_bytes(), name


def test_figures_are_served_unchanged(root: Path) -> None:
    figures = sorted((root / "seed-1" / "figures").iterdir())
    assert len(figures) >= 4
    for figure in figures:
        assert get(root, f"/files/seed-1/figures/{figure.name.replace(' ', '%20')}").body == figure.read_bytes()


def test_samples_are_served_unchanged(root: Path) -> None:
    assert get(root, "/files/seed-1/samples/seed-3.svg").body == b"<svg/>"
    assert get(root, "/files/seed-1/samples/seed-4.svg").status == 404


PATHS = ["../secret.txt", "%2e%2e/secret.txt", "%2e%2e%2fsecret.txt", "..%2fsecret.txt", "..%5csecret.txt"]
PATHS += [
    "%252e%252e%252fsecret.txt",
    "....//secret.txt",
    "..;/secret.txt",
    "%c0%ae%c0%ae/secret.txt",
    "./secret.txt",
]
PATHS += [
    "../../secret.txt",
    "..%2f..%2fsecret.txt",
    "../../secret.svg",
    "%2e%2e%2f%2e%2e%2fsecret.svg",
    "secret.txt",
]
PATHS += [".secret", "%2esecret", ".secret.svg", ".pid", ".lock", "figures/../.secret", "figures%2f..%2f.secret"]
PATHS += ["../seed-1/run.json", "..%2fseed-1%2frun.json", "../.hidden/run.json", "../seed-0/.secret"]
PATHS += ["run.json%00", "%00run.json", "run.json%00.svg", "run.json%0a", "run.json/", "RUN.JSON", "run.json+"]
PATHS += ["", "/", "//", ".", "..", "figures", "figures/", "figures/.", "folder.svg", "nope.svg", "x" * 300]
FOLDERS = ("/files/seed-0/", "/files/seed-0/figures/", "/files/seed-0/samples/")
RUNS = ["seed", "last", "seed-0%20", "SEED-0", ".hidden", ".", "..", "%2e%2e", "*", "seed-*", "nope"]
STRANGE_NAMES = ['a"; filename="x.exe', "a\r\nSet-Cookie: b=c", "späße 🦌", "a;b=c", "<b>", "%41", "a'b"]


def test_paths_outside_the_folder_are_not_served(root: Path) -> None:
    for address in (folder + name for folder in FOLDERS for name in PATHS):
        response = get(root, address)
        assert response.status in (404, 307), address  # 307: the same address without its last slash
        assert SECRET not in response.body, address


def test_absolute_paths_are_not_served(root: Path) -> None:
    for path in (root.parent / "secret.txt", root / "seed-0" / ".secret", Path("/etc/passwd")):
        for encoded in (str(path), str(path).replace("/", "%2f"), f"file://{path}", f"/{path}"):
            for prefix in ("/files/", "/files/seed-0/", "/files/seed-0/figures/"):
                response = get(root, prefix + encoded)
                assert response.status in (404, 307), prefix + encoded
                assert SECRET not in response.body


def test_links_are_not_followed(root: Path) -> None:
    linked = [f"linked/{name}" for name in ("figures/secret.txt", "figures/secret.svg", "report.html", "log.txt")]
    for name in ("seed-0/samples/out.svg", "seed-0/figures/out.svg", "seed-0/figures/inside.svg", *linked):
        assert get(root, f"/files/{name}").status == 404, name
    assert get(root, "/files/linked/run.json").body == b"{}"


def test_only_exact_run_names_are_found(root: Path) -> None:
    assert [run for run in RUNS if get(root, f"/files/{run}/run.json").status != 404] == []


def test_internal_files_are_not_served(root: Path) -> None:
    names = ["checkpoint.safetensors", "model.json", "story.json", "progress.json", "error.json"]
    assert [name for name in names if get(root, f"/files/seed-0/{name}").status != 404] == []


def test_content_types_and_dispositions(root: Path) -> None:
    cases = [
        ("report.html", "text/html; charset=utf-8", "inline"),
        ("log.txt", "text/plain; charset=utf-8", "inline"),
        ("figures/metric-loss.svg", "image/svg+xml", "inline"),
        ("figures/metric-loss.png", "image/png", "inline"),
        ("metrics.csv", "text/csv; charset=utf-8", "attachment"),
        ("run.json", "application/json", "attachment"),
        ("weights.safetensors", "application/octet-stream", "attachment"),
    ]
    for name, kind, disposition in cases:
        headers = get(root, f"/files/seed-0/{name}").headers
        assert headers["content-type"] == kind
        assert headers["content-disposition"] == f'{disposition}; filename="seed-0-{name.rsplit("/", maxsplit=1)[-1]}"'


def test_files_of_runs_are_sandboxed(root: Path) -> None:
    """Pages and images with scripts are served unchanged, with a policy that loads and runs nothing."""
    figures = root / "seed-1" / "figures"
    hostile = b'<svg xmlns="http://www.w3.org/2000/svg" onload="fetch(\'/\')"><script>alert(1)</script></svg>'
    (figures / "hostile.svg").write_bytes(hostile)
    (figures / "hostile.html").write_bytes(b"<script>fetch('/runs')</script>")
    (root / "seed-1" / "report.html").write_bytes(b"<script>fetch('/runs')</script><form action='/'>")
    for name in ("figures/hostile.svg", "figures/hostile.html", "report.html", "run.json", "log.txt"):
        response = get(root, f"/files/seed-1/{name}")
        assert response.status == 200
        policy = dict(part.partition(" ")[::2] for part in response.headers["content-security-policy"].split("; "))
        assert policy["sandbox"] == ""  # no scripts, no forms, no origin
        assert policy["default-src"] == "'none'"
        assert set(policy) == {"sandbox", "default-src", "style-src", "img-src"}
        assert policy["img-src"] == "data:"
        assert response.headers["x-content-type-options"] == "nosniff"
        assert response.headers["x-frame-options"] == "DENY"
    assert get(root, "/files/seed-1/figures/hostile.svg").body == hostile
    assert get(root, "/files/seed-1/figures/hostile.html").headers["content-disposition"].startswith("attachment")


def test_run_names_are_quoted_in_headers(tmp_path: Path) -> None:
    quoted = r"attachment; filename(\*=utf-8''[\w.%~-]+|=\"[\w.%~-]+\")"
    for name in STRANGE_NAMES:
        (tmp_path / name).mkdir()
        (tmp_path / name / "run.json").write_text("{}")
        address = "".join(f"%{byte:02x}" for byte in name.encode())
        response = get(tmp_path, f"/files/{address}/run.json")
        if "\n" in name:
            assert response.status == 404, name
        else:
            assert response.body == b"{}", name
            assert re.fullmatch(quoted, response.headers["content-disposition"], re.ASCII), name


@pytest.mark.network
def test_lab_serves_files_with_the_same_restrictions(start_lab: StartLab, root: Path) -> None:
    lab = start_lab(root)
    with Wire(lab.port) as wire:
        report = wire.request("/files/seed-0/report.html")
        assert report.body == (root / "seed-0" / "report.html").read_bytes()
        assert report.headers["content-security-policy"] == SANDBOX
        for name in PATHS:
            response = wire.request(f"/files/seed-0/{name}")
            assert response.status in (404, 307), name
            assert SECRET not in response.body
    lab.stop()
