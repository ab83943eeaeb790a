"""``fetchc perfmap find`` and ``fetchc perfmap merge``: lines of perf maps and bytes of images."""

from __future__ import annotations

import os

from fetchc.cli.output import given_lines
from fetchc.cli.parsing_child import Reader, SameProcess, of_stranger
from fetchc.debuginfo.dotnet.dotnet_program import DotnetProgram
from fetchc.debuginfo.dotnet.perf_map_methods import MappedMethods
from fetchc.debuginfo.environment import DEFAULT
from fetchc.debuginfo.open_file import open_binary
from fetchc.debuginfo.perf_map_format import written_line
from fetchc.diag.diagnostic import CompileError, DebugInfoError
from fetchc.tracer.perf_maps import SETTING, Process, collected, in_image, write

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from fetchc.cli.option_table import Options
    from fetchc.cli.output import Output
    from fetchc.tracer.perf_maps import Collected, MappedPlace

__all__ = ["run"]


def run(options: Options, output: Output) -> int:
    """Find what lines, numbers or names mean, or merge the map of a process."""
    action, *asked = options.operands
    if action == "merge" and len(asked) == 1 and asked[0].isdecimal() and not options.pids:
        return _merge(options, output, int(asked[0]))
    one_of = bool(options.binary) + len(options.pids) == 1
    if action == "find" and asked and one_of:
        return _find(options, output, asked)
    output.say(
        "usage: fetchc perfmap find LINE|NUMBER|NAME... -x IMAGE|-p PID",
        "       fetchc perfmap merge PID",
    )
    return 2


def _merge(options: Options, output: Output, pid: int) -> int:
    def found() -> tuple[Collected, list[tuple[str, str]]]:
        process = Process(pid)
        return collected(process), list(process.skipped)

    # What another user's process has mapped is read without the rights of root.
    path = f"/proc/{pid}/exe"
    apart = os.geteuid() == 0 and of_stranger(path)
    questions = {"collected": found}
    with Reader(questions, path, output, options) if apart else SameProcess(questions) as asked:
        what, skipped = asked.ask("collected")
    merged = write(pid, what)
    for each, why in skipped:
        output.say(f"left out: {each}: {why}")
    for each in merged.left_out:
        output.say(f"left out: {each}: a mapping of that name has no symbols of its own")
    if merged.compiled is None:
        output.say(f"process {pid} writes no perf map: {SETTING}")
    command = f"perf script --symfs {merged.symbols} --kallsyms /proc/kallsyms"
    if options.format == "json":
        import json

        shown = {
            "map": merged.path, "compiled": merged.compiled, "precompiled": merged.precompiled,
            "symbols": merged.symbols, "command": command,
        }  # fmt: skip
        output.document(json.dumps(shown, indent=2))
        return 0
    output.line(
        f"{merged.path}: {merged.compiled or 0} lines of the process, {merged.precompiled} of "
        "precompiled methods"
    )
    output.line(f"{merged.symbols}: the same as symbols")
    output.line(f"read a recording with them: {command}")
    return 0


def _find(options: Options, output: Output, asked: list[str]) -> int:
    look = Process(options.pids[0]).find if options.pids else _in_image(options)
    found: list[MappedPlace] = []
    status = 0
    for text in _texts(asked):
        try:
            found += look(text)
        except CompileError as refusal:
            output.diagnostics(refusal.diagnostics, "")
            status = 1
    if options.format == "json":
        import json

        output.document(json.dumps([_document(one) for one in found], indent=2))
        return status
    for one in found:
        far = f"+{one.inside:#x}" if one.inside else ""
        output.line(f"{one.path}:{one.offset:#x}  {written_line(one.line).rstrip()}{far}")
    return status


def _in_image(options: Options) -> Callable[[str], list[MappedPlace]]:
    program = open_binary(
        options.binary,
        tuple(options.references),
        environment=options.environment or DEFAULT,
    )
    if not isinstance(program, DotnetProgram):
        what = "it is not an image of .NET, so maps of .NET do not describe it"
        raise DebugInfoError("FC0902", options.binary, what)
    methods = MappedMethods(program)
    return lambda text: in_image(program, methods, text)


def _document(one: MappedPlace) -> dict[str, object]:
    return {
        "image": one.path, "offset": one.offset, "start": one.start, "size": one.method.size,
        "name": one.method.symbol, "inside": one.inside,
    }  # fmt: skip


def _texts(asked: list[str]) -> Iterator[str]:
    for text in asked:
        if text != "-":
            yield text
            continue
        yield from given_lines()
