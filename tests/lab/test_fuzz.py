"""Ten thousand invalid or hostile requests cause no errors and no leaks; PARNASSUS_FUZZ is the seed."""

import json
import os
import random
import shutil
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

import pytest
from websockets.exceptions import ConnectionClosed

from lab.conftest import Lab, StartLab
from lab.wire import Page, Response, Wire, open_page

pytestmark = [pytest.mark.network, pytest.mark.xdist_group("fuzz")]
SEED = int(os.environ.get("PARNASSUS_FUZZ", "0"))
SECRET = "canary-5d1f0c7e9ab34"
REQUESTS = {"paths": 3000, "files": 1500, "headers": 900, "queries": 400, "methods": 300, "forms": 500, "garbage": 300}
REQUESTS |= {"plain": 150, "messages": 3000}
PREFIXES = ["/", "/runs", "/runs/", "/files/", "/experiments/", "/subjects/", "/claims/", "/errata/", "/probes/"]
PREFIXES += ["/compare", "/_nicegui/", "/_nicegui/client/", "/_nicegui_ws/", "/_nicegui_ws/socket.io/", "//", "/."]
NAMES = ["seed-0", "seed-1", "pca", "linked", "classifier_on_digits", "draw_a_digit", "latent", "B4", "report.html"]
NAMES += [
    "figures",
    "metric-loss.svg",
    "run.json",
    "log.txt",
    "metrics.csv",
    "checkpoint.safetensors",
    "static",
    "last",
]
HOSTILE = ["..", "../..", "../../..", "%2e%2e", "%2e%2e%2f", "..%2f..%2f", "%252e%252e%252f", "..%5c..%5c", "....//"]
HOSTILE += ["%c0%ae%c0%ae/", "%00", "%00.svg", "%0d%0aSet-Cookie:%20a=b", "%ff%fe", "%ed%a0%80", "~", ".", "%7f"]
HOSTILE += [".secret", ".pid", ".lock", ".uploads", "%2esecret", "/etc/passwd", "%2fetc%2fpasswd", "file:%2f%2f%2fetc"]
HOSTILE += ["canary.txt", "%2e%2e/canary.txt", "%2e%2e%2fcanary.txt", "..%2f..%2fcanary.txt", "canary.svg", "-1", "0"]
HOSTILE += ["NaN", "null", "None", "--help", "%2d%2dfolder=x", "CON", "a" * 300, "%41" * 400, "x" * 6000, "%e2%80%ae"]
HOSTILE += [quote("<script>alert(1)</script>"), quote("'\"><img src=x onerror=alert(1)>"), quote("${7*7}{{7*7}}")]
HOSTILE += [
    quote("' OR 1=1 --"),
    quote("; touch canary"),
    quote("$(touch canary)"),
    quote("🦌"),
    quote("٣"),
    "%",
    "%zz",
]
HEADERS = ["Host", "Origin", "Referer", "Cookie", "User-Agent", "Accept", "Accept-Encoding", "Range", "If-None-Match"]
HEADERS += ["If-Modified-Since", "Content-Type", "Content-Length", "X-Forwarded-Prefix", "X-Forwarded-For", "Upgrade"]
HEADERS += ["X-Forwarded-Host", "Sec-Fetch-Site", "Sec-Fetch-Mode", "Sec-Purpose", "Connection", "Authorization"]
HEADERS += ["Accept-Language", "Sec-WebSocket-Key", "Sec-WebSocket-Version", "If-Range", "Expect", "X-HTTP-Method"]
VALUES = [
    "bytes=0-",
    "bytes=5-1",
    "bytes=-0",
    "bytes=999999999999999999-",
    "bytes=0-1,2-3,x",
    "text/markdown",
    "*/*;q=x",
]
VALUES += ["multipart/form-data", "multipart/form-data; boundary=", "application/json; charset=nope", "websocket", "-5"]
VALUES += ["1e9", "99999999999999999999", "Thu, 99 Foo 2026 99:99:99 GMT", "null", "http://evil.example", "prefetch"]
VALUES += [
    "parnassus_lab=x; parnassus_lab=",
    'a="; b=\\"',
    "cross-site",
    "navigate",
    "identity;q=nan",
    "//evil.example",
]
PAGES = ["/experiments/classifier_on_digits", "/runs/seed-0", "/runs", "/compare?run=seed-0&run=seed-1", "/"]
PAGES += ["/probes/plot_activation", "/probes/draw_a_digit?run=seed-0", "/claims", "/subjects/latent"]
JSONS = ["NaN", "1e999", "-1e308", "9" * 400, "null", "true", "0", "-1", "1.5", '""', "[]", "{}", '{"value": 1e300}']
JSONS += [
    '{"value": -1, "label": "x"}',
    '{"value": {}, "label": []}',
    '{"value": "../../etc/passwd"}',
    "[NaN, 1]",
    "[[]]",
]
JSONS += ['"abc"', '"nan"', '"-inf"', '"1e5"', '"../../canary.txt"', '"' + "x" * 5000 + '"', '"\\u0000"', '"\\ud800"']
JSONS += ["[" * 500 + "]" * 500, '{"keys": 5, "rows": null, "added": "x"}', '{"rows": [{"name": "nope"}]}', "[0, 1, 2]"]
JSONS += ["[" + ",".join(["0.5"] * 64) + "]", "[" + ",".join(["7"] * 784) + "]", "{", "", "\\", '"\\x"', "[1e400, 2]"]
INVALID_NUMBERS = ['"1e3"', '"-"', '"nan"', "null", "[3]", '{"a": 1}', '"3; touch x"', '"$(x)"', '"' + "9" * 300 + '"']


