"""Containers are walked on each kernel: it takes the programs, and the elements are right."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import fetchc
from fetchc.target.bpf_rules import bpf_rules
from fetchc.target.kernel_versions import kernel
from tests.lab.test_bpf_c_programs import TRIPLETS, loader
from tests.live import test_bpf_c_walks as in_c
from tests.live.test_walked_containers import (
    CPP,
    CSHARP,
    GO,
    MAPS_OF_GO,
    RINGS_OF_RUST,
    RUST,
    TABLES_OF_RUST,
    C,
    compared,
    go_program,
)
from tests.support.dotnet import ahead_of_time
from tests.support.kernel_lab import KERNELS, SOURCES, LabKernel, built
from tests.support.kernel_lab_guest import Guest
from tests.support.kernel_lab_python import files, interpreter, libraries, why_no_python
from tests.support.libbpf_programs import Walked, static_libbpf, walks
from tests.support.toolchains import require

_SECONDS = 300  # to boot with so many files, when the machine is busy
_MEBIBYTES = 512  # programs of Rust are large
_SEED = "3"
_TOGETHER = 4  # expressions of one trace; of one where the kernel follows each round
_WITH_LOOPS = "o.by["  # maps in maps of Go: 5.10's verifier follows too many jumps

_RUST = RUST.replace("fn look(", "#[no_mangle] pub fn look(")
_RUST_ARM64 = KERNELS / "rust-arm64/usr"


class _Program(NamedTuple):
    """A program for a guest: its function, the words that run it, its files."""

    function: str
    words: tuple[str, ...]
    files: dict[str, bytes]


_PROGRAMS = ("lists", "containers", "rust", "go1.15", "go1.27", "dotnet")


def _program(name: str, kernel: LabKernel, folder: Path) -> _Program:
    """The program ``name``, for a guest; the test is skipped where it cannot be made."""
    machine = kernel.machine
    arm = machine.name != os.uname().machine
    if name == "lists":
        (folder / "lists.c").write_text(C)
        content = built(machine, folder / "lists.c", "-g", "-O1", "-w")
        return _Program("look", ("/lists",), {name: content})
    if name == "containers":
        (folder / "containers.cc").write_text(CPP)
        compiler = machine.compiler.replace("gcc", "g++")
        require(compiler)
        command = [compiler, "-static", "-g", "-O1", "-w", str(folder / "containers.cc")]
        return _Program("look", ("/containers",), {name: made(command, folder / name)})
    if name == "rust":
        (folder / "main.rs").write_text(_RUST)
        # Debian's compiler, of which there is the library for arm64, too. Parameters are in
        # registers at the entry: to find a later point takes a disassembler.
        command = ["/usr/bin/rustc", "-O", "--edition", "2021", "-g"]
        command += ["-C", "target-feature=+crt-static", str(folder / "main.rs")]
        if arm:
            command += ["--target", "aarch64-unknown-linux-gnu", "--sysroot", str(_RUST_ARM64)]
            command += ["-C", f"linker={machine.compiler}"]
        require(command[0])
        if arm and not _RUST_ARM64.is_dir():
            pytest.skip("no library of Rust for arm64: `.ci/lab --all` brings it")
        return _Program("look", ("/rust",), {name: made(command, folder / name)})
    if name == "dotnet":
        if arm:
            pytest.skip("another machine's Mono would have to compile there, which takes minutes")
        (folder / "drawn.cs").write_text(CSHARP)
        program = ahead_of_time(folder / "drawn.cs", folder / "drawn.exe")
        code = program.with_suffix(".exe.so")
        own = {one.name: one.read_bytes() for one in (program, code)}
        return _Program("Program.Look", ("/usr/bin/mono", "/drawn.exe"), own | _mono())
    version = name.removeprefix("go")
    program = go_program(folder / version, version, GO, kernel.label.partition("-")[0])
    return _Program("main.look", (f"/{name}",), {name: program.read_bytes()})


def _mono() -> dict[str, bytes]:
    # The runtime, its native library, and the assemblies of the class library, compiled.
    native = [Path("/usr/bin/mono"), Path("/usr/lib/libmono-native.so")]
    found = [*native, *[path for one in native for path in libraries(one)]]
    names = ("mscorlib", "System", "System.Core")
    found += [Path("/etc/mono/config"), *[Path(f"/usr/lib/mono/4.5/{name}.dll") for name in names]]
    for name in names[1:]:  # from where Mono loads them
        found += Path("/usr/lib/mono/gac", name).rglob(f"{name}.dll")
    found += Path("/usr/lib/mono/aot-cache/amd64").glob("mscorlib.dll.so")
    return {str(path).lstrip("/"): path.read_bytes() for path in found}


def made(command: Sequence[str | Path], program: Path) -> bytes:
    subprocess.run([*command, "-o", program], check=True, capture_output=True)
    return program.read_bytes()


def wrong(hit: dict[str, Any], call: dict[str, Any], loops: bool) -> str:
    """How a hit differs from what the program has.

    Without ``loops`` a walk has few rounds: the elements that it found are some of all.
    """
    if loops:
        return compared(hit, call, MAPS_OF_GO | TABLES_OF_RUST)
    if hit["faults"] or "changed" in hit:
        return f"faults: {hit}"
    for label, whole in call.items():
        shown = hit["args"][label]
        if not isinstance(whole, list):
            if shown not in (whole, {"unavailable": "the walk ended before the key was found"}):
                return f"{label}: {shown} for {whole}"
        elif any(one not in whole for one in shown) or (whole and not shown and "[" not in label):
            return f"{label}: {shown} for {whole}"
    return ""


def test_what_differs_is_seen() -> None:
    hit: dict[str, Any] = {"args": {"v[:]": [9], "v[1]": 7}, "faults": []}
    assert wrong(hit, {"v[:]": [8, 9], "v[1]": 7}, loops=False) == ""
    for call in ({"v[:]": [8, 7]}, {"v[1]": 8}):
        assert wrong(hit, call, loops=False)
    assert wrong(hit, {"v[:]": [8, 9]}, loops=True)


@pytest.mark.long
@pytest.mark.parametrize("name", _PROGRAMS)
def test_elements_on_each_kernel(lab_kernel: LabKernel, name: str, tmp_path: Path) -> None:
    if reason := why_no_python(lab_kernel):
        pytest.skip(reason)
    one = _program(name, lab_kernel, tmp_path)
    content = files(lab_kernel) | one.files
    python = interpreter(lab_kernel)
    loops = "loops" in bpf_rules(kernel(lab_kernel.release).version).features
    with Guest(lab_kernel, content, _SECONDS, _MEBIBYTES) as guest:
        command = (*one.words, _SEED, "/said")
        guest.run(*command)
        said = json.loads(guest.read("/said").splitlines()[0])
        labels = [label for label in said if label not in RINGS_OF_RUST]
        if not loops:
            labels = [label for label in labels if not label.startswith(_WITH_LOOPS)]
        together = _TOGETHER if loops else 1
        for start in range(0, len(labels), together):
            some = labels[start : start + together]
            where = ("-x", one.words[-1], "-f", one.function, "--format", "jsonl")
            shown = guest.run(python, "-m", "fetchc", "trace", *some, *where, "--", *command)
            calls = [json.loads(line) for line in guest.read("/said").splitlines()]
            hits = [json.loads(line) for line in shown.splitlines() if line.startswith("{")]
            assert len(hits) == len(calls), shown
            for hit, call in zip(hits, calls, strict=True):
                asked = {label: call[label] for label in some}
                assert wrong(hit, asked, loops) == "", lab_kernel.label


def wrong_in_c(label: str, found: Walked, wanted: object, loops: bool) -> str:
    """As :func:`wrong`, of what a loader of libbpf prints."""
    if loops:
        return in_c.wrong(label, found, wanted, MAPS_OF_GO | TABLES_OF_RUST)
    if found.changed or found.failed:
        return f"{label}: {found}"
    whole = in_c.expected(wanted)
    others = [one for one in in_c.by_name(label, found.entries) if one not in whole]
    if others or (found.ended and bool(whole) > bool(found.entries)):
        return f"{label}: {found} for {whole}"
    return ""


@pytest.mark.long
@pytest.mark.parametrize("name", _PROGRAMS[:-1])  # .NET's code is in an image that Mono maps
def test_walks_in_c_on_each_kernel(lab_kernel: LabKernel, name: str, tmp_path: Path) -> None:
    if reason := why_no_python(lab_kernel):
        pytest.skip(reason)
    libbpf = static_libbpf(lab_kernel.label.partition("-")[0], TRIPLETS[lab_kernel.machine.name])
    one = _program(name, lab_kernel, tmp_path)
    loops = "loops" in bpf_rules(kernel(lab_kernel.release).version).features
    loaders = {**files(lab_kernel), "run_loader.py": (SOURCES / "run_loader.py").read_bytes()}
    loaders |= one.files
    command = (*one.words, _SEED, "/said")
    with Guest(lab_kernel, loaders, _SECONDS, _MEBIBYTES) as guest:
        guest.run(*command)
        said = json.loads(guest.read("/said").splitlines()[0])
    python = interpreter(lab_kernel)
    path = tmp_path / "probed" / name
    path.parent.mkdir()
    path.write_bytes(one.files[name])
    left_out = (*in_c.NOT_COMPARED, *RINGS_OF_RUST)
    labels = [label for label in said if label not in left_out]
    probe = fetchc.open(str(path)).probe(one.function, kernel=lab_kernel.release)
    together = _TOGETHER if loops else 1
    asked: list[tuple[list[str], str]] = []
    for start in range(0, len(labels), together):
        some = labels[start : start + together]
        arguments = [probe.compile(f"v{n}={label}", computes=True) for n, label in enumerate(some)]
        text = probe.written("bpf-c", arguments).text.replace(str(path), f"/{name}")
        stem = f"{name}_{start}"
        loaders |= loader(tmp_path / stem, text, lab_kernel, libbpf, stem)
        asked.append((some, text))
    differences = []
    with Guest(lab_kernel, loaders, _SECONDS, _MEBIBYTES) as guest:
        for number, (some, text) in enumerate(asked):
            printed = guest.run(python, "/run_loader.py", f"/{name}_{number * together}", *command)
            calls = [json.loads(line) for line in guest.read("/said").splitlines()]
            hits = walks(printed, text)
            assert len(hits) == len(calls), (some, printed)
            differences += [
                reason
                for hit, call in zip(hits, calls, strict=True)
                for at, label in enumerate(some)
                if (reason := wrong_in_c(label, hit[f"v{at}"], call[label], loops))
            ]
    assert differences == []
