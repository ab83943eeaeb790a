"""The names that fetch-args get in a definition."""

from __future__ import annotations

from fetchc.emit.probe_definition import argument_name
from fetchc.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from fetchc.driver.compile import Compiled, Part
    from fetchc.target.kernel_versions import Kernel

__all__ = ["Named", "named"]


class Named(Record):
    """A fetch-arg in a definition.

    ``text`` is the whole argument's, as the user wrote it; ``companion_of`` the name of
    the value that a companion is there for; ``length`` the name of the companion that
    holds a text's length.
    """

    name: str
    text: str
    part: Part
    companion_of: str | None
    length: str | None


def named(arguments: Iterable[tuple[str, Compiled]], kernel: Kernel) -> tuple[Named, ...]:
    """Names for the parts of ``arguments`` (each an expression and its compiled form).

    A name that the user gave is kept as it is; a clash of two of them is for the
    kernel's rules to refuse. Others are made from the expression and kept apart.
    """
    listed = list(arguments)
    taken = {compiled.name for _, compiled in listed if compiled.name}
    result: list[Named] = []
    for expression, compiled in listed:
        stem = compiled.name or argument_name(expression, kernel, taken)
        names = []
        for part in compiled.parts:
            name = stem
            if part.suffix:
                name = argument_name(f"{stem}_{part.suffix}", kernel, taken)
            taken.add(name)
            names.append(name)
        values: dict[str, str] = {}  # the suffix of a value -> its name
        lengths: dict[str, str] = {}  # the suffix of a value -> its length's name
        for part, name in zip(compiled.parts, names, strict=True):
            if not part.companion:
                values[part.suffix] = name
            else:
                owner, _, role = part.suffix.rpartition("_")
                if role == "len":
                    lengths[owner] = name
        for part, name in zip(compiled.parts, names, strict=True):
            owner = part.suffix.rpartition("_")[0]
            result.append(
                Named(
                    name,
                    compiled.text,
                    part,
                    values.get(owner) if part.companion else None,
                    lengths.get(part.suffix) if part.decode.kind in ("text", "bytes") else None,
                )
            )
    return tuple(result)
