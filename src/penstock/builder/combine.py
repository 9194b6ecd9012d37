"""How two streams are put together: the checks and the shape of a join's output.

Keys come first, once, under their names in the left stream; then what else the left has, then what else the right
has. A name that both use gets a suffix on the right.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from penstock.builder.extent import measurable, ticks_of
from penstock.errors import PenstockError, UserError, did_you_mean
from penstock.operators.join.operator import KINDS, Band, Join, Joined, JoinKind, Taken
from penstock.operators.lifetime_join.operator import LifetimeJoin
from penstock.operators.rows_join.operator import RowsJoin
from penstock.pattern.schema import SYNC, Attribute, Schema
from penstock.plan.operator import Operator
from penstock.plan.policy import Extent
from penstock.sql.expression import Expression

On = str | Sequence[str] | Mapping[str, str]


def join_operator(
    left: Operator,
    right: Operator,
    on: On,
    how: str = "inner",
    *,
    within: Extent | tuple[Extent, Extent] | None = None,
    between: tuple[Extent | None, Extent | None] | None = None,
    rows: int | tuple[int | None, int | None] | None = None,
    where: str | None = None,
    times: tuple[str, str] | None = None,
    suffix: str = "_right",
    null_safe: bool = False,
    thrifty: bool = False,
    impatient: bool = False,
) -> Joined | LifetimeJoin:
    """The join of two operators, checked; `Stream.join` explains the arguments."""
    if not suffix:
        raise UserError(
            "join(suffix='') is not possible", hint="a name that both streams have needs one, such as '_right'"
        )
    if how not in KINDS:
        raise UserError(
            f"join(how='{how}') is not possible", hint=did_you_mean(how, KINDS) or f"one of {', '.join(KINDS)}"
        )
    kind: JoinKind = how
    if left.schema.lifetime or right.schema.lifetime:
        others = (within, between, rows, times, null_safe or None, thrifty or None, impatient or None)
        if any(o is not None for o in others):
            raise UserError(
                "join(): rows that hold for a time are joined for as long as both hold, so there is nothing to limit",
                hint="join(other, on='key', how='left', where='…')",
            )
        if kind != "inner":
            raise PenstockError("outer joins of lifetimes are put together: see builder.covering")
        return lasting_join(left, right, on, where, suffix)
    keys = key_pairs(left.schema, right.schema, on)
    band, counted = None, None
    if times is not None:
        times = _times(left.schema, right.schema, times)
    if within is not None or between is not None or rows is not None:
        times = _times(left.schema, right.schema, times)
        band = _band(left.schema, times, within, between)
        counted = _rows(rows)
        if counted is not None and band is not None:
            raise UserError("join: rows= and a window of time exclude each other", hint="choose one of the two")
    if thrifty and counted is not None:
        raise UserError(
            "join: thrifty= and rows= exclude each other", hint="which rows count there depends on all of them"
        )
    pair, names = _paired(left.schema, right.schema, suffix)
    residual = None
    if where is not None:
        joint = Schema(tuple(Attribute(n, _schema(left, right, s).type_of(a)) for s, a, n in pair))
        residual = Expression.predicate(where, joint, where="join")
    columns = output_columns(left.schema, right.schema, keys, kind, names)
    schema = _output_schema(left.schema, right.schema, columns, kind)
    shared: dict[str, Any] = {
        "how": kind,
        "keys": keys,
        "columns": columns,
        "residual": residual,
        "pair": pair,
        "null_safe": null_safe,
        "impatient": impatient,
    }
    if counted is not None and times is not None:
        return RowsJoin((left, right), schema, rows=counted, times=times, **shared)
    return Join((left, right), schema, band=band, thrifty=thrifty, **shared)


def lasting_join(left: Operator, right: Operator, on: On, where: str | None, suffix: str) -> LifetimeJoin:
    """The join of rows that hold for a time."""
    for side in (left, right):
        if not side.schema.lifetime:
            raise UserError(
                f"join: rows of {side.word}() do not hold for a time, and those of the other stream do",
                hint="ps.stream(…, lifetime=('from', 'to')) for both; a table that changes is looked up: lookup(…)",
            )
    start, end = left.schema.lifetime
    kinds = [s.schema.type_of(SYNC) for s in (left, right)]
    if kinds[0] != kinds[1]:
        raise UserError("join: the lifetimes differ in type", hint="declare both alike: timestamps, dates or integers")
    mine, theirs = (
        s.schema.select([n for n in s.schema.names if n not in (*s.schema.lifetime, SYNC)]) for s in (left, right)
    )
    keys = key_pairs(mine, theirs, on)
    # What the right stream calls as the left calls its lifetimes gets the suffix, too.
    _, names = _paired(left.schema, theirs, suffix)
    pair = (*((0, n, n) for n in mine.names), *((1, n, names[n]) for n in theirs.names))
    residual = None
    if where is not None:
        joint = Schema(tuple(Attribute(n, (mine, theirs)[side].type_of(a)) for side, a, n in pair))
        residual = Expression.predicate(where, joint, where="join")
    columns = output_columns(mine, theirs, keys, "inner", names)
    taken = ((c.name, *c.origins[0]) for c in columns)
    told = [(start, kinds[0]), (end, kinds[0]), *((n, (mine, theirs)[side].type_of(a)) for n, side, a in taken)]
    attributes = (*(Attribute(n, t) for n, t in told), Attribute(SYNC, kinds[0]))
    schema = Schema(attributes, (SYNC,), (start, end))
    return LifetimeJoin((left, right), schema, keys=keys, columns=columns, pair=pair, residual=residual)


def key_pairs(left: Schema, right: Schema, on: On) -> tuple[tuple[str, str], ...]:
    """The key attributes of both sides, checked for existence and type."""
    forms = "on='key', on=['a', 'b'] or on={'left name': 'right name'}"
    if isinstance(on, str):
        wanted = [(on, on)]
    elif isinstance(on, Mapping):
        wanted = list(on.items())
    elif isinstance(on, Sequence):
        wanted = [(n, n) for n in on]
    else:
        raise UserError(f"join: on={on!r} is not a key", hint=forms)
    if not wanted:
        raise UserError("join: no key", hint=forms)
    for n in (n for pair in wanted for n in pair):
        if not isinstance(n, str):
            raise UserError(f"join: {n!r} in the key is not a name", hint=forms)
    pairs: list[tuple[str, str]] = []
    for a, b in wanted:
        found = tuple(_known(schema, n, side) for schema, n, side in ((left, a, "left"), (right, b, "right")))
        types = left.type_of(found[0]), right.type_of(found[1])
        if types[0] != types[1] and not all(pa.types.is_integer(t) for t in types):
            raise UserError(
                f"join: the keys differ in type: left {left.attributes[left.index(found[0])]}, "
                f"right {right.attributes[right.index(found[1])]}",
                hint="cast one of them first: with_columns(key='cast(key AS …)')",
            )
        if found[0] in (a for a, _ in pairs):
            raise UserError(f"join: '{found[0]}' of the left stream is in the key twice", hint="name it once")
        pairs.append((found[0], found[1]))
    return tuple(pairs)


def _known(schema: Schema, name: str, side: str) -> str:
    found = schema.resolve(name)
    if found is None:
        raise UserError(f"join: the {side} stream has no column '{name}'", hint=did_you_mean(name, schema.names))
    return found


def _times(left: Schema, right: Schema, given: tuple[str, str] | None) -> tuple[str, str]:
    if given is not None:
        if isinstance(given, str) or len(given) != 2:
            raise UserError(f"join: times={given!r} is not possible", hint="times=('left time', 'right time')")
        found = (_known(left, given[0], "left"), _known(right, given[1], "right"))
    else:
        for schema, side in ((left, "left"), (right, "right")):
            if len(schema.times) != 1:
                known = ", ".join(schema.times) or "none is declared"
                raise UserError(
                    f"join: which time attribute of the {side} stream? ({known})",
                    hint="ps.stream(…, time='…') or join(…, times=('left time', 'right time'))",
                )
        found = (left.times[0], right.times[0])
    if left.type_of(found[0]) != right.type_of(found[1]):
        raise UserError(
            f"join: the times differ in type: left {left.attributes[left.index(found[0])]}, "
            f"right {right.attributes[right.index(found[1])]}",
            hint="cast one of them",
        )
    measurable(left, found[0], "join")
    return found


def _band(
    left: Schema,
    times: tuple[str, str],
    within: Extent | tuple[Extent, Extent] | None,
    between: tuple[Extent | None, Extent | None] | None,
) -> Band | None:
    if within is not None and between is not None:
        raise UserError(
            "join: within= and between= exclude each other", hint="within='10 s' is between=('-10 s', '10 s')"
        )
    if within is None and between is None:
        return None
    t = left.type_of(times[0])
    low: int | None
    high: int | None
    if within is not None:
        if isinstance(within, tuple | list) and len(within) != 2:
            raise UserError(
                f"join: within={within!r} is not possible",
                hint="one window, or a pair: (of left events, of right events)",
            )
        mine, theirs = within if isinstance(within, tuple | list) else (within, within)
        # A left event is joined by right ones up to its own window later, and the other way round.
        high, low = ticks_of(mine, t, "join within"), -ticks_of(theirs, t, "join within")
        if high < 0 or low > 0:
            raise UserError(f"join: a window of {within!r} is negative", hint="between=('-5 s', '0 s') has signs")
    else:
        assert between is not None
        if not isinstance(between, tuple | list) or len(between) != 2:
            raise UserError(
                f"join: between={between!r} is not possible",
                hint="a pair: between=(low, high), bounds of right time - left time",
            )
        low = None if between[0] is None else ticks_of(between[0], t, "join between")
        high = None if between[1] is None else ticks_of(between[1], t, "join between")
        if low is None and high is None:
            return None
        if low is not None and high is not None and low > high:
            raise UserError(f"join: between={between!r} is empty", hint="the lower bound comes first")
    return Band(times[0], times[1], low, high, timed=pa.types.is_timestamp(t))


def _rows(rows: int | tuple[int | None, int | None] | None) -> tuple[int | None, int | None] | None:
    if rows is None:
        return None
    both = tuple(rows) if isinstance(rows, tuple | list) else (rows, rows)
    if len(both) != 2 or any(n is not None and (not isinstance(n, int) or n < 1) for n in both):
        raise UserError(
            f"join: rows={rows!r} is not possible",
            hint="a whole number of at least 1, or a pair of them; None is no limit",
        )
    return both


def _paired(left: Schema, right: Schema, suffix: str) -> tuple[tuple[tuple[int, str, str], ...], dict[str, str]]:
    """(side, attribute, name) of everything in a pair of events; and the names of the right side."""
    names: dict[str, str] = {}
    taken = {n.casefold() for n in left.names}
    for n in right.names:
        name = n
        while name.casefold() in taken:
            name += suffix
        taken.add(name.casefold())
        names[n] = name
    return (*((0, n, n) for n in left.names), *((1, n, names[n]) for n in right.names)), names


def names_of_right(left: Schema, right: Schema, suffix: str) -> dict[str, str]:
    """What the attributes of the right stream are called in a pair."""
    return _paired(left, right, suffix)[1]


def output_columns(
    left: Schema, right: Schema, keys: Sequence[tuple[str, str]], how: JoinKind, names: Mapping[str, str]
) -> tuple[Taken, ...]:
    if how in ("semi", "anti"):
        return tuple(Taken(n, ((0, n),)) for n in left.names)
    found = []
    for a, b in keys:
        origins: tuple[tuple[int, str], ...] = {
            "right": ((1, b),),
            "full": ((0, a), (1, b)),
        }.get(how, ((0, a),))
        found.append(Taken(a, origins))
    mine, theirs = {a for a, _ in keys}, {b for _, b in keys}
    found += [Taken(n, ((0, n),)) for n in left.names if n not in mine]
    found += [Taken(names[n], ((1, n),)) for n in right.names if n not in theirs]
    return tuple(found)


def _output_schema(left: Schema, right: Schema, columns: Sequence[Taken], how: JoinKind) -> Schema:
    schemas = (left, right)
    # A padded time is null: it tells nobody when the event was.
    whole = {"inner": (0, 1), "left": (0,), "right": (1,), "full": (), "semi": (0,), "anti": (0,)}[how]
    attributes, times = [], []
    for column in columns:
        types = [schemas[s].type_of(a) for s, a in column.origins]
        widest = max(types, key=lambda t: t.bit_width) if len(types) > 1 and pa.types.is_integer(types[0]) else types[0]
        attributes.append(Attribute(column.name, widest))
        is_time = all(a in schemas[s].times for s, a in column.origins)
        if is_time and (len(column.origins) > 1 or column.origins[0][0] in whole):
            times.append(column.name)
    return Schema(tuple(attributes), tuple(times))


def _schema(left: Operator, right: Operator, side: int) -> Schema:
    return (left, right)[side].schema
