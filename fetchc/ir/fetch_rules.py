"""Checks a fetch against one kernel's rules: what it would refuse, or silently change.

The kernel compiles a fetch-arg into at most sixteen instructions, checks little, and
reads numbers more freely than it stores them. Here the same rules are applied to the
tree, before any text exists that could be taken for another (``targets/kernel`` has the
facts). Where this is stricter than the kernel, tests/live/test_kernel_rules.py lists the
rule with its reason.
"""

from __future__ import annotations

from fetchc.diag.diagnostic import Diagnostic
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
    Fetch,
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
    body,
    is_address,
)
from fetchc.record import assert_never
from fetchc.target.kernel_versions import dotted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container

    from fetchc.ir.fetch import Store, Value
    from fetchc.target.kernel_versions import Kernel, Rule
    from fetchc.target.machines import Architecture

    Finding = tuple[Diagnostic, Value | Store | None]

__all__ = [
    "PROBES",
    "base_name",
    "findings",
    "illegal",
    "instructions",
    "misread",
    "of_program",
    "verify",
]

# ------------------------------------------------------------------------------
# What a kernel takes of values and stores in which probe: rules of ``targets/kernel``, applied.

# What a probe of each kind is called.
PROBES = {
    "uprobe": "an entry probe of a program",
    "uretprobe": "a return probe of a program",
    "kprobe": "an entry probe of the kernel",
    "kprobe_inside": "a probe inside a function of the kernel",
    "kretprobe": "a return probe of the kernel",
    "fprobe": "a function entry probe",
    "fexit": "a function exit probe",
    "tprobe": "a tracepoint probe",
    "eprobe": "an event probe",
}
_OF_PROGRAMS = ("uprobe", "uretprobe")
_AT_RETURN = ("kretprobe", "fexit")  # of the kernel: arguments are saved at the entry


def of_program(kind: str) -> bool:
    """Whether probes of ``kind`` are put into programs, not into the kernel."""
    return kind in _OF_PROGRAMS


def illegal(
    fetch: Fetch, chain: list[Value], kernel: Kernel, kind: str, tolerant: bool
) -> list[Finding]:
    """The steps of ``fetch``, whose values are ``chain``, that a probe of ``kind`` cannot have.

    ``kernel`` has the rules; ``tolerant`` allows what it accepts although nothing needs it.
    """
    problems: list[Finding] = []
    bases: dict[str, Value] = {}  # in order, each once
    for value in chain:
        bases.setdefault(base_name(value), value)
    rules: list[tuple[Rule, Value | Store]] = [
        (kernel.base(name), value) for name, value in bases.items()
    ]
    stores = [kernel.store(name) for name in _store_names(fetch.store)]
    for rule, part in rules + [(rule, fetch.store) for rule in stores]:
        if kind not in rule.kinds and not (tolerant and _tolerated(rule, kind, kernel)):
            problems.append((_wrong_probe(rule, kind), part))
        elif kernel.version < rule.begins(kind):
            problems.append((_too_new(rule, kernel, kind), part))
        elif rule.mangled is not None and rule.mangled[0] <= kernel.version <= rule.mangled[1]:
            problems.append((_mangled(rule, kernel), part))
    outermost = rules[0][0]
    own = chain[0].loads if isinstance(chain[0], KernelValue) else 0
    if own or outermost.name in ("absolute", "image", "symbol"):
        outermost = kernel.base("dereference")
    for rule in stores:
        if kind in _AT_RETURN and outermost.name in rule.not_at_return:
            problems.append((_wrong_base(rule, outermost), fetch.store))
            break
        typed = not of_program(kind) and _by_type(rule, outermost, kernel)
        if outermost.name in rule.on or typed:
            continue
        problems.append((_wrong_base(rule, outermost), fetch.store))
        break  # an array and its elements would say the same
    return problems


def _by_type(rule: Rule, base: Rule, kernel: Kernel) -> bool:
    # The kernel's own types say whether the store fits the value.
    since = rule.by_type
    return base.name in rule.typed and since is not None and kernel.version >= since


