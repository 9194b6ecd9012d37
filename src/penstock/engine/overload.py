"""What a user says about too much: quality of service and shedding, looked at before anything runs."""

from __future__ import annotations

from penstock.engine.epoch.shedding import SheddingWish
from penstock.errors import UserError, did_you_mean, shortly
from penstock.operators.sink.operator import Sink
from penstock.pattern.schema import Schema
from penstock.plan.plan import Plan
from penstock.shedding.policy import Shedding
from penstock.shedding.qos import QoS
from penstock.shedding.sheddable import sheddable


def check_qos(qos: object, schema: Schema) -> None:
    """Refuse what is no quality of service, or not one of these results.

    >>> check_qos(QoS(value={"speeed": [((0, 50), 0.2)]}), Schema.parse("ts int, speed double"))
    Traceback (most recent call last):
    penstock.errors.UserError: QoS: the results have no attribute 'speeed'. Hint: did you mean 'speed'? There are: ...
    """
    if not isinstance(qos, QoS):
        raise UserError(f"qos={shortly(qos)} is not possible", hint="ps.QoS(loss=[(100, 1), (50, .7), (0, 0)], gap=10)")
    if qos.value is not None and qos.value.attribute not in schema:
        raise UserError(
            f"QoS: the results have no attribute '{qos.value.attribute}'",
            hint=did_you_mean(qos.value.attribute, schema.names),
        )


def wished(plan: Plan, shedding: Shedding | None) -> SheddingWish | None:
    """What was said at a start; None if nothing was, and then nothing is done for it either."""
    qos = {n.id: n.operator.qos for n in plan.sinks if isinstance(n.operator, Sink) and n.operator.qos is not None}
    if shedding is None and not qos:
        return None
    if shedding is not None and not isinstance(shedding, Shedding):
        raise UserError(
            f"shedding={shortly(shedding)} is not possible",
            hint="ps.Shedding.to('60%'), ps.Shedding.auto(), ps.Shedding.off()",
        )
    found = sheddable(plan, qos)
    if all(each.best is None for each in found.values()):
        why = "; ".join(f"{name}: {way.line}" for name, each in found.items() for way in each.ways)
        raise UserError(
            f"nothing of this query can be given up: {why}",
            hint="leave shedding= and qos= out, or window it by time",
        )
    return SheddingWish(Shedding.auto() if shedding is None else shedding, found)
