"""What answers a browser that watches a run: the page, its version, and a sentence for everything else.

No path names a file, so there is no way out of the run folder. A request must name this machine in `Host`:
a page of another site whose name was pointed here (DNS rebinding) names that site; the port may be that of
a tunnel.
"""

from __future__ import annotations

import errno
import ipaddress
import json
import os
import re
import socket
import socketserver
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from isoscope.errors import IsoscopeError
from isoscope.show.watch.watch import NOTHING, Served, Watch, served_library

PORT = 8765
"""Where it listens unless told; when that is taken, at one of the next few, and else where there is room."""
_NEXT = 10
_HOST = re.compile(r"(?:\[([0-9a-f:.]+)\]|([^\[\]:/@\s]+))(?::\d{1,5})?", re.IGNORECASE)
_KEPT = "private, max-age=31536000, immutable"  # its name changes with what is in it
_NO_MORE: Mapping[str, str] = {}
_ALWAYS = {
    "Content-Security-Policy": NOTHING, "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY", "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin", "Cross-Origin-Opener-Policy": "same-origin",
}  # fmt: skip


class PageServer(ThreadingHTTPServer):
    """Answers for one watched run. Make one with `open_server`."""

    daemon_threads = False  # so that closing waits for them
    allow_reuse_address = os.name == "posix"  # elsewhere two could listen at one port

    def __init__(
        self, watch: Watch, family: socket.AddressFamily, address: str, port: int, name: str
    ) -> None:
        self.watch = watch
        self.connected: set[socket.socket] = set()
        self.address_family = family
        self.is_remote = not ipaddress.ip_address(address).is_loopback
        self.names = {"localhost", name.lower()}
        if self.is_remote:
            own = socket.gethostname().lower()
            self.names |= {own, own.partition(".")[0]}
        super().__init__((address, port), _Answer)

    def server_bind(self) -> None:
        """Take the port; http.server would also ask the network for this machine's name, which can hang."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])

    def process_request(self, request: socket.socket, client_address: object) -> None:  # type: ignore[override]
        """Answer in a thread of its own."""
        self.connected.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: socket.socket) -> None:  # type: ignore[override]
        """Hang up on one who was answered."""
        self.connected.discard(request)
        super().shutdown_request(request)

    def server_close(self) -> None:
        """Hang up on everybody, and wait for the threads that answered: a silent one would wait for 20 s."""
        for each in tuple(self.connected):
            with suppress(OSError):  # it has gone by itself
                each.shutdown(socket.SHUT_RDWR)
        super().server_close()

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing of a browser that went away."""
        if not isinstance(sys.exc_info()[1], ConnectionError | TimeoutError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]

    @property
    def url(self) -> str:
        """Where a browser finds the page; at every address of this machine, by the machine's name."""
        address = ipaddress.ip_address(str(self.server_address[0]))
        shown = f"[{address}]" if address.version == 6 else str(address)
        return f"http://{socket.gethostname() if address.is_unspecified else shown}:{self.server_address[1]}/"

    def is_meant(self, host: str) -> bool:
        """Whether a `Host` names this machine: by loopback, or where it is open to others by an address."""
        found = _HOST.fullmatch(host)
        if not found:
            return False
        name = (found[1] or found[2]).lower().removesuffix(".")
        try:
            return ipaddress.ip_address(name).is_loopback or self.is_remote
        except ValueError:
            return name in self.names


