"""What a refusal takes from the verifier's log: its last words, and the instruction it means."""

from __future__ import annotations

import ctypes
import errno
import os
import struct

import pytest

from fetchc.emit.bpf_steps import Code
from fetchc.target.bpf_rules import bpf_machine
from fetchc.tracer.bpf.system_calls import Bpf, ProgramRefused

FOLLOWED = [
    "func#0 @0",
    "0: R1=ctx() R10=fp0",
    "0: (bf) r6 = r1",
    "1: (79) r2 = *(u64 *)(r6 +4096)",
]
ENDED = [*FOLLOWED, "invalid bpf_context access", "processed 2 insns (limit 1000000)"]


@pytest.mark.parametrize(
    ("error", "log", "said", "instruction"),
    [
        (errno.EACCES, ENDED, "invalid bpf_context access", 1),
        (errno.EINVAL, ["func#0 @0", "unreachable insn 7", "processed 0 insns"],
         "unreachable insn 7", 7),
        (errno.EINVAL, [], os.strerror(errno.EINVAL), None),
    ],
)  # fmt: skip
def test_the_last_words_and_their_instruction(
    error: int, log: list[str], said: str, instruction: int | None
) -> None:
    refused = ProgramRefused(OSError(error, ""), log)
    assert (refused.said, refused.instruction) == (said, instruction)


class Verifier(Bpf):
    """Refuses each program, with a log that is ``longer`` than so many rooms.

    ``rotates``: a room has the end of what is longer, as from Linux 6.4 on; before, its beginning.
    """

    def __init__(self, longer: int, rotates: bool) -> None:
        machine = bpf_machine("x86_64")
        assert machine is not None
        super().__init__(machine)
        self.left, self.rotates = longer, rotates
        self.rooms: list[int] = []

    def _bpf(self, command: int, attributes: bytes) -> int:
        level, size, place = struct.unpack_from("=IIQ", attributes, 24)
        if not level:
            raise OSError(errno.EACCES, "")
        self.rooms.append(size)
        self.left -= 1
        fits = self.left < 0
        lines = ENDED if fits else ENDED[2:] if self.rotates else FOLLOWED
        log = "\n".join(lines).encode() + b"\n\0"
        ctypes.memmove(place, log, len(log))
        raise OSError(errno.EACCES if fits else errno.ENOSPC, "")


@pytest.mark.parametrize(
    ("longer", "rotates", "said", "instruction"),
    [
        (0, False, "invalid bpf_context access", 1),
        (1, True, "invalid bpf_context access", 1),
        (1, False, "invalid bpf_context access", 1),  # in the second room
        (2, False, os.strerror(errno.EACCES), None),  # the refusal, and not that of the log
    ],
)
def test_a_long_log_does_not_hide_the_refusal(
    longer: int, rotates: bool, said: str, instruction: int | None
) -> None:
    verifier = Verifier(longer, rotates)
    with pytest.raises(ProgramRefused) as refused:
        verifier.load(Code((), ()))
    assert (refused.value.said, refused.value.instruction) == (said, instruction)
    assert len(verifier.rooms) == (1 if rotates else 1 + min(longer, 1))
    assert verifier.rooms == sorted(set(verifier.rooms))
