"""The reader: a child process without rights, which parses files for a command that keeps root.

Privilege separation, as OpenSSH does it. The child gives up root before it opens the first file
(:mod:`fetchc.privileges`), answers questions with data, and asks its parent for what it cannot do:
download a debug file, and write to the cache. The parent takes nothing from it but records of this
package and plain values, and checks what it does with them.
"""

from __future__ import annotations

import gc
import io
import os
import pickle
import signal
import sys
from errno import EACCES
from functools import partial
from struct import Struct

from fetchc.ceilings import Exceeded, unwatch, watch, watched
from fetchc.cli.output import LIMITS, Unwritable, discard, replace_file
from fetchc.debuginfo import cache
from fetchc.debuginfo.environment import DEFAULT, CacheFolder, Environment
from fetchc.debuginfo.safe_open import check_owner, file_identity, open_regular
from fetchc.diag.diagnostic import DebugInfoError, Error, too_costly
from fetchc.privileges import give_up_root, let_go
from fetchc.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from types import TracebackType
    from typing import Any, BinaryIO, NoReturn

    from fetchc.cli.option_table import Options
    from fetchc.cli.output import Output

    Function = Callable[..., Any]

__all__ = ["Reader", "SameProcess", "of_stranger", "probed_file", "reader"]

_SIZE = Struct("=Q")
_LARGEST = 1 << 30  # bytes of a message: more than the cache takes of all files
_CALL, _ANSWER, _FAILURE, _BUG = "call", "answer", "failure", "bug"
_SENT = (Record, Error, OSError, Unwritable)  # as they are; others stay, and are asked
_ATTRIBUTE, _METHOD = "attribute", "method"  # of an object that stays
_REMEMBERED = 1 << 16  # answers of one
_FINISH = "finish"  # what every child answers: it hands over what is to be cached
# A terminal, `timeout` and a service manager send them to both; the child ends with its parent.
_IGNORED = (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGTERM)


def reader(
    options: Options, output: Output, questions: Mapping[str, Function]
) -> Reader | SameProcess:
    """What answers ``questions`` for a command: a child where this process has root to give up.

    The running kernel describes itself: no stranger has written what is read of it.
    """
    if os.geteuid() != 0 or options.binary == "kernel" or options.binary.startswith("kernel:"):
        return SameProcess(questions)
    return Reader(questions, options.binary, output, options)


class SameProcess:
    """The same without a child."""

    def __init__(self, questions: Mapping[str, Function]) -> None:
        self._questions = questions

    def __enter__(self) -> SameProcess:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def ask(self, question: str, *arguments: object) -> Any:
        """The answer; raises what the question raises."""
        return self._questions[question](*arguments)


