"""Short forms of ``-x``, ``-p`` and ``-- COMMAND``: ``-x libc``, ``-p nginx``, no ``-x``.

A name that means several processes or files is refused with all of them: nothing is guessed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable

from fetchc.cli.option_table import COMMANDS
from fetchc.debuginfo.safe_open import open_regular
from fetchc.debuginfo.separate.debug_file_search import libraries
from fetchc.diag.diagnostic import Diagnostic, Label, TracerError
from fetchc.source import Span
from fetchc.tracer.processes import find_program
from fetchc.tracer.stacks import DELETED, read_maps
from fetchc.tracer.tracefs import started

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from fetchc.cli.option_table import Options

__all__ = ["complete", "library_files", "process_names", "processes_named"]

_SHOWN = 8  # candidates that a message lists
_MOST_PID = 1 << 22  # PID_MAX_LIMIT of 64-bit kernels
_LIBRARY = re.compile(r"lib[^/]*|[^/]+\.so(\.[^/]*)?")


def complete(options: Options) -> tuple[str, ...]:
    """Set ``pids`` and ``binary`` of the options; notes about files that the user did not name.

    Raises TracerError FC0707 for a process that is not there, FC0753 for a COMMAND, FC0757 for
    what is not clear. No file of another user is opened.
    """
    for text in options.processes:
        options.pids += [pid for pid in _pids(text) if pid not in options.pids]
    binary = options.binary
    if "binary" not in COMMANDS[options.command].options:
        return ()  # whose -x is something else
    for pid in options.pids:
        if not os.path.isdir(f"/proc/{pid}"):
            raise _gone(pid)
    if not binary and options.pids:
        from fetchc.cli.process_code import prepared

        notes = prepared(options)
        if options.binary:
            return notes
        options.binary = _program_of(options.pids)
        return (f"the program is {_shown(options.binary)}",)
    if not binary and options.program:
        options.binary = os.path.abspath(find_program(options.program[0]))
    elif _LIBRARY.fullmatch(binary) and not os.path.lexists(binary):
        options.binary = _library(binary, options.pids) or binary
        return (f"`{binary}` is {options.binary}",) if options.binary != binary else ()
    return ()


def _refused(
    code: str, message: str, text: str, place: tuple[int, int], notes: Iterable[str], help: str
) -> TracerError:
    label = Label(Span(*place), "")
    refused = TracerError((Diagnostic(code, message, label, (), tuple(notes), help),))
    refused.text = text
    return refused


def _gone(pid: int) -> TracerError:
    text, help = f"-p {pid}", "give a PID that `ps` shows now"
    return _refused("FC0707", f"there is no process {pid}", text, (3, len(text)), (), help)


def _listed(candidates: list[str]) -> list[str]:
    more = len(candidates) - _SHOWN
    return candidates[:_SHOWN] + ([f"and {more} more"] if more > 0 else [])


# ------------------------------------------------------------------------------
# ``-p``: numbers and names, with commas between them.


def _pids(text: str) -> list[int]:
    found, start = [], 0
    for word in text.split(","):
        place = (start, start + len(word))
        start += len(word) + 1
        if word.isascii() and word.isdecimal() and 0 < int(word[:9]) <= _MOST_PID:
            found.append(int(word))
            continue
        named = [] if not word or word.isdecimal() else processes_named(word)
        if not named:
            what = f"no process is called `{word}`" if word else "a process is missing"
            if word.isdecimal():
                what = f"{word} is not the number of a process"
            help = "`ps -e` lists the processes: give a PID or a name of that list"
            raise _refused("FC0707", what, text, place, (), help)
        if len(named) > 1 and _one_family(named) is None:
            listed = [f"{pid}: {_command_line(pid)}" for pid in named]
            what = f"{len(named)} processes are called `{word}`"
            help = f"name those that you mean: `-p {','.join(map(str, named[:_SHOWN]))}`"
            raise _refused("FC0757", what, text, place, _listed(listed), help)
        found += named
    return found


def processes_named(name: str, proc: str = "/proc") -> list[int]:
    """The processes whose name (comm) or program's file is called ``name``; not this process."""
    found = []
    for pid, comm in process_names(proc).items():
        program = os.path.basename(_link(f"{proc}/{pid}/exe")).removesuffix(DELETED)
        if pid != os.getpid() and name in (comm, program):
            found.append(pid)
    return sorted(found)


def process_names(proc: str = "/proc") -> dict[int, str]:
    """The name (comm) of each process."""
    found = {}
    for entry in os.listdir(proc):
        if entry.isdecimal():
            try:
                with open(f"{proc}/{entry}/comm", "rb") as file:
                    found[int(entry)] = os.fsdecode(file.read().rstrip(b"\n"))
            except OSError:  # it has ended
                continue
    return found


def _one_family(pids: list[int]) -> int | None:
    # The process that all others descend from: a server and its workers.
    parents = {pid: _parent(pid) for pid in pids}
    first = [pid for pid, parent in parents.items() if parent not in parents]
    return first[0] if len(first) == 1 else None


