"""C for libbpf: clang compiles it, its own loader attaches it, and its values are `trace`'s."""

from __future__ import annotations

import ctypes
import re
import select
import shutil
import struct
import subprocess
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from elftools.elf.elffile import ELFFile

import fetchc
from fetchc.cli import main
from fetchc.emit.output_formats import written
from tests.live.test_operators import SEED, go_values
from tests.live.test_operators import c_program as c_values
from tests.live.traced import SECONDS, trace
from tests.support.go_programs import go_program
from tests.support.kernel_lab import KERNELS
from tests.support.libbpf_programs import built_loader, compiled, hits, static_libbpf
from tests.support.programs import fixture
from tests.support.tool_values import asked_of, compared_values, together
from tests.support.toolchains import GO_VERSIONS, go_environment, go_root, require
from tests.support.tools import Printed
from tests.support.tracefs import require_uprobes

pytestmark = pytest.mark.live

_ONE_EVENT = 12  # expressions
C = r"""
struct pair { short x, y; };
struct item {
    char kind; unsigned low : 3; int mid : 5; struct pair pair; int row[3];
    const char *name; char full[4]; struct item *next; double d;
};
struct pair pairs[2] = { { 1, 2 }, { 3, 4 } };
struct item global = { 'g', 1, 2, { 3, 4 }, { 5, 6, 7 }, "global", "gggg", 0, 1.5 };
const char *later = "a text in a page that nobody has read yet";
__attribute__((noipa)) long work(struct item *it, int n) { return n * 3L + it->row[0]; }
int main(void)
{
    struct item last = { 'b', 7, -1, { -2, 3 }, { -1, 0, 1 }, later, "full", 0, 0.5 };
    struct item it = { 'a', 5, -16, { 1, -2 }, { 7, 8, -9 }, "two\nlines", "ab", &last, 2.5 };
    work(&it, -4);
    work(&last, 5);
    last.name = (const char *)1;
    work(&last, 6);
    return 0;
}
"""
OF_C = (
    "n", "x=it->pair.x", "y=it->pair.y", "row=it->row", "name=it->name", "full=it->full",
    "low=it->low", "mid=it->mid", "next=it->next->name", "far=it->next->row[2]",
    "pair=pairs[n - 5].y", "at=it->next[n + 4].mid",
    "sum=pairs[n - 5].y + it->next[n + 4].row[2]", "first=&it->next[n + 4] == it->next",
    "int=global.pair.y", "more=n * 2 > it->row[1] ? it->mid - 1 : it->next->low",
)  # fmt: skip
GO = """
package main

//go:noinline
func serve(name string, n int) (int, string) {
	if n > 2 {
		return n, name
	}
	return len(name) + n, "few"
}

func main() {
	serve("h\\u00e9llo", 1)
	serve("", 2)
	serve("a longer name", 3)
}
"""
OF_GO = ("name", "n")
RESULTS = ("first=$ret0", "s=$ret1")


def c_program(folder: Path) -> Path:
    require("gcc")
    (folder / "program.c").write_text(C)
    command = ["gcc", "-g", "-O1", "-o", "program", "program.c"]
    subprocess.run(command, cwd=folder, check=True, timeout=SECONDS)
    return folder / "program"


def attached(
    folder: Path, text: str, on_event: str = "", flags: Sequence[str] = ("-lbpf",)
) -> subprocess.Popen[bytes]:
    """The loader of the text, at work; ``on_event`` is what it does with an event instead."""
    built_loader(folder, text, "gcc", flags, on_event)
    child = subprocess.Popen(["./loader"], cwd=folder, stdout=subprocess.PIPE, bufsize=0)
    assert read(child, 9) == b"attached\n"
    return child


def read(child: subprocess.Popen[bytes], size: int) -> bytes:
    """So many bytes of what it writes."""
    assert child.stdout is not None
    found = b""
    while len(found) < size:
        more = child.stdout.read(size - len(found))
        assert more, "the loader has ended"
        found += more
    return found


def quiet(child: subprocess.Popen[bytes]) -> bytes:
    """What it writes until it has nothing more for some time."""
    assert child.stdout is not None
    found = b""
    while select.select([child.stdout], [], [], 1)[0]:
        found += child.stdout.read(4096)
    return found


def loaded(
    folder: Path, binary: Path, text: str, asked: Sequence[str], flags: Sequence[str] = ("-lbpf",)
) -> list[dict[str, str | None]]:
    """The values that the loader prints of a run of ``binary``; None is a fault."""
    require_uprobes()
    with attached(folder, text, flags=flags) as child:
        try:
            subprocess.run([binary], check=True, timeout=SECONDS)
            printed = quiet(child).decode()
        finally:
            child.kill()
    names = {expression.partition("=")[0] for expression in asked}
    values = hits(printed, text)
    assert all(comm.startswith(binary.name) for comm, _ in values)
    return [{name: one[name] for name in one if name in names} for _, one in values]


