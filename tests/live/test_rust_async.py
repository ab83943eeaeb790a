"""Local variables of an `async fn` of Rust: each has its value or none, whatever poll it is."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest

import fetchc
from fetchc import CompileError, Probe
from tests.live.rustc import COMPILERS, compiled
from tests.live.watching import watched
from tests.support.tracefs import require_uprobes

pytestmark = pytest.mark.live

SOURCE = """
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, RawWaker, RawWakerVTable, Waker};

struct Pause(bool);
impl Future for Pause {
    type Output = u32;
    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<u32> {
        if self.0 { return Poll::Ready(5); }
        self.0 = true;
        Poll::Pending
    }
}
#[inline(never)]
fn overwrite_stack(n: u64) -> u64 { [n * 0x0101010101010101; 400].iter().fold(0, |x, y| x ^ y) }
#[inline(never)]
fn touch(n: u32) { println!("{n}"); }
fn nothing(_: *const ()) {}
fn copy(_: *const ()) -> RawWaker { RawWaker::new(std::ptr::null(), &TABLE) }
static TABLE: RawWakerVTable = RawWakerVTable::new(copy, nothing, nothing, nothing);

async fn serve(count: u32, limit: u32) -> u32 {
    let early = count + 40;
    touch(early); // first
    let got = Pause(false).await;
    let later = got + early;
    touch(later); // second
    for i in 0..limit {
        let twice = i * 2;
        touch(twice); // looping
        let next = Pause(false).await;
        touch(next + i); // behind
    }
    touch(later) /* last */; later
}

fn main() {
    let waker = unsafe { Waker::from_raw(copy(std::ptr::null())) };
    let mut context = Context::from_waker(&waker);
    let mut future = Box::pin(serve(2, 2));
    loop {
        overwrite_stack(3);
        if future.as_mut().poll(&mut context).is_ready() { break; }
    }
}
"""
# The variables at a line, at each pass; those that a later poll finds only in the old frame.
BEFORE = {"count": 2, "limit": 2, "early": 42}
BEHIND = {**BEFORE, "got": 5, "later": 47}
TRUTH = {
    "first": [BEFORE],
    "second": [BEHIND],
    "looping": [{**BEHIND, "i": i, "twice": 2 * i} for i in (0, 1)],
    "behind": [{**BEHIND, "i": i, "twice": 2 * i, "next": 5} for i in (0, 1)],
    "last": [BEHIND],
}
LOST = {
    "first": set(),
    "second": {"count"},
    "looping": {"count", "got"},
    "behind": {"count", "got", "twice"},
    "last": {"count", "got"},
}


def refusal(probe: Probe, name: str) -> str:
    try:
        probe.asked(name)
    except CompileError as refused:
        return refused.diagnostics[0].message
    return ""


@pytest.mark.parametrize("compiler", COMPILERS)
def test_no_value_is_of_the_frame_of_another_poll(compiler: str, tmp_path: Path) -> None:
    require_uprobes()
    (tmp_path / "polls").mkdir()
    source = tmp_path / "polls/polls.rs"
    source.write_text(SOURCE)
    program = fetchc.open(str(compiled(compiler, source, tmp_path / "program")))
    probes = {}
    for line, text in enumerate(SOURCE.splitlines(), 1):
        for mark in TRUTH:
            if f" {mark}" in text:
                probes[mark] = program.probe(f"polls.rs:{line}")
    names = {}
    for mark, probe in probes.items():
        said = {name: refusal(probe, name) for name in TRUTH[mark][0]}
        assert {name for name, why in said.items() if why} == LOST[mark]
        assert all("in the stack frame of a poll" in why for why in said.values() if why)
        names[mark] = [name for name, why in said.items() if not why]
    _, events = watched(
        lambda group: [probe.plan(names[mark], group, mark) for mark, probe in probes.items()],
        [str(tmp_path / "program")],
    )
    for mark, rows in TRUTH.items():
        seen = [dict(event.args) for event in events if event.name == mark]
        # A line may begin at two addresses: one pass is two hits.
        once = [row for row, before in zip(seen, [{}, *seen], strict=False) if row != before]
        assert once == [{name: row[name] for name in names[mark]} for row in rows], mark


@pytest.mark.parametrize("compiler", COMPILERS[:1])  # that of Debian: 1.63
def test_optimized_code_shows_what_the_coroutine_has(compiler: str, tmp_path: Path) -> None:
    """rustc 1.63 describes it by one pointer too many: it is refused."""
    require_uprobes()
    (tmp_path / "polls").mkdir()
    source = tmp_path / "polls/polls.rs"
    source.write_text(SOURCE)
    binary = compiled(compiler, source, tmp_path / "program", "-C", "opt-level=3")
    program = fetchc.open(str(binary))
    asked = {}
    for line, text in enumerate(SOURCE.splitlines(), 1):
        for mark in [one for one in TRUTH if f" {one}" in text]:
            with suppress(CompileError):  # a line may have no code
                probe = program.probe(f"polls.rs:{line}")
                names = [name for name in TRUTH[mark][0] if not refusal(probe, name)]
                asked[mark] = probe, names
    _, events = watched(
        lambda group: [probe.plan(names, group, mark) for mark, (probe, names) in asked.items()],
        [str(binary)],
    )
    assert "second" in {event.name for event in events}
    for event in events:
        for name, value in event.args.items():
            assert value in [row[name] for row in TRUTH[event.name]], (event.name, name)
