"""The values of a structure in C for a BPF program: how they are declared, read and printed.

See :mod:`fetchc.emit.bpf_c`.
"""

from __future__ import annotations

from string import Template

from fetchc.diag.diagnostic import reject
from fetchc.emit.c_calculations import Expression, Statements, c_type, either
from fetchc.emit.c_steps import StepWriter, indented
from fetchc.emit.output_formats import total
from fetchc.ir.arithmetic import TRUTH, Calculation, Fetched, Number
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
    ThreadPointer,
    Walk,
    Word,
    chain,
)
from fetchc.ir.step_lowering import filter_steps
from fetchc.ir.step_support import THREAD_POINTER
from fetchc.ir.steps import COMM_BYTES, LoadBias, ReadCursor, ReadRegister, ReadTask, Require
from fetchc.record import Record, assert_never
from fetchc.target.machines import table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from fetchc.diag.diagnostic import CompileError
    from fetchc.emit.output_formats import Event, Item
    from fetchc.ir.fetch import Value
    from fetchc.ir.steps import Step

__all__ = ["TEXT_UNITS", "Member", "Values", "filled", "free_name"]

TEXT_UNITS = "TEXT_UNITS"
"""A macro of the program: the units of a string in UTF-16."""

_FARTHEST = 1 << 54  # from NOWHERE, no program's memory is so near


# How the loader prints a member; the others are promoted to an int.
_CONVERSIONS = {"__u32": "%u", "__u64": "%llu", "__s64": "%lld", "char": "%c"}


def filled(text: str, /, **values: object) -> str:
    """A string of targets/backend/libbpf.toml with these values."""
    template: str = table("backend/libbpf")["text"][text]
    return Template(template.removeprefix("\n")).substitute(values)


def free_name(name: str, taken: set[str]) -> str:
    """A name that is not ``taken``, which has it then."""
    while name in taken:
        name += "_"
    taken.add(name)
    return name


class Member(Record):
    """A value of the structure: an item, or what is computed of the ``operands``."""

    item: Item
    operands: tuple[Item, ...] = ()


def _members(items: Sequence[Item]) -> Iterator[Member]:
    at = 0
    while at < len(items):
        item = _with_bits(items[at])
        many = 0
        if item.computed is not None and (at == 0 or items[at - 1].text != item.text):
            many = _operands(item.computed[0])
        yield Member(item, tuple(items[at : at + many]))
        at += many or 1


def _with_bits(item: Item) -> Item:
    # An element of floating-point numbers is selected as its bits: nothing computes with it.
    if item.computed is None or item.computed[0].operator != "[]":
        return item
    calculation, decode = item.computed
    index, (first, number) = calculation.operands
    if not number.floating:
        return item
    word = Number(number.bits, False)
    bits = calculation.replaced(operands=(index, (first, word)), number=word, result=word)
    return item.replaced(computed=(bits, decode))


def _operands(value: Calculation | Fetched | float) -> int:
    # How many there are: they are numbered from 0.
    match value:
        case Calculation():
            return max([_operands(one) for one, _ in value.operands])
        case Fetched():
            return value.position + 1
        case _:
            return 0


