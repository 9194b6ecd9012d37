"""What a join may do about an assumed feedback.

An event of one input may go if every result that it takes part in matches the pattern, and if no event of another
input that comes out alone for want of it fails to match. For the first, each restricted attribute must be *told by* the
input: known from its event in all those results. It is, if it comes from that input, or from a key, which is equal on
all sides. An input whose events come out alone must be its origin, since the other sides are null then. The time of
another input is told within the band: from an event at t on, partners lie in [t + low, t + high], and if all of that
matches, every partner does.

For the second, let events of R go from a join that keeps lonely events of L. The pattern must be told by L too. A
partner of an event that goes takes part in a result that matches, so it matches itself, and is dropped by the guard of
L: whether it would have come out alone does not show. So that guard must stay (pinned).

Residual predicates and bands only take pairs away, so they change nothing in this: it speaks of all pairs that there
may be.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from penstock.operators.join.meeting import Meeting, meeting_of, shift
from penstock.operators.join.operator import Join, JoinKind, Taken
from penstock.operators.multijoin.operator import MultiJoin
from penstock.pattern.fit import fitted
from penstock.pattern.pattern import Pattern
from penstock.pattern.restriction import ANY, Restriction
from penstock.plan.response import Response

#: An attribute of an input.
Origin = tuple[int, str]

#: The inputs whose events come out alone, padded with nulls or as they are, when they have no partner.
LONELY: dict[JoinKind, tuple[int, ...]] = {
    "inner": (),
    "left": (0,),
    "right": (1,),
    "full": (0, 1),
    "semi": (),
    "anti": (0,),
}


@dataclass(frozen=True)
class _Told:
    """Which events of an input take part in matching results only; `exact`: and all that take part in any."""

    pattern: Pattern
    exact: bool


def respond_join(operator: Join | MultiJoin, pattern: Pattern) -> Response:
    """The response of a join of any kind; one rule covers all cases.

    >>> from penstock.builder.combine import join_operator
    >>> from penstock.operators.source.operator import Source
    >>> from penstock.pattern.schema import Schema
    >>> a, b = (Source((), Schema.parse(s)) for s in ("a int, t int, id int", "t int, id int, b int"))
    >>> c = join_operator(a, b, ["t", "id"])
    >>> def sent(text: str) -> list[str]:
    ...     return [" ".join(map(str, p)) or "nothing" for p in respond_join(c, Pattern.parse(text, c.schema)).send]
    >>> print(c.schema)
    t int, id int, a int, b int
    >>> sent("[3, 4, *, *]"), sent("[*, *, 50, *]"), sent("[*, *, 50, 50]")
    (['[*, 3, 4]', '[3, 4, *]'], ['[50, *, *]', 'nothing'], ['nothing', 'nothing'])
    """
    knowing = _Knowing(operator)
    sides = range(len(operator.inputs))
    told = [knowing.told(side, pattern) for side in sides]
    lonely = knowing.lonely
    may_go = [
        mine is not None and all(_is_exact(told[other]) for other in lonely if other != side)
        for side, mine in enumerate(told)
    ]
    by_rows = isinstance(operator, Join) and operator.rows is not None
    if by_rows and not (all(may_go) and all(knowing.speaks_of_keys(side, told[side]) for side in sides)):
        # One event less among the last n of its key, and an older one is joined instead.
        why = "one event less among the last rows lets an older one in, so only whole keys go"
        return Response(output=True, inputs=(None,) * len(sides), send=((),) * len(sides), why=why)
    guards = tuple(
        t.pattern if t is not None and ok and not t.pattern.is_empty else None for t, ok in zip(told, may_go)
    )
    return Response(
        # What one input tells exactly never gets as far as a result.
        output=not any(ok and _is_exact(t) for t, ok in zip(told, may_go)),
        inputs=guards,
        send=tuple((g,) if g is not None else () for g in guards),
        purge=any(g is not None for g in guards),
        # Of whole keys of a join by rows some events may be withheld, and pairs come up that never were.
        pinned=any(ok and any(other != side for other in lonely) for side, ok in enumerate(may_go)) or by_rows,
        why=_why(operator, pattern, told, may_go),
    )


def _is_exact(told: _Told | None) -> bool:
    return told is not None and told.exact


class _Knowing:
    """What each input of a join knows of results."""

    def __init__(self, operator: Join | MultiJoin) -> None:
        self.meeting: Meeting = meeting_of(operator)
        self.columns = {c.name: c for c in operator.columns}
        self.lonely = LONELY[operator.how] if isinstance(operator, Join) else ()
        self.equal = _classes([s.keys for s in self.meeting.sides])

    def told(self, side: int, pattern: Pattern) -> _Told | None:
        """The events of an input all of whose results match; None where it does not know all that is asked."""
        schema = self.meeting.sides[side].schema
        found: dict[str, Restriction] = {}
        exact = True
        for name in pattern.restricted:
            known = self._known(side, self.columns[name], pattern[name])
            if known is None:
                return None
            attribute, restriction, certain = known
            found[attribute] = found.get(attribute, ANY).intersect(fitted(restriction, schema.type_of(attribute)))
            exact &= certain
        return _Told(Pattern.by_name(schema, found), exact)

    def _known(self, side: int, column: Taken, restriction: Restriction) -> tuple[str, Restriction, bool] | None:
        members = self.equal.get(column.origins[0], frozenset(column.origins[:1]))
        if not members.issuperset(column.origins):
            return None  # The first that is not null of values that may differ.
        own = [name for s, name in column.origins if s == side]
        if side in self.lonely:
            return (own[0], restriction, True) if len(own) == 1 else None
        for name in own or sorted(name for s, name in members if s == side):
            return name, restriction, True
        for other, name in sorted(members):
            if (moved := self._within_reach(side, other, name, restriction)) is not None:
                return moved
        return None

    def _within_reach(
        self, side: int, other: int, name: str, restriction: Restriction
    ) -> tuple[str, Restriction, bool] | None:
        mine, its = self.meeting.sides[side], self.meeting.sides[other]
        if mine.time is None or mine.unit is None or its.time != name:
            return None
        reach = self.meeting.reach[side, other]
        if reach == (None, None):
            return None  # No band: a partner's time may be anything, and null.
        moved = shift(restriction, reach, mine.unit)
        return None if moved is None else (mine.time, moved, False)

    def speaks_of_keys(self, side: int, told: _Told | None) -> bool:
        return told is not None and told.exact and told.pattern.describes(self.meeting.sides[side].keys)


def _classes(keys: Sequence[Sequence[str]]) -> dict[Origin, frozenset[Origin]]:
    """Which attributes are equal in every result: those of one key, and, if it is in two, those of both."""
    found: dict[Origin, frozenset[Origin]] = {}
    for i in range(len(keys[0])):
        linked = [(side, names[i]) for side, names in enumerate(keys)]
        together = frozenset(linked).union(*(found.get(o, frozenset()) for o in linked))
        found.update(dict.fromkeys(together, together))
    return found


def _why(operator: Join | MultiJoin, pattern: Pattern, told: Sequence[_Told | None], may_go: Sequence[bool]) -> str:
    if all(may_go):
        return ""
    names = ", ".join(f"'{n}'" for n in pattern.restricted)
    if all(t is None for t in told):
        return f"no input alone knows {names}"
    if not any(may_go):
        return f"{names}: without such events, events of the other input would come out alone"
    kept = ", ".join(_called(operator, side) for side, ok in enumerate(may_go) if not ok)
    return f"{names}: not for the {kept} to decide"


def _called(operator: Join | MultiJoin, side: int) -> str:
    return ("left input", "right input")[side] if isinstance(operator, Join) else f"input {side + 1}"
