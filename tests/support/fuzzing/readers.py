"""Readers that no command reaches without a running kernel, as commands on files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from fetchc.cli import parse
from fetchc.cli.output import Output
from fetchc.cli.trace_request import request
from fetchc.cli.trace_targets import collect
from fetchc.debuginfo.perf_map_format import parse_lines
from fetchc.diag.diagnostic import CompileError, DebugInfoError, TracerError
from fetchc.tracer.ring_buffer import (
    Stacks,
    SubBufferLayout,
    parse_format,
    parse_sub_buffer_layout,
    samples,
)
from tests.support.fuzzing.around import kept, served

__all__ = ["READERS"]

REFUSED = 4


def _perf_map(path: str) -> object:
    return parse_lines(path, Path(path).read_bytes())


def _page(path: str) -> object:
    return samples(Path(path).read_bytes(), SubBufferLayout(0, 8, 16, 4096), 0)


def _stacks(path: str) -> object:
    form = parse_format(Path("format").read_text("utf-8", "replace"))
    stacks = Stacks(form)
    return stacks.joined(samples(Path(path).read_bytes(), SubBufferLayout(0, 8, 16, 4096), 0))


def _layout(path: str) -> object:
    page, _, event = Path(path).read_text("utf-8", "replace").partition("===\n")
    return parse_sub_buffer_layout(page, event)


def _format(path: str) -> object:
    return parse_format(Path(path).read_text("utf-8", "replace"))


def _planned(words: Sequence[str]) -> int:
    # What `trace` plans before it installs anything: as root it does so in a child.
    options = parse(["trace", *words[1:]])
    if isinstance(options, int):
        return options
    output = Output("never")
    try:
        found = collect(options.opened(), options, request(options), "fetchc_1")
    except CompileError as refused:
        output.diagnostics(refused.diagnostics, refused.text)
        return 1
    except DebugInfoError as refused:
        output.diagnostics((refused.diagnostic,), "")
        return 3
    for target in found.chosen:
        output.lines(target.plan.definitions)
        repr(target.plan)  # the shapes, which are as deep as the types
    for each in found.left_out:
        output.diagnostics(each.diagnostics, each.text)
    return 0 if found.chosen else 1


def _reader(read: Callable[[str], object]) -> Callable[[Sequence[str]], int]:
    def run(words: Sequence[str]) -> int:
        try:
            print(repr(read(words[1]))[:10_000])
        except (TracerError, DebugInfoError) as refused:
            print(f"refused: {refused}")
            return REFUSED
        return 0

    return run


READERS: dict[str, Callable[[Sequence[str]], int]] = {
    "perf-map": _reader(_perf_map),
    "ring-page": _reader(_page),
    "ring-stacks": _reader(_stacks),
    "ring-layout": _reader(_layout),
    "event-format": _reader(_format),
    "planned": _planned,
    "served": served,
    "kept": kept,
}