class Values:
    """The members of the structure that the C calls ``holder``: those of the event, or of an entry.

    ``places`` are the variables with the addresses that the values of an entry begin at.
    """

    def __init__(
        self, event: Event, items: Sequence[Item], holder: str, places: Sequence[str] = ()
    ) -> None:
        text = table("backend/libbpf")["text"]
        self._event = event
        self._holder = holder
        self._places = places
        self.places_used: set[str] = set()
        self.members = tuple(_members(items))
        if len(self.members) > text["fault_bits"]:
            raise reject(
                "FC0514",
                f"the format `bpf-c` has {text['fault_bits']} fault bits, not {len(self.members)}",
                help="ask for fewer values an event",
            )
        self.machine: Mapping[str, Any] = table("backend/libbpf")["machines"][event.machine]
        self._arch = table(f"arch/{event.machine}")
        self._text_bytes: int = text["text_bytes"]
        # Variables with what the members of the context hold: clang would compute addresses of
        # members for several reads at once, and the verifier refuses a read by such an address.
        self.registers: dict[str, str] = {}
        # Variables with addresses of elements, of the member before and of this one; and how many
        # there are. The verifier follows the program for each way that those it needs later have
        # come about: it needs none for long.
        self._before: dict[ElementAddress, str] = {}
        self._elements: dict[ElementAddress, str] = {}
        self._count = 0
        self._lines: list[str] = []
        taken = set(text["reserved"])
        listed = dict.fromkeys([one.name for one in items])
        self.names = {name: free_name(name, taken) for name in listed}
        self._lengths = [one.length for one in items]

    def declared(self, bit: int) -> str:
        """The declaration of that member."""
        member = self.members[bit]
        kind, name, count = self._declaration(member)
        declared = f"{kind} {name}[{count}]" if count else f"{kind} {name}"
        return f"    {declared};  // bit {bit}: {self._comment(member.item)}"

    def declared_registers(self) -> str:
        """The declarations of the variables with registers."""
        listed = self.registers.items()
        declared = [f"    __u64 {name} = ctx->{member};\n" for name, member in listed]
        return "".join(declared) or "    (void)ctx;\n"

    def size(self) -> int:
        """The bytes of all members together."""
        total = 0
        for member in self.members:
            kind, _, count = self._declaration(member)
            each = 1 if kind in ("char", "bool") else int(kind[3:]) // 8
            counts = {"": 1, "TEXT_BYTES": self._text_bytes, TEXT_UNITS: self._text_bytes // 2}
            total += each * (counts[count] if count in counts else int(count))
        return total

    def reads(self, bits: Sequence[int]) -> list[str]:
        """The statements that read those members."""
        self._lines = []
        for bit in self._ordered(bits):
            member = self.members[bit]
            self._before, self._elements = self._elements, {}
            read = self._computed(bit, member) if member.operands else self._read(bit, member.item)
            self._lines.append(read)
        return self._lines

    def _ordered(self, bits: Sequence[int]) -> Iterator[int]:
        # A string comes after its length, which says how much is read.
        numbers = {self.members[bit].item.name: bit for bit in bits}
        strings = {self.members[bit].item.length: bit for bit in bits}
        for bit in bits:
            length, name = self.members[bit].item.length, self.members[bit].item.name
            if length is None or length not in numbers:
                yield bit
            if length is None and name in strings:
                yield strings[name]

    def printed(self, bit: int) -> str:
        """The statements of the loader that print that member."""
        member, holder = self.members[bit], self._holder
        kind, name, count = self._declaration(member)
        length = member.item.length
        if length is not None:
            template = "printed_units" if kind == "__u16" else "printed_counted"
            return filled(template, holder=holder, name=name, length=self.names[length])
        if kind == "char" and count:
            return f'        printf(" {name}=\\"%s\\"", {holder}->{name});'
        decode = member.item.computed[1] if member.item.computed else member.item.decode
        conversion = _CONVERSIONS.get(kind, "%d")
        if decode.kind not in ("integer", "bool", "char", "enum") and kind in ("__u32", "__u64"):
            conversion = "%#llx" if kind == "__u64" else "%#x"
        if count:
            return filled(
                "printed_list", holder=holder, name=name, count=count, conversion=conversion
            )
        return f'        printf(" {name}={conversion}", {holder}->{name});'

    def _declaration(self, member: Member) -> tuple[str, str, str]:
        # Type, name, and how many there are, empty of a single one.
        item = member.item
        name, store = self.names[item.name], item.fetch.store
        if member.operands:
            assert item.computed is not None
            return c_type(item.computed[0].result), name, ""
        if isinstance(item.fetch.value, Comm):
            return "char", name, str(COMM_BYTES)
        if item.length is not None:
            return (
                ("char", name, "TEXT_BYTES") if item.counts_bytes else ("__u16", name, TEXT_UNITS)
            )
        match store:
            case Text():
                exact = self._exact(item)
                return "char", name, "TEXT_BYTES" if exact is None else str(exact + 1)
            case Array(element, count):
                if isinstance(element, Text | Bits):
                    what = "strings" if isinstance(element, Text) else "bit fields"
                    help = "ask for an element, or for `list(…)` of the array"
                    raise self._cannot(item, f"it has no lists of {what}", help)
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
        store, name = item.fetch.store, f"{self._holder}->{self.names[item.name]}"
        if isinstance(item.fetch.value, Comm):
            return f"    bpf_get_current_comm({name}, sizeof({name}));"
        address, loaded = self._address(item)
        if not loaded:
            if isinstance(store, Array | Text | Symbol):
                raise self._cannot(item, "it is in no memory")
            number = self._number(item, store, address)
            if isinstance(item.fetch.value, ElementAddress):
                return filled(
                    "address",
                    holder=self._holder,
                    name=name,
                    bit=bit,
                    address=address,
                    value=number,
                )
            return f"    {name} = {number};"
        if item.length is not None:
            bit_of_length = [one.item.name for one in self.members].index(item.length)
            length = f"{self._holder}->{self.names[item.length]}"
            return filled(
                "counted",
                holder=self._holder,
                name=name,
                bit=bit,
                address=address,
                length=length if item.counts_bytes else f"2 * (__u64){length}",
                length_bit=bit_of_length,
            )
        if isinstance(store, Bits):
            value = self._number(item, store, "word")
            size = store.container
            return filled(
                "bits",
                holder=self._holder,
                name=name,
                bit=bit,
                address=address,
                container=size,
                value=value,
            )
        after = ""
        if isinstance(store, Text) and (exact := self._exact(item)) is not None:
            failed = f"read({name}, {exact}, {address})"
            after = f"\n    {name}[{exact}] = 0;"
        elif isinstance(store, Text):
            failed = f"read_text({name}, sizeof({name}), {address}) < 0"
        else:
            place = name if isinstance(store, Array) else f"&{name}"
            failed = f"read({place}, sizeof({name}), {address})"
        return f"    if ({failed})\n        {self._holder}->faults |= 1ULL << {bit};{after}"

    def _comment(self, item: Item) -> str:
        text = " ".join(item.text.split())
        if item.length is not None:
            units = "bytes" if item.counts_bytes else "units of UTF-16"
            return f"{text}: as many {units} as `{self.names[item.length]}` says"
        if item.name in self._lengths:
            return f"length of {text}"
        decode = item.decode if item.computed is None else item.computed[1]
        if decode.kind == "float":
            return f"{text}: the bits of the number"
        return text

    def _address(self, item: Item) -> tuple[str, bool]:
        # What is at the end of the chain: an address to read at, or the value itself.
        base, loads = chain(item.fetch.value, self._event.word_bytes)
        after = loads[not isinstance(base, ElementAddress) :]
        if any(abs(load.offset) > _FARTHEST for load in after):
            raise self._cannot(item, "it is too far behind a pointer")
        address = self.base(item, base)
        for load in loads[:-1]:
            address = f"pointer({total(address, load.offset)})"
        return (total(address, loads[-1].offset), True) if loads else (address, False)

    def condition(self, items: Sequence[Item]) -> str:
        """The statements that end the program where a condition is 0, or is not known."""
        item, *parts = items
        store = item.fetch.store
        if item.computed is not None:
            calculation = item.computed[0]
        elif isinstance(item.fetch.value, Walk):
            help = "use `fetchc trace --filter`"
            raise self._cannot(item, "a condition walks no container", help)
        elif (
            parts
            or item.decode.kind == "float"
            or not isinstance(store, Word | Scalar | Char | Bits)
        ):
            raise self._cannot(item, "a condition is a whole number", "compare one: `n > 3`")
        else:
            number = _number_of(item, store)
            calculation = Calculation("!=", ((Fetched(0), number), (0, number)), number, "c", TRUTH)
        self._lines = []
        statements, value = self._calculated(item, calculation, items)
        tested = filled(
            "condition",
            text=" ".join(item.text.split()),
            statements="\n".join(indented(indented(statements.lines))),
            missed=either([*statements.faults, f"!({value})"]),
        )
        return "\n".join([*self._lines, tested])

    def _computed(self, bit: int, member: Member) -> str:
        item = member.item
        assert item.computed is not None
        statements, value = self._calculated(item, item.computed[0], member.operands)
        return filled(
            "computed" if statements.faults else "computed_always",
            holder=self._holder,
            name=f"{self._holder}->{self.names[item.name]}",
            bit=bit,
            text=" ".join(item.text.split()),
            statements="\n".join(indented(indented(statements.lines))),
            faults=either(statements.faults),
            value=value,
        )

    def _calculated(
        self, item: Item, calculation: Calculation, operands: Sequence[Item]
    ) -> tuple[Statements, str]:
        # The statements that compute it, and its expression.
        known: dict[Item, tuple[Expression, str]] = {}

        def fetched(position: int, index: str = "") -> Expression:
            one = operands[position].replaced(name=item.name, computed=None)
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
        found = statements.converted(statements.computed(calculation), calculation.result)
        return statements, found.text

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
            missing = isinstance(item.fetch.value, ElementAddress)
            return Expression(name, number), f"{address} == NOWHERE" if missing else ""
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

    def base(self, item: Item, base: Value) -> str:
        """The expression of what a chain of loads begins at; ``item`` is the value it is for."""
        match base:
            case ElementAddress():
                return self._element(item, base)
            case Cursor(number) if number < len(self._places):
                self.places_used.add(self._places[number])
                return self._places[number]
            case _ if self._places and not isinstance(base, Immediate | Absolute):
                raise self._cannot(item, "it is not in the entry of the container")
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
                return total(counter, offset - self._event.offset)
            case Immediate(value) | Absolute(value):
                return f"{value & (1 << 64) - 1:#x}ULL"
            case ThreadPointer(word):
                distance = "" if word is None else f" + distance({self.base(item, word)})"
                return f"thread_storage(){distance}"
            case Comm() | KernelValue() | Deref() | Cursor() | Walk() | Contents():
                raise self._cannot(item, "the kernel alone has it")
            case _:
                assert_never(base)

    def _element(self, item: Item, element: ElementAddress) -> str:
        # The variable with the address; NOWHERE where the element is out of range.
        known = self._elements.get(element) or self._before.get(element)
        if known is not None:
            self._elements[element] = known
            return known
        registers = self._arch["stack_pointer"]["register"], self._arch["result"]["register"]
        *steps, last = filter_steps(element.address, *registers).steps
        assert isinstance(last, Require)
        writer = StepWriter(steps, (last.value,), lambda step: self.start(item, step))
        lines = writer.lines(0, len(steps))
        self._count += 1
        name = self._elements[element] = f"element{self._count}"
        self._lines.append(
            filled(
                "element" if lines else "element_always",
                name=name,
                text=" ".join(item.text.split()),
                statements="\n".join(indented(indented(lines))),
                address=writer.text(last.value),
            )
        )
        return name

    def start(self, item: Item, step: Step) -> str:
        """The expression of what a step begins at; ``item`` is the value it is for."""
        match step:
            case ReadCursor(number=number):
                return self.base(item, Cursor(number))
            case ReadRegister(name=name):
                return self.base(item, Register(name))
            case LoadBias():
                return self.base(item, Image(0))
            case ReadTask(name=name) if name == THREAD_POINTER:
                return self.base(item, ThreadPointer())
            case _:
                raise self._cannot(item, "the kernel alone has it")

    def _register(self, item: Item, name: str) -> str:
        if name not in self.machine["registers"]:
            raise self._cannot(item, f"it has no register `{name}`")
        member: str = self.machine["registers"][name]
        variable = member if member.isidentifier() else name
        self.registers[variable] = member
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
