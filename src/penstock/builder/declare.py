"""The part of the builder that declares a source: where its events come from and what it promises about them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, Self, get_args

from penstock.builder.built import Built, whole
from penstock.builder.extent import events_a_tick, unit_of_rate
from penstock.errors import UserError, did_you_mean
from penstock.kernels.ticks import to_tick
from penstock.operators.source.operator import Source
from penstock.pattern.arguments import worded
from penstock.pattern.types import coerce_value
from penstock.plan.policy import Extent, Measured, Policy, declared
from penstock.plan.promise import (
    REMEMBERED,
    Adaptive,
    After,
    Ahead,
    Bounds,
    Counted,
    Declared,
    Disorder,
    Domain,
    EndOfSource,
    Every,
    Expected,
    Files,
    InBand,
    Monitored,
    Once,
    OnUnreadable,
    OnViolation,
    Promise,
    WhenAll,
    WithinRows,
)

#: The greatest number of rows that disorder may be declared in: so many values are kept per partition.
_MOST_ROWS = 100_000
_CSV_OPTIONS = ("header", "delimiter", "multiline", "null")

#: What a scheme may say of an attribute, and its sign in a template.
_CLASSES = {
    **{sign: sign for sign in ("+", "#", "range", "-")},
    "up to": "+",
    "value": "#",
    "each value": "#",
    "any": "-",
    "*": "-",
}


@worded
class Declaring(Built):
    """What a stream can say while it is still a bare source; `Stream` inherits it."""

    def _source(self, call: str) -> Source:
        if not isinstance(self.operator, Source):
            raise UserError(
                f"{call}() declares something about a source, but this is the output of {self.operator.word}()",
                hint=f"call {call}() right after ps.stream(…), before where/select/window/…",
            )
        return self.operator

    def _read(self, path: str, format: Literal["parquet", "csv", "json"], options: Mapping[str, Any]) -> Self:
        source = self._source(f"read_{format}")
        own = {k: options[k] for k in ("partitions", "order") if k in options}
        rest = tuple(sorted((k, v) for k, v in options.items() if k not in own))
        known = ("partitions", "order", "settle", "wait", "on_unreadable", *(_CSV_OPTIONS if format == "csv" else ()))
        for name in options:
            if name not in known:
                raise UserError(
                    f"stream '{source.name}': read_{format} has no option '{name}'", hint=did_you_mean(name, known)
                )
        if own.get("partitions", "single") not in ("single", "directory"):
            raise UserError(
                f"stream '{source.name}': partitions={own['partitions']!r} is not possible",
                hint="'single' or 'directory'",
            )
        if own.get("order", "time") not in ("time", "name"):
            raise UserError(f"stream '{source.name}': order={own['order']!r} is not possible", hint="'time' or 'name'")
        if (policy := options.get("on_unreadable", "wait")) not in get_args(OnUnreadable):
            raise UserError(
                f"stream '{source.name}': on_unreadable={policy!r} is not possible", hint="'wait', 'fail' or 'skip'"
            )
        settle = options.get("settle", 0)
        if isinstance(settle, bool) or not isinstance(settle, int | float) or not 0 <= settle < math.inf:
            raise UserError(
                f"stream '{source.name}': settle={settle!r} is not a number of seconds", hint="write settle=5"
            )
        return self._with(replace(source, reader=Files(str(path), format, options=rest, **own)))

    def read_parquet(self, path: str, **options: Any) -> Self:
        """Read a directory of Parquet files (or one file, or a glob), and new files as they appear.

        `on_unreadable` says what happens at a file that cannot be read: `"wait"` for it (the default; a run that ends
        by itself fails), `"fail"`, or `"skip"` it with a dead letter.
        """
        return self._read(path, "parquet", options)

    def read_csv(self, path: str, **options: Any) -> Self:
        """Read a directory of CSV files with a header line (options: header, delimiter, multiline, settle)."""
        return self._read(path, "csv", options)

    def read_json(self, path: str, **options: Any) -> Self:
        """Read a directory of files with one JSON object a line."""
        return self._read(path, "json", options)

    def _promise(self, call: str, promise: Promise) -> Self:
        source = self._source(call)
        return self._with(replace(source, promises=(*source.promises, promise)))

    def disorder(self, slack: Extent | Measured, *, on: str | None = None, ahead: Extent | None = None) -> Self:
        """Declare that no event is more than `slack` older than the newest before it in its source partition.

        With `ps.Measured(at_most="5 min")` the slack is what the events seen so far kept to. `ahead` guards against
        clocks gone wrong: an event that is newer than the newest before it by more than that is set aside.
        """
        if ahead is not None:
            self._ordered(on, "disorder")
            guarded: Self = self._ahead(ahead, on, "disorder(ahead=…)")
            return guarded.disorder(slack, on=on)
        attribute = self._ordered(on, "disorder")
        if not isinstance(slack, Measured):
            return self._promise("disorder", Disorder(attribute, self._ticks(slack, attribute, "disorder")))
        low, high = (self._ticks(x, attribute, "disorder") for x in (slack.at_least, slack.at_most))
        if low > high:
            raise UserError(f"disorder: at_least={slack.at_least!r} is more than at_most={slack.at_most!r}")
        return self._promise("disorder", Adaptive(attribute, slack.quantile, low, high, slack.warm_up))

    def monitor_disorder(self, *, on: str | None = None) -> Self:
        """Measure how far events are out of order: places, lateness and its quantiles, per source and epoch.

        For that the parts of a source partition are read one after the other.
        """
        source = self._source("monitor_disorder")
        attribute = self._measurable(on, "monitor_disorder")
        if any(isinstance(p, Monitored | Adaptive) and p.attribute == attribute for p in source.promises):
            return self
        return self._promise("monitor_disorder", Monitored(attribute))

    def punctuate(self, *policies: Policy) -> Self:
        """Declare from what knowledge the source punctuates: `punctuate(ps.Punctuate.after("trip", "10 min"), …)`."""
        found: Self = declared(self, policies)
        return found

    def punctuated(self, column: str = "punctuation", *, companion: bool = False, remember: int = REMEMBERED) -> Self:
        """Declare that records with a non-null `column` are punctuations: no event that they match comes after them.

        The column holds pattern text, one restriction per attribute: `[<= '2026-01-01 10:00', 4, *]`. In JSON lines
        it may be an object by attribute name instead, with a value, a list, or comparisons:
        `{"punctuation": {"trip": 4711}}`, `{"punctuation": {"ts": {"<=": "2026-01-01 10:00"}, "sensor": [3, 4]}}`.

        With `companion=True` the column is a mark (true or false; null is false), and a marked record says by its
        other columns what is over: a value in the attribute's own column, null for `*`. Further columns, which need
        not be there, give ranges: `<attribute>_upto` (≤), `<attribute>_below` (<), `<attribute>_from` (≥).

            punctuation,trip,ts,ts_below           punctuation,trip,ts
            true,,,2026-01-01 10:00:00             true,4711,

        Punctuation is remembered to catch the events that break it: values of one attribute (whole numbers in a row
        as one range) and combinations of values, of each the last `remember`.
        """
        source = self._source("punctuated")
        if column in source.schema:
            raise UserError(
                f"stream '{source.name}': '{column}' is an attribute of its events",
                hint="punctuation needs a column of its own, which the schema does not declare",
            )
        return self._promise("punctuated", InBand(column, companion, self._remembered(remember, "punctuated")))

    def scheme(self, /, *templates: str, **classes: str) -> Self:
        """Declare which punctuations come in band, so that it can be checked before the start what they release.

        `scheme(trip="value")` says that every trip ends with a punctuation on `trip` alone; `scheme(ts="up to",
        sensor="value")` that time is told for each sensor; `"range"` is a closed interval. The same as text, with all
        that is not named unrestricted: `scheme("[[ts:+, sensor:#, speed:-]]")`. Several texts or calls add up: each
        kind comes for every event.
        """
        source = self._source("scheme")
        if not any(isinstance(p, InBand) for p in source.promises):
            raise UserError(
                f"stream '{source.name}': scheme() says which punctuations come in band, but none are declared",
                hint="call punctuated() first; what the source itself knows is declared with disorder() or punctuate()",
            )
        found = [_template(_written(text), self._named, self.schema.names, f"scheme('{text}')") for text in templates]
        if classes or not templates:
            found.append(_template(classes, self._named, self.schema.names, "scheme()"))
        known = [p for p in source.promises if isinstance(p, Declared)]
        every = tuple(dict.fromkeys([*(t for p in known for t in p.templates), *found]))
        others = tuple(p for p in source.promises if not isinstance(p, Declared))
        return self._with(replace(source, promises=(*others, Declared(every))))

    def complete_when(self, keys: Iterable[Any], *, on: str, past: str | None = None, slack: Extent = 0) -> Self:
        """Declare all values of attribute `on`; time is complete up to where every one of them has got."""
        source = self._source("complete_when")
        on = self._named(on, "complete_when")
        values = self._coerced(keys, on, "complete_when")
        if not values:
            raise UserError(f"stream '{source.name}': complete_when() got no keys")
        attribute = self._time(past, "complete_when")
        return self._promise("complete_when", WhenAll(on, values, attribute, self._ticks(slack, attribute, "slack")))

    def bounds(self, attribute: str, low: Any = None, high: Any = None) -> Self:
        """Declare that values of an attribute below `low` or above `high` never occur."""
        source = self._source("bounds")
        attribute = self._named(attribute, "bounds")
        if low is None and high is None:
            raise UserError(f"stream '{source.name}': bounds('{attribute}') has neither low nor high")
        lowest = None if low is None else self._coerced((low,), attribute, "bounds")[0]
        highest = None if high is None else self._coerced((high,), attribute, "bounds")[0]
        if lowest is not None and highest is not None and lowest > highest:
            raise UserError(
                f"stream '{source.name}': bounds('{attribute}', {low!r}, {high!r}) leave no value",
                hint="the lower bound comes first",
            )
        return self._promise("bounds", Bounds(attribute, lowest, highest))

    def expect(
        self,
        *,
        rate: float | str | None = None,
        lifetime: Mapping[str, Extent] | None = None,
        keys: Mapping[str, int] | None = None,
        lag: Extent | None = None,
        on: str | None = None,
    ) -> Self:
        """Say how much is to be expected: not a promise, but bounds on state and delay follow from it.

        `rate` is events a second of event time, or text such as `"500/min"` (for integer time: events a tick).
        `lifetime={"trip": "2 h"}`: that long after the first event of a trip, in whichever stream, its end has been
        promised here. `keys={"segment": 500}`: so many different values occur together, in a window or while state is
        held. `lag`: how far this stream may be behind the others, beyond its disorder. A run says when it is otherwise.
        """
        source = self._source("expect")
        told: dict[str, Any] = {}
        if rate is not None or lifetime or lag is not None or on is not None:
            told["attribute"] = self._measurable(on, "expect")
        if rate is not None:
            told["rate"] = events_a_tick(rate, self.schema.type_of(told["attribute"]))
        if lag is not None:
            told["lag"] = self._ticks(lag, told["attribute"], "expect(lag=…)")
        lives = {
            self._named(k, "expect"): self._ticks(t, told["attribute"], f"expect(lifetime={{'{k}': …}})")
            for k, t in (lifetime or {}).items()
        }
        counts = {self._named(k, "expect"): n for k, n in (keys or {}).items()}
        for name, count in counts.items():
            whole(count, f"expect(keys={{'{name}': {count!r}}}) is not possible", "a whole number of at least 1")
        said: dict[str, str] = {}
        if rate is not None:
            unit = unit_of_rate(self.schema.type_of(told["attribute"]))
            said["rate"] = rate if isinstance(rate, str) else f"{rate:,}/{unit}"
        said |= {f"lifetime {k}": f"{k} over after {t}" for k, t in (lifetime or {}).items()}
        said |= {f"keys {k}": f"{n:,} values of {k}" for k, n in counts.items()}
        said |= {"lag": f"lag {lag}"} if lag is not None else {}
        if not said:
            raise UserError(f"stream '{source.name}': expect() says nothing", hint="expect(rate=1000, …)")
        before = next((p for p in source.promises if isinstance(p, Expected)), Expected())
        expected = replace(
            before,
            **told,
            lifetimes=tuple((dict(before.lifetimes) | lives).items()),
            keys=tuple((dict(before.keys) | counts).items()),
            said=tuple((dict(before.said) | said).items()),
        )
        others = tuple(p for p in source.promises if not isinstance(p, Expected))
        return self._with(replace(source, promises=(*others, expected)))

    def ends(self) -> Self:
        """Ask for a last punctuation when a bounded run has read everything: it closes whatever is still open.

        After that nothing more can come: what is added later goes to the dead letters.
        """
        return self._promise("ends", EndOfSource())

    def on_violation(self, policy: OnViolation) -> Self:
        """What happens to events that break a promise: `reject` to the dead letters (default) or `fail` the run."""
        if policy not in ("reject", "fail"):
            raise UserError(f"on_violation('{policy}') is not possible", hint="'reject' or 'fail'")
        return self._with(replace(self._source("on_violation"), on_violation=policy))

    # --- what policies declare ----------------------------------------------------------------------------------

    def _every(self, period: Extent, on: str | None) -> Self:
        attribute = self._measurable(on, "Punctuate.every")
        ticks = self._ticks(period, attribute, "Punctuate.every")
        if ticks < 1:
            raise UserError(
                f"Punctuate.every({period!r}) is not possible", hint="more than nothing, for example '1 min'"
            )
        return self._promise("punctuate", Every(attribute, ticks))

    def _after(self, key: str, gap: Extent, on: str | None, remember: int) -> Self:
        attribute = self._measurable(on, "Punctuate.after")
        ticks = self._ticks(gap, attribute, "Punctuate.after")
        kept = self._remembered(remember, "Punctuate.after")
        return self._promise("punctuate", After(self._named(key, "Punctuate.after"), attribute, ticks, kept))

    def _counted(self, on: str | None, since: Any) -> Self:
        source = self._source("Punctuate.counted")
        attribute = self._measurable(on, "Punctuate.counted")
        if any(isinstance(p, Counted) for p in source.promises):
            raise UserError(f"stream '{source.name}': counts are declared twice")
        start = None if since is None else to_tick(self._coerced((since,), attribute, "Punctuate.counted")[0])
        told = self if any(isinstance(p, InBand) for p in source.promises) else self.punctuated()
        return told._promise("Punctuate.counted", Counted(attribute, start))

    def _once(self, key: str, remember: int) -> Self:
        kept = self._remembered(remember, "Punctuate.once")
        return self._promise("punctuate", Once(self._named(key, "Punctuate.once"), kept))

    def _ahead(self, most: Extent, on: str | None, call: str) -> Self:
        source = self._source(call)
        attribute = self._measurable(on, call)
        if any(isinstance(p, Ahead) for p in source.promises):
            raise UserError(f"stream '{source.name}': how far ahead events may be is declared twice")
        return self._promise(call, Ahead(attribute, self._ticks(most, attribute, call)))

    def _sorted_by(self, attribute: str) -> Self:
        return self._promise("punctuate", Disorder(self._ordered(attribute, "Punctuate.sorted_by"), 0))

    def _values(self, attribute: str, values: tuple[Any, ...]) -> Self:
        name = self._named(attribute, "Punctuate.values")
        if not values:
            raise UserError(f"Punctuate.values('{attribute}'): no values")
        return self._promise("punctuate", Domain(name, self._coerced(values, name, "Punctuate.values")))

    def _within_rows(self, rows: int, on: str | None) -> Self:
        attribute = self._ordered(on, "Punctuate.within_rows")
        said = f"Punctuate.within_rows({rows!r}) is not possible"
        whole(rows, said, f"a whole number up to {_MOST_ROWS:,}", least=0, most=_MOST_ROWS)
        return self._promise("punctuate", WithinRows(attribute, rows))

    def _coerced(self, values: Iterable[Any], attribute: str, call: str) -> tuple[Any, ...]:
        """Values in the type of an attribute."""
        t = self.schema.type_of(attribute)
        try:
            return tuple(coerce_value(v, t) for v in values)
        except UserError as error:
            raise UserError(f"{call}('{attribute}'): {error.message}", hint=error.hint) from None

    def _ordered(self, on: str | None, call: str) -> str:
        """The attribute whose order is to be declared, for the first time."""
        source = self._source(call)
        attribute = self._measurable(on, call)
        orders = (Disorder, Adaptive, WithinRows)
        if any(isinstance(p, orders) and p.attribute == attribute for p in source.promises):
            raise UserError(f"stream '{source.name}': disorder of '{attribute}' is declared twice")
        return attribute

    def _remembered(self, remember: int, call: str) -> int:
        return whole(remember, f"{call}: remember={remember!r} is not possible", "a whole number of at least 1")


def _written(text: str) -> dict[str, str]:
    """Attribute → class, of a template as text.

    >>> _written("[[ts:+, sensor:#]]")
    {'ts': '+', 'sensor': '#'}
    """
    inside = text.strip()
    parts = [p.strip() for p in inside[2:-2].split(",")] if inside[:2] == "[[" and inside[-2:] == "]]" else [""]
    if not all(":" in p for p in parts):
        raise UserError(f"scheme('{text}') is not a template", hint="write it as [[ts:+, sensor:#, speed:-]]")
    return {name.strip().strip("`"): said for name, _, said in (p.rpartition(":") for p in parts)}


def _template(
    classes: Mapping[str, str], named: Callable[[str, str], str], names: Sequence[str], call: str
) -> tuple[tuple[str, str], ...]:
    """The attributes that are restricted, in the order of `names`, and how; `named` finds one, or complains."""
    found: dict[str, str] = {}
    for name, said in classes.items():
        sign = _CLASSES.get(said.strip().lower()) if isinstance(said, str) else None
        if sign is None:
            raise UserError(
                f"{call}: '{name}' is {said!r}", hint="one of 'up to' (+), 'value' (#), 'range' and 'any' (-)"
            )
        found[named(name, call)] = sign
    tagged = tuple((n, found[n]) for n in names if found.get(n, "-") != "-")
    if not tagged:
        raise UserError(
            f"{call} restricts nothing: that would be the end of the stream",
            hint="name what ends: scheme(trip='value'); for the end of a bounded run call ends()",
        )
    return tagged
