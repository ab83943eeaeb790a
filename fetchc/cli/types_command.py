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

_SHOWN = 5


def run(options: Options, output: Output) -> int:
    """Show the types that match; a bare ``*`` lists their names."""
    from fetchc.target.machines import cache_line

    program = options.opened()
    glob = options.operands[0] if options.operands else "*"
    if glob == "*" and options.format == "svg":
        output.say("error: a picture is of one type: name it, `fetchc types NAME --format svg`")
        return 1
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
    line_bytes = cache_line(program.architecture)
    if not layouts:
        if options.format == "json":
            output.document("[]")
        output.say(f"no type matches `{glob}` in {program.path}")
        _suggest(program, glob, output)
        return 1
    if options.format == "json":
        import json

        output.document(json.dumps([_object(each, line_bytes) for each in layouts], indent=2))
        return 0
    if options.format == "svg":
        return _draw(output, layouts, line_bytes)
    for number, each in enumerate(layouts):
        if number:
            output.line("")
        _print(output, each, line_bytes)
    return 0


def _draw(output: Output, layouts: list[Layout], line_bytes: int) -> int:
    from fetchc.cli.layout_picture import picture

    if len(layouts) > 1:
        names = ", ".join([f"`{output.types(each.name)}`" for each in layouts[:_SHOWN]])
        more = f" and {len(layouts) - _SHOWN} more" if len(layouts) > _SHOWN else ""
        output.say(f"error: a picture is of one type, and {len(layouts)} match: {names}{more}")
        return 1
    try:
        output.document(picture(layouts[0], line_bytes, output.types))
    except ValueError as refused:
        output.say(f"error: {refused}")
        return 1
    return 0


def _suggest(program: Program, name: str, output: Output) -> None:
    from fetchc.check.suggestions import nearest

    names = list(program.types())
    names += [other.rpartition(" ")[2] for other in names]  # struct s is also found as s
    close = nearest(name, names, most=5)
    if close:
        output.say(f"names like it: {', '.join(f'`{other}`' for other in close)}")


def _print(output: Output, shown: Layout, line_bytes: int) -> None:
    size = "no size" if shown.size is None else f"{shown.size} bytes"
    output.line(f"{output.types(shown.name)}  ({shown.kind}, {size})")
    rows = [*shown.rows, *[row for one in shown.variants for row in one.rows]]
    width = max([len(output.types(row.type)) for row in rows], default=0)
    if rows:
        output.line(f"  {'offset':>6}  {'size':>5}  {'type':<{width}}  name")
        _rows(output, shown.rows, width, line_bytes)
    for variant in shown.variants:
        value = "" if variant.value is None else f" = {variant.value}"
        output.line(f"  {variant.name}{value}")
        if variant.rows:
            _rows(output, variant.rows, width, 0)


def _rows(output: Output, rows: tuple[Row, ...], width: int, line_bytes: int) -> None:
    crossed = 0
    for row in rows:
        if line_bytes and row.offset // line_bytes > crossed:
            crossed = row.offset // line_bytes
            within = row.offset % line_bytes
            begun = f", begun {within} bytes before" if within else ""
            output.line(f"  -- cache line {crossed}{begun}")
        size = "?" if row.size is None else str(row.size)
        if row.name is None:
            output.line(f"  {row.offset:>6}  {size:>5}  {'':<{width}}  (hole)")
        else:
            output.line(
                f"  {row.offset:>6}  {size:>5}  {output.types(row.type):<{width}}  {_name(row)}"
            )


def _name(row: Row) -> str:
    name = row.name or "(anonymous)"
    if row.bits is not None:
        name += f" : {row.bits.width}  (bits {row.bits.offset}..)"
    return f"{name}  (embedded)" if row.embedded and row.name else name


def _object(shown: Layout, line_bytes: int) -> dict[str, Any]:
    found: dict[str, Any] = {
        "name": shown.name,
        "kind": shown.kind,
        "size": shown.size,
        "cache_line": line_bytes,
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
