"""Our verdict on definitions against the running kernel's.

What the kernel refuses must be refused here; what it accepts must be accepted, but for the
rules in ``STRICTER``. Definitions are of a file of our own, none is ever enabled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from fetchc.conformance import machine
from fetchc.diag.diagnostic import Diagnostic
from fetchc.emit.probe_definition import Probed, definition, verify_event
from fetchc.ir.fetch import (
    Absolute,
    Array,
    Bits,
    Char,
    Comm,
    Deref,
    Fetch,
    Image,
    Immediate,
    Register,
    ReturnValue,
    Scalar,
    StackEntry,
    StackPointer,
    Store,
    Symbol,
    Text,
    Value,
    Word,
    body,
)
from fetchc.ir.fetch_rules import verify
from fetchc.quantities import FileOffset
from fetchc.target.kernel_versions import Kernel, kernel, running_version
from tests.support import fetches
from tests.support.verdicts import Uprobes, why_not

pytestmark = [pytest.mark.live]

GROUP = "fetchc_kernel_rules"
DI = Register("di")
KERNEL = kernel(running_version())
Rule = Callable[[Fetch, Diagnostic], bool]


def texts(store: Store) -> bool:
    return isinstance(store.element if isinstance(store, Array) else store, Text)


# Where we refuse what the kernel accepts: the reason, and what it is about.
STRICTER: list[tuple[str, Rule]] = [
    (
        "an offset beyond a signed 32-bit number is silently cut, a stack index likewise",
        lambda fetch, problem: problem.code == "FC0511",
    ),
    (
        "an immediate as string is read as an address, which Deref says plainly, and as an array"
        " of strings it makes the kernel step from an address that it never set",
        lambda fetch, problem: (
            problem.code == "FC0507" and isinstance(fetch.value, Immediate) and texts(fetch.store)
        ),
    ),
    (
        "$comm without a type is a text to the kernel, so as a word it has no notation",
        lambda fetch, problem: problem.code == "FC0507" and fetch == Fetch(Comm(), Word()),
    ),
]

# The kernel's words for each of our codes; several where it says several.
WORDS = {
    "FC0501": {machine.TOO_LONG},
    "FC0502": {machine.NESTED, machine.TOO_LONG},
    "FC0505": {"Invalid array size", "Array number is too big"},
    "FC0507": {
        machine.NOT_MEMORY,
        machine.BAD_TYPE,
        machine.BAD_BITFIELD,
        "$retval is not available on probe",
        "$comm and immediate-string only accepts string type",
    },
    "FC0511": {"Invalid dereference offset"},
    "FC0512": {"Invalid register name"},
    "FC0207": {
        "Argument name is too long",
        "Argument name is not specified",
        "Argument name must follow the same rules as C identifiers",
        "This argument name is already used",
    },
    "FC0503": {
        "Event name is too long",
        "Group name is too long",
        "Event name must follow the same rules as C identifiers",
        "Group name must follow the same rules as C identifiers",
    },
    "FC0504": {"Too many arguments are specified"},
    "FC0508": {"Event too big (too many fields?)"},
    "FC0509": {""},
    "FC0510": {"", "Failed to find the given file"},
}


@pytest.fixture(scope="module")
def uprobes() -> Iterator[Uprobes]:
    reason = why_not()
    if reason:
        pytest.skip(reason)
    probes = Uprobes(GROUP)
    probes.clear()
    try:
        yield probes
    finally:
        probes.clear()


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("rules") / "target"
    path.write_bytes(bytes(4096))  # the kernel looks at a file's content when enabled only
    return str(path)


def differences(
    uprobes: Uprobes,
    target: str,
    arguments: Sequence[tuple[str, Fetch]],
    kind: str = "uprobe",
    *,
    rules: Kernel = KERNEL,
    event: str = "e",
    group: str = GROUP,
) -> list[str]:
    """How our verdict on a definition differs from the kernel's; none is []."""
    problems: list[tuple[Fetch, Diagnostic]] = []
    for _, fetch in arguments:
        problems += [(fetch, problem) for problem in verify(fetch, rules, kind)]
    probed = Probed(kind, target, FileOffset(0x100))
    whole = verify_event(probed, group, event, arguments, rules)
    bodies = [(name, body(fetch)) for name, fetch in arguments]
    line = definition(probed, group, event, bodies)
    verdict = uprobes.judge(line)
    if verdict.errno and not problems and not whole:
        return [f"{line}: we accept it, the kernel says {verdict.text!r}, errno {verdict.errno}"]
    if not verdict.errno:
        undue = [problem for fetch, problem in problems if not _stricter(fetch, problem)]
        return [f"{line}: the kernel accepts it, we say {p}" for p in (*undue, *whole)]
    codes = {problem.code for _, problem in problems} | {problem.code for problem in whole}
    if verdict.errno and KERNEL.has("error_log"):
        expected = set().union(*[WORDS[code] for code in codes])
        if verdict.text not in expected:
            return [f"{line}: the kernel says {verdict.text!r}, we say {sorted(codes)}"]
    return []