def open_server(
    watch: Watch, host: str = "127.0.0.1", port: int | None = None, *, allow_remote: bool = False
) -> PageServer:
    """Listen, at this port or one that is free; what other machines reach is refused unless allowed."""
    try:  # settled once: what is checked is what is listened at
        family, _, _, _, where = socket.getaddrinfo(host or "0.0.0.0", None, type=socket.SOCK_STREAM)[0]
    except (OSError, UnicodeError) as reason:
        raise IsoscopeError(
            f"'{host}' is no address of this machine; leave --host out to listen at 127.0.0.1."
        ) from reason
    address = str(where[0])
    if not ipaddress.ip_address(address).is_loopback and not allow_remote:
        raise IsoscopeError(
            f"--host {host} can be reached from other machines, and whoever reaches it can read the page; "
            "add --allow-remote to mean it, or leave --host out and use an SSH tunnel."
        )
    tried = [port] if port is not None else [*range(PORT, PORT + _NEXT), 0]
    for number in tried:
        try:
            return PageServer(watch, family, address, number, host)
        except OSError as reason:
            if reason.errno == errno.EADDRINUSE and number != tried[-1]:
                continue
            what = "leave --port out to take one that is free, or give another"
            why = "it is in use" if reason.errno == errno.EADDRINUSE else reason.strerror or str(reason)
            raise IsoscopeError(f"cannot listen at port {number} of {host}: {why}; {what}.") from reason
    raise AssertionError("a port was returned or refused")


@contextmanager
def answering(server: PageServer) -> Iterator[None]:
    """Answer beside the block; at its end nobody is answered any more, and nothing is left that runs."""
    with server:
        thread = threading.Thread(target=server.serve_forever, args=(0.1,), daemon=True)
        try:
            thread.start()
            yield
        finally:
            if thread.ident is not None:  # to shut down what never began would wait for ever
                server.shutdown()
                thread.join()


class _Answer(BaseHTTPRequestHandler):
    """One request. Every answer carries the same strict headers."""

    server: PageServer
    server_version = "isoscope"
    sys_version = ""
    timeout = 20  # seconds: a connection that says nothing is closed

    def do_GET(self) -> None:
        """The page or its version."""
        hosts = self.headers.get_all("Host", [])
        if len(hosts) != 1 or not self.server.is_meant(hosts[0]):
            self._send(HTTPStatus.FORBIDDEN, b"This host is not the one that is watching.\n")
        elif self.path == "/":
            self._send_served(self.server.watch.ask().page, "text/html")
        elif self.path == "/version":
            look = self.server.watch.ask()
            told = json.dumps({"version": look.page.version, "said": look.said})
            self._send(HTTPStatus.OK, told.encode(), "application/json")
        elif self.path == f"/{served_library().name}":
            self._send_served(served_library(), "text/javascript", {"Cache-Control": _KEPT})
        else:
            self._send(HTTPStatus.NOT_FOUND, b"There is nothing here; the page is at /.\n")

    do_HEAD = do_GET  # noqa: N815  the name is http.server's

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """What http.server refuses by itself; a method that is not known is one that is not allowed."""
        unknown = code == HTTPStatus.NOT_IMPLEMENTED
        status = HTTPStatus.METHOD_NOT_ALLOWED if unknown else HTTPStatus(code)
        self.close_connection = True
        self._send(status, f"{status.phrase}.\n".encode(), more={"Allow": "GET, HEAD"} if unknown else {})

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: only the command line prints."""

    def _send_served(self, what: Served, kind: str, more: Mapping[str, str] = _NO_MORE) -> None:
        """A page or a script: compressed to those who take that."""
        packed = "gzip" in self.headers.get("Accept-Encoding", "")
        told = {"Content-Security-Policy": what.policy, "Vary": "Accept-Encoding", **more}
        told |= {"Content-Encoding": "gzip"} if packed else {}
        self._send(HTTPStatus.OK, what.packed if packed else what.body, f"{kind}; charset=utf-8", told)

    def _send(
        self, status: HTTPStatus, body: bytes, kind: str = "text/plain; charset=utf-8",
        more: Mapping[str, str] = _NO_MORE,
    ) -> None:  # fmt: skip
        self.send_response(status)
        told = {"Content-Type": kind, "Content-Length": str(len(body)), **_ALWAYS, **more}
        for name, value in told.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)
