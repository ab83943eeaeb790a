"""Probes on the live kernel, and what they bring."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import TracebackType

    from fetchc.api.probe import Probe
    from fetchc.diag.diagnostic import Diagnostic
    from fetchc.tracer.events import Event as TracedEvent
    from fetchc.tracer.events import Plan


def tracing(buffer_kib: int | None = None) -> Tracing:
    """A tracing session, to be used by ``with``; needs privilege, and cleans up after itself.

    ``buffer_kib`` is the size of the kernel's buffer for each processor.
    """
    return Tracing(buffer_kib)


class Tracing:
    """Probes on the live kernel, and the events of every process that hits them.

    Entering raises TracerError where the kernel or a permission refuses.
    """

    def __init__(self, buffer_kib: int | None = None) -> None:
        from fetchc.tracer.session import Session

        self._session = Session(buffer_kib)
        self._named: set[str] = set()
        self._started = False

    def __repr__(self) -> str:
        state = "started" if self._started else "not started"
        names = ", ".join(sorted(self._named)) or "no probes"
        return f"<fetchc.Tracing {names} ({state})>"

    def __enter__(self) -> Tracing:
        self._session.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._session.__exit__(kind, error, trace)

    def add(self, probe: Probe, expressions: Sequence[str] = ()) -> Plan:
        """Trace ``probe``, with the values of ``expressions``; returns what its events bear.

        Raises CompileError where an expression has to be refused.
        """
        from fetchc.api import expect
        from fetchc.api.probe import Probe
        from fetchc.emit.probe_definition import event_name

        expect(probe, Probe, "a probe is what Program.probe gives")
        event = event_name(probe.named_after, self._named)
        plan = probe.plan(expressions, self._session.group, event)
        self._session.add(plan)
        self._named.add(plan.event)
        return plan

    def only(self, *pids: int) -> None:
        """Trace these processes and the children they will have, no others."""
        from fetchc.api import expect

        for pid in pids:
            expect(pid, int, "a PID is a number")
        self._session.only(pids)

    def start(self) -> None:
        """Switch the probes on; :meth:`events` does so as well."""
        self._session.entered()
        if not self._started:
            self._session.start()
            self._started = True

    def stop(self) -> None:
        """Switch the probes off; :meth:`events` ends when what happened until now is read."""
        self._session.stop()

    def events(self, timeout: float | None = None) -> Iterator[TracedEvent]:
        """The events as they happen, in the order of time, with their values in ``args``.

        Ends after :meth:`stop`, or ``timeout`` seconds after the call.
        """
        self.start()
        return self._session.events(timeout)

    @property
    def lost(self) -> int:
        """Events that found the kernel's buffers full, so far."""
        return self._session.lost

    @property
    def missed(self) -> tuple[int, int]:
        """Entries and returns that the kernel's probes missed, of all processes."""
        return self._session.missed

    def warnings(self) -> tuple[Diagnostic, ...]:
        """Warnings not reported before: of a traced file that was replaced, or a debugger."""
        return self._session.warnings()
