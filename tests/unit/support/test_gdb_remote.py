"""The remote protocol's packets, and emulators that do not behave."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import qemu_user
from tests.support.gdb_remote import Remote, RemoteError, unpacked
from tests.support.qemu_user import Emulator


@pytest.mark.parametrize(
    ("packed", "content"),
    [
        (b"OK", b"OK"),
        (b"0*(f", b"000000000000f"[:13]),
        (b"0* ", b"0000"),
        (b"}\x03", b"#"),
        (b"a}]b", b"a}b"),
        (b"*", b"*"),
    ],
)
def test_run_lengths_and_escapes(packed: bytes, content: bytes) -> None:
    assert unpacked(packed) == content


class Stub:
    """Answers each packet with the next of some strings."""

    def __init__(self, path: str) -> None:
        self.got: list[bytes] = []
        self.answers: list[bytes] = []
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(path)
        self._listening.listen(1)
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        connection, _ = self._listening.accept()
        with connection:
            for _ in range(8):
                packet = connection.recv(4096)
                if not packet:
                    return
                if packet == b"+":
                    continue
                self.got.append(packet)
                if not self.answers:
                    return
                connection.sendall(self.answers.pop(0))

    def close(self) -> None:
        self._listening.close()
        self._thread.join(5)


@pytest.fixture
def stub(tmp_path: Path) -> Iterator[tuple[Stub, Remote]]:
    made = Stub(str(tmp_path / "s"))
    remote = Remote(str(tmp_path / "s"), 5)
    yield made, remote
    remote.close()
    made.close()


def test_a_packet_has_its_checksum(stub: tuple[Stub, Remote]) -> None:
    made, remote = stub
    made.answers = [b"+$68656c#72", b"+$E14#aa"]
    assert remote.memory(0x1000, 3) == b"hel"
    assert made.got[0] == b"$m1000,3#8d"
    assert remote.memory(0x1000, 3) == b""  # not readable


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (b"+$OK#9b", "wrong checksum"),
        (b"+$E01#a6", "was answered by b'E01'"),
        (b"", "closed the connection"),
    ],
)
def test_what_a_stub_can_do_wrong(stub: tuple[Stub, Remote], answer: bytes, why: str) -> None:
    made, remote = stub
    made.answers = [answer] if answer else []
    with pytest.raises(RemoteError, match=why):
        remote.break_at(0x1000, 4)


def test_a_silent_stub_is_not_waited_for(tmp_path: Path) -> None:
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(str(tmp_path / "s"))
    listening.listen(1)
    remote = Remote(str(tmp_path / "s"), 0.1)
    with pytest.raises(RemoteError, match="no answer to 'g': timed out"):
        remote.registers()
    remote.close()
    listening.close()


def test_an_emulator_that_ends_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reason = qemu_user.unavailable("aarch64")
    if reason:
        pytest.skip(reason)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    program = tmp_path / "program"
    program.write_bytes(b"no program at all")
    with pytest.raises(RemoteError, match="qemu ended"):
        Emulator("aarch64", program)
    assert [path.name for path in tmp_path.iterdir()] == ["program"]
