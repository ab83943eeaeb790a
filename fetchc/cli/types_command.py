"""``fetchc types``: the layout of types, with their holes."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from fetchc.api.library import Program
    from fetchc.cli.option_table import Options
    from fetchc.cli.output import Output
    from fetchc.driver.type_layouts import Layout, Row

__all__ = ["run"]


def run(options: Options, output: Output) -> int:
    """Show the types that match; a bare ``*`` lists their names."""
    program = options.opened()
    glob = options.operands[0] if options.operands else "*"
    if glob == "*":
        names = list(program.types())
        if options.format == "json":
            import json

            output.document(json.dumps(names, indent=2))
        else:
            for name in names:
                output.line(name)
            if not names:
                output.say(f"{program.path} describes no type")
        return 0 if names else 1
    layouts = program.layouts(glob)
    if not layouts:
        if options.format == "json":
            output.document("[]")
        output.say(f"no type matches `{glob}` in {program.path}")
        _suggest(program, glob, output)
        return 1
    if options.format == "json":
        import json

        output.document(json.dumps([_object(each) for each in layouts], indent=2))
        return 0
    for number, each in enumerate(layouts):
        if number:
            output.line("")
        _print(output, each)
    return 0


def _suggest(program: Program, name: str, output: Output) -> None:
    from fetchc.check.suggestions import nearest

    names = list(program.types())
    names += [other.rpartition(" ")[2] for other in names]  # struct s is also found as s
    close = nearest(name, names, most=5)
    if close:
        output.say(f"names like it: {', '.join(f'`{other}`' for other in close)}")


def _print(output: Output, shown: Layout) -> None:
    size = "no size" if shown.size is None else f"{shown.size} bytes"
    output.line(f"{shown.name}  ({shown.kind}, {size})")
    rows = [*shown.rows, *[row for one in shown.variants for row in one.rows]]
    width = max([len(row.type) for row in rows], default=0)
    if rows:
        output.line(f"  {'offset':>6}  {'size':>5}  {'type':<{width}}  name")
        _rows(output, shown.rows, width)
    for variant in shown.variants:
        value = "" if variant.value is None else f" = {variant.value}"
        output.line(f"  {variant.name}{value}")
        if variant.rows:
            _rows(output, variant.rows, width)


def _rows(output: Output, rows: tuple[Row, ...], width: int) -> None:
    for row in rows:
        size = "?" if row.size is None else str(row.size)
        if row.name is None:
            output.line(f"  {row.offset:>6}  {size:>5}  {'':<{width}}  (hole)")
        else:
            output.line(f"  {row.offset:>6}  {size:>5}  {row.type:<{width}}  {_name(row)}")


def _name(row: Row) -> str:
    name = row.name or "(anonymous)"
    if row.bits is not None:
        name += f" : {row.bits.width}  (bits {row.bits.offset}..)"
    return f"{name}  (embedded)" if row.embedded and row.name else name


def _object(shown: Layout) -> dict[str, Any]:
    found: dict[str, Any] = {
        "name": shown.name,
        "kind": shown.kind,
        "size": shown.size,
        "members": [_member(row) for row in shown.rows],
    }
    if shown.variants:
        found["variants"] = [
            {
                "name": variant.name,
                "value": variant.value,
                "members": [_member(row) for row in variant.rows],
            }
            for variant in shown.variants
        ]
    return found


def _member(row: Row) -> dict[str, Any]:
    return {
        "name": row.name,
        "type": row.type,
        "offset": row.offset,
        "size": row.size,
        "bit_offset": None if row.bits is None else row.bits.offset,
        "bit_width": None if row.bits is None else row.bits.width,
        "embedded": row.embedded,
        "hole": row.name is None,
    }