def _stricter(fetch: Fetch, problem: Diagnostic) -> bool:
    return any(rule(fetch, problem) for _, rule in STRICTER)


def deep(base: Value, levels: int, offset: int = 0) -> Value:
    for _ in range(levels):
        base = Deref(base, offset)
    return base


# The measured depths: base, store, and how many dereferences are the most (kernels of 4.20 to
# 7.2; before there is no limit but the length, and 7.3 takes eight).
DEEPEST: list[tuple[Value, Store, int]] = [
    (DI, Word(), 14),
    (DI, Scalar("u", 8), 14),
    (StackEntry(0), Word(), 14),
    (DI, Bits(1, 0, 8), 13),
    (DI, Array(Scalar("u", 8), 2), 13),
    (DI, Array(Bits(1, 0, 8), 2), 12),
    (DI, Array(Text(), 2), 12),
    (Deref(Absolute(1), 0), Word(), 13),
    (Deref(Image(1), 0), Word(), 13),
]


@pytest.mark.parametrize(("base", "store", "most"), DEEPEST)
def test_depth(uprobes: Uprobes, target: str, base: Value, store: Store, most: int) -> None:
    for levels in range(most - 1, most + 3):
        fetch = Fetch(deep(base, levels), store)
        assert not differences(uprobes, target, [("a", fetch)])
        if KERNEL.instructions and not KERNEL.nesting:
            refused = {problem.code for problem in verify(fetch, KERNEL)}
            assert bool(refused & {"FC0501", "FC0502"}) == (levels > most)


SINGLE: list[Fetch] = [
    # 63 and 64 bytes of body
    Fetch(deep(DI, 6, 1234567), Word()),
    Fetch(Deref(deep(DI, 5, 1234567), 123456), Word()),
    Fetch(Deref(deep(DI, 5, 1234567), 1234567), Char()),
    Fetch(Deref(deep(DI, 4, 1234567), 123), Scalar("u", 16)),
    Fetch(Deref(deep(DI, 4, 1234567), 1234567), Text()),
    Fetch(Deref(Deref(deep(DI, 4, 1234567), 12345), 1), Scalar("s", 16)),
    # arrays
    *[Fetch(Deref(DI, 0), Array(Char(), count)) for count in (-1, 0, 1, 64, 65, 1000)],
    *[Fetch(Deref(DI, 0), Array(Text(), count)) for count in (0, 1, 64, 65)],
    *[
        Fetch(value, Array(Scalar("u", 8), 4))
        for value in (DI, StackPointer(), StackEntry(1), Immediate(4), Deref(DI, 0, user=True))
    ],
    Fetch(Deref(DI, 0, user=True), Array(Text(), 4)),
    Fetch(Deref(DI, 0, user=True), Array(Text(True), 4)),
    Fetch(Deref(DI, 0, user=True), Array(Bits(1, 0, 8), 4)),
    # strings
    *[Fetch(Immediate(8), Array(Text(), count)) for count in (1, 4)],
    *[Fetch(value, Text()) for value in (DI, StackPointer(), StackEntry(3), Immediate(4096))],
    *[Fetch(value, Text(user=True)) for value in (DI, Deref(DI, 0), Deref(DI, 8, user=True))],
    Fetch(Comm(), Text()),
    Fetch(Comm(), Text(user=True)),
    Fetch(Comm(), Array(Text(), 2)),
    Fetch(Comm(), Scalar("u", 8)),
    # bit fields
    *[
        Fetch(Deref(DI, 0), Bits(*bits))
        for bits in ((1, 0, 8), (8, 0, 8), (1, 7, 8), (1, 8, 8), (0, 0, 32), (33, 0, 32))
    ],
    *[Fetch(DI, Bits(*bits)) for bits in ((1, 63, 64), (1, 64, 64), (64, 0, 64), (3, -1, 32))],
    Fetch(DI, Bits(3, 0, 24)),
    Fetch(Deref(DI, 0), Scalar("u", 128)),
    # numbers at their ends
    *[Fetch(Deref(DI, offset), Word()) for offset in (2**31 - 1, -(2**31), 2**31, -(2**31) - 1)],
    *[Fetch(Deref(DI, offset), Word()) for offset in (2**63 - 1, 2**63, -(2**63))],
    *[Fetch(StackEntry(index), Word()) for index in (0, 999, 2**32 - 1, 2**32)],
    *[Fetch(Immediate(value), Word()) for value in (0, -1, 2**64 - 1, -(2**63), 2**63)],
    *[Fetch(Deref(Absolute(address), 0), Word()) for address in (0, 2**64 - 1)],
    *[Fetch(Deref(Image(offset), 0), Word()) for offset in (0, -8, 2**63 - 1, -(2**63))],
    # registers and the rest
    *[Fetch(Register(name), Word()) for name in sorted(machine.REGISTERS)],
    Fetch(DI, Symbol()),
    Fetch(Deref(DI, 0), Symbol()),
    Fetch(ReturnValue(), Word()),
    Fetch(Deref(ReturnValue(), 8), Text()),
]


