"""The eBPF engine on each kernel: values are those of tracefs, records are those of the steps."""

from __future__ import annotations

import json
import pickle
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import fetchc
from fetchc.emit.bpf_layout import text_rooms
from fetchc.ir.evaluate import State, evaluate
from fetchc.ir.evaluate_steps import record
from fetchc.ir.fetch import (
    Comm,
    Contents,
    Deref,
    ElementAddress,
    Fetch,
    Immediate,
    Part,
    Register,
    Text,
    Value,
    mapped,
)
from fetchc.ir.fetch_rules import verify
from fetchc.ir.step_lowering import steps_of
from fetchc.ir.steps import PAGE_BYTES
from fetchc.target.bpf_rules import bpf_rules
from fetchc.target.kernel_versions import kernel
from fetchc.target.machines import architecture
from fetchc.tracer.events import Plan
from tests.live.test_bpf_tables import named_source
from tests.live.test_fetch_values import SOURCE, probed_offset
from tests.property.test_bpf_programs import unlike
from tests.support import fetches
from tests.support.kernel_lab import SOURCES, LabKernel, built
from tests.support.kernel_lab_guest import Guest
from tests.support.kernel_lab_python import files, interpreter, why_no_python
from tests.support.kernel_lab_values import PATH, build
from tests.support.programs import Call, calls

_SECONDS = 300  # to boot with so many files, when the machine is busy
_SEED = 5
_PLANS = 10
_TOGETHER = 5  # expressions of one plan
_COMM = "values"
# With frame pointers: x86-64's `pushed` begins with push %rbp, `marked` with endbr64.
RECURSIVE = """
#define RECURSIVE __attribute__((noinline, noclone))
#define KEEP __asm__ volatile("" ::: "memory")
#ifdef __x86_64__
#define NO_MARK __attribute__((nocf_check))
#else
#define NO_MARK
#endif
RECURSIVE static NO_MARK int pushed(int n) { int r = n ? pushed(n - 1) + 1 : 0; KEEP; return r; }
RECURSIVE int marked(int n) { int r = n ? marked(n - 1) + 1 : 0; KEEP; return r; }
int main(void) { return pushed(3) + marked(3) - 6; }
"""
# What the registers of the drawn fetches, which are those of x86-64, are on the other machine.
_ARM = {"di": "x0", "si": "x1", "r8": "x8", "sp": "sp", "ax": "x9"}
_GIVEN = ("di", "si", "r8", "sp", "ax")


def _named(value: Value, names: dict[str, str]) -> Value:
    if isinstance(value, Deref):
        return value.replaced(base=_named(value.base, names))
    if isinstance(value, ElementAddress):
        return ElementAddress(mapped(value.address, lambda one: _named(one, names)))
    return value.replaced(name=names[value.name]) if isinstance(value, Register) else value


def copies() -> st.SearchStrategy[Contents]:
    """Contents of the two regions of the memory, whose lengths are there, too."""
    address = st.builds(Immediate, st.integers(fetches.TEXT - 9, fetches.TEXT + 511))
    starts = st.one_of(address, st.builds(Register, st.sampled_from(("di", "si"))))
    sizes = st.builds(
        Part, st.just(Register("r8")), st.sampled_from((0, 8, 64)), st.sampled_from((1, 2, 8))
    )
    return st.builds(
        Contents,
        st.builds(Deref, starts, st.integers(0, 300)),
        st.one_of(sizes, st.integers(0, 70), st.sampled_from((700, 9000))),
        st.sampled_from((40, 512, 4096, 9000)),
    )


def _copied(one: Contents, names: dict[str, str]) -> Contents:
    size = one.size
    if isinstance(size, Part):
        assert isinstance(size.base, Register)
        size = size.replaced(base=Register(names[size.base.name]))
    start = _named(one.start, names)
    assert isinstance(start, Deref)
    return one.replaced(start=start, size=size)


def _leads_to(fetch: Fetch, bias: int, image: range) -> bool:
    # Whether it reads there, where the oracle does not know the bytes.
    memory, registers = fetches.memory(_SEED)
    touched = False

    def read(address: int, size: int) -> bytes | None:
        nonlocal touched
        touched = touched or address in image
        return memory.read(address, size)

    evaluate(fetch, State(registers, read, bias, b""))
    return touched


