"""``fetchc btf``: types of a program as a file of BTF, which other tools read."""

from __future__ import annotations

from fetchc.ceilings import unwatch
from fetchc.cli.parsing_child import reader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from fetchc.cli.option_table import Options
    from fetchc.cli.output import Output
    from fetchc.driver.btf_types import BtfFile

__all__ = ["run"]

_WIDEST = 40  # characters of a column


def run(options: Options, output: Output) -> int:
    """Write the file, and print which names it spells otherwise than the program."""
    if not (options.operands or options.functions):
        output.say("error: no TYPE and no --function FUNCTION is named")
        return 2

    def built() -> BtfFile:
        return options.opened().btf(options.operands, options.functions)

    with reader(options, output, {"btf": built}) as asked:
        file: BtfFile = asked.ask("btf")
    unwatch()
    output.replace_file(options.output, file.data)
    if options.format == "json":
        import json

        output.document(json.dumps(_document(options, file), indent=2))
        return 0
    width = min(max([len(identifier) for _, identifier in file.names], default=0), _WIDEST)
    for name, identifier in file.names:
        output.line(f"{identifier:{width}}  {name}")
    for path, why in file.left_out:
        output.say(f"note: `{path}` is left out: {why}")
    output.say(f"{options.output}: {file.types} types, {len(file.data):,} bytes")
    return 0


def _document(options: Options, file: BtfFile) -> dict[str, Any]:
    return {
        "output": options.output,
        "types": file.types,
        "bytes": len(file.data),
        "names": dict(file.names),
        "left_out": dict(file.left_out),
    }