@pytest.mark.parametrize("kind", ["uprobe", "uretprobe"])
def test_single_fetches(uprobes: Uprobes, target: str, kind: str) -> None:
    found = []
    for fetch in SINGLE:
        found += differences(uprobes, target, [("a", fetch)], kind)
    assert found == []


@pytest.mark.parametrize("name", ["rdi", "eax", "xmm0", "ds", "r16"])
def test_registers_the_kernel_lacks(uprobes: Uprobes, target: str, name: str) -> None:
    fetch = Fetch(Register(name), Word())
    (problem,) = verify(fetch, KERNEL, registers=machine.REGISTERS)
    probed = Probed("uprobe", target, FileOffset(0x100))
    line = definition(probed, GROUP, "e", [("a", body(fetch))])
    assert uprobes.judge(line).text in WORDS[problem.code]


def words(count: int) -> list[tuple[str, Fetch]]:
    return [(f"a{number}", Fetch(DI, Word())) for number in range(count)]


def array(count: int, bits: int = 64) -> Fetch:
    return Fetch(Deref(DI, 0), Array(Scalar("u", bits), count))


FULL = [(f"a{number}", array(64)) for number in range(6)]
EVENTS: dict[str, list[tuple[str, Fetch]]] = {
    "no argument": [],
    "128 arguments": words(128),
    "129 arguments": words(129),
    "3072 bytes": FULL,
    "3073 bytes": [*FULL, ("b", Fetch(DI, Char()))],
    "3071 bytes and a text": [*FULL[:5], ("b", array(63)), ("c", Fetch(Deref(DI, 0), Text()))],
    "a name twice": [*words(2), *words(1)],
    **{
        f"name {name!r}": [(name, Fetch(DI, Word()))]
        for name in ("n" * 32, "n" * 33, "_", "1a", "a-b", "a.b", "a[0]", "\xe9")
    },
    **{f"reserved {name}": [(name, Fetch(DI, Word()))] for name in KERNEL.reserved_names},
    **{f"confusing {name}": [(name, Fetch(DI, Word()))] for name in KERNEL.confusing_names},
}


@pytest.mark.parametrize("case", EVENTS)
def test_events(uprobes: Uprobes, target: str, case: str) -> None:
    assert differences(uprobes, target, EVENTS[case]) == []


@pytest.mark.parametrize(
    "event", ["e" * 63, "e" * 64, "1e", "e-v", "e.v", "_e", "rec", "e/v", "\xe9"]
)
def test_event_names(uprobes: Uprobes, target: str, event: str) -> None:
    assert differences(uprobes, target, words(1), event=event) == []


