"""Probe points of a kernel by their means: functions, tracepoints, events, and its variables."""

from __future__ import annotations

from pathlib import Path

import pytest

import fetchc
from fetchc.check.probe_site import Site
from fetchc.check.variable_places import kernel_argument
from fetchc.debuginfo.btf.kernel_program import BtfProgram
from fetchc.program.entities import Absent
from fetchc.target.machines import architecture
from tests.support.btfwriter import BtfWriter

POINTER, ARRAY = 2, 3


@pytest.fixture
def kernel(tmp_path: Path) -> fetchc.Program:
    w = BtfWriter()
    number = w.integer("int", 4, 1)
    long = w.integer("unsigned long", 8)
    letter = w.integer("char", 1, 1)
    comm = w.type(ARRAY, "", 0, letter, number, 16)
    text = w.type(POINTER, "", letter)
    task = w.struct("task_struct", 64, ("pid", number, 0), ("comm", comm, 64), ("next", text, 256))
    there = w.type(POINTER, "", task)
    w.function("wake", number, ("who", there), ("count", long), ("name", text))
    seven = [(f"a{at}", long) for at in range(7)]
    w.function("many", 0, *seven)
    data = w.type(POINTER, "", 0)
    w.function("__probestub_switch", 0, ("__data", data), ("prev", there), ("reason", number))
    w.function("__traceiter_switch", 0, ("__data", data), ("other", there))
    entry = w.struct("trace_entry", 8, ("pid", number, 32))
    w.struct(
        "trace_event_raw_switch",
        64,
        ("ent", entry, 0),
        ("comm", comm, 64),
        ("pid", number, 192),
        ("path", text, 256),
        ("__data_loc_label", number, 320),
        ("__data", w.type(ARRAY, "", 0, letter, number, 0), 352),
    )
    path = tmp_path / "vmlinux.btf"
    path.write_bytes(w.bytes())
    return fetchc.open(str(path))


def line(
    kernel: fetchc.Program, function: str, *texts: str, version: str = "6.12", returns: bool = False
) -> str:
    probe = kernel.probe(function, kernel=version, returns=returns)
    return probe.definition([probe.compile(text) for text in texts], "g", "e")


def refused(kernel: fetchc.Program, function: str, *texts: str, **how: object) -> str:
    with pytest.raises(fetchc.CompileError) as refusal:
        line(kernel, function, *texts, **how)  # type: ignore[arg-type]
    return refusal.value.diagnostics[0].code


def test_a_function_by_fprobe(kernel: fetchc.Program) -> None:
    assert line(kernel, "kprobe:wake", "who->pid") == "p:g/e wake who_pid=+0(%di):s32"
    found = line(kernel, "fprobe:wake", "who->pid", "count", "n=name", "x=$arg2")
    entered = "who_pid=+0($arg1):s32 count=$arg2:u64 n=+0($arg3):string x=$arg2:u64"
    assert found == f"f:g/e wake {entered}"
    found = line(kernel, "fprobe:wake", "count", "r=$retval", returns=True)
    assert found == "f:g/e wake%return count=$arg2:u64 r=$retval:s32"


def test_parameters_at_the_return(kernel: fetchc.Program) -> None:
    expected = "r:g/e wake count=$arg2:u64 pid=+0($arg1):s32 r=$retval:s32"
    texts = ("count", "pid=who->pid", "r=$retval")
    assert line(kernel, "wake", *texts, returns=True) == expected
    assert line(kernel, "kretprobe:wake", *texts) == expected
    assert refused(kernel, "wake", "count", returns=True, version="6.8") == "FC0506"


def test_what_is_in_no_register_has_no_number(kernel: fetchc.Program) -> None:
    assert line(kernel, "fprobe:many", "a5").endswith("a5=$arg6:u64")
    assert refused(kernel, "fprobe:many", "a6") == "FC0404"
    assert refused(kernel, "fprobe:many", "$arg7") == "FC0404"
    assert refused(kernel, "fprobe:wake", "%di") == "FC0507"
    assert refused(kernel, "fprobe:wake", "count", version="6.4") == "FC0506"
    assert refused(kernel, "rawtracepoint:switch", "$arg6") == "FC0404"  # one is hidden


def test_a_tracepoint_hides_its_first_argument(kernel: fetchc.Program) -> None:
    expected = "t:g/e switch pid=+0($arg1):s32 reason=$arg2:s32"
    for name in ("switch", "sched:switch"):
        assert line(kernel, f"rawtracepoint:{name}", "pid=prev->pid", "reason") == expected
    assert refused(kernel, "rawtracepoint:switch", "other") == "FC0201"
    assert refused(kernel, "rawtracepoint:none", "x") == "FC0202"
    assert refused(kernel, "rawtracepoint:switch", "reason", returns=True) == "FC0206"