class Reader:
    """A context manager: a child that answers :meth:`ask` by calling ``questions`` without root.

    ``binary`` is the file that the questions are about. Where root cannot be given up, the user
    learns why, and this process answers itself; where it is a limit that forbids it, entering
    raises that OSError. To be entered while it has one thread. In the child
    ``options`` have an environment that has this process write to the cache, and download.
    """

    def __init__(
        self,
        questions: Mapping[str, Function],
        binary: str,
        output: Output,
        options: Options | None = None,
    ) -> None:
        self._options = options
        self._environment = (options and options.environment) or DEFAULT
        self._questions = questions
        self._binary = binary
        self._output = output
        self._pid = 0
        self._channel: _Channel | None = None  # None: there is no child, this process answers
        self._failed: DebugInfoError | None = None  # why the child answers nothing any more
        self._objects: dict[int, RemoteObject] = {}
        self._services: dict[str, Function] = {}
        # Later runs trust the cache: so nothing is cached where another user can write the input.
        folder = self._environment.cache
        if folder is not None and _own_file(binary):
            self._services["store"] = lambda name, content: cache.store(folder, name, content)
        if options is not None:
            self._services["replace"] = self._replace

    def __enter__(self) -> Reader:
        # 3 ms: the child needs them to give up root, where it may have no open file for a library,
        # and this process for what a trace asks of the kernel.
        import ctypes  # noqa: F401
        import resource  # noqa: F401

        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()  # or both processes would write what waits
        calls, to_child = os.pipe()
        answers, to_parent = os.pipe()
        self._pid = os.fork()
        if not self._pid:
            self._become(_Channel(calls, to_parent), (calls, to_parent))
        os.close(calls)
        os.close(to_parent)
        self._channel = _Channel(answers, to_child, self._remote_object)
        try:
            self._received()  # that it has given up root, or why it cannot
        except OSError as refused:
            self._end()
            if refused.errno in LIMITS:
                raise
            self._output.say(f"note: files are read with the rights of root: {refused}")
            self._channel = None
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if self._pid and (error is None or isinstance(error, Error)):
                match self.ask(_FINISH):
                    case list(notes) if all(isinstance(each, str) for each in notes):
                        if self._environment.cache is not None:
                            self._environment.cache.notes += notes
                    case _:
                        raise self._unanswered("sent what is no answer")
        finally:
            self._end()

    def ask(self, question: str, *arguments: object) -> Any:
        """The answer; raises what the question raises.

        Raises DebugInfoError FC0905 where the child ends in place of an answer, and from then on.
        """
        if self._channel is None:
            return self._questions[question](*arguments)
        if self._failed is not None:
            raise self._failed
        try:
            self._channel.send((_CALL, question, arguments))
        except BrokenPipeError:
            raise self._ended() from None
        return self._received()

    def _received(self) -> Any:
        assert self._channel is not None
        while True:
            try:
                message = self._channel.receive()
            except EOFError:
                raise self._ended() from None
            except _Garbled as wrong:
                raise self._unanswered(f"sent {wrong}") from None
            match message:
                case ("answer", answer):
                    return answer
                case ("failure", Exception() as failure):
                    raise failure
                case ("bug", str(text)):
                    raise RuntimeError(f"in the reader:\n{text}")
                case ("call", str(name), tuple(arguments)) if service := self._service(name):
                    self._channel.send(_outcome(service, arguments))
                case _:
                    raise self._unanswered("sent what is no answer")

    def _remote_object(self, number: int) -> RemoteObject:
        if number not in self._objects:
            self._objects[number] = RemoteObject(self.ask, number)
        return self._objects[number]

    def _service(self, name: str) -> Function | None:
        if name in _TRANSFERS and "download" not in self._services:
            from fetchc.debuginfo.separate.debuginfod import Transfers

            transfers = Transfers(self._environment)
            self._services |= {one: getattr(transfers, one) for one in _TRANSFERS}
        return self._services.get(name)

    def _replace(self, path: object, content: object) -> None:
        # A file of results, which the user named: no other is the child's to choose.
        named = (self._options.btf, self._options.into) if self._options is not None else ()
        if not path or path not in named or not isinstance(content, bytes):
            raise PermissionError(EACCES, f"no file of results: {path!a}")
        replace_file(str(path), content)

    def _ended(self) -> DebugInfoError:
        status = os.waitstatus_to_exitcode(self._end())
        how = f"status {status}" if status >= 0 else signal.Signals(-status).name
        return self._unanswered(f"ended with {how}")

    def _unanswered(self, how: str) -> DebugInfoError:
        self._end()
        what = f"cannot be read: the process that reads it {how}"
        self._failed = DebugInfoError("FC0905", self._binary, what)
        return self._failed

    def _end(self) -> int:
        # Whatever the child does. How it ended, by itself or now.
        if self._channel is not None:
            self._channel.close()
        if not self._pid:
            return 0
        pid, self._pid = self._pid, 0
        os.kill(pid, signal.SIGKILL)
        return os.waitpid(pid, 0)[1]

    def _become(self, channel: _Channel, pipes: tuple[int, int]) -> NoReturn:
        # In the child, which must never come back from here.
        try:
            gc.freeze()  # a collection would copy the pages of all that both processes have
            for number in _IGNORED:
                signal.signal(number, signal.SIG_IGN)
            user = os.geteuid()
            try:
                let_go(pipes)
                give_up_root()
            except OSError as refused:
                channel.send((_FAILURE, refused))
                os._exit(1)
            environment = self._delegated(channel, user)
            if self._options is not None:
                self._options.environment = environment
                self._output.replace_file = partial(channel.call, "replace")
            channel.send((_ANSWER, None))
            questions = {
                **self._questions,
                _FINISH: lambda: _finished(environment),
                **_of_referred(channel.referred),
            }
            bounded = watched()  # as its parent is, whose timer is not inherited
            while True:
                _, question, arguments = channel.receive()
                if bounded:
                    watch(self._binary, incremental=True)
                answer = self._bounded(questions[question], arguments)
                _flush()
                try:
                    channel.send(answer)
                except BrokenPipeError:
                    raise
                except Exception:  # noqa: BLE001 - what cannot be sent is a bug, too
                    channel.send(_bug())
        except (EOFError, BrokenPipeError):
            pass  # its parent has ended
        finally:
            os._exit(1)

    def _bounded(self, function: Function, arguments: tuple[object, ...]) -> tuple[str, object]:
        try:
            return _outcome(function, arguments)
        except (Exceeded, MemoryError) as beyond:
            return _FAILURE, too_costly(self._binary, beyond)
        except BaseException:  # noqa: BLE001 - the child continues, whatever a question raises
            return _bug()
        finally:
            unwatch()

    def _delegated(self, channel: _Channel, user: int) -> Environment:
        # What the child cannot do it has its parent do.
        def write(name: str, content: bytes) -> None:
            if "store" in self._services:
                channel.call("store", name, content)

        own = self._environment
        folder = None if own.cache is None else CacheFolder(own.cache.path, user, write)
        return Environment(folder, own.report, own.progress, own.processes, channel.call, user)


