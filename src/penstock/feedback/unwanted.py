"""Records of what nobody wants: few of them, however much is said.

A record inside another is not kept, lists of values are one record, and punctuation that says that nothing more will
match takes a record away, or the values of its list that are over. At a limit the oldest record goes; not so one that
something was purged for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from penstock.pattern.feedback import RECORDS, VALUES
from penstock.pattern.pattern import Pattern
from penstock.pattern.restriction import Equal, OneOf, one_of, values_of
from penstock.pattern.schema import Schema


@dataclass(frozen=True)
class Record:
    """Events to drop (or to prefer). `since` is the first epoch that does."""

    pattern: Pattern
    since: int
    pinned: bool = False
    sweep: bool = False

    def to_json(self) -> dict[str, Any]:
        return {"pattern": self.pattern.to_json(), "since": self.since, "pinned": self.pinned, "sweep": self.sweep}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any], schema: Schema) -> Record:
        pattern = Pattern.from_json(stored["pattern"], schema)
        return cls(pattern, stored["since"], stored["pinned"], stored["sweep"])


def with_record(records: tuple[Record, ...], new: Record) -> tuple[Record, ...] | None:
    """The records with one more, as few as say the same; None if there is no room."""
    if any(r.pattern.contains(new.pattern) and r.pinned >= new.pinned and r.sweep >= new.sweep for r in records):
        return records
    rest = []
    for record in records:
        if new.pattern.contains(record.pattern) and new.pinned >= record.pinned and new.sweep >= record.sweep:
            continue
        joined = _joined(record, new)
        if joined is None:
            rest.append(record)
        else:
            new = joined
    while len(rest) >= RECORDS:
        oldest = next((r for r in rest if not r.pinned), None)
        if oldest is None:
            return None
        rest.remove(oldest)
    if _size(new.pattern) > VALUES:
        return None if new.pinned else (*rest, replace(new, pattern=_shortened(new.pattern)))
    return (*rest, new)


def uncovered(record: Record, said: Iterable[Pattern]) -> Record | None:
    """What is left of a record after punctuations: of a list of values those that may still come."""
    pattern = record.pattern
    for punctuation in said:
        if punctuation.contains(pattern):
            return None
        lists = [n for n in pattern.restricted if isinstance(pattern[n], OneOf)]
        for name in lists:
            rest = Pattern(pattern.schema, tuple(punctuation[n] if n == name else pattern[n] for n in _names(pattern)))
            if punctuation.contains(rest):
                left = one_of(v for v in values_of(pattern[name]) if not punctuation[name].matches(v))
                pattern = Pattern.by_name(
                    pattern.schema, {n: left if n == name else pattern[n] for n in pattern.restricted}
                )
                if pattern.is_empty:
                    return None
                break
    return record if pattern is record.pattern else replace(record, pattern=pattern)


def _names(pattern: Pattern) -> tuple[str, ...]:
    return pattern.schema.names


def _joined(old: Record, new: Record) -> Record | None:
    """One record for two that differ in the values listed for one attribute."""
    if (old.pinned, old.sweep) != (new.pinned, new.sweep):
        return None
    names = [n for n in _names(old.pattern) if old.pattern[n] != new.pattern[n]]
    if len(names) != 1:
        return None
    name = names[0]
    mine, its = old.pattern[name], new.pattern[name]
    if not isinstance(mine, Equal | OneOf) or not isinstance(its, Equal | OneOf):
        return None
    values = one_of((*values_of(mine), *values_of(its)))
    pattern = Pattern.by_name(old.pattern.schema, {**{n: old.pattern[n] for n in old.pattern.restricted}, name: values})
    if _size(pattern) > VALUES and old.pinned:
        return None
    return Record(pattern, new.since, old.pinned, old.sweep)


def _size(pattern: Pattern) -> int:
    return max((len(r.values) for r in pattern.restrictions if isinstance(r, OneOf)), default=1)


def _shortened(pattern: Pattern) -> Pattern:
    """A list that has become too long, halved: what is no longer dropped does no harm."""
    short = {
        n: one_of(pattern[n].values[-VALUES // 2 :]) if isinstance(pattern[n], OneOf) else pattern[n]  # type: ignore[attr-defined]
        for n in pattern.restricted
    }
    return Pattern.by_name(pattern.schema, short)
