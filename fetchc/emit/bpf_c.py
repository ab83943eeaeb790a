"""The format ``bpf-c``: BPF programs in C, for clang and libbpf, that send an event a hit.

An event is a structure with a member for each value, in a ring buffer. Each member has a bit in
``faults``: where it is set, memory could not be read, and the member is 0 or empty. A pointer that
cannot be read becomes an address that no program has, so that what is read by it fails, too.

Programs are sleepable where the kernel's version allows that (``uprobe.s``): pages that are not in
RAM are brought in. Addresses with the same values share a program, which is attached to all of them
at once where the kernel can (``uprobe.multi``). The loaders, for libbpf and for cilium/ebpf, are
comments. The texts that are filled in here are in targets/backend/libbpf.toml. What operators give
is computed in the program (:mod:`fetchc.emit.c_calculations`).
"""

from __future__ import annotations

import re
from string import Template

from fetchc.diag.diagnostic import reject
from fetchc.emit.c_calculations import Expression, Statements, c_type, either
from fetchc.emit.output_formats import Written
from fetchc.ir.arithmetic import Calculation, Fetched, Number
from fetchc.ir.fetch import (
    Absolute,
    Array,
    Bits,
    Char,
    Comm,
    Contents,
    Cursor,
    Deref,
    ElementAddress,
    Image,
    Immediate,
    KernelValue,
    Register,
    ReturnValue,
    Scalar,
    StackEntry,
    StackPointer,
    Symbol,
    Text,
    Walk,
    Word,
    chain,
)
from fetchc.ir.steps import COMM_BYTES
from fetchc.record import Record, assert_never
from fetchc.target.bpf_rules import bpf_rules
from fetchc.target.machines import table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from fetchc.diag.diagnostic import CompileError
    from fetchc.emit.output_formats import Event, Item
    from fetchc.ir.fetch import Value

__all__ = ["SETTLED", "write"]

SETTLED = ("FC0604", "FC0608")
"""Arrays of characters end at their count, bit fields have their sign."""

_FARTHEST = 1 << 54  # from NOWHERE, no program's memory is so near
_UNWRITABLE = re.compile(r'[\x00-\x1f\x7f"\\]|\*/')


# How the loader prints a member; the others are promoted to an int.
_CONVERSIONS = {"__u32": "%u", "__u64": "%llu", "__s64": "%lld", "char": "%c"}


class _Group(Record):
    """Events that differ in their address alone, and share a program; ``name`` is theirs.

    ``section`` says how libbpf loads the program, ``many`` that one link is for all of them.
    """

    name: str
    number: int
    events: tuple[Event, ...]
    section: str
    many: bool


def write(events: Sequence[Event]) -> Written:
    """The source; raises CompileError FC0514 for what such a program cannot carry."""
    features = bpf_rules(events[0].kernel.version).features
    if "programs" not in features:
        raise reject(
            "FC0514",
            "the format `bpf-c` cannot be of Linux before 5.8, which has no BPF ring buffer",
            help="use `--format bpftrace`, or name a newer one: `--kernel 5.8`",
        )
    groups = _groups(events, features)
    programs = [_Program(group) for group in groups]
    texts = [one.text() for one in programs]
    sleepable = "_sleepable" * ("sleepable" in features)
    helpers: list[str] = []
    for call, helper in (
        ("multiply_s64(", "multiply_signed"),
        ("multiply_u64(", "multiply_unsigned"),
        ("remainder_of(", "remainder"),
        ("quotient(", "quotient"),
        ("read_text(", f"read_text{sleepable}"),
        ("pointer(", "pointer"),
        ("read(", f"read{sleepable}"),
    ):
        if any(call in text for text in [*texts, *helpers]):
            helpers.insert(0, _filled(helper))
    head = _filled(
        "head",
        libbpf="1.3" if any(group.many for group in groups) else "1.0",
        include=programs[0].machine["include"],
        places="\n".join([line for group in groups for line in _places(group)]),
        text_bytes=table("backend/libbpf")["text"]["text_bytes"],
    )
    return Written("\n\n".join([head, *helpers, *texts, _loaders(programs)]), ())


