"""What pages of the kernel's ring buffer are made of, as Linux 6.18 describes them."""

from __future__ import annotations

import struct

__all__ = ["EVENT", "PAGE", "word"]

PAGE = """\
\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;
\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;
\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;
\tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;
"""
EVENT = """\
# compressed entry header
\ttype_len    :    5 bits
\ttime_delta  :   27 bits
\tarray       :   32 bits

\tpadding     : type == 29
\ttime_extend : type == 30
\ttime_stamp  : type == 31
\tdata max type_len  == 28
"""


def word(kind: int, delta: int) -> bytes:
    """The first word of a record: its type or length, and the time since the one before."""
    return struct.pack("<I", kind | delta << 5)
