"""The part of the builder that declares a source: where its events come from and what it promises about them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal, Self

from penstock.algebra.operator import Operator, Source
from penstock.algebra.schema import Schema
from penstock.algebra.source import Bounds, Disorder, EndOfSource, Files, InBand, OnViolation, Promise, WhenAll
from penstock.algebra.types import coerce_value
from penstock.errors import UserError, did_you_mean

Extent = str | int | timedelta
_CSV_OPTIONS = ("header", "delimiter", "multiline", "null")


class Declaring:
    """What a stream can say while it is still a bare source; `Stream` inherits it."""

    if TYPE_CHECKING:
        operator: Operator

        @property
        def schema(self) -> Schema: ...
        def _with(self, operator: Operator) -> Self: ...
        def _time(self, name: str | None, call: str) -> str: ...
        def _ticks(self, extent: Extent, attribute: str, call: str) -> int: ...

    def _source(self, call: str) -> Source:
        if not isinstance(self.operator, Source):
            raise UserError(
                f"{call}() declares something about a source, but this is the output of {self.operator.kind}",
                hint=f"call {call}() right after ps.stream(…), before where/select/window/…",
            )
        return self.operator

    def _read(self, path: str, format: Literal["parquet", "csv", "json"], options: Mapping[str, Any]) -> Self:
        source = self._source(f"read_{format}")
        own = {k: options[k] for k in ("partitions", "order") if k in options}
        rest = tuple(sorted((k, v) for k, v in options.items() if k not in own))
        known = ("partitions", "order", "settle", "wait", *(_CSV_OPTIONS if format == "csv" else ()))
        for name in options:
            if name not in known:
                raise UserError(
                    f"stream '{source.name}': read_{format} has no option '{name}'", hint=did_you_mean(name, known)
                )
        if own.get("partitions", "single") not in ("single", "directory"):
            raise UserError(f"stream '{source.name}': partitions={own['partitions']!r}", hint="'single' or 'directory'")
        if own.get("order", "time") not in ("time", "name"):
            raise UserError(f"stream '{source.name}': order={own['order']!r}", hint="'time' or 'name'")
        return self._with(replace(source, reader=Files(str(path), format, options=rest, **own)))

    def read_parquet(self, path: str, **options: Any) -> Self:
        """Read a directory of Parquet files (or one file, or a glob), and new files as they appear."""
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

    def disorder(self, slack: Extent, *, on: str | None = None) -> Self:
        """Declare that no event is more than `slack` older than the newest before it in its source partition."""
        source = self._source("disorder")
        attribute = self._time(on, "disorder")
        if any(isinstance(p, Disorder) and p.attribute == attribute for p in source.promises):
            raise UserError(f"stream '{source.name}': disorder of '{attribute}' is declared twice")
        return self._promise("disorder", Disorder(attribute, self._ticks(slack, attribute, "disorder")))

    def punctuated(self, column: str = "punctuation") -> Self:
        """Declare that records with a non-null `column` are punctuations, written as pattern text."""
        source = self._source("punctuated")
        if column in source.schema:
            raise UserError(
                f"stream '{source.name}': '{column}' is an attribute of its events",
                hint="punctuation needs a column of its own, which the schema does not declare",
            )
        return self._promise("punctuated", InBand(column))

    def complete_when(self, keys: Iterable[Any], *, on: str, past: str | None = None, slack: Extent = 0) -> Self:
        """Declare all values of attribute `on`; time is complete up to where every one of them has got."""
        source = self._source("complete_when")
        t = source.schema.type_of(on)
        values = tuple(coerce_value(k, t) for k in keys)
        if not values:
            raise UserError(f"stream '{source.name}': complete_when() got no keys")
        attribute = self._time(past, "complete_when")
        return self._promise("complete_when", WhenAll(on, values, attribute, self._ticks(slack, attribute, "slack")))

    def bounds(self, attribute: str, low: Any = None, high: Any = None) -> Self:
        """Declare that values of an attribute below `low` or above `high` never occur."""
        source = self._source("bounds")
        t = source.schema.type_of(attribute)
        if low is None and high is None:
            raise UserError(f"stream '{source.name}': bounds('{attribute}') has neither low nor high")
        lowest = None if low is None else coerce_value(low, t)
        highest = None if high is None else coerce_value(high, t)
        return self._promise("bounds", Bounds(attribute, lowest, highest))

    def ends(self) -> Self:
        """Ask for a last punctuation when a bounded run has read everything: it closes whatever is still open.

        After that nothing more can come: what is added later goes to the dead letters.
        """
        return self._promise("ends", EndOfSource())

    def on_violation(self, policy: OnViolation) -> Self:
        """What happens to events that break a promise: `reject` to the dead letters (default) or `fail` the run."""
        if policy not in ("reject", "fail"):
            raise UserError(f"on_violation('{policy}')", hint="'reject' or 'fail'")
        return self._with(replace(self._source("on_violation"), on_violation=policy))
