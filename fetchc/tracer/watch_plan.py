"""From an expression to the memory that a watchpoint covers, and to the value that is there."""

from __future__ import annotations

import os

from fetchc.check.checker import Checker
from fetchc.check.typed_tree import Located, Pointee, Subobject
from fetchc.diag.diagnostic import reject
from fetchc.driver.probe_output import defined
from fetchc.ir.fetch import (
    Absolute,
    Comm,
    Decode,
    ElementAddress,
    Fetch,
    Image,
    Scalar,
    Text,
    ThreadPointer,
    chain,
)
from fetchc.lower.extents import FULL
from fetchc.lower.fetches import Composite, InValue, Memory, bit_field_of, piece_at, plain, where
from fetchc.program.entities import AtAddress, InMemory, Pieces
from fetchc.quantities import Address
from fetchc.record import Record
from fetchc.syntax.expression_parser import parse_argument, written
from fetchc.tracer.caller_values import argument_shape
from fetchc.tracer.event_fields import Fields
from fetchc.tracer.events import COMM, WRITE, EventValue, Plan
from fetchc.tracer.value_shapes import Leaf

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.check.probe_site import ProbePoint
    from fetchc.check.typed_tree import Typed
    from fetchc.diag.diagnostic import CompileError
    from fetchc.ir.fetch import Value
    from fetchc.program.entities import Place
    from fetchc.program.protocol import Program
    from fetchc.target.kernel_versions import Kernel

__all__ = ["BASE", "Watch", "watch_of"]

BASE = "base"
"""The value of :attr:`Watch.finding`."""

_FIELD = "fetchc_base"


class Watch(Record):
    """A variable to watch: the ``size`` bytes that are ``offset`` from the address ``base``.

    ``plan`` shows the variable, as if it were at the beginning of the file's image: :meth:`at` is
    the plan for where it is. ``finding`` is the event of a function that gives ``base``; None where
    memory alone does: of a global, of what a global points to. ``word_bytes`` are those of an
    address of the program.
    """

    label: str
    base: Value
    offset: int
    size: int
    plan: Plan
    finding: Plan | None
    word_bytes: int

    def at(self, address: int) -> Plan:
        """What shows the variable at ``address``."""
        return self.plan.relocated(address, address)


def watch_of(
    program: Program, found: ProbePoint, kernel: Kernel, text: str, group: str, event: str
) -> Watch:
    """The variable that ``text`` names at ``found``.

    Raises CompileError FC0722 where the processor cannot watch it.
    """
    argument = parse_argument(text)
    start, end = written(argument, text)
    label = argument.name or text[start:end]
    checker = Checker(found.site)
    node = checker.check(argument.expression)
    size = _size(checker, node, text)
    places = [_place(each, text, size) for each in found.each()]
    base, offset = places[0]
    if any(other != offset for _, other in places):
        raise _unfit(node, text, "is elsewhere at each of these addresses", "name one: `--at`")
    fields = Fields(found, kernel, (_FIELD,))
    fields.span, fields.stem = argument.expression.span, "value"
    site = found.site
    image = Address(site.address - program.image_offset(site.address, site.address))
    value = Located(AtAddress(image), label, node.type, node.span)
    shape = argument_shape(checker, fields, value, argument.format, FULL)
    comm = (COMM, Fetch(Comm(), Text()))
    path = os.path.abspath(program.path)
    shown = Plan(
        group, event, path, None, WRITE, 0, (), (EventValue(label, shape),), (),
        ((*fields.listed, comm),), program.identity,
    )  # fmt: skip
    finding = None
    if not isinstance(chain(base)[0], Image | Absolute):
        word = Scalar("x", 64)
        each = [((_FIELD, Fetch(one, word)), comm) for one, _ in places]
        lines = [
            defined(one.site, listed, kernel, group, f"{event}_at")
            for one, listed in zip(found.each(), each, strict=True)
        ]
        finding = Plan(
            group, f"{event}_at", path, site.named_after, found.kind, site.address, tuple(lines),
            (EventValue(BASE, Leaf(_FIELD, Decode("integer", 64))),), (), tuple(each),
            program.identity,
        )  # fmt: skip
    return Watch(label, base, offset, size, shown, finding, program.word_bytes)