_TRANSFERS = ("download", "keep_download", "discard", "absent")


def _outcome(function: Function, arguments: tuple[object, ...]) -> tuple[str, object]:
    try:
        return _ANSWER, function(*arguments)
    except (Error, OSError, Unwritable) as raised:
        return _FAILURE, raised
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 - the other process says that it is a bug
        return _bug()


def _bug() -> tuple[str, str]:
    import traceback

    return _BUG, traceback.format_exc()


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except OSError:  # the writer has reported it
            discard(stream)


def _of_referred(referred: Sequence[object]) -> dict[str, Function]:
    def attribute(number: int, name: str) -> tuple[bool, object]:
        value = getattr(referred[number], name)
        return (True, None) if callable(value) else (False, value)

    def method(number: int, name: str, *arguments: object) -> object:
        return getattr(referred[number], name)(*arguments)

    return {_ATTRIBUTE: attribute, _METHOD: method}


def _finished(environment: Environment) -> list[str]:
    if environment.cache is None:
        return []
    environment.cache.save()
    return environment.cache.notes


class _Garbled(Exception):
    """The other process sent what no process of this package sends; the text completes `sent`."""


class _Channel:
    """Two pipes with messages: their size, then what :class:`_Plain` takes.

    ``referred`` are the objects that this process has sent references to; ``remote`` makes a
    proxy of an object of the other one, by its number.
    """

    def __init__(
        self, source: int, target: int, remote: Callable[[int], object] | None = None
    ) -> None:
        self._source: BinaryIO = os.fdopen(source, "rb")
        self._target: BinaryIO = os.fdopen(target, "wb")
        self._remote = remote
        self.referred: list[object] = []

    def send(self, message: object) -> None:
        buffer = io.BytesIO()
        _Referring(buffer, self.referred).dump(message)
        data = buffer.getbuffer()
        self._target.write(_SIZE.pack(len(data)))
        self._target.write(data)
        self._target.flush()

    def receive(self) -> Any:
        """The next message; EOFError where the other process has ended.

        Raises _Garbled for what is no message.
        """
        head = self._source.read(_SIZE.size)
        if len(head) != _SIZE.size:
            raise EOFError
        (size,) = _SIZE.unpack(head)
        if size > _LARGEST:
            raise _Garbled(f"{size:,} bytes")
        data = self._source.read(size)
        if len(data) != size:
            raise EOFError
        try:
            return _Plain(io.BytesIO(data), self._remote).load()
        except Exception as wrong:  # noqa: BLE001 - a question may raise any
            raise _Garbled(f"no message: {wrong!a}") from None

    def call(self, name: str, *arguments: object) -> Any:
        """What a service of the parent answers; raises what it raises."""
        self.send((_CALL, name, arguments))
        kind, value = self.receive()
        if kind == _BUG:
            raise RuntimeError(f"for the reader:\n{value}")
        if kind == _FAILURE:
            raise value
        return value

    def close(self) -> None:
        for file in (self._source, self._target):
            try:
                file.close()
            except BrokenPipeError:  # with what was not sent
                continue


class _Referring(pickle.Pickler):
    """Writes records and errors as they are, and a number for any other object of this package.

    Such an object answers questions about an open file (which dynamic type is this?), which stays
    where it is. Source: the manual of pickle, "Persistence of External Objects".
    """

    def __init__(self, file: BinaryIO, referred: list[object]) -> None:
        super().__init__(file, protocol=5)
        self._referred = referred

    def persistent_id(self, obj: object) -> int | None:
        """The number of an object that stays here; None for one that is written itself."""
        kind = type(obj)
        if not kind.__module__.startswith("fetchc.") or isinstance(obj, (type, *_SENT)):
            return None
        for number, one in enumerate(self._referred):
            if one is obj:
                return number
        self._referred.append(obj)
        return len(self._referred) - 1

    def reducer_override(self, obj: object) -> Any:
        """An error as it reduces itself, whatever a library has registered for errors (tblib)."""
        return obj.__reduce__() if isinstance(obj, BaseException) else NotImplemented