def test_an_event_has_fields(kernel: fetchc.Program) -> None:
    found = line(kernel, "tracepoint:sched:switch", "comm", "id=pid", "p=path", "t=$comm")
    fields = "comm_=$comm:string id=$pid:s32 p=+0($path):string t=$COMM:string"
    assert found == f"e:g/e sched.switch {fields}"
    assert refused(kernel, "tracepoint:sched:switch", "path", version="6.18") == "FC0507"
    assert refused(kernel, "tracepoint:sched:switch", "label") == "FC0406"
    assert refused(kernel, "tracepoint:sched:switch", "$arg1") == "FC0401"
    assert refused(kernel, "tracepoint:sched:switch", "%di") == "FC0507"
    assert refused(kernel, "tracepoint:sched:switch", "comm", version="5.14") == "FC0506"
    assert refused(kernel, "tracepoint:sched:none", "x") == "FC0202"
    assert refused(kernel, "tracepoint:sched", "x") == "FC0202"
    assert refused(kernel, "kfunc:wake", "x") == "FC0202"


def test_machines_that_do_not_number_arguments(kernel: fetchc.Program) -> None:
    site = kernel.probe("fprobe:wake", kernel="6.12")._found.site
    assert not isinstance(kernel_argument(site, 1, 6), Absent)
    other = Site(
        site.program, architecture("arm"), site.language, site.function, site.address, True, False,
        means="fprobe",
    )  # fmt: skip
    assert isinstance(kernel_argument(other, 1, 4), Absent)


def test_variables_of_the_kernel(kernel: fetchc.Program) -> None:
    found = line(kernel, "wake", "jiffies", "c=init_task.comm", "n=init_task.next", "a=avenrun[1]")
    assert found == (
        "p:g/e wake jiffies=@jiffies:u64 c=@init_task+8:string n=+0(@init_task+32):string "
        "a=@avenrun+8:u64"
    )
    (warning,) = kernel.probe("wake", kernel="6.12").compile("jiffies").warnings
    assert warning.code == "FC0606"
    assert refused(kernel, "wake", "&jiffies") == "FC0405"
    assert refused(kernel, "wake", "no_such_variable") == "FC0201"


def test_listings_by_means(kernel: fetchc.Program) -> None:
    assert list(kernel.functions("rawtracepoint:*")) == ["rawtracepoint:switch"]
    assert list(kernel.functions("fprobe:wa*")) == ["fprobe:wake"]
    assert list(kernel.functions("tracepoint:*")) == []  # BTF names no groups
    assert list(kernel.functions("other:*")) == []
    assert "wake" in list(kernel.functions())
    (one,) = kernel.described("rawtracepoint:switch")
    assert one["signature"] == "rawtracepoint:switch(struct task_struct * prev, int reason)"


FORMAT = """\
name: example
ID: 7
format:
\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;

\tfield:char comm[16];\toffset:8;\tsize:16;\tsigned:0;
\tfield:int dfd;\toffset:24;\tsize:8;\tsigned:0;
\tfield:const char * path;\toffset:32;\tsize:8;\tsigned:0;
\tfield:struct task_struct * task;\toffset:40;\tsize:8;\tsigned:0;
\tfield:__data_loc char[] label;\toffset:48;\tsize:4;\tsigned:0;
\tfield:__data_loc u64[] numbers;\toffset:52;\tsize:4;\tsigned:0;
\tfield:strange_t other;\toffset:56;\tsize:2;\tsigned:1;
\tfield:const char *const * argv;\toffset:64;\tsize:8;\tsigned:0;
\tfield:unsigned long args[6];\toffset:72;\tsize:48;\tsigned:0;
\tfield:unsigned int pair[2];\toffset:120;\tsize:8;\tsigned:0;

print fmt: "x"
"""


