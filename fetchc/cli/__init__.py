"""The command line: one module a command. The only place that prints or reads argv."""

from __future__ import annotations

import gc
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeVar

    from fetchc.cli.option_table import Options
    from fetchc.cli.output import Output
    from fetchc.debuginfo.environment import Environment

    Result = TypeVar("Result")

__all__ = ["main", "parse"]

# What is loaded where something is to be done at the end: files to be removed, what a profiler or a
# debugger has to tell.
_AT_THE_END = frozenset(("_lsprof", "atexit", "bdb"))
# Commands that read no files of others, or must not stop halfway: nothing bounds them.
_UNBOUNDED = ("cache", "completion", "conformance", "doctor", "list", "remove")
_MORE = "   = help: allow more processes, open files and memory, by `ulimit` or for the container"
_BUG = "error: this is a bug in fetchc; please report it with the lines above"


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status of docs/interface.md.

    Without ``argv`` it has the process to itself, takes ``sys.argv`` and may end it.
    """
    try:
        if argv is None:
            gc.disable()  # a command ends soon, and collecting what it imports costs 2 ms
            from fetchc.cli.module_finder import install

            install()
        status = _run(sys.argv[1:] if argv is None else argv, argv is None)
    except KeyboardInterrupt:
        status = 130
    if argv is None:
        _end(status)
    return status


def _end(status: int) -> None:
    # To take the modules apart takes the interpreter 1 ms of 28, and 5 after a trace by eBPF.
    gc.freeze()  # nor does it have to look at all objects before it ends
    threading = sys.modules.get("threading")
    waits = threading is not None and threading.active_count() > 1
    if waits or not _AT_THE_END.isdisjoint(sys.modules):
        return
    try:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
    except OSError:
        return  # it prints that, and has a status for it
    os._exit(status)


def _run(words: Sequence[str], alone: bool) -> int:
    from fetchc.cli.option_table import COMMANDS
    from fetchc.cli.output import Output

    options = _edge(lambda: parse(words), Output("never"))
    if isinstance(options, int):
        return options
    output = Output(options.color, options.full_types)
    if "uncached" in COMMANDS[options.command].options:
        options.environment = _environment(options, output, alone)
    if alone and options.command not in _UNBOUNDED:
        from fetchc.ceilings import TooMuch, watch

        try:
            watch(options.path)
        except TooMuch as wrong:
            output.say(f"error: {wrong}")
            return 2
    status = _edge(lambda: _answered(options, output, alone), output)
    _save(options, output)
    if alone and options.verbose:
        from fetchc.cli.module_finder import bytecode_note

        note = bytecode_note()
        if note is not None:
            output.say(f"note: {note}")
    output.close()
    return status


def parse(words: Sequence[str]) -> Options | int:
    """The options of a command line; an exit status where there is nothing to run."""
    from fetchc.cli.option_table import read

    options = read(words)
    if not isinstance(options, str):
        return options
    from fetchc.cli.help_text import explained

    return explained(words, options)


def _edge(work: Callable[[], Result], output: Output) -> Result | int:
    # The outermost edge: handles the exceptions that no command handles.
    from fetchc.cli.output import LIMITS, Unwritable, discard

    try:
        return work()
    except BrokenPipeError:
        discard(sys.stdout)
        return 0
    except Unwritable as failed:
        output.say(f"error: {failed}")
        if not failed.path:
            discard(sys.stdout)
        return 3
    except Exception as error:  # noqa: BLE001 - anything else is a bug of ours
        limit: Exception = error
        if isinstance(error, ImportError):  # which does not say why
            try:
                for end in os.pipe():
                    os.close(end)
            except OSError as refused:
                limit = refused
        if isinstance(limit, OSError) and limit.errno in LIMITS:
            output.say(f"error: a limit is reached: {limit.strerror}", _MORE)
            return 3
        import traceback

        output.say(*traceback.format_exc().splitlines(), _BUG)
        return 70


def _answered(options: Options, output: Output, alone: bool) -> int:
    from fetchc.ceilings import Exceeded, unwatch
    from fetchc.cli.option_table import COMMANDS
    from fetchc.cli.output import exit_status
    from fetchc.diag.diagnostic import CompileError, DebugInfoError, TracerError

    try:
        _complete(options, output)
        if alone and options.command == "trace":
            from fetchc.cli.instance_ahead import instance_ahead

            options.ahead = instance_ahead(options)
        run = __import__(
            f"fetchc.cli.{COMMANDS[options.command].module}_command", fromlist=["run"]
        ).run
        status: int = _apart(run, options, output)
        output.flush()
        return status
    except CompileError as refusal:
        output.diagnostics(refusal.diagnostics, refusal.text)
        return exit_status(refusal.diagnostics)
    except DebugInfoError as unreadable:
        output.diagnostics((unreadable.diagnostic,), "")
        return 3
    except TracerError as refused:
        output.diagnostics(refused.diagnostics, refused.text)
        return 4
    except (Exceeded, MemoryError) as beyond:
        unwatch()
        from fetchc.diag.diagnostic import too_costly

        output.diagnostics((too_costly(options.path, beyond).diagnostic,), "")
        return 3
    finally:
        unwatch()


def _complete(options: Options, output: Output) -> None:
    # Cheap: nearly every command names its file by a path.
    if options.format == "bpftrace" and not options.bpftrace_version:
        from fetchc.cli.compile_command import installed_bpftrace

        options.bpftrace_version = installed_bpftrace()
    binary = options.binary
    if not (options.processes or (options.program and not binary)) and (
        "/" in binary or not (binary.startswith("lib") or ".so" in binary)
    ):
        return
    from fetchc.cli.short_names import complete

    for note in complete(options):
        output.say(f"note: {note}")


def _apart(run: Callable[[Options, Output], int], options: Options, output: Output) -> int:
    # What a stranger's process gives to read is read without the rights of root. `trace`, `add`,
    # `browse` and `btf` do that themselves, for all files, and `perfmap merge`, which writes.
    named = [options.binary, *options.binaries]
    if options.command == "perfmap" or options.binary.endswith(":"):
        named += [f"/proc/{pid}/exe" for pid in options.pids]
    foreign = os.geteuid() == 0 and any(path.startswith("/proc/") for path in named)
    if not foreign or options.command in ("trace", "add", "btf", "browse"):
        return run(options, output)
    from fetchc.cli.parsing_child import Reader, of_stranger

    path = next((path for path in named if of_stranger(path)), None)
    if path is None:
        return run(options, output)

    def ran() -> int:
        status = run(options, output)
        output.flush()
        return status

    with Reader({"run": ran}, path, output, options) as reader:
        status: int = reader.ask("run")
        return status


def cache_folder() -> str:
    """Where this user's cache is; empty where the environment names no place.

    Source: XDG Base Directory Specification, XDG_CACHE_HOME.
    """
    base = os.environ.get("XDG_CACHE_HOME", "")
    if not base.startswith("/"):
        home = os.environ.get("HOME", "")
        base = f"{home}/.cache" if home.startswith("/") else ""
    return base and f"{base}/fetchc"


def _environment(options: Options, output: Output, alone: bool) -> Environment:
    from fetchc.debuginfo.environment import CacheFolder, Environment

    folder = "" if options.uncached else cache_folder()
    if options.verbose and not options.uncached and not folder:
        output.say("note: nothing is cached: neither XDG_CACHE_HOME nor HOME is set")
    return Environment(
        cache=CacheFolder(folder) if folder else None,
        report=output.say,
        progress=_progress() if output.terminal else None,
        processes=alone,
    )


def _progress() -> Callable[[int, int], None]:
    # Loaded when first called: most commands read too little.
    shown: list[Callable[[int, int], None]] = []

    def show(done: int, total: int) -> None:
        from fetchc.cli.progress import Progress

        if not shown:
            shown.append(Progress())
        shown[0](done, total)

    return show


def _save(options: Options, output: Output) -> None:
    cache = None if options.environment is None else options.environment.cache
    if cache is None:
        return
    cache.save()
    for note in dict.fromkeys(cache.notes) if options.verbose else ():
        output.say(f"note: {note}")
