"""The part of the builder for rows that hold for a time: how a stream says it, and what may be made of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Generic, Self, TypeVar

from penstock.builder.built import Built
from penstock.errors import UserError, shortly
from penstock.operators.alter_lifetime.operator import AlterLifetime, Rule
from penstock.operators.snapshot.operator import Empty, SnapshotAggregate
from penstock.operators.source.operator import Source
from penstock.pattern.arguments import worded
from penstock.pattern.schema import SYNC, Attribute, Schema
from penstock.plan.operator import Operator
from penstock.plan.policy import Extent
from penstock.plan.promise import Lifetime
from penstock.sql.aggregation import Aggregation
from penstock.sql.carried import carried
from penstock.sql.expression import Expression

S = TypeVar("S", bound=Built)

Columns = tuple[tuple[str, Expression], ...]


class Lifetimes(Built):
    """What a stream can say of how long its rows hold, and be asked about that."""

    def lifetime(
        self,
        *,
        length: Extent | None = None,
        extend: Extent | None = None,
        at_most: Extent | None = None,
        every: Extent | None = None,
    ) -> Self:
        """Rows that hold at other times: `lifetime(length="10 min")`, ten minutes each, so what holds at a moment are
        the rows that began in the last ten.

        With `every="1 min"` they begin at whole minutes. `extend="5 min"` holds them that much longer, `at_most="1 h"`
        no longer than that.
        """
        rules: tuple[tuple[Rule, Extent | None], ...] = (("length", length), ("extend", extend), ("at_most", at_most))
        given = [(rule, x) for rule, x in rules if x is not None]
        if len(given) != 1:
            raise UserError(
                "lifetime() takes exactly one of length=, extend= and at_most=", hint="lifetime(length='10 min')"
            )
        (rule, extent), start = given[0], self._lifetime("lifetime")[0]
        ticks = self._ticks(extent, start, f"lifetime({rule}=…)")
        step = 0 if every is None else self._ticks(every, start, "lifetime(every=…)")
        if ticks < (rule != "extend") or (every is not None and step < 1):
            raise UserError(
                f"lifetime({rule}={extent!r}{'' if every is None else f', every={every!r}'}) is not possible",
                hint="more than nothing, for example '10 min'",
            )
        if (rule == "at_most" and step) or (rule == "extend" and ticks < step):
            raise UserError(
                f"lifetime({rule}={extent!r}, every={every!r}) would end rows before they do, as they begin before",
                hint=f"length= goes with every=, and so does extend= of {every!r} or more",
            )
        return self._altered(rule, ticks, step)

    def inserts(self) -> Self:
        """Rows that hold for ever from when they began: that they have begun."""
        self._lifetime("inserts")
        return self._altered("inserts")

    def deletes(self) -> Self:
        """Rows that hold for ever from when they ended: that they have ended."""
        self._lifetime("deletes")
        return self._altered("deletes")

    def _lifetime(self, call: str) -> tuple[str, ...]:
        if not self.schema.lifetime:
            raise UserError(
                f"{call}(): rows of this stream do not hold for a time", hint="ps.stream(…, lifetime=('from', 'to'))"
            )
        return self.schema.lifetime

    def _altered(self, rule: Rule, ticks: int = 0, every: int = 0) -> Self:
        below = self.operator
        return self._with(AlterLifetime((below,), below.schema, rule=rule, ticks=ticks, every=every))

    def snapshot(self, *, empty: Empty = "skip") -> Snapshots[Self]:
        """What rows come to that hold at the same time: `stays.snapshot().group_by("room").agg(n="count(*)")`.

        Where no row of a group holds nothing is told; with `empty="zero"` what SQL says of no rows, a count of 0 and a
        sum that is null, from the first row of the group on, for ever.
        """
        if not self.schema.lifetime:
            raise UserError(
                "snapshot(): rows of this stream do not hold for a time",
                hint="ps.stream(…, lifetime=('from', 'to')); where time is cut into windows, window(…)",
            )
        if empty not in ("skip", "zero"):
            raise UserError(
                f"snapshot(empty={shortly(empty)}) is not possible",
                hint="'skip' tells nothing where no row holds, 'zero' what SQL says of no rows",
            )
        return Snapshots(self, (), empty)


@worded
@dataclass(frozen=True)
class Snapshots(Generic[S]):
    """A stream of rows that hold for a time, and what they are grouped by, waiting for aggregates."""

    stream: S
    keys: tuple[str, ...]
    empty: Empty = "skip"

    def group_by(self, *keys: str) -> Snapshots[S]:
        """Of each group by itself."""
        known = self.stream._known(keys, "group_by")
        for name in known:
            if name in (*self.stream.schema.lifetime, SYNC):
                raise UserError(
                    f"group_by('{name}'): that is when rows hold, not what they say", hint="group by another attribute"
                )
        return replace(self, keys=known)

    def agg(self, **aggregations: str) -> S:
        """One attribute per aggregate, for each stretch of time in which they stay the same rows."""
        if not aggregations:
            raise UserError("agg() without aggregates", hint="for example agg(n='count(*)')")
        schema = self.stream.schema
        start, end = schema.lifetime
        parsed = tuple(
            Aggregation.parse(name, text, schema, start, where="agg", keys=self.keys)
            for name, text in aggregations.items()
        )
        for a in parsed:
            _readable(a.columns, schema, a.text, "agg")
            if a.name in (start, end, SYNC, *self.keys):
                raise UserError(f"agg: '{a.name}' is an attribute of the result anyway", hint="choose another name")
        told = [(n, schema.type_of(n)) for n in (start, end, *self.keys)] + [(a.name, a.type) for a in parsed]
        attributes = (*(Attribute(n, t) for n, t in told), Attribute(SYNC, schema.type_of(SYNC)))
        out = Schema(attributes, (SYNC,), (start, end))
        made = SnapshotAggregate((self.stream.operator,), out, keys=self.keys, aggregations=parsed, empty=self.empty)
        return self.stream._with(made)


def shortened(source: Source, kind: str | None, new_end: str | None) -> tuple[Operator, tuple[str, ...]]:
    """A stream, some of whose events end the lifetimes of others earlier; and the columns that say so."""
    schema, life = source.schema, source.lasting
    if life is None:
        raise UserError(
            "changes(new_end=…): rows of this stream do not hold for a time",
            hint="ps.stream(…, lifetime=('from', 'to'))",
        )
    named = tuple(schema.names[schema.index(n)] for n in (kind, new_end) if n is not None)
    if not named or {*named} & {*schema.times, *schema.lifetime}:
        raise UserError("changes() of what? Not of a lifetime", hint="changes('op', new_end='now_until')")
    told = Lifetime(life.start, life.end, named[0] if kind is not None else "", named[-1] if new_end else "")
    if told.new_end and schema.type_of(told.new_end) != schema.type_of(life.start):
        shown = (schema.attributes[schema.index(n)] for n in (told.new_end, life.start))
        raise UserError("changes: the new end is {}, the start {}".format(*shown), hint="declare both alike")
    others = tuple(p for p in source.promises if not isinstance(p, Lifetime))
    return replace(source, promises=(told, *others)), named


def lasting_schema(name: str, schema: Schema, lifetime: tuple[str, str]) -> Schema:
    """The schema of a stream whose rows hold for a time."""
    if not isinstance(lifetime, tuple | list) or len(lifetime) != 2:
        raise UserError(
            f"stream '{name}': lifetime={shortly(lifetime)} is not possible", hint="lifetime=('from', 'to')"
        )
    if schema.times:
        raise UserError(
            f"stream '{name}': rows with lifetimes have no time beside these",
            hint="leave time= out; disorder, punctuation and lateness are about when a change begins to matter",
        )
    ends = tuple(schema.names[schema.index(n)] for n in lifetime)
    kinds = [schema.type_of(n) for n in ends]
    if ends[0] == ends[1] or kinds[0] != kinds[1]:
        raise UserError(
            f"stream '{name}': a lifetime cannot be from {schema.attributes[schema.index(ends[0])]} to "
            f"{schema.attributes[schema.index(ends[1])]}",
            hint="two attributes of one type: timestamps, dates or integers",
        )
    return Schema((*schema.attributes, Attribute(SYNC, kinds[0])), (SYNC,), ends)


def readable(expression: Expression, schema: Schema, where: str) -> Expression:
    """Complain if an expression looks at what a retraction may change later."""
    _readable(expression.columns, schema, expression.text, where)
    return expression


def _readable(columns: frozenset[str], schema: Schema, text: str, where: str) -> None:
    if not schema.lifetime:
        return
    for name in (schema.lifetime[1], SYNC):
        if name in columns:
            raise UserError(
                f"{where}: '{text}' looks at '{name}', which may change after what was final before it",
                hint=f"look at '{schema.lifetime[0]}' and the other attributes, which stay",
            )


def carrying(columns: Columns, schema: Schema, where: str) -> tuple[Columns, tuple[str, ...]]:
    """The columns of a projection, with the lifetime, which rows keep in any case; and how it is called behind it."""
    if not schema.lifetime:
        return columns, ()
    names: dict[str, str] = {}
    for name, expression in columns:
        known = carried(expression)
        if known in (*schema.lifetime, SYNC):
            if known in names or (known == SYNC and name != SYNC):
                raise UserError(f"{where}: '{known}' is there once, under its name", hint="leave it out: rows keep it")
            names[known] = name
        else:
            readable(expression, schema, where)
    for name, _ in columns:
        if name in (*schema.lifetime, SYNC) and name not in names.values():
            raise UserError(f"{where}: '{name}' is when a row holds", hint="choose another name")
    left = [n for n in (*schema.lifetime, SYNC) if n not in names]
    added = tuple((n, Expression.parse(f"`{n.replace('`', '``')}`", schema)) for n in left)
    return (*columns, *added), tuple(names.get(n, n) for n in schema.lifetime)