def _filled(text: str, /, **values: object) -> str:
    template: str = table("backend/libbpf")["text"][text]
    return Template(template.removeprefix("\n")).substitute(values)


def _groups(events: Sequence[Event], features: frozenset[str]) -> list[_Group]:
    alike: dict[tuple[object, ...], list[Event]] = {}
    for event in events:
        image = any(isinstance(_base(one, event), Image) for one in event.items)
        place = event.address if image else None  # the distance from there is in the program
        alike.setdefault((event.event, event.kind, event.path, event.items, place), []).append(
            event
        )
    groups: list[_Group] = []
    taken: set[str] = set()
    for number, listed in enumerate(alike.values()):
        name, count = listed[0].event, 1
        while name in taken:
            count += 1
            name = f"{listed[0].event}_{count}"
        taken.add(name)
        many = len(listed) > 1 and "uprobe_multi" in features
        section = listed[0].kind + ".multi" * many + ".s" * ("sleepable" in features)
        groups.append(_Group(name, number, tuple(listed), section, many))
    return groups


def _base(item: Item, event: Event) -> Value:
    return chain(item.fetch.value, event.word_bytes)[0]


def _places(group: _Group) -> Iterator[str]:
    for event in group.events:
        yield f"// on_{group.name}: {event.kind} of {event.path}"
        semaphore = "" if event.semaphore is None else f", semaphore at {event.semaphore:#x}"
        build = f", build ID {event.build_id}" if event.build_id else ""
        yield f"//     file offset {event.offset:#x}{semaphore}{build}"


def _loaders(programs: Sequence[_Program]) -> str:
    attached: list[str] = []
    linked: list[str] = []
    for group in [one.group for one in programs]:
        returns = group.events[0].kind == "uretprobe"
        for event in group.events[:1] if group.many else group.events:
            values = {
                "name": group.name,
                "link": len(linked),
                "path": event.path,
                "returns": "true" if returns else "false",
                "method": "Uretprobe" if returns else "Uprobe",
                "offset": f"{event.offset:#x}",
                "semaphore": f"{event.semaphore or 0:#x}",
                "count": len(group.events),
                "offsets": ", ".join([f"{one.offset:#x}" for one in group.events]),
                "semaphores": ", ".join([f"{one.semaphore or 0:#x}" for one in group.events]),
            }
            attached.append(_filled("attached" + "_to_many" * group.many, **values))
            linked.append(_filled("linked" + "_to_many" * group.many, **values))
    return _filled(
        "loaders",
        name=programs[0].group.name,
        cases="\n".join([one.case() for one in programs]),
        attached="\n".join(attached),
        linked="\n".join(linked),
    )


class _Member(Record):
    """A value of the structure: an item, or what is computed of the ``operands``."""

    item: Item
    operands: tuple[Item, ...] = ()


def _members(items: Sequence[Item]) -> Iterator[_Member]:
    at = 0
    while at < len(items):
        item = items[at]
        many = 0
        if item.computed is not None and (at == 0 or items[at - 1].text != item.text):
            many = _operands(item.computed[0])
        yield _Member(item, tuple(items[at : at + many]))
        at += many or 1


def _operands(value: Calculation | Fetched | float) -> int:
    # How many there are: they are numbered from 0.
    match value:
        case Calculation():
            return max([_operands(one) for one, _ in value.operands])
        case Fetched():
            return value.position + 1
        case _:
            return 0