def drawn(lab_kernel: LabKernel, bias: int, image: range) -> list[tuple[tuple[str, Fetch], ...]]:
    """Lists of fetches that the kernel takes, and of contents, each with a name."""
    target = kernel(lab_kernel.release)
    found: list[tuple[tuple[str, Fetch], ...]] = []
    arm = lab_kernel.machine.name == "aarch64"
    names = _ARM if arm else {name: name for name in _GIVEN}

    @settings(max_examples=_PLANS, deadline=None, suppress_health_check=list(HealthCheck))
    @given(
        st.lists(fetches.fetches(bias=bias, longest=3), min_size=20, max_size=40),
        st.lists(fetches.elements(bias=bias), min_size=1, max_size=4),
        st.lists(copies(), min_size=2, max_size=4),
    )
    def draw(listed: list[Fetch], elements: list[Fetch], copied: list[Contents]) -> None:
        sound = [one for one in listed if not verify(one, target) and one.value != Comm()]
        sound = [one for one in (*sound, *elements) if not _leads_to(one, bias, image)]
        if sound and len(found) < _PLANS:
            fields = [one.replaced(value=_named(one.value, names)) for one in sound]
            of_two = [Fetch(_copied(one, names), Text()) for one in copied]
            named = [(f"f{number}", one) for number, one in enumerate([*fields, *of_two])]
            found.append((*named, ("fetchc_comm", Fetch(Comm(), Text()))))

    draw()
    return found


def plans(lab_kernel: LabKernel, program: Path, called: Sequence[Call]) -> list[Plan]:
    """Of each function, all expressions that can be fetched, for the program in the guest."""
    opened = fetchc.open(str(program))
    found: list[Plan] = []
    for one in {one.function: one for one in called}.values():
        function = one.function.removesuffix("%return")
        returns = function != one.function
        probe = opened.probe(function, returns=returns, kernel=lab_kernel.release)
        asked = []
        for text in one.values:
            try:
                asked.append(probe.asked(text))
            except fetchc.CompileError:
                continue
        for start in range(0, len(asked), _TOGETHER):
            some = asked[start : start + _TOGETHER]
            made = probe.plan(some, "fetchc_lab", f"ev{len(found)}")
            lines = [line.replace(f" {program}:", f" {PATH}:") for line in made.definitions]
            found.append(made.replaced(path=PATH, definitions=tuple(lines), identity=""))
    return found


