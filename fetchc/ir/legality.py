"""What a kernel takes of values and stores in which probe: rules of ``targets/kernel``, applied."""

from __future__ import annotations

from fetchc.diag.model import Diagnostic
from fetchc.ir.nodes import (
    Absolute,
    Array,
    Bits,
    Char,
    Comm,
    Deref,
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
    Word,
)
from fetchc.record import assert_never
from fetchc.target.kernel_versions import dotted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.ir.nodes import Fetch, Store, Value
    from fetchc.target.kernel_versions import Kernel, Rule

    # What is wrong, and the part of the fetch that it is about: None is all of it.
    Finding = tuple[Diagnostic, Value | Store | None]

__all__ = ["PROBES", "base_name", "illegal", "of_program"]

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
_AT_RETURN = ("kretprobe", "fexit")  # of the kernel: arguments are kept since the entry


def of_program(kind: str) -> bool:
    """Whether probes of ``kind`` are put into programs, not into the kernel."""
    return kind in _OF_PROGRAMS


def illegal(
    fetch: Fetch, chain: list[Value], kernel: Kernel, kind: str, tolerant: bool
) -> list[Finding]:
    """What ``kernel`` does not take of the fetch whose ``chain`` this is, in a probe of ``kind``.

    ``tolerant`` allows what it takes without there being a use for it.
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
    return Diagnostic("FC0507", what, notes=(note,))


def _too_new(rule: Rule, kernel: Kernel, kind: str) -> Diagnostic:
    where = "a uprobe" if of_program(kind) else PROBES[kind]
    return Diagnostic(
        "FC0506",
        f"Linux {kernel.name} does not know `{rule.written}` in {where}",
        notes=(f"Linux {dotted(rule.begins(kind))} was the first",),
    )


def _mangled(rule: Rule, kernel: Kernel) -> Diagnostic:
    assert rule.mangled is not None
    first, last = map(dotted, rule.mangled)
    return Diagnostic(
        "FC0507",
        f"Linux {kernel.name} reads one byte of the pointer that `{rule.written}` is",
        notes=(f"so do all from {first} to {last}",),
        help="probe the function that makes the event, or its tracepoint",
    )


def _wrong_base(rule: Rule, base: Rule) -> Diagnostic:
    memory = "dereference" in rule.on and "register" not in rule.on
    return Diagnostic(
        "FC0507",
        f"`{base.written}` cannot be fetched as `{rule.written}`",
        notes=("the kernel takes it from memory only",) if memory else (),
    )
