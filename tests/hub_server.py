"""A server on loopback that plays the Hugging Face hub: serves one checkpoint, counts what is fetched."""

from __future__ import annotations

import hashlib
import json
import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

COMMIT = "0123456789abcdef0123456789abcdef01234567"


class HubServer:
    """Serves the files of ``folder`` as the repository ``repo``. ``fetched`` counts the bodies sent, by file.

    The body of ``held`` is kept back until ``clients`` have asked about it, so that all are there at once.
    With a ``refusal``, a status and an error code of the hub, it serves nothing.
    """

    def __init__(
        self,
        folder: Path,
        repo: str,
        *,
        held: str = "",
        clients: int = 0,
        refusal: tuple[int, str] | None = None,
    ) -> None:
        self.folder, self.repo, self.held, self.clients = folder, repo, held, clients
        self.refusal = refusal
        self.all_there = threading.Event()
        self.fetched: Counter[str] = Counter()
        self.looked_up: Counter[str] = Counter()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> HubServer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _handler(hub: HubServer) -> type[BaseHTTPRequestHandler]:
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self._answer(with_body=False)

        def do_GET(self) -> None:
            self._answer(with_body=True)

        def _answer(self, *, with_body: bool) -> None:
            if hub.refusal is not None:
                self._send(hub.refusal[0], b"", {"X-Error-Code": hub.refusal[1]})
                return
            path = self.path.split("?")[0]
            name = self._name(path)
            file = hub.folder / name
            if path.startswith(f"/api/models/{hub.repo}") and "/tree/" not in path:
                files = [
                    {"rfilename": result.name}
                    for result in sorted(hub.folder.iterdir())
                ]
                self._send(
                    200,
                    json.dumps(
                        {"id": hub.repo, "sha": COMMIT, "siblings": files}
                    ).encode(),
                    {},
                )
            elif name and file.is_file():
                data = file.read_bytes()
                with lock:
                    (hub.fetched if with_body else hub.looked_up)[name] += 1
                if hub.looked_up[hub.held] >= hub.clients:
                    hub.all_there.set()
                if with_body and name == hub.held:
                    hub.all_there.wait(timeout=300)
                etag = hashlib.sha256(data).hexdigest()
                self._send(
                    200,
                    data if with_body else b"",
                    {"ETag": f'"{etag}"', "Content-Length": len(data)},
                )
            else:
                self._send(404, b"", {"X-Error-Code": "EntryNotFound"})

        def _name(self, path: str) -> str:
            for revision in ("main", COMMIT):
                if path.startswith(start := f"/{hub.repo}/resolve/{revision}/"):
                    return path.removeprefix(start)
            return ""

        def _send(self, status: int, body: bytes, headers: dict[str, object]) -> None:
            self.send_response(status)
            for name, value in (
                {"Content-Length": len(body)} | headers | {"X-Repo-Commit": COMMIT}
            ).items():
                self.send_header(name, str(value))
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    return Handler