class Fuzz:
    """Seeded requests of one kind."""

    def __init__(self, lab: Lab, seed: int) -> None:
        self.lab, self.random, self.wire = lab, random.Random(f"{SEED} {seed}"), Wire(lab.port)
        self.upload, self.resource_folders = "/nowhere", list[str]()  # found on a page

    def word(self) -> str:
        return self.random.choice(self.random.choice([NAMES, HOSTILE]))

    def noise(self, max_length: int = 40) -> bytes:
        return self.random.randbytes(self.random.randrange(max_length))

    def path(self) -> str:
        words = [self.word() for _ in range(self.random.choice((0, 1, 1, 2, 2, 3, 5)))]
        start, between = self.random.choice([*PREFIXES, *self.resource_folders]), self.random.choice("///?;#")
        return start + between.join(words)

    def paths(self) -> Response:
        return self.wire.request(self.path())

    def files(self) -> Response:
        run = self.random.choice(["seed-0", "linked", "pca", self.word()])
        parts = [self.word() for _ in range(self.random.choice((1, 1, 2)))]
        name = self.random.choice(["figures/" + self.word(), *parts])
        return self.wire.request(f"/files/{run}/{name}")

    def headers(self) -> Response:
        given = tuple((self.random.choice(HEADERS), self._value()) for _ in range(self.random.choice((1, 1, 2, 4))))
        return self.wire.request(self.random.choice(["/nowhere", "/files/seed-0/run.json", "/probes"]), headers=given)

    def _value(self) -> str | bytes:
        clean = self.noise(60).translate(None, b"\r\n\0")
        values: list[str | bytes] = [self.random.choice(VALUES), self.word(), clean, "x" * 9000]
        return self.random.choice(values)

    def queries(self) -> Response:
        base = self.random.choice(["/runs", "/compare", "/nowhere", "/files/pca/run.json", "/probes/draw_a_digit"])
        names = ["like", "run", "run", "token", "client_id", "", "v", "%00", "__proto__"]
        pairs = "&".join(f"{self.random.choice(names)}={self.word()}" for _ in range(self.random.randrange(1, 12)))
        return self.wire.request(f"{base}?{pairs}")

    def methods(self) -> Response:
        verbs = ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "HEAD", "POST", "PROPFIND", "CONNECT"]
        verb = self.random.choice(verbs)
        return self.wire.request("/" if verb == "CONNECT" else self.path(), method=verb, body=self.noise(200))

    def forms(self) -> Response:
        """Bodies sent to upload addresses: wrong types, wrong names, broken parts, endless chunks."""
        edge = self.random.choice(["edge", "e" * 60, ""])
        part = f'--{edge}\r\nContent-Disposition: form-data; name="{self.word()}"'.encode()
        part += self.random.choice([b"", b'; filename="' + self.word().encode() + b'"', b'; filename="a.csv"'])
        body = part + b"\r\n\r\n" + self.noise(300) + self.random.choice([f"\r\n--{edge}--\r\n".encode(), b""])
        kinds = [f"multipart/form-data; boundary={edge}", "application/x-www-form-urlencoded", "application/json", "x"]
        target = self.random.choice([self.upload, self.upload, self.upload, self.path()])
        return self.wire.request(
            target, method="POST", headers=(("Content-Type", self.random.choice(kinds)),), body=body
        )

    def garbage(self) -> Response:
        starts = [
            b"GET ",
            b"GET / HTTP/9.9\r\n",
            b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz",
            b"\x16\x03\x01",
        ]
        starts += [b"GET /\xff\xfe\x01 HTTP/1.1\r\nHost: x\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"\r\n" * 50]
        starts += [b"GET /runs/\x00 HTTP/1.1\r\n\r\n", b"GET / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", b"\0" * 100]
        with Wire(self.lab.port) as wire:
            return wire.send(self.random.choice(starts) + self.noise(400) + b"\r\n\r\n", done=True)

    def plain(self) -> Response:
        """Frames of engine.io in plain requests, which are accepted by websockets only."""
        query = self.random.choice(["EIO=4", "EIO=3", f"EIO={self.word()}"]) + "&transport="
        query += self.random.choice(["polling", "websocket", self.word()]) + self.random.choice(["", "&sid=x"])
        frame = self.frame()
        body = frame.encode() if isinstance(frame, str) else frame
        return self.wire.request(
            f"/_nicegui_ws/socket.io/?{query}", method=self.random.choice(["GET", "POST"]), body=body
        )

    def frame(self) -> str | bytes:
        """Frames of engine.io and socket.io: valid, broken or of other types."""
        payload = self.random.choice(JSONS)
        frames = [
            "0",
            "1",
            "2",
            "3",
            "5",
            "6",
            "9",
            "40",
            "41",
            "42",
            "43",
            "44",
            "40/nope,",
            "42/nope,[]",
            "42[]",
            "42{}",
        ]
        frames += [
            f"42{payload}",
            f'42["event",{payload}]',
            f"42[{payload},{payload}]",
            f"421{payload}",
            f'451-["event",{payload}]',
        ]
        frames += [f'42["{name}",{payload}]' for name in ("handshake", "ack", "javascript_response", "connect", "nope")]
        with_binary: list[str | bytes] = [*frames, self.noise(200), "b" + payload, "42" + "[" * 2000]
        return self.random.choice(with_binary)


def messages(lab: Lab, seed: int, path: str, count: int) -> Counter[str]:
    """Open a page and send invalid values for its elements, and broken frames."""
    fuzz, sent = Fuzz(lab, seed), Counter[str]()
    while sent.total() < count:
        with open_page(lab.port, path) as page:
            wait_for_controls(page)
            try:
                for _ in range(count - sent.total()):
                    sent[_one_message(fuzz, page)] += 1
                    if sent.total() % 40 == 0:
                        page.receive(0.05)
                page.receive()
            except ConnectionClosed:
                sent["closed"] += 1  # an invalid frame closes the connection
    return sent


def wait_for_controls(page: Page) -> None:
    """Wait until a probe has loaded its model and shows its controls."""
    for _ in range(40):
        page.receive(0.5)
        if not any("Loading the model" in str(each.get("text")) for each in page.elements.values()):
            return


def _one_message(fuzz: Fuzz, page: Page) -> str:
    # these start training, deletion and long checks
    start_buttons = {"Run", "Delete", "Run all again", "Run again"}
    listening = [each for each in page.listeners() if page.text(each[0]) not in start_buttons]
    choice = fuzz.random.random()
    if choice < 0.75 and listening:
        number, _, listener, kind = fuzz.random.choice(listening)
        page.event(number, listener, *(fuzz.random.choice(JSONS) for _ in range(fuzz.random.choice((0, 1, 1, 1, 2)))))
        return kind
    if choice < 0.9:
        invalid: list[object] = [None, [], {}, "x", -1, 10**30, True, page.client, fuzz.word()]
        names = ("id", "client_id", "listener_id", "args", "request_id", "tab_id", "next_message_id", "level", "result")
        message = {name: fuzz.random.choice(invalid) for name in names if fuzz.random.random() < 0.7}
        message |= {"client_id": page.client} if fuzz.random.random() < 0.6 else {}
        page.emit(fuzz.random.choice(("event", "ack", "log", "javascript_response", "handshake", "nope")), message)
        return "wrong message"
    page.connection.send(fuzz.frame() if choice > 0.97 else "42" + fuzz.random.choice(JSONS))
    return "frame"


@pytest.fixture(scope="module")
def hostile_folder(tmp_path_factory: pytest.TempPathFactory, lab_runs: Path) -> Path:
    """A folder of runs next to files that must not be served; one run has links to them."""
    outside = tmp_path_factory.mktemp("outside")
    for name in ("seed-0", "seed-1", "pca"):
        shutil.copytree(lab_runs / name, outside / "runs" / name)
    (outside / "canary.txt").write_text(SECRET)
    (outside / "canary.svg").write_text(SECRET)
    (outside / "runs" / "seed-0" / ".secret").write_text(SECRET)
    (outside / "runs" / "seed-0" / "figures" / ".secret").write_text(SECRET)
    (outside / "runs" / "canary.txt").write_text(SECRET)
    (outside / "runs" / "seed-0" / "figures" / "canary.svg").symlink_to(outside / "canary.svg")
    linked = outside / "runs" / "linked"
    linked.mkdir()
    (linked / "run.json").write_text("{}")
    (linked / "figures").symlink_to(outside)
    return outside


def test_hostile_requests_cause_no_errors_and_no_leaks(hostile_folder: Path, start_lab: StartLab) -> None:
    lab = start_lab(hostile_folder / "runs")
    before = set(all_paths(hostile_folder)), set(all_paths(lab.home))
    statuses: Counter[tuple[str, int | str]] = Counter()
    leaks, started = list[tuple[str, bytes]](), time.monotonic()

    def send_requests(kind: str, seed: int, count: int) -> None:
        fuzz = Fuzz(lab, seed)
        with open_page(lab.port, PAGES[0]) as page:
            fuzz.upload = next(e["props"]["url"] for e in page.elements.values() if e["tag"] == "nicegui-upload")
            fuzz.resource_folders = sorted({resource.rsplit("/", 1)[0] + "/" for resource in page.resources})[::3]
            act: Callable[[], Response] = getattr(fuzz, kind)
            for index in range(count):
                if index % 100 == 99:
                    page.receive(0.01)
                response = act()
                statuses[kind, response.status] += 1
                if SECRET.encode() in response.body:
                    leaks.append((kind, response.body))
        fuzz.wire.close()

    def send_messages(path: str, seed: int, count: int) -> None:
        for kind, number in messages(lab, seed, path, count).items():
            statuses["messages", kind] += number

    with ThreadPoolExecutor(4) as pool:
        per_page = REQUESTS["messages"] // len(PAGES)
        futures = [pool.submit(send_messages, path, seed, per_page) for seed, path in enumerate(PAGES)]
        futures += [
            pool.submit(send_requests, kind, 50 + n, count)
            for n, (kind, count) in enumerate(REQUESTS.items())
            if kind != "messages"
        ]
        for future in futures:
            future.result(timeout=300)
    lines = [f"{kind:<9} {status!s:<20} {number}" for (kind, status), number in sorted(statuses.items(), key=str)]
    sys.stdout.write("\n".join([f"{statuses.total()} requests in {time.monotonic() - started:.0f} s", *lines, ""]))

    assert statuses.total() >= 10_000
    assert not leaks
    assert not [future for future in statuses if isinstance(future[1], int) and future[1] >= 500]
    assert "Traceback" not in lab.errors
    assert lab.errors == ""
    assert lab.process.poll() is None
    with Wire(lab.port) as wire:
        assert wire.request("/").status == 200
    assert set(all_paths(hostile_folder)) - before[0] <= {
        path for path in all_paths(hostile_folder) if ".uploads" in path.parts
    }
    assert set(all_paths(lab.home)) == before[1]
    assert all("multiprocessing" in command for command in commands_under(lab.process.pid))
    lab.stop()


def test_form_with_an_invalid_value_starts_no_run(hostile_folder: Path, start_lab: StartLab) -> None:
    lab = start_lab(hostile_folder / "runs")
    before, running = set(all_paths(hostile_folder)), commands_under(lab.process.pid)
    with open_page(lab.port, PAGES[0]) as page:
        kinds = {"click", "update:value"}
        elements = {page.text(n): (n, listener) for n, _, listener, kind in page.listeners() if kind in kinds}
        for value in INVALID_NUMBERS:
            page.event(*elements["epochs"], value)
            page.event(*elements["Run"])
            assert "epochs must " in json.dumps(page.receive(0.3)), value
    assert set(all_paths(hostile_folder)) == before
    assert commands_under(lab.process.pid) == running
    assert lab.errors == ""
    lab.stop()


def commands_under(pid: int) -> list[str]:
    """The command lines of all descendants of a process, where /proc exists."""
    commands = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in task.read_text().split():
            with suppress(OSError):
                commands.append(Path(f"/proc/{child}/cmdline").read_bytes().replace(b"\0", b" ").decode())
                commands += commands_under(int(child))
    return commands


def all_paths(folder: Path) -> Iterator[Path]:
    return (path for path in folder.rglob("*") if "linked/figures/" not in str(path))
