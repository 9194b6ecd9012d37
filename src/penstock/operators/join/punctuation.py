"""The behaviour of joins: what to release, what to let pass unstored, what to promise, and what to ask the state."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from penstock.operators.join.ended_keys import EndedKeys, Values
from penstock.operators.join.meeting import lists_keys, meeting_of, unit_of
from penstock.operators.join.operator import Join
from penstock.operators.join.thrift import Thrift
from penstock.operators.multijoin.operator import MultiJoin
from penstock.pattern.feedback import Feedback
from penstock.pattern.minimise import grows
from penstock.pattern.pattern import Pattern
from penstock.pattern.punctuation import PunctuationSet
from penstock.pattern.restriction import OneOf, equal, less
from penstock.plan.behaviour import Behaviour, maximal
from penstock.plan.domain import domains
from penstock.plan.orders import Answer, Orders
from penstock.plan.whole_groups import Describer
from penstock.plan.window import from_tick

#: A list of so many promised values is asked about value by value; a longer one as a whole.
ASK_EACH = 64


class JoinBehaviour(Behaviour):
    """Purge, drop and propagate for joins on keys and bands; see `meet` for the reasons."""

    def __init__(self, operator: Join | MultiJoin, asks: bool = True) -> None:
        self.meeting = meeting_of(operator)
        self.asks = asks
        sides = self.meeting.sides
        self.describers = [
            Describer(s.schema, s.keys if s.time is None else (*s.keys, s.time), domains(below))
            for s, below in zip(sides, operator.inputs, strict=True)
        ]
        self.given = [PunctuationSet(s.schema) for s in sides]
        self.useful = [PunctuationSet(s.schema) for s in sides]
        # toward[h][k]: rows of k that h alone has settled; with two inputs that is all there is to it.
        self.toward = [[PunctuationSet(s.schema) for s in sides] for _ in sides]
        self.settled = [PunctuationSet(s.schema) for s in sides]
        self.said = PunctuationSet(self.meeting.output)
        self.fresh: list[list[Pattern]] = [[] for _ in sides]
        self.asking: list[list[Pattern]] = [[] for _ in sides]
        self.asked: list[list[Pattern]] = [[] for _ in sides]
        #: Promises that go out when time has come so far, and those that stored rows hold up which only keys release.
        self.waiting: list[tuple[int, Pattern, int]] = []
        self.held_up = [PunctuationSet(s.schema) for s in sides]
        self.free: list[Pattern] = []
        self.ended = EndedKeys(self.meeting) if len(sides) == 2 else None
        #: Keys that both have ended by now, as sets and otherwise: events of this very epoch may still be of them.
        self.done: list[list[Pattern]] = [[] for _ in sides]
        self.over: list[list[Pattern]] = [[] for _ in sides]
        self.thrift = Thrift(operator, self.meeting) if isinstance(operator, Join) and operator.thrifty else None

    # --- new promises -------------------------------------------------------------------------------------------

    def receive(self, arrived: Sequence[tuple[Pattern, ...]]) -> tuple[Pattern, ...]:
        sides = self.meeting.sides
        new = [[Pattern(s.schema, p.restrictions) for p in got] for s, got in zip(sides, arrived, strict=True)]
        listed: list[dict[int, Values]] = [{} for _ in sides]
        if self.thrift is not None:
            for k, patterns in enumerate(new):
                self.thrift.hear(k, patterns)
        if self.ended is not None:
            for k, patterns in enumerate(new):
                listed[k], new[k] = self.ended.split(k, patterns)
        settled = self._settle([self._useful(k, patterns) for k, patterns in enumerate(new)])
        out = self.free
        self.free = []
        for k in range(len(sides)):
            # What k has promised and the others have settled: each new promise with all, each old one with the new.
            both = [p.intersect(s) for p in new[k] for s in self._settled(k)]
            both += [p.intersect(s) for p in self._given(k) for s in settled[k]]
            out += self._lifted(k, both)
            self.given[k] = self.given[k].add(*new[k])
            self.fresh[k] += settled[k]
            self.asking[k] += [p for p in new[k] if self._worth_asking(k, p)]
            self.over[k] += settled[k]
        for k, ends in enumerate(listed):
            for position, values in ends.items():
                out += self._end(k, position, values)
        out += self._left_windows()
        fresh = tuple(p for p in maximal(out) if not self.said.covers(p))
        # Only what grows: of single values there would be ever more, and saying one twice does no harm.
        self.said = self.said.add(*filter(grows, fresh))
        return fresh

    def _end(self, k: int, position: int, values: Values) -> list[Pattern]:
        """Key values that one side of two has ended → what may go out for it."""
        assert self.ended is not None
        beside = [p for p in self.ended.settled(k) if p.restricted != (self.meeting.sides[k].keys[position],)]
        new, both = self.ended.end(k, position, values)
        if not new:
            return []
        mine, theirs = self.ended.pattern(k, position, new), self.ended.across(k, position, new)
        out = self._lifted(k, [mine.intersect(s) for s in (*self.settled[k], *beside)])
        if both:
            done = self.ended.pattern(k, position, both)
            self.done[k].append(done)
            out += self._lifted(k, [done])
        self.over[k] += self.settled[k]
        if theirs is not None:
            self.fresh[1 - k].append(theirs)
            out += self._lifted(1 - k, [p.intersect(theirs) for p in self.given[1 - k]])
        if alone := new - both:
            asking = self.ended.pattern(k, position, alone)
            self.asking[k] += [asking] if self._worth_asking(k, asking) else []
        return out

    def _lifted(self, k: int, patterns: Iterable[Pattern]) -> list[Pattern]:
        """Promises about one side as promises about results."""
        side, output = self.meeting.sides[k], self.meeting.output
        return [q for p in maximal(patterns) if (q := side.lift(p, output)) is not None]

    def _settled(self, k: int) -> list[Pattern]:
        """Everything that the others have settled of one side."""
        return [*self.settled[k], *(self.ended.settled(k) if self.ended is not None else ())]

    def _given(self, k: int) -> list[Pattern]:
        """Everything that one side has promised, as far as it still matters."""
        return [*self.given[k], *(self.ended.given(k) if self.ended is not None else ())]

    def _useful(self, k: int, patterns: Sequence[Pattern]) -> list[Pattern]:
        """New promises of one input that speak of its key and time alone, by themselves or with earlier ones."""
        found = list(self.describers[k].add(patterns))
        before = set(self.useful[k])
        self.useful[k] = self.useful[k].add(*found)
        # What has grown together says more than its parts.
        return [*found, *(p for p in self.useful[k] if p not in before and p not in found)]

    def _settle(self, useful: Sequence[Sequence[Pattern]]) -> list[tuple[Pattern, ...]]:
        """What becomes settled of each input by new promises of the others."""
        sides = self.meeting.sides
        found: list[list[Pattern]] = [[] for _ in sides]
        for h, patterns in enumerate(useful):
            for k in range(len(sides)):
                if k == h:
                    continue
                moved = [t for p in patterns if (t := self.meeting.translate(p, h, k)) is not None]
                if not moved:
                    continue
                self.toward[h][k] = self.toward[h][k].add(*moved)
                common = list(maximal(moved))
                for other in range(len(sides)):
                    if other not in (h, k):
                        common = list(maximal(a.intersect(b) for a in common for b in self.toward[other][k]))
                found[k] += common
        result = []
        for k, patterns in enumerate(found):
            fresh = tuple(p for p in maximal(patterns) if not self.settled[k].covers(p))
            self.settled[k] = self.settled[k].add(*fresh)
            result.append(fresh)
        return result

    # --- asking the state ---------------------------------------------------------------------------------------

    def _worth_asking(self, k: int, pattern: Pattern) -> bool:
        """Whether the state can tell us sooner than the promises of the others that a promise may go out."""
        side = self.meeting.sides[k]
        if not self.asks or not pattern.restricted or side.lift(pattern, self.meeting.output) is None:
            return False
        if side.time is not None and pattern.restricted == (side.time,):
            return False  # Time alone: the others' frontiers tell.
        return not (side.guarded and side.speaks_of_keys_alone(pattern))

    def answered(self, answers: Sequence[Sequence[Answer]]) -> None:
        for k, heard in enumerate(answers):
            side, said = self.meeting.sides[k], heard[: len(self.asked[k])]
            if self.thrift is not None:
                self.thrift.answered(k, heard[len(self.asked[k]) :])
            self._told(k, [p for p, answer in zip(self.asked[k], said, strict=True) if answer.rows == 0])
            for pattern, answer in zip(self.asked[k], said, strict=True):
                free: Pattern | None = None
                if answer.rows == 0:
                    free = pattern
                elif answer.latest is not None and self.meeting.is_outlived(k):
                    self.waiting.append((k, pattern, answer.latest))
                elif not side.speaks_of_keys_alone(pattern):
                    self.held_up[k] = self.held_up[k].add(pattern)
                if answer.least is not None:
                    # Up to the first of those that still wait.
                    (name,) = pattern.restricted
                    bound = less(from_tick(answer.least, unit_of(side.schema.type_of(name))))
                    free = Pattern.by_name(side.schema, {name: bound})
                lifted = None if free is None else side.lift(free, self.meeting.output)
                if lifted is not None and not self.said.covers(lifted):
                    self.free.append(lifted)
        self.asked = [[] for _ in self.asked]

    def _told(self, k: int, patterns: Sequence[Pattern]) -> None:
        """Promises that go out whole need not go out in parts, as others settle more and more of them."""
        if patterns:
            self.given[k] = self.given[k].forget(*PunctuationSet(self.meeting.sides[k].schema).add(*patterns))

    def _left_windows(self) -> list[Pattern]:
        """Promises whose last stored row has left its window."""
        found, rest = [], []
        for k, pattern, latest in self.waiting:
            side = self.meeting.sides[k]
            if self.settled[k].covers(side.until(latest)):
                lifted = side.lift(pattern, self.meeting.output)
                assert lifted is not None
                found.append(lifted)
                self._told(k, [pattern])
            else:
                rest.append((k, pattern, latest))
        self.waiting = rest
        return found

    def listen(self) -> None:
        self.asks = True

    @property
    def pending(self) -> bool:
        return bool(self.free)

    # --- orders -------------------------------------------------------------------------------------------------

    def orders(self) -> Orders:
        release = tuple(maximal(f) for f in self.fresh)
        for k, released in enumerate(release):
            if released and self.held_up[k]:
                # What held them up may be gone.
                self.asking[k] += self.held_up[k]
                self.held_up[k] = PunctuationSet(self.meeting.sides[k].schema)
        self.fresh = [[] for _ in self.fresh]
        self.asked = [[q for p in maximal(a) for q in _each(p)] for a in self.asking]
        self.asking = [[] for _ in self.asking]
        settled = tuple(
            PunctuationSet(side.schema, maximal((*self._settled(k), *release[k], *self.done[k])))
            for k, side in enumerate(self.meeting.sides)
        )
        self.done = [[] for _ in self.done]
        self._forget()
        if self.ended is not None:
            for k, patterns in enumerate(self.over):
                for p in maximal(patterns):
                    self.ended.forget(k, p)
        self.over = [[] for _ in self.over]
        asked = [(*a, *self.thrift.ask(k)) if self.thrift is not None else tuple(a) for k, a in enumerate(self.asked)]
        return Orders(release, settled, tuple(asked))

    def issued(self) -> list[tuple[int, Feedback]]:
        return [] if self.thrift is None else self.thrift.issued()

    def _forget(self) -> None:
        """Key values that everyone has promised cannot come again from anywhere: no need to remember them."""
        for k, side in enumerate(self.meeting.sides):
            mine, theirs = ([p for p in known if len(p.restricted) == 1] for known in (self.useful[k], self.settled[k]))
            both = (p.intersect(s) for p in mine for s in theirs if p.restricted == s.restricted)
            common = [q for q in both if not q.is_empty and lists_keys(q, side)]
            if not common:
                continue
            self.given[k] = self.given[k].forget(*common)
            self.useful[k] = self.useful[k].forget(*common)
            self.settled[k] = self.settled[k].forget(*common)
            for h in range(len(self.meeting.sides)):
                if h != k:
                    self.toward[h][k] = self.toward[h][k].forget(*common)

    # --- storing ------------------------------------------------------------------------------------------------

    def to_json(self) -> dict[str, Any]:
        return {
            "given": [g.to_json() for g in self.given],
            "useful": [u.to_json() for u in self.useful],
            "toward": [[s.to_json() for s in row] for row in self.toward],
            "settled": [s.to_json() for s in self.settled],
            "said": self.said.to_json(),
            "asked": [[p.to_json() for p in a] for a in self.asked],
            "waiting": [[k, p.to_json(), t] for k, p, t in self.waiting],
            "held_up": [h.to_json() for h in self.held_up],
            "free": [p.to_json() for p in self.free],
            "joint": [d.to_json() for d in self.describers],
            "ended": [] if self.ended is None else self.ended.to_json(),
            **({} if self.thrift is None else {"thrift": self.thrift.to_json()}),
        }

    def restore(self, stored: Mapping[str, Any]) -> None:
        schemas = [s.schema for s in self.meeting.sides]

        def sets(listed: Sequence[Any]) -> list[PunctuationSet]:
            return [PunctuationSet.from_json(x, s) for x, s in zip(listed, schemas, strict=True)]

        self.given, self.settled = sets(stored["given"]), sets(stored["settled"])
        self.useful, self.held_up = sets(stored["useful"]), sets(stored["held_up"])
        self.toward = [sets(row) for row in stored["toward"]]
        self.said = PunctuationSet.from_json(stored["said"], self.meeting.output)
        self.asked = [[Pattern.from_json(p, s) for p in a] for a, s in zip(stored["asked"], schemas, strict=True)]
        self.waiting = [(k, Pattern.from_json(p, schemas[k]), t) for k, p, t in stored["waiting"]]
        self.free = [Pattern.from_json(p, self.meeting.output) for p in stored["free"]]
        for describer, record in zip(self.describers, stored["joint"], strict=True):
            describer.restore(record)
        if self.ended is not None:
            self.ended.restore(stored["ended"])
        if self.thrift is not None and "thrift" in stored:
            self.thrift.restore(stored["thrift"])


def _each(pattern: Pattern) -> list[Pattern]:
    """A promise on a few values as one promise for each."""
    for name in pattern.restricted:
        restriction = pattern[name]
        if isinstance(restriction, OneOf) and len(restriction.values) <= ASK_EACH:
            rest = {n: pattern[n] for n in pattern.restricted if n != name}
            return [Pattern.by_name(pattern.schema, {**rest, name: equal(v)}) for v in restriction.values]
    return [pattern]