def _parent(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            text = file.read()
    except OSError:
        return 0
    return int(text[text.rindex(b")") + 2 :].split()[1])


def _command_line(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            words = file.read(200).rstrip(b"\0").split(b"\0")
    except OSError:
        return "(ended)"
    return b" ".join(words).decode("utf-8", "replace") or "(a thread of the kernel)"


def _link(path: str) -> str:
    try:
        return os.readlink(path)
    except OSError:
        return ""  # another user's, or a thread of the kernel


# ------------------------------------------------------------------------------
# ``-x``: the program of the processes, a library by its bare name.


def _program_of(pids: list[int]) -> str:
    files: dict[tuple[int, int], int] = {}
    for pid in pids:
        text = f"-p {pid}"
        try:
            status = os.stat(f"/proc/{pid}/exe")
        except OSError as error:
            if started(pid) is None:
                raise _gone(pid) from None
            if isinstance(error, PermissionError):
                what = f"process {pid} is another user's, or hides its program"
                help = "run fetchc as root, or name the file to probe: `-x FILE`"
                raise _refused("FC0701", what, text, (3, len(text)), (), help) from None
            what = f"the program of process {pid} cannot be found: {error.strerror}"
            help = "name the file to probe: `-x FILE`"
            raise _refused("FC0757", what, text, (3, len(text)), (), help) from None
        files.setdefault((status.st_dev, status.st_ino), pid)
    if len(files) > 1:
        text = f"-p {','.join(map(str, pids))}"
        listed = [f"{pid} runs {_link(f'/proc/{pid}/exe')}" for pid in files.values()]
        what = "the processes run different programs"
        help = f"name the file to probe: `-x {_link(f'/proc/{pids[0]}/exe')}`"
        raise _refused("FC0757", what, text, (3, len(text)), _listed(listed), help)
    return _seen_from_here(f"/proc/{pids[0]}/exe", _link(f"/proc/{pids[0]}/exe"))


def _seen_from_here(path: str, plain: str) -> str:
    # The same file by its own name, where that leads to it from here.
    try:
        return plain if os.path.samefile(path, plain) else path
    except OSError:
        return path


def _shown(binary: str) -> str:
    plain = _link(binary)
    return f"{plain} of its container ({binary})" if plain and plain != binary else binary


def _maps(pid: int) -> list[str]:
    try:
        return list(dict.fromkeys(one.path for one in read_maps(pid) if one.path[:1] == "/"))
    except OSError:
        return []


def library_files(name: str) -> Callable[[str], bool]:
    """Whether a path is of the library ``name``: of `libc` those of libc.so.6 and libc-2.28.so."""
    pattern = re.compile(re.escape(name) + r"(-\d[\d.]*\.so|\.so)?(\.[\w.]+)?")
    return lambda path: pattern.fullmatch(os.path.basename(path)) is not None


def _library(name: str, pids: list[int]) -> str | None:
    # None where nothing is called so: who opens the file says it.
    meant = library_files(name)
    if pids:
        found = [(pid, path) for pid in pids for path in _maps(pid) if meant(path)]
        paths = [_seen_from_here(f"/proc/{pid}/root{path}", path) for pid, path in found]
    else:
        paths = [path for path in libraries(f"{name}*") if meant(path) and _is_native(path)]
    distinct: dict[tuple[int, int], str] = {}
    for path in paths:
        try:
            status = os.stat(path)
        except OSError:
            continue  # deleted since, or of another user
        known = distinct.setdefault((status.st_dev, status.st_ino), path)
        if len(path) < len(known):  # libc.so.6, not libc.so.6.0.0
            distinct[status.st_dev, status.st_ino] = path
    text, place = f"-x {name}", (3, 3 + len(name))
    if len(distinct) > 1:
        what = f"{len(distinct)} libraries are called `{name}`"
        help = f"name one of them: `-x {min(distinct.values())}`"
        raise _refused("FC0757", what, text, place, _listed(sorted(distinct.values())), help)
    if not distinct and pids:
        loaded = sorted({os.path.basename(path) for pid in pids for path in _maps(pid)})
        what = f"process {pids[0]} has loaded no `{name}`"
        notes = [f"it has loaded {', '.join(_listed(loaded))}"] if loaded else ()
        help = "name one of these, or the path of a file that it may load later: `-x PATH`"
        raise _refused("FC0757", what, text, place, notes, help)
    return next(iter(distinct.values()), None)


def _is_native(path: str) -> bool:
    # Of this machine: other architectures have folders beside its own. A linker script is no ELF.
    return _elf_head(path) == _elf_head("/proc/self/exe")


def _elf_head(path: str) -> bytes:
    # Magic, class and byte order; the machine. Source: System V gABI, chapter 4 (ELF Header).
    try:
        handle, _ = open_regular(path)
    except OSError:
        return b""
    try:
        head = os.read(handle, 20)
    finally:
        os.close(handle)
    return head[:6] + head[18:20]
