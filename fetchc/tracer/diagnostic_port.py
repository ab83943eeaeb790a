"""The diagnostic port of .NET: a socket by which a runtime is asked for its perf map.

One command is sent, ``EnablePerfMap``: from then on, to the end of the process, the runtime writes
what it compiles, and has compiled, to ``perf-PID.map``. Nothing else is written into the process.

Source: dotnet/diagnostics, "Diagnostic IPC Protocol": transport, header, and the command
EnablePerfMap (.NET 8 and later).
"""

from __future__ import annotations

import os
import socket
import stat
import time
from contextlib import suppress
from struct import Struct

from fetchc.debuginfo.running_process import own_number
from fetchc.debuginfo.safe_open import listed, read_regular, resolved
from fetchc.debuginfo.separate.process_root import of_process
from fetchc.tracer.tracefs import refused, started

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.diag.diagnostic import TracerError

__all__ = ["enable_perf_map"]

_HEADER = Struct("<14sHBBH")  # magic, size of the message, command set, command, reserved
_MAGIC = b"DOTNET_IPC_V1\0"
_PROCESS, _ENABLE_PERF_MAP = 4, 5
_PERF_MAP = 3  # PerfMapType: the map, without a jitdump
_SERVER, _OK = 0xFF, 0
_RESULT = Struct("<I")
_UNKNOWN_COMMAND = 0x80131385  # DS_IPC_E_UNKNOWN_COMMAND
_PATIENCE = 10.0  # seconds: of a big program the runtime lists a hundred thousand methods
_ENDING = 0.2  # seconds that a process takes at most to end, when its port is gone
_MOST = 1 << 16  # names in a folder
_PEER = Struct("iII")  # struct ucred: socket(7), SO_PEERCRED
_RESTART = "start it with `DOTNET_PerfMapEnabled=1`, before .NET 6 `COMPlus_PerfMapEnabled=1`"


def enable_perf_map(pid: int) -> None:
    """Have the runtime of a process write its perf map. Returns when the map is written.

    Raises TracerError FC0707, also where it ends meanwhile, FC0701, or FC0721 where the runtime
    does not do it.
    """
    try:
        owner = os.stat(f"/proc/{pid}").st_uid
    except FileNotFoundError:
        raise refused("FC0707", f"there is no process {pid}") from None
    if os.geteuid() not in (0, owner):
        what = f"process {pid} is another user's"
        raise refused("FC0701", what, help="run fetchc as that user, or as root")
    folder = _folder(pid)
    prefix = f"dotnet-diagnostic-{own_number(pid)}-"
    names = []
    with suppress(OSError):
        names = [one for one in listed(folder, _MOST, "-socket") if one.startswith(prefix)]
    for name in names:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as port:
            if _connected(port, folder, name, pid, owner):
                _ask(port, pid)
                return
    raise refused(
        "FC0721",
        f"process {pid} has no diagnostic port",
        notes=(f"a runtime of .NET has one in {folder}, unless DOTNET_EnableDiagnostics=0 is set",),
        help=f"if it is one of .NET, {_RESTART}",
    )


def _folder(pid: int) -> str:
    # Where the runtime makes its port: TMPDIR of the process, below its own root. Other mounts may
    # be there than here, also where both have the same root.
    inside = "/tmp"
    with suppress(OSError):
        for pair in read_regular(f"/proc/{pid}/environ", 1 << 22).split(b"\0"):
            if pair.startswith(b"TMPDIR=/"):
                inside = os.fsdecode(pair.partition(b"=")[2])
    return of_process(resolved(f"/proc/{pid}/root", inside), None)[0]


def _connected(port: socket.socket, folder: str, name: str, pid: int, owner: int) -> bool:
    # To the process itself: anybody can make a socket of that name in /tmp.
    try:
        handle = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        found = os.stat(name, dir_fd=handle, follow_symlinks=False)
        if not stat.S_ISSOCK(found.st_mode) or found.st_uid != owner:
            return False
        port.settimeout(_PATIENCE)
        port.connect(f"/proc/self/fd/{handle}/{name}")
        peer = port.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size)
        return bool(_PEER.unpack(peer)[0] == pid)
    except OSError:  # left over by a process that has ended
        return False
    finally:
        os.close(handle)


def _ask(port: socket.socket, pid: int) -> None:
    size = _HEADER.size + _RESULT.size
    message = _HEADER.pack(_MAGIC, size, _PROCESS, _ENABLE_PERF_MAP, 0) + _RESULT.pack(_PERF_MAP)
    try:
        port.sendall(message)
        answer = b""
        while len(answer) < size:
            part = port.recv(size - len(answer))
            if not part:
                raise _unanswered(pid, "the runtime ended the connection")
            answer += part
    except TimeoutError:
        why = f"it did not answer in {_PATIENCE:g} seconds"
        help = f"let it run, if something has stopped it: `kill -CONT {pid}`"
        raise _unanswered(pid, why, help) from None
    except OSError as error:
        raise _unanswered(pid, str(error)) from None
    magic, _, command_set, command, _ = _HEADER.unpack_from(answer)
    if magic != _MAGIC or command_set != _SERVER:
        raise _unanswered(pid, "it answered with what is no message of the protocol")
    (result,) = _RESULT.unpack_from(answer, _HEADER.size)
    if command == _OK and result == 0:
        return
    why = f"it answered with the error {result:#x}"
    if result == _UNKNOWN_COMMAND:
        why = "its version does not know the command: .NET 8 and later ones do"
    raise _unanswered(pid, why)


def _unanswered(pid: int, why: str, help: str = _RESTART) -> TracerError:
    if not _runs(pid):
        return refused("FC0707", f"process {pid} has ended, while it was asked for its perf map")
    what = f"the runtime of process {pid} does not write a perf map"
    return refused("FC0721", what, notes=(why,), help=help)


def _runs(pid: int) -> bool:
    # The kernel closes the files of a process that ends, its port too, before it is a zombie.
    end = time.monotonic() + _ENDING
    while time.monotonic() < end:
        if started(pid) is None:
            return False
        time.sleep(_ENDING / 20)
    return True
