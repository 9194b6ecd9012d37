"""The behaviour of joins with the last rows of each key.

Events count in order of time, so they wait until both inputs are past. A result has one event that is processed now and
one that is processed now or was before. So after the frontier f no result has both times below f.

A key that the other side has ended needs no partners any more. What is stored of a key that both have ended leaves
when its last event has had its turn: until the state says that nothing is left, the key is remembered.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from penstock.operators.join.ended_keys import EndedKeys, Values, values_in
from penstock.operators.join.meeting import meeting_of
from penstock.operators.rows_join.operator import RowsJoin
from penstock.pattern.pattern import Pattern
from penstock.pattern.punctuation import PunctuationSet
from penstock.pattern.restriction import Range, one_of, restriction_from_json
from penstock.plan.behaviour import Behaviour, maximal
from penstock.plan.orders import Answer, Orders


class RowsJoinBehaviour(Behaviour):
    """Time lets events have their turn, ended keys let partners go."""

    def __init__(self, operator: RowsJoin) -> None:
        self.operator, self.times = operator, operator.times
        self.schemas = [i.schema for i in operator.inputs]
        self.given = [PunctuationSet(s) for s in self.schemas]
        self.passed = PunctuationSet(self.schemas[0])
        self.fresh: list[list[Pattern]] = [[], []]
        self.ended = EndedKeys(meeting_of(operator))
        #: Keys that both have ended, by position in the key, of which rows may be left.
        self.leaving: dict[int, Values] = {}
        self.asked = False

    def receive(self, arrived: Sequence[tuple[Pattern, ...]]) -> tuple[Pattern, ...]:
        if not any(arrived):
            return ()
        for k, patterns in enumerate(arrived):
            listed, rest = self.ended.split(k, (Pattern(self.schemas[k], p.restrictions) for p in patterns))
            for position, values in listed.items():
                _, both = self.ended.end(k, position, values)
                self.leaving.setdefault(position, set()).update(both)
            self.given[k] = self.given[k].add(*(p for p in rest if p.describes((self.times[k],))))
        common = maximal(
            left.intersect(right.onto(self.schemas[0], {self.times[1]: self.times[0]}))
            for left in self.given[0]
            for right in self.given[1]
            if _is_frontier(left, self.times[0]) and _is_frontier(right, self.times[1])
        )
        out: list[Pattern] = []
        for p in common:
            if self.passed.covers(p):
                continue
            self.passed = self.passed.add(p)
            self.fresh[0].append(p)
            self.fresh[1].append(p.onto(self.schemas[1], {self.times[0]: self.times[1]}))
            out += self._promised(p)
        return tuple(out)

    def _promised(self, passed: Pattern) -> list[Pattern]:
        """What time that both have passed says about results."""
        if not passed.restricted:
            return [Pattern.all(self.operator.schema)]
        names = [next((c.name for c in self.operator.columns if (k, self.times[k]) in c.origins), None) for k in (0, 1)]
        if self.operator.how != "inner" or names[0] is None or names[1] is None:
            return []
        bound = passed[self.times[0]]
        return [Pattern.by_name(self.operator.schema, {names[0]: bound, names[1]: bound})]

    def orders(self) -> Orders:
        release = tuple(maximal(f) for f in self.fresh)
        self.fresh = [[], []]
        leaving = [
            [self.ended.pattern(k, position, values) for position, values in self.leaving.items() if values]
            for k in (0, 1)
        ]
        settled = tuple(
            PunctuationSet(s, maximal((*self.ended.settled(k), *leaving[k]))) for k, s in enumerate(self.schemas)
        )
        # Only when time has moved can something have left.
        self.asked = any(release) and any(leaving)
        return Orders(release, settled, tuple(map(tuple, leaving)) if self.asked else ())

    def answered(self, answers: Sequence[Sequence[Answer]]) -> None:
        if self.asked and not any(answer.rows for said in answers for answer in said):
            self.leaving = {}
        self.asked = False

    def to_json(self) -> dict[str, Any]:
        return {
            "given": [g.to_json() for g in self.given],
            "passed": self.passed.to_json(),
            "ended": self.ended.to_json(),
            "leaving": [[position, one_of(v).to_json()] for position, v in sorted(self.leaving.items()) if v],
        }

    def restore(self, stored: Mapping[str, Any]) -> None:
        self.given = [PunctuationSet.from_json(g, s) for g, s in zip(stored["given"], self.schemas, strict=True)]
        self.passed = PunctuationSet.from_json(stored["passed"], self.schemas[0])
        self.ended.restore(stored["ended"])
        side = self.ended.meeting.sides[0]
        for position, record in stored["leaving"]:
            t = side.schema.type_of(side.keys[position])
            self.leaving[position] = values_in(restriction_from_json(record, t), t) or set()


def _is_frontier(pattern: Pattern, time: str) -> bool:
    """Everything up to a moment, or everything."""
    if not pattern.restricted:
        return True
    restriction = pattern[time]
    return pattern.restricted == (time,) and isinstance(restriction, Range) and restriction.low is None
