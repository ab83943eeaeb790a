"""Classes by value where the debug information does not say how they are passed."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

import fetchc
from tests.live.traced import trace
from tests.support.toolchains import require
from tests.support.tracefs import require_uprobes

pytestmark = pytest.mark.live

SOURCE = r"""
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <vector>
struct Two { long a, b; };
struct Small { short a; char b; int c; };
class Copied { public: int v, w; Copied(int x) : v(x), w(x + 1) {}
  Copied(const Copied &o) : v(o.v), w(o.w) {} };
class Ended { public: int v; Ended(int x) : v(x) {} ~Ended() { v = -1; } };
class Plain { public: int v; Plain(int x) : v(x) {} Plain(const Plain &) = default; };
class Virtual { public: virtual int go() { return 1; } int q = 4; };
struct Text { std::string s; int k; };
struct Held { std::unique_ptr<int> p; int k; };
long sink;
#define FUNCTION(name, type, use) \
  __attribute__((noinline)) int name(type t, int k) { sink += use; return k; }
FUNCTION(two, Two, t.a + t.b)
FUNCTION(small, Small, t.a + t.b + t.c)
FUNCTION(copied, Copied, t.v + t.w)
FUNCTION(ended, Ended, t.v)
FUNCTION(plain, Plain, t.v)
FUNCTION(virtual_, Virtual, t.q)
FUNCTION(text, Text, t.k)
FUNCTION(held, Held, t.k)
FUNCTION(letters, std::string, t.size())
FUNCTION(view, std::string_view, t.size())
FUNCTION(numbers, std::vector<int>, t.size())
int main()
{
  for (int n = 1; n < 4; n++) {
#define CALL(name, object, first, value) \
    std::printf("EVENT %s {\"" first "\": %ld, \"k\": %d}\n", #name, (long)(value), n); \
    name(object, n);
    CALL(two, (Two{n, n + 1}), "t.b", n + 1)
    CALL(small, (Small{1, (char)n, 3}), "t.b:s8", n)
    CALL(copied, Copied(n), "t.w", n + 1)
    CALL(ended, Ended(n), "t.v", n)
    CALL(plain, Plain(n), "t.v", n)
    CALL(virtual_, Virtual(), "t.q", 4)
    CALL(text, (Text{"text", n}), "t.k", n)
    CALL(held, (Held{std::make_unique<int>(n), n}), "t.k", n)
    CALL(letters, std::string(n, 'x'), "t._M_string_length", n)
    CALL(view, std::string_view("abcdef", n), "t._M_len", n)
    CALL(numbers, std::vector<int>(n, n + 7), "t._M_impl._M_start[0]", n + 7)
  }
}
"""
BUILDS = {
    "g++ -fdebug-types-section": ["g++", "-O0", "-fdebug-types-section"],
    "g++ -fdebug-types-section -O2": ["g++", "-O2", "-gdwarf-4", "-fdebug-types-section"],
    "g++ -gdwarf-2 -gstrict-dwarf": ["g++", "-O0", "-gdwarf-2", "-gstrict-dwarf"],
    "g++ -gdwarf-4 -gstrict-dwarf": ["g++", "-O0", "-gdwarf-4", "-gstrict-dwarf"],
    "clang++ -fdebug-types-section": [
        "clang++", "-O0", "-fdebug-types-section", "-fstandalone-debug",
    ],
    "clang++ -gdwarf-4 -gstrict-dwarf": [
        "clang++", "-O0", "-gdwarf-4", "-gstrict-dwarf", "-fstandalone-debug",
    ],
}  # fmt: skip
# What a class has is declared alone there: whether it is defaulted, neither says.
UNKNOWN = {
    "g++ -gdwarf-2 -gstrict-dwarf": {"view"},  # whose definition has no name there
    "clang++ -gdwarf-4 -gstrict-dwarf": {
        "copied", "ended", "plain", "text", "held", "letters", "view", "numbers",
    },
}  # fmt: skip


@pytest.mark.parametrize(
    "build",
    [
        pytest.param(build, marks=pytest.mark.long)
        if build.endswith(("-O2", "g++ -gdwarf-2 -gstrict-dwarf"))
        else build
        for build in BUILDS
    ],
)
def test_members_are_what_the_program_printed(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, build: str
) -> None:
    require_uprobes()
    command = BUILDS[build]
    require(command[0])
    (tmp_path / "classes.cc").write_text(SOURCE)
    options = ["-std=c++17", "-w", *([] if "dwarf" in build else ["-g"]), *command[1:]]
    program = tmp_path / "classes"
    subprocess.run(
        [command[0], *options, "classes.cc", "-o", program], cwd=tmp_path, check=True, timeout=120
    )
    run = subprocess.run([program], capture_output=True, check=True, timeout=60, text=True)
    printed: dict[str, list[dict[str, int]]] = {}
    for line in run.stdout.splitlines():
        _, name, values = line.split(" ", 2)
        printed.setdefault(name, []).append(json.loads(values))
    assert len(printed) == 11
    opened = fetchc.open(str(program))
    for function, calls in printed.items():
        if function in UNKNOWN.get(build, ()):
            with pytest.raises(fetchc.CompileError, match="FC0401"):
                opened.probe(function).compile("k")
            continue
        done = trace(
            capfd, *calls[0], "-x", program, "-f", function, "--format", "jsonl", "--", program
        )
        assert done.args == calls, (function, done.errors)
