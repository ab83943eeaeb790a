"""The long form of a diagnostic code: ``fetchc explain FC0302``.

The texts are data beside this module, in ``explanations.txt``, so that they read like
the pages they are. Not for the way of ``compile``.
"""

from __future__ import annotations

from pkgutil import get_data

from fetchc.diag.codes import TITLES

__all__ = ["explain"]


def explain(code: str) -> str:
    """Title, meaning, example and cure of ``code``, one of :data:`fetchc.diag.codes.TITLES`.

    Several lines without a final newline, at most 100 columns wide. Raises ValueError
    for what is no code.
    """
    text = _texts().get(code)
    if text is None:
        raise ValueError(f"no diagnostic code {code!r}")
    return f"{code}: {TITLES[code]}\n\n{text}"


def _texts() -> dict[str, str]:
    texts: dict[str, list[str]] = {}
    lines: list[str] = []  # of the comment at the top, until the first code
    content = get_data("fetchc.diag", "explanations.txt")  # of an installation that is a zip, too
    assert content is not None
    for line in content.decode("utf-8").split("\n"):
        if line.startswith("FC"):
            lines = texts[line] = []
        else:
            lines.append(line)
    return {code: "\n".join(text).strip("\n") for code, text in texts.items()}
