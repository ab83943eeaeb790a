"""``fetchc offsets``: where members and parameters are, over many binaries side by side."""

from __future__ import annotations

import gc

from fetchc.answers.offset_tables import agreeing, compare, table_document
from fetchc.ceilings import watched
from fetchc.cli.output import exit_status
from fetchc.debuginfo.environment import DEFAULT
from fetchc.driver.visible_variables import ParameterPlace
from fetchc.ir.fetch import Fetch, Word, body

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.answers.offset_tables import Table
    from fetchc.cli.option_table import Options
    from fetchc.cli.output import Output
    from fetchc.driver.type_layouts import Offset

__all__ = ["run"]


def run(options: Options, output: Output) -> int:
    """Print the table: of each field or parameter its places, with the binaries that have them."""
    if options.format not in ("text", "json") or options.into or options.verify or options.fields:
        if options.params:
            output.say("error: tables by version have members alone: leave --params out")
            return 2
        from fetchc.cli.version_tables_output import by_version

        return by_version(options, output)
    if not options.operands:
        output.say(f"error: {'FUNCTION' if options.params else 'TYPE[.FIELD]'} is missing")
        return 2
    if watched():  # else the process is another one's, and what is frozen is never freed
        gc.freeze()  # the command's own objects are not looked through for each binary
    table = compare(
        options.operands,
        options.binaries,
        options.references,
        options.debug_dirs,
        options.environment or DEFAULT,
        options.params,
    )
    if options.format == "json":
        import json

        output.document(json.dumps(table_document(table), indent=2))
    else:
        _print(output, table)
    return exit_status([each for _, _, each in table.diagnostics if each.severity == "error"])


def _print(output: Output, table: Table) -> None:
    for path, text, diagnostic in table.diagnostics:
        if text and len(table.binaries) > 1:
            output.say(f"in {path}:")
        output.diagnostics((diagnostic,), text)
    width = max((len(row.field) for row in table.rows), default=0)
    for row in table.rows:
        groups = agreeing(table, row)
        if len(groups) == 1:
            ((one, _),) = groups
            output.line(f"{row.field:<{width}}  {_shown(one)}")
            continue
        output.line(f"{row.field:<{width}}  differs: {', '.join(row.differs)}")
        for one, paths in groups:
            output.line(f"  {_shown(one)}  in {', '.join(paths)}")


def _shown(one: Offset | ParameterPlace | None) -> str:
    if one is None:
        return "--"
    size = "?" if one.size is None else str(one.size)
    if isinstance(one, ParameterPlace):
        places = [body(Fetch(each.value, Word())) for each in one.pieces]
        if len(places) > 1 or one.reason is not None:
            places = [f"+{each.offset} {at}" for each, at in zip(one.pieces, places, strict=True)]
        shown = [", ".join(places), f"-- {one.reason}" if one.reason is not None else ""]
        return f"{size:>5}  {one.type}  {'  '.join(filter(None, shown))}"
    bits = "" if one.bits is None else f" : {one.bits.width}  (bits {one.bits.offset}..)"
    return f"+{one.offset:<5} {size:>5}  {one.type}{bits}"
