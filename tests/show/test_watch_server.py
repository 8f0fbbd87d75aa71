"""What answers a browser: the page and its version to those who name this machine, and nothing else."""

from __future__ import annotations

import gzip
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from isoscope.errors import IsoscopeError
from isoscope.show.watch.serve import PORT, PageServer, open_server
from isoscope.show.watch.watch import Watch, served_library
from tests.show.watching import Answer, get, served, serving, small_page, until, write_step

SECRET = "the launch code"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run with two looks, and a secret beside it and in it."""
    folder = tmp_path / "runs" / "mine"
    for step in (0, 1):
        write_step(folder, step)
    (tmp_path / "secret.txt").write_text(SECRET)
    (folder / "secret.txt").write_text(SECRET)
    (folder / "report.html").write_text(SECRET)
    return folder


@pytest.fixture
def server(run: Path) -> Iterator[PageServer]:
    watch = Watch(run, small_page)
    assert watch.look()
    with serving(watch) as server:
        yield server


PATHS = (
    "/secret.txt", "/report.html", "/run.json", "/rows", "/rows/", "/..", "/../secret.txt",
    "/../../secret.txt",
    "/%2e%2e/secret.txt", "/%2e%2e%2f%2e%2e%2fsecret.txt", "/..%2f..%2fsecret.txt", "/.%2e/secret.txt",
    "/%252e%252e/secret.txt", "/..\\..\\secret.txt", "/..%5c..%5csecret.txt", "/....//secret.txt",
    "//etc/passwd",
    "/%00/secret.txt", "/version/../secret.txt", "/version/", "/versions", "/?run=../secret.txt",
    "/version?a",
    "/etc/passwd", "//////etc/passwd", "file:///etc/passwd", "http://127.0.0.1/secret.txt", "/;/secret.txt",
    "/linked.txt", "/linked/secret.txt", "secret.txt", "*", "/favicon.ico", "/%c0%ae%c0%ae/secret.txt",
)  # fmt: skip


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_no_path_leads_to_a_file(server: PageServer, run: Path, method: str) -> None:
    (run / "linked.txt").symlink_to(run.parent.parent / "secret.txt")
    (run / "linked").symlink_to(run.parent.parent)
    whole = str(run.parent.parent / "secret.txt")
    for each in (each for path in PATHS for each in (path, path.replace("secret.txt", whole))):
        answer = get(server, each, method=method)
        assert answer.status == 404, each
        assert SECRET not in answer.text and "root:" not in answer.text
        assert strict(answer)


@pytest.mark.parametrize(
    ("host", "meant"),
    [
        ("127.0.0.1:8765", True), ("127.0.0.1", True), ("localhost:9000", True), ("LOCALHOST", True),
        ("localhost.:8765", True), ("[::1]:8765", True), ("127.0.0.2:1", True),
        ("evil.example", False), ("evil.example:8765", False), ("localhost.evil.example", False),
        ("127.0.0.1.evil.example", False), ("evil.example@127.0.0.1", False),
        ("127.0.0.1@evil.example", False),
        ("10.0.0.7:8765", False), ("0.0.0.0", False), ("[::]", False), ("", False), (" ", False),
        (":8765", False),
        ("localhost:", False), ("localhost:port", False), ("localhost/x", False), ("[localhost]", False),
        ("2130706433", False), ("0x7f.1", False),
    ],
)  # fmt: skip
def test_only_a_host_that_names_this_machine_is_answered(server: PageServer, host: str, meant: bool) -> None:
    for path in ("/", "/version", "/secret.txt"):
        answer = get(server, path, Host=host)
        assert answer.status == ((404 if path == "/secret.txt" else 200) if meant else 403)
        assert meant or ("steps" not in answer.text and "version" not in answer.text)
        assert strict(answer)


def raw(server: PageServer, request: bytes) -> bytes:
    """All that is answered to these bytes."""
    with socket.create_connection(server.server_address[:2], timeout=10) as link:  # type: ignore[arg-type]
        link.sendall(request)
        return b"".join(iter(lambda: link.recv(65536), b""))


@pytest.mark.parametrize("lines", [" HTTP/1.0", "", " HTTP/1.1\r\nHost: localhost\r\nHost: evil.example"])
def test_a_request_with_no_host_or_two_is_refused(server: PageServer, lines: str) -> None:
    answer = raw(server, f"GET /{lines}\r\n\r\n".encode())
    assert b"steps" not in answer
    assert b"This host is not the one that is watching" in answer


def test_a_head_has_no_body(server: PageServer) -> None:
    for path in ("/", "/version", "/secret.txt"):
        assert raw(server, f"HEAD {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()).endswith(b"\r\n\r\n")


@pytest.mark.parametrize(
    "method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "PROPFIND", "get"]
)
def test_only_get_and_head(server: PageServer, run: Path, method: str) -> None:
    before = sorted(file for file in run.rglob("*"))
    answer = get(server, "/", method=method)
    assert answer.status == 405
    assert answer.headers["Allow"] == "GET, HEAD"
    assert "steps" not in answer.text
    assert strict(answer)
    assert sorted(file for file in run.rglob("*")) == before


def strict(answer: Answer) -> bool:
    """Whether an answer can neither be kept, framed nor read by another site, nor run what is not named."""
    policy = answer.headers["Content-Security-Policy"]
    told = dict(part.strip().partition(" ")[::2] for part in policy.split(";"))
    assert told["default-src"] == "'none'" and told["frame-ancestors"] == "'none'"
    assert "unsafe-inline" not in told.get("script-src", "") and "unsafe-eval" not in policy
    assert told.get("connect-src", "'self'") == "'self'"
    assert answer.headers["Cache-Control"] == "no-store"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["X-Frame-Options"] == "DENY"
    assert answer.headers["Cross-Origin-Resource-Policy"] == "same-origin"
    assert answer.headers["Access-Control-Allow-Origin"] is None
    assert "Python" not in answer.headers["Server"]
    return True


def test_the_page_the_version_and_their_heads(server: PageServer) -> None:
    for path, kind in (("/", "text/html; charset=utf-8"), ("/version", "application/json")):
        answer, head = get(server, path), get(server, path, method="HEAD")
        assert strict(answer) and strict(head)
        assert answer.headers["Content-Type"] == kind
        assert head.text == ""
        assert head.headers["Content-Length"] == str(len(answer.text.encode()))
    packed = server.watch.ask().page.packed
    assert gzip.decompress(packed) == server.watch.ask().page.body
    told = get(server, "/", method="HEAD", Accept_Encoding="gzip, br")
    assert (told.headers["Content-Encoding"], told.headers["Content-Length"]) == ("gzip", str(len(packed)))


@pytest.mark.parametrize("host", ["0.0.0.0", "::", ""])
def test_other_machines_are_let_in_only_when_told(run: Path, host: str) -> None:
    watch = Watch(run, small_page)
    with pytest.raises(
        IsoscopeError, match=rf"--host {host} can be reached from other machines.*--allow-remote"
    ):
        open_server(watch, host, 0)
    try:
        opened = open_server(watch, host, 0, allow_remote=True)
    except IsoscopeError:
        pytest.skip(f"this machine has no {host}")
    with opened:
        assert opened.is_remote
        assert opened.url == f"http://{socket.gethostname()}:{opened.server_address[1]}/"
        name = socket.gethostname()
        for named in (name, f"{name.upper()}:80", "10.1.2.3", "[fe80::1]:8765", "localhost"):
            assert opened.is_meant(named)
        for other in ("evil.example", f"{name}.evil.example", ""):
            assert not opened.is_meant(other)


def test_a_name_that_is_no_address(run: Path) -> None:
    with pytest.raises(IsoscopeError, match=r"'no\.such\.host\.invalid' is no address of this machine"):
        open_server(Watch(run, small_page), "no.such.host.invalid")
    with pytest.raises(IsoscopeError, match=r"cannot listen at port 0 of 203\.0\.113\.9: "):
        open_server(Watch(run, small_page), "203.0.113.9", 0, allow_remote=True)


def test_a_port_in_use(run: Path) -> None:
    watch = Watch(run, small_page)
    with open_server(watch) as first, open_server(watch) as second:
        ports = [int(one.server_address[1]) for one in (first, second)]
        assert ports[0] != ports[1]
        assert not first.is_remote
        with pytest.raises(
            IsoscopeError, match=rf"port {ports[0]} of 127\.0\.0\.1: it is in use; leave --port"
        ):
            open_server(watch, port=ports[0])
    with open_server(watch, port=ports[0]) as again:  # and is free after
        assert again.url == f"http://127.0.0.1:{ports[0]}/"
    assert PORT == 8765


def test_a_browser_that_goes_away_is_no_matter(
    server: PageServer, capsys: pytest.CaptureFixture[str]
) -> None:
    for _ in range(5):
        link = socket.create_connection(server.server_address[:2], timeout=10)  # type: ignore[arg-type]
        link.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        link.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        link.close()
    assert get(server).status == 200
    assert capsys.readouterr().err == ""


def test_another_loopback_address(run: Path) -> None:
    try:
        opened = open_server(Watch(run, small_page), "::1", 0)
    except IsoscopeError:
        pytest.skip("this machine has no ::1")
    with served(opened) as server:
        assert server.url.startswith("http://[::1]:")
        assert get(server).status == 200


def test_the_script_that_draws_is_one_file_that_is_kept(server: PageServer) -> None:
    found = get(server, f"/{served_library().name}")
    assert (found.status, found.text.encode()) == (200, served_library().body)
    assert found.headers["Cache-Control"] == "private, max-age=31536000, immutable"
    assert found.headers["Content-Type"] == "text/javascript; charset=utf-8"
    assert get(server).headers["Cache-Control"] == "no-store"
    assert get(server, "/plotly.js").status == 404


def test_closing_hangs_up_on_those_who_say_and_read_nothing(run: Path) -> None:
    watch = Watch(
        run, lambda _: small_page(run).replace("steps", "steps" * 4_000_000)
    )  # more than sockets hold
    assert watch.look()
    before = threading.active_count()
    with serving(watch) as server:
        silent, deaf = (socket.create_connection(server.server_address[:2]) for _ in range(2))
        deaf.sendall(b"GET / HTTP/1.0\r\nHost: localhost\r\n\r\n")
        until(lambda: threading.active_count() == before + 3)  # the server, and one for each
        began = time.monotonic()
    assert time.monotonic() - began < 3
    assert threading.active_count() == before
    with silent, deaf:
        assert silent.recv(1) == b""
