"""Aggregates: what to compute of a group, cut into parts that can be computed apart and put together.

An aggregate is written in Spark SQL, such as `sum(a) / count(*)`. Each aggregate function in it becomes *partials*:
columns that one task computes over its events (`partial_sql`) and that rows from many tasks, epochs or panes merge
into one (`merge_sql`), in any order and any grouping. The answer is an ordinary expression over them (`final_sql`).
What has no such parts (a median needs all values at once) is refused with what to write instead.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from sqlglot import exp

from penstock.errors import UserError, a, did_you_mean, nearest
from penstock.pattern.schema import Attribute, Schema
from penstock.pattern.types import type_text
from penstock.sql import deviations
from penstock.sql.arithmetic import quotient
from penstock.sql.expression import Expression
from penstock.sql.fallible import Fallible
from penstock.sql.parse import parse, written
from penstock.sql.term import Term, duck

_WIDE = pa.decimal128(38, 0)
_VALUE = "aggregate_value_"  # Stands for an aggregate function inside the expression around it.


@dataclass(frozen=True)
class Partial:
    """One partial of an aggregate: a column of state.

    A sum of floating numbers (`is_float_sum`) says only what is summed: how it stays exact is the kernel's business,
    and to `final_sql` its column is the sum.
    """

    column: str
    type: pa.DataType
    partial_sql: str
    merge_sql: str
    is_float_sum: bool = False

    def renamed(self, column: str) -> Partial:
        return replace(self, column=column, merge_sql=_rename(self.merge_sql, {self.column: column}))


@dataclass(frozen=True)
class Aggregation:
    """A named aggregate over the events of a group.

    >>> traffic = Schema.parse("ts timestamp, segment int, speed double, cars int", time="ts")
    >>> a = Aggregation.parse("flow", "sum(cars) / count(*)", traffic, "ts")
    >>> a.type, [p.partial_sql for p in a.partials]
    (DataType(double), ['CAST(sum("cars") AS DECIMAL(38,0))', 'count(*)'])
    >>> Aggregation.parse("m", "median(speed)", traffic, "ts")
    Traceback (most recent call last):
    penstock.errors.UserError: aggregate 'm': 'median' in 'median(speed)' cannot be put together from parts. \
