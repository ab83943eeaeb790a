"""Programs of ``--format bpf-c``, and their loaders, built by the commands that they name."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.kernel_lab import KERNELS
from tests.support.toolchains import require

__all__ = ["Walked", "built_loader", "compiled", "hits", "static_libbpf", "walks"]

_SECONDS = 120
# Functions of C23's scanf and strtol, which glibc 2.38 was the first to have: as they were.
_NEWER = ("sscanf", "fscanf", "strtol", "strtoll", "strtoul", "strtoull")


def compiled(folder: Path, text: str, *flags: str) -> None:
    """Compile the program by the command that it names, without a warning."""
    require("clang")
    if not Path("/usr/include/bpf/libbpf.h").exists():
        pytest.skip("no libbpf-dev here (.ci/setup brings it)")
    (folder / "probes.bpf.c").write_text(text)
    command = text.splitlines()[1].removeprefix("// ").split()
    flags = ("-Wall", "-Wextra", "-Werror", *flags)
    subprocess.run([*command, *flags], cwd=folder, check=True, timeout=_SECONDS)


def built_loader(
    folder: Path,
    text: str,
    compiler: str = "gcc",
    flags: Sequence[str] = ("-lbpf",),
    on_event: str = "",
) -> None:
    """Build the loader of the text by the commands that it names, with ``flags`` for ``-lbpf``.

    ``on_event`` is what it does with an event instead of printing it.
    """
    commands, _, source = text.partition("go into probes.h:\n\n")[2].partition("\n\n")
    source = source.partition("*/")[0]
    if on_event:
        whole = r"^    switch .*?^    }\n(?=    return 0;)"
        source = re.sub(whole, f"    {on_event}\n", source, flags=re.M | re.S)
    (folder / "loader.c").write_text(source)
    headers, compile = commands.splitlines()
    subprocess.run(headers, cwd=folder, shell=True, check=True, timeout=_SECONDS)
    words = compile.replace("cc ", f"{compiler} ", 1).replace("-lbpf", " ".join(flags)).split()
    warnings = ("-Wall", "-Wextra", "-Werror")
    subprocess.run([*words, *warnings], cwd=folder, check=True, timeout=_SECONDS)


def static_libbpf(architecture: str, triplet: str) -> list[str]:
    """What links libbpf into a loader, of the version that ``.ci/lab`` brings; else a skip."""
    libbpf, libelf = (KERNELS / f"{name}-{architecture}/usr" for name in ("libbpf", "libelf"))
    if not libbpf.is_dir() or not libelf.is_dir():
        pytest.skip(f"no libbpf for {architecture} in .toolchains/kernels: .ci/lab fetches it")
    newer = [f"-Wl,-u,{name},--defsym=__isoc23_{name}={name}" for name in _NEWER]
    places = [f"-L{one}/lib/{triplet}" for one in (libbpf, libelf)]
    return [f"-I{libbpf}/include", "-static", *newer, *places, "-lbpf", "-lelf", "-lz"]


def hits(printed: str, text: str) -> list[tuple[str, dict[str, str | None]]]:
    """Of each hit of the one event the task's name, and the values that the loader printed.

    None is a fault.
    """
    members = re.findall(r"^    \S+ (\w+)(?:\[\w+\])?;  // bit (\d+):", text, re.M)
    pattern = "".join([rf' {name}=(?:"(.*?)"|(\S*))' for name, _ in members])
    found = []
    for hit in re.finditer(rf"^([^\n]*)-\d+ \w+ faults=(\w+){pattern}$", printed, re.M | re.S):
        values: dict[str, str | None] = {}
        for at, (name, bit) in enumerate(members):
            value = hit[2 * at + 3] if hit[2 * at + 3] is not None else hit[2 * at + 4]
            fault = int(hit[2], 16) >> int(bit) & 1
            values[name.rstrip("_")] = None if fault else value
        found.append((hit[1], values))
    return found


@dataclass(frozen=True)
class Walked:
    """What the loader printed of a walk: ``entries`` of ``count``; None is a fault.

    ``ended``: it came to the last one. ``failed``: it came to what could not be read.
    """

    count: int
    ended: bool
    changed: bool
    failed: bool
    entries: list[dict[str, str | None]]


def walks(printed: str, text: str) -> list[dict[str, Walked]]:
    """Of each hit of the one event, all values of which are walks, the entries."""
    members = re.findall(r"^    struct (\w+) (\w+)\[\d+\];  // bit (\d+):", text, re.M)
    entries = {}
    for entry, _, _ in members:
        found = re.search(rf"^struct {entry} {{.*?^}};", text, re.M | re.S)
        assert found is not None
        names = re.findall(r"^    \S+ (\w+)(?:\[\w+\])?;  // bit", found[0], re.M)
        each = "".join([rf' {name}=(?:"([^"]*)"|(\S*?))' for name in names])
        entries[entry] = names, rf" {{faults=(\w+){each}}}"
    hits = []
    for line in re.finditer(r"^[^\n]*-\d+ \w+ faults=(\w+)(.*)$", printed, re.M):
        faults, hit = int(line[1], 16), {}
        for entry, name, bit in members:
            names, each = entries[entry]
            one = re.search(rf" {name}=\d+ of (\d+)(\.\.\.)?( changed)?((?:{each})*)", line[2])
            assert one is not None, line[2]
            listed = []
            for groups in re.findall(each, one[4]):
                unread, values = int(groups[0], 16), groups[1:]
                listed.append(
                    {
                        member: None if unread >> at & 1 else values[2 * at] or values[2 * at + 1]
                        for at, member in enumerate(names)
                    }
                )
            failed = bool(faults >> int(bit) & 1)
            hit[name] = Walked(int(one[1]), one[2] is None, one[3] is not None, failed, listed)
        hits.append(hit)
    return hits
