"""``fetchc compile``: one fetch-arg an expression, definitions, other tools' formats, JSON."""

from __future__ import annotations

from fetchc.answers.outcome import by_probe, outcome
from fetchc.cli.output import exit_status
from fetchc.target.kernel_versions import running_version

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.answers.outcome import Outcome
    from fetchc.api.library import Program
    from fetchc.api.probe import Argument, Probe
    from fetchc.cli.option_table import Options
    from fetchc.cli.output import Output

__all__ = ["run"]

_TOOLS = ("perf", "bpftrace")  # the formats of fetchc.emit.output_formats


def run(options: Options, output: Output) -> int:
    """Compile every expression; one that is refused does not hide the next."""
    if options.batch is not None:
        from fetchc.cli.batch_command import answers

        return answers(options, output)
    texts = [*options.operands, *options.expr]
    if not texts:
        output.say("error: no expression is given", "", "usage: fetchc compile EXPR... -x BINARY")
        return 2
    if options.format == "json":
        return _json(options, output, texts)
    whole = options.format in ("probe", *_TOOLS)
    _, shared, outcomes = _asked(options, texts, _kernel(options), whole)
    if shared is not None:
        output.diagnostics(shared.warnings, "")
    groups = by_probe(outcomes)
    for probe, _ in groups:
        if probe is not shared:
            output.diagnostics(probe.warnings, "")
    settled = _settled(options.format)
    for one in outcomes:
        said = [each for each in one.diagnostics if each.code not in settled]
        output.diagnostics(said, one.text)
        if not whole and one.argument is not None:
            output.line(one.argument.fetcharg)
    if options.format == "probe":
        for probe, arguments in groups:
            output.exact(probe.definition(arguments))
    elif options.format in _TOOLS and groups:
        _for_tool(output, options.format, groups)
    return exit_status([each for one in outcomes for each in one.refused])


def _kernel(options: Options) -> str:
    return running_version() if options.kernel == "running" else options.kernel


def _asked(
    options: Options, texts: list[str], kernel: str, whole: bool
) -> tuple[Program, Probe | None, list[Outcome]]:
    program = options.opened()
    shared = None
    if options.function is not None or options.at is not None:
        shared = program.probe(
            options.function, options.at, options.returns, kernel, options.active
        )
    outcomes = [
        outcome(program, shared, text, kernel, whole, options.returns, options.active)
        for text in texts
    ]
    return program, shared, outcomes


def _settled(format: str) -> tuple[str, ...]:
    if format not in _TOOLS:
        return ()
    from fetchc.emit.output_formats import settled

    return settled(format)


def _for_tool(output: Output, format: str, groups: list[tuple[Probe, list[Argument]]]) -> None:
    from fetchc.emit.output_formats import written

    events = [event for probe, arguments in groups for event in probe.events(arguments)]
    result = written(format, events)
    output.diagnostics(result.warnings, "")
    output.exact(result.text)


def _json(options: Options, output: Output, texts: list[str]) -> int:
    # A document whatever comes, as in a batch: who reads it reads no text.
    import json

    from fetchc.answers.json_documents import document, refused
    from fetchc.ceilings import Exceeded, unwatch
    from fetchc.diag.diagnostic import CompileError, DebugInfoError, too_costly

    kernel = _kernel(options)
    try:
        program, shared, outcomes = _asked(options, texts, kernel, True)
        result = document(program, kernel, shared, by_probe(outcomes), outcomes)
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