class RemoteObject:
    """An object of the child. Its methods are called there; what they answer does not change."""

    def __init__(self, ask: Function, number: int) -> None:
        self._ask = ask
        self._number = number
        self._answers: dict[tuple[object, ...], object] = {}

    def __getattr__(self, name: str) -> object:
        if name.startswith("_"):
            raise AttributeError(name)
        is_method, value = self._ask(_ATTRIBUTE, self._number, name)
        if is_method:
            value = lambda *arguments: self._answer(name, *arguments)  # noqa: E731
        setattr(self, name, value)
        return value

    def _answer(self, *asked: object) -> object:
        if asked not in self._answers:
            if len(self._answers) == _REMEMBERED:
                self._answers.clear()
            self._answers[asked] = self._ask(_METHOD, self._number, *asked)
        return self._answers[asked]


class _Plain(pickle.Unpickler):
    """Takes records and errors of this package, values that need no class, and numbers of objects.

    Source: the manual of pickle, "Restricting Globals".
    """

    def __init__(self, file: BinaryIO, remote: Callable[[int], object] | None) -> None:
        super().__init__(file)
        self._remote = remote

    def persistent_load(self, pid: object) -> object:
        """The proxy of an object of the other process."""
        if self._remote is None or not isinstance(pid, int):
            raise pickle.UnpicklingError(f"a reference to {pid!r}")
        return self._remote(pid)

    def find_class(self, module: str, name: str) -> Any:
        """The class; raises UnpicklingError for all others."""
        if module.startswith("fetchc.") or (module == "builtins" and name.endswith("Error")):
            found = super().find_class(module, name) if "." not in name else None
            if isinstance(found, type) and issubclass(found, _SENT):
                return found
        raise pickle.UnpicklingError(f"{module}.{name} is no record of fetchc")


def probed_file(
    binary: str,
    files: Mapping[str, str],
    definitions: Iterable[str],
    event: tuple[str, str] | None = None,
) -> None:
    """Raises DebugInfoError FC0905 for a definition of another file than the one that was named.

    What was compiled without rights is believed no more than the file itself: it chooses
    instructions of that file, and of no other. Mono's code is in a file beside the image.
    ``files`` are the identities of the files that were read, by path. ``event`` is the group and
    event that all of the definitions have to be of; names become paths of tracefs.
    """
    for path, identity in files.items():
        if not _is_named(path, binary):
            raise _forged(binary, path)
        if _identity_of(path) != identity:
            what = "cannot be read: it was replaced or changed meanwhile"
            raise DebugInfoError("FC0905", path, what, help="run the command again")
    for line in definitions:
        first, _, rest = line.partition(" ")
        path = rest.partition(" ")[0].rpartition(":")[0]
        group, _, name = first.partition(":")[2].partition("/")
        plain = line.isprintable() and path in files and line[:1] in ("p", "r")
        plain &= group.isidentifier() and name.isidentifier() and event in (None, (group, name))
        if not plain:
            raise _forged(binary, line)


def _forged(binary: str, answer: str) -> DebugInfoError:
    what = f"cannot be read: the process that reads it answered with `{answer!a}`"
    return DebugInfoError("FC0905", binary, what)


def _is_named(path: str, binary: str) -> bool:
    files_named = (binary, binary.rpartition(":")[0], binary + ".so")
    found = _identity_of(path)
    return bool(found) and path[:1] == "/" and found in map(_identity_of, files_named)


def _identity_of(path: str) -> str:
    # As the reader finds it: a link of a container leads to where it does in there.
    try:
        handle, status = open_regular(path)
    except (OSError, ValueError):
        return ""
    os.close(handle)
    return file_identity(status)


def _own_file(path: str) -> bool:
    # Of this user, who alone can change it; what a process is named for may be a container's.
    try:
        status = os.stat(path)
    except OSError:
        return False
    return (
        not path.startswith("/proc/")
        and status.st_uid == os.geteuid()
        and not (status.st_mode & 0o22)
        and not check_owner(os.path.abspath(path))
    )


def of_stranger(path: str) -> bool:
    """Whether a path names a process (``/proc/PID/...``) that is another user's, or a container's.

    The root of a container is another one, whatever its number: the root directory tells. So is
    who has a number by now that no process had a moment ago.
    """
    parts = path.split("/", 4)
    if len(parts) < 4 or parts[:2] != ["", "proc"] or not parts[2].isdecimal():
        return False
    process = f"/proc/{parts[2]}"
    try:
        own = os.stat(process).st_uid == os.geteuid()
        return not own or not os.path.samefile("/", f"{process}/root")
    except OSError:
        return True
