"""``fetchc add``: install definitions that stay."""

from __future__ import annotations

import os

from fetchc.answers.question import Question
from fetchc.ceilings import unwatch
from fetchc.cli.definition_lines import document
from fetchc.cli.parsing_child import Reader, probed_file, reader
from fetchc.record import Record
from fetchc.tracer.install import group_and_event, leftover_warnings, leftovers
from fetchc.tracer.persistent_probes import AddedEvent, State, add, state_file
from fetchc.tracer.tracefs import find_tracefs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.cli.option_table import Options
    from fetchc.cli.output import Output
    from fetchc.diag.diagnostic import Diagnostic

__all__ = ["run"]


class Prepared(Record):
    """What is to be installed; None where it is refused, or of several points.

    ``warnings`` are refusals and warnings, each with the expression that it is about.
    ``identity`` is that of the file that was read.
    """

    wanted: AddedEvent | None
    warnings: tuple[tuple[str, tuple[Diagnostic, ...]], ...]
    of_several_points: bool = False
    identity: str = ""


def run(options: Options, output: Output) -> int:
    """Install one event for the running kernel; it is off unless ``--enable`` is given."""
    with reader(options, output, {"prepared": lambda: prepared(options)}) as asked:
        found: Prepared = asked.ask("prepared")
    for text, diagnostics in found.warnings:
        output.diagnostics(diagnostics, text)
    if found.of_several_points:
        output.say("error: the expressions name several probe points: add them one by one")
        return 2
    if found.wanted is None:
        return 1
    if isinstance(asked, Reader):
        named = found.wanted.group, found.wanted.event
        files = {found.wanted.binary: found.identity}
        probed_file(options.binary, files, found.wanted.definitions, named)
    unwatch()  # what is begun from here on is brought to its end
    tracefs = find_tracefs()
    output.diagnostics(leftover_warnings(leftovers(tracefs)), "")
    added = add(tracefs, State(state_file()), found.wanted, options.enable, found.identity)
    if options.format == "json":
        import json

        output.document(json.dumps(document([added], ()), indent=2))
        return 0
    output.line(added.name)
    if not options.enable:
        output.say(f"switch it on: echo 1 >{tracefs.path('events', added.name, 'enable')}")
    output.say(f"read it: cat {tracefs.path('trace_pipe')}")
    return 0


def prepared(options: Options) -> Prepared:
    """Compile what the options ask for; raises CompileError for the probe point."""
    texts = (*options.operands, *options.expr)
    question = Question(
        options.binary, texts, options.function, options.at, options.returns, active=options.active
    )
    program = options.opened()
    probe = question.probe(program)
    if probe is None and not texts:
        probe = program.probe(None, None, options.returns, active=options.active)
    outcomes = question.outcomes(program, probe)
    warnings = [(one.text, one.diagnostics) for one in outcomes]
    if any(one.refused for one in outcomes):
        return Prepared(None, tuple(warnings))
    arguments = [one.argument for one in outcomes if one.argument is not None]
    probe = probe or arguments[0].probe
    if any(one.probe.key != probe.key for one in arguments):
        return Prepared(None, tuple(warnings), of_several_points=True)
    warnings.append(("", tuple(probe.warnings)))
    lines = tuple(probe.definition(arguments, options.group, options.event).splitlines())
    function = None if probe.function is None else probe.function.name
    group, event = group_and_event(lines[0])
    binary = program.path if probe.in_kernel else os.path.abspath(program.path)
    wanted = AddedEvent(group, event, binary, function, texts, lines)
    return Prepared(wanted, tuple(warnings), identity=program.identity)
