"""Commands in surroundings of their own: a server of debug files, a cache that was damaged."""

from __future__ import annotations

import os
import socket
import struct
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from io import BytesIO, TextIOWrapper
from pathlib import Path
from threading import Thread

from fetchc.cli import main

__all__ = ["kept", "served"]

DIFFERS = 99


@contextmanager
def _environment(**values: str) -> Iterator[None]:
    old = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in old.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def served(words: Sequence[str]) -> int:
    """A command, where a server of debug files answers every request with the file ``answer``."""
    listening = socket.create_server(("127.0.0.1", 0))
    answer = Path("answer").read_bytes()

    def serve() -> None:
        while True:
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            with connection:
                try:
                    while b"\r\n\r\n" not in connection.recv(1 << 16):
                        pass
                    connection.sendall(answer)
                except OSError:
                    pass  # the client has had enough

    Thread(target=serve, daemon=True).start()
    url = f"http://127.0.0.1:{listening.getsockname()[1]}"
    try:
        with tempfile.TemporaryDirectory(dir=".") as folder:
            there = os.path.abspath(folder)
            with _environment(
                DEBUGINFOD_URLS=url, DEBUGINFOD_TIMEOUT="2", XDG_CACHE_HOME=there, no_proxy="*"
            ):
                return main(words[1:])
    finally:
        listening.shutdown(socket.SHUT_RDWR)
        listening.close()


def kept(words: Sequence[str]) -> int:
    """A command after earlier ones whose kept files have been damaged: its answer is the same.

    ``damage`` has pairs of an offset, counted round each file, and the byte that comes there.
    """
    folder = tempfile.mkdtemp(dir=".")
    with _environment(XDG_CACHE_HOME=os.path.abspath(folder)):
        said = [_said(words[1:]) for _ in range(3)][-1]
        files = [one for one in Path(folder, "fetchc").rglob("*") if one.is_file()]
        if not any(one.stat().st_size for one in files):
            print("nothing was kept", file=sys.stderr)
            return DIFFERS
        for one in files:
            _damage(one)
        again = _said(words[1:])
    print(said[1], end="")
    if said == again:
        return said[0]
    print(f"another answer: {again}", file=sys.stderr)
    return DIFFERS


def _said(words: Sequence[str]) -> tuple[int, str]:
    out = TextIOWrapper(BytesIO(), encoding="utf-8")
    with redirect_stdout(out):
        status = main(words)
    out.flush()
    assert isinstance(out.buffer, BytesIO)
    return status, out.buffer.getvalue().decode("utf-8", "surrogateescape")


def _damage(path: Path) -> None:
    raw = bytearray(path.read_bytes())
    listed = Path("damage").read_bytes()
    for at, byte in struct.iter_unpack("<IB", listed[: len(listed) // 5 * 5]):
        if raw:
            raw[at % len(raw)] = byte
    # In the place of the old one, which this process may still have mapped.
    mode = path.stat().st_mode & 0o777
    path.unlink()
    path.write_bytes(raw)
    path.chmod(mode)
