"""Definitions of kernel probes to ask kernels about: random ones, and some of every kind.

All are of functions and events that kernels from 5.10 on have: ``vfs_read(file, buf, count,
pos)``, the tracepoint ``sched_switch``, the event ``syscalls.sys_enter_openat``.
"""

from __future__ import annotations

from hypothesis import strategies as st

from tests.support.verdict_texts import (
    ARRAYS,
    LONG,
    NAMES,
    OPENINGS,
    TYPES,
    WRONG_ARRAYS,
    WRONG_NAMES,
    WRONG_OPENINGS,
    WRONG_TYPES,
)

# The file of tracefs that takes a line, by its letter.
FILES = {"p": "kprobe_events", "r": "kprobe_events"}
OTHERS = "dynamic_events"

_ALL = ["$comm", "$COMM", "\\1", "\\-1", '\\"text"', "@linux_banner", "@linux_banner+8", "@0x1000"]
_STACK = ["$stack", "$stack3", "$stack2048"]
_WRONG = ["$stack2049", "$stackx", "$foo", "@+8", "@", "@-8", "@linux_banner+x", "\\x", "8", "*di"]
_WRONG += ["$retvalx", "$argx", "$arg", "$arg0", "$arg2049", "$arg*", '\\"text', "file-buf", "_x y"]
_FUNCTION = [
    "$arg1",
    "$arg2",
    "$arg4",
    "file",
    "buf",
    "count",
    "file->f_flags",
    "file->f_path.dentry",
]
BASES = {
    "p:{g}/e vfs_read": [*_ALL, *_STACK, *_FUNCTION, "%di", "%ax"],
    "p:{g}/e vfs_read+9": [*_ALL, *_STACK, "%di", "%sp"],
    "r:{g}/e vfs_read": [*_ALL, *_STACK, *_FUNCTION, "%ax", "$retval"],
    "p:{g}/e vfs_read%return": [*_ALL, "%ax", "$retval"],
    "f:{g}/e vfs_read": [*_ALL, *_STACK, *_FUNCTION],
    "f:{g}/e vfs_read%return": [*_ALL, *_FUNCTION, "$retval"],
    "t:{g}/e sched_switch": [*_ALL, *_STACK, "$arg1", "$arg2", "prev", "prev->pid", "next->comm"],
    "e:{g}/e syscalls.sys_enter_openat": [*_ALL, "$filename", "$dfd", "$flags"],
}
_KERNEL_TYPES = [":symbol", ":symstr", ":%pd", ":%pD", ":string", ":ustring"]


def written(head: str) -> st.SearchStrategy[str]:
    """A line with one or two fetch-args after ``head``, a key of ``BASES``."""
    elsewhere = sorted({base for bases in BASES.values() for base in bases} - set(BASES[head]))

    @st.composite
    def argument(draw: st.DrawFn) -> str:
        def piece(right: list[str], wrong: list[str]) -> str:
            chosen = draw(st.integers(0, 8))
            return draw(st.sampled_from(wrong if chosen == 0 else right))

        name = piece(["", *NAMES], WRONG_NAMES)
        levels = draw(st.sampled_from([0, 0, 0, 1, 1, 2, 3]))
        opened = "".join([piece(OPENINGS, WRONG_OPENINGS) for _ in range(levels)])
        kind = piece(["", "", *TYPES, *_KERNEL_TYPES], WRONG_TYPES)
        array = piece(["", "", "", *ARRAYS], WRONG_ARRAYS) if kind else ""
        base = piece(BASES[head], [*_WRONG, *elsewhere]).replace(" ", "")
        return f"{name}{opened}{base}{')' * levels}{kind}{array}"

    lists = st.lists(argument(), min_size=1, max_size=2)
    return lists.map(lambda words: " ".join([head.format(g="fetchc_lab"), *words]))


