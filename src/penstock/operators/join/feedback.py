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

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from penstock.contract.flow import Flow, ordered
from penstock.operators.join.meeting import Meeting, meeting_of, shift
from penstock.operators.join.operator import LONELY, Join, Joined, Taken
from penstock.operators.join.thrift import SPARED
from penstock.operators.multijoin.operator import MultiJoin
from penstock.pattern.example import such, unwanted
from penstock.pattern.feedback import Feedback, Intent
from penstock.pattern.fit import fitted
from penstock.pattern.pattern import Pattern
from penstock.pattern.restriction import ANY, Restriction, at_most, equal
from penstock.plan.response import Response
from penstock.plan.spec import Told

#: An attribute of an input.
Origin = tuple[int, str]


@dataclass(frozen=True)
class Matching:
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
    return Knowing(operator, pattern).response


class Knowing:
    """What each input of a join knows of the results that match a pattern."""

    def __init__(self, operator: Joined | MultiJoin, pattern: Pattern) -> None:
        self.operator, self.pattern = operator, pattern
        self.meeting: Meeting = meeting_of(operator)
        self.columns = {c.name: c for c in operator.columns}
        self.lonely = LONELY[operator.how] if isinstance(operator, Joined) else ()
        self.equal = _classes([s.keys for s in self.meeting.sides])
        #: By input, the events all of whose results match, None where it does not know all that is asked.
        self.told = [self._told(side) for side in range(len(operator.inputs))]
        self.may_go = [
            mine is not None and all(_is_exact(self.told[other]) for other in self.lonely if other != side)
            for side, mine in enumerate(self.told)
        ]

    @property
    def response(self) -> Response:
        """The most that may be done."""
        each = list(zip(self.told, self.may_go, strict=True))
        guards = tuple(t.pattern if t is not None and ok and not t.pattern.is_empty else None for t, ok in each)
        return Response(
            # What one input tells exactly never gets as far as a result.
            output=not any(ok and _is_exact(t) for t, ok in each),
            inputs=guards,
            send=tuple((g,) if g is not None else () for g in guards),
            purge=any(g is not None for g in guards),
            pinned=any(ok and any(other != side for other in self.lonely) for side, ok in enumerate(self.may_go)),
            why=self._why(),
        )

    @property
    def speaks_of_whole_keys(self) -> bool:
        """Whether on all sides just the events of some keys may go."""
        described = (
            t is not None and t.exact and t.pattern.describes(side.keys)
            for t, side in zip(self.told, self.meeting.sides, strict=True)
        )
        return all(self.may_go) and all(described)

    def _why(self) -> str:
        if all(self.may_go):
            return ""
        names = ", ".join(f"'{n}'" for n in self.pattern.restricted)
        if all(t is None for t in self.told):
            return f"no input alone knows {names}"
        if not any(self.may_go):
            return f"{names}: without such events, events of the other input would come out alone"
        kept = ", ".join(self._called(side) for side, ok in enumerate(self.may_go) if not ok)
        return f"{names}: not for the {kept} to decide"

    def _called(self, side: int) -> str:
        name = self.operator.side_names[side]
        return f"{name} input" if isinstance(self.operator, Joined) else name

    def _told(self, side: int) -> Matching | None:
        schema = self.meeting.sides[side].schema
        found: dict[str, Restriction] = {}
        exact = True
        for name in self.pattern.restricted:
            known = self._known(side, self.columns[name], self.pattern[name])
            if known is None:
                return None
            attribute, restriction, certain = known
            found[attribute] = found.get(attribute, ANY).intersect(fitted(restriction, schema.type_of(attribute)))
            exact &= certain
        return Matching(Pattern.by_name(schema, found), exact)

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


def _is_exact(told: Matching | None) -> bool:
    return told is not None and told.exact


def _classes(keys: Sequence[Sequence[str]]) -> dict[Origin, frozenset[Origin]]:
    """Which attributes are equal in every result: those of one key, and, if it is in two, those of both."""
    found: dict[Origin, frozenset[Origin]] = {}
    for i in range(len(keys[0])):
        linked = [(side, names[i]) for side, names in enumerate(keys)]
        together = frozenset(linked).union(*(found.get(o, frozenset()) for o in linked))
        found.update(dict.fromkeys(together, together))
    return found


# --- what a join tells its inputs -------------------------------------------------------------------------------------


def issues_join(operator: Join, below: Sequence[Flow]) -> Iterator[Told]:
    """A thrifty join tells one side what the other has ended and never had, an impatient one asks for what waits."""
    for port, input in enumerate(operator.inputs):
        keys = {pair[1 - port]: pair[port] for pair in operator.keys}
        if operator.thrifty and port in SPARED[operator.how]:
            other = below[1 - port]
            told = [tags for tags in ordered(other.promised) if all(n in keys for n, _ in tags)]
            for tags in told or ([frozenset({(n, "#") for n in keys})] if other.open else []):
                ended = {keys[n]: equal if how == "#" else at_most for n, how in sorted(tags)}
                yield Told(port, unwanted(input.schema, ended))
        yield from wishes(operator, port)


def wishes(operator: Joined, port: int) -> Iterator[Told]:
    """What an impatient join asks one input for: partners, by the first attribute of the key."""
    if operator.impatient:
        wanted = such(operator.inputs[port].schema, {operator.keys[0][port]: equal})
        yield Told(port, Feedback(Intent.DESIRED, wanted))
