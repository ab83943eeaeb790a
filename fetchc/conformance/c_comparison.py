"""A program of random types through fetchc and the machine: where fetchc and the program disagree.

The machine runs the text that fetchc prints, on the registers and the memory that the program
showed; ``decode`` makes a value of it, and that is compared with the compiler's own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from random import Random

import fetchc
from fetchc.conformance.c_drawing import (
    Alias,
    Array,
    CType,
    Family,
    Member,
    Number,
    Pointer,
    Reference,
    Struct,
    Variable,
    declare,
    draw,
    draw_signatures,
    resolved,
    short,
)
from fetchc.conformance.c_expressions import Expression, Root, leaves, walk
from fetchc.conformance.c_programs import STAGES, Build, Probe, ProgramOutput, c_source, ran, run
from fetchc.conformance.child_processes import written
from fetchc.conformance.machine import Machine, Memory
from fetchc.conformance.results import (
    LIMITS,
    REFUSED,
    Change,
    Reproducer,
    Tally,
    as_it_is,
    fetched,
    place_of,
    printed,
    state_of,
    without,
)
from fetchc.diag.diagnostic import Diagnostic, Error
from fetchc.driver.compile import Part
from fetchc.ir.evaluate import evaluate
from fetchc.ir.fetch import Fetch, body
from fetchc.record import Record

__all__ = [
    "KERNEL",
    "Failure",
    "Refusals",
    "check",
    "layouts",
    "reduced",
    "reproducer",
    "signatures",
]

# ------------------------------------------------------------------------------
# The probes of a family, and the expressions that each of them is asked.

_LEAVES = 12  # of one parameter or result


def layouts(
    random: Random, number: int, many: int, roots: int | None = None, plus: bool = False
) -> tuple[Family, list[Probe]]:
    """A family with a probe for each structure; ``many`` expressions walk from what it sees."""
    family = draw(random, number, roots, plus)
    probes = []
    for root, signature in zip(family.roots, family.signatures, strict=True):
        others = [Variable(f"v{n}", it) for n, it in enumerate(signature.parameters)]
        probe = Probe(short(root.tag), [Variable("p", Pointer(root)), *others], signature.result)
        for index in range(many):
            stage, asked = _drawn_root(random, family, probe, index)
            probe.asked[stage].append(walk(random, asked, family.roots))
        probes.append(probe)
    return family, probes


def _drawn_root(random: Random, family: Family, probe: Probe, index: int) -> tuple[str, Root]:
    which = random.random()
    if probe.result is not None and index % 6 == 5:
        return "leave", _result(probe)
    if which < 0.12:
        each = random.choice(family.globals)
        return random.choice(["entry", "inner"]), Root(each.name, each.name, each.type)
    first = probe.parameters[0]
    each = first if which < 0.6 else random.choice(probe.parameters)
    if index % 4 == 0:
        name = random.choice(["", "l_"]) + each.name
        return "inner", Root(name, name, each.type)
    return "entry", _parameter(each, each is not first)


def signatures(
    random: Random, number: int, functions: int, plus: bool = False
) -> tuple[Family, list[Probe]]:
    """A family with probes of random parameters and results, whose every part is asked."""
    family = draw_signatures(random, number, functions, plus)
    probes = []
    for index, signature in enumerate(family.signatures):
        taken = [Variable(f"v{n}", it) for n, it in enumerate(signature.parameters)]
        probe = Probe(f"F{number}_{index}", taken, signature.result)
        for each in taken:
            probe.asked["entry"] += leaves(random, _parameter(each, True), _LEAVES)
        if probe.result is not None:
            probe.asked["leave"] += leaves(random, _result(probe), _LEAVES)
        probes.append(probe)
    return family, probes


def _parameter(each: Variable, in_registers: bool) -> Root:
    reference = isinstance(resolved(each.type), Reference)
    return Root(each.name, each.name, each.type, in_registers and not reference)


def _result(probe: Probe) -> Root:
    assert probe.result is not None
    return Root("$retval", f"(*from_{probe.tag})", probe.result, True)


# ------------------------------------------------------------------------------
# Which refusals are right for an expression: no fetch-arg reaches the value, or nobody knows it.

_MAY_BE_OPTIMIZED_OUT = frozenset(["FC0401", "FC0402", "FC0404", "FC0405", "FC0406"])


class Refusals:
    """What may be refused at one stage of a probe."""

    def __init__(
        self, family: Family, probe: Probe, stage: str, build: Build, output: ProgramOutput
    ) -> None:
        self._tag = probe.tag
        self._sizes = output.sizes
        self._vectors = output.stops[probe.tag, stage].vectors
        # Optimized code has a variable anywhere, and not always.
        self._optimized = stage == "inner" and "-O0" not in build.options
        passed = [probe.result] if stage == "leave" else [it.type for it in probe.parameters]
        types = [resolved(it) for it in passed if it is not None]
        self._unnamed = any(_unnamed(it) for it in types)
        self._uncertain = set(_uncertain(family))

    def right(
        self, expression: Expression, first: Diagnostic, expected: list[int | bytes]
    ) -> str | None:
        """None where the refusal is right, else what is wrong with it."""
        refusal = f"{first.code}: {first.message}"
        if first.code not in self.allowed(expression) and not self._unsaid(first):
            return refusal
        if first.code == "FC0402" and expression.kind == "float" and not expression.counted:
            (value,) = expected
            assert isinstance(value, bytes)
            if not self._optimized and not any(value in each for each in self._vectors):
                return f"{refusal}; {value!r} is in no vector register"
        return None

    def allowed(self, expression: Expression) -> frozenset[str]:
        """The codes that are right by what the expression asks."""
        allowed = expression.refusals | LIMITS
        if self._optimized:
            return allowed | _MAY_BE_OPTIMIZED_OUT
        size = self._sizes.get((self._tag, expression.root.name), 0)
        # gcc counts unnamed bit fields when it classifies; debug information has none.
        if expression.root.in_registers and self._unnamed:
            allowed |= {"FC0401", "FC0407"}
        # Source: System V ABI, x86-64, 3.2.3: what is longer than two words is in memory.
        return allowed | expression.register_refusals if size <= 16 else allowed

    def _unsaid(self, first: Diagnostic) -> bool:
        # What a compiler leaves out of its debug information.
        match first.code:
            case "FC0401" if "unsaid" in first.message:
                return True  # clang 14: how some structures lie on the stack
            case "FC0904":  # clang 14: which members are packed bit fields as wide as their type
                return bool(self._uncertain & set(re.findall(r"`(\w+)`", first.message)))
            case _:
                return False


def _unnamed(c_type: CType) -> bool:
    inner = resolved(c_type)
    if not isinstance(inner, Struct):
        return isinstance(inner, Array) and _unnamed(inner.element)
    if any(_unnamed(base) for base in inner.bases):
        return True
    return any((it.width is not None and not it.name) or _unnamed(it.type) for it in inner.members)


def _uncertain(family: Family) -> Iterator[str]:
    # Bit fields that look like none, and members before an unnamed bit field, which may be those.
    waiting = [it for it in family.declared if isinstance(it, Struct)]
    while waiting:
        members = waiting.pop().members
        for member, after in zip(members, [*members[1:], None], strict=False):
            inner = resolved(member.type)
            if member.width is not None:
                if _is_full(member):
                    yield member.name
            elif isinstance(inner, Struct) and not inner.tag:
                waiting.append(inner)
            elif after is not None and after.width is not None and not after.name:
                yield member.name


def _is_full(member: Member) -> bool:
    inner = resolved(member.type)
    return isinstance(inner, Number) and member.width == 8 * inner.size


KERNEL = "6.12"
_TREES = 4  # one in so many is also read by its tree, which takes a second compilation


class Failure(Record):
    """One expression whose value is wrong, or that is refused without need."""

    family: Family
    probe: Probe
    expression: Expression
    stage: str
    fetcharg: str
    got: object
    expected: object


def check(
    families: list[tuple[Family, list[Probe]]],
    build: Build,
    folder: Path,
    changed: Change = as_it_is,
    engines: Sequence[str] = (),
) -> tuple[Tally, list[Failure]]:
    """Build, run and compare; ``changed`` lets a test falsify each fetch-arg.

    ``engines`` are those that record another run, which the oracles judge, too.
    """
    binary, output = run(c_source(families), build, folder)
    program = fetchc.open(str(binary))
    tally, failures = Tally(), []
    witnessed: list[_Witnessed] = []
    tally.programs = 1
    for family, probes in families:
        tally.types += len(family.declared)
        for probe in probes:
            tally.functions += 1
            number = 0
            for stage in STAGES:
                if not probe.asked[stage]:
                    continue
                refusals = Refusals(family, probe, stage, build, output)
                asked = _Asked(program, output, probe, stage, refusals, tally, changed)
                asked.parts = [] if engines else None
                for expression in probe.asked[stage]:
                    wrong = asked.wrong(expression, output.values[probe.tag, number])
                    number += 1
                    if wrong:
                        failures.append(Failure(family, probe, expression, stage, *wrong))
                if asked.parts:
                    place = place_of(asked.point)
                    witnessed += [
                        _Witnessed(family, probe, expression, stage, place, part.fetch)
                        for expression, part in asked.parts
                    ]
    if witnessed:
        failures += _by_engines(program, witnessed, engines, lambda: ran(binary, build, folder))
        tally.traced += len(witnessed)
    return tally, failures


class _Witnessed(Record):
    """A fetch of an expression, which the running kernel makes, too."""

    family: Family
    probe: Probe
    expression: Expression
    stage: str
    place: str
    fetch: Fetch


def _by_engines(
    program: fetchc.Program,
    witnessed: list[_Witnessed],
    engines: Sequence[str],
    run: Callable[[], ProgramOutput],
) -> list[Failure]:
    from fetchc.conformance.engines import Asked, agree, recorded

    outputs: list[ProgramOutput] = []
    asked = [Asked(each.place, each.stage == "leave", each.fetch) for each in witnessed]
    found = recorded(engines, asked, lambda: outputs.append(run()))
    threads: dict[tuple[str, str], Machine] = {}
    failures = []
    for at, each in enumerate(witnessed):
        key = each.probe.tag, each.stage
        if key not in threads:
            threads[key] = _thread(program, outputs[0], each.probe, each.stage)
        by_rules = evaluate(each.fetch, state_of(threads[key]))
        expected = printed(by_rules, each.fetch.store)
        for engine in engines:
            if not agree(engine, by_rules, each.fetch.store, got := found[engine][at]):
                text = f"{body(each.fetch)} by {engine}"
                failures.append(
                    Failure(
                        each.family, each.probe, each.expression, each.stage, text, got, expected
                    )
                )
    return failures


def _thread(program: fetchc.Program, output: ProgramOutput, probe: Probe, stage: str) -> Machine:
    # The thread at that stage of the probe, and its memory.
    entry, _ = output.addresses[probe.tag]
    stop = output.stops[probe.tag, stage]
    memory = Memory(output.regions | dict([stop.stack]))
    bias = entry - program.probe(f"probe_{probe.tag}", kernel=KERNEL).offset
    return Machine(stop.registers, memory, bias, returning=stage == "leave")


class _Asked:
    """One probe point: expressions go in, what is wrong comes out."""

    def __init__(
        self,
        program: fetchc.Program,
        output: ProgramOutput,
        probe: Probe,
        stage: str,
        refusals: Refusals,
        tally: Tally,
        changed: Change,
    ) -> None:
        entry, mark = output.addresses[probe.tag]
        name = f"{'give' if stage == 'leave' else 'probe'}_{probe.tag}"
        at = f"+{mark - entry:#x}" if stage == "inner" else None
        self.point = program.probe(name, at=at, returns=stage == "leave", kernel=KERNEL)
        self._machine = _thread(program, output, probe, stage)
        self._refusals = refusals
        self._tally = tally
        self._changed = changed
        self.parts: list[tuple[Expression, Part]] | None = None
        """What was fetched, where it is asked for."""

    def wrong(
        self, expression: Expression, expected: list[int | bytes]
    ) -> tuple[str, object, object] | None:
        """None where the value is right or the refusal is."""
        self._tally.expressions += 1
        try:
            argument = self.point.compile(expression.text)
            if expression.members:
                return self._members(expression, argument, expected)
            if expression.kind == "refused":
                return argument.fetcharg, "accepted", "not a value that a fetch holds"
            plain, decode = argument.fetcharg, argument.decode
        except fetchc.CompileError as refusal:
            first = refusal.diagnostics[0]
            mistake = self._refusals.right(expression, first, expected)
            self._tally.refused[first.code] += mistake is None
            return None if mistake is None else (REFUSED, mistake, expected)
        text, decode = self._changed(plain, decode)
        if self.parts is not None:
            whole = [part for part in argument.whole.parts if part.body == plain]
            self.parts += [(expression, part) for part in whole]
        tree = None
        if text == plain and self._tally.expressions % _TREES == 0:
            tree = {part.body: part.fetch for part in argument.whole.parts}.get(text)
        values = fetched(text, decode, self._machine, tree)
        self._tally.compared += 1
        if decode.kind != expression.kind or (decode.count is not None) != expression.counted:
            return text, decode, f"kind {expression.kind}, {expected}"
        return None if values == expected else (f"{text} {decode}", values, expected)

    def _members(
        self, expression: Expression, argument: fetchc.Argument, expected: list[int | bytes]
    ) -> tuple[str, object, object] | None:
        parts = {part.suffix: part for part in argument.whole.parts}
        for name, value in zip(expression.members, expected, strict=True):
            if name not in parts:
                if self._refusals.allowed(expression) - LIMITS:
                    continue
                return argument.text, f"no part {name}", value
            part = parts[name]
            if self.parts is not None:
                self.parts.append((expression, part))
            text, decode = self._changed(part.body, part.decode)
            got = fetched(text, decode, self._machine, part.fetch if text == part.body else None)
            if got != [value]:
                return f"{name}={text} {decode}", got, value
        self._tally.compared += 1
        return None


# ------------------------------------------------------------------------------
# From a program with a wrong value to a small one: what one expression needs, and no more.

_BUILDS = 200
_FILLS = 3


def reduced(
    failure: Failure, build: Build, folder: Path, changed: Change = as_it_is
) -> tuple[Failure, Build]:
    """The failure in the smallest program found, the same one where none smaller shows it.

    The build says with which filling. The family of the failure is changed.
    """
    search = _Search(failure, build, folder, changed)
    probe = failure.probe
    alone = Probe(probe.tag, probe.parameters, probe.result)
    alone.asked[failure.stage].append(failure.expression)
    best = search.fails(failure.family, alone)
    if best is None:
        return failure, build
    for _ in range(2):  # what was needed by a part that is gone now can go, too
        for undo in _smaller(best):
            found = search.fails(best.family, best.probe)
            if found is None:
                undo()
            else:
                best = found
    return search.fails(best.family, best.probe) or best, search.filled


class _Search:
    def __init__(self, like: Failure, build: Build, folder: Path, changed: Change) -> None:
        self._like = _kind(like)  # a refusal stays the same refusal, a wrong value one
        self.filled = build
        self._build, self._folder, self._changed = build, folder, changed
        self._builds = 0

    def fails(self, family: Family, probe: Probe) -> Failure | None:
        """The failure of the only expression; None where it is right or nothing is built."""
        for salt in range(_FILLS):  # other bytes: what is wrong need not show in all of them
            self._builds += 1
            if self._builds > _BUILDS:
                return None
            options = (*self._build.options, f"-DSEED={salt}")
            build = Build(self._build.compiler, options, self._build.plus)
            try:
                _, failures = check([(family, [probe])], build, self._folder, self._changed)
            except Error:
                return None
            if failures and _kind(failures[0]) == self._like:
                self.filled = build
                return failures[0]
        return None


def _kind(failure: Failure) -> str:
    return str(failure.got).partition(":")[0] if failure.fetcharg == REFUSED else ""


def _smaller(failure: Failure) -> Iterator[Callable[[], None]]:
    # Each is one part taken out, and how to put it back.
    yield from without(failure.probe.parameters)
    if failure.probe.result is not None:
        yield _set(failure.probe, "result", None)
    yield from without(failure.family.globals)
    yield from without(failure.family.declared)
    for struct in _structs(failure.family):
        yield from without(struct.members)
        yield from without(struct.bases)
        if struct.attribute:
            yield _set(struct, "attribute", "")
    yield from without(failure.family.declared)
    yield from without(failure.family.roots)


def _set(holder: Probe | Struct, name: str, value: object) -> Callable[[], None]:
    before = getattr(holder, name)
    setattr(holder, name, value)
    return partial(setattr, holder, name, before)


def _structs(family: Family) -> Iterator[Struct]:
    waiting: list[CType] = [it for it in family.declared if isinstance(it, Struct | Alias)]
    while waiting:
        struct = resolved(waiting.pop())
        if isinstance(struct, Struct):
            yield struct
            waiting += [it.type for it in struct.members if _written_there(it.type)]


def _written_there(c_type: CType) -> bool:
    inner = resolved(c_type)
    return isinstance(inner, Struct) and not inner.tag


def reproducer(failure: Failure, build: Build) -> Reproducer:
    """All that it takes to see the failure; the source without what fills and prints."""
    probe, family = failure.probe, failure.family
    name = f"{'give' if failure.stage == 'leave' else 'probe'}_{probe.tag}"
    shown = f"{name}({'void' if failure.stage == 'leave' else probe.signature})"
    shown = f"void {shown}" if probe.result is None else declare(probe.result, shown)
    lines = [family.source(), f"{shown};"]
    return Reproducer(
        command=written(build.command(*_FILES[build.plus])),
        source="\n".join(lines),
        whole=c_source([(family, [probe])]),
        function=name,
        stage=failure.stage,
        expression=failure.expression.text,
        fetcharg=failure.fetcharg,
        fetched=str(failure.got),
        program=str(failure.expected),
    )


_FILES = {False: ("reproducer.c", "reproducer"), True: ("reproducer.cc", "reproducer")}