def _tolerated(rule: Rule, kind: str, kernel: Kernel) -> bool:
    return kind in rule.tolerated and (rule.until is None or kernel.version < rule.until)


def base_name(value: Value) -> str:
    """The key of ``value`` among the bases of ``targets/kernel``."""
    match value:
        case Register():
            return "register"
        case StackPointer():
            return "stack_pointer"
        case StackEntry():
            return "stack_entry"
        case ReturnValue():
            return "return_value"
        case Comm():
            return "comm"
        case Immediate():
            return "immediate"
        case KernelValue(rule):
            return rule
        case Absolute() | Deref(Absolute()):
            return "absolute"
        case Image() | Deref(Image()):
            return "image"
        case Deref(KernelValue("symbol", _, 0)):
            return "symbol"
        case Deref(user=user):
            return "user_dereference" if user else "dereference"
        case Cursor() | Walk() | Contents() | ElementAddress() | ThreadPointer():
            raise AssertionError(f"no fetch-arg: {value!r}")
        case _:
            assert_never(value)


def _store_names(store: Store) -> tuple[str, ...]:
    match store:
        case Word():
            return ("word",)
        case Scalar(kind, _):
            return ("hexadecimal" if kind == "x" else "decimal",)
        case Char():
            return ("char",)
        case Bits():
            return ("bit_field",)
        case Text(user):
            return ("user_text" if user else "text",)
        case Symbol(text):
            return ("symbol_text" if text else "symbol",)
        case Array(Text() as element, _):
            return ("text_array", *_store_names(element))
        case Array(element, _):
            return ("array", *_store_names(element))
        case _:
            assert_never(store)


def _wrong_probe(rule: Rule, kind: str) -> Diagnostic:
    program = of_program(kind)
    others = [PROBES[other] for other in rule.kinds if of_program(other) == program]
    if others:
        plain = [each.replace(" of a program", "").replace(" of the kernel", "") for each in others]
        note = f"it belongs to {' or '.join(plain)}"
    else:
        note = "it names kernel addresses" if program else "it belongs to probes of programs"
    what = f"`{rule.written}` does not work in {PROBES[kind]}"
    return _of_programs(Diagnostic("FC0507", what, notes=(note,)), rule, kind)


def _too_new(rule: Rule, kernel: Kernel, kind: str) -> Diagnostic:
    where = "a uprobe" if of_program(kind) else PROBES[kind]
    found = Diagnostic(
        "FC0506",
        f"Linux {kernel.name} does not know `{rule.written}` in {where}",
        notes=(f"Linux {dotted(rule.begins(kind))} was the first",),
    )
    return _of_programs(found, rule, kind)


def _of_programs(found: Diagnostic, rule: Rule, kind: str) -> Diagnostic:
    # What definitions lack, and eBPF programs have.
    if kind not in rule.programs:
        return found
    help = "`fetchc trace` fetches it with an eBPF program"
    return found.replaced(reason="not in definitions", help=help)


def _mangled(rule: Rule, kernel: Kernel) -> Diagnostic:
    assert rule.mangled is not None
    first, last = map(dotted, rule.mangled)
    return Diagnostic(
        "FC0507",
        f"Linux {kernel.name} reads one byte of the pointer that `{rule.written}` is",
        notes=(f"so do all from {first} to {last}",),
        help="probe the function that makes the event, or its tracepoint",
        reason="mangled",
    )


def _wrong_base(rule: Rule, base: Rule) -> Diagnostic:
    memory = "dereference" in rule.on and "register" not in rule.on
    return Diagnostic(
        "FC0507",
        f"`{base.written}` cannot be fetched as `{rule.written}`",
        notes=("the kernel takes it from memory only",) if memory else (),
    )


_WIDTHS = (8, 16, 32, 64)


