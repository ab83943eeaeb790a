"""The format ``tetragon``: a TracingPolicy with a uprobe for each event, and its file of BTF.

Tetragon follows a path of members from a register that passes an argument of C. It takes from BTF
only where a member is, and whether it is a pointer: at each step it adds the offset, and loads a
word where the member is a pointer, or the last one an integer. So the BTF here has one
structure for each load of a fetch, whose one member is named after its offset: the path
``at_40.at_16`` from ``di`` is ``+16(+40(%di))``, whatever the language calls the members.
Source: cilium/tetragon, pkg/btf/btf.go (ResolveBTFPath), bpf/process/generic_arg.h
(extract_arg_depth), pkg/k8s/apis/cilium.io/v1alpha1/types.go (UProbeSpec).
"""

from __future__ import annotations

import json

from fetchc.diag.diagnostic import Diagnostic, reject
from fetchc.emit.btf_file import Aggregate, Integer, Pointer, Slot, encode, merged
from fetchc.emit.output_formats import Written
from fetchc.ir.fetch import Array, Char, Register, Scalar, Text, Word, chain
from fetchc.target.machines import table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from fetchc.diag.diagnostic import CompileError
    from fetchc.emit.btf_file import BtfType
    from fetchc.emit.output_formats import Event, Item

__all__ = ["SETTLED", "write"]

SETTLED = ("FC0604",)  # that a string continues to the next NUL, which is said below

_FARTHEST = 1 << 29  # bytes: an offset in bits has 32
_ROOT = "fetchc_{event}_{name}"


def write(events: Sequence[Event], btf: str = "") -> Written:
    """A policy, in YAML; ``btf`` is where its BTF will be on the machine that it is for.

    Raises CompileError FC0514 for what Tetragon cannot carry: more than 5 values, paths of more
    than 10 steps, paths from other registers or from the stack, bit fields, arrays, returns.
    """
    types: list[BtfType] = []
    warnings: list[Diagnostic] = []
    lines = [
        "apiVersion: cilium.io/v1alpha1",
        "kind: TracingPolicy",
        "metadata:",
        f"  name: {_quoted(events[0].group.replace('_', '-').lower())}",
        "spec:",
        "  uprobes:",
    ]
    for event in events:
        lines += _Uprobe(event, types, btf, warnings).lines()
    types, _ = merged(types)
    content = encode(types, True) if types else b""
    if content and not btf:
        raise reject(
            "FC0514",
            "the policy needs a file of BTF: it follows pointers",
            help="say where that file is to be: `--btf /etc/tetragon/app.btf`",
        )
    return Written("\n".join(lines), tuple(warnings), content)


def _quoted(text: str) -> str:
    return json.dumps(text)  # a string of YAML, too