@pytest.mark.parametrize("suffix", ["", "_" * 44, "_" * 45, "-x", "=x", "\xe9"])
def test_group_names(uprobes: Uprobes, target: str, suffix: str) -> None:
    group = GROUP + suffix
    assert differences(Uprobes(group), target, words(1), group=group) == []


@pytest.mark.parametrize("length", [4094, 4095])
def test_line_length(uprobes: Uprobes, target: str, length: int) -> None:
    arguments = [(f"a{number:03}{'n' * 26}", Fetch(DI, Scalar("u", 64))) for number in range(100)]
    bodies = [(name, body(fetch)) for name, fetch in arguments]
    probed = Probed("uprobe", target, FileOffset(0x100))
    line = definition(probed, GROUP, "e", bodies)
    while len(line) + 45 < length:
        name = f"b{len(arguments)}"
        arguments.append((name, Fetch(DI, Word())))
        bodies.append((name, "%di"))
        line = definition(probed, GROUP, "e", bodies)
    rest = length - len(line) - len(" =%di")
    assert 1 <= rest <= 60
    half = rest - 10 if rest > 32 else rest
    if half != rest:  # two names, as one takes 32 bytes at most
        arguments.append(("c" * (10 - len(" =%di")), Fetch(DI, Word())))
    arguments.append(("d" * half, Fetch(DI, Word())))
    final = definition(probed, GROUP, "e", [(n, body(f)) for n, f in arguments])
    assert len(final) == length
    assert differences(uprobes, target, arguments) == []
    problems = verify_event(probed, GROUP, "e", arguments, KERNEL)
    assert [problem.code for problem in problems] == (["FC0509"] if length == 4095 else [])


@pytest.mark.parametrize("name", ["plain", "a b", "a#b", "a:b", "a%b", "a(b)c", "a\tb", "\xe9"])
def test_paths(uprobes: Uprobes, tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(bytes(4096))
    assert differences(uprobes, str(path), words(1)) == []


@pytest.mark.parametrize("returning", [False, True])
def test_random_fetches(uprobes: Uprobes, target: str, returning: bool) -> None:
    kind = "uretprobe" if returning else "uprobe"
    probed = Probed(kind, target, FileOffset(0x100))

    @settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow])
    @given(fetches.fetches(returning=returning, wild=True, longest=15))
    def check(fetch: Fetch) -> None:
        assert differences(uprobes, target, [("a", fetch)], kind) == []
        # The machine of the property tests is held against the kernel as well.
        line = definition(probed, GROUP, "e", [("a", body(fetch))])
        verdict = uprobes.judge(line)
        assert bool(verdict.errno) == bool(refusal(body(fetch), returning)), line

    check()


def refusal(text: str, returning: bool) -> str:
    try:
        machine.parse(text, returning, KERNEL.body_bytes)
    except machine.Refused as refused:
        return str(refused)
    return ""


def relaxed(**changes: Any) -> Kernel:
    fields: dict[str, Any] = {name: getattr(KERNEL, name) for name in Kernel.__match_args__}
    return Kernel(**{**fields, **changes})


def test_a_wrong_verdict_is_noticed(uprobes: Uprobes, target: str) -> None:
    long, deepest = SINGLE[2], Fetch(deep(DI, 15), Word())
    many, name = words(129), [("n" * 33, Fetch(DI, Word()))]
    cases = [
        ([("a", long)], relaxed(body_bytes=80)),
        ([("a", deepest)], relaxed(instructions=17, body_bytes=80)),
        ([("a", Fetch(deep(DI, 14), Word()))], relaxed(instructions=14)),
        ([("a", array(65))], relaxed(array_elements=65)),
        ([("a", array(64))], relaxed(array_elements=63)),
        (many, relaxed(arguments=129)),
        (words(128), relaxed(arguments=127)),
        (name, relaxed(argument_name_bytes=33)),
        ([*FULL, ("b", Fetch(DI, Char()))], relaxed(event_bytes=4000)),
    ]
    for arguments, rules in cases:
        assert differences(uprobes, target, arguments, rules=rules) != []