def verify(
    fetch: Fetch,
    kernel: Kernel,
    kind: str = "uprobe",
    registers: Container[str] | None = None,
) -> tuple[Diagnostic, ...]:
    """Problems of ``fetch`` in a probe of ``kind`` (``uprobe``, ``uretprobe``); none is ().

    ``registers`` are the names the kernel knows on the machine at hand; None leaves them
    to the caller. Each cause gives one diagnostic; none carries a place in the
    argument's text, which a fetch knows nothing of.
    """
    return tuple([problem for problem, _ in findings(fetch, kernel, kind, registers)])


def findings(
    fetch: Fetch,
    kernel: Kernel,
    kind: str = "uprobe",
    registers: Container[str] | None = None,
    tolerant: bool = False,
    written: int | None = None,
) -> list[Finding]:
    """As :func:`verify`, each problem with the node that it is about (None: the whole fetch).

    ``tolerant`` allows what a kernel takes without there being a use for it: those rules of
    ``targets/kernel`` that say ``tolerated``. ``written`` is the length in bytes of the text
    that the fetch was read from, None for that of its own notation.
    """
    chain = _chain(fetch.value)
    problems = _shape(chain)
    if problems:
        return problems  # no text, and no sense in counting
    problems = _register(chain[-1], registers)
    problems += _numbers(chain, kernel)
    problems += [] if of_program(kind) else _kernel_numbers(chain[-1], kernel)
    problems += _store(fetch.store, kernel)
    problems += illegal(fetch, chain, kernel, kind, tolerant)
    whole = _depth(fetch, chain, kernel) or _length(fetch, kernel, written)
    return problems + [(problem, None) for problem in whole]


def instructions(fetch: Fetch, kernel: Kernel) -> int:
    """Instructions the kernel needs for ``fetch``, its closing one not counted."""
    costs = kernel.costs
    chain = _chain(fetch.value)
    own = chain[-1].loads if isinstance(chain[-1], KernelValue) else 0
    if isinstance(chain[-1], KernelValue) and is_address(chain[-1]):
        own = 1  # the kernel keeps the symbol beside the address that it loads from
    count = costs.base + costs.dereference * (len(chain) - 1 + own)
    if not isinstance(fetch.value, Deref) and not own:
        count += costs.raw_store  # the last load of a chain becomes the store itself
    store = fetch.store
    if isinstance(store, Array):
        count += costs.array
        if isinstance(store.element, Text):
            count += costs.text_array
        store = store.element
    if isinstance(store, Bits):
        count += costs.bit_field
    return count


def _chain(value: Value) -> list[Value]:
    # Outermost first. A loop, since a chain may be deeper than the stack of Python.
    chain = [value]
    while isinstance(value, Deref):
        value = value.base
        chain.append(value)
    return chain


def _shape(chain: list[Value]) -> list[Finding]:
    # What has no text at all, or one that means something else.
    base = chain[-1]
    if isinstance(base, ElementAddress | ThreadPointer):
        code, what = "FC0314", "a fetch-arg cannot compute the place of an element"
        help = "`fetchc trace` fetches it with an eBPF program"
        if isinstance(base, ThreadPointer):
            code, what = "FC0403", "a fetch-arg cannot read a thread-local variable"
            help = "`fetchc trace` and `--format bpf-c` read it by an eBPF program"
        found = Diagnostic(code, what, help=help, reason="not in definitions")
        return [(found, base)]
    if is_address(base):
        if len(chain) == 1:
            return [(_address_itself(), base)]
        load = chain[-2]
        if isinstance(load, Deref) and load.user:
            return [(_user_address(), load)]
    if isinstance(base, Comm) and len(chain) > 1:
        what = "`$comm` is a string: there is nothing to dereference"
        return [(Diagnostic("FC0507", what), base)]
    return []


