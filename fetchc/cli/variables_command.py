"""``fetchc variables``: every name visible at a probe point, and how it would be fetched."""

from __future__ import annotations

from fetchc.target.kernel_versions import running_version

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from fetchc.cli.option_table import Options
    from fetchc.cli.output import Output
    from fetchc.driver.visible_variables import VisibleVariable

__all__ = ["run"]

NOWHERE = "nowhere"


def run(options: Options, output: Output) -> int:
    """One line a name: name, type, place, its fetch-args or the reason why there are none."""
    kernel = running_version() if options.kernel == "running" else options.kernel
    program = options.opened()
    probe = program.probe(options.operands[0], options.at, options.returns, kernel)
    output.diagnostics(probe.warnings, "")
    shown = probe.variables()
    if options.format == "json":
        import json

        output.document(json.dumps([_object(each) for each in shown], indent=2))
        return 0
    if not shown:
        output.say("no name is visible here")
    width = max((len(each.name) for each in shown), default=0)
    spelled = [output.types(each.type) for each in shown]
    types = max((min(len(each), 40) for each in spelled), default=0)
    places = max((len(each.where) for each in shown if each.where != NOWHERE), default=0)
    for each, type in zip(shown, spelled, strict=True):
        head = f"{each.name:<{width}}  {type:<{types}}"
        if each.reason is not None:
            where = "" if each.where == NOWHERE else f"  {each.where:<{places}}"
            output.line(f"{head}{where}  -- {output.types(each.reason)}")
            continue
        texts = [f"{suffix}={body}" if suffix else body for suffix, body in each.fetchargs]
        output.line(f"{head}  {each.where:<{places}}  {' '.join(texts)}")
    return 0


def _object(each: VisibleVariable) -> dict[str, Any]:
    return {
        "name": each.name,
        "kind": each.kind,
        "type": each.type,
        "line": each.line,
        "place": each.where,
        "fetchargs": dict(each.fetchargs),
        "reason": each.reason,
    }
