"""``fetchc functions``: what can be probed."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.api.library import Program
    from fetchc.cli.option_table import Options
    from fetchc.cli.output import Output

__all__ = ["run", "say_none"]

_STEP = 32  # functions between two reports of progress
_SHOWN = 12  # names that a suggestion lists


def run(options: Options, output: Output) -> int:
    """List function names; ``--long`` adds address, signature, line, and what has no code."""
    program = options.opened()
    glob = options.operands[0] if options.operands else "*"
    names = list(program.functions(glob)) or program.meant(glob)
    found = bool(names)
    if options.long:
        progress = None if options.environment is None else options.environment.progress
        rows = []
        for number, name in enumerate(names):
            rows += program.described(name)
            if progress is not None and number % _STEP == 0:
                progress(number, len(names))
        if progress is not None and names:
            progress(len(names), len(names))
        rows += program.without_code(glob)
        found = bool(rows)
        _long(options, output, rows)
    elif options.format == "json":
        import json

        output.document(json.dumps(names, indent=2))
    elif names:
        output.lines(program.spelled(names))
    if not found:
        say_none(program, glob, output)
    return 0 if found else 1


def say_none(program: Program, glob: str, output: Output) -> None:
    """Say that no function matches, and what to do."""
    output.say(f"no function with code matches `{glob}` in {program.path}")
    _suggest(program, glob, output)


def _suggest(program: Program, glob: str, output: Output) -> None:
    from fetchc.cli.trace_targets import whole_names, wider
    from fetchc.diag.diagnostic import CompileError

    found = wider(program, glob)
    if found is not None:
        names = program.spelled(found[1])
        more = [f"  and {len(names) - _SHOWN} more"] if len(names) > _SHOWN else []
        output.say(whole_names(found), *[f"  {name}" for name in names[:_SHOWN]], *more)
        return
    try:
        program.probe(glob)
    except CompileError as refusal:
        (why, *_) = refusal.diagnostics
        for line in (*why.notes, *([why.help] if why.help else ())):
            output.say(line)


def _long(options: Options, output: Output, rows: list[dict[str, object]]) -> None:
    if options.format == "json":
        import json

        output.document(json.dumps(rows, indent=2))
        return
    for row in rows:
        source = f"  {row['source']}" if row["source"] else ""
        address = "" if row["address"] is None else f"{row['address']:#018x}  "
        why = f"  -- {row['why']}" if "why" in row else ""
        if row.get("inlined"):
            why = "  -- callers may have it inlined"
        if "in_source" in row:
            why = f"  -- {row['in_source']}{why.replace('  -- ', ', ')}"
        output.line(f"{address}{output.types(str(row['signature']))}{source}{why}")
