"""What answers a browser that watches a run: the page, its version, and a sentence for everything else.

Decided here: no answer opens a file. Two paths have one, `/` and `/version`, both from memory; so there is
no path to walk out of the run folder by. It listens on loopback unless told otherwise in so many words. A
request must name this machine in `Host`: a page of another site whose name was pointed here (DNS rebinding)
names that site. The port in `Host` may be any, as it is behind a tunnel.
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
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from isoscope.errors import IsoscopeError
from isoscope.report.watch import Watch
from isoscope.report.watched import NOTHING

PORT = 8765
"""Where it listens unless told; when that is taken, at one of the next few, and else where there is room."""
_NEXT = 10
_HOST = re.compile(r"(?:\[([0-9a-f:.]+)\]|([^\[\]:/@\s]+))(?::\d{1,5})?", re.IGNORECASE)
_ALWAYS = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}


class PageServer(ThreadingHTTPServer):
    """Answers for one watched run. Make one with `open_server`."""

    daemon_threads = True
    allow_reuse_address = os.name == "posix"  # elsewhere two could listen at one port

    def __init__(
        self, watch: Watch, family: socket.AddressFamily, address: str, port: int, name: str
    ) -> None:
        self.watch = watch
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
    family, address = _address(host)
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


def _address(host: str) -> tuple[socket.AddressFamily, str]:
    """The address of a name, settled once: what is checked is what is listened at."""
    try:
        family, _, _, _, where = socket.getaddrinfo(host or "0.0.0.0", None, type=socket.SOCK_STREAM)[0]
    except (OSError, UnicodeError) as reason:
        raise IsoscopeError(
            f"'{host}' is no address of this machine; leave --host out to listen at 127.0.0.1."
        ) from reason
    return family, str(where[0])


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
            look = self.server.watch.ask()
            packed = "gzip" in self.headers.get("Accept-Encoding", "")
            more = {"Content-Security-Policy": look.page.policy, "Vary": "Accept-Encoding"}
            more |= {"Content-Encoding": "gzip"} if packed else {}
            body = look.page.packed if packed else look.page.body
            self._send(HTTPStatus.OK, body, "text/html; charset=utf-8", more)
        elif self.path == "/version":
            look = self.server.watch.ask()
            told = json.dumps({"version": look.page.version, "said": look.said})
            self._send(HTTPStatus.OK, told.encode(), "application/json")
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

    def _send(
        self,
        status: HTTPStatus,
        body: bytes,
        kind: str = "text/plain; charset=utf-8",
        more: dict[str, str] | None = None,
    ) -> None:
        self.send_response(status)
        told = {"Content-Type": kind, "Content-Length": str(len(body)), "Content-Security-Policy": NOTHING}
        for name, value in {**told, **_ALWAYS, **(more or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)
