"""The contracts that an operator offers: what its verdict says, in the words of the theory."""

from __future__ import annotations

from collections.abc import Sequence

from contracts import Contract

from penstock.analysis.judge import judge
from penstock.contract.flow import AttributeOrigin, Flow, promised_by
from penstock.contract.template import Scheme
from penstock.plan.domain import domains
from penstock.plan.operator import Operator


def offering(operator: Operator, arriving: Sequence[Scheme]) -> tuple[Contract, ...]:
    """The contracts that an operator offers for what arrives, the strongest first: all it can promise, then its parts.

    Empty if its state has no bound under what arrives, or results would not appear.

    >>> import penstock as ps
    >>> from penstock.contract.template import Template
    >>> rides = ps.stream("rides", "ts int, trip int")
    >>> count = rides.group_by("trip").agg(n="count(*)").operator
    >>> for template in ("[[ts:-, trip:#]]", "[[ts:+, trip:-]]"):
    ...     print(*offering(count, [Scheme.of(Template.parse(template, rides.schema))]))
    {[[ts:-, trip:#]]} -> {[[trip:#, n:-]]}
    <BLANKLINE>
    """
    # Where an attribute comes from is told in terms of the inputs: so the lineage of the output can be read off.
    below = [
        Flow(
            i.schema,
            promised=promised_by(scheme),
            origins={n: (AttributeOrigin(str(k), n),) for n in i.schema.names},
            finite=domains(i),
        )
        for k, (i, scheme) in enumerate(zip(operator.inputs, arriving, strict=True))
    ]
    verdict = judge(operator, below)
    if not verdict.safe:
        return ()
    strongest = verdict.behind.scheme
    parts = [Scheme.of(t) for t in strongest] if len(strongest) > 1 else []
    lineage = frozenset(
        (name, int(o.stream), o.attribute)
        for name, origins in (verdict.behind.origins if operator.inputs else {}).items()
        for o in origins
        if not o.label
    )
    return tuple(Contract(tuple(arriving), (scheme,), lineage=lineage) for scheme in (strongest, *parts))
