"""The C or C++ program of some families: it fills objects, tells every value, calls the probes."""

from __future__ import annotations

from fetchc.conformance.c.expressions import Expression
from fetchc.conformance.c.family import Family, Variable
from fetchc.conformance.c.prologue import PROLOGUE, spy
from fetchc.conformance.c.types import (
    Code,
    CType,
    Number,
    Pointer,
    Reference,
    Struct,
    Void,
    careful,
    declare,
    resolved,
)

__all__ = ["STAGES", "Probe", "c_source"]

STAGES = ("entry", "inner", "leave")  # where a probe is seen


class Probe:
    """One function with its expressions at the entry, in its body, and where it returns.

    ``probe_TAG`` takes the parameters and gives the result, ``give_TAG`` gives it again. Mutable,
    for a failure is made smaller by taking parts out.
    """

    def __init__(self, tag: str, parameters: list[Variable], result: CType | None) -> None:
        self.tag = tag
        self.parameters = parameters
        self.result = result
        self.asked: dict[str, list[Expression]] = {stage: [] for stage in STAGES}

    @property
    def expressions(self) -> list[Expression]:
        """All of them, in the order that the program tells their values."""
        return [each for stage in STAGES for each in self.asked[stage]]

    @property
    def signature(self) -> str:
        """Its parameters, as C has them."""
        return ", ".join(declare(it.type, it.name) for it in self.parameters) or "void"


class _Homes:
    """Blocks of three objects for everything that something points at."""

    def __init__(self, family: Family) -> None:
        self._family = family
        self._known: dict[str, str] = {}
        self.blocks: list[str] = []
        self.filled: list[str] = []
        self.pointers: list[str] = []

    def of(self, made: CType) -> str:
        """A pointer to the second of three objects of the type, as C has it."""
        made = made if isinstance(made, Struct) else resolved(made)
        name = declare(made, "")
        if name in self._known:
            return self._known[name]
        block = f"home_{self._family.number}_{len(self._known)}"
        pointer = declare(Pointer(made), "")
        at = f"(({pointer})all.{block} + 1)"
        self._known[name] = at
        flexible = made.flexible if isinstance(made, Struct) else None
        room = f"3 * sizeof({name})"
        if flexible:
            room += f" + 4 * sizeof((({pointer})0)->{flexible.name}[0])"
        self.blocks.append(f"char {block}[{room}] __attribute__((aligned(64)));")
        truth = int(isinstance(made, Number) and made.kind == "bool")
        self.filled.append(f" fill(all.{block}, sizeof all.{block}, {truth});")
        for index in (1,) if flexible else (0, 1, 2):
            self.mend(made, f"(({pointer})all.{block})[{index}]")
        return at

    def mend(self, made: CType, path: str) -> None:
        """Give legal values to what may not hold any bytes."""
        for rest, leaf in careful(made):
            if isinstance(leaf, Pointer):
                value, into = f"(unsigned long){self.target(leaf.target)}", self.pointers
            else:
                value, into = "seed >> 31", self.filled
            into.append(f" set(&{path}{rest}, {value}, sizeof {path}{rest});")

    def target(self, made: CType) -> str:
        """Where a pointer to the type leads."""
        match resolved(made):
            case Void() if not self._family.roots:
                return "texts"
            case Void():
                return self.of(self._family.roots[0])
            case Code():
                return "&called"
            case Number(name="char"):
                return "(texts + 2)"
            case other:
                return self.of(other)

    def value(self, made: CType) -> str:
        """An object of the type."""
        inner = resolved(made)
        if isinstance(inner, Reference):
            return self.value(inner.target)
        if isinstance(inner, Number) and inner.name == "char":
            return "(*(texts + 1))"
        return f"(*{self.of(made)})"


