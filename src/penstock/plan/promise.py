"""What a source is and what it promises: declarations only, nothing here reads a byte.

A *reader* says where events come from (files, a generator, a Spark stream). A *promise* says which punctuations
the source will assert and from what knowledge; an event that breaks a promise is a violation.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

#: The attribute that says of a record of change data which of its rows an event is: `-` before, `+` after.
CHANGE = "_change"
#: The attributes that such a record has beside its rows: when the change was made, whatever the row says.
STAMPS = ("ts_ms", "ts_us", "ts_ns")

Format = Literal["parquet", "csv", "json"]
OnViolation = Literal["reject", "fail"]
OnUnreadable = Literal["wait", "fail", "skip"]
REMEMBERED = 100_000
"""How many promised values a source keeps to catch the events that break them. Whole numbers in a row count once."""


@dataclass(frozen=True)
class Files:
    """A directory (or one file, or a glob) of Parquet, CSV or JSON-lines files, read in order of appearance.

    `partitions="directory"` makes every sub-directory a source partition of its own: disorder is then measured
    within each, and the stream is only as far as its slowest partition. With `"single"` the whole directory is one
    partition and its files follow each other.
    """

    path: str
    format: Format
    partitions: Literal["single", "directory"] = "single"
    order: Literal["time", "name"] = "time"
    options: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True)
class Generated:
    """Events made by a seeded function of their position, so that any part of the stream can be made again."""

    rows: int | None
    rate: float | None
    seed: int
    start: int
    partitions: int = 1
    disorder: int = 0
    columns: tuple[tuple[str, str, tuple[Any, ...]], ...] = ()
    punctuate: tuple[tuple[str, int], ...] = ()
    """Punctuations in band: an attribute, and after how many rows each (0: wherever one of its values is over)."""


@dataclass(frozen=True)
class Inbox:
    """A Structured Streaming DataFrame whose micro-batches are written to a durable inbox, one folder per batch id."""

    frame: Any = field(repr=False, compare=False, hash=False)


Reader = Files | Generated | Inbox


@dataclass(frozen=True)
class Disorder:
    """No event is more than `slack` ticks older than the newest one before it in its source partition."""

    attribute: str
    slack: int

    def __str__(self) -> str:
        return f"disorder({self.attribute} within {self.slack} ticks)"


@dataclass(frozen=True)
class Ahead:
    """No event is more than `most` ticks newer than the newest one before it in its source partition.

    One that is (a clock gone wrong) is set aside and makes no other event late. The first event of a partition has
    none before it and is believed.
    """

    attribute: str
    most: int

    def __str__(self) -> str:
        return f"{self.attribute} at most {self.most} ticks ahead"


@dataclass(frozen=True)
class InBand:
    """Records whose `column` is not null are punctuations in the stream itself.

    The column holds pattern text (in JSON also an object by attribute name). With `companion` it is a mere mark: the
    record's other columns say which values are over. To catch violators, the last `remember` values are kept.
    """

    column: str = "punctuation"
    companion: bool = False
    remember: int = REMEMBERED

    def __str__(self) -> str:
        return f"in band({self.column})"


@dataclass(frozen=True)
class Counted:
    """Records in band say how many events have `attribute` in an interval: it is complete when these have come.

    As far as everything before it is complete too. Nothing comes before the tick `since`, if that is given.
    """

    attribute: str
    since: int | None = None

    def __str__(self) -> str:
        return f"counts of {self.attribute}"


@dataclass(frozen=True)
class Declared:
    """Which punctuations come in band: each template gives attributes a class, `+` up to, `#` one value or `range`.

    Attributes that a template does not name are unrestricted. It is a promise twice over: nothing else comes, and every
    event is sooner or later matched by a punctuation of each template. So a check before the start can count on it.
    """

    templates: tuple[tuple[tuple[str, str], ...], ...]

    def __str__(self) -> str:
        return "scheme " + ", ".join(f"[[{', '.join(f'{n}:{c}' for n, c in t)}]]" for t in self.templates)


@dataclass(frozen=True)
class WhenAll:
    """`past` is complete up to the least of the newest values seen for each of `keys` in attribute `key`.

    Each key is in order up to `slack` ticks; the list names every key there is.
    """

    key: str
    keys: tuple[Any, ...]
    past: str
    slack: int = 0

    def __str__(self) -> str:
        return f"when all {len(self.keys)} values of {self.key} have passed {self.past}"


@dataclass(frozen=True)
class Bounds:
    """Values of `attribute` below `low` or above `high` never occur: two punctuations before the first event."""

    attribute: str
    low: Any = None
    high: Any = None

    def __str__(self) -> str:
        return f"bounds({self.low} ≤ {self.attribute} ≤ {self.high})"


@dataclass(frozen=True)
class Domain:
    """`attribute` takes only these values and is never null.

    Nothing is punctuated by it, but punctuations that together cover the domain say as much as one without it:
    with sensors 1 and 2 and no others, `[1, < 7]` and `[2, < 7]` together end all times below 7.
    """

    attribute: str
    values: tuple[Any, ...]

    def __str__(self) -> str:
        return f"{self.attribute} is one of {len(self.values)} values"


@dataclass(frozen=True)
class Adaptive:
    """As `Disorder`, but the slack is measured: the lateness that a `quantile` of all events kept to so far.

    It is never less than `at_least` nor more than `at_most` ticks, which applies until `warm_up` events were seen. It
    is set anew after every epoch, so which events are late depends on the cut into epochs; what was asserted stands.
    """

    attribute: str
    quantile: float
    at_least: int
    at_most: int
    warm_up: int

    def __str__(self) -> str:
        return f"disorder({self.attribute} as {self.quantile:.12g} of the events, {self.at_least} to {self.at_most})"


@dataclass(frozen=True)
class WithinRows:
    """At most `rows` of the events before an event in its partition are greater: it is that many places late."""

    attribute: str
    rows: int

    def __str__(self) -> str:
        return f"disorder({self.attribute} within {self.rows} rows)"


@dataclass(frozen=True)
class Every:
    """How far `attribute` is complete is asserted at multiples of `period` ticks only."""

    attribute: str
    period: int

    def __str__(self) -> str:
        return f"every {self.period} ticks of {self.attribute}"


@dataclass(frozen=True)
class After:
    """A value of `key` is over when the source is complete beyond `gap` ticks after its newest event.

    An event at most `gap` after the newest one before it keeps its key open; an event of a key that is over is a
    violation. Time is complete as far as the promised disorder of `attribute` says, in the slowest partition.
    """

    key: str
    attribute: str
    gap: int
    remember: int = REMEMBERED

    def __str__(self) -> str:
        return f"{self.key} over after {self.gap} ticks of {self.attribute}"


@dataclass(frozen=True)
class Once:
    """Every value of `key` comes once in the source: the event is its own punctuation. A second one is a violation."""

    key: str
    remember: int = REMEMBERED

    def __str__(self) -> str:
        return f"{self.key} once"


@dataclass(frozen=True)
class Lifetime:
    """Events hold from `start` to `end` (null: for ever), and a retraction ends one at `new_end` (null: at its start).

    `kind` says which events are retractions; without it, those that have a new end. An event whose lifetime is empty,
    or that would not be shorter, breaks the promise.
    """

    start: str
    end: str
    kind: str = ""
    new_end: str = ""

    @property
    def attributes(self) -> tuple[str, ...]:
        """All that it names."""
        return tuple(n for n in (self.start, self.end, self.kind, self.new_end) if n)

    def __str__(self) -> str:
        return f"holds from {self.start} to {self.end}"


@dataclass(frozen=True)
class Monitored:
    """No promise: asks to measure how far events of each partition are out of order in `attribute`."""

    attribute: str

    def __str__(self) -> str:
        return f"disorder of {self.attribute} measured"


@dataclass(frozen=True)
class Expected:
    """No promise: how much is to be expected, so that bounds on state and delay can be told before the start.

    In ticks of `attribute`: `rate` is events a tick, `lifetimes` how long after the first event of a key (in whichever
    stream) its end is promised here, `lag` how far this stream may be behind the others beyond its disorder. `keys` is
    how many different values of an attribute occur together. No event is refused for it; a run says when it is broken.
    """

    attribute: str | None = None
    rate: float | None = None
    lifetimes: tuple[tuple[str, int], ...] = ()
    keys: tuple[tuple[str, int], ...] = ()
    lag: int | None = None
    said: tuple[tuple[str, str], ...] = field(default=(), compare=False)

    def __str__(self) -> str:
        return f"expected: {', '.join(text for _, text in self.said)}"


@dataclass(frozen=True)
class EndOfSource:
    """When a bounded run has read everything, the source says so: a punctuation of wildcards only."""

    def __str__(self) -> str:
        return "end of source"


Promise = (
    Disorder
    | Ahead
    | Adaptive
    | WithinRows
    | Every
    | After
    | Once
    | InBand
    | Counted
    | Declared
    | WhenAll
    | Bounds
    | Domain
    | Lifetime
    | Monitored
    | Expected
    | EndOfSource
)
