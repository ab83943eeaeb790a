"""What a refusal takes from the verifier's log: its last words, and the instruction it means."""

from __future__ import annotations

import errno
import os

import pytest

from fetchc.tracer.bpf.system_calls import ProgramRefused

FOLLOWED = [
    "func#0 @0",
    "0: R1=ctx() R10=fp0",
    "0: (bf) r6 = r1",
    "1: (79) r2 = *(u64 *)(r6 +4096)",
]


@pytest.mark.parametrize(
    ("error", "log", "said", "instruction"),
    [
        (errno.EACCES, [*FOLLOWED, "invalid bpf_context access", "processed 2 insns"],
         "invalid bpf_context access", 1),
        (errno.EINVAL, ["func#0 @0", "unreachable insn 7", "processed 0 insns"],
         "unreachable insn 7", 7),
        (errno.EINVAL, [], os.strerror(errno.EINVAL), None),
        # The end of this log is not there: nothing is said of the instruction that comes last.
        (errno.ENOSPC, FOLLOWED, os.strerror(errno.ENOSPC), None),
    ],
)  # fmt: skip
def test_the_last_words_and_their_instruction(
    error: int, log: list[str], said: str, instruction: int | None
) -> None:
    refused = ProgramRefused(OSError(error, ""), log)
    assert (refused.said, refused.instruction) == (said, instruction)
