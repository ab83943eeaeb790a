"""Tables of offsets by version: their three forms, what merges, and what is a difference."""

from __future__ import annotations

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fetchc.answers.version_tables import (
    FORMS,
    Build,
    Member,
    VersionTable,
    difference,
    form_of,
    module_of,
    read_members,
    standard_version,
)
from fetchc.diag.diagnostic import DebugInfoError

METHOD = Member("std", "net/http", "Request", "Method")
NODE = Member("gopkg.in/yaml.v3", "gopkg.in/yaml.v3", "Node", "Kind")

versions = st.builds("{}.{}.{}".format, *[st.integers(0, 30)] * 3)
members = st.builds(
    Member,
    st.sampled_from(["std", "example.org/m"]),
    st.sampled_from(["net/http", "example.org/m/a"]),
    st.sampled_from(["A", "B"]),
    st.sampled_from(["x", "y", "z"]),
)
offsets = st.none() | st.integers(0, 4096)
rows = st.lists(st.tuples(members, versions, offsets), max_size=20)


def table(listed: list[tuple[Member, str, int | None]]) -> VersionTable:
    made = VersionTable()
    for member, version, offset in listed:
        made.add(member, version, offset)
    return made


@given(rows)
def test_a_table_is_read_back_as_it_was_written(
    listed: list[tuple[Member, str, int | None]],
) -> None:
    for form in ("builds", "otel-go"):
        text = table(listed).text(form)
        again = VersionTable.read("t", text, form)
        assert again.offsets == table(listed).offsets
        assert again.text(form) == text
        if listed:
            assert form_of("t", text) == form


few = (
    st.sampled_from([METHOD, NODE]),
    st.sampled_from(["1.2.0", "1.10.0"]),
    st.sampled_from([None, 8]),
)


@given(st.lists(st.tuples(*few, st.booleans()), max_size=8), st.data())
def test_merging_does_not_depend_on_where_one_stopped(
    listed: list[tuple[Member, str, int | None, bool]], data: st.DataObject
) -> None:
    def add(made: VersionTable, part: list[tuple[Member, str, int | None, bool]]) -> VersionTable:
        for number, (member, version, offset, has_type) in enumerate(part):
            if has_type:
                build = f"{number} {version} {offset}"
                made.builds[build] = Build("b", "x86_64", ((member.module, version),))
                made.add(member, version, offset, build)
            else:
                made.add_absent(member, version)
        return made

    stop = data.draw(st.integers(0, len(listed)))
    first, second = listed[:stop], listed[stop:]
    expected = add(VersionTable(), listed).text("otel-go")
    for form in ("otel-go", "builds"):
        stopped = VersionTable.read("t", add(VersionTable(), first).text(form), form)
        assert add(stopped, second).text("otel-go") == expected
        assert add(stopped, second).text("otel-go") == expected


def test_the_order_is_that_of_the_public_file() -> None:
    made = table([(METHOD, "1.10.0", 8), (METHOD, "1.9.0", 8), (METHOD, "1.2.0", None)])
    made.add(METHOD, "1.11.0-rc1", 16)
    made.add(METHOD, "1.11.0", 16)
    (module,) = json.loads(made.text("otel-go"))
    (field,) = module["packages"][0]["structs"][0]["fields"]
    assert field["offsets"] == [
        {"offset": None, "versions": ["1.2.0"]},
        {"offset": 8, "versions": ["1.9.0", "1.10.0"]},
        {"offset": 16, "versions": ["1.11.0-rc1", "1.11.0"]},
    ]


def test_a_build_that_differs_is_said_and_the_table_stays() -> None:
    made = table([(METHOD, "1.9.0", 8)])
    said = made.add(METHOD, "1.9.0", 16, "aa")
    assert said == "net/http.Request.Method of 1.9.0 is at +16, in the table at +8"
    assert made.offset(METHOD, "1.9.0") == 8
    (field,) = json.loads(made.text("builds"))["fields"]
    assert field["builds"] == [{"offset": 16, "builds": ["aa"]}]


@pytest.mark.parametrize("stored", [False, True])
def test_a_structure_that_one_build_lacks_is_null_until_another_has_it(stored: bool) -> None:
    made = VersionTable()
    made.add_absent(METHOD, "1.9.0")
    if stored:
        made = VersionTable.read("t", made.text("otel-go"), "otel-go")
    assert made.offset(METHOD, "1.9.0") is None
    assert made.seen(METHOD) == set()
    assert made.add(METHOD, "1.9.0", 8) == ""
    made.add_absent(METHOD, "1.9.0")
    assert made.offset(METHOD, "1.9.0") == 8


def test_builds_that_disagree_on_whether_there_is_a_member_are_said() -> None:
    made = table([])
    made.builds["aa"] = Build("a", "x86_64", (("std", "1.9.0"),))
    made.add(METHOD, "1.9.0", None, "aa")
    again = VersionTable.read("t", made.text("builds"), "builds")
    assert again.seen(METHOD) == {"1.9.0"}
    for each in (made, again):
        said = each.add(METHOD, "1.9.0", 8, "bb")
        assert said == "net/http.Request.Method of 1.9.0 is at +8, in the table at none"
        assert each.offset(METHOD, "1.9.0") == 8
    assert again.text("builds") == made.text("builds")