def recursive(lab_kernel: LabKernel, folder: Path) -> tuple[bytes, list[Plan]]:
    """The program of functions that call themselves, and plans of their entries."""
    path, source = folder / "recursive", folder / "recursive.c"
    source.write_text(RECURSIVE)
    flags = ["-O1", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls", "-fno-shrink-wrap"]
    if lab_kernel.machine.name == "x86_64":
        flags.append("-fcf-protection=branch")
    path.write_bytes(built(lab_kernel.machine, source, *flags))
    found = []
    for name in ("pushed", "marked"):
        made = fetchc.open(str(path)).probe(name, kernel=lab_kernel.release)
        plan = made.plan([], "fetchc_lab", name)
        lines = [line.replace(f" {path}:", " /recursive:") for line in plan.definitions]
        found.append(plan.replaced(path="/recursive", definitions=tuple(lines), identity=""))
    return path.read_bytes(), found


def differences(
    records: Sequence[str],
    lab_kernel: LabKernel,
    bias: int,
    lists: Sequence[tuple[tuple[str, Fetch], ...]],
    seed: int,
) -> list[str]:
    """How the records of a guest differ from what the steps say."""
    machine = architecture(lab_kernel.machine.name)
    memory, registers = fetches.memory(seed)
    if lab_kernel.machine.name == "aarch64":
        registers = {_ARM[name]: value for name, value in registers.items()}
    found = []
    for fields, text in zip(lists, records, strict=True):
        steps = steps_of(fields, machine.registers[machine.stack_pointer], machine.result)
        state = State(registers, memory.read, bias, _COMM.encode())
        (*_, room) = text_rooms(steps, bpf_rules(kernel(lab_kernel.release).version)) or (0,)
        found.append(unlike(steps, bytes.fromhex(text), record(steps, state, room)))
    return [one for one in found if one]


def test_the_engines_agree_on_each_kernel(lab_kernel: LabKernel, tmp_path: Path) -> None:
    if reason := why_no_python(lab_kernel):
        pytest.skip(reason)
    machine = lab_kernel.machine
    program = build(machine, tmp_path)
    source, values = tmp_path / "values.c", tmp_path / _COMM
    source.write_text(SOURCE)
    pages = [f"-DDATA={fetches.DATA}", f"-DTEXT={fetches.TEXT & -fetches.PAGE}"]
    values.write_bytes(built(machine, source, *pages))
    offset, bias = probed_offset(values)
    image = range(bias - PAGE_BYTES, bias + 2 * values.stat().st_size)
    lists = drawn(lab_kernel, bias, image)
    memory, registers = fetches.memory(_SEED)
    standard_input = b"".join([registers[name].to_bytes(8, "little") for name in _GIVEN])
    standard_input += b"".join(memory.regions.values())
    itself, walked = recursive(lab_kernel, tmp_path)
    content = {
        **files(lab_kernel),
        "recursive": itself,
        "program": program.read_bytes(),
        _COMM: values.read_bytes(),
        "both_engines.py": (SOURCES / "both_engines.py").read_bytes(),
    }
    with Guest(lab_kernel, content, _SECONDS) as guest:
        # Before Linux 6.0 a program may not sleep, and a page that the kernel moves at that moment
        # is not there: a guest has little memory, and compacts it. Locked pages stay then.
        guest.write("/proc/sys/vm/compact_unevictable_allowed", "0")
        called = calls(guest.run(PATH))
        listed = plans(lab_kernel, program, called)
        entries = [one for one in listed if one.kind == "entry"]
        given = {
            "compared": {"path": PATH, "plans": listed},
            "stacks": {"path": PATH, "plans": entries[:2]},
            "walked": {"path": "/recursive", "plans": walked},
            "recorded": {
                "path": f"/{_COMM}", "offset": offset, "given": standard_input, "fields": lists,
            },
        }  # fmt: skip
        guest.put("/given", pickle.dumps(given))
        shown = guest.run(interpreter(lab_kernel), "/both_engines.py", "/given")
    answer = json.loads(shown.splitlines()[-1])
    assert answer["unable"] is None
    assert set(answer["features"]) == bpf_rules(kernel(lab_kernel.release).version).features
    both = answer["compared"]
    assert both["lost"] == [0, 0]
    assert sum(map(len, both["bpf"].values())) == sum(map(len, both["tracefs"].values())) > 30
    assert both["bpf"] == both["tracefs"]
    for kind, (hits, good) in answer["stacks"].items():
        assert hits == good > 0, kind
    theirs, ours = answer["walked"]
    assert len(ours) == 8
    # After `main` there are no frame pointers: they stop at different places.
    assert [one[: len(two)] for one, two in zip(ours, theirs, strict=True)] == theirs
    # On arm64 tracefs walks no stack of a program in 6.1.
    assert min(len(theirs[3]), len(theirs[7])) > 4 or not any(theirs)
    records = answer["recorded"]
    assert differences(records, lab_kernel, bias, lists, _SEED) == []
    assert differences(records, lab_kernel, bias, lists, _SEED + 1) != []


@pytest.mark.long
def test_the_kernel_counts_what_a_program_gives_it(lab_kernel: LabKernel, tmp_path: Path) -> None:
    if reason := why_no_python(lab_kernel):
        pytest.skip(reason)
    source, calls = named_source(_SEED)
    (tmp_path / "named.c").write_text(source)
    named = built(lab_kernel.machine, tmp_path / "named.c", "-g", "-O1")
    compares = "compare_exchange" in bpf_rules(kernel(lab_kernel.release).version).features
    run = (interpreter(lab_kernel), "-m", "fetchc", "trace", "--format", "jsonl")
    where = ("--engine", "bpf", "-x", "/named", "-f", "take", "--", "/named")
    with Guest(lab_kernel, {**files(lab_kernel), "named": named}, _SECONDS) as guest:
        for words, keys in (
            (("--latency", "--count-by", "e->name,e->tag,e->n,e->k", "--filter",
              'e->name != "a" && e->tag ~ "t*" && $latency >= 0'),
             [(one["name"], one["tag"], one["n"], one["n"] % 3) for one in calls
              if one["name"] != "a" and one["tag"][:1] == "t"]),
            (("-v", "--at", "+0", "--count-by", "e->n,$comm", "--filter",
              '$comm ~ "reader*" && e->f < 0.1'),
             [(one["n"], one["$comm"]) for one in calls
              if one["$comm"].startswith("reader") and one["f"] < 0.1]),
        ):  # fmt: skip
            text = guest.run(*run, *words, *where)
            lines = [json.loads(line) for line in text.splitlines() if line[:1] == "{"]
            assert ("the kernel counts" in text) == (compares and "-v" in words), text
            assert Counter({tuple(one["key"]): one["count"] for one in lines}) == Counter(keys)
