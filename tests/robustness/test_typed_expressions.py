"""Expressions drawn from the grammar and along members, of programs in every language.

Whatever is asked is compiled, explained, planned for a trace, put into a definition and written for
the tools that compute, as a condition too, or refused with a place.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fetchc
from fetchc.conformance import machine
from fetchc.emit.output_formats import COMPUTING, written
from tests.support.fuzzing import others
from tests.support.fuzzing.made import everything
from tests.support.programs import CORPUS
from tests.support.sentences import WORDS, sentence

# (file, function, point, kernel, names and members that mean something there, types)
Site = tuple[str, str, str | None, str, str, str]
NUMBERS = ["0", "1", "2", "7", "0x1f", "63", "64", "4294967295", "99999999999999999999"]
SITES: dict[str, Site] = {
    "c": ("c/layouts/bin/gcc-O2-dwarf5", "visit", None, "6.1",
          "r depth i head next value label list grid cube text half raw in to self act d f colour "
          "letters hidden shared_counter shared_head per_thread", "int char long"),
    "c body": ("c/layouts/bin/clang-O0-dwarf5", "chain", "body", "7.3",
               "head words text rows next value label i s", "int char long"),
    "c by value": ("c/layouts/bin/gcc-O2-dwarf5", "by_value", None, "3.14",
                   "p q s o x y a b c in name bytes i", "int short"),
    "cpp": ("cpp/addressbook/bin/g++-O0", "library", None, "6.18",
            "of book contacts view span small large unique shared row firstName lastName calls id "
            "size first second number begin data c_str", "Contact int Library std::string"),
    "cpp bases": ("cpp/addressbook/bin/clang++-O2", "related", None, "6.1",
                  "right left derived moved own kind inner Middle Right x y", "Derived Left int"),
    "go": ("go/dnsforward/bin/go1.27", "main.(*server).handleRequest", None, "6.1",
           "r s w Question Name Qtype Answer Id MsgHdr Served stats last zones cache queue index "
           "data tab main version counters runtime", "main.Msg int string"),
    "go stack": ("go/features/bin/go1.15", "main.main", "+0", "5.10", "main err v a b", "int"),
    "go stripped": ("go/stripped/bin/go1.22", "main.(*server).handle", None, "6.1",
                    "Question Name Qtype Id main Msg", "main.Msg main.Question int"),
    "rust": ("rust/requests/bin/rustc-O0", "handle", "body", "6.1",
             "r n s v id next name 0 1 x y z __0 point kind some", "Point Request i32"),
    "rust optimised": ("rust/requests/bin/rustc-O3", "visit", None, "6.1",
                       "p b o name x y z 0", "Point i64"),
    "dotnet": ("dotnet/echo/bin/sample.dll", "Server.Handle(Request)", None, "6.1",
               "this request Name Id flag numbers names Length Count Item1 box", "Request int"),
    "dotnet boxes": ("dotnet/echo/bin/sample.dll", "Server.Receive", None, "6.18",
                     "this message box Name Id numbers", "Request int string Point"),
    "kernel": ("BTF", "visit", None, "6.18", "n count next text row x y word colour either i l "
               "bits shared", "node int either word"),
    "kernel fprobe": ("BTF", "fprobe:leave", None, "7.3", "word text n node next", "node int"),
    "made": ("DWARF", "visit", "+0x9", "6.1", "r n more k p text row next node colour either i d "
             "bits first inner counter", "record node int word"),
}  # fmt: skip


@cache
def made() -> Path:
    """A folder with the programs that are in no other place."""
    folder = Path(tempfile.mkdtemp())
    (folder / "BTF").write_bytes(others.btf())
    (folder / "DWARF").write_bytes(everything())
    return folder


@cache
def probe(site: str) -> fetchc.Probe:
    path, function, at, kernel, _, _ = SITES[site]
    where = made() / path if path.isupper() else CORPUS / path
    return fetchc.open(str(where)).probe(function, at, kernel=kernel)


def asked(site: str, text: str) -> list[str]:
    """What was answered; a refusal has a message, and a place inside of the text."""
    here = probe(site)
    answered = []

    def ask(question: Callable[[], object]) -> None:
        try:
            question()
        except fetchc.CompileError as refusal:
            for diagnostic in refusal.diagnostics:
                assert diagnostic.message
                if diagnostic.primary is not None:
                    span = diagnostic.primary.span
                    assert 0 <= span.start <= span.end <= max(len(text), span.start)
            return
        answered.append(text)

    def compiled() -> None:
        body = here.compile(text).fetcharg
        if not site.startswith("kernel"):  # whose arguments by number it does not know
            machine.parse(body)

    def whole() -> None:
        argument = here.compile(text)
        assert here.definition([argument], group="g", event="e")

    def formatted(format: str) -> None:
        argument = here.compile(text, computes=True)
        assert here.written(format, [argument]).text

    def condition() -> None:
        argument = here.compile(text, computes=True)
        assert written("bpf-c", here.events([argument], conditions=[argument])).text

    ask(compiled)
    ask(whole)
    ask(lambda: here.explain(text))
    ask(lambda: here.plan([text], "fetchc_g"))
    for format in COMPUTING:
        ask(partial(formatted, format))
    ask(condition)
    return answered


def words(site: str) -> dict[str, list[str]]:
    """Of each terminal the words that mean something at the site."""
    _, _, _, _, names, types = SITES[site]
    own = {"NAME": [*names.split(), *types.split()], "INTEGER": NUMBERS, "PATH": types.split()}
    special = ["$retval", "$arg1", "$arg2", "$comm", "$stack", "$stack3", "$ret0", "$goid", "$x"]
    return WORDS | own | {"SPECIAL": special, "REGISTER": ["%di", "%ax", "%sp", "%rdi", "%xmm0"]}


@st.composite
def paths(draw: st.DrawFn, site: str) -> str:
    """A name and a way from it along members, indices, casts and slices."""
    _, _, _, _, names, types = SITES[site]
    listed, kinds = names.split(), types.split()
    text = draw(st.sampled_from(listed))
    for _ in range(draw(st.integers(0, 6))):
        name, number = draw(st.sampled_from(listed)), draw(st.sampled_from(NUMBERS[:6]))
        kind = draw(st.sampled_from(kinds))
        text = draw(st.sampled_from([
            f"{text}.{name}", f"{text}->{name}", f"{text}[{number}]", f"*{text}", f"&{text}",
            f"({text})", f"(({kind} *){text})", f"({kind}){text}", f"(struct {kind} *){text}",
            f"{text}[{number}:{number}]", f"len({text})", f"{text} + {number}", f"{text}.({kind})",
            f"{text}.0", f"{text} as {kind}", f"sizeof({text})", f"cap({text})", f"{text}.{name}()",
            f"list({text})", f"list({text}, {name})", f"{text}[:]", f"{text}[{name}]",
            f"{text} == {number}", f"{text}[{number}:{name}]", f"{text} ? {name} : {number}",
        ]))  # fmt: skip
    return text + draw(
        st.sampled_from(["", "", "", ":u8", ":string", ":x32[4]", ":hex", ":symbol", ":char"])
    )


# There are many sites, and what is unknown takes a search of the whole file to be refused.
some = settings(max_examples=max(5, settings().max_examples // 10))


@pytest.mark.parametrize("site", SITES)
@some
@given(seed=st.integers(0, 1 << 32))
def test_sentences_of_the_grammar(site: str, seed: int) -> None:
    asked(site, sentence("expression", "argument", random.Random(seed), words(site)))


@pytest.mark.parametrize("site", SITES)
@some
@given(data=st.data())
def test_ways_along_members(site: str, data: st.DataObject) -> None:
    asked(site, data.draw(paths(site)))


@pytest.mark.parametrize("site", SITES)
def test_some_names_are_known(site: str) -> None:
    # Words that nothing has are of no use.
    cast = ("(int)%di", "(int32)$arg1", "(i32)%di")
    assert any(asked(site, name) for name in (*words(site)["NAME"], *cast))