def test_obi_has_steps_and_no_null() -> None:
    listed: list[tuple[str, int | None]] = [
        ("1.1.0", 8), ("1.2.0", 8), ("1.3.0", 16), ("1.4.0", None)
    ]  # fmt: skip
    made = table([(METHOD.replaced(module=""), *each) for each in listed])
    text = made.text("obi")
    assert json.loads(text) == {
        "data": {
            "net/http.Request": {
                "Method": {
                    "versions": {"oldest": "1.1.0", "newest": "1.3.0"},
                    "offsets": [
                        {"offset": 8, "since": "1.1.0"}, {"offset": 16, "since": "1.3.0"}
                    ],
                }
            }
        }
    }  # fmt: skip
    again = VersionTable.read("t", text, "obi")
    own = METHOD.replaced(module="")
    assert again.offset(own, "1.2.5") == 8
    assert again.add(own, "1.2.5", 16).endswith("is at +16, in the table at +8")
    assert again.add(own, "1.2.5", 8) == ""
    with pytest.raises(KeyError):
        again.offset(own, "1.9.0")
    assert again.add(own, "1.9.0", 24) == ""
    newest = json.loads(again.text("obi"))["data"]["net/http.Request"]["Method"]
    assert newest["versions"]["newest"] == "1.9.0"
    assert newest["offsets"][-1] == {"offset": 24, "since": "1.9.0"}


def test_differences_name_the_member_the_version_and_both_offsets() -> None:
    stated = table([(METHOD, "1.9.0", 0), (METHOD, "1.8.0", 8)])
    found = table([(METHOD, "1.9.0", None), (METHOD, "1.8.0", 8), (NODE, "3.0.1", 0)])
    assert difference(stated, stated) == []
    assert difference(stated, found) == [
        "gopkg.in/yaml.v3.Node.Kind of 3.0.1 is not in the table; the program has it at +0",
        "net/http.Request.Method of 1.9.0 is at none, the table says +0",
    ]


def test_a_build_is_compared_with_what_the_table_has_of_that_build() -> None:
    stated = table([(METHOD, "1.9.0", 0)])
    stated.add(METHOD, "1.9.0", 16, "aa")
    found = VersionTable()
    found.add(METHOD, "1.9.0", 16, "aa")
    assert difference(stated, found) == []
    other = VersionTable()
    other.add(METHOD, "1.9.0", 16, "bb")
    assert len(difference(stated, other)) == 1


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("otel-go", '[{"module": "std", "packages": [{"package": "net/http", "structs": [{'),
        ("otel-go", '{"data": {}}'),
        ("otel-go", '[{"module": "std"}]'),
        ("obi", '{"data": {"net/http.Request": {"Method": {"offsets": []}}}}'),
        ("obi", "[]"),
        ("builds", '{"schema": "fetchc.builds/9", "builds": {}, "fields": []}'),
        ("otel-go", "[" * 100_000),
    ],
)
def test_a_file_of_another_form_is_refused(form: str, text: str) -> None:
    with pytest.raises(DebugInfoError) as refused:
        VersionTable.read("table.json", text, form)
    assert refused.value.diagnostic.code == "FC0904"
    assert "table.json" in str(refused.value)


def test_negative_and_fractional_offsets_are_refused() -> None:
    text = table([(METHOD, "1.9.0", 8)]).text("otel-go")
    for wrong in ("-8", "1.5", '"8"', "true"):
        with pytest.raises(DebugInfoError):
            VersionTable.read("t", text.replace('"offset": 8', f'"offset": {wrong}'), "otel-go")


@given(st.sampled_from(FORMS), st.text(max_size=60))
def test_no_text_leads_to_another_error(form: str, text: str) -> None:
    with suppress(DebugInfoError):
        VersionTable.read("t", text, form)


def test_versions_of_toolchains_and_modules_of_packages() -> None:
    assert standard_version("go1.22.10") == "1.22.10"
    assert standard_version("go1.20") == "1.20.0"
    assert standard_version("go1.24.1 X:noswissmap") == "1.24.1"
    assert standard_version("go1.27rc2") == "1.27.0-rc2"
    assert standard_version("devel go1.23-abcdef") == ""
    modules = ("example.org/app", "example.org/app/sub", "golang.org/x/net")
    assert module_of("example.org/app/sub/p", modules) == "example.org/app/sub"
    assert module_of("example.org/application", modules) == "example.org/application"
    assert module_of("main", modules) == "example.org/app"
    assert module_of("net/http", modules) == "std"
    assert module_of("main", ()) == "main"


def test_the_input_of_the_tracker_is_read_as_it_is() -> None:
    text = json.dumps(
        {
            "go": {
                "versions": ">= 1.17",
                "fields": {
                    "net/http.Request": ["Method", "[1.22.0]Pattern", "[1.17.0,1.26.99]ctx"]
                },
            }
        }
    )
    plain, since, between = read_members("t", text)
    assert (plain.package, plain.struct, plain.field) == ("net/http", "Request", "Method")
    assert [since.holds(each) for each in ("1.21.9", "1.22.0", "1.30.0")] == [False, True, True]
    assert [between.holds(each) for each in ("1.16.0", "1.26.4", "1.27.0")] == [False, True, False]
    with pytest.raises(DebugInfoError):
        read_members("t", '{"go": {"fields": {"Request": ["Method"]}}}')
