"""The items of a punctuated stream, and what makes a stream grammatical."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from penstock.pattern.pattern import Pattern


@dataclass(frozen=True)
class Event:
    """One event: a value for each attribute of its schema, null as None."""

    row: Mapping[str, Any]

    def __str__(self) -> str:
        return ", ".join(f"{name} {'null' if value is None else value}" for name, value in self.row.items())


@dataclass(frozen=True)
class Assertion:
    """The assertion that no later event of the stream matches the pattern."""

    pattern: Pattern

    def __str__(self) -> str:
        return f"punctuation {self.pattern}"


Item = Event | Assertion


@dataclass(frozen=True)
class Breach:
    """An event that follows a punctuation that it matches."""

    event: Event
    punctuation: Assertion
    position: int = field(compare=False)


def breaches(items: Iterable[Item]) -> list[Breach]:
    """Every place where a stream breaks its own word; a grammatical stream has none.

    >>> from penstock.pattern.schema import Schema
    >>> from penstock.pattern.pattern import Pattern
    >>> seven = Assertion(Pattern.where(Schema.parse("id int"), id=7))
    >>> breaches([Event({"id": 7}), seven, Event({"id": 8})])
    []
    >>> [b.position for b in breaches([seven, Event({"id": 7})])]
    [1]
    """
    given: list[Assertion] = []
    found: list[Breach] = []
    for position, item in enumerate(items):
        if isinstance(item, Assertion):
            given.append(item)
        else:
            found += [Breach(item, p, position) for p in given if p.pattern.matches_row(item.row)]
    return found


def is_grammatical(items: Iterable[Item]) -> bool:
    return not breaches(items)


def events(items: Iterable[Item]) -> list[dict[str, Any]]:
    """The rows of a stream, without its punctuations."""
    return [dict(i.row) for i in items if isinstance(i, Event)]


def punctuations(items: Iterable[Item]) -> list[Pattern]:
    """The punctuations of a stream, without its events."""
    return [i.pattern for i in items if isinstance(i, Assertion)]


@dataclass(frozen=True)
class DeadLetter:
    """An event that was not let in: why, and which punctuation it breaks (None if it does not fit the schema)."""

    source: str
    partition: Hashable
    row: Mapping[str, Any]
    reason: str
    breaks: Pattern | None
    kind: Literal["malformed", "forbidden", "late", "ahead", "paced", "failed"] = "late"
