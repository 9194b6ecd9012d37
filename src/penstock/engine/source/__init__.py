"""Where events come from.

Driver: `open_reader(source)` plans splits, `PromiseState` says what is known in front of each and what the source may
assert. Task: `read` turns a split into a batch, `Checker` separates the events that keep the promises, `apply_guard`
drops those of them that nobody wants.
"""

from penstock.engine.source.formats.read import Batch, read
from penstock.engine.source.frontier import PromiseState, assign, count_spared, plan_known, plan_tasks, tell_spared
from penstock.engine.source.letter import DEAD_LETTER_SCHEMA
from penstock.engine.source.listing import SourceReader, open_reader, reader_options
from penstock.engine.source.promises.check import Checked, Checker, check
from penstock.engine.source.promises.known import Known
from penstock.engine.source.pruning.guard import apply_guard
from penstock.engine.source.split import Split

__all__ = [
    "DEAD_LETTER_SCHEMA",
    "Batch",
    "Checked",
    "Checker",
    "Known",
    "PromiseState",
    "SourceReader",
    "Split",
    "apply_guard",
    "assign",
    "check",
    "count_spared",
    "open_reader",
    "plan_known",
    "plan_tasks",
    "read",
    "reader_options",
    "tell_spared",
]
