from __future__ import annotations

from pathlib import Path

import pytest

from fetchc.cli import main
from fetchc.driver.check_definitions import check_definition
from fetchc.target.kernel_versions import kernel, previous, turns
from tests.support.cases import CORPUS
from tests.support.selftests import SelfTest, selftests

PROGRAM = CORPUS / "c/layouts/bin/gcc-O2-dwarf5"
VISIT = 0x47E0  # the function's offset in the file: readelf -s, and its segment


def codes(text: str, version: str = "6.12") -> list[tuple[str, int | None]]:
    checked = check_definition(text, kernel(version))
    return [(p.code, p.primary.span.start if p.primary else None) for p in checked.problems]


@pytest.mark.parametrize(
    ("text", "ranges"),
    [
        ("%di", [("3.5", None)]),
        ("+0(%di):string", [("3.14", None)]),
        ("+0(%di):x8[4]", [("4.20", None)]),
        ("%di:symbol", [("4.20", "6.4")]),
        ("$retval", [("3.10", None)]),
        ("+0(" * 9 + "%di" + ")" * 9, [("3.14", "7.2")]),
        ("+0(" * 8 + "%di" + ")" * 8, [("3.14", None)]),
        ("+0(" * 14 + "%di" + ")" * 14, [("3.14", "7.2")]),
        ("+1000000000(" * 6 + "%di" + ")" * 6, [("7.3", None)]),
        ("+0(%di)+8", []),
        ("p:g-x/e /no/such:0x10", [("5.15", None)]),
        ("p:g.e /no/such:0x10", [("5.15", None)]),
        ("p:g/ /no/such:0x10", [("6.0", None)]),
        ("p:g/e /no/such:0x10(0x20)", [("4.20", None)]),
        ("p:g/e /no/such:0x10%return", [("5.10", None)]),
        ("r:g/e /no/such:0x10 $COMM", [("6.0", None)]),
    ],
)
def test_versions_that_accept(text: str, ranges: list[tuple[str, str | None]]) -> None:
    assert list(check_definition(text, kernel("6.12")).ranges) == ranges


@pytest.mark.parametrize(
    ("text", "kind", "ranges"),
    [
        ("p:g/e vfs_read", "kprobe", [("3.5", None)]),
        ("p:g/e vfs_read +0(%di):string", "kprobe", [("3.5", None)]),
        ("p:g/e vfs_read $arg1", "kprobe", [("4.20", None)]),
        ("p:g/e vfs_read+9 $arg1", "kprobe", []),
        ("p:g/e vfs_read c=$current->comm:string", "kprobe", [("7.3", None)]),
        ("r:g/e vfs_read c=+8($current):u32", "kretprobe", [("7.3", None)]),
        ("t:g/e sched_switch $current", "tprobe", [("7.3", None)]),
        ("p:g/e vfs_read c=$current:string", "kprobe", []),
        ("p:g/e vfs_read c=$current.pid", "kprobe", []),
        ("p:g/e vfs_read c=this_cpu_ptr(@runqueues+8)", "kprobe", [("7.3", None)]),
        ("p:g/e vfs_read+4 c=+4(this_cpu_ptr(%di)):u32", "kprobe", [("7.3", None)]),
        ("f:g/e vfs_read c=this_cpu_read(@runqueues):u32", "fprobe", [("7.3", None)]),
        ("e:g/e g.e c=this_cpu_read(@runqueues):u32", "eprobe", []),
        ("p:g/e vfs_read c=(file)$arg1->f_path.dentry->d_inode", "kprobe", [("7.3", None)]),
        ("r:g/e vfs_read c=+0((file,f_path)(%di)->f_flags)", "kretprobe", [("7.3", None)]),
        ("e:g/e sched.sched_switch c=(file)$prev->f_flags", "eprobe", [("7.2", None)]),
        ("p:g/e vfs_read c=(file)$arg1", "kprobe", []),
        ("p:g/e vfs_read $retval", "kprobe", []),
        ("r:g/e vfs_read $retval", "kretprobe", [("3.5", None)]),
        ("r:g/e vfs_read $arg1", "kretprobe", [("6.9", None)]),
        ("r16:g/e vfs_read", "kretprobe", [("4.12", None)]),
        ("r4097:g/e vfs_read", "kretprobe", []),
        ("p:g/e vfs_read%return $retval", "kretprobe", [("5.10", None)]),
        ("p:g/e vfs_read @jiffies:u64", "kprobe", [("3.5", None)]),
        ("p:g/e vfs_read @+8", "kprobe", []),
        ("p:g/e vfs_read file", "kprobe", [("6.5", None)]),
        ("p:g/e vfs_read file->f_flags", "kprobe", [("6.6", None)]),
        ("p:g/e vfs_read $arg2:string", "kprobe", [("6.6", None)]),
        ("p:g/e vfs_read b=$arg2:string", "kprobe", []),
        ("p:g/e vfs_read n=$arg1:%pD", "kprobe", [("6.10", None)]),
        ("p:g/e vfs_read n=%di:symstr", "kprobe", [("6.2", None)]),
        ("p:g/e vfs_read n=%di:symbol", "kprobe", [("4.20", None)]),
        ("p:g/e vfs_read $stack2048", "kprobe", [("3.5", None)]),
        ("p:g/e vfs_read $stack2049", "kprobe", []),
        ("p:g/e vfs_read $arg* $arg*", "kprobe", []),
        ('p:g/e vfs_read a=\\"text"', "kprobe", [("5.4", None)]),
        ("f:g/e vfs_read buf", "fprobe", [("6.5", None)]),
        ("f:g/e vfs_read $retval", "fexit", [("6.5", None)]),
        ("f5:g/e vfs_read%return", "fexit", [("6.5", "6.13")]),
        ("f:g/e vfs_read %di", "fprobe", []),
        ("t:g/e sched_switch prev", "tprobe", [("6.5", None)]),
        ("t:g/e sched_switch $retval", "tprobe", []),
        ("e:g/e sched.sched_switch $prev_pid", "eprobe", [("5.15", None)]),
        ("e:g/e sched.sched_switch $prev_pid if prev_pid > 1", "eprobe", [("6.0", None)]),
        ("e:g/e sched.sched_switch prev_pid", "eprobe", [("7.3", None)]),
        ("e:g/e sched.sched_switch %di", "eprobe", []),
    ],
)
def test_kernel_probes(text: str, kind: str, ranges: list[tuple[str, str | None]]) -> None:
    checked = check_definition(text, kernel("6.12"))
    assert (checked.kind, list(checked.ranges)) == (kind, ranges)
    # Whether the function is there is never known, and said where nothing else is wrong.
    assert [each.code for each in checked.warnings] == ([] if checked.problems else ["FC0606"])