class _Program:
    """The structure and the program of one group."""

    def __init__(self, group: _Group) -> None:
        self.group = group
        self._event = event = group.events[0]
        data = table("backend/libbpf")
        text, machines = data["text"], data["machines"]
        if event.point is not None:
            raise reject(
                "FC0514",
                "the format `bpf-c` cannot carry a probe of the kernel",
                help="use `--format bpftrace` or `fetchc trace`",
            )
        if event.machine not in machines:
            raise reject(
                "FC0514",
                f"the format `bpf-c` does not know the registers of {event.machine}",
                help="use `--format probe`",
            )
        if unwritable := _UNWRITABLE.search(event.path):
            raise reject(
                "FC0510",
                f"the path `{event.path}` holds {unwritable[0]!r}, which C would read otherwise",
                help="make a link with a plain name and give that",
            )
        self._members = tuple(_members(event.items))
        if len(self._members) > text["fault_bits"]:
            raise reject(
                "FC0514",
                f"the format `bpf-c` has {text['fault_bits']} fault bits, not {len(self._members)}",
                help="ask for fewer values an event",
            )
        self.machine: Mapping[str, Any] = machines[event.machine]
        self._arch = table(f"arch/{event.machine}")
        self._text_bytes: int = text["text_bytes"]
        # Variables with what the members of the context hold: clang would compute addresses of
        # members for several reads at once, and the verifier refuses a read by such an address.
        self._registers: dict[str, str] = {}
        self._names = {
            one.name: one.name + "_" * (one.name in text["reserved"]) for one in event.items
        }

    def text(self) -> str:
        """Its C."""
        items = list(enumerate(self._members))
        members = [
            f"    {self._declared(one)};  // bit {bit}: {self._comment(one.item)}"
            for bit, one in items
        ]
        # A text comes after its length, which says how much is read.
        items.sort(key=lambda one: one[1].item.length is not None)
        reads = [
            self._computed(bit, one) if one.operands else self._read(bit, one.item)
            for bit, one in items
        ]
        return _filled(
            "program",
            registers="".join(
                [f"    __u64 {name} = ctx->{one};\n" for name, one in self._registers.items()]
            ),
            name=self.group.name,
            number=self.group.number,
            section=self.group.section,
            context=self.machine["structure"],
            members="\n".join(members),
            reads="\n".join(reads),
        )

    def case(self) -> str:
        """What the loader for libbpf does with an event: it prints the values."""
        return _filled(
            "case",
            name=self.group.name,
            number=self.group.number,
            printed="\n".join([self._printed(one) for one in self._members]),
        )

    def _printed(self, member: _Member) -> str:
        kind, name, count = self._declaration(member)
        length = member.item.length
        if length is not None:
            return _filled("printed_counted", name=name, length=self._names[length])
        if kind == "char" and count:
            return f'        printf(" {name}=\\"%s\\"", e->{name});'
        decode = member.item.computed[1] if member.item.computed else member.item.decode
        conversion = _CONVERSIONS.get(kind, "%d")
        if decode.kind not in ("integer", "bool", "char", "enum") and kind in ("__u32", "__u64"):
            conversion = "%#llx" if kind == "__u64" else "%#x"
        if count:
            return _filled("printed_list", name=name, count=count, conversion=conversion)
        return f'        printf(" {name}={conversion}", e->{name});'

    def _declared(self, member: _Member) -> str:
        kind, name, count = self._declaration(member)
        return f"{kind} {name}[{count}]" if count else f"{kind} {name}"

    def _declaration(self, member: _Member) -> tuple[str, str, str]:
        # Type, name, and how many there are, empty of a single one.
        item = member.item
        name, store = self._names[item.name], item.fetch.store
        if member.operands:
            assert item.computed is not None
            return c_type(item.computed[0].result), name, ""
        if isinstance(item.fetch.value, Comm):
            return "char", name, str(COMM_BYTES)
        if item.length is not None:
            return "char", name, "TEXT_BYTES"
        match store:
            case Text():
                exact = self._exact(item)
                return "char", name, "TEXT_BYTES" if exact is None else str(exact + 1)
            case Array(element, count):
                if isinstance(element, Text | Bits):
                    what = "texts" if isinstance(element, Text) else "bit fields"
                    raise self._cannot(item, f"it has no lists of {what}", "ask for an element")
                return self._type(item, element), name, str(count)
            case Symbol():
                raise self._cannot(item, "it names addresses of the kernel")
            case Word() | Scalar() | Char() | Bits():
                return self._type(item, store), name, ""
            case _:
                assert_never(store)

    def _type(self, item: Item, store: Word | Scalar | Char | Bits) -> str:
        return "char" if isinstance(store, Char) else c_type(_number_of(item, store))

    def _exact(self, item: Item) -> int | None:
        # The bytes of an array of characters, which may have no NUL.
        limit = item.decode.limit
        return limit if limit is not None and limit < self._text_bytes else None

    def _read(self, bit: int, item: Item) -> str:
        store, name = item.fetch.store, f"e->{self._names[item.name]}"
        if isinstance(item.fetch.value, Comm):
            return f"    bpf_get_current_comm({name}, sizeof({name}));"
        address, loaded = self._address(item)
        if not loaded:
            if isinstance(store, Array | Text | Symbol):
                raise self._cannot(item, "it is in no memory")
            return f"    {name} = {self._number(item, store, address)};"
        if item.length is not None:
            length = [one.item.name for one in self._members].index(item.length)
            return _filled(
                "counted",
                name=name,
                bit=bit,
                address=address,
                length=f"e->{self._names[item.length]}",
                length_bit=length,
            )
        if isinstance(store, Bits):
            value = self._number(item, store, "word")
            size = store.container
            return _filled("bits", name=name, bit=bit, address=address, container=size, value=value)
        after = ""
        if isinstance(store, Text) and (exact := self._exact(item)) is not None:
            failed = f"read({name}, {exact}, {address})"
            after = f"\n    {name}[{exact}] = 0;"
        elif isinstance(store, Text):
            failed = f"read_text({name}, sizeof({name}), {address}) < 0"
        else:
            place = name if isinstance(store, Array) else f"&{name}"
            failed = f"read({place}, sizeof({name}), {address})"
        return f"    if ({failed})\n        e->faults |= 1ULL << {bit};{after}"

    def _comment(self, item: Item) -> str:
        text = " ".join(item.text.split())
        if item.length is not None:
            return f"{text}: as many bytes as `{self._names[item.length]}` says"
        if item.name in [one.length for one in self._event.items]:
            return f"bytes of {text}"
        if item.decode.kind == "float":
            return f"{text}: the bits of the number"
        return text

    def _address(self, item: Item) -> tuple[str, bool]:
        # What is at the end of the chain: an address to read at, or the value itself.
        base, loads = chain(item.fetch.value, self._event.word_bytes)
        if any(abs(load.offset) > _FARTHEST for load in loads[1:]):
            raise self._cannot(item, "it is too far behind a pointer")
        address = self._base(item, base)
        for load in loads[:-1]:
            address = f"pointer({_sum(address, load.offset)})"
        return (_sum(address, loads[-1].offset), True) if loads else (address, False)

    def _computed(self, bit: int, member: _Member) -> str:
        item = member.item
        known: dict[Item, tuple[Expression, str]] = {}
        assert item.computed is not None
        calculation = item.computed[0]

        def fetched(position: int, index: str = "") -> Expression:
            one = member.operands[position].replaced(name=item.name, computed=None)
            found = None if index else known.get(one)
            if found is None:
                found = self._operand(statements, one, index)
            if not index:
                known[one] = found
            if found[1]:
                statements.faults.append(found[1])
            return found[0]

        def no_floats() -> CompileError:
            return self._cannot(item, "BPF has no floating-point numbers")

        statements = Statements(fetched, no_floats)
        value = statements.converted(statements.computed(calculation), calculation.result).text
        name = f"e->{self._names[item.name]}"
        return _filled(
            "computed" if statements.faults else "computed_always",
            name=name,
            bit=bit,
            text=" ".join(item.text.split()),
            statements="\n".join([f"        {one}" for one in statements.lines]),
            faults=either(statements.faults),
            value=value,
        )

    def _operand(self, statements: Statements, item: Item, index: str) -> tuple[Expression, str]:
        # A variable with the number that is fetched, and one that says that it was not read.
        store, lines = item.fetch.store, statements.lines
        address, loaded = self._address(item)
        if not isinstance(store, Word | Scalar | Char | Bits) or (index and not loaded):
            raise self._cannot(item, "it is no number" if not index else "its list is in no memory")
        number = _number_of(item, store)
        kind, name = c_type(number), statements.named("operand")
        if not loaded:
            lines.append(f"{kind} {name} = {self._number(item, store, address)};")
            return Expression(name, number), ""
        if index:
            address = f"{address} + {index} * sizeof({name})"
        unread = statements.named("unread")
        if isinstance(store, Bits):
            word = statements.named("word")
            lines.append(f"__u{store.container} {word};")
            lines.append(f"bool {unread} = read(&{word}, sizeof({word}), {address});")
            lines.append(f"{kind} {name} = {self._number(item, store, word)};")
        else:
            lines.append(f"{kind} {name};")
            lines.append(f"bool {unread} = read(&{name}, sizeof({name}), {address});")
        return Expression(name, number), unread

    def _number(self, item: Item, store: Word | Scalar | Char | Bits, word: str) -> str:
        # The low bits of a word.
        if not isinstance(store, Bits):
            type = self._type(item, store)
            return word if type in ("__u64", "__s64") else f"({type}){word}"
        above = 64 - store.width - store.offset
        sign = "__s64" if item.decode.signed else "__u64"
        return f"({sign})((__u64){word} << {above}) >> {64 - store.width}"

    def _base(self, item: Item, base: Value) -> str:
        match base:
            case Register(name):
                return self._register(item, name)
            case StackPointer() | StackEntry():
                return self._register(item, self._arch["stack_pointer"]["register"])
            case ReturnValue():
                return self._register(item, self._arch["result"]["register"])
            case Image(offset):
                if self._event.kind == "uretprobe":
                    why = "where the file is loaded is not known when a function returns"
                    raise self._cannot(item, why, "probe the entry")
                counter = self._register(item, self._arch["pt_regs"]["program_counter"])
                return _sum(counter, offset - self._event.offset)
            case Immediate(value) | Absolute(value):
                return f"{value & (1 << 64) - 1:#x}ULL"
            case (
                Comm() | KernelValue() | Deref() | ElementAddress() | Cursor() | Walk() | Contents()
            ):
                raise self._cannot(item, "the kernel alone has it")
            case _:
                assert_never(base)

    def _register(self, item: Item, name: str) -> str:
        if name not in self.machine["registers"]:
            raise self._cannot(item, f"it has no register `{name}`")
        member: str = self.machine["registers"][name]
        variable = member if member.isidentifier() else name
        self._registers[variable] = member
        return variable

    def _cannot(
        self, item: Item, why: str, help: str = "leave it out, or use `fetchc trace`"
    ) -> CompileError:
        what = f"the format `bpf-c` cannot carry `{item.name}`: {why}"
        return reject("FC0514", what, help=help)


def _number_of(item: Item, store: Word | Scalar | Char | Bits) -> Number:
    match store:
        case Word():
            return Number(64, False)
        case Scalar(kind, bits):
            return Number(bits, kind == "s")
        case Char():
            return Number(8, False)
        case Bits(_, _, container):
            return Number(container, item.decode.signed)
        case _:
            assert_never(store)


def _sum(base: str, offset: int) -> str:
    return f"{base} {'-' if offset < 0 else '+'} {abs(offset)}" if offset else base
