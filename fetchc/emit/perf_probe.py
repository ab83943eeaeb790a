"""The format ``perf``: a command line of ``perf probe`` an event.

perf hands what it does not know as a variable to the kernel as it is, so arguments are fetch-args.
An absolute address goes into the definition unchanged, as the offset in the file that it has to be
(tools/perf/util/probe-event.c, ``synthesize_uprobe_trace_def``; perf 6.1).

A function of the kernel it finds by its symbols, and makes a kprobe there; it makes no other kind.

What perf's own readers (``perf script``, ``perf trace``; libtraceevent 1.7) make of the record
decides how a value is fetched. Elements of arrays that are wider than a byte are read at the
wrong places and lists of strings not at all: each element is an argument of its own. ``char`` takes
no value of the record, which moves all later ones: refused. Signed numbers of one and two bytes
are printed unsigned: a warning. For a string that could not be read they print the bytes at its
offset, the next string (they ignore the length of 0; seen with perf 6.1): a warning.
"""

from __future__ import annotations

import shlex

from fetchc.diag.diagnostic import CompileError, Diagnostic, reject
from fetchc.emit.output_formats import Event, Item, Written
from fetchc.emit.probe_definition import Probed, argument_name, event_name, verify_event
from fetchc.ir.fetch import (
    ELEMENTS,
    Array,
    Char,
    Decode,
    Deref,
    Fetch,
    Scalar,
    Text,
    body,
    element_of,
    fixed_bytes,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fetchc.ir.fetch import Value

__all__ = ["SETTLED", "write"]

SETTLED: tuple[str, ...] = ()


def write(events: Sequence[Event]) -> Written:
    """``perf probe -x FILE 'GROUP:EVENT=0xOFFSET NAME=FETCH-ARG ...'``, a line an event.

    Of the kernel: ``perf probe 'GROUP:EVENT=FUNCTION ...'``, of a module with ``-m MODULE``. perf
    adds ``__return`` to the names of return probes. Raises CompileError where the kernel would not
    take the definition, or perf's readers would show something else.
    """
    lines = []
    warnings: list[Diagnostic] = []
    taken: set[str] = set()  # perf takes a name once
    for event in events:
        items = _items(event)
        fetches = [(each.name, each.fetch) for each in items]
        returns = event.kind in ("uretprobe", "kretprobe")
        own = event_name(event.event, taken)
        taken.add(own)
        name = f"{own}__return" if returns else own
        probed = Probed(event.kind, event.path, event.offset)
        problems = verify_event(probed, event.group, name, fetches, event.kernel)
        if problems:
            raise CompileError(problems)
        option, place = _place(event)
        point = f"{event.group}:{own}={place}{'%return' if returns else ''}"
        words = [point, *[f"{each.name}={body(each.fetch)}" for each in items]]
        lines.append(f"perf probe {option}{shlex.quote(' '.join(words))}")
        warnings += _unsigned(items) + _taken_for_others(items)
    return Written("\n".join(lines), tuple(dict.fromkeys(warnings)))


_NOT_MADE = {
    "fprobe": "leave `fprobe:` out, or use `--format probe`",
    "fexit": "leave `fprobe:` out, or use `--format probe`",
    "tprobe": "use `--format probe`",
    "eprobe": "`perf record -e {name}` records all fields of the event",
}


def _place(event: Event) -> tuple[str, str]:
    """The option that says where, and the place there."""
    point = event.point
    if point is None:
        return f"-x {shlex.quote(event.path)} ", f"{event.offset:#x}"
    if event.kind in _NOT_MADE:
        what = "`perf probe` makes kprobes in the kernel, and no other kind"
        raise reject("FC0514", what, help=_NOT_MADE[event.kind].format(name=point.name))
    if point.active:
        raise reject(
            "FC0514",
            "perf leaves the number of concurrent calls to the kernel",
            help="leave `--maxactive` out, or use `--format probe`",
        )
    inside = f"+{point.inside}" if point.inside else ""
    return f"-m {point.module} " if point.module else "", point.name + inside


def _items(event: Event) -> list[Item]:
    taken = {each.name for each in event.items}
    result = []
    for item in event.items:
        for suffix, fetch, decode in _parts(item, event.word_bytes):
            name = item.name
            if suffix:
                name = argument_name(f"{item.name}_{suffix}", event.kernel, taken)
                taken.add(name)
            result.append(Item(name, item.text, fetch, decode, item.length))
    return result


def _parts(item: Item, word_bytes: int) -> Iterator[tuple[str, Fetch, Decode]]:
    """The fetches that perf reads right, in place of one, each with its suffix."""
    fetch, decode = item.fetch, item.decode
    store = fetch.store
    if isinstance(element_of(store), Char):
        raise _cannot(item, "perf misreads the rest of the event after a `char`", "`:u8`, `:x8[N]`")
    if not isinstance(store, Array):
        yield "", fetch, decode
        return
    assert isinstance(fetch.value, Deref)
    element = store.element
    one = Decode(decode.kind, decode.bits, decode.signed, None, decode.enumerators)
    if isinstance(element, Text):
        for index in range(store.count):
            pointer = _moved(fetch.value, word_bytes * index)
            yield str(index), Fetch(Deref(pointer, 0), element), one
        return
    size = fixed_bytes(element)
    if decode.kind in ("text", "bytes"):
        # The bytes of a counted text: as bytes they are read right.
        total = store.count * size
        for low in range(0, total, ELEMENTS):
            count = min(ELEMENTS, total - low)
            bytes_of = Array(Scalar("x", 8), count)
            shown = Decode(decode.kind, 8, count=count)
            yield (str(low) if low else ""), Fetch(_moved(fetch.value, low), bytes_of), shown
    elif size == 1 and isinstance(element, Scalar):
        yield "", fetch, decode
    else:
        for index in range(store.count):
            yield str(index), Fetch(_moved(fetch.value, size * index), element), one


def _moved(value: Deref, by: int) -> Value:
    return Deref(value.base, value.offset + by, value.user)


def _unsigned(items: Sequence[Item]) -> list[Diagnostic]:
    names = []
    for each in items:
        element = element_of(each.fetch.store)
        if isinstance(element, Scalar) and element.kind == "s" and element.bits < 32:
            names.append(f"`{each.name}`")
    if not names:
        return []
    return [
        Diagnostic(
            "FC0611",
            f"perf prints {', '.join(names)} unsigned: a negative number shows as a large one",
            notes=("its readers extend no sign of numbers with one or two bytes",),
        )
    ]


def _taken_for_others(items: Sequence[Item]) -> list[Diagnostic]:
    texts = [each for each in items if isinstance(each.fetch.store, Text)]
    names = [f"`{each.name}`" for each in texts[:-1] if isinstance(each.fetch.value, Deref)]
    if not names:
        return []
    return [
        Diagnostic(
            "FC0625",
            f"perf shows the next string of the event where {', '.join(names)} cannot be read",
            notes=("for example the string at a null pointer: the kernel stores no bytes for it",),
            help="also fetch the pointer (`:x64`), or one string an event",
        )
    ]


def _cannot(item: Item, why: str, instead: str) -> CompileError:
    return reject(
        "FC0514",
        f"the format `perf` cannot carry `{item.name}`: {why}",
        help=f"fetch it as a number: {instead}",
    )
