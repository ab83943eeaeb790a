"""Go as gccgo compiles it: types and calls are those of C, in debug information and code."""

from __future__ import annotations

from fetchc.lang.base import Language
from fetchc.lang.c_language import CPLUSPLUS
from fetchc.lang.go_language import GO

__all__ = ["GCCGO"]

GCCGO = Language(
    name="Go of gccgo",
    spell=CPLUSPLUS.spell,
    global_names=GO.global_names,
    return_probe=False,
    stack_check=False,
    pointer_indexes_array=True,
    convention_first=False,
    word_int=True,
    functions_meant=GO.functions_meant,
    return_refusal="a goroutine that resumes on another thread ends the program there",
)