def _place(found: ProbePoint, text: str, size: int) -> tuple[Value, int]:
    # The address of the variable: a value to fetch, and what to add to it.
    node = Checker(found.site).check(parse_argument(text).expression)
    memory = where(found.site, node)
    if isinstance(memory, Composite):
        memory = piece_at(found.site, memory, size, node.span)
    if isinstance(memory, InValue):
        raise _unfit(
            node, text, "is in a register, and a watchpoint covers memory",
            "watch what it points to, or the variable that it is stored in",
        )  # fmt: skip
    if not isinstance(memory, Memory):
        raise _unfit(node, text, "is a constant here, in no memory", "watch another variable")
    start = chain(memory.base)[0]
    if isinstance(start, ThreadPointer):
        raise _unfit(
            node, text, "is thread-local, and a watchpoint covers one address",
            "watch a variable that all threads share",
        )  # fmt: skip
    if isinstance(start, ElementAddress):
        raise _unfit(
            node, text, "is found by an index that varies",
            "watch an element with a constant index: `a[0]`",
        )  # fmt: skip
    inside = node
    while isinstance(inside, Subobject):
        inside = inside.base
    if isinstance(inside, Located) and _is_on_stack(inside.place):
        raise _unfit(
            node, text, "is on the stack: other functions have that memory after the return",
            "watch what it points to, or a variable that stays",
        )  # fmt: skip
    return memory.base, memory.offset


def _is_on_stack(place: Place) -> bool:
    if isinstance(place, Pieces):
        return any(_is_on_stack(one.place) for one in place.pieces)
    return isinstance(place, InMemory)


_WIDTHS = (1, 2, 4, 8)  # bytes. Source: Intel SDM, volume 3, 19.2.4, LENn


def _size(checker: Checker, node: Typed, text: str) -> int:
    # The bytes of the variable; refused where no watchpoint covers them.
    program = checker.program
    if program.in_kernel or program.in_memory or program.dotnet is not None:
        what = "the kernel" if program.in_kernel else "a runtime that moves objects"
        raise _unfit(node, text, f"is of {what}", "watch a variable of C, C++, Go or Rust")
    bits = bit_field_of(node)
    if bits is not None:
        raise _unfit(
            node, text, "is a bit field, and a watchpoint covers whole bytes",
            "watch the bytes that it is in, by a cast: `*(int *)POINTER`",
        )  # fmt: skip
    if not isinstance(node, Located | Subobject | Pointee):
        raise _unfit(node, text, "is computed: it has no address", "watch a variable in it")
    if checker.assumptions:
        raise _unfit(
            node, text, "is there only while an object has that type, or a slice that length",
            "watch a variable, a member or an element of an array",
        )  # fmt: skip
    scalar, size = plain(checker, node.type), checker.size(node.type)
    name = checker.spell(node.type)
    if scalar is not None and scalar.size in _WIDTHS:
        return scalar.size
    if checker.members_of(node.type):
        whole = f"is a whole `{name}` of {size} bytes, and a watchpoint covers 1, 2, 4 or 8"
        raise _unfit(node, text, whole, "watch a number in it: a member, an element")
    raise _unfit(
        node, text, f"has the type `{name}`: a watchpoint covers a number of 1, 2, 4 or 8 bytes",
        "watch a part of it: an element, or `*(long *)&x`",
    )  # fmt: skip


def _unfit(node: Typed, text: str, why: str, help: str) -> CompileError:
    span = node.span
    return reject("FC0722", f"`{text}` {why}", span, "cannot be watched", help=help)
