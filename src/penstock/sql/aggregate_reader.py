"""Reads the aggregate functions in one text and collects their partials."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
from sqlglot import exp

from penstock.errors import UserError, a, did_you_mean, nearest
from penstock.pattern.schema import Attribute, Schema
from penstock.pattern.types import type_text
from penstock.sql.aggregate_functions import FUNCTIONS
from penstock.sql.expression import Expression
from penstock.sql.fallible import Fallible
from penstock.sql.parse import written
from penstock.sql.partial import Added, AggregateValue, Partial, only_if

STAND_IN = "aggregate_value_"  # Stands for an aggregate function inside the expression around it.


class AggregateReader:
    """Reads the aggregate functions of one text and collects their partials."""

    def __init__(self, schema: Schema, time: str | None, text: str, where: str) -> None:
        self.schema, self.time, self.text, self.where = schema, time, text, where
        self.partials: list[Partial] = []
        self.values: list[AggregateValue] = []
        self.columns: set[str] = set()
        self.tried: list[Fallible] = []
        self.keep: str | None = None

    def read(self, node: exp.Expr) -> AggregateValue:
        name = _function_name(node)
        if name in REFUSED:
            argument = written(node.expressions[0]) if node.expressions else "x"
            hint = REFUSED[name].format(x=argument)
            problem = "is not exact" if "approx" in name else "cannot be put together from parts"
            raise UserError(f"{self.where}: '{name}' in '{self.text}' {problem}", hint=hint)
        if name not in FUNCTIONS:
            raise UserError(f"{self.where}: unknown aggregate '{name}' in '{self.text}'", hint=_choices(name))
        if any(inner is not node for inner in aggregate_calls(node, inside=True)):
            raise UserError(
                f"{self.where}: an aggregate inside an aggregate in '{self.text}'", hint="use two group_by steps"
            )
        arguments = self._checked(name, list(node.expressions))
        condition = next((p.expression.this for p in _wrappers(node) if isinstance(p, exp.Filter)), None)
        self.keep = None
        if condition is not None:
            self.keep = self.condition(condition).sql
        return FUNCTIONS[name](self, arguments, self.keep)

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
            if not column.name.startswith(STAND_IN) and column.name.casefold() not in known:
                found = self.schema.resolve(column.name)
                if found is None:
                    hint = did_you_mean(column.name, self.schema.names)
                    raise UserError(f"{self.where}: unknown column '{column.name}' in '{self.text}'", hint=hint)
                raise UserError(
                    f"{self.where}: '{found}' in '{self.text}' is neither aggregated nor a group key",
                    hint=f"write any_value({found}) or add it to group_by",
                )
        values = [Attribute(f"{STAND_IN}{i}", v.type) for i, v in enumerate(self.values)]
        scope = Schema((*values, *self.schema.select(keys).attributes)) if keys else Schema(tuple(values))
        parsed = Expression.of(rest, self.text, scope, where=self.where)
        sql = re.sub(rf'"{STAND_IN}(\d+)"', lambda m: f"({self.values[int(m[1])].sql})", parsed.sql)
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
            parsed = replace(parsed, sql=only_if(parsed.sql, self.keep))
        self.tried += [t for t in parsed.tried if t not in self.tried]
        return parsed

    def add(
        self,
        type_: pa.DataType,
        partial: str,
        merge: str,
        *,
        is_float_sum: bool = False,
        plain: tuple[str, str] | None = None,
        adds: Added | None = None,
    ) -> str:
        """Keep a partial; `{p}` in `merge` is its column. Returns the quoted column."""
        column = f"__p{len(self.partials)}"
        # What FILTER keeps has been worked into the sum of floating numbers, but not into other functions.
        plain = plain if self.keep is None or is_float_sum else None
        made = Partial(column, type_, partial, merge.replace("{p}", f'"{column}"'), is_float_sum, plain, adds)
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


#: What else Spark calls our functions.
ALIASES = {
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
#: Those that cannot be put together from parts, with what to write instead.
REFUSED = {
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

_CALLS = frozenset({*FUNCTIONS, *REFUSED, *(a for a in ALIASES)})


def _function_name(node: exp.Expr) -> str:
    name = node.name.lower()
    return ALIASES.get(name, name)


def _choices(name: str) -> str:
    match = nearest(name, _CALLS - set(REFUSED))
    return (f"did you mean '{match}'? " if match else "") + f"There are: {', '.join(FUNCTIONS)}"


def aggregate_calls(tree: exp.Expr, *, inside: bool = False) -> list[exp.Expr]:
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


def outermost(node: exp.Expr) -> exp.Expr:
    around = _wrappers(node)
    return around[-1] if around else node