def _kernel_numbers(base: Value, kernel: Kernel) -> list[Finding]:
    # The kernel bounds by its own stack what it takes as the number of a word or an argument.
    most = kernel.stack_words
    if isinstance(base, StackEntry) and base.index > most:
        what = f"`$stack{base.index}` is beyond the kernel's stack"
        return [(Diagnostic("FC0507", what, notes=(f"it takes numbers up to {most}",)), base)]
    if isinstance(base, KernelValue) and base.rule.startswith("argument"):
        if 1 <= int(base.text.removeprefix("$arg")) <= most:
            return []
        note = f"arguments have the numbers from 1 on, {most} at most"
        return [(Diagnostic("FC0507", f"there is no `{base.text}`", notes=(note,)), base)]
    return []


def _register(base: Value, registers: Container[str] | None) -> list[Finding]:
    if isinstance(base, Register) and registers is not None and base.name not in registers:
        return [(Diagnostic("FC0512", f"the kernel has no register `%{base.name}`"), base)]
    return []


def _address_itself() -> Diagnostic:
    return Diagnostic(
        "FC0405",
        "an address of the file is not a value the kernel can fetch",
        notes=("`@` loads what the address holds",),
    )


def _user_address() -> Diagnostic:
    return Diagnostic("FC0507", "`+u` does not apply to `@`, which reads user memory in any case")


def _numbers(chain: list[Value], kernel: Kernel) -> list[Finding]:
    problems: list[Finding] = []
    low, high = -(1 << kernel.offset_bits - 1), (1 << kernel.offset_bits - 1) - 1
    for value in chain:
        found: list[Diagnostic] = []
        match value:
            case Deref(Absolute(address), offset):
                found = _range("address", address + offset, 0, (1 << 64) - 1)
            case Deref(Image(start), offset):
                found = _range("offset", start + offset, -(1 << 63), (1 << 63) - 1)
            case Deref(_, offset):
                found = _range("offset", offset, low, high)
            case StackEntry(index):
                found = _range("stack index", index, 0, (1 << 32) - 1)
            case Immediate(constant):
                found = _range("constant", constant, -(1 << 63), (1 << 64) - 1)
            case Register() | StackPointer() | ReturnValue() | Comm() | Absolute() | Image():
                pass
            case KernelValue() | Cursor() | Walk() | Contents():
                pass
            case ElementAddress() | ThreadPointer():
                pass
            case _:
                assert_never(value)
        problems += [(problem, value) for problem in found]
    return problems


def _range(what: str, value: int, low: int, high: int) -> list[Diagnostic]:
    if low <= value <= high:
        return []
    note = f"it keeps {low} to {high} and may silently cut off the rest"
    return [Diagnostic("FC0511", f"{what} {value} is out of the kernel's range", notes=(note,))]


def _store(store: Store, kernel: Kernel) -> list[Finding]:
    match store:
        case Array(element, count):
            problems = _store(element, kernel)
            limit = kernel.array_elements  # None: the version has no arrays, said elsewhere
            if limit is not None and not 1 <= count <= limit:
                problems.append((_array_count(count, limit), store))
            return problems
        case Scalar(kind, bits):
            if kind not in ("u", "s", "x") or bits not in _WIDTHS:
                what = f"the kernel has no type `{kind}{bits}`"
                return [(Diagnostic("FC0507", what), store)]
        case Bits(width, offset, container):
            if container not in _WIDTHS:
                what = f"a bit field's container has 8, 16, 32 or 64 bits, not {container}"
                return [(Diagnostic("FC0507", what), store)]
            if width < 1 or offset < 0 or width + offset > container:
                what = f"bits {offset} to {offset + width - 1} are outside a {container}-bit value"
                return [(Diagnostic("FC0507", what), store)]
        case Word() | Char() | Text() | Symbol():
            pass
        case _:
            assert_never(store)
    return []


def _array_count(count: int, limit: int) -> Diagnostic:
    return Diagnostic(
        "FC0505",
        f"an array of {count} elements cannot be fetched",
        notes=(f"Linux takes 1 to {limit} elements an argument",),
        help=f"split it into arguments of up to {limit} elements" if count > limit else None,
        reason="array count",
    )