Hint: use avg(speed), or min and max
    """

    name: str
    text: str
    type: pa.DataType
    partials: tuple[Partial, ...]
    final_sql: str
    columns: frozenset[str]
    #: What may fail on an event: arguments, and conditions of FILTER.
    tried: tuple[Fallible, ...] = ()

    @classmethod
    def parse(
        cls,
        name: str,
        text: str,
        schema: Schema,
        time: str | None = None,
        *,
        keys: Sequence[str] = (),
        where: str | None = None,
    ) -> Aggregation:
        """Read an aggregate over events of `schema`, grouped by `keys`; `time` orders first and last."""
        where = where or f"aggregate '{name}'"
        tree = parse(text, where)
        if tree.find(exp.Window):
            raise UserError(f"{where}: window function in '{text}'", hint="use .window(…) and .agg(…)")
        reader = _Reader(schema, time, text, where)
        holder = exp.Paren(this=tree)
        for node in _aggregates(tree):
            found = reader.read(node)
            outer = _outermost(node)
            outer.replace(exp.column(f"{_VALUE}{len(reader.values)}", quoted=True))
            reader.values.append(found)
        rest = holder.this
        if not reader.values:
            raise reader.not_an_aggregate(rest)
        final, type_ = reader.final(rest, keys)
        return cls(
            name, text.strip(), type_, tuple(reader.partials), final, frozenset(reader.columns), tuple(reader.tried)
        )


@dataclass(frozen=True)
class Decomposition:
    """The partials of several aggregations, each computed once, and the answers over them."""

    partials: tuple[Partial, ...]
    finals: tuple[tuple[str, str, pa.DataType], ...]


def decompose(aggregations: Sequence[Aggregation]) -> Decomposition:
    """Share equal partials between the aggregations of one operator: `avg(x)` and `sum(x)` keep one sum.

    >>> s = Schema.parse("x double")
    >>> d = decompose([Aggregation.parse("a", "avg(x)", s), Aggregation.parse("s", "sum(x)", s)])
    >>> [p.column for p in d.partials], d.finals[1][1]
    (['__p0', '__p1'], '("__p0")')
    """
    shared: dict[Partial, Partial] = {}
    finals = []
    for aggregation in aggregations:
        names = {}
        for partial in aggregation.partials:
            anonymous = partial.renamed("")
            if anonymous not in shared:
                shared[anonymous] = partial.renamed(f"__p{len(shared)}")
            names[partial.column] = shared[anonymous].column
        finals.append((aggregation.name, _rename(aggregation.final_sql, names), aggregation.type))
    return Decomposition(tuple(shared.values()), tuple(finals))


@dataclass(frozen=True)
class _Value:
    """What one aggregate function comes to: SQL over partial columns, and its type."""

    sql: str
    type: pa.DataType


class _Reader:
    """Reads the aggregate functions of one text and collects their partials."""

    def __init__(self, schema: Schema, time: str | None, text: str, where: str) -> None:
        self.schema, self.time, self.text, self.where = schema, time, text, where
        self.partials: list[Partial] = []
        self.values: list[_Value] = []
        self.columns: set[str] = set()
        self.tried: list[Fallible] = []
        self.keep: str | None = None

    def read(self, node: exp.Expr) -> _Value:
        name = _function(node)
        if name in _REFUSED:
            argument = written(node.expressions[0]) if node.expressions else "x"
            hint = _REFUSED[name].format(x=argument)
            problem = "is not exact" if "approx" in name else "cannot be put together from parts"
            raise UserError(f"{self.where}: '{name}' in '{self.text}' {problem}", hint=hint)
        if name not in _FUNCTIONS:
            raise UserError(f"{self.where}: unknown aggregate '{name}' in '{self.text}'", hint=_choices(name))
        if any(inner is not node for inner in _aggregates(node, inside=True)):
            raise UserError(
                f"{self.where}: an aggregate inside an aggregate in '{self.text}'", hint="use two group_by steps"
            )
        arguments = self._checked(name, list(node.expressions))
        condition = next((p.expression.this for p in _wrappers(node) if isinstance(p, exp.Filter)), None)
        self.keep = None
        if condition is not None:
            self.keep = self.condition(condition).sql
        return _FUNCTIONS[name](self, arguments, self.keep)

    def _checked(self, name: str, arguments: list[exp.Expr]) -> list[exp.Expr]:
        """The right number of arguments; DISTINCT only where it changes nothing or can be computed."""
        needed = 2 if name in ("min_by", "max_by", "covar_pop", "covar_samp", "corr") else 1
        if len(arguments) < needed:
            raise UserError(
                f"{self.where}: '{self.text}' lacks an argument", hint=f"write {name}({', '.join('xy'[:needed])})"
            )
        if name in ("first", "last", "any_value") and arguments[1:] == [exp.true()]:
            arguments = arguments[:1]  # Nulls are left out anyway.
        if len(arguments) > needed and name != "count":
            raise UserError(
                f"{self.where}: '{self.text}' has one argument too many",
                hint=f"write {name}({', '.join('xy'[:needed])})",
            )
        if isinstance(arguments[0], exp.Distinct) and name != "count":
            if name not in ("min", "max", "any_value", "bool_and", "bool_or"):
                raise UserError(
                    f"{self.where}: {name}(distinct …) in '{self.text}' is not available",
                    hint="group_by the value first, or use count(distinct x)",
                )
            return list(arguments[0].expressions)
        return arguments

    def final(self, rest: exp.Expr, keys: Sequence[str]) -> tuple[str, pa.DataType]:
        """The expression around the aggregate functions, over partial columns and group keys."""
        known = {k.casefold() for k in keys}
        for column in rest.find_all(exp.Column):
            if not column.name.startswith(_VALUE) and column.name.casefold() not in known:
                found = self.schema.resolve(column.name)
                if found is None:
                    hint = did_you_mean(column.name, self.schema.names)
                    raise UserError(f"{self.where}: unknown column '{column.name}' in '{self.text}'", hint=hint)
                raise UserError(
                    f"{self.where}: '{found}' in '{self.text}' is neither aggregated nor a group key",
                    hint=f"write any_value({found}) or add it to group_by",
                )
        values = [Attribute(f"{_VALUE}{i}", v.type) for i, v in enumerate(self.values)]
        scope = Schema((*values, *self.schema.select(keys).attributes)) if keys else Schema(tuple(values))
        parsed = Expression.of(rest, self.text, scope, where=self.where)
        sql = re.sub(rf'"{_VALUE}(\d+)"', lambda m: f"({self.values[int(m[1])].sql})", parsed.sql)
        return sql, parsed.type

    def not_an_aggregate(self, rest: exp.Expr) -> UserError:
        for call in rest.find_all(exp.Anonymous):
            name = call.name.lower()
            return UserError(f"{self.where}: unknown aggregate '{name}' in '{self.text}'", hint=_choices(name))
        return UserError(f"{self.where}: '{self.text}' aggregates nothing", hint="write it like avg(speed) or count(*)")

    def argument(self, node: exp.Expr) -> Expression:
        return self._asked(Expression.of(node, written(node), self.schema, where=self.where))

    def condition(self, node: exp.Expr) -> Expression:
        parsed = Expression.of(node, written(node), self.schema, where=self.where)
        if parsed.type != pa.bool_():
            raise UserError(
                f"{self.where}: '{parsed.text}' has type {type_text(parsed.type)} and is not a condition",
                hint=f"compare it: {parsed.text} > 0",
            )
        return self._asked(parsed)

    def _asked(self, parsed: Expression) -> Expression:
        """An expression over single events. It is asked only of those that FILTER keeps: on others it cannot fail."""
        self.columns |= parsed.columns
        if parsed.can_fail and self.keep is not None:
            parsed = replace(parsed, sql=_if(parsed.sql, self.keep))
        self.tried += [t for t in parsed.tried if t not in self.tried]
        return parsed

    def add(self, type_: pa.DataType, partial: str, merge: str, *, is_float_sum: bool = False) -> str:
        """Keep a partial; `{p}` in `merge` is its column. Returns the quoted column."""
        column = f"__p{len(self.partials)}"
        made = Partial(column, type_, partial, merge.replace("{p}", f'"{column}"'), is_float_sum)
        for known in self.partials:
            if known.renamed("") == made.renamed(""):
                return f'"{known.column}"'
        self.partials.append(made)
        return f'"{column}"'

    def wrong_type(self, function: str, argument: Expression) -> UserError:
        return UserError(
            f"{self.where}: {function}({argument.text}) of {a(type_text(argument.type))}", hint="it needs numbers"
        )

    def number(self, function: str, node: exp.Expr) -> Expression:
        argument = self.argument(node)
        t = argument.type
        if not (pa.types.is_integer(t) or pa.types.is_floating(t) or pa.types.is_decimal(t)):
            raise self.wrong_type(function, argument)
        return argument


def _when(sql: str, keep: str | None) -> str:
    """An aggregate call, over the events that its FILTER keeps."""
    return sql if keep is None else f"{sql} FILTER (WHERE {keep})"


def _if(value: str, keep: str | None) -> str:
    return value if keep is None else f"CASE WHEN {keep} THEN {value} END"


def _count(r: _Reader, arguments: list[exp.Expr], keep: str | None) -> _Value:
    if len(arguments) == 1 and isinstance(arguments[0], exp.Distinct):
        return _count_distinct(r, arguments[0].expressions, keep)
    counted = "*"
    if not (len(arguments) == 1 and isinstance(arguments[0], exp.Star)):
        parsed = [r.argument(a) for a in arguments]
        whole = " AND ".join(f"({p.sql}) IS NOT NULL" for p in parsed)
        counted = parsed[0].sql if len(parsed) == 1 else f"CASE WHEN {whole} THEN 1 END"
    return _Value(r.add(pa.int64(), _when(f"count({counted})", keep), "CAST(sum({p}) AS BIGINT)"), pa.int64())


def _count_distinct(r: _Reader, arguments: list[exp.Expr], keep: str | None) -> _Value:
    parsed = [r.argument(a) for a in arguments]
    present = " AND ".join(f"({p.sql}) IS NOT NULL" for p in parsed)
    present = present if keep is None else f"{present} AND ({keep})"
    if len(parsed) == 1:
        value, type_ = parsed[0].sql, parsed[0].type
    else:
        value = "{" + ", ".join(f"'c{i}': {p.sql}" for i, p in enumerate(parsed)) + "}"
        type_ = pa.struct([(f"c{i}", p.type) for i, p in enumerate(parsed)])
    merge = "list_distinct(flatten(list({p}) FILTER (WHERE {p} IS NOT NULL)))"
    values = r.add(pa.list_(type_), f"list(DISTINCT {value}) FILTER (WHERE {present})", merge)
    return _Value(f"COALESCE(len({values}), 0)", pa.int64())


def _count_if(r: _Reader, arguments: list[exp.Expr], keep: str | None) -> _Value:
    condition = r.condition(arguments[0])
    both = condition.sql if keep is None else f"({condition.sql}) AND ({keep})"
    column = r.add(pa.int64(), f"count(*) FILTER (WHERE {both})", "CAST(sum({p}) AS BIGINT)")
    return _Value(column, pa.int64())


def _add_sum(r: _Reader, argument: Expression, keep: str | None) -> tuple[str, pa.DataType]:
    """The column of a sum that is exact, and its type in state."""
    if pa.types.is_floating(argument.type):
        return r.add(pa.float64(), _if(argument.sql, keep), "", is_float_sum=True), pa.float64()
    if pa.types.is_decimal(argument.type):
        wide = pa.decimal128(38, argument.type.scale)
        return r.add(wide, _when(f"sum({argument.sql})", keep), "sum({p})"), wide
    return r.add(_WIDE, f"CAST({_when(f'sum({argument.sql})', keep)} AS DECIMAL(38,0))", "sum({p})"), _WIDE


def _sum(r: _Reader, arguments: list[exp.Expr], keep: str | None) -> _Value:
    argument = r.number("sum", arguments[0])
    column, type_ = _add_sum(r, argument, keep)
    if pa.types.is_integer(argument.type):
        return _Value(f"CAST({column} AS BIGINT)", pa.int64())
    if pa.types.is_decimal(argument.type):
        narrow = pa.decimal128(min(38, argument.type.precision + 10), argument.type.scale)
        return _Value(f"CAST({column} AS {duck(narrow)})", narrow)
    return _Value(column, type_)


def _avg(r: _Reader, arguments: list[exp.Expr], keep: str | None) -> _Value:
    argument = r.number("avg", arguments[0])
    column, type_ = _add_sum(r, argument, keep)
    n = r.add(pa.int64(), _when(f"count({argument.sql})", keep), "CAST(sum({p}) AS BIGINT)")
    if pa.types.is_decimal(argument.type):
        # Spark's: four digits more, halves away from zero.
        result = pa.decimal128(min(38, argument.type.precision + 4), min(38, argument.type.scale + 4))
        count = Term(f"CAST(NULLIF({n}, 0) AS DECIMAL(20,0))", pa.decimal128(20, 0), closed=True)
        return _Value(quotient(Term(column, type_), count, result, result, half_up=True).sql, result)
    return _Value(f"CAST({column} AS DOUBLE) / CAST(NULLIF({n}, 0) AS DOUBLE)", pa.float64())


def _extreme(function: str) -> _Function:
    """Aggregates that merge with themselves."""

    def read(r: _Reader, arguments: list[exp.Expr], keep: str | None) -> _Value:
        argument = r.argument(arguments[0])
        whole = pa.types.is_integer(argument.type)
        if (function.startswith("bool") and argument.type != pa.bool_()) or (function.startswith("bit") and not whole):
            needed = "a condition" if function.startswith("bool") else "whole numbers"
            raise UserError(
                f"{r.where}: {function}({argument.text}) of {a(type_text(argument.type))}", hint=f"it needs {needed}"
            )
        column = r.add(argument.type, _when(f"{function}({argument.sql})", keep), f"{function}({{p}})")
        return _Value(column, argument.type)

    return read


def _by(function: str, *, time: bool) -> _Function:
    """The value at the smallest or largest time (or other order); among equals the smallest or largest value."""

    def read(r: _Reader, arguments: list[exp.Expr], keep: str | None) -> _Value:
        value = r.argument(arguments[0])
        if not time:
            order = r.argument(arguments[1])
        elif r.time is None:
            raise UserError(
                f"{r.where}: '{r.text}' needs a time attribute", hint="declare one, or use min_by(x, y), max_by(x, y)"
            )
        else:
            order = r.argument(exp.column(r.time, quoted=True))
        present = f"({order.sql}) IS NOT NULL" + (f" AND ({value.sql}) IS NOT NULL" if time else "")
        present = present if keep is None else f"{present} AND ({keep})"
        pair = f"{function}({{'at': {order.sql}, 'value': {value.sql}}}) FILTER (WHERE {present})"
        column = r.add(pa.struct([("at", order.type), ("value", value.type)]), pair, f"{function}({{p}})")
        return _Value(f"{column}.value", value.type)

    return read


def _moment(final: Callable[[str, str], str]) -> _Function:
    """Count, mean and squared deviations of one attribute."""

    def read(r: _Reader, arguments: list[exp.Expr], keep: str | None) -> _Value:
        x = f"CAST({_if(r.number('variance', arguments[0]).sql, keep)} AS DOUBLE)"
        p = r.add(deviations.ONE, deviations.of_one(x), deviations.merged_one())
        return _Value(final(p, f"CAST({p}.n AS DOUBLE)"), pa.float64())

    return read


def _comoment(final: Callable[[str, str], str]) -> _Function:
    """The same for two attributes, over the events that have both."""

    def read(r: _Reader, arguments: list[exp.Expr], keep: str | None) -> _Value:
        a, b = (r.number("covariance", argument).sql for argument in arguments[:2])
        x, y = f"CAST({_if(a, keep)} AS DOUBLE)", f"CAST({_if(b, keep)} AS DOUBLE)"
        p = r.add(deviations.TWO, deviations.of_two(x, y), deviations.merged_two())
        return _Value(final(p, f"CAST({p}.n AS DOUBLE)"), pa.float64())

    return read


def _population(of: Callable[[str, str], str]) -> Callable[[str, str], str]:
    return lambda p, n: of(p, f"NULLIF({n}, 0)")


def _sample(of: Callable[[str, str], str]) -> Callable[[str, str], str]:
    return lambda p, n: f"CASE WHEN {n} > 1 THEN {of(p, f'({n} - 1)')} END"


def _root(of: Callable[[str, str], str]) -> Callable[[str, str], str]:
    return lambda p, n: f"sqrt({of(p, n)})"


_Function = Callable[[_Reader, list[exp.Expr], str | None], _Value]

_FUNCTIONS: Mapping[str, _Function] = {
    "count": _count,
    "count_if": _count_if,
    "sum": _sum,
    "avg": _avg,
    "min": _extreme("min"),
    "max": _extreme("max"),
    "any_value": _extreme("min"),  # Any would do; the smallest does not depend on the order of arrival.
    "bool_and": _extreme("bool_and"),
    "bool_or": _extreme("bool_or"),
    "bit_and": _extreme("bit_and"),
    "bit_or": _extreme("bit_or"),
    "bit_xor": _extreme("bit_xor"),
    "first": _by("min", time=True),
    "last": _by("max", time=True),
    "min_by": _by("min", time=False),
    "max_by": _by("max", time=False),
    "var_pop": _moment(_population(deviations.variance)),
    "var_samp": _moment(_sample(deviations.variance)),
    "stddev_pop": _moment(_root(_population(deviations.variance))),
    "stddev_samp": _moment(_root(_sample(deviations.variance))),
    "covar_pop": _comoment(_population(deviations.covariance)),
    "covar_samp": _comoment(_sample(deviations.covariance)),
    "corr": _comoment(lambda p, n: f"CASE WHEN {n} > 1 THEN {deviations.correlation(p)} END"),
}
#: What else Spark calls our functions.
_ALIASES = {
    "mean": "avg",
    "first_value": "first",
    "last_value": "last",
    "arg_min": "min_by",
    "arg_max": "max_by",
    "every": "bool_and",
    "some": "bool_or",
    "any": "bool_or",
    "variance": "var_samp",
    "stddev": "stddev_samp",
    "std": "stddev_samp",
    "collect_list": "array_agg",
    "listagg": "string_agg",
    "approx_percentile": "percentile_approx",
    "percentile_cont": "percentile",
    "percentile_disc": "percentile",
}
_ALL_VALUES = "keep the events and use count(distinct {x}), min({x}) or max({x})"
_REFUSED = {
    "median": "use avg({x}), or min and max",
    "percentile": "use avg({x}), min({x}) or max({x})",
    "mode": "group_by({x}) and count(*)",
    "array_agg": _ALL_VALUES,
    "collect_set": "use count(distinct {x})",
    "string_agg": _ALL_VALUES,
    "skewness": "use stddev_samp({x})",
    "kurtosis": "use stddev_samp({x})",
    "product": "use exp(sum(ln({x})))",
    "approx_count_distinct": "use count(distinct {x})",
    "percentile_approx": "use avg({x}), min({x}) or max({x})",
    "approx_top_k": "group_by({x}) and count(*)",
}
_CALLS = frozenset({*_FUNCTIONS, *_REFUSED, *(a for a in _ALIASES)})


def _function(node: exp.Expr) -> str:
    name = node.name.lower()
    return _ALIASES.get(name, name)


def _choices(name: str) -> str:
    match = nearest(name, _CALLS - set(_REFUSED))
    return (f"did you mean '{match}'? " if match else "") + f"There are: {', '.join(_FUNCTIONS)}"


def _aggregates(tree: exp.Expr, *, inside: bool = False) -> list[exp.Expr]:
    """The outermost aggregate calls of a tree; `inside` also looks below the root's own call."""
    found: list[exp.Expr] = []

    def visit(node: exp.Expr, root: bool) -> None:
        call = isinstance(node, exp.Anonymous) and node.name.lower() in _CALLS
        if call and not (root and inside):
            found.append(node)
            return
        for child in node.iter_expressions():
            visit(child, False)

    visit(tree, True)
    return found


def _wrappers(node: exp.Expr) -> list[exp.Expr]:
    """FILTER and IGNORE NULLS around an aggregate call, from the inside out."""
    around: list[exp.Expr] = []
    parent = node.parent
    while isinstance(parent, exp.Filter | exp.IgnoreNulls) and parent.this is (around[-1] if around else node):
        around.append(parent)
        parent = parent.parent
    return around


def _outermost(node: exp.Expr) -> exp.Expr:
    around = _wrappers(node)
    return around[-1] if around else node


def _rename(sql: str, names: Mapping[str, str]) -> str:
    """Replace quoted partial columns, all at once, so that swapped names do not meet."""
    return re.sub(r'"(__p\d+|)"', lambda m: f'"{names.get(m[1], m[1])}"', sql)
