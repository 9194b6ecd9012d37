"""The part of the builder that aggregates: a stream and what it is grouped by."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from penstock.builder.built import Built, check_lifetimes
from penstock.builder.sparing import bucket_under
from penstock.errors import UserError
from penstock.operators.aggregate.operator import Aggregate
from penstock.operators.count_aggregate.operator import CountAggregate
from penstock.operators.landmark_aggregate.operator import LandmarkAggregate
from penstock.operators.session_aggregate.operator import SessionAggregate
from penstock.operators.window.operator import Bucket
from penstock.pattern.arguments import worded
from penstock.pattern.schema import Attribute, Schema
from penstock.plan.window import CountWindow, GatheredWindow, LandmarkWindow, SessionWindow
from penstock.sql.aggregation import Aggregation

S = TypeVar("S", bound=Built)


@worded
@dataclass(frozen=True)
class Grouped(Generic[S]):
    """A stream and its grouping attributes, waiting for aggregates."""

    stream: S
    keys: tuple[str, ...]

    def agg(self, **aggregations: str) -> S:
        """One attribute per aggregate: `agg(n="count(*)", mean="avg(speed)")`."""
        if not aggregations:
            raise UserError("agg() without aggregates", hint="for example agg(n='count(*)')")
        below = self.stream.operator
        schema = below.schema
        keys = self.keys
        inner = schema
        if (bucket := bucket_under(below)) is not None:
            label = bucket.window.label
            keys = (label, *(k for k in keys if k != label))
            if isinstance(bucket.window, GatheredWindow):
                inner = bucket.inputs[0].schema
        time = next((t for t in inner.times if not isinstance(below, Bucket) or t != below.window.label), None)
        parsed = tuple(
            Aggregation.parse(name, text, inner, time, where="agg", keys=self.keys)
            for name, text in aggregations.items()
        )
        start = (window.start,) if isinstance(window := getattr(bucket, "window", None), SessionWindow) else ()
        for a in parsed:
            if a.name in (*start, *keys):
                raise UserError(f"agg: '{a.name}' is a grouping attribute too", hint="choose another name")
        # A session starts and ends with times of one type.
        attributes = (
            *(Attribute(n, schema.type_of(keys[0])) for n in start),
            *(Attribute(k, schema.type_of(k)) for k in keys),
        )
        out = Schema(
            (*attributes, *(Attribute(a.name, a.type) for a in parsed)), tuple(t for t in schema.times if t in keys)
        )
        window = below.window if isinstance(below, Bucket) and below.window.label in keys else None
        kinds = {CountWindow: CountAggregate, LandmarkWindow: LandmarkAggregate, SessionWindow: SessionAggregate}
        kind = kinds.get(type(window), Aggregate)  # type: ignore[arg-type]
        operator = kind((below,), out, keys=keys, aggregations=parsed, window=window)
        check_lifetimes(operator)
        return replace(self.stream, operator=operator)