def _depth(fetch: Fetch, chain: list[Value], kernel: Kernel) -> list[Diagnostic]:
    written = sum(1 for value in chain if base_name(value).endswith("dereference"))
    if kernel.nesting is not None and written > kernel.nesting:
        return [_too_deep(f"{kernel.nesting} levels", written - kernel.nesting, kernel)]
    if kernel.instructions is not None:
        excess = instructions(fetch, kernel) - kernel.instructions
        if excess > 0:
            return [_too_deep(f"{written - excess} for this value", excess, kernel)]
    return []


def _too_deep(limit: str, excess: int, kernel: Kernel) -> Diagnostic:
    return Diagnostic(
        "FC0502",
        "too many dereferences",
        notes=(f"Linux {kernel.name} follows {limit}, {excess} fewer than this takes",),
        help="probe a place where a pointer further down the chain is in a variable",
        reason="fetch-arg too long",
    )


def _length(fetch: Fetch, kernel: Kernel, written: int | None) -> list[Diagnostic]:
    length = len(body(fetch)) if written is None else written
    if length <= kernel.body_bytes:
        return []
    notes = [f"Linux {kernel.name} takes {kernel.body_bytes} bytes"]
    fits = ""
    for part in reversed(_chain(fetch.value)):
        if not is_address(part):
            longer = body(Fetch(part, Word()))
            if len(longer) > kernel.body_bytes:
                break
            fits = longer
    if fits:
        notes.append(f"the longest part of the chain that fits is `{fits}`")
    return [
        Diagnostic(
            "FC0501",
            f"the fetch-arg takes {length} bytes",
            notes=tuple(notes),
            help="probe a place where a pointer further down the chain is in a variable",
            reason="fetch-arg too long",
        )
    ]


# ------------------------------------------------------------------------------
# A program with words of another size than its kernel's: what of a fetch is still right.
#
# Each inner load of a fetch reads a long of the kernel, and so does ``$stackN`` (kernel,
# kernel/trace/trace_probe_tmpl.h and trace_uprobe.c; measured with a 32-bit program on 6.18).


def misread(fetch: Fetch, machine: Architecture, kernel: Kernel) -> Diagnostic | None:
    """What ``kernel`` gets wrong in a program of ``machine`` for the size of words, else None."""
    if machine.word_bytes == kernel.word_bytes:
        return None
    if machine.word_bytes > kernel.word_bytes:
        return Diagnostic(
            "FC0506",
            f"a {8 * kernel.word_bytes}-bit kernel runs no programs for {machine.name}",
            help=f"name the kernel that does: `--kernel {kernel.name}`",
        )
    bits = 8 * machine.word_bytes
    narrow = f"a {bits}-bit kernel, if it runs the program: `--kernel {kernel.name}/{bits}`"
    if not machine.on_wide_kernel:
        return Diagnostic(
            "FC0206",
            f"a {8 * kernel.word_bytes}-bit kernel takes no probes of programs for {machine.name}",
            help=f"name {narrow}",
        )
    value, store = fetch.value, fetch.store
    steps = isinstance(value, Deref) and isinstance(value.base, Deref)
    texts = isinstance(store, Array) and isinstance(store.element, Text)
    if steps or texts:
        return Diagnostic(
            "FC0408",
            f"a {8 * kernel.word_bytes}-bit kernel follows pointers of {kernel.word_bytes} bytes, "
            f"this program's have {machine.word_bytes}",
            notes=("it would also read the bytes next to the pointer",),
            help=f"fetch the pointer itself, or name {narrow}",
        )
    while isinstance(value, Deref):
        value = value.base
    if isinstance(value, StackEntry) or (isinstance(store, Word | Symbol) and fetch.value != value):
        return Diagnostic(
            "FC0408",
            f"a {8 * kernel.word_bytes}-bit kernel counts the stack in words of "
            f"{kernel.word_bytes} bytes, this program in words of {machine.word_bytes}",
            help=f"fetch memory with its size, or name {narrow}",
        )
    return None
