"""Whom a message is for: a sink, for what it is given, or an operator, for what leaves it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from penstock.errors import UserError, did_you_mean, shortly
from penstock.pattern.feedback import Feedback, Intent
from penstock.pattern.schema import Schema
from penstock.plan.place import Place
from penstock.plan.plan import Exit


@dataclass(frozen=True)
class Address:
    """The operator whose output a message speaks of, and by which of its ways out, if it is by one of them."""

    node: str
    way_out: Exit | None = None
    #: Whether no other operator or sink reads it, so that its own name says as much as the sink's.
    alone: bool = True

    @property
    def name(self) -> str:
        """What to write to mean the same."""
        return self.node if self.way_out is None or self.alone or not self.way_out.sink else self.way_out.sink

    @property
    def edge(self) -> Place | None:
        """The consumer's input that the message comes from; none if it is for all that read the operator."""
        return None if self.way_out is None else self.way_out.edge

    @property
    def sink(self) -> str:
        """The sink whose results are meant; none if the message is for an operator inside the query."""
        return "" if self.way_out is None else self.way_out.sink


def address(to: str | None, exits: Sequence[Exit], inputs: Mapping[str, Sequence[str]]) -> Address:
    """Whom `to` means, in a query of which `inputs` names the operators with their inputs (sinks need not be there).

    >>> exits = (Exit("select-1", "sink-1"), Exit("aggregate-1", "sink-2"))
    >>> inputs = {"source:cars": [], "select-1": ["source:cars"], "aggregate-1": ["select-1"]}
    >>> address("aggregate-1", exits, inputs).edge, address("sink-1", exits, inputs).node
    ('sink-2#0', 'select-1')
    >>> address("select-1", exits, inputs).edge is None  # The aggregate reads it, too.
    True
    >>> address(None, exits, inputs)
    Traceback (most recent call last):
    penstock.errors.UserError: the query has 2 results, and this does not say which is meant. Hint: name ...
    """
    if to is None:
        if len(exits) != 1:
            raise UserError(
                f"the query has {len(exits)} results, and this does not say which is meant",
                hint=f"name its sink or operator: to='{exits[0].name}'. There are: "
                + ", ".join(f"{e.name} (of {e.root})" if e.sink else e.root for e in exits),
            )
        return Address(exits[0].root, exits[0])
    sinks = {e.sink for e in exits if e.sink}
    read = {i for name, below in inputs.items() if name not in sinks for i in below}
    for way_out in exits:
        if to == way_out.sink:
            others = [e for e in exits if e.root == way_out.root]
            return Address(way_out.root, way_out, len(others) == 1 and way_out.root not in read)
    known = [name for name in inputs if name not in sinks]
    if to not in known:
        raise UserError(f"the query has no operator {shortly(to)}", hint=did_you_mean(to, [*known, *(sorted(sinks))]))
    mine = [e for e in exits if e.root == to]
    return Address(to, mine[0] if len(mine) == 1 and to not in read else None)


def told_to(whom: Address, text: str, schema: Schema) -> Feedback:
    """A message as it is written, about what leaves an operator with this schema."""
    told = Feedback.parse(text, schema)
    if told.intent is Intent.DEMANDED and whom.way_out is None:
        raise UserError(
            f"feedback '{told}': what leaves '{whom.name}' is not a result of the query",
            hint="demand results of the query itself",
        )
    return told
