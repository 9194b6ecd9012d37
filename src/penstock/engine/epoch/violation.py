"""What makes an epoch fail: an error inside a task, or input that breaks a promise where that is not to be borne."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from penstock.engine.tasks.report import TaskReport
from penstock.errors import ViolationError, counted
from penstock.operators.source.operator import Source


def raise_errors(sources: Mapping[str, Source], reports: Sequence[TaskReport]) -> None:
    """Raise what the reports of an epoch's tasks have to complain about. Errors come before broken promises."""
    for report in reports:
        if report.error is not None:
            raise report.error
    for report in reports:
        for source, told in report.promises:
            broken = told["rejected"] + told["malformed"]
            if broken and sources[source].on_violation == "fail":
                example = told.get("example") or {}
                raise ViolationError(
                    f"stream '{sources[source].name}': {counted(broken, 'event breaks', 'events break')} a promise, "
                    f"for example {example.get('event', 'a malformed one')}: "
                    f"{example.get('reason', 'malformed')} ({example.get('detail', '')})",
                    hint="fix the input, or choose on_violation('reject') to set such events aside",
                )
