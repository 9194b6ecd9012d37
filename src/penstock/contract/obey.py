"""Does a stream keep its scheme? `obeys` looks back at a recorded stream, `Monitor` goes along with one.

C1: every punctuation conforms to at least one template. C2: for every event and each template, some punctuation of the
stream conforms to the template and matches the event. C2 of a stream that goes on is never broken for good: a monitor
can only say which events still wait. An event with null in a tagged attribute waits for ever, since a punctuation
matches null by `*` alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.contract.template import Scheme, Template
from penstock.pattern.pattern import Pattern

Event = Mapping[str, Any] | Sequence[Any]


@dataclass(frozen=True)
class Misfit:
    """A punctuation that conforms to no template (C1)."""

    position: int
    punctuation: Pattern

    def __str__(self) -> str:
        return f"item {self.position}: punctuation {self.punctuation} conforms to no template"


@dataclass(frozen=True)
class Unmatched:
    """Events that no punctuation of a template has matched (C2): the first one, and how many look the same to it."""

    template: Template
    position: int
    event: Mapping[str, Any]
    count: int = 1

    def __str__(self) -> str:
        more = f" (and {self.count - 1} more like it)" if self.count > 1 else ""
        return f"item {self.position}: event {dict(self.event)}{more} waits for {self.template.words}"


@dataclass(frozen=True)
class Obedience:
    """Whether a stream obeys. `forgotten` counts events that a monitor of bounded memory could not follow."""

    breach: Misfit | None = None
    uncovered: tuple[Unmatched, ...] = ()
    forgotten: int = 0

    @property
    def c1(self) -> bool:
        return self.breach is None

    @property
    def c2(self) -> bool:
        return not self.uncovered

    def __bool__(self) -> bool:
        return self.c1 and self.c2

    def __str__(self) -> str:
        found = ([str(self.breach)] if self.breach else []) + [str(w) for w in self.uncovered]
        if self.forgotten:
            found.append(f"{self.forgotten} events were not followed: the monitor's memory was full")
        return "\n".join(found) or "obeys"


def obeys(items: Iterable[Event | Pattern], scheme: Scheme, *, end: bool = False) -> Obedience:
    """Whether a finite recorded stream obeys a scheme; events as mappings, or as values in the order of attributes.

    With `end`, a punctuation `[*, …, *]` is the end of a bounded stream: it breaks nothing and matches every event.

    >>> from penstock.pattern.schema import Schema
    >>> s = Schema.parse("ts int, trip int")
    >>> ends = Scheme.of(Template.of(s, {"trip": "value"}))
    >>> stream = [(1, 7), (2, 8), (2, 7), Pattern.parse("[*, 7]", s)]
    >>> print(obeys(stream, ends))
    item 1: event {'ts': 2, 'trip': 8} waits for trip: each value
    >>> bool(obeys([*stream, Pattern.parse("[*, 8]", s)], ends))
    True
    """
    monitor = Monitor(scheme, end=end)
    # C2 asks for a punctuation anywhere in the stream. In a grammatical stream that is one behind the event; looking at
    # all events first keeps to the letter of C2 for the others too.
    numbered = list(enumerate(items))
    for kind in (False, True):
        for position, item in numbered:
            if isinstance(item, Pattern) is kind:
                monitor.take(position, item)
    return monitor.verdict()


class Monitor:
    """Watches a (grammatical) stream against a scheme, item by item.

    It remembers, per template, the values that the template tags, so a thousand events of one open trip cost as much
    as one. With `limit` it follows no more than that many different values per template; what it did not follow is
    counted in `forgotten`, and the verdict is about the rest.

    >>> from penstock.pattern.schema import Schema
    >>> s = Schema.parse("ts int, trip int")
    >>> monitor = Monitor(Scheme.of(Template.of(s, {"ts": "up to"}), Template.of(s, {"trip": "value"})))
    >>> monitor.feed((1, 7))
    >>> monitor.feed(Pattern.parse("[<= 1, *]", s))
    >>> print(monitor.feed(Pattern.parse("[> 5, *]", s)))
    item 2: punctuation [> 5, *] conforms to no template
    >>> print(*monitor.waiting)
    item 0: event {'ts': 1, 'trip': 7} waits for trip: each value
    """

    def __init__(self, scheme: Scheme, *, limit: int | None = None, end: bool = False) -> None:
        if limit is not None and limit < 1:
            raise ValueError(f"a monitor that follows {limit} values follows nothing")
        self.scheme, self.limit, self.end = scheme, limit, end
        self.breach: Misfit | None = None
        self.forgotten = 0
        self._position = -1
        self._templates = tuple(scheme)
        self._waiting: dict[Template, dict[tuple[Any, ...], Unmatched]] = {t: {} for t in self._templates}

    def feed(self, item: Event | Pattern) -> Misfit | None:
        """Take the next item; a breach of C1 is told at once."""
        return self.take(self._position + 1, item)

    def take(self, position: int, item: Event | Pattern) -> Misfit | None:
        """Take the item of a given position, such as an offset in a file."""
        self._position = position
        if isinstance(item, Pattern):
            return self._punctuation(item)
        self._event(item)
        return None

    def _punctuation(self, pattern: Pattern) -> Misfit | None:
        ends = self.end and not pattern.restricted
        conforming = [t for t in self._templates if ends or t.accepts(pattern)]
        if not conforming and not ends:
            found = Misfit(self._position, pattern)
            self.breach = self.breach or found
            return found
        for template in conforming:
            open_ = self._waiting[template]
            for key in [k for k, w in open_.items() if pattern.matches_row(w.event)]:
                del open_[key]
        return None

    def _event(self, item: Event) -> None:
        if not self._templates:
            return
        names = self._templates[0].names
        event = item if isinstance(item, Mapping) else dict(zip(names, item, strict=True))
        for template in self._templates:
            key = tuple(event[n] for n in template.tagged)
            open_ = self._waiting[template]
            if (first := open_.get(key)) is not None:
                open_[key] = Unmatched(template, first.position, first.event, first.count + 1)
            elif self.limit is None or len(open_) < self.limit:
                open_[key] = Unmatched(template, self._position, event)
            else:
                self.forgotten += 1

    @property
    def waiting(self) -> tuple[Unmatched, ...]:
        """The events that still wait, in the order they came."""
        found = [w for open_ in self._waiting.values() for w in open_.values()]
        return tuple(sorted(found, key=lambda w: (w.position, str(w.template))))

    def verdict(self) -> Obedience:
        """The verdict if the stream stopped here."""
        return Obedience(self.breach, self.waiting, self.forgotten)
