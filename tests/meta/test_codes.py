"""Every diagnostic code has a title, a long text, a place that raises it, and a case."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fetchc.diag.codes import TITLES, explain
from tests.support.cases import all_cases

CHECKOUT = Path(__file__).parents[2]
# What no case file can show, with the test that triggers it instead.
ELSEWHERE = {
    "FC0104": "tests/unit/syntax/test_errors.py::test_empty",  # a case has an expression
    "FC0105": "tests/unit/answers/test_question.py::test_what_is_no_question",
    "FC0503": "tests/unit/emit/test_definition.py::test_event_names",  # names of the library's face
    "FC0504": "tests/unit/emit/test_definition.py::test_number_of_arguments",
    "FC0508": "tests/unit/emit/test_definition.py::test_size_of_the_event",
    "FC0509": "tests/unit/emit/test_definition.py::test_length_of_the_line",
    "FC0510": "tests/unit/emit/test_definition.py::test_paths_that_cannot_be_written",
    "FC0512": "tests/unit/ir/test_verify.py::test_registers_of_the_machine",
    "FC0513": "tests/unit/lower/test_containers.py::test_a_field_in_nine_bytes_is_refused",
    "FC0607": "tests/unit/check/test_copies.py::test_an_exported_variable_may_be_copied",
    "FC0617": "tests/unit/driver/test_statements.py::"
    "test_an_inlined_function_is_probed_where_its_copies_begin",
    "FC0751": "tests/unit/tracer/test_filter_parsing.py::test_what_does_not_parse",
    "FC0752": "tests/unit/tracer/test_filter_conditions.py::test_constants_that_can_never_be",
    "FC0753": "tests/unit/tracer/test_command.py::test_programs_that_cannot_be_run",
    "FC0755": "tests/unit/cli/tracing/test_targets.py::test_more_functions_than_fit",
    "FC0756": "tests/unit/cli/tracing/test_targets.py::test_what_cannot_be_compared_or_counted",
    "FC0757": "tests/unit/cli/test_short_names.py::test_what_is_not_clear_is_refused",
    "FC0621": "tests/unit/debuginfo/dotnet/test_dotnet_program.py::test_a_return_at_ones_own_risk",
    "FC0633": "tests/unit/cli/tracing/test_targets.py::test_what_is_stored_later_is_probed_there",
    "FC0634": "tests/live/test_lines.py::test_what_optimized_code_may_have_assigned_is_said",
    "FC0624": "tests/unit/driver/test_folded.py::test_what_a_probe_of_one_sees",
    "FC0622": "tests/unit/debuginfo/dotnet/test_state_machines.py::test_the_body",
    # What only a running kernel refuses.
    "FC0612": "tests/live/test_session.py::test_what_a_killed_session_leaves",
    "FC0613": "tests/unit/tracer/test_replaced_files.py::test_changes_are_reported_once",
    "FC0636": "tests/live/test_session.py::test_a_debugger_at_traced_code_is_named",
    "FC0701": "tests/unit/tracer/test_tracefs.py::test_an_ordinary_user_is_refused",
    "FC0702": "tests/unit/tracer/test_tracefs.py::test_not_mounted",
    "FC0703": "tests/unit/tracer/test_tracefs.py::test_a_kernel_without_uprobe_events",
    "FC0704": "tests/unit/tracer/test_tracefs.py::test_each_answer_of_the_kernel_has_its_code",
    "FC0705": "tests/unit/tracer/test_error_log.py::test_the_kernels_words_and_place",
    "FC0706": "tests/unit/tracer/test_error_log.py::test_what_exists_already_is_a_code_of_its_own",
    "FC0707": "tests/live/test_session.py::test_a_process_that_is_gone_is_reported",
    "FC0708": "tests/unit/tracer/test_error_log.py::test_a_filter_has_the_parsers_words",
    "FC0709": "tests/unit/tracer/test_tracefs.py::test_a_setting_that_is_refused",
    "FC0710": "tests/unit/tracer/test_install.py::test_what_stays_in_use_is_reported",
    "FC0711": "tests/live/test_persistent.py::test_what_is_not_ours_is_shown_and_not_touched",
    "FC0712": "tests/unit/tracer/test_state_file.py::test_a_damaged_file_is_not_trusted",
    "FC0713": "tests/unit/tracer/test_threads.py::test_numbers_of_another_namespace_are_reported",
    "FC0714": "tests/unit/tracer/test_install.py::test_a_kernel_without_kprobes_is_reported",
    "FC0715": "tests/unit/tracer/test_perf_maps.py::test_what_somebody_else_left_is_not_touched",
    "FC0716": "tests/unit/tracer/test_ring_buffer_pages.py::test_other_pages_are_not_read",
    "FC0717": "tests/live/test_bpf_engine.py::test_a_refusal_of_the_verifier_names_the_step",
    "FC0718": "tests/live/test_bpf_engine.py::test_what_it_cannot_do_is_refused",
    "FC0719": "tests/unit/tracer/test_install.py::test_a_file_that_was_not_read_is_refused",
    "FC0801": "tests/unit/conformance/test_toolchains.py::test_a_compiler_that_is_missing",
    "FC0802": "tests/unit/conformance/test_toolchains.py::test_a_compiler_that_refuses",
    "FC0803": "tests/unit/conformance/test_toolchains.py::test_a_compiler_that_hangs",
    "FC0720": "tests/live/test_run_time_code.py::test_breakpoints_are_shared_with_others",
    "FC0722": "tests/live/test_watchpoints.py::test_what_no_watchpoint_covers_is_refused",
    "FC0721": "tests/live/test_run_time_code.py::"
    "test_nothing_is_asked_of_the_runtime_where_that_is_refused",
    "FC0804": "tests/unit/conformance/test_toolchains.py::test_a_compiler_that_strips",
    "FC0805": "tests/unit/conformance/test_toolchains.py::test_a_compiler_for_another_machine",
    "FC0806": "tests/unit/conformance/test_toolchains.py::test_a_program_that_may_not_be_traced",
    "FC0807": "tests/unit/conformance/test_toolchains.py::test_another_machine",
    "FC0904": "tests/unit/debuginfo/test_damaged_dwarf.py::test_damaged_units",
    "FC0908": "tests/unit/debuginfo/separate/test_debug_file_search.py::"
    "test_a_debug_file_of_another_build_is_refused",
    "FC0909": "tests/unit/debuginfo/separate/test_debug_file_search.py::"
    "test_an_alternate_file_that_is_nowhere_is_reported_with_all_places",
    "FC0905": "tests/unit/debuginfo/test_dwarf_program.py::test_an_unread_machine_is_refused",
}


def _sources() -> str:
    return "".join(
        path.read_text()
        for path in (CHECKOUT / "fetchc").rglob("*.py")
        if path.name not in ("codes.py", "tables.py")
    )


@pytest.mark.parametrize("code", TITLES)
def test_long_text(code: str) -> None:
    text = explain(code)
    head, meaning, rest = text.split("\n\n", 2)
    assert head == f"{code}: {TITLES[code]}"
    assert len(meaning) > 40
    assert re.search(r"(^|\n)Example:\n\n    \S", rest)
    assert re.search(r"(^|\n)What to do: \S", rest)
    assert max(len(line) for line in text.splitlines()) <= 100


def test_no_text_without_a_code() -> None:
    written = (CHECKOUT / "fetchc/diag/explanations.txt").read_text()
    assert re.findall(r"^FC\S*$", written, re.MULTILINE) == list(TITLES)
    with pytest.raises(ValueError, match="FC9999"):
        explain("FC9999")


@pytest.mark.parametrize("title", TITLES.values())
def test_titles_are_messages(title: str) -> None:
    assert not title.endswith(".")
    assert title[0].islower() or title.split()[0] == title.split()[0].upper()


def test_every_code_is_raised_and_every_raised_one_is_registered() -> None:
    assert set(re.findall(r'"(FC\d{4})"', _sources())) == set(TITLES)


@pytest.mark.parametrize("code", TITLES)
def test_every_code_has_a_case(code: str) -> None:
    if code in ELSEWHERE:
        path, _, name = ELSEWHERE[code].partition("::")
        text = (CHECKOUT / path).read_text()
        assert f"def {name}(" in text
        assert code in text
        return
    assert [case.name for case in all_cases() if f"[{code}]" in case.error]
