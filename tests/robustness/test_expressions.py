"""Any text is compiled or refused with a place inside it; nothing else may come out.

The strings are made of the words of real expressions about real programs, so that most get
past the parser and many past the checker. What is accepted is read back by the machine
that imports nothing of the product.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import fetchc
from fetchc.conformance import machine
from tests.support.cases import CORPUS

# (file, function, names that mean something there)
SITES = {
    "c": (
        "c/layouts/bin/gcc-O2-dwarf5",
        "visit",
        "r depth i name text grid cube list in to self head next label words pointers act raw "
        "hidden number half high letters tail colour f d shared_counter shared_head per_thread "
        "shared_grid $arg1 $arg7 $retval $comm $stack $stack3 %di %rdi %xmm0",
    ),
    "go": (
        "go/dnsforward/bin/go1.27",
        "main.(*server).handleRequest",
        "r s w Question Name Qtype Answer Id MsgHdr Served stats last zones cache queue index "
        "grid pair label ratio inner a data tab main version counters levels runtime $arg1 $goid",
    ),
}
TYPES = (
    "int long char unsigned (struct\xa0record\xa0*) (struct\xa0node\xa0*) (int) (long) (char\xa0*) \
(unsigned\xa0long) (*main.Msg) (main.Question) (double) (void\xa0*) (bool)"
)
SIGNS = ". . . . -> -> -> [0] [1] [7] [-1] [0:2] [3:3] * & ( ) ( ) + - 2 0 99999999999 : , @ ="
CALLS = "len( cap( sizeof( offsetof( container_of( .(T) .size()"
FORMATS = ":u8 :s64 :x32 :string :hex :char :x8[4] :string[2] :symbol :u8[65] :u8[0]"


def words(site: str) -> list[str]:
    listed = " ".join((SITES[site][2], SITES[site][2], TYPES, SIGNS, SIGNS, CALLS, FORMATS))
    return [word.replace("\xa0", " ") for word in listed.split(" ")]


def probe(site: str) -> fetchc.Probe:
    path, function, _ = SITES[site]
    return fetchc.open(str(CORPUS / path)).probe(function, kernel="6.1")


PROBES = {site: probe(site) for site in SITES}


def compiled(site: str, text: str) -> str | None:
    """The fetch-arg of ``text``, None where it was refused as it should be."""
    try:
        argument = PROBES[site].compile(text)
        PROBES[site].named([argument])
        return argument.fetcharg
    except fetchc.CompileError as refusal:
        for diagnostic in refusal.diagnostics:
            assert diagnostic.message
            if diagnostic.primary is not None:
                span = diagnostic.primary.span
                assert 0 <= span.start <= span.end <= max(len(text), span.start)
        return None


@pytest.mark.parametrize("site", SITES)
@given(data=st.data())
def test_words_of_expressions_in_any_order(site: str, data: st.DataObject) -> None:
    text = "".join(data.draw(st.lists(st.sampled_from(words(site)), min_size=1, max_size=12)))
    body = compiled(site, text)
    if body is not None:
        machine.parse(body)


@pytest.mark.parametrize("site", SITES)
@given(text=st.text(max_size=60))
def test_any_text(site: str, text: str) -> None:
    compiled(site, text)


@pytest.mark.parametrize(
    "text",
    [
        "x" * 10_000,
        "(" * 1000 + "r" + ")" * 1000,
        "r" + "->self" * 1000,
        "r" + "[0]" * 1000,
        "*" * 1000 + "r",
        "-" * 1000 + "1",
        "sizeof(" * 1000 + "r" + ")" * 1000,
        "\udcff\udcfe",
        "r->n\u00e4me",
        "r\0->i",
    ],
    ids=["long", "brackets", "members", "indices", "stars", "signs", "sizeof", "bytes", "letters",
         "nul"],
)  # fmt: skip
def test_hostile_texts_are_refused(text: str) -> None:
    assert compiled("c", text) is None


def test_most_words_are_understood() -> None:
    # The generator is of no use if everything it makes stops at the parser.
    understood = [w for w in words("c") if compiled("c", f"r->{w}" if w.isalpha() else w)]
    assert len(set(understood)) > 20
