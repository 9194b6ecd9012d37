"""Aggregate over sessions, one event at a time: keeps every event of a group and cuts them where they are far apart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from penstock.errors import FailingError
from penstock.operators.session_aggregate import operator
from penstock.operators.window.operator import Bucket
from penstock.operators.window.reference import BucketReference, possible_times, stretches
from penstock.pattern.pattern import Pattern
from penstock.pattern.restriction import Range, Restriction
from penstock.plan.weight import WEIGHT
from penstock.reference.failure import Note, ignore
from penstock.reference.grouping import Group, GroupsReference, Unweighted, check_arguments, results
from penstock.reference.item import Assertion, Event, Item
from penstock.reference.moment import from_tick, to_tick


class SessionLabels(BucketReference):
    """Of a Bucket with sessions only what punctuation says of their ends: which events are in which, nobody knows."""

    def __init__(self, declared: Bucket) -> None:
        (source,) = declared.inputs
        assert declared.window.on is not None, "the builder says which attribute is the time"
        self.declared, self.on = declared, declared.window.on
        self.window = declared.window  # type: ignore[assignment]
        self.label_type = declared.schema.type_of(declared.window.label)
        self.times = possible_times(declared.window, source)  # type: ignore[arg-type]
        self.given = []

    def complete(self, times: Sequence[Restriction]) -> Iterator[Range]:
        """Ends that no event can reach any more: the next possible one comes later."""
        for stretch in stretches(times, self.times):
            if stretch.low is None:
                last = None if stretch.high is None else int(stretch.high) + self.times.step - 1
                yield Range(None, last, high_closed=last is not None)


class SessionAggregateReference(GroupsReference):
    """For every session that is over, one output event; with corrections, one whenever a session becomes another.

    Bucket and Aggregate are one here.
    """

    def __init__(self, declared: operator.SessionAggregate) -> None:
        (bucket,) = declared.inputs
        assert isinstance(bucket, Bucket)
        super().__init__(declared, bucket, declared.without_label, declared.keys)
        self.declared, self.window, self.schema = declared, declared.window, bucket.inputs[0].schema
        self.label_type = bucket.schema.type_of(self.window.label)
        self.labels = SessionLabels(bucket)

    def on_event(self, event: Event, input: int = 0) -> Iterable[Item]:
        moment = event.row[self.labels.on]
        if moment is None:
            return []
        if to_tick(moment) % self.window.granularity:
            raise FailingError(f"'{self.labels.on}' is off the grid of {self.window!r}")
        try:
            end = from_tick(to_tick(moment) + self.window.gap, self.label_type)
        except OverflowError:
            raise FailingError(f"the end of {self.window!r} lies behind the year 9999") from None
        if isinstance(end, int) and end >= 2**63:
            raise FailingError(f"the end of {self.window!r} is not a bigint")
        check_arguments(self.declared, event.row, self.schema)
        group = self.group_of(event.row)
        before = self._told(group, ignore)
        group.rows.append(event.row)
        after = self._told(group, self.on_failure)
        common = Counter(map(repr, before)) & Counter(map(repr, after))
        return [
            Event({**row, WEIGHT: weight})
            for weight, rows in ((-1, before), (1, after))
            for row in rows
            if repr(row) not in common
        ]

    def _told(self, group: Group, note: Note) -> list[dict[str, Any]]:
        """What was told of a group by now, where anything is told before it is over."""
        if not self.declared.corrected:
            return []
        return [dict(e.row) for key, rows in self._sessions(group) for e in self._results(key, rows, note)]

    def _sessions(self, group: Group) -> Iterator[tuple[dict[str, Any], list[Any]]]:
        """The sessions of a group as they are now: their keys, and their events in order of arrival."""
        on, gap = self.labels.on, self.window.gap
        ticks = sorted({to_tick(row[on]) for row in group.rows})
        firsts = [t for before, t in zip([None, *ticks], ticks) if before is None or t - before > gap]
        for first, beyond in zip(firsts, [*firsts[1:], None]):
            inside = [r for r in group.rows if first <= to_tick(r[on]) and (beyond is None or to_tick(r[on]) < beyond)]
            end = max(to_tick(row[on]) for row in inside) + gap
            moments = {
                self.window.start: from_tick(first, self.label_type),
                self.window.label: from_tick(end, self.label_type),
            }
            yield {**moments, **dict(zip(self.declared.without_label, group.key, strict=True))}, inside

    def _results(self, key: dict[str, Any], rows: list[Any], note: Note) -> list[Event]:
        return results(Unweighted(self.declared), key, rows, self.schema, note)

    def on_punctuation(self, pattern: Pattern, input: int = 0) -> Iterable[Item]:
        said = (item for item in self.labels.on_punctuation(pattern) if isinstance(item, Assertion))
        return [item for each in said for item in GroupsReference.on_punctuation(self, each.pattern)]

    def close(self, pattern: Pattern) -> list[Item]:
        out: list[Item] = []
        for identity, group in list(self.groups.items()):
            left: list[Any] = []
            for key, rows in self._sessions(group):
                if not all(pattern[name].matches(key[name]) for name in pattern.restricted):
                    left += rows
                elif not self.declared.corrected:
                    out += self._results(key, rows, self.on_failure)
            group.rows[:] = left
            if not left:
                del self.groups[identity]
        return [*out, self.behind(pattern)]