def c_source(families: list[tuple[Family, list[Probe]]]) -> str:
    """The program."""
    lines, blocks, begun, done, calls = [PROLOGUE], [], [], [], []
    reached = ["all", "texts"]
    for family, probes in families:
        homes = _Homes(family)
        lines.append(family.source())
        for each in family.globals:
            homes.filled.append(f" fill(&{each.name}, sizeof {each.name}, 0);")
            homes.mend(each.type, each.name)
            reached.append(each.name)
        for probe in probes:
            tag = probe.tag
            passed = []
            for each in probe.parameters:
                inner = resolved(each.type)
                at = homes.value(each.type)
                if each.name == "p" and isinstance(inner, Pointer):
                    at = homes.of(inner.target)  # the structure that the probe is about
                calls.append(f"#define VALUE_{tag}_{each.name} {at}")
                passed.append(f"VALUE_{tag}_{each.name}")
            if probe.result is not None:
                homes.filled.append(f" from_{tag} = &{homes.value(probe.result)};")
            calls.append(f"static void call_{tag}(void) {{ show_{tag}({', '.join(passed)}); }}")
            lines += _functions(probe)
            done.append(f" deep(call_{tag});")
        blocks += homes.blocks
        begun += homes.filled + homes.pointers
    lines += ["struct { char before[4096];", *blocks, "char after[4096]; } all;", *calls]
    lines += ["int main(void) {", *begun, *done]
    lines += [f" reach(&{name});" for name in reached]
    lines += [" region();"]
    return "\n".join([*lines, " return 0;", "}", ""])


def _functions(probe: Probe) -> list[str]:
    tag, names, result = probe.tag, [it.name for it in probe.parameters], probe.result
    locals_ = [f" {declare(it.type, f'l_{it.name}')} = {it.name};" for it in probe.parameters]
    kept = [f'"m"({prefix}{name})' for name in names for prefix in ("", "l_")]
    spied = spy("spy_inner").replace("%", "%%")
    lines = [] if result is None else [f"{declare(Pointer(result), f'from_{tag}')};"]
    # An instruction that names each of them: what the code does not touch need not be passed.
    used = "lea %0, %%rax"
    lines += [
        f"PLAIN __attribute__((noinline, noipa)) {_function(probe, 'probe')} {{",
        *locals_,
        f' __asm__ volatile(".globl mark_{tag}\\nmark_{tag}:\\n{spied}" ::: "memory", "cc");',
        *[f' __asm__ volatile("{used}" :: {each} : "rax", "memory");' for each in kept],
        "}" if result is None else f" return *from_{tag}; }}",
        f'__asm__(".text\\nenter_{tag}:\\n{spy("spy_entry")} jmp probe_{tag}\\n");',
        f"PLAIN char mark_{tag}[]; PLAIN {_function(probe, 'enter')};",
    ]
    if result is not None:
        lines += _giving(tag, result)
    lines += [
        f"__attribute__((noinline)) void show_{tag}({probe.signature}) {{",
        *locals_,
        f' printf("probe {tag} %lx %lx\\n", (long)&probe_{tag}, (long)mark_{tag});',
    ]
    for name in names:
        lines.append(f' printf("size {tag} {name} %ld\\n", (long)sizeof {name});')
    for index, expression in enumerate(probe.expressions):
        items = " ".join(f"{item};" for item in expression.items)
        lines.append(f' printf("value {tag} {index}"); {items} puts("");')
    called = f"enter_{tag}({', '.join(names)});"
    if result is not None:
        called = f"{declare(result, 'made')} = {called} {_used('made')}"
    lines.append(f" {called}")
    lines += [f' stop("{tag} {stage}", spy_{stage});' for stage in ("entry", "inner")]
    if result is not None:
        lines += [f" {declare(result, 'taken')} = leave_{tag}(); {_used('taken')}"]
        lines += [f' printf("size {tag} $retval %ld\\n", (long)sizeof taken);']
        lines += [f' stop("{tag} leave", spy_leave);']
    return [*lines, "}"]


def _function(probe: Probe, role: str) -> str:
    declared = f"{role}_{probe.tag}({probe.signature})"
    return f"void {declared}" if probe.result is None else declare(probe.result, declared)


def _used(name: str) -> str:
    return f'__asm__ volatile("" :: "r"(&{name}) : "memory");'


def _giving(tag: str, result: CType) -> list[str]:
    # The address of an object that the function gives goes on in the same register.
    return [
        f"PLAIN __attribute__((noinline, noipa)) {declare(result, f'give_{tag}(void)')}",
        f"{{ return *from_{tag}; }}",
        f'__asm__(".text\\nleave_{tag}:\\n sub $8, %rsp\\n call give_{tag}\\n'
        f'{spy("spy_leave")} add $8, %rsp\\n ret\\n");',
        f"PLAIN {declare(result, f'leave_{tag}(void)')};",
    ]
