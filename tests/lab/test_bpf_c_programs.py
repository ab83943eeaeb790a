"""``--format bpf-c`` on each kernel: what the loader prints there is what ``trace`` shows there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import fetchc
from tests.lab.test_kernel_functions import version
from tests.support.kernel_lab import SOURCES, LabKernel, built
from tests.support.kernel_lab_guest import Guest
from tests.support.kernel_lab_python import files, interpreter, why_no_python
from tests.support.libbpf_programs import built_loader, compiled, hits, static_libbpf

_PATH = "/probed"
_SECONDS = 300  # to boot with so many files, when the machine is busy
TRIPLETS = {"x86_64": "x86_64-linux-gnu", "aarch64": "aarch64-linux-gnu"}
_MULTI = (6, 6)
_SOURCE = r"""
#define _SDT_HAS_SEMAPHORES 1
#include "sdt.h"
__extension__ unsigned short lab_done_semaphore __attribute__((used, section(".probes")));
struct item {
    unsigned low : 3; int mid : 5; int row[3]; const char *name; char full[4]; struct item *next;
};
const char *const words[2] = { "no", "yes" };
struct item global = { 1, 2, { 5, 6, 7 }, "global", "gggg", 0 };
__attribute__((noipa)) long work(struct item *it, int n)
{
    if (lab_done_semaphore)
        STAP_PROBE2(lab, done, it->row[0], n);
    if (n < 0 && lab_done_semaphore)
        STAP_PROBE2(lab, done, it->row[0], n);
    return n * 3L + it->row[0];
}
int main(void)
{
    struct item last = { 7, -1, { -1, 0, 1 }, "last", "full", 0 };
    struct item it = { 5, -16, { 7, 8, -9 }, "two\nlines", "ab", &last };
    work(&it, -4);
    last.name = (const char *)1;
    work(&last, 6);
    return 0;
}
"""
_ASKED: tuple[tuple[str, bool, tuple[str, ...]], ...] = (
    (
        "work",
        False,
        (
            "n", "row=it->row", "name=it->name", "full=it->full", "low=it->low", "mid=it->mid",
            "next=it->next->name", "far=it->next->row[2]", "g=global.row[1]",
            "word=words[n + 4]", "at=it->next[n + 4].row[1]",
            "sum=n + it->next->row[2] / it->mid", "more=n > it->row[1] || it->next->low",
        ),
    ),
    ("work", True, ("r=$retval",)),
    ("lab:done", False, ("first=$arg1", "second=$arg2")),
)  # fmt: skip


@pytest.mark.long
def test_a_loader_of_libbpf_prints_what_trace_shows(lab_kernel: LabKernel, tmp_path: Path) -> None:
    if reason := why_no_python(lab_kernel):
        pytest.skip(reason)
    headers = list(Path("/usr/include").glob("*/sys/sdt*.h"))
    if not headers:
        pytest.skip("no <sys/sdt.h>: `.ci/setup` installs systemtap-sdt-dev")
    machine = lab_kernel.machine
    architecture = lab_kernel.label.partition("-")[0]
    libbpf = static_libbpf(architecture, TRIPLETS[machine.name])
    for each in headers:  # beside those of another machine there
        text = each.read_text().replace("<sys/sdt-config.h>", '"sdt-config.h"')
        (tmp_path / each.name).write_text(text)
    source, probed = tmp_path / "probed.c", tmp_path / "probed"
    source.write_text(_SOURCE)
    probed.write_bytes(built(machine, source, "-g", "-O1"))
    content = {**files(lab_kernel), "probed": probed.read_bytes()}
    content["run_loader.py"] = (SOURCES / "run_loader.py").read_bytes()
    texts = []
    for number, (function, returns, asked) in enumerate(_ASKED):
        opened = fetchc.open(str(probed))
        probe = opened.probe(function, returns=returns, kernel=lab_kernel.release)
        arguments = [probe.compile(one, computes=True) for one in asked]
        text = probe.written("bpf-c", arguments).text.replace(str(probed), _PATH)
        folder = tmp_path / str(number)
        content |= loader(folder, text, lab_kernel, libbpf, f"loader{number}")
        texts.append(text)
    many = "uprobe.multi.s" if version(lab_kernel) >= _MULTI else "uprobe"
    assert (f'SEC("{many}' in texts[2], "semaphore at 0x" in texts[2]) == (True, True)
    wrong = texts[0].replace("rdi + ", "rdi + 4 + ").replace("x0 + ", "x0 + 4 + ")
    assert wrong != texts[0]
    content |= loader(tmp_path / "wrong", wrong, lab_kernel, libbpf, "loader3")
    with Guest(lab_kernel, content, _SECONDS) as guest:
        python = interpreter(lab_kernel)
        for number, (function, returns, asked) in enumerate(_ASKED):
            words = (*asked, "-x", _PATH, "-f", function, *["--return"][: int(returns)])
            shown = guest.run(
                *(python, "-m", "fetchc", "trace", *words, "--format", "jsonl", "--", _PATH)
            )
            expected = [
                {name: _shown(value) for name, value in json.loads(line)["args"].items()}
                for line in shown.splitlines()
                if line.startswith("{")
            ]
            assert len(expected) >= 2
            printed = guest.run(python, "/run_loader.py", f"/loader{number}", _PATH)
            assert [one for _, one in hits(printed, texts[number])] == expected
            if number == 0:
                printed = guest.run(python, "/run_loader.py", "/loader3", _PATH)
                assert [one for _, one in hits(printed, wrong)] != expected


def loader(
    folder: Path, text: str, lab_kernel: LabKernel, libbpf: list[str], name: str
) -> dict[str, bytes]:
    """The program and its loader, which looks for it in the guest's first directory."""
    folder.mkdir()
    machine = lab_kernel.machine
    compiled(folder, text, f"-I/usr/{TRIPLETS[machine.name]}/include")
    own = text.replace("probes.bpf.o", f"{name}.bpf.o")
    (folder / "probes.bpf.c").write_text(own)
    built_loader(folder, own, machine.compiler, libbpf)
    found = {name: (folder / "loader").read_bytes()}
    return found | {f"{name}.bpf.o": (folder / "probes.bpf.o").read_bytes()}


def _shown(value: object) -> str | None:
    if isinstance(value, list):
        return ",".join(map(str, value))
    return None if value is None else str(int(value) if isinstance(value, bool) else value)
