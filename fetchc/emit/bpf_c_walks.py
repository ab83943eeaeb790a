"""The walk of a container in C for a BPF program: a function that does a round, and its call.

What a round computes are the steps that :mod:`fetchc.ir.step_lowering` makes of the walk. Entries
are structures in the event, of which each has fault bits of its own. The words that a round leaves
to the next one are in the event, too: the verifier knows nothing of the numbers there, so that one
round is to it as another.

A container is walked twice, into the same memory: where other threads have not changed it, the sum
of all words of the entries is the same after both walks.
"""

from __future__ import annotations

from fetchc.diag.diagnostic import reject
from fetchc.emit.bpf_c_values import Values, filled, free_name
from fetchc.emit.c_steps import StepWriter, indented
from fetchc.ir.fetch import Fetch, Word
from fetchc.ir.step_lowering import steps_of
from fetchc.ir.steps import Constant, Loop, ReadCursor, ReadMemory
from fetchc.target.machines import table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from fetchc.emit.output_formats import Event, Item
    from fetchc.ir.fetch import Walk
    from fetchc.ir.steps import Step

__all__ = ["WalkWriter"]

_FOLLOWED = 48  # rounds of a walk, where the verifier follows each: as those of emit.bpf_walks


class WalkWriter:
    """Writes one walk; ``bit`` is its fault bit: the walk came to what cannot be read.

    ``walks`` are the names of those that the file has already: functions have them.
    """

    def __init__(
        self,
        event: Event,
        program: str,
        names: Mapping[str, str],
        item: Item,
        walk: Walk,
        bit: int,
        walks: set[str],
    ) -> None:
        arch = table(f"arch/{event.machine}")
        registers = arch["stack_pointer"]["register"], arch["result"]["register"]
        (loop,) = steps_of([("", Fetch(walk.replaced(fields=()), Word()))], *registers).steps
        assert isinstance(loop, Loop)
        self._loop = loop
        self._values = Values(event, (), "e")
        self._item = item
        self._bit = bit
        self._name = name = names[item.name]
        taken = set(names.values())
        self._own = {
            word: free_name(f"{name}_{word}", taken)
            for word in ("count", "entries", "ended", "changed", "sum")
        }
        self._program = program
        self._stem = free_name(f"{program}_{name}", walks)
        self._entry = f"{self._stem}_entry"
        places = ("key", "value")[: len(loop.places)] if len(loop.places) > 1 else ("place",)
        self._places = places if loop.places else ()
        stems = [*(() if loop.places else ("place",))]
        stems += [f"word{number}" for number in range(1, len(loop.start) + 1 - len(stems))]
        self._cursors = [f"e->{free_name(f'{name}_{stem}', taken)}" for stem in stems]
        at = self._places or self._cursors[:1]
        self._of_entry = Values(event, item.entry, "entry", at)
        most = table("backend/libbpf")["text"]["most_entry_bytes"]
        if (size := self._of_entry.size() * walk.most) > most:
            raise reject(
                "FC0514",
                f"the entries of `{item.name}` have {size} bytes, and an event holds {most}",
                help="ask for fewer entries, or for a member of each",
            )

    @property
    def _text(self) -> str:
        return " ".join(self._item.text.split())

    def structure(self) -> str:
        """The structure of an entry."""
        members = [self._of_entry.declared(bit) for bit in range(len(self._of_entry.members))]
        return filled("entry", name=self._entry, text=self._text, members="\n".join(members))

    def members(self) -> str:
        """The members of the event."""
        words = [one.removeprefix("e->") for one in self._cursors]
        words.append(self._own["sum"])
        return filled(
            "walk_members",
            **self._own,
            entry=self._entry,
            name=self._name,
            most=self._loop.most,
            bit=self._bit,
            text=self._text,
            words=", ".join(words),
        )

    def round(self) -> str:
        """The function that does a round, and returns 1 where it is the last one."""
        loop = self._loop
        reads_of_entry = self._of_entry.reads(range(len(self._of_entry.members)))
        places = [
            (name, value)
            for name, value in zip(self._places, loop.places, strict=True)
            if name in self._of_entry.places_used
        ]
        used = [loop.end, loop.found, *[value for _, value in places], *loop.next]
        steps = StepWriter(loop.body, used, self._start)
        reads = [isinstance(one, ReadMemory) for one in loop.body]
        lines = ["    bool unread = false;", ""] if any(reads) else []
        lines += indented(steps.lines(0, loop.tested))
        unread = filled("walk_unread", bit=self._bit)
        if any(reads[: loop.tested]):
            lines.append(unread)
        lines.append(filled("walk_ended", end=steps.text(loop.end), ended=self._own["ended"]))
        lines += indented(steps.lines(loop.tested, len(loop.body)))
        if any(reads[loop.tested :]):
            lines.append(unread)
        entry = [f"    __u64 {name} = {steps.text(value)};" for name, value in places]
        entry += self._entry_lines(reads_of_entry)
        always = isinstance(loop.body[loop.found], Constant)
        if always:
            lines += ["", *entry]
        else:
            found = steps.text(loop.found)
            lines += ["", f"    if ({found}) {{", *indented(entry), "    }"]
        return filled(
            "walk_round",
            program=self._program,
            walk=self._stem,
            name=self._name,
            text=self._text,
            body="\n".join(lines),
            advance="\n".join(self._advance(steps)),
        )

    def _entry_lines(self, reads: Sequence[str]) -> list[str]:
        own, loop = self._own, self._loop
        lines = [f"    __u32 number = e->{own['entries']};"]
        record = filled(
            "walk_entry",
            entry=self._entry,
            name=self._name,
            reads="\n".join(reads),
            entries=own["entries"],
        ).split("\n")
        if loop.twice:
            total = f"sum_of(e->{own['sum']}, entry, sizeof(*entry))"
            record.append(f"    e->{own['sum']} = {total};")
        if loop.count is not None:
            return [*lines, "", f"    if (number >= {loop.most})", "        return 1;", *record]
        lines += ["", f"    e->{own['count']}++;", f"    if (number < {loop.most}) {{"]
        return [*lines, *indented(record), "    }"]

    def _advance(self, steps: StepWriter) -> Iterator[str]:
        # The words of the next round.
        own = [ReadCursor(number + len(self._places)) for number in range(len(self._cursors))]
        moved = [
            (cursor, steps.text(value))
            for cursor, value, same in zip(self._cursors, self._loop.next, own, strict=True)
            if self._loop.body[value] != same
        ]
        if len(moved) == 1:
            yield f"    {moved[0][0]} = {moved[0][1]};"
            return
        for number, (_, text) in enumerate(moved, 1):
            yield f"    __u64 next{number} = {text};"
        yield ""
        for number, (cursor, _) in enumerate(moved, 1):
            yield f"    {cursor} = next{number};"

    def call(self) -> str:
        """The statements of the program that walk."""
        return filled(
            "walk_twice" if self._loop.twice else "walk_once",
            **self._own,
            text=self._text,
            program=self._program,
            walk=self._stem,
            name=self._name,
        )

    def walk(self, loops: bool) -> str:
        """The function that walks from the start; ``loops``: the kernel has bpf_loop."""
        loop, own = self._loop, self._own
        begin = StepWriter(loop.begin, loop.start, self._start)
        lines = begin.lines(0, len(loop.begin))
        lines += [
            f"{cursor} = {begin.text(value)};"
            for cursor, value in zip(self._cursors, loop.start, strict=True)
        ]
        kept = [one for one in (loop.count, loop.version, loop.writing) if one is not None]
        before, after = (
            StepWriter(loop.check, kept, self._start, stem) for stem in ("before_", "after_")
        )
        lines += before.lines(0, len(loop.check))
        again = after.lines(0, len(loop.check))
        count = "0" if loop.count is None else before.text(loop.count)
        lines.append(f"e->{own['count']} = {count};")
        differs = []
        if loop.count is not None:
            differs.append(f"{after.operand(loop.count)} != e->{own['count']}")
            if loop.twice:  # not where one entry alone is looked for
                differs.append(f"(e->{own['ended']} && e->{own['entries']} != e->{own['count']})")
        if loop.version is not None:
            lines.append(f"__u64 version = {before.text(loop.version)};")
            differs.append(f"{after.operand(loop.version)} != version")
        if loop.writing is not None:
            lines.append(f"bool writing = {before.text(loop.writing)};")
            differs.append(f"writing || {after.operand(loop.writing)}")
        if differs:
            again.append(f"e->{own['changed']} |= {' || '.join(differs)};")
        rounds = loop.rounds if loops else min(loop.rounds, _FOLLOWED)
        call = filled(
            "walk_by_helper" if loops else "walk_by_loop",
            program=self._program,
            walk=self._stem,
            name=self._name,
            rounds=rounds,
        )
        return filled(
            "walk_from_start",
            **own,
            text=self._text,
            program=self._program,
            walk=self._stem,
            name=self._name,
            context=self._values.machine["structure"],
            registers=self._values.declared_registers(),
            begin="\n".join(indented(lines)),
            rounds="\n".join(indented(indented([call, *again]))),
            bit=self._bit,
        )

    def printed(self) -> str:
        """The statements of the loader that print the entries."""
        printed = [self._of_entry.printed(bit) for bit in range(len(self._of_entry.members))]
        return filled(
            "printed_walk",
            **self._own,
            entry=self._entry,
            name=self._name,
            printed="\n".join(indented("\n".join(printed).split("\n"))),
        )

    def _start(self, step: Step) -> str:
        # What steps compute with.
        if isinstance(step, ReadCursor):
            return self._cursors[step.number - len(self._places)]
        return self._values.start(self._item, step)
