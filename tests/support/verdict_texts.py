"""Definitions to ask kernels about: random ones, sound and broken, and some of every kind."""

from __future__ import annotations

from hypothesis import strategies as st

OPENINGS = ["+0(", "+8(", "-8(", "+u4(", "-u0x10(", "+-8(", "+010(", "++8("]
WRONG_OPENINGS = ["+x(", "+(", "--8(", "+4294967296(", "+0x8000000000000000("]
BASES = ["%di", "%ax", "$stack", "$stack3", "$comm", "$COMM", "$retval", "@0x10", "@+8", "@+-8"]
BASES += ["\\1", "\\-1", "\\+1", "\\0x10"]
WRONG_BASES = ["%rdi", "%", "$stackx", "$stack0x1", "$arg1", "$arg*", "$foo", "$", "@sym", "@08"]
WRONG_BASES += ["@", "@+zz", "\\x", "\\", '\\"a"', '\\"a', "foo", "8", "_", "*di", "", "$retvalx"]
TYPES = [":u8", ":x64", ":s16", ":char", ":string", ":ustring", ":b3@4/8", ":b0x2@010/0x20"]
WRONG_TYPES = [":", ":u128", ":bool", ":symbol", ":symstr", ":b9@4/8", ":b0@0/8", ":b1@/8", ":b1/8"]
WRONG_TYPES += [":b1@0/24", ":u8:u8", ":U8"]
ARRAYS = ["[1]", "[4]", "[0x10]", "[64]"]
WRONG_ARRAYS = ["[0]", "[65]", "[-1]", "[]", "[", "[2", "[3]x", "[2][2]", "[4294967296]"]
NAMES = ["a=", "b=", "_1="]
WRONG_NAMES = ["=", "1=", "a-b=", "a[0]=", "common_pid=", f"{'n' * 33}="]
PIECES = (
    OPENINGS + BASES + TYPES + ARRAYS + NAMES + [")", ")", "(", "[", ":", "=", "+", "9", "x", '"']
)


@st.composite
def written(draw: st.DrawFn) -> str:
    """A fetch-arg of sound pieces, now and then with one that is not, or not closed."""

    def piece(right: list[str], wrong: list[str]) -> str:
        chosen = draw(st.integers(0, 6))
        return draw(st.sampled_from(wrong if chosen == 0 else right))

    name = piece(["", *NAMES], WRONG_NAMES)
    levels = draw(st.integers(0, 5))
    opened = "".join([piece(OPENINGS, WRONG_OPENINGS) for _ in range(levels)])
    closed = ")" * (levels + draw(st.sampled_from([0, 0, 0, 0, 0, 0, 0, -1, 1])))
    tail = draw(st.sampled_from([""] * 12 + ["+8", "x"])) if levels else ""
    kind = piece(["", "", *TYPES], WRONG_TYPES)
    array = piece(["", "", "", *ARRAYS], WRONG_ARRAYS) if kind else ""
    return f"{name}{opened}{piece(BASES, WRONG_BASES)}{closed}{tail}{kind}{array}"


soups = st.lists(st.sampled_from(PIECES), min_size=1, max_size=7).map("".join)


LONG = "x" * 64
HEADS = [
    "{g}/e {t}:0x100",
    "{g}/e {t}:256 %di",
    "{g}/e {t}:0400 %di",
    "{g}/e {t}:0x1g",
    "{g}/e {t}:08",
    "{g}/e {t}:99999999999999999999",
    "{g}/e {t}:-5",
    "{g}/e {t}:",
    "{g}/e {t}:name",
    "{g}/e {t}",
    "{g}/e",
    "{g}/e {t}:0x100(0x10)",
    "{g}/e {t}:0x100(0x10",
    "{g}/e {t}:0x100(0x10)x",
    "{g}/e {t}:0x100(zz)",
    "{g}/e {t}:0x100()",
    "{g}/e {t}:0x100%return $retval",
    "{g}/e {t}:0x100%ret",
    "{g}/e {t}:0x100%",
    "{g}/e {t}:0x100%return(0x10)",
    "{g}/e {t}:0x100(0x10)%return",
    "{g}/ {t}:0x100",
    "{g}. {t}:0x100",
    "{g}.e {t}:0x100",
    "{g}.e.f {t}:0x100",
    "/e {t}:0x100",
    ".e {t}:0x100",
    " {t}:0x100",
    "{g}/1e {t}:0x100",
    "{g}/e-v {t}:0x100",
    "{g}/a/b {t}:0x100",
    "1{g}/e {t}:0x100",
    "{g}-x/e {t}:0x100",
    f"{{g}}/{LONG} {{t}}:0x100",
    f"{LONG}/e {{t}}:0x100",
    f"{{g}}/{LONG[1:]} {{t}}:0x100",
    "{g}/e {t}:0x100 a=%di#b=%si",
    "{g}/e {t}:0x100 " + " ".join([f"a{n}=%di" for n in range(128)]),
    "{g}/e {t}:0x100 " + " ".join([f"a{n}=%di" for n in range(129)]),
    "{g}/e {t}:0x100 " + " ".join([f"a{n}=+0(%di):u64[64]" for n in range(6)]),
    "{g}/e {t}:0x100 " + " ".join([f"a{n}=+0(%di):u64[64]" for n in range(7)]),
    "{g}/e {t}:0x100 arg2=%di %si",
    "{g}/e {t}:0x100 arg1=%di %si",
]
