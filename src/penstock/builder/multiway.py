"""Joins of many streams on one key: one multi-way join, or a tree of binary joins with the same results.

Events of all inputs belong together when their keys are equal and each later one is within the window of each earlier
one. A tree has to say so again at every join: the component with the shortest window gives the band along which state
is released, and the other pairs are compared by a residual predicate. Names, order and times of the output do not
depend on the strategy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeVar

import pyarrow as pa

from penstock.builder.join_inputs import Key, columns_of, distinct_names, input_name, keys_of, windows_of
from penstock.builder.join_order import Choice, Tree, choose
from penstock.builder.join_statistics import JoinStatistics
from penstock.builder.stream import StreamBuilder
from penstock.errors import UserError
from penstock.operators.join.operator import Band, Join, Taken
from penstock.operators.multijoin.operator import MultiJoin
from penstock.pattern.arguments import checked
from penstock.pattern.schema import Attribute, Schema
from penstock.plan.operator import Operator
from penstock.plan.policy import Extent
from penstock.sql.expression import Expression

S = TypeVar("S", bound=StreamBuilder)


Strategy = Literal["auto", "tree", "mjoin"]


_SECOND = 1_000_000


@checked
def join(
    first: S,
    *others: StreamBuilder,
    on: str | Sequence[Key],
    within: Extent | None = None,
    windows: Sequence[Extent | None] | None = None,
    times: Sequence[str | None] | None = None,
    strategy: Strategy = "auto",
    statistics: JoinStatistics | None = None,
) -> S:
    """Join several streams on one key: `ps.join(orders, payments, parcels, on="order", within="1 h")`.

    `on` names the key, several attributes of it, or their names in each input: `on=[("order", "order_id", "ref")]`.
    Events match when their keys are equal and every later one comes within the window of every earlier one: `within`
    for all inputs, or `windows`, one for each, None for no limit. The key comes first and once, under its name in the
    first stream; a name that is used already gets `_2`, `_3`, ….

    The results are the same for every `strategy`: one multi-way join ("mjoin"), a "tree" of binary joins, or what
    costs less by the `statistics` ("auto"; without any, one multi-way join of three inputs and more). `explain()`
    shows the estimate.

    >>> from penstock.operators.source.operator import Source
    >>> a, b, c = (StreamBuilder(Source((), Schema.parse("ts timestamp, k int, v int", "ts"), name=n)) for n in "abc")
    >>> print(join(a, b, c, on="k", within="10 s").schema)
    k int, ts timestamp, v int, ts_2 timestamp, v_2 int, ts_3 timestamp, v_3 int
    """
    streams: tuple[StreamBuilder, ...] = (first, *others)
    if strategy not in ("auto", "tree", "mjoin"):
        raise UserError(f"join(strategy='{strategy}') is not possible", hint="'auto', 'tree' or 'mjoin'")
    for stream in streams:
        if not isinstance(stream, StreamBuilder):
            raise UserError(
                f"join: {type(stream).__name__} is not a stream",
                hint="ps.join(a, b, c, on='key'); what a table says is added by stream.lookup(table)",
            )
    if len(streams) < 2:
        raise UserError("join() needs two streams or more", hint="name the others: ps.join(a, b, c, on='key')")
    if statistics is not None and not isinstance(statistics, JoinStatistics):
        raise UserError(
            f"join: statistics={statistics!r} is not possible",
            hint="ps.JoinStatistics(rates=[…], keys=[…]) or ps.measure_joins(…)",
        )
    if statistics is not None and len(statistics.rates) != len(streams):
        raise UserError(
            f"join: statistics of {len(statistics.rates)} inputs for {len(streams)}", hint="give one rate for each"
        )
    wanted = UndecidedJoin.of(tuple(s.operator for s in streams), on, within, windows, times)
    choice = None if statistics is None else choose(statistics.over(wanted.spans, wanted.names))
    shape = choice.shape if choice is not None else "mjoin"
    if len(streams) == 2 or strategy == "tree":
        shape = choice.best_tree if choice is not None else _left_deep(len(streams))
    if strategy == "mjoin":
        shape = "mjoin"
    operator = wanted.multiway(choice) if shape == "mjoin" else wanted.tree(shape).operator
    if choice is not None and isinstance(operator, Join):
        operator = replace(operator, estimate=choice.estimate)
    for stream in streams:
        stream._with(operator)  # Each may have something against it: a window that only an aggregate can follow.
    return first._with(operator)


def _left_deep(count: int) -> Tree:
    tree: Tree = 0
    for i in range(1, count):
        tree = (tree, i)
    return tree


@dataclass(frozen=True)
class _Part:
    """A part of a tree: its operator, and under which names it has keys, times and other columns of its inputs."""

    operator: Operator
    members: frozenset[int]
    keys: tuple[str, ...]
    times: Mapping[int, str]
    columns: Mapping[str, str]
    """Final name → name here."""


@dataclass(frozen=True)
class UndecidedJoin:
    """A join of several inputs, checked, before it is decided how to do it."""

    inputs: tuple[Operator, ...]
    keys: tuple[tuple[str, ...], ...]
    times: tuple[str | None, ...]
    windows: tuple[int | None, ...]
    columns: tuple[Taken, ...] = field(default=())

    @classmethod
    def of(
        cls,
        inputs: tuple[Operator, ...],
        on: str | Sequence[Key],
        within: Extent | None,
        windows: Sequence[Extent | None] | None,
        times: Sequence[str | None] | None,
    ) -> UndecidedJoin:
        keys = keys_of(inputs, on)
        found, ticks = windows_of(inputs, within, windows, times)
        return cls(inputs, keys, found, ticks, columns_of(inputs, keys))

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(input_name(o, i) for i, o in enumerate(self.inputs))

    @property
    def spans(self) -> tuple[float | None, ...]:
        """The windows in the unit of rates: seconds, days or plain numbers."""
        return tuple(None if w is None else w / self.ticks_per_unit for w in self.windows)

    @property
    def ticks_per_unit(self) -> int:
        time = self.times[0] or next(iter(self.inputs[0].schema.times), None)
        timed = time is not None and pa.types.is_timestamp(self.inputs[0].schema.type_of(time))
        return _SECOND if timed else 1

    @property
    def _timed(self) -> bool:
        return self.times[0] is not None and pa.types.is_timestamp(self.inputs[0].schema.type_of(self.times[0]))

    def _schema(self, columns: Sequence[Taken]) -> Schema:
        """The schema of output columns, whose origins are inputs."""
        attributes, times = [], []
        for column in columns:
            port, name = column.origins[0]
            attributes.append(Attribute(column.name, self.inputs[port].schema.type_of(name)))
            times += [column.name] if name in self.inputs[port].schema.times else []
        return Schema(tuple(attributes), tuple(times))

    def multiway(self, choice: Choice | None) -> MultiJoin:
        return MultiJoin(
            self.inputs,
            self._schema(self.columns),
            keys=self.keys,
            columns=self.columns,
            times=self.times,
            windows=self.windows,
            estimate="" if choice is None else choice.estimate,
        )

    def tree(self, shape: Tree) -> _Part:
        if isinstance(shape, int):
            own = {c.name: a for c in self.columns[len(self.keys[0]) :] for port, a in c.origins if port == shape}
            time = self.times[shape]
            known = {} if time is None else {shape: time}
            return _Part(self.inputs[shape], frozenset([shape]), self.keys[shape], known, own)
        return self._joined(self.tree(shape[0]), self.tree(shape[1]))

    def _joined(self, left: _Part, right: _Part) -> _Part:
        members = left.members | right.members
        key_count = len(self.keys[0])
        # The key of the earliest input, as in the multi-way join: 0.0 and -0.0 are equal, but not the same.
        lead, side = (left, 0) if min(left.members) < min(right.members) else (right, 1)
        final = [replace(c, origins=((min(members), k),)) for c, k in zip(self.columns, self.keys[min(members)])]
        columns = [Taken(c.name, ((side, k),)) for c, k in zip(self.columns, lead.keys)]
        for c in self.columns[key_count:]:
            if c.origins[0][0] in members:
                final.append(c)
                port, part = (0, left) if c.name in left.columns else (1, right)
                columns.append(Taken(c.name, ((port, part.columns[c.name]),)))
        band, residual, pair = self._meeting(left, right)
        operator = Join(
            (left.operator, right.operator),
            self._schema(final),
            how="inner",
            keys=tuple(zip(left.keys, right.keys)),
            columns=tuple(columns),
            band=band,
            residual=residual,
            pair=pair,
        )
        return _Part(
            operator,
            members,
            tuple(c.name for c in columns[:key_count]),
            {i: self._final_time(i) for i in sorted(members) if self.times[i] is not None},
            {c.name: c.name for c in columns[key_count:]},
        )

    def _final_time(self, i: int) -> str:
        """The name of the time of an input behind a join; a time that is a key is there under the key's name."""
        time = self.times[i]
        if time in self.keys[i]:
            return self.columns[self.keys[i].index(time)].name
        return next(c.name for c in self.columns if (i, time) in c.origins)

    def _meeting(
        self, left: _Part, right: _Part
    ) -> tuple[Band | None, Expression | None, tuple[tuple[int, str, str], ...]]:
        """The band along the components with the shortest windows; the windows of all other pairs as a predicate."""
        names = distinct_names([*left.operator.schema.names, *right.operator.schema.names])
        width = len(left.operator.schema)
        pair = tuple(
            (int(n >= width), attribute, name)
            for n, (attribute, name) in enumerate(
                zip((*left.operator.schema.names, *right.operator.schema.names), names)
            )
        )
        i, j = (min(sorted(part.members), key=self._shortness) for part in (left, right))
        band, others = None, []
        called = {(side, attribute): name for side, attribute, name in pair}
        for a in sorted(left.members):
            for b in sorted(right.members):
                low, high = self.windows[b], self.windows[a]
                if low is None and high is None:
                    continue
                found = Band(left.times[a], right.times[b], None if low is None else -low, high, timed=self._timed)
                if (a, b) == (i, j):
                    band = found
                else:
                    others.append(replace(found, left=called[0, found.left], right=called[1, found.right]))
        joint = Schema(
            tuple(Attribute(n, (left, right)[s].operator.schema.type_of(attribute)) for s, attribute, n in pair)
        )
        return band, _residual(others, joint), pair

    def _shortness(self, i: int) -> tuple[bool, int]:
        window = self.windows[i]
        return window is None, window or 0


def _residual(bands: Sequence[Band], joint: Schema) -> Expression | None:
    """Bands as a predicate: false for null times, and no overflow however far apart two times are."""
    if not bands:
        return None
    parts = []
    for band in bands:
        t = joint.type_of(band.left)
        of = "unix_micros({})" if pa.types.is_timestamp(t) else "datediff({}, DATE '1970-01-01')"
        of = "CAST({} AS DECIMAL(20))".format("{}" if pa.types.is_integer(t) else of)
        later, earlier = (of.format(f"`{n.replace('`', '``')}`") for n in (band.right, band.left))
        parts += [] if band.low is None else [f"{later} - {earlier} >= {band.low}"]
        parts += [] if band.high is None else [f"{later} - {earlier} <= {band.high}"]
    parsed = Expression.predicate(" AND ".join(parts), joint, where="join")
    shown = " and ".join(str(b) for b in bands).replace("left.", "").replace("right.", "")
    return replace(parsed, text=shown)
