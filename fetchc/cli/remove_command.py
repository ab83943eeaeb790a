"""``fetchc remove``: take added definitions away, or what killed sessions left."""

from __future__ import annotations

from fetchc.tracer.install import remove_leftovers
from fetchc.tracer.persistent_probes import State, remove, state_file
from fetchc.tracer.tracefs import find_tracefs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.cli.option_table import Options
    from fetchc.cli.output import Output

__all__ = ["run"]


def run(options: Options, output: Output) -> int:
    """Remove by name, or all, or what is stale; prints the names of what is gone."""
    chosen = [bool(options.operands), options.all, options.stale]
    if chosen.count(True) != 1:
        output.say("error: give names, or --all, or --stale", "", "usage: fetchc remove NAME...")
        return 2
    tracefs = find_tracefs()
    if options.stale:
        removed = remove_leftovers(tracefs)
    else:
        names = options.operands or None
        removed = [one.name for one in remove(tracefs, State(state_file()), names)]
    if options.format == "json":
        import json

        from fetchc import __version__

        output.document(json.dumps({"fetchc": __version__, "removed": removed}, indent=2))
        return 0
    for name in removed:
        output.line(name)
    return 0
