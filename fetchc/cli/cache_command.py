"""``fetchc cache show`` and ``fetchc cache clear``: what is cached between runs."""

from __future__ import annotations

import os

from fetchc.cli import cache_folder
from fetchc.debuginfo.cache import entries, removed
from fetchc.debuginfo.safe_open import own_folder
from fetchc.debuginfo.separate.debuginfod import downloads
from fetchc.diag.diagnostic import DebugInfoError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.cli.option_table import Options
    from fetchc.cli.output import Output

__all__ = ["run"]


def run(options: Options, output: Output) -> int:
    """List the files with their sizes, or remove them all."""
    action = options.operands[0]
    if action not in ("show", "clear"):
        output.say(f"error: `{action}` is neither show nor clear")
        return 2
    folder = cache_folder()
    if not folder:
        output.say("error: there is no cache: neither XDG_CACHE_HOME nor HOME is set")
        return 2
    if os.path.lexists(folder) and not own_folder(folder):
        # Neither used nor touched.
        what = "not used: it is not a folder that this user owns and only they can write to"
        raise DebugInfoError("FC0901", folder, what)
    try:
        cached = entries(folder) if os.path.lexists(folder) else []
        cached += downloads(folder)
        if action == "clear":
            for _, _, name in cached:
                removed(os.path.join(folder, name))
    except OSError as refused:
        raise DebugInfoError("FC0901", folder, f"cannot be changed: {refused.strerror}") from None
    _print(options, output, folder, cached)
    return 0


def _print(
    options: Options, output: Output, folder: str, cached: list[tuple[float, int, str]]
) -> None:
    total = sum(size for _, size, _ in cached)
    cleared = options.operands[0] == "clear"
    if options.format == "json":
        import json

        files = [{"name": name, "bytes": size, "used": used} for used, size, name in cached]
        shown = {"folder": folder, "cleared": cleared, "bytes": total, "files": files}
        output.document(json.dumps(shown, indent=2))
        return
    if not cleared:
        for _, size, name in cached:
            output.line(f"{size / 1e6:8.1f} MB  {name}")
    summary = "removed" if cleared else "in all"
    output.line(f"{total / 1e6:8.1f} MB  {summary}: {len(cached)} files in {folder}")
