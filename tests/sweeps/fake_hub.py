"""A small hub on loopback: refs, trees with hashes, files by revision, as huggingface_hub asks for them.

It serves folders on this disk; a process is pointed at it by `HF_ENDPOINT`, before its first import.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

LARGE = (".safetensors", ".bin", ".pt")  # kept as LFS, by their sha256


@dataclass
class Hub:
    """Models by id, each with folders by revision; and what was asked of it."""

    models: dict[str, Mapping[str, Path]]
    seconds: float = 0.0  # that each piece of a file takes
    piece: int = 65_536
    asked: list[tuple[str, str]] = field(default_factory=list)  # method and path
    failing: dict[str, int] = field(default_factory=dict)  # answers by the end of a path
    endpoint: str = ""

    def files(self) -> list[str]:
        """The files that were downloaded, as revision/name."""
        return [
            path.split("/resolve/")[1]
            for method, path in self.asked
            if method == "GET" and "/resolve/" in path
        ]


def commit_of(folder: Path) -> str:
    """What stands for the commit: a hash of all that is in the folder."""
    digest = hashlib.sha1()
    for file in sorted(folder.iterdir()):
        digest.update(file.name.encode() + file.read_bytes())
    return digest.hexdigest()


def hash_of(file: Path) -> str:
    body = file.read_bytes()
    if file.suffix in LARGE:
        return hashlib.sha256(body).hexdigest()
    return hashlib.sha1(b"blob %d\0" % len(body) + body).hexdigest()


class _Answer(BaseHTTPRequestHandler):
    hub: Hub
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # headers and body are two writes, and loopback waits 40 ms between

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        path = unquote(urlsplit(self.path).path)
        self.hub.asked.append((self.command, path))
        for end, code in self.hub.failing.items():
            if path.endswith(end):
                return self._send(code, b"")
        parts = path.strip("/").split("/")
        if parts[:2] == ["api", "models"]:
            return self._tell("/".join(parts[2:4]), parts[4:])
        return self._file("/".join(parts[:2]), parts[2:])

    def _tell(self, model: str, asked: list[str]) -> None:
        revisions = self.hub.models.get(model)
        if revisions is None:
            return self._send(404, b"", {"X-Error-Code": "RepoNotFound"})
        if asked == ["refs"]:
            named = [
                {"name": name, "ref": f"refs/heads/{name}", "targetCommit": commit_of(folder)}
                for name, folder in revisions.items()
            ]
            return self._json({"branches": named[:-1], "converts": [], "tags": named[-1:]})
        folder = self._folder(model, "/".join(asked[1:]) or "main")
        if folder is None:
            within = len(asked) > 2 and self._folder(model, asked[1])  # a folder of a revision: none has any
            return self._send(404, b"", {"X-Error-Code": "EntryNotFound" if within else "RevisionNotFound"})
        if asked[:1] == ["tree"]:
            return self._json([self._entry(file) for file in sorted(folder.iterdir())])
        names = [{"rfilename": file.name} for file in sorted(folder.iterdir())]
        return self._json({"id": model, "sha": commit_of(folder), "siblings": names, "tags": []})

    def _entry(self, file: Path) -> dict[str, object]:
        said: dict[str, object] = {"type": "file", "path": file.name, "size": file.stat().st_size}
        if file.suffix in LARGE:
            lfs = {"oid": hash_of(file), "size": file.stat().st_size, "pointerSize": 134}
            return said | {"oid": hashlib.sha1(file.read_bytes()).hexdigest(), "lfs": lfs}
        return said | {"oid": hash_of(file)}

    def _file(self, model: str, asked: list[str]) -> None:
        if model not in self.hub.models or asked[:1] != ["resolve"]:
            return self._send(404, b"", {"X-Error-Code": "RepoNotFound"})
        folder = self._folder(model, asked[1])
        if folder is None:
            return self._send(404, b"", {"X-Error-Code": "RevisionNotFound"})
        file, told = folder / "/".join(asked[2:]), {"X-Repo-Commit": commit_of(folder)}
        if not file.is_file():
            return self._send(404, b"", {**told, "X-Error-Code": "EntryNotFound"})
        told["ETag"] = f'"{hash_of(file)}"'
        if file.suffix in LARGE:
            told |= {"X-Linked-ETag": told["ETag"], "X-Linked-Size": str(file.stat().st_size)}
        return self._send(200, file.read_bytes(), told)

    def _folder(self, model: str, revision: str) -> Path | None:
        revisions = self.hub.models[model]
        by_commit = {commit_of(folder): folder for folder in set(revisions.values())}
        return revisions.get(revision) or by_commit.get(revision)

    def _json(self, said: object) -> None:
        self._send(200, json.dumps(said).encode(), {"Content-Type": "application/json"})

    def _send(self, code: int, body: bytes, told: Mapping[str, str] | None = None) -> None:
        self.send_response(code)
        for name, value in (told or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "HEAD":
            return
        slow = self.hub.seconds if "/resolve/" in self.path else 0.0
        try:
            for start in range(0, len(body), self.hub.piece):
                self.wfile.write(body[start : start + self.hub.piece])
                time.sleep(slow)
        except OSError:  # the other side has gone
            self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def served(hub: Hub) -> Iterator[Hub]:
    """The hub on a port of its own."""
    handler = type("Answer", (_Answer,), {"hub": hub})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        hub.endpoint = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield hub
        finally:
            server.shutdown()
            thread.join()


def environment(hub: Hub, cache: Path) -> dict[str, str]:
    """That of a process that takes this hub for the hub, and keeps what it downloads in `cache`."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("HF_", "HUGGINGFACE"))}
    kept = {name: value for name, value in kept.items() if not name.lower().endswith("_proxy")}
    return kept | {
        "HF_ENDPOINT": hub.endpoint,
        "HF_HOME": str(cache),
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "HF_HUB_DISABLE_XET": "1",
        "OMP_NUM_THREADS": "1",
    }
