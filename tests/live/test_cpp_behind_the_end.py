"""After the last element of what C++ libraries count there is no value, as in other languages."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import fetchc
from tests.live.watching import watched
from tests.support.toolchains import require
from tests.support.tracefs import require_uprobes

pytestmark = pytest.mark.live

SOURCE = r"""
#include <deque>
#include <list>
#include <queue>
#include <stack>
#include <string>
#include <string_view>
#include <vector>
struct item { int number; std::string name; };
__attribute__((noinline)) int take(std::vector<item> &items, const std::vector<int> *numbers,
    std::vector<bool> &flags, std::string &text, std::string_view part, std::list<int> &nodes,
    std::deque<short> &line, std::queue<int> &queue, std::stack<int> &stack)
{
    asm volatile("" ::"r"(&items), "r"(numbers), "r"(&flags), "r"(&text), "r"(&part), "r"(&nodes),
        "r"(&line), "r"(&queue), "r"(&stack) : "memory");
    return items.size();
}
int main()
{
    std::vector<item> items{{1, "one"}, {2, "two"}, {3, "three"}};
    std::vector<int> numbers{4, 5, 6};
    std::vector<bool> flags(9, true);
    std::string text = "text";
    std::list<int> nodes{7, 8};
    std::deque<short> line{9, 10};
    std::queue<int> queue({11, 12});
    std::stack<int> stack;
    stack.push(13);
    items.pop_back();
    flags.resize(7);
    take(items, &numbers, flags, text, std::string_view(text).substr(0, 2), nodes, line, queue,
        stack);
    // The elements stay in the memory behind what is left of each.
    items.clear(), numbers.clear(), flags.clear(), text.clear(), nodes.clear(), line.clear();
    queue.pop(), queue.pop(), stack.pop();
    take(items, &numbers, flags, text, std::string_view(text), nodes, line, queue, stack);
}
"""
# With what each gives in the first and in the second call; None: (fault).
WANTED: dict[str, tuple[object, object]] = {
    "items[1].number": (2, None),
    "items[2].number": (None, None),
    "items[1].name.size()": (3, None),
    "items.front().number": (1, None),
    "items.back().number": (2, None),
    "items.size()": (2, 0),
    "numbers->front()": (4, None),
    "(*numbers)[1:3]": ([5, 6], None),
    "(*numbers)[1:4]": (None, None),
    "flags[6]": (True, None),
    "flags[7]": (None, None),
    "part[1]": ("e", None),
    "part[2]": (None, None),
    "nodes.front()": (7, None),
    "nodes.back()": (8, None),
}
# A string has a NUL after its last character, which the program may read. In libc++ which bytes
# are its text, or a deque's elements, is computed.
OF_LIBSTDCXX: dict[str, tuple[object, object]] = {
    "text[0]": ("t", "\0"),
    "text[4]": ("\0", None),
    "text[5]": (None, None),
    "text.front()": ("t", "\0"),
    "line.front()": (9, None),
    "line.back()": (10, None),
    "queue.front()": (11, None),
    "stack.top()": (13, None),
}


@pytest.mark.parametrize("compiler", ["g++", "clang++ -fstandalone-debug -stdlib=libc++"])
def test_elements(compiler: str, tmp_path: Path) -> None:
    require_uprobes()
    command = compiler.split()
    require(command[0])
    wanted = dict(WANTED)
    if command[-1] != "-stdlib=libc++":
        wanted |= OF_LIBSTDCXX
    else:
        require("libc++")
    source, program = tmp_path / "behind.cc", tmp_path / "behind"
    source.write_text(SOURCE)
    subprocess.run(
        [*command, "-std=c++17", "-g", "-O1", "-o", program, source], check=True, timeout=60
    )
    probe = fetchc.open(str(program)).probe("take")
    _, (first, second) = watched(lambda group: [probe.plan(list(wanted), group)], [program])
    for number, event in enumerate((first, second)):
        assert event.args == {label: each[number] for label, each in wanted.items()}
        missing = {label for label, each in wanted.items() if each[number] is None}
        assert set(event.faults) == missing
