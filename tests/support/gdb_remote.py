"""A client of the gdb remote protocol, as far as stopping and looking needs it.

Source: Debugging with GDB, appendix E: packets, checksums, run lengths, escapes.
"""

from __future__ import annotations

import re
import socket

__all__ = ["Remote", "RemoteError"]

# Signals by gdb's own numbers: SIGTRAP; SIGILL, SIGABRT, SIGFPE, SIGBUS, SIGSEGV.
_TRAP, _CRASHES = b"05", (b"04", b"06", b"08", b"0a", b"0b")
_ESCAPE, _REPEAT, _REPEAT_BASE = 0x7D, 0x2A, 29


class RemoteError(Exception):
    """The stub refused, ended, or said what the protocol does not know."""


class Remote:
    """One connection; every answer must come within ``deadline`` seconds."""

    def __init__(self, path: str, deadline: float) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(deadline)
        self._pending = b""
        try:
            self._socket.connect(path)
        except OSError:
            self._socket.close()
            raise

    def close(self) -> None:
        self._socket.close()

    def command(self, text: str) -> bytes:
        """Send one packet and give the answer's content."""
        body = text.encode("ascii")
        try:
            self._socket.sendall(b"$%s#%02x" % (body, sum(body) % 256))
            return self._answer()
        except OSError as error:
            raise RemoteError(f"no answer to {text[:40]!r}: {error}") from error

    def _answer(self) -> bytes:
        while True:
            found = re.search(rb"\$([^#]*)#([0-9a-f]{2})", self._pending)
            if found:
                self._pending = self._pending[found.end() :]
                if sum(found[1]) % 256 != int(found[2], 16):
                    raise RemoteError(f"wrong checksum of {found[1][:40]!r}")
                self._socket.sendall(b"+")
                return unpacked(found[1])
            more = self._socket.recv(1 << 16)
            if not more:
                raise RemoteError("the stub closed the connection")
            self._pending += more

    def expect(self, text: str, answer: bytes) -> None:
        """Send a packet that has one good answer."""
        got = self.command(text)
        if got != answer:
            raise RemoteError(f"{text!r} was answered by {got!r}")

    def break_at(self, address: int, kind: int) -> None:
        """Insert a software breakpoint; ``kind`` is the size of its instruction."""
        self.expect(f"Z0,{address:x},{kind}", b"OK")

    def unbreak(self, address: int, kind: int) -> None:
        """Remove a breakpoint."""
        self.expect(f"z0,{address:x},{kind}", b"OK")

    def go(self) -> str | None:
        """Run on: None at a breakpoint, else how the program ended.

        Signals are passed on, but for those that tell of a crash.
        """
        answer = self.command("c")
        while answer[:1] == b"T" and answer[1:3] not in (_TRAP, *_CRASHES):
            answer = self.command(f"C{answer[1:3].decode('ascii')}")
        return None if answer[:3] == b"T" + _TRAP else answer.decode("ascii", "replace")

    def features(self) -> bytes:
        """The description of the machine; some stubs give single registers only after it."""
        got = self.command("qXfer:features:read:target.xml:0,ffb")
        if got[:1] not in (b"l", b"m"):
            raise RemoteError(f"no description of the machine: {got[:40]!r}")
        return got[1:]

    def registers(self) -> bytes:
        """All of the core registers, in the machine's own order."""
        return bytes.fromhex(self.command("g").replace(b"x", b"0").decode("ascii"))

    def register(self, number: int) -> bytes:
        """One register."""
        got = self.command(f"p{number:x}")
        if not got or got[:1] == b"E":
            raise RemoteError(f"no register {number}: {got!r}")
        return bytes.fromhex(got.decode("ascii"))

    def memory(self, address: int, size: int) -> bytes:
        """``size`` bytes, or none where one of them cannot be read."""
        got = self.command(f"m{address:x},{size:x}")
        if got[:1] == b"E" and len(got) == 3:
            return b""
        return bytes.fromhex(got.decode("ascii"))

    def offset(self) -> int:
        """How far the program was moved when it was loaded."""
        found = re.match(rb"Text=([0-9a-fA-F]+)", self.command("qOffsets"))
        if not found:
            raise RemoteError("the stub does not say where the program is")
        return int(found[1], 16)


def unpacked(content: bytes) -> bytes:
    """The content without run lengths and escapes."""
    found = bytearray()
    at = 0
    while at < len(content):
        byte = content[at]
        if byte == _ESCAPE and at + 1 < len(content):
            found.append(content[at + 1] ^ 0x20)
            at += 2
        elif byte == _REPEAT and found and at + 1 < len(content):
            found += found[-1:] * (content[at + 1] - _REPEAT_BASE)
            at += 2
        else:
            found.append(byte)
            at += 1
    return bytes(found)