class _Uprobe:
    def __init__(
        self, event: Event, types: list[BtfType], btf: str, warnings: list[Diagnostic]
    ) -> None:
        if event.point is not None or event.kind != "uprobe":
            what = "the kernel" if event.point is not None else "a function's return"
            raise reject(
                "FC0514",
                f"the format `tetragon` cannot carry a probe of {what}",
                help="use `--format bpftrace` or `fetchc trace`",
            )
        backend = table("backend/tetragon")
        machine = backend["machines"].get(event.machine)
        if machine is None:
            known = ", ".join(backend["machines"])
            what = f"Tetragon does not run on {event.machine}"
            raise reject("FC0514", what, notes=(f"it runs on {known}",))
        self._event = event
        self._types = types
        self._btf = btf
        self._limits: Mapping[str, Any] = backend["policy"]
        self._machine: Mapping[str, Any] = machine
        self._texts: list[str] = []
        self._warnings = warnings

    def lines(self) -> list[str]:
        event = self._event
        values = [self._value(each) for each in event.items]
        if len(values) > self._limits["values"]:
            raise reject(
                "FC0514",
                f"the format `tetragon` carries {self._limits['values']} values, not {len(values)}",
                help="compile fewer at a time: one policy can have several",
            )
        lines = [f"  - path: {_quoted(event.path)}", f"    offsets: [{event.offset}]"]
        if event.build_id:
            lines += ["    binaryDigests:", f"    - {_quoted(f'build-id:{event.build_id}')}"]
        if any(kind == "args" and "resolve" in keys for kind, keys in values):
            lines.append(f"    btfPath: {_quoted(self._btf)}")
        lines.append(f"    message: {_quoted(event.event)}")
        for kind in ("args", "data"):
            listed = [keys for each, keys in values if each == kind]
            lines += [f"    {kind}:"] if listed else []
            for keys in listed:
                written = [f"{key}: {value}" for key, value in keys.items()]
                lines += [f"    - {written[0]}", *[f"      {each}" for each in written[1:]]]
        if self._texts:
            self._warnings.append(
                Diagnostic(
                    "FC0604",
                    f"Tetragon reads {', '.join(self._texts)} up to the next NUL",
                    notes=(f"strings need Linux {self._limits['text_kernel']}",),
                )
            )
        return lines

    def _value(self, item: Item) -> tuple[str, dict[str, str | int]]:
        base, loads = chain(item.fetch.value)
        store = item.fetch.store
        text = isinstance(store, Text) or item.decode.kind in ("text", "bytes")
        if not isinstance(base, Register):
            raise _cannot(item, "its path does not begin at a register")
        if any(load.user for load in loads):
            raise _cannot(item, "it reads a program's memory from a probe of the kernel")
        if text:
            self._texts.append(f"`{item.name}`")
            type_name = "string"
        elif isinstance(store, Scalar):
            type_name = f"{'int' if store.kind == 's' else 'uint'}{store.bits}"
        elif isinstance(store, Char | Word):
            type_name = "uint64" if isinstance(store, Word) else "uint8"
        else:
            what = "arrays" if isinstance(store, Array) else "bit fields"
            raise _cannot(item, f"it has no {what}")
        offsets = [load.offset for load in loads]
        label = {"label": _quoted(item.name)}
        if offsets == [0] and text:  # the string begins where the register leads
            offsets = []
        arguments = self._machine["arguments"]
        if base.name not in arguments:
            if offsets or text or base.name not in self._machine["registers"]:
                first = ", ".join(f"%{name}" for name in arguments)
                raise _cannot(item, f"it follows no pointer in %{base.name}, only in {first}")
            register = _quoted(self._machine["registers"][base.name])
            return "data", {
                "source": '"pt_regs"', "resolve": register, "type": type_name, **label,
            }  # fmt: skip
        place: dict[str, str | int] = {"index": arguments.index(base.name), "type": type_name}
        if not offsets:
            return "args", place | label
        path = self._path(item, offsets, text, type_name)
        root = _quoted(_ROOT.format(event=self._event.event, name=item.name))
        return "args", place | {"btfType": root, "resolve": _quoted(path)} | label

    def _path(self, item: Item, offsets: list[int], text: bool, type_name: str) -> str:
        # The structures of the path, from the last one to the first.
        for offset in offsets:
            if not 0 <= offset < _FARTHEST:
                raise _cannot(item, f"BTF has no member at offset {offset}")
        name = _ROOT.format(event=self._event.event, name=item.name)
        if text:
            # A string at a pointer: the last step loads the pointer. One inside of an object: it
            # adds the offset and loads nothing.
            within = offsets[-1]
            steps = offsets if within else offsets[:-1]
            target = self._add(Aggregate(f"{name}_text", False, 1, ()))
            last = target if within else self._add(Pointer(target))
        else:
            steps = offsets
            size = int(type_name.lstrip("uint")) // 8
            last = self._add(Integer(type_name, size, not type_name.startswith("u"), False))
        if len(steps) > self._limits["steps"]:
            raise _cannot(item, f"a path has {self._limits['steps']} steps, and this {len(steps)}")
        for number, offset in reversed(list(enumerate(steps))):
            slot = Slot(f"at_{offset}", last, 8 * offset)
            own = name if number == 0 else f"{name}_{number}"
            holder = self._add(Aggregate(own, False, offset + 16, (slot,)))
            last = self._add(Pointer(holder)) if number else holder
        return ".".join([f"at_{offset}" for offset in steps])

    def _add(self, each: BtfType) -> int:
        self._types.append(each)
        return len(self._types)


def _cannot(item: Item, why: str) -> CompileError:
    return reject(
        "FC0514",
        f"the format `tetragon` cannot carry `{item.name}`: {why}",
        help="leave it out, or use `--format bpftrace` or `fetchc trace`",
    )
