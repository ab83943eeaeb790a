"""What one question may cost, and how much a file may hold of one thing.

The numbers below bound the work where bytes are inflated, names are joined and entries are counted:
code that reaches one raises DebugInfoError FC0905. A command has a last line of defence as well:
a timer of processor time looks at the process every 50 ms (:func:`watch`). A library has none:
signals and resource limits belong to the process that uses it. docs/security.md has the figures.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType

__all__ = [
    "HELP",
    "MANGLED",
    "OPERATIONS",
    "SCOPES",
    "Exceeded",
    "TooMuch",
    "charge",
    "guard",
    "holes",
    "inflation",
    "joined_names",
    "kernel_image_size",
    "limits",
    "unwatch",
    "watch",
    "watched",
    "within_memory",
]

MEMORY = 1 << 30  # bytes of one question beside the files that it maps
SECONDS = 30.0  # of processor time, for one question
MANGLED = 1 << 14  # bytes of a symbol that is read as a name of C++ or Rust; a longer one stays
SCOPES = 1 << 10  # namespaces, classes and functions within each other
OPERATIONS = 1 << 17  # of one DWARF expression
_FILE = 1 << 28  # bytes of files to which MEMORY and SECONDS apply; more for bigger ones
_TIMES = 4  # bytes of memory, or inflated ones, for each byte of a file
_HOLES = 16  # bytes of a bigger file at most for each that it has on disk
_TICK = 0.05  # seconds of processor time between two looks
_AGAIN = 1.0  # when the answer is being ended
_UNITS = {"K": 10, "M": 20, "G": 30, "T": 40}

HELP = "a file that you trust may have more: set FETCHC_MAX_MEMORY=4G, FETCHC_MAX_SECONDS=300"


class Exceeded(BaseException):
    """A question went beyond a ceiling; the text says which.

    No handler on the way may catch it: it is for the caller of :func:`watch`.
    """


class TooMuch(Exception):
    """An environment variable names no ceiling."""


def limits() -> tuple[int, float]:
    """Bytes of memory and seconds of processor time that a question may take.

    FETCHC_MAX_MEMORY and FETCHC_MAX_SECONDS say it, such as ``4G`` and ``300``. Raises TooMuch
    where one of them cannot be read.
    """
    memory = os.environ.get("FETCHC_MAX_MEMORY", "")
    seconds = os.environ.get("FETCHC_MAX_SECONDS", "")
    return _bytes(memory) if memory else MEMORY, _seconds(seconds) if seconds else SECONDS


def _bytes(text: str) -> int:
    unit = _UNITS.get(text[-1:].upper(), 0)
    number = text[:-1] if unit else text
    if not (number.isascii() and number.isdecimal() and len(number) < 20 and int(number)):
        raise TooMuch(f"FETCHC_MAX_MEMORY is `{text[:40]}`, not a size such as 4G")
    return int(number) << unit


def _seconds(text: str) -> float:
    if not (text.isascii() and text.isdecimal() and len(text) < 10 and int(text)):
        raise TooMuch(f"FETCHC_MAX_SECONDS is `{text[:40]}`, not a number of seconds such as 300")
    return float(text)


def _memory() -> int:
    try:
        return limits()[0]
    except TooMuch:  # a command says so; a library takes what is usual
        return MEMORY


def inflation(size: int) -> int:
    """How many bytes all compressed sections of a file of ``size`` bytes may come to."""
    return max(_memory() // 2, _TIMES * size)


def holes(status: os.stat_result) -> str:
    """What is wrong with a big file that has almost nothing on disk; else empty.

    One call of the C library can search all of a file: it takes minutes for a terabyte, and no
    timer ends it.
    """
    on_disk = 512 * status.st_blocks
    if status.st_size <= max(_FILE, _HOLES * on_disk):
        return ""
    return f"has {status.st_size:,} bytes, and {on_disk:,} on disk: the others are holes"


def joined_names() -> int:
    """How many bytes names may have together that are made of shorter ones, or of parts of one."""
    return _memory() // 8


def kernel_image_size() -> int:
    """How many bytes an unpacked kernel may have: some 70 MB are usual."""
    return _memory() // 4


class _Question:
    # What is being answered: what it may cost, and what the process had when it began.
    __slots__ = ("before", "begun", "guarded", "incremental", "limit", "memory", "path", "seconds")

    def __init__(self, path: str, memory: int, seconds: float, incremental: bool) -> None:
        self.path = path
        self.guarded = False
        self.memory = memory
        self.seconds = seconds
        self.incremental = incremental  # what earlier questions left in memory does not count
        self.begun = _spent()
        self.before = -1  # not looked at yet
        self.limit: tuple[int, int] | None = None  # RLIMIT_DATA as it was


_asked: _Question | None = None  # of the process, as its timer is
_IMPORTS = "<frozen importlib._bootstrap>"


def watch(path: str, parts: int = 1, incremental: bool = False) -> None:
    """From now on one question about ``path`` is answered, which may cost what :func:`limits` says.

    One that costs more ends in :class:`Exceeded`, or in MemoryError. For the main thread of a
    process that belongs to fetchc, of which ``parts`` share the memory and the time; with
    ``incremental`` only the memory that is allocated from now on counts. Raises TooMuch.
    """
    # Not `signal`, whose enumerations take 1 ms.
    from _signal import ITIMER_PROF, SIGPROF, setitimer, signal  # type: ignore[import-not-found]

    global _asked
    unwatch()
    memory, seconds = limits()
    _asked = _Question(path, memory // parts, seconds / parts, incremental)
    signal(SIGPROF, _look)
    setitimer(ITIMER_PROF, _TICK, _TICK)


def unwatch() -> None:
    """The question is answered: nothing is bounded any more."""
    global _asked
    asked, _asked = _asked, None
    if asked is None:
        return
    from _signal import ITIMER_PROF, setitimer

    setitimer(ITIMER_PROF, 0)
    if asked.limit is not None:
        import resource

        resource.setrlimit(resource.RLIMIT_DATA, asked.limit)


def watched() -> bool:
    """Whether a question of this process is bounded."""
    return _asked is not None


def charge(seconds: float) -> None:
    """Count processor time that another process has spent on the question."""
    if _asked is not None:
        _asked.begun -= seconds


def within_memory() -> bool:
    """Whether the process holds no more than one question may take."""
    return _held()[0] <= limits()[0]


def guard() -> None:
    """Bound the next call into another library as well, which the timer cannot interrupt.

    A demangler can write one name for hours. Where it takes more than the question has, the
    process ends as the command would, with exit status 3.
    """
    asked = _asked
    if asked is None or asked.guarded:
        return
    from _thread import start_new_thread

    asked.guarded = True
    _look(0, None)
    start_new_thread(_guard, (asked,))


def _guard(asked: _Question) -> None:
    from time import sleep

    late = asked.seconds + 2 * _AGAIN  # by then a look has ended what can be ended
    while _asked is asked:
        if _spent() - asked.begun > late * max(1.0, _mapped() / _FILE):
            what = f"the answer takes more than {asked.seconds:,.0f} s of processor time"
            text = f"error[FC0905]: {asked.path}: {what}\n   = help: {HELP}\n"
            os.write(2, text.encode("utf-8", "backslashreplace"))
            os._exit(3)
        sleep(_AGAIN / 4)


def _look(number: int, frame: FrameType | None) -> None:
    # The first look comes after 50 ms: most questions are answered by then, and pay nothing.
    if frame is not None and frame.f_code.co_filename == _IMPORTS:
        return  # before Python 3.12 an import within an import can fail (gh-91351): look again soon
    import resource
    from _signal import ITIMER_PROF, setitimer

    asked = _asked
    if asked is None:
        return
    held, unused = _held()
    if asked.limit is None:
        asked.limit = resource.getrlimit(resource.RLIMIT_DATA)
        asked.before = held if asked.incremental else 0
    grown, spent = held - asked.before, _spent() - asked.begun
    if grown > asked.memory or spent > asked.seconds:
        more = max(1.0, _mapped() / _FILE)
        setitimer(ITIMER_PROF, _AGAIN, _AGAIN)
        if grown > asked.memory * more:
            raise Exceeded(f"more than {asked.memory * more / (1 << 20):,.0f} MB of memory")
        if spent > asked.seconds * more:
            raise Exceeded(f"more than {asked.seconds * more:,.0f} s of processor time")
        setitimer(ITIMER_PROF, _TICK, _TICK)
    # One call can take much between two looks. What is set aside and not used does not count.
    most, (_, hard) = unused + held + asked.memory, asked.limit
    if hard < 0 or most < hard:
        resource.setrlimit(resource.RLIMIT_DATA, (most, hard))


def _spent() -> float:
    times = os.times()
    return times.user + times.system


def _held() -> tuple[int, int]:
    # Bytes of memory that the process has for itself, and that it has set aside beyond them.
    # Source: proc_pid_status(5). Nothing where /proc is not mounted: the kernel's limit remains.
    try:
        with open("/proc/self/status", "rb") as file:
            fields = dict([line.split(b":", 1) for line in file])
    except FileNotFoundError:
        return 0, 0
    has, shared, data = (
        1024 * int(fields[name].split()[0]) for name in (b"RssAnon", b"RssShmem", b"VmData")
    )
    return has + shared, max(data - has, 0)


def _mapped() -> int:
    # Bytes of disk that the mapped files take: of a sparse one what is written to.
    files = {}
    try:
        with open("/proc/self/maps", "rb") as file:
            lines = file.readlines()
    except FileNotFoundError:  # /proc is not mounted
        return 0
    for line in lines:
        words = line.rstrip(b"\n").split(None, 5)
        if len(words) == 6 and words[5].startswith(b"/"):
            try:
                status = os.stat(words[5])
            except OSError:  # it has gone
                continue
            files[status.st_dev, status.st_ino] = 512 * status.st_blocks
    return sum(files.values())
