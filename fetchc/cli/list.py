"""``fetchc list``: the definitions that the kernel has, and whose they are."""

from __future__ import annotations

from fnmatch import fnmatchcase

from fetchc.cli.definitions import document, lines
from fetchc.tracer.leftovers import leftovers, told
from fetchc.tracer.persistent import definitions, known
from fetchc.tracer.state import State, state_file
from fetchc.tracer.tracefs import find_tracefs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.cli.options import Options
    from fetchc.cli.output import Output

__all__ = ["run"]


def run(options: Options, output: Output) -> int:
    """Those of uprobes, whose GROUP/EVENT matches the glob: what was added comes first."""
    tracefs = find_tracefs()
    kept, problems = known(State(state_file()))
    problems += told(leftovers(tracefs))
    order = ("added", "session", "stale", "other")
    listed = sorted(definitions(tracefs, kept), key=lambda one: order.index(one.owner))
    if options.operands:
        glob = options.operands[0]
        listed = [one for one in listed if fnmatchcase(one.name, glob)]
    if options.format == "json":
        import json

        output.line(json.dumps(document(listed, problems), indent=2))
        return 0
    output.diagnostics(problems, "")
    for line in lines(listed):
        output.line(line)
    return 0
