"""Which engine records for ``fetchc trace``: definitions in tracefs, or eBPF programs."""

from __future__ import annotations

from fetchc.diag.diagnostic import TracerError
from fetchc.tracer.session import Session
from fetchc.tracer.tracefs import find_tracefs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.cli.option_table import Options
    from fetchc.cli.output import Output
    from fetchc.cli.trace_targets import Targets

__all__ = ["chosen_session"]


def chosen_session(targets: Targets, options: Options, group: str, output: Output) -> Session:
    """A session for ``targets``, by ``--engine`` and what the kernel can do.

    Raises TracerError FC0718 where ``--engine bpf`` cannot be.
    """
    engine, why = _chosen(targets, options)
    if options.verbose:
        output.say(f"note: the engine is {engine}: {why}")
    if engine == "tracefs":
        return Session(group=group)
    from fetchc.tracer.bpf.bpf_session import BpfSession

    return BpfSession(group=group)


def _chosen(targets: Targets, options: Options) -> tuple[str, str]:
    if options.engine == "tracefs":
        return "tracefs", "`--engine tracefs`"
    if options.engine == "bpf":
        from fetchc.tracer.bpf.bpf_session import cannot

        if (reason := _unable(targets, options)) is not None:
            raise cannot(reason)
        return "bpf", "`--engine bpf`"
    reason = _closed()
    if reason is None:
        return "tracefs", "nothing in the request needs eBPF"
    unable = _unable(targets, options)
    if unable is None:
        return "bpf", reason
    return "tracefs", f"eBPF cannot be used: {unable}"


def _closed() -> str | None:
    # Why tracefs cannot be used, if it cannot.
    try:
        find_tracefs()
    except TracerError as closed:
        return closed.diagnostics[0].message
    return None


def _unable(targets: Targets, options: Options) -> str | None:
    from fetchc.tracer.bpf.bpf_session import unable

    return unable([each.plan for each in targets.chosen], bool(options.stack))
