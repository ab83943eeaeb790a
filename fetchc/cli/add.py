"""``fetchc add``: install definitions that stay."""

from __future__ import annotations

import os

from fetchc.cli.definitions import document
from fetchc.diag.errors import CompileError
from fetchc.tracer.kernel.install import head
from fetchc.tracer.kernel.leftovers import leftovers, told
from fetchc.tracer.kernel.persistent import add
from fetchc.tracer.kernel.state import Kept, State, state_file
from fetchc.tracer.kernel.tracefs import find_tracefs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.api.argument import Argument
    from fetchc.api.probe import Probe
    from fetchc.api.program import Program
    from fetchc.cli.options import Options
    from fetchc.cli.output import Output

__all__ = ["run"]


def run(options: Options, output: Output) -> int:
    """Install one event for the running kernel; it is off unless ``--enable`` is given."""
    texts = [*options.operands, *options.expr]
    program = options.opened()
    probe = None
    if options.function is not None or options.at is not None or not texts:
        probe = program.probe(options.function, options.at, options.returns, active=options.active)
    arguments = _compiled(program, probe, options, texts, output)
    if len(arguments) < len(texts):
        return 1
    probe = probe or arguments[0].probe
    if any(one.probe.key != probe.key for one in arguments):
        output.say("error: the expressions are of several points: add them one by one")
        return 2
    output.diagnostics(probe.warnings, "")
    lines = tuple(probe.definition(arguments, options.group, options.event).splitlines())
    function = None if probe.function is None else probe.function.name
    group, event = head(lines[0])
    binary = program.path if probe.in_kernel else os.path.abspath(program.path)
    wanted = Kept(group, event, binary, function, tuple(texts), lines)
    tracefs = find_tracefs()
    output.diagnostics(told(leftovers(tracefs)), "")
    made = add(tracefs, State(state_file()), wanted, options.enable)
    if options.format == "json":
        import json

        output.line(json.dumps(document([made], ()), indent=2))
        return 0
    output.line(made.name)
    if not options.enable:
        output.say(f"switch it on: echo 1 >{tracefs.path('events', made.name, 'enable')}")
    output.say(f"read it: cat {tracefs.path('trace_pipe')}")
    return 0


def _compiled(
    program: Program, probe: Probe | None, options: Options, texts: list[str], output: Output
) -> list[Argument]:
    # Fewer than `texts` where one is refused.
    arguments = []
    for text in texts:
        try:
            argument = program.argument(text, probe, returns=options.returns, active=options.active)
            output.diagnostics(argument.whole.warnings, text)
            arguments.append(argument)
        except CompileError as refusal:
            output.diagnostics(refusal.diagnostics, text)
    return arguments
