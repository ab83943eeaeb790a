"""A web server on loopback that answers as a test wants, for as long as the test lasts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

__all__ = ["Answer", "send", "serving"]

Answer = Callable[[BaseHTTPRequestHandler], None]
"""Writes the whole answer to a request."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False  # an answer without an end is left alone

    def handle_error(self, request: object, client_address: object) -> None:
        """Nothing: the client went away, as it was to do."""


@contextmanager
def serving(answer: Answer, asked: list[str] | None = None) -> Iterator[str]:
    """A server's address; the paths of the requests go to ``asked``."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if asked is not None:
                asked.append(self.path)
            answer(self)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = _Server(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def send(body: bytes = b"", status: int = 200, length: int | None = None, **headers: str) -> Answer:
    """Answers with ``body``, whose stated length may be a lie."""

    def answer(request: BaseHTTPRequestHandler) -> None:
        request.send_response(status)
        for name, value in headers.items():
            request.send_header(name, value)
        request.send_header("Content-Length", str(len(body) if length is None else length))
        request.end_headers()
        request.wfile.write(body)

    return answer
