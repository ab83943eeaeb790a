"""A listing of a fetch, one step a line, for internal errors and explanations."""

from __future__ import annotations

from fetchc.ir.nodes import (
    Absolute,
    Array,
    Bits,
    Deref,
    Fetch,
    Image,
    KernelValue,
    Word,
    is_address,
)
from fetchc.ir.notation import body, number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.ir.nodes import Store, Value

__all__ = ["listing"]


def listing(fetch: Fetch) -> str:
    """The steps of ``fetch`` from the innermost on, as the kernel takes them.

    ``+0(+8(%di)):string`` reads::

        %di
        load 8 bytes at +8
        load string at +0
    """
    loads: list[Deref] = []
    value: Value = fetch.value
    while isinstance(value, Deref):
        loads.append(value)
        value = value.base
    lines = [_start(value)]
    for position, load in enumerate(reversed(loads), 1):
        what = _stored(fetch.store) if position == len(loads) else "8 bytes"
        memory = "user memory " if load.user else ""
        sign, size = ("-", -load.offset) if load.offset < 0 else ("+", load.offset)
        lines.append(f"load {what} at {memory}{sign}{number(size)}")
    if not loads:
        lines.append(f"store {_stored(fetch.store)}")
    return "\n".join(lines)


def _start(value: Value) -> str:
    match value:
        case Absolute(address):
            return f"address {address:#x}"
        case Image(offset):
            return f"image {offset:+#x}"
        case KernelValue(text=text) if is_address(value):
            return f"symbol {text.removeprefix('@')}"
        case _:
            return body(Fetch(value, Word()))


def _stored(store: Store) -> str:
    match store:
        case Word():
            return "8 bytes"
        case Array(element, count):
            return f"{count} times {_stored(element)}"
        case Bits(width, offset, container):
            return f"{width} bits from bit {offset} of {container}"
        case _:
            # What stands behind the colon is as plain as any word for it.
            return body(Fetch(Deref(Absolute(0), 0), store)).partition(":")[2]
