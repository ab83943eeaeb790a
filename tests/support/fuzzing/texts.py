"""Bases that are lines of text, and records of the kernel with what tells their layout."""

from __future__ import annotations

import json
import struct

from tests.support.ring_pages import EVENT, PAGE, word

__all__ = ["BATCH", "DEFINITIONS", "PERF_MAP", "formats"]

DEFINITIONS = rb"""p:srv/req corpus/c/layouts/bin/gcc-O2-dwarf5:0x47e0 v=+8(%di):s32 c=+u0(%si):char
p:fetchc_go1_27/handleRequest /bin/true:0x80f46 name=+0(+0(+40(%di))):x64[32] n=+8(+40(%di)):s64
r:g/e /bin/true:0x100 $retval:x64 $comm:string @+8:u8 \1:s32
p:kprobes/open do_sys_open dfd=%ax filename=+0(%si):ustring mode=+4($stack):b3@2/32
f:fprobes/vfs_read vfs_read%return file=$arg1 count=+0(+8(%di)):symbol ret=$retval
t:tp/sw sched_switch prev=$arg2 x=+u8($arg1):string[4]
e:ep/open syscalls.sys_enter_openat file=$filename:ustring flags=$flags:x32
-:g/e
v=+0(+0(+0(+0(+0(+0(+0(+0(%di)))))))) w=\"text":string z=@symbol+8:s8 a=%di:%pd
p /bin/true:0x100(0x3000) %ax:u8[65] %bx:b65@0/64 $stack99 $argx +0x7fffffff(%sp):s16
"""

BATCH = "".join(
    json.dumps(one) + "\n"
    for one in (
        {"binary": "program", "function": "visit", "expressions": ["r->next", "n"], "id": 1},
        {"binary": "program", "function": "visit", "expressions": ["*r"], "kernel": "6.1",
         "at": "+0x9", "return": False, "id": "two", "reference": ["."], "debug_dir": None},
        {"binary": "missing", "function": "visit", "expressions": ["r"], "debug_file": "program"},
        {"expressions": ["counter @ visit"], "binary": "program", "id": 1.5},
        {"binary": "program", "function": "visit", "expressions": [], "return": True},
        [1, 2, {"binary": "\ud800"}],
    )
).encode()  # fmt: skip

PERF_MAP = b"""00007FA182C40078 48 int32 [echo] Prog::calculateEchoValue(string)[QuickJitted]
0x7fa182c40078 48 int32 [echo] Prog::calculateEchoValue(string)[OptimizedTier1]
7fa182c40178 0x48  void [app] A.B::.ctor()[PreJIT]
7fa182c41000 1000 stub<1> AllocateTemporaryEntryPoints<ALLOC>
"""


def pages() -> bytes:
    """A page of the ring buffer with records of all kinds."""

    def record(size: int, delta: int) -> bytes:
        return word(size // 4, delta) + struct.pack("<HBBi", 7, 0, 0, 100) + bytes(size - 8)

    long = struct.pack("<HBBi", 7, 0, 0, 101) + bytes(192)
    data = record(24, 3) + record(112, 9) + word(30, 5) + struct.pack("<I", 1) + record(8, 1)
    data += word(0, 2) + struct.pack("<I", len(long) + 4) + long
    data += word(31, 77) + struct.pack("<I", 9) + record(16, 4)
    data += word(29, 6) + struct.pack("<I", 12) + bytes(8) + record(8, 2)
    data += word(29, 0) + bytes(4)
    return (struct.pack("<QQ", 5_000_000_000, len(data)) + data).ljust(4096, b"\xff")


STACK = """name: user_stack
ID: 7
format:
\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;
\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;
\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;

\tfield:unsigned int tgid;\toffset:8;\tsize:4;\tsigned:0;
\tfield:unsigned long caller[8];\toffset:16;\tsize:64;\tsigned:0;
"""
EVENT_FORMAT = """name: handle
ID: 1234
format:
\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;
\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;

\tfield:unsigned long __probe_ip;\toffset:8;\tsize:8;\tsigned:0;
\tfield:__data_loc char[] name;\toffset:16;\tsize:4;\tsigned:1;
\tfield:__data_loc char[][2] s;\toffset:20;\tsize:8;\tsigned:1;
\tfield:s32 n[4];\toffset:28;\tsize:16;\tsigned:1;
\tfield:u64 rows[];\toffset:48;\tsize:32;\tsigned:0;

print fmt: "(%lx) name=%s", REC->__probe_ip, __get_str(name)
"""


def formats() -> dict[str, bytes]:
    """Texts of the kernel that tell what records are."""
    layout = PAGE + "===\n" + EVENT
    return {
        "format": STACK.encode(), "event": EVENT_FORMAT.encode(), "layout": layout.encode(),
        "page": pages(),
    }  # fmt: skip
