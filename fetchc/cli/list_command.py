"""``fetchc list``: the definitions that the kernel has, and whose they are."""

from __future__ import annotations

from fetchc.cli.definition_lines import document, lines
from fetchc.syntax.globs import glob_pattern
from fetchc.tracer.install import leftover_warnings, leftovers
from fetchc.tracer.persistent_probes import State, added_events, definitions, state_file
from fetchc.tracer.tracefs import find_tracefs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.cli.option_table import Options
    from fetchc.cli.output import Output

__all__ = ["run"]


def run(options: Options, output: Output) -> int:
    """Those of uprobes, whose GROUP/EVENT matches the glob: what was added comes first."""
    tracefs = find_tracefs()
    added, problems = added_events(State(state_file()))
    problems += leftover_warnings(leftovers(tracefs))
    order = ("added", "session", "stale", "other")
    listed = sorted(definitions(tracefs, added), key=lambda one: order.index(one.owner))
    if options.operands:
        match = glob_pattern(options.operands[0]).fullmatch
        listed = [one for one in listed if match(one.name)]
    if options.format == "json":
        import json

        output.document(json.dumps(document(listed, problems), indent=2))
        return 0
    output.diagnostics(problems, "")
    for line in lines(listed):
        output.line(line)
    return 0