def test_fields_that_some_kernels_misread() -> None:
    line = "e:g/e syscalls.sys_enter_openat file=+0($filename):ustring flags=$flags"
    misreading = "reads one byte of `$filename` if it points to characters"
    for version, misread in (("6.12", False), ("6.18", True), ("7.1", True), ("7.2", False)):
        (warning,) = check_definition(line, kernel(version)).warnings
        assert warning.notes[1:] == ((f"Linux {version} {misreading}",) if misread else ())


def test_a_turn_is_where_a_verdict_can_change() -> None:
    assert turns()[0] == (3, 5)
    assert list(turns()) == sorted(set(turns()))
    assert {(4, 20), (6, 5), (7, 3)} <= set(turns())
    assert [previous(version) for version in ((7, 3), (5, 0), (7, 0))] == [(7, 2), (4, 20), (6, 19)]


def test_every_cause_is_reported_in_its_place() -> None:
    text = "p:g/1e /no/such:0x10 a=+x(%rdi):bool a=$foo:u8[65]"
    assert sorted(codes(text), key=str) == sorted(
        [
            ("FC0503", 4),
            ("FC0101", 23),
            ("FC0512", 26),
            ("FC0507", 32),
            ("FC0207", 37),
            ("FC0201", 39),
            ("FC0505", 47),
        ],
        key=str,
    )


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("+8(%di):symbol[2]", ["FC0507"]),
        ("%di:u8[2", ["FC0101"]),
        ("%di:char[2", ["FC0101", "FC0506"]),
        ("$comm:char[99999999999]", ["FC0505", "FC0507"]),
    ],
)
def test_what_is_reported_beside_an_array_that_means_nothing(text: str, found: list[str]) -> None:
    # Of its elements what is wrong with them, and nothing of what stands in for them: before 6.5
    # the kernel has no `char`.
    problems = check_definition(text, kernel("5.10" if "$" not in text else "6.12")).problems
    assert [problem.code for problem in problems] == found


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "FC0104"),
        ("a=", "FC0104"),
        ("%di %si", "FC0101"),
        ("%di\n", "FC0101"),
        ("p:g/e /x:0x10\n", "FC0101"),
        ("p:g/e /x:0x10 a=%di\0", "FC0101"),
        ("+" * 5000, "FC0102"),
        ("p" + " x" * 40000, "FC0102"),
        ("-:g/e", "FC0101"),
        ("x:g/e vfs_read", "FC0101"),
        ("p:g/e (task_struct)", "FC0206"),
        ("f", "FC0201"),
        ("f:g/e", "FC0206"),
        ("p:g/e /x:main", "FC0206"),
        ("p:g/e /x:" + "9" * 5000, "FC0206"),
        ("\ud800", "FC0101"),
    ],
)
def test_what_is_no_definition(text: str, code: str) -> None:
    checked = check_definition(text, kernel("6.12"))
    assert code in [problem.code for problem in checked.problems]
    assert checked.ranges == ()


