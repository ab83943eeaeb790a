"""Rust's enums and library types: what a trace shows is what the program itself says of them."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

import fetchc
from tests.live.rustc import COMPILERS, builds, compiled
from tests.live.traced import trace
from tests.support.tracefs import require_bpf, require_uprobes

pytestmark = pytest.mark.live

SOURCE = Path(__file__).parents[2] / "corpus/rust/library/main.rs"
AT_ONCE = 12  # expressions of one session: an event has room for so many bytes
# Up to Rust 1.66 a ring had no length of its own.
RING = {"a.ring", "a.ring.len()", "a.ring.capacity()", "a.ring[1]", "a.ring[4]", "a.no_ring"}


def printed(lines: list[str]) -> list[dict[str, Any]]:
    """What each call's expressions must give, by the lines of the program."""
    calls: list[dict[str, Any]] = [{}]
    for line in lines:
        if line.startswith("EVENT call"):
            calls.append({})
        elif line:
            one = json.loads(line.removeprefix("EVENT "))
            calls[-1][one["expression"]] = one["value"]
    return calls[:-1]


def differences(calls: list[dict[str, Any]], args: list[dict[str, Any]]) -> list[str]:
    """Where a traced value is not the one that the program printed, or no call was seen."""
    wrong = [] if len(calls) == len(args) else [f"{len(calls)} calls, {len(args)} events"]
    for call, seen in zip(calls, args, strict=False):
        wrong += [
            f"{expression} is {value!r}, not {call[expression]!r}"
            for expression, value in seen.items()
            if value != call[expression]
        ]
    return wrong


@pytest.mark.parametrize(("compiler", "level"), builds("0", "3"))
def test_every_value_is_what_the_program_printed(
    compiler: str, level: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    require_uprobes()
    binary = compiled(compiler, SOURCE, tmp_path / "library", "-C", f"opt-level={level}")
    done = subprocess.run([binary], check=True, capture_output=True, text=True)
    addresses = {"a.boxed", "a.lent", "a.rc", "a.pin", "a.vec"}
    version = subprocess.run([compiler, "-V"], check=True, capture_output=True, text=True)
    old = int(version.stdout.split()[1].split(".")[1]) < 67
    taken = [one for one in printed(done.stdout.split("\n"))[0] if not (old and one in RING)]
    assert len(taken) >= 85
    place = ["--at", "body"] if level == "0" else []
    for low in range(0, len(taken), AT_ONCE):
        some = taken[low : low + AT_ONCE]
        seen = trace(
            capfd, *some, "-x", binary, "-f", "library::visit", *place,
            "--format", "jsonl", "--timeout", "200", "--", binary,
        )  # fmt: skip
        # Addresses are those of the run that was traced.
        calls = printed(seen.program)
        assert differences(calls, seen.args) == []
        assert not addresses.intersection(some) or any(seen.args[1][one] for one in some)


HASHBROWN = """
pub mod raw { pub use inner::*; mod inner {
    pub struct RawTable<T> { table: RawTableInner, marker: core::marker::PhantomData<T> }
    struct RawTableInner {
        bucket_mask: usize, ctrl: core::ptr::NonNull<u8>, growth_left: usize, items: usize,
    }
    impl<T> RawTable<T> {
        pub fn of(control: &u8, bucket_mask: usize, items: usize) -> Self {
            let table = RawTableInner { bucket_mask, ctrl: control.into(), growth_left: 0, items };
            RawTable { table, marker: core::marker::PhantomData }
        }
    }
} }
pub mod map { pub struct HashMap<K, V> { pub table: crate::raw::RawTable<(K, V)> } }
pub struct Point { x: i32, y: u8 }
#[repr(C)] struct Memory { buckets: [(u16, i32); 4], control: [[u8; 4]; 5] }
#[inline(never)]
pub fn visit(m: &map::HashMap<u16, i32>, q: &std::collections::VecDeque<Point>) {
    println!("EVENT {} {}", m as *const _ as usize, q.len());
}
fn main() {
    // Of four slots, which lie before the control bytes, the first and the third are full.
    let memory = Memory {
        buckets: [(0, 0), (7, -70), (0, 0), (9, 90)],
        control: [[1, 255, 2, 255], [255; 4], [255; 4], [255; 4], [1, 255, 2, 255]],
    };
    let queue = std::collections::VecDeque::from([Point { x: 1, y: 2 }, Point { x: 3, y: 4 }]);
    visit(&map::HashMap { table: raw::RawTable::of(&memory.control[0][0], 3, 2) }, &queue);
}
"""


@pytest.mark.parametrize("compiler", COMPILERS[-1:])
def test_a_table_of_the_crate_and_members_in_a_ring(
    compiler: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """The crate with its feature `raw` has the table in another module than the library."""
    require_bpf()
    source = tmp_path / "hashbrown/main.rs"
    source.parent.mkdir()
    source.write_text(HASHBROWN)
    binary = compiled(compiler, source, tmp_path / "program")
    seen = trace(
        capfd, "m[:]", "m[9]", "m[8]", "q[:].x", "-x", binary, "-f", "hashbrown::visit",
        "--at", "body", "--engine", "bpf", "--format", "jsonl", "--timeout", "60", "--", binary,
    )  # fmt: skip
    entries = [{"key": 9, "value": 90}, {"key": 7, "value": -70}]
    assert seen.args == [{"m[:]": entries, "m[9]": 90, "m[8]": None, "q[:].x": [1, 3]}]
    with pytest.raises(fetchc.CompileError) as refused:
        fetchc.open(binary).probe("hashbrown::visit", at="body").compile("q[1].x")
    assert refused.value.diagnostics[0].message.endswith("can be read, not its `x`")
    assert refused.value.diagnostics[0].help == "`fetchc trace` has it of all elements: `e[:].x`"


@pytest.mark.skipif(not COMPILERS, reason="no rustc here (.ci/setup brings it)")
def test_the_comparison_can_fail() -> None:
    call = {"a.shape": {"Circle": {"r": 7}}, "a.number": {"Some": 3}}
    assert differences([call], [dict(call)]) == []
    assert differences([call], []) == ["1 calls, 0 events"]
    assert differences([call], [{"a.number": "None"}]) == ["a.number is 'None', not {'Some': 3}"]