def test_fields_that_the_running_kernel_tells_of(
    kernel: fetchc.Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = kernel._program
    assert isinstance(program, BtfProgram)
    for group in ("syscalls", "sched"):
        folder = tmp_path / "events" / group / "example"
        folder.mkdir(parents=True)
        (folder / "format").write_text(FORMAT)
    (tmp_path / "available_events").write_text("sched:example\nsyscalls:example\n")
    monkeypatch.setattr("fetchc.debuginfo.btf.event_formats.TRACEFS", ("/none", str(tmp_path)))
    program.running = True
    assert list(kernel.functions("tracepoint:sy*")) == ["tracepoint:syscalls:example"]
    texts = ("c=comm", "dfd", "p=path", "l=label", "other", "t=task->pid")
    expected = "c=$comm:string dfd=$dfd:s32 p=+0($path):string l=$label:string other=$other:s16"
    found = line(kernel, "tracepoint:sched:example", *texts)
    assert found == f"e:g/e sched.example {expected} t=+0($task):s32"
    found = line(kernel, "tracepoint:syscalls:example", *texts)  # the program's own memory
    expected = expected.replace("($path):string", "($path):ustring")
    assert found == f"e:g/e syscalls.example {expected} t=+u0($task):s32"
    assert refused(kernel, "tracepoint:sched:example", "numbers") == "FC0406"
    assert refused(kernel, "tracepoint:sched:none", "x") == "FC0202"
    # Pointers to pointers, and arrays: those of a word are numbers, longer ones addresses.
    some = ("a=argv[1]", "one=args[1]", "all=args", "low=pair[0]", "high=pair[1]")
    found = line(kernel, "tracepoint:syscalls:example", *some, version="6.17")
    expected = "a=+0(+u8($argv)):ustring one=+8($args):u64 all=+0($args):u64[6]"
    pair = "low=$pair:u32 high=$pair:b32@32/64"
    assert found == f"e:g/e syscalls.example {expected} {pair}"
    assert line(kernel, "tracepoint:sched:example", *some[3:]).endswith(pair)
    assert refused(kernel, "tracepoint:sched:example", "args[1]", version="6.16") == "FC0506"


def test_a_number_in_structures_of_one_member(tmp_path: Path) -> None:
    w = BtfWriter()
    number = w.integer("int", 4, 1)
    counted = w.struct("", 4, ("counter", number, 0))
    count = w.struct("refcount_t", 4, ("refs", counted, 0))
    both = w.struct("both", 8, ("first", counted, 0), ("second", counted, 32))
    object = w.struct("object", 16, ("count", count, 0), ("both", both, 64))
    w.function("get", number, ("o", w.type(POINTER, "", object)))
    (tmp_path / "vmlinux.btf").write_bytes(w.bytes())
    probe = fetchc.open(str(tmp_path / "vmlinux.btf")).probe("get", kernel="6.12")
    for text, member in (("o->count", "refs.counter"), ("o->both", "first")):
        with pytest.raises(fetchc.CompileError) as refusal:
            probe.compile(text)
        assert f"as in `.{member}`;" in str(refusal.value.diagnostics[0].help)
    assert probe.compile("o->count.refs.counter").fetcharg == "+0(%di):s32"


SYSTEM_CALLS = ("sys_example", "__do_sys_example", "__x64_sys_example", "SyS_example")


@pytest.mark.parametrize("name", [*SYSTEM_CALLS, "sys_none", "sys", "resys_example"])
def test_a_system_call_by_a_name_of_its_source(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    w = BtfWriter()
    number = w.integer("int", 4, 1)
    for each in ("__ia32_sys_example", "__arm64_sys_example", "__arm64_sys_examples"):
        w.function(each, number, ("regs", number))
    (tmp_path / "vmlinux.btf").write_bytes(w.bytes())
    kernel = fetchc.open(str(tmp_path / "vmlinux.btf"))
    program = kernel._program
    assert isinstance(program, BtfProgram)

    def definition() -> str:
        with pytest.raises(fetchc.CompileError) as refusal:
            kernel.probe(name, kernel="6.12")
        return str(refusal.value.diagnostics[0].help)

    registers = "it is `__arm64_sys_example`, which has the caller's registers: `regs`"
    assert (definition() == registers) == (name in SYSTEM_CALLS)
    folder = tmp_path / "events" / "syscalls" / "sys_enter_example"
    folder.mkdir(parents=True)
    (folder / "format").write_text(FORMAT)
    monkeypatch.setattr("fetchc.debuginfo.btf.event_formats.TRACEFS", (str(tmp_path),))
    program.running = True
    event = "`-f tracepoint:syscalls:sys_enter_example`, before Linux 5.15 `__arm64_sys_example`"
    assert definition().endswith(event) == (name in SYSTEM_CALLS)


def test_a_bpf_program_reads_the_record_itself(kernel: fetchc.Program) -> None:
    texts = ("comm", "path")
    for version in ("6.18", "5.10"):
        probe = kernel.probe("tracepoint:sched:switch", kernel=f"{version}/bpf")
        made = probe.written("bpftrace", [probe.compile(text) for text in texts]).text
        assert "args.comm" in made
        assert "str((uint64)args.path)" in made
    assert refused(kernel, "tracepoint:sched:switch", "path", version="6.18") == "FC0507"
    assert refused(kernel, "wake", "comm", version="6.18/perf") == "FC0506"


def test_what_a_definition_mangles_is_for_ebpf_whatever_else_has_no_limit(
    kernel: fetchc.Program,
) -> None:
    for version, alone in (("6.12", False), ("6.18", True)):
        for rules in (version, f"{version}/bpf"):
            plan = kernel.probe("tracepoint:sched:switch", kernel=rules).plan(["path"], "g")
            assert (plan.ebpf_alone is not None) == alone, rules


def test_the_task_that_runs(kernel: fetchc.Program) -> None:
    texts = ("pid=$current->pid", "next=$current->next", "where=$current")
    for point in ("wake", "fprobe:wake", "rawtracepoint:switch"):
        assert line(kernel, point, *texts, version="7.3").endswith(
            " pid=+0($current):s32 next=+0(+32($current)):string where=$current:x64"
        )
    assert refused(kernel, "wake", "$current->pid", version="6.12") == "FC0506"
    assert refused(kernel, "tracepoint:sched:switch", "$current->pid", version="7.3") == "FC0507"
    with pytest.raises(fetchc.CompileError, match="FC0201") as refusal:
        line(kernel, "wake", "current->pid", version="7.3")
    assert "`$current`" in str(refusal.value.diagnostics[0].help)
    (road,) = kernel.probe("wake", kernel="7.3").explain("+0($current):s32").fetches
    assert [hop.expression for hop in road.hops] == ["$current", "$current->pid"]


def test_what_is_explained(kernel: fetchc.Program) -> None:
    def kinds(function: str, text: str) -> list[str]:
        (road,) = kernel.probe(function, kernel="6.12").explain(text).fetches
        return [hop.kernel for hop in road.hops]

    assert kinds("wake", "init_task.next") == [
        "load 8 bytes of symbol init_task",
        "load string at +0",
    ]
    assert kinds("fprobe:wake", "who->pid") == ["a parameter", "load s32 at +0"]
    assert kinds("fprobe:wake", "+0($arg1):s32") == ["a parameter", "load s32 at +0"]
    assert kinds("tracepoint:sched:switch", "+0($path):string")[1] == "load string at +0"
    with pytest.raises(fetchc.CompileError, match="FC0507"):
        kernel.probe("fprobe:wake", kernel="6.12").explain("+0(%di):s32")


@pytest.mark.parametrize(
    ("point", "expected"),
    [
        ("kprobe:wake%return", "r:g/e wake c=$comm"),
        ("kretprobe:wake%return", "r:g/e wake c=$comm"),
        ("fprobe:wake%return", "f:g/e wake%return c=$comm"),
        ("kprobe:wake+8", "p:g/e wake+0x8 c=$comm"),
        ("wake+0x8", "p:g/e wake+0x8 c=$comm"),
        ("kprobe:wake+0", "p:g/e wake c=$comm"),
    ],
)
def test_points_behind_the_means(kernel: fetchc.Program, point: str, expected: str) -> None:
    assert line(kernel, point, "c=$comm") == expected
    argument = kernel.argument(f"c=$comm @ {point}", kernel="6.12")
    assert argument.probe.definition([argument], "g", "e") == expected


def test_an_fprobe_has_no_points_within(kernel: fetchc.Program) -> None:
    assert refused(kernel, "fprobe:wake+8", "$comm") == "FC0206"
    assert refused(kernel, "kretprobe:wake+8", "$comm") == "FC0206"


def test_one_function_by_two_means_is_two_probes(kernel: fetchc.Program) -> None:
    assert kernel.probe("wake").key != kernel.probe("fprobe:wake").key
    assert kernel.probe("wake").key == kernel.probe("kprobe:wake").key


@pytest.mark.parametrize(
    ("name", "help"),
    [
        ("k:vfs_read", "write `kprobe:vfs_read`"),
        ("kfunc:vfs_read", "write `fprobe:vfs_read`"),
        ("dump_emit:0", "name a function alone: `vfs_read`"),
        ("x:switch", "an event is written with its kind: `tracepoint:x:switch`"),
    ],
)
def test_what_other_tools_write_before_a_colon(
    kernel: fetchc.Program, name: str, help: str
) -> None:
    with pytest.raises(fetchc.CompileError) as refusal:
        kernel.probe(name)
    assert refusal.value.diagnostics[0].help == help
