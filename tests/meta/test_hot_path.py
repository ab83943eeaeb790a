"""What ``fetchc compile`` loads: the start of the program is most of its time.

docs/speed.md has the figures. dataclasses, typing, pathlib, logging, json, argparse, lark
and elftools each cost as much as reading a small program's debug information.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[2]

# With what they load themselves. unicodedata is for diagnostics with characters beyond ASCII. errno
# is a part of the interpreter: 0.05 ms.
ALLOWED = "__future__, bisect, errno, gc, mmap, os, struct, unicodedata, zlib"
# The names in a definition are made by regular expressions. re brings enum, functools and
# collections: 5.5 ms.
FOR_PROBES = ", re, re._casefix"

PROBE = """
import sys
sys.path.insert(0, {checkout!r})
import {allowed}
allowed = set(sys.modules)
{planted}
from fetchc.cli import main
from fetchc.cli.module_finder import install
install()
status = main(sys.argv[1:])
sys.stdout.flush()
print("loaded", *sorted(set(sys.modules) - allowed))
sys.exit(status)
"""

C = ("-x", "corpus/c/layouts/bin/gcc-O2-dwarf5", "-f", "visit")
CPP = ("-x", "corpus/cpp/addressbook/bin/g++-O0", "-f", "related")
GO = ("-x", "corpus/go/dnsforward/bin/go1.15", "-f", "main.(*server).handleRequest")


def _loaded(*arguments: str, planted: str = "", command: str = "compile") -> set[str]:
    # The modules beyond the allowed ones.
    allowed = ALLOWED + FOR_PROBES * ("--format=probe" in arguments)
    code = PROBE.format(checkout=str(CHECKOUT), allowed=allowed, planted=planted)
    done = subprocess.run(
        # Without site: no package is there, so that one which is wanted is noticed.
        [sys.executable, "-E", "-S", "-c", code, command, *arguments],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return set(done.stdout.splitlines()[-1].split()[1:])


@pytest.mark.parametrize(
    "arguments",
    [
        (*C, "r->head->value"),
        (*C, "--format=probe", "r->list[1].i", "r->words[0]", "r->colour"),
        ("-x", "corpus/c/layouts/bin/clang-O0-dwarf4", "-f", "visit", "r->head->value"),
        (*GO, "r->Question[0].Qtype"),
        (*GO, "r->Question[0].Name"),  # with a warning
        (*GO, "--format=probe", "--kernel=6.1", "r->Question[0].Name", "len(r->Question)"),
    ],
)
def test_compile_loads_what_it_needs(arguments: tuple[str, ...]) -> None:
    loaded = _loaded(*arguments)
    assert "fetchc.api.library" in loaded
    assert {name for name in loaded if name.split(".")[0] != "fetchc"} == set()
    assert not [name for name in loaded if name.endswith((".examples", ".explain"))]


@pytest.mark.parametrize(
    "arguments",
    [
        (*C, "r->head->value", "r->list[1].i"),
        (*CPP, "derived->left", "derived->own"),
        (*GO, "r->Question[0].Name"),
    ],
)
def test_a_plain_member_loads_no_rules_of_a_language(arguments: tuple[str, ...]) -> None:
    loaded = {name for name in _loaded(*arguments) if name.startswith("fetchc.check.")}
    assert "fetchc.check.members" in loaded
    assert not [name for name in loaded if name.endswith("_rules")]


def test_what_needs_the_rules_of_a_language_loads_those_alone() -> None:
    loaded = _loaded(*CPP, "derived->Left::left")
    assert {name for name in loaded if name.endswith("_rules") and ".check." in name} == {
        "fetchc.check.cpp_rules",
        "fetchc.check.type_rules",
    }


def test_a_listing_loads_nothing_that_compiles() -> None:
    loaded = _loaded(*GO[:2], command="functions")
    assert {name for name in loaded if name.split(".")[0] != "fetchc"} == set()
    rooms = {name.split(".")[1] for name in loaded if "." in name}
    assert rooms <= {
        "api",
        "ceilings",
        "cli",
        "debuginfo",
        "diag",
        "driver",
        "program",
        "record",
    } | {"source", "quantities"}


def test_a_listing_of_symbols_loads_no_reader_of_debug_information() -> None:
    loaded = {name for name in _loaded(*C[:2], command="functions") if ".dwarf." in name}
    # What says which linker made the file; a cursor is how all sections are read.
    assert {name.rpartition(".")[2] for name in loaded} <= {
        "byte_reader", "constants", "dwarf_facts", "dwarf_program", "languages",
    }  # fmt: skip


def test_a_trace_loads_no_reader_of_dotnet_before_it_has_a_file() -> None:
    # They take 9 ms of CPU.
    code = f"import sys; sys.path.insert(0, {str(CHECKOUT)!r}); import fetchc.cli.trace_command"
    code += "; print(*sys.modules)"
    command = [sys.executable, "-E", "-S", "-c", code]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    loaded = set(done.stdout.split())
    assert "fetchc.tracer.session" in loaded
    assert not [name for name in loaded if name.startswith("fetchc.debuginfo.dotnet")]


@pytest.mark.parametrize("module", ["dataclasses", "re"])
def test_a_planted_import_is_noticed(module: str) -> None:
    loaded = _loaded(*C, "r->head->value", planted=f"import {module}")
    assert module in loaded


def test_a_trace_by_tracefs_loads_nothing_of_ebpf() -> None:
    code = "import sys, fetchc.cli.trace_command; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=CHECKOUT, capture_output=True, text=True, check=True
    )
    loaded = done.stdout.split()
    assert "fetchc.cli.trace_engine" in loaded
    assert [name for name in loaded if "bpf" in name or name == "fetchc.ir.steps"] == []


def test_a_trace_starts_without_what_few_traces_need() -> None:
    code = "import sys, fetchc.cli.trace_command; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-E", "-S", "-c", code],
        cwd=CHECKOUT, capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    loaded = set(done.stdout.split())
    assert "fetchc.tracer.session" in loaded
    rare = {"ctypes", "datetime", "pkgutil", "random", "shutil", "tempfile", "typing"}
    assert not loaded & (
        rare | {name for name in loaded if name.startswith("fetchc.debuginfo.dotnet")}
    )