LINES = [
    "p:{g}/e vfs_read",
    "p vfs_read",
    "r vfs_read",
    "p:{g}/ vfs_read",
    "p:/e vfs_read",
    "p: vfs_read",
    "p:{g}/1e vfs_read",
    "p:1{g}/e vfs_read",
    f"p:{{g}}/{LONG} vfs_read",
    f"p:{LONG}/e vfs_read",
    "p100:{g}/e vfs_read",
    "r100:{g}/e vfs_read",
    "r4096:{g}/e vfs_read",
    "r4097:{g}/e vfs_read",
    "r0:{g}/e vfs_read",
    "r1a111:{g}/e vfs_read",
    "r100000 vfs_read",
    "p:{g}/e vfs_read+0 $arg1",
    "p:{g}/e vfs_read+9 $arg1",
    "p:{g}/e vfs_read+0x9 %di",
    "p:{g}/e vfs_read-5",
    "p:{g}/e vfs_read+x",
    "p:{g}/e hoge-fuga",
    "p:{g}/e hoge+1000-1000",
    "p:{g}/e no_such_function",
    "r:{g}/e vfs_read+0",
    "r:{g}/e vfs_read+10",
    "p:{g}/e vfs_read+10%return",
    "p:{g}/e vfs_read%return $retval",
    "p:{g}/e vfs_read%hoge",
    "p:{g}/e vfs_read $retval",
    "p:{g}/e vfs_read $arg*",
    "p:{g}/e vfs_read $arg* $arg*",
    "p:{g}/e vfs_read a=$arg*",
    "p:{g}/e vfs_read +0($arg*)",
    "r:{g}/e vfs_read $arg*",
    "p:{g}/e vfs_read+20 $arg*",
    "p:{g}/e vfs_read hoge",
    "p:{g}/e kfree $arg10",
    "r:{g}/e kfree $retval",
    "p:{g}/e vfs_read file file",
    "p:{g}/e vfs_read file->f_path.dentry->d_name.name:string",
    "r:{g}/e vfs_open path->dentry",
    "p:{g}/e vfs_read file.f_flags",
    "p:{g}/e vfs_read $arg1:%pD",
    "p:{g}/e vfs_read +0(+0(+0(+0(+0(+0(+0(+0(+0(+0(+0(+0($arg1)))))))))))):%pd",
    "p:{g}/e vfs_read +0(+0(+0(+0(+0(+0(+0(+0(+0(+0(+0($arg1))))))))))):%pd",
    "p:{g}/e vfs_read +0(+0(+0(+0(+0(+0($arg1)))))):%pd",
    "p:{g}/e vfs_read $arg1:%pD[2]",
    "p:{g}/e vfs_read " + " ".join([f"a{n}=%di" for n in range(128)]),
    "p:{g}/e vfs_read " + " ".join([f"a{n}=%di" for n in range(129)]),
    "p:{g}/e vfs_read " + " ".join([f"a{n}=+0(%di):u64[64]" for n in range(6)]),
    "p:{g}/e vfs_read " + " ".join([f"a{n}=+0(%di):u64[64]" for n in range(7)]),
    "p:{g}/e vfs_read a=" + "+0(" * 14 + "%di" + ")" * 14,
    "p:{g}/e vfs_read a=" + "+0(" * 9 + "%di" + ")" * 9,
    "p:{g}/e vfs_read a=" + "+0(" * 8 + "%di" + ")" * 8,
    "f:{g}/e vfs_read",
    "f vfs_read",
    "f:{g}/e vfs_read%return",
    "f:{g}/e vfs_read $retval",
    "f:{g}/e vfs_read+10",
    "f:{g}/e vfs_read%hoge",
    "f:{g}/e no_such_function",
    "f100:{g}/e vfs_read",
    "f100:{g}/e vfs_read%return",
    "f:{g}/e vfs_read %di",
    "t:{g}/e sched_switch $arg*",
    "t:{g}/e sched_switch",
    "t sched_switch",
    "t:{g}/e sched:sched_switch",
    "t:{g}/e no_such_tracepoint",
    "t:{g}/e sched_switch%return",
    "t:{g}/e sched_switch $retval",
    "e:{g}/e syscalls.sys_enter_openat",
    "e:{g}/e syscalls/sys_enter_openat",
    "e syscalls.sys_enter_openat $dfd",
    "e:{g}/e sys_enter_openat",
    "e:{g}/e syscalls.no_such_event",
    "e:{g}/e syscalls.sys_enter_openat $no_such_field",
    "e:{g}/e syscalls.sys_enter_openat dfd",
    "e:{g}/e syscalls.sys_enter_openat $dfd if dfd == 3",
    "e:{g}/e syscalls.sys_enter_openat $dfd if",
    "e:{g}/e syscalls.sys_enter_openat %di",
    "e:{g}/e syscalls.sys_enter_openat $arg1",
    "e:{g}/e syscalls.sys_enter_openat $stack",
    "e:{g}/e syscalls.sys_enter_openat $retval",
]


def file_of(line: str) -> str:
    """The file of tracefs that the line is for."""
    return FILES.get(line[:1], OTHERS)