def traced(
    capfd: pytest.CaptureFixture[str], binary: Path, *words: str
) -> list[dict[str, str | None]]:
    done = trace(capfd, *words, "-x", binary, "--format", "jsonl", "--", binary)
    return [
        {name: None if value is None else shown(value) for name, value in one.items()}
        for one in done.args
    ]


def shown(value: object) -> str:
    """A value of `trace` as the loader prints it."""
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


def test_values_of_c_are_those_of_trace(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    binary = c_program(tmp_path)
    probe = fetchc.open(str(binary)).probe("work")
    text = probe.written("bpf-c", [probe.compile(one, computes=True) for one in OF_C]).text
    compiled(tmp_path, text)
    with open(tmp_path / "probes.bpf.o", "rb") as file:  # of which bpf2go makes types of Go
        btf = ELFFile(file).get_section_by_name(".BTF")
        assert btf is not None
        assert b"\0work_event\0" in btf.data()
    found = loaded(tmp_path, binary, text, OF_C)
    assert found == traced(capfd, binary, *OF_C, "-f", "work")
    assert [one["next"] for one in found[1:]] == [None, None]  # behind a null pointer
    assert (found[1]["name"], found[2]["name"]) == (
        "a text in a page that nobody has read yet",
        None,
    )
    # A wrong program is noticed: its bit field has no sign.
    wrong = text.replace("(__s64)((__u64)word", "((__u64)word")
    compiled(tmp_path, wrong)
    assert loaded(tmp_path, binary, wrong, OF_C) != found


@pytest.mark.parametrize(
    "condition",
    [
        "n * 2 > 10 && it->row[0] != 7",
        pytest.param("it->next->low == 7", marks=pytest.mark.long),
        pytest.param("pairs[n - 5].y != 2", marks=pytest.mark.long),
        pytest.param("n < 0 || n / 2 == 3", marks=pytest.mark.long),
    ],
)
def test_hits_are_those_that_a_filter_of_trace_lets_pass(
    condition: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    binary = c_program(tmp_path)
    command = ["compile", "n", "--format", "bpf-c", "-x", str(binary), "-f", "work"]
    assert main([*command, "--filter", condition]) == 0
    text = capfd.readouterr().out
    compiled(tmp_path, text)
    expected = traced(capfd, binary, "n", "-f", "work", "--filter", condition)
    assert loaded(tmp_path, binary, text, ["n"]) == expected
    assert 0 < len(expected) < 3


def test_results_of_c_are_those_of_trace(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    binary = c_program(tmp_path)
    probe = fetchc.open(str(binary)).probe("work", returns=True)
    asked = ("r=$retval",)
    text = probe.written("bpf-c", [probe.compile(one) for one in asked]).text
    assert 'SEC("uretprobe.s")' in text
    compiled(tmp_path, text)
    expected = traced(capfd, binary, *asked, "-f", "work", "--return")
    assert (
        loaded(tmp_path, binary, text, asked) == expected == [{"r": "-5"}, {"r": "14"}, {"r": "17"}]
    )


def test_strings_of_go_are_those_of_trace(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    binary = go_program("1.27", tmp_path, GO, name="program")
    probe = fetchc.open(str(binary)).probe("main.serve")
    text = probe.written("bpf-c", [probe.compile(one) for one in OF_GO]).text
    compiled(tmp_path, text)
    expected = traced(capfd, binary, *OF_GO, "-f", "main.serve")
    assert loaded(tmp_path, binary, text, OF_GO) == expected
    assert [one["name"] for one in expected] == ["h\u00e9llo", "", "a longer name"]


def test_one_program_is_at_all_returns_of_go(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    # libbpf 1.3 is the first with `uprobe.multi`.
    libbpf = static_libbpf("amd64", "x86_64-linux-gnu")
    binary = go_program("1.27", tmp_path, GO, name="program")
    probe = fetchc.open(str(binary)).probe("main.serve", returns=True)
    text = probe.written("bpf-c", [probe.compile(one) for one in RESULTS]).text
    assert text.count('SEC("uprobe.multi.s")') == text.count('SEC("uprobe') == 1
    compiled(tmp_path, text)
    expected = traced(capfd, binary, *RESULTS, "-f", "main.serve", "--return")
    assert loaded(tmp_path, binary, text, RESULTS, libbpf) == expected


GO_LOADER = """
package main

import (
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/ringbuf"
	"github.com/cilium/ebpf/rlimit"
)

func run() error {
@LOADER@
}

func main() { fmt.Println(run()) }
"""


def walked_rows(record: bytes) -> list[int]:
    """The entries of the walk in a record of the test below."""
    count, many, ended, changed = struct.unpack_from("QI??", record, 64)
    assert (count, ended, changed) == (many, True, False)
    entries = [struct.unpack_from("Qi", record, 80 + 16 * number) for number in range(many)]
    assert not any(faults for faults, _ in entries)
    return [value for _, value in entries]


@pytest.mark.long  # Go compiles cilium/ebpf
@pytest.mark.parametrize("wanted", [0, 1])
def test_cilium_ebpf_sets_the_constant_and_reads_the_events(wanted: int, tmp_path: Path) -> None:
    require_uprobes()
    packages = KERNELS / "ebpf-amd64/usr/share/gocode"
    if not packages.is_dir():
        pytest.skip("no cilium/ebpf with VariableSpec in .toolchains/kernels: .ci/lab fetches it")
    binary = c_program(tmp_path)
    probe = fetchc.open(str(binary)).probe("work")
    asked = ("n", "row=it->row", "rows=list(it, next).row[0]")
    text = probe.written("bpf-c", [probe.compile(one, computes=True) for one in asked]).text
    compiled(tmp_path, text)
    source = text.partition("Go type of the structure.\n\n")[2].partition("*/")[0]
    for right, own in (
        ('["wanted_pid"].Set(uint32(0))', f'["wanted_pid"].Set(uint32({wanted}))'),
        ("    for {\n", '    fmt.Println("attached")\n    for {\n'),
    ):
        assert right in source
        source = source.replace(right, own)
    (tmp_path / "main.go").write_text(GO_LOADER.replace("@LOADER@", source))
    environment = go_environment("1.27", tmp_path)
    environment["GOPATH"] = f"{tmp_path}:{packages}"
    command = [str(go_root("1.27") / "bin/go"), "build", "-o", "loader", "main.go"]
    subprocess.run(command, cwd=tmp_path, env=environment, check=True, timeout=280)
    with subprocess.Popen(["./loader"], cwd=tmp_path, stdout=subprocess.PIPE, bufsize=0) as child:
        try:
            assert read(child, 9) == b"attached\n"
            subprocess.run([binary], check=True, timeout=SECONDS)
            found = [bytes.fromhex(one) for one in quiet(child).decode().splitlines()]
        finally:
            child.kill()
    values = [struct.unpack_from("4i", one, 44) for one in found]
    assert values == ([] if wanted else [(-4, 7, 8, -9), (5, -1, 0, 1), (6, -1, 0, 1)])
    assert [walked_rows(one) for one in found] == ([] if wanted else [[7, -1], [-1], [-1]])


# ------------------------------------------------------------------------------
# Every expression of the corpus.


class Structure:
    """A structure of the text: how its records print."""

    def __init__(self, members: str) -> None:
        self._members = re.findall(
            r"^    (\S+) (\w+)(?:\[(\w+)\])?;  // bit (\d+): .*?(?:as `(\w+)` says)?$",
            members,
            re.M,
        )
        fields: list[tuple[str, Any]] = [
            ("head", ctypes.c_uint64 * 2),
            ("task", ctypes.c_uint32 * 3),
            ("comm", ctypes.c_char * 16),
        ]
        for kind, name, count, _, _ in self._members:
            one = getattr(ctypes, _TYPES[kind])
            fields.append((name, one * int(count.replace("TEXT_BYTES", "256")) if count else one))

        class Layout(ctypes.Structure):
            _fields_ = fields

        self._layout: Any = Layout

    def printed(self, record: bytes) -> dict[str, str]:
        """As :func:`compared_values` takes them."""
        values = self._layout.from_buffer_copy(record)
        found = {}
        for kind, name, count, bit, length in self._members:
            value = getattr(values, name)
            if values.head[1] >> int(bit) & 1:
                found[name] = "(fault)"
            elif kind == "char" and count:
                start = getattr(self._layout, name).offset
                text = record[start : start + getattr(self._layout, name).size]
                text = text[: getattr(values, length)] if length else text.split(b"\0")[0]
                found[name] = f'"{text.decode(errors="surrogateescape")}"'
            else:
                found[name] = f"{{{','.join(map(str, value))}}}" if count else str(value)
        return found


_TYPES = {
    f"__{sign}{bits}": f"c_{long}{bits}"
    for sign, long in (("u", "uint"), ("s", "int"))
    for bits in (8, 16, 32, 64)
} | {"char": "c_uint8", "bool": "c_uint8"}


def records(child: subprocess.Popen[bytes]) -> Iterator[bytes]:
    """What the loader writes until it has nothing more for some time."""
    assert child.stdout is not None
    while select.select([child.stdout], [], [], 1)[0]:
        yield read(child, struct.unpack("Q", read(child, 8))[0])


def of_events(folder: Path, text: str, binary: Path) -> tuple[Printed, str]:
    """Of each event what its hits have, in a run of ``binary``; and what that printed."""
    structures = {
        int(number): (event, Structure(members))
        for event, members, number in re.findall(
            r"^struct (ev\d+)(?:_\d+)?_event (\{.*?event;  // (\d+) .*?^\});", text, re.S | re.M
        )
    }
    reported: Printed = defaultdict(list)
    written = "fwrite(&bytes, 8, 1, stdout); fwrite(data, bytes, 1, stdout); fflush(stdout);"
    with attached(folder, text, written) as child:
        try:
            printed = subprocess.run(
                [binary], check=True, capture_output=True, text=True, timeout=SECONDS
            ).stdout
            for record in records(child):
                event, structure = structures[struct.unpack_from("I", record, 24)[0]]
                reported[event].append(structure.printed(record))
        finally:
            child.kill()
    return reported, printed


@pytest.mark.parametrize(
    "name",
    [
        "c/layouts/gcc-O2-dwarf5",
        "go/dnsforward/go1.27",
        pytest.param("c/layouts/clang-O0-dwarf4", marks=pytest.mark.long),
        pytest.param("go/dnsforward/go1.15", marks=pytest.mark.long),
    ],
)
def test_every_value_of_a_fixture_is_what_it_printed(name: str, tmp_path: Path) -> None:
    require_uprobes()
    asked = asked_of(name, "bpf-c")
    binary = Path(shutil.copy(fixture(name), tmp_path / "own"))
    text = together("bpf-c", asked).text.replace(str(fixture(name)), str(binary))
    compiled(tmp_path, text)
    reported, printed = of_events(tmp_path, text, binary)
    compared, wrong = compared_values(asked, reported, printed, exact=True)
    assert not wrong, "\n".join(wrong)
    assert compared >= 400, compared
    hit = next(iter(reported.values()))[0]
    hit[next(iter(hit))] = "(fault)"
    assert len(compared_values(asked, reported, printed, exact=True)[1]) == 1


@pytest.mark.parametrize("language", ["c", "go"])
def test_operators_compute_what_the_program_does(language: str, tmp_path: Path) -> None:
    require_uprobes()
    if language == "c":
        function, (binary, texts) = "take", c_values(tmp_path, SEED, "gcc", ".c")
    else:
        function = "main.show"
        binary, texts = go_values(tmp_path, SEED, GO_VERSIONS[-1])
    probe = fetchc.open(str(binary)).probe(function)
    taken: list[fetchc.Argument] = []
    for text in texts:
        argument = probe.compile(f"v{len(taken)}={text}", computes=True)
        try:
            probe.written("bpf-c", [argument])
        except fetchc.CompileError:
            continue  # BPF has no floating-point numbers
        if argument.decode.kind == "float":
            continue  # one that is converted to its own type is fetched: its bits
        taken.append(argument)
    assert len(taken) > len(texts) // 2
    parts = [taken[at : at + _ONE_EVENT] for at in range(0, len(taken), _ONE_EVENT)]
    events = [one for n, part in enumerate(parts) for one in probe.events(part, "g", f"ev{n}")]
    text = written("bpf-c", events).text
    # The drawn expressions compare numbers with what they never are.
    drawn = ("bool-operation", "tautological-compare", "constant-logical-operand")
    compiled(tmp_path, text, *[f"-Wno-{one}" for one in drawn])
    reported, printed = of_events(tmp_path, text, binary)
    assert computed_otherwise(reported, printed.splitlines(), texts, taken) == []
    hit = reported["ev0"][0]
    hit["v0"] = "(fault)" if hit["v0"] != "(fault)" else "0"
    assert len(computed_otherwise(reported, printed.splitlines(), texts, taken)) == 1


def computed_otherwise(
    reported: Printed, lines: Sequence[str], texts: Sequence[str], taken: Sequence[fetchc.Argument]
) -> list[str]:
    """What the programs computed otherwise than the traced one."""
    hits = [hit for listed in reported.values() for hit in listed]
    wrong = []
    for at, argument in enumerate(taken):
        printed = [line.split()[texts.index(argument.expression)] for line in lines]
        wanted = ["(fault)" if one == "-" else one[1:] for one in printed]
        found = [hit[f"v{at}"] for hit in hits if f"v{at}" in hit]
        if found != wanted:
            wrong.append(f"{argument.expression} is {printed}, computed {found}")
    return wrong
