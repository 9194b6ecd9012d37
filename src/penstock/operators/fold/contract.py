"""What folding offers: it keeps a table, until punctuation says that parts of it are complete."""

from __future__ import annotations

from penstock.contract.flow import Flow, Verdict, behind
from penstock.contract.verdicts import assumed_of
from penstock.operators.fold.operator import Fold


def judge_fold(operator: Fold, below: Flow) -> Verdict:
    """In: templates on the attributes that parts are laid out by; Out = PS. Without any the table itself is kept."""
    flow = behind(operator, below, below.promised)
    ending = below.described(operator.by)
    if ending:
        why = (f"rows are forgotten on {below.any_of(ending)}",)
        return Verdict("bounded", "at once", flow, why, (), assumed_of(ending), tuple((0, n) for n in operator.by))
    kept = "with partition_by= folders that are final are forgotten"
    if operator.by:
        kept = f"no punctuation on {' or '.join(f'`{n}`' for n in operator.by)} says when a folder is final"
    return Verdict("as the data says", "at once", flow, (f"the table itself is kept, to be written again; {kept}",))
