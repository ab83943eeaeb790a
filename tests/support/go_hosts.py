"""Other machines for drawn Go programs: cross-built, and stopped under qemu's user mode."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from pathlib import Path

from fetchc.conformance.go_programs import KERNEL, GoBuild, Host, Seen
from tests.support.cross import TARGETS
from tests.support.cross_go import CALM, LEAVING
from tests.support.qemu_user import MACHINES, Emulator
from tests.support.toolchains import go_build

__all__ = ["cross_build", "host"]

_STACK_BYTES = 4096


def cross_build(name: str, version: str, folder: Path, *options: str) -> GoBuild:
    """How that toolchain builds a program for a machine, by fetchc's name of it."""
    build = go_build(version, folder, *options)
    environment = {**build.environment, "GOARCH": TARGETS[name].go}
    return GoBuild(build.command, build.version, build.options, environment)


def host(name: str) -> Host:
    """The machine as its emulator shows it, without vector registers."""
    machine = MACHINES[name]
    return Host(
        partial(_stopped, name),
        kernel=KERNEL if machine.word == 8 else f"{KERNEL}/32",
        names=frozenset(machine.registers) - {"zero", "pswm"},
        word=machine.word,
        order=machine.order,
        stack=machine.stack,
        result=machine.result,
        returns=name in LEAVING,
    )


def _stopped(name: str, binary: Path, addresses: Iterable[int]) -> tuple[str, dict[int, Seen]]:
    waiting, seen = set(addresses), {}
    output = binary.with_suffix(".out")
    with Emulator(name, binary, CALM, output) as emulator:
        while waiting:
            stop = emulator.until(*waiting)
            waiting.remove(stop.address)
            stack = stop.read(stop.registers[stop.machine.stack], _STACK_BYTES)
            seen[stop.address] = Seen(stop.registers, (), stack)
        emulator.finish()
    return output.read_text(), seen
