"""Run by gdb: what it knows of every name at the addresses that it is asked about, as JSON.

``FETCHC_GDB`` names a folder with ``questions``; ``answers`` is written there. `info scope` is
the command that says where a name is without a process. It stops at the first function, an
inlined one too, so what is further out is asked where that one is the innermost.
"""

import json
import os
import random
from collections.abc import Container, Iterator
from typing import Any

import gdb  # type: ignore[import-untyped]

FOLDER = os.environ["FETCHC_GDB"]
LOG = os.path.join(FOLDER, "log")
SETTINGS = (
    f"logging file {LOG}",
    "logging redirect on",
    "logging debugredirect on",
    "logging overwrite on",
    "width 0",
    "debuginfod enabled off",
)
WITNESSES = 97  # addresses of a block that are tried


def chain(address: int, entries: Container[int] = ()) -> list[Any]:
    """The blocks around an address, innermost first, up to the function with the code.

    A function of a local class lies in blocks of another function: ``entries``, where its own code
    begins, tell them apart.
    """
    block = gdb.block_for_pc(address)
    found = []
    while block is not None and not block.is_static and not block.is_global:
        found.append(block)
        block = block.superblock
    own = [
        at
        for at, one in enumerate(found)
        if one.function is not None and int(one.function.value().address) in entries
    ]
    return found[: own[-1] + 1] if own else found


def listed(address: int) -> Iterator[Any]:
    """Those of them that `info scope` lists."""
    for block in chain(address):
        yield block
        if block.function is not None:
            return


def key(block: Any) -> tuple[tuple[int, int, str], ...]:
    """What tells a block from others: gdb's own objects are made anew each time.

    Those around it, too: blocks of two inlined calls can begin and end at the same addresses.
    """
    found = []
    while block is not None and not block.is_static:
        found.append((block.start, block.end, str(block.function)))
        block = block.superblock
    return tuple(found)


def scope(address: int, known: dict[int, list[list[str]]]) -> list[list[str]]:
    """Names and what is said of them, in order; less where gdb stops with an error."""
    if address not in known:
        with open(LOG, "w"):
            gdb.execute("set logging enabled on")
        try:
            gdb.execute(f"info scope *{address}")
            error = ""
        except gdb.error as stopped:
            error = f" is an error: {stopped}"
        gdb.execute("set logging enabled off")
        with open(LOG) as log:
            printed = "\n" + log.read() + error
        known[address] = [part.split(" is ", 1) for part in printed.split("\nSymbol ")[1:]]
    return known[address]


def said(
    block: Any,
    position: int,
    name: str,
    addresses: list[int],
    known: dict[int, list[list[str]]],
) -> str | None:
    """What gdb says of the symbol at ``position`` of ``block``; None where it cannot be asked."""
    wanted = key(block)
    step = max(1, (block.end - block.start) // WITNESSES)
    for at in (*addresses, *range(block.start, block.end, step)):
        around = list(listed(at))
        keys = [key(one) for one in around]
        if wanted in keys:
            inner = around[: keys.index(wanted)]
            before = sum(symbol.name == name for one in inner for symbol in one)
            same = [i for i, symbol in enumerate(block) if symbol.name == name]
            texts = [entry[-1] for entry in scope(at, known) if entry[0] == name]
            index = before + same.index(position)
            return texts[index] if index < len(texts) else None
    return None


def answer(question: dict[str, Any], known: dict[int, list[list[str]]]) -> Iterator[dict[str, Any]]:
    """What is visible at the function's entry and at some instructions of it: the words for each
    name, that of the innermost block first.
    """
    entry, size = question["address"], question["size"]
    if not chain(entry):
        return  # without debug information
    machine = gdb.selected_inferior().architecture()
    code = [one["addr"] for one in machine.disassemble(entry, entry + size - 1)]
    # The hot part of a function that is asked for its unlikely one, where that is not inlined.
    others = [
        at for low, high in question["parts"] for at in range(low, high, 1 + (high - low) // 97)
    ]
    entries = {entry, *[low for low, _ in question["parts"]]}
    source = random.Random(question["seed"])
    for address in sorted({entry, *source.choices(code, k=question["points"])}):
        names: dict[str, list[str | None]] = {}
        for block in chain(address, entries):
            for position, symbol in enumerate(block):
                gone = symbol.addr_class == gdb.SYMBOL_LOC_OPTIMIZED_OUT
                if symbol.is_variable or symbol.is_argument or symbol.is_constant or gone:
                    text = said(block, position, symbol.name, [address, *others], known)
                    names.setdefault(symbol.name, []).append(text)
        yield {"symbol": question["symbol"], "entry": entry, "address": address, "names": names}


def main() -> None:
    """Answer all questions."""
    for setting in SETTINGS:
        gdb.execute(f"set {setting}", to_string=True)
    with open(os.path.join(FOLDER, "questions")) as file:
        questions = json.load(file)
    known: dict[int, list[list[str]]] = {}
    answers = [one for question in questions for one in answer(question, known)]
    with open(os.path.join(FOLDER, "answers"), "w") as file:
        json.dump(answers, file)


main()
