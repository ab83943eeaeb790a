"""``fetchc compile``: one fetch-arg an expression, definitions, other tools' formats, JSON."""

from __future__ import annotations

from fetchc.answers.question import Question, by_probe
from fetchc.cli.output import exit_status

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.api.probe import Argument, Probe
    from fetchc.cli.option_table import Options
    from fetchc.cli.output import Output
    from fetchc.emit.output_formats import Event

__all__ = ["installed_bpftrace", "run"]

# The formats of fetchc.emit.output_formats.
_TOOLS = ("perf", "bpftrace", "tetragon", "systemtap", "bpf-c")


def run(options: Options, output: Output) -> int:
    """Compile every expression; one that is refused does not hide the next."""
    if options.batch is not None:
        from fetchc.cli.batch_command import answers

        return answers(options, output)
    texts = [*options.operands, *options.expr]
    if not texts:
        output.say("error: no expression is given; `'$args'` is every parameter of a function")
        output.say("", "usage: fetchc compile EXPR... -x BINARY")
        return 2
    if options.bpftrace_version and not _version(options.bpftrace_version):
        output.say(f"error: --bpftrace-version takes 0.27, not `{options.bpftrace_version}`")
        return 2
    if options.filters and options.format != "bpf-c":
        output.say("error: `--filter` needs `--format bpf-c`; `fetchc trace --filter` shows events")
        return 2
    if options.format == "json":
        return _json(options, output, texts)
    whole = options.format in ("probe", *_TOOLS)
    question, program = _question(options, texts, whole), options.opened()
    shared = question.probe(program)
    outcomes = question.outcomes(program, shared)
    if shared is not None:
        output.diagnostics(shared.warnings, "")
    groups = by_probe(outcomes)
    for probe, _ in groups:
        if probe is not shared:
            output.diagnostics(probe.warnings, "")
    settled = _settled(options.format)
    for one in outcomes:
        diagnostics = [each for each in one.diagnostics if each.code not in settled]
        output.diagnostics(diagnostics, one.text)
        if not whole and one.argument is not None:
            output.line(one.argument.fetcharg)
    if options.format == "probe":
        for probe, arguments in groups:
            output.exact(probe.definition(arguments))
    elif options.format in _TOOLS and groups:
        _for_tool(options, output, groups)
    return exit_status([each for one in outcomes for each in one.refused])


def installed_bpftrace() -> str:
    """The version of the machine's bpftrace, ``0.17.0``; empty where there is none that tells."""
    import shutil
    import subprocess

    path = shutil.which("bpftrace")
    if path is None:
        return ""
    try:
        ran = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=10)
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return ""
    return _version(ran.stdout)


def _version(text: str) -> str:
    # `0.27`, `v0.17.0`, `bpftrace v0.26.1-12-gabcdef`
    import re

    found = re.fullmatch(r"(?:bpftrace )?v?([0-9]{1,4}(?:\.[0-9]{1,4}){1,2})(?:-.*)?\s*", text)
    return "" if found is None else found[1]


def _question(options: Options, texts: list[str], whole: bool) -> Question:
    return Question(
        options.binary,
        tuple(texts),
        options.function,
        options.at,
        options.returns,
        options.kernel,
        active=options.active,
        whole=whole,
        computes=_computes(options.format),
    )


def _computes(format: str) -> bool:
    if format not in _TOOLS:
        return False
    from fetchc.emit.output_formats import COMPUTING

    return format in COMPUTING


def _settled(format: str) -> tuple[str, ...]:
    if format not in _TOOLS:
        return ()
    from fetchc.emit.output_formats import settled

    return settled(format)


def _for_tool(options: Options, output: Output, groups: list[tuple[Probe, list[Argument]]]) -> None:
    from fetchc.emit.output_formats import written

    events: list[Event] = []
    for probe, arguments in groups:
        conditions = [_condition(probe, one, options.format, output) for one in options.filters]
        events += probe.events(arguments, conditions=conditions)
    result = written(options.format, events, options.btf, _version(options.bpftrace_version))
    output.diagnostics(result.warnings, "")
    if result.btf:
        output.replace_file(options.btf, result.btf)
    output.exact(result.text)


def _condition(probe: Probe, text: str, format: str, output: Output) -> Argument:
    from fetchc.diag.diagnostic import CompileError

    try:
        condition = probe.compile(text, computes=True)
    except CompileError as refusal:
        refusal.text = text
        raise
    settled = _settled(format)
    output.diagnostics([one for one in condition.warnings if one.code not in settled], text)
    return condition


def _json(options: Options, output: Output, texts: list[str]) -> int:
    # A document whatever comes, as in a batch: who reads it reads no text.
    import json

    from fetchc.answers.json_documents import document, refused
    from fetchc.ceilings import Exceeded, unwatch
    from fetchc.diag.diagnostic import CompileError, DebugInfoError, too_costly

    question = _question(options, texts, whole=True)
    try:
        program = options.opened()
        shared = question.probe(program)
        outcomes = question.outcomes(program, shared)
        result = document(program, question.version, shared, outcomes)
        status = exit_status([each for one in outcomes for each in one.refused])
    except CompileError as refusal:
        result = refused(options.binary, refusal.diagnostics)
        status = exit_status(refusal.diagnostics)
    except DebugInfoError as unreadable:
        result = refused(options.binary, (unreadable.diagnostic,))
        status = 3
    except (Exceeded, MemoryError) as beyond:
        unwatch()
        result = refused(options.binary, (too_costly(options.binary, beyond).diagnostic,))
        status = 3
    output.document(json.dumps(result, indent=2))
    return status