def test_deep_and_long_texts_end_soon() -> None:
    assert codes("+0(" * 1300 + "%di" + ")" * 1300)[0][0] == "FC0102"
    deep = "+0(" * 1000 + "%di" + ")" * 1000
    assert {code for code, _ in codes(deep)} == {"FC0502"}


@pytest.mark.parametrize(
    ("offset", "problem", "warning"),
    [
        (VISIT, None, None),
        (VISIT + 3, None, None),  # mov 0x8(%rdi),%eax is 3 bytes long
        (VISIT + 1, "inside one of `visit`", None),
        (0, "no code of", None),
        (1 << 40, "no code of", None),
        (0x1000, None, "is not known"),  # .init has no debug information
    ],
)
def test_the_offset_is_looked_at(offset: int, problem: str | None, warning: str | None) -> None:
    checked = check_definition(f"p:g/e {PROGRAM}:{offset:#x}", kernel("6.12"))
    assert [p.code for p in checked.problems] == (["FC0206"] if problem else [])
    assert [w.code for w in checked.warnings] == (["FC0606"] if warning else [])
    for found in checked.problems + checked.warnings:
        assert (problem or warning or "-") in found.message


def test_a_file_that_is_not_there_or_none(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no program")
    for name in ("missing", "text"):
        checked = check_definition(f"p:g/e {tmp_path}/{name}:0x10", kernel("6.12"))
        assert checked.problems == ()
        assert [w.code for w in checked.warnings] == ["FC0606"]
    assert codes(f"p:g/e {tmp_path}:0x10") == [("FC0206", len("p:g/e "))]


# Errors about what only a running kernel has: its symbols, its instructions, its types.
ONLY_THE_KERNEL = ("BAD_PROBE_ADDR", "BAD_INSN_BNDRY", "NO_BTFARG", "NO_RETVAL", "NOSUP_BTFARG")


@pytest.mark.parametrize("case", selftests(), ids=lambda case: case.text[:40])
def test_the_kernel_s_own_selftests(case: SelfTest) -> None:
    # Arguments at a return came with 6.9: the selftest asks for the kernels before.
    old = case.error == "NOFENTRY_ARGS" and case.text.startswith("r")
    found = codes(case.text, "6.8" if old else "6.12")
    if case.kind == "kprobe":
        warned = check_definition(case.text, kernel("6.12")).warnings
        if case.error in ONLY_THE_KERNEL:
            assert [warning.code for warning in warned] == ([] if found else ["FC0606"])
        else:
            assert bool(found) != case.accepted
            assert case.accepted or case.column in [at for _, at in found]
    elif case.error in ("FILE_NOT_FOUND", "NO_REGULAR_FILE"):
        assert case.error == "FILE_NOT_FOUND" or found == [("FC0206", case.column)]
    elif case.kind == "uprobe" and "/bin/sh" in case.text:
        assert [at for code, at in found if code != "FC0206" or at == case.column] or case.accepted
    else:
        # A lone `$retval` is one of a return probe.
        assert bool(found) != (case.accepted or case.text == "$retval")
        if case.column is not None and case.error not in ("TOO_MANY_OPS", "RETVAL_ON_PROBE"):
            in_line = [at for _, at in codes(f"p:g/e /no:0x1 {case.text}")]
            assert case.column + len("p:g/e /no:0x1 ") in in_line


def test_the_command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    assert main(["check", "--kernel", "6.1", "--", "-8(%di):u8"]) == 0
    assert main(["check", "--kernel", "6.1", "--expr=-8(%di):char"]) == 1
    assert main(["check", "--kernel", "6.1"]) == 2
    printed = capsys.readouterr()
    assert printed.out.splitlines() == [
        "ok for 6.1, accepted from 3.14",
        "refused for 6.1, accepted from 6.5",
    ]
    assert "error[FC0506]: Linux 6.1 does not know `char`" in printed.err
