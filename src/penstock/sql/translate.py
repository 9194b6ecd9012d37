"""From a syntax tree to DuckDB SQL: every node is either known here, with Spark's meaning, or refused by name."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import reduce

import pyarrow as pa
from sqlglot import exp

from penstock.errors import UserError, did_you_mean
from penstock.pattern.schema import Schema
from penstock.pattern.types import parse_type
from penstock.sql import compare
from penstock.sql.arithmetic import arithmetic, negative
from penstock.sql.cast import cast, try_cast
from penstock.sql.catalog import VOLATILE, functions, refusal
from penstock.sql.conditions import same
from penstock.sql.connection import failure
from penstock.sql.fallible import can_fail
from penstock.sql.letter_case import LOWER
from penstock.sql.literal import computed, number, suffixed
from penstock.sql.numbers import BITS, bit_not
from penstock.sql.parse import written
from penstock.sql.term import (
    BIG,
    BINARY,
    BOOLEAN,
    INTEGERS,
    NULL,
    STRING,
    TEXTS,
    UNIT,
    Term,
    Unfit,
    fill,
    one,
    raising,
    text,
)
from penstock.sql.times.distance import UNIT_FUNCTIONS, interval
from penstock.sql.times.parts import extract

_ARITHMETIC = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.Mod: "%", exp.IntDiv: "div"}


_COMPARISONS = {exp.EQ: "=", exp.NEQ: "<>", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">="}


_BITWISE = {exp.BitwiseAnd: "&", exp.BitwiseOr: "|", exp.BitwiseXor: "^"}


_CONDITIONS = (exp.Is, exp.In, exp.Between, exp.Like, exp.ILike, exp.RegexpLike, exp.Escape, exp.Not)


_OPERATORS = frozenset([*_ARITHMETIC, *_COMPARISONS, *_BITWISE, exp.And, exp.Or])


#: What a node may say beside its operands. Anything else is a part of the grammar whose meaning is not known here.
_PLAIN = frozenset(["this", "expression", "expressions"])


#: What is a value as it stands, or is looked at part by part.
_LEAVES = (exp.Column, exp.Literal, exp.Null, exp.Boolean, exp.Paren, exp.HexString)
_ALSO = {
    exp.Like: frozenset(["negate"]),
    exp.ILike: frozenset(["negate"]),
    exp.Case: frozenset(["ifs", "default"]),
    exp.Between: frozenset(["low", "high"]),
    exp.In: frozenset(["query"]),
    exp.Cast: frozenset(["to"]),
    exp.TryCast: frozenset(["to", "safe"]),
    exp.Trim: frozenset(["position"]),
    exp.Substring: frozenset(["start", "length"]),
    exp.StrPosition: frozenset(["substr", "position"]),
    exp.Overlay: frozenset(["from_", "for_"]),
    exp.Interval: frozenset(["unit"]),
    exp.Column: frozenset(["table", "db", "catalog"]),
    exp.Literal: frozenset(["is_string"]),
    exp.DPipe: frozenset(["safe"]),
    exp.Concat: frozenset(["safe", "coalesce"]),
    exp.Div: frozenset(["typed", "safe"]),
}


#: Types by name as functions: `int(x)` is `cast(x as int)`.
_NUMBERS = ["tinyint", "smallint", "int", "bigint", "float", "double", "decimal"]


_CASTS = frozenset([*_NUMBERS, "boolean", "string", "binary", "date", "timestamp"])


class Translator:
    """Translates the expressions of one schema; remembers which columns they use."""

    def __init__(self, schema: Schema, text: str, where: str) -> None:
        self.schema, self.text, self.where = schema, text, where
        self.columns: set[str] = set()

    def run(self, tree: exp.Expr) -> Term:
        try:
            return self.term(tree)
        except Unfit as unfit:
            raise UserError(f"{self.where}: '{self.text}': {unfit}", hint=unfit.hint) from None

    def term(self, node: exp.Expr) -> Term:
        made = self.made(node)
        if type(node) not in _LEAVES and not self.varies(node) and (why := failure(made)) is not None:
            raise Unfit(f"'{written(node)}' has no value{why and f': {why}'}", "it would fail whenever it is computed")
        return made

    def varies(self, node: exp.Expr) -> bool:
        """Whether its value depends on the event; a unit of time looks like a column too."""
        return any(self.schema.resolve(column.name) for column in node.find_all(exp.Column))

    def made(self, node: exp.Expr) -> Term:
        kind = type(node)
        if kind not in _HANDLERS and kind not in _OPERATORS:
            raise self.refused(node)
        if unknown := {k for k, v in node.args.items() if v and k not in _PLAIN} - _ALSO.get(kind, frozenset()):
            raise Unfit(f"'{node.sql('spark')}' ({', '.join(sorted(unknown))}) is not available")
        if kind in _ARITHMETIC:
            return self.chain(node, kind, lambda a, b: arithmetic(_ARITHMETIC[kind], a, b))
        if kind in _COMPARISONS:
            self.apart(node, _COMPARISONS[kind])
            return compare.compared(_COMPARISONS[kind], self.term(node.this), self.term(node.expression))
        if kind in (exp.And, exp.Or):
            return self.decided(node, kind)
        if kind in _BITWISE:
            for side in (node.this, node.expression):
                if type(side) in _BITWISE and type(side) is not kind:
                    raise Unfit("&, | and ^ are mixed", "write parentheses around one of them")
            return BITS[_BITWISE[kind]](self.term(node.this), self.term(node.expression))
        return _HANDLERS[kind](self, node)

    def chain(self, node: exp.Expr, kind: type, join: Callable[[Term, Term], Term]) -> Term:
        """`a op b op c …` without a call per operator: hundreds of them are no nesting."""
        sides = []
        while type(node) is kind:
            sides.append(node.expression)
            node = node.this
        return reduce(join, (self.term(side) for side in reversed(sides)), self.term(node))

    def apart(self, node: exp.Expr, operator: str) -> None:
        """Refuse a comparison beside another condition: Spark's order of reading them is not SQL's usual one."""
        right = type(node.expression) in _COMPARISONS
        if right or any(isinstance(side, _CONDITIONS) for side in (node.this, node.expression)):
            raise Unfit(f"{operator} beside another condition", "write parentheses around one of them")

    def decided(self, node: exp.Expr, kind: type) -> Term:
        """AND and OR, asked from left to right where a side can fail, as Spark asks: the left may settle it."""
        sides, fallible = [], can_fail(node, self.schema)
        while type(node) is kind:
            sides.append(node.expression)
            node = node.this
        terms = [compare.condition(self.term(side)).inner for side in (node, *reversed(sides))]
        whole = (" AND " if kind is exp.And else " OR ").join(terms)
        if not fallible:
            return Term(whole, BOOLEAN)
        settled = "FALSE" if kind is exp.And else "TRUE"
        whens = " ".join(f"WHEN {t} = {settled} THEN {settled}" for t in terms[:-1])
        return Term(f"CASE {whens} ELSE {whole} END", BOOLEAN, closed=True)

    def column(self, node: exp.Expr) -> Term:
        assert isinstance(node, exp.Column)
        name = node.name
        if node.table:
            raise UserError(
                f"{self.where}: '{node.sql('spark')}' in '{self.text}'", hint=f"write '{name}' without a prefix"
            )
        if isinstance(node.this, exp.Star):
            raise UserError(f"{self.where}: '*' in '{self.text}'", hint="name the attributes one by one")
        found = self.schema.resolve(name)
        if found is None:
            if name.lower() in VOLATILE and not node.this.args.get("quoted"):
                raise refusal(name.lower(), self.text, self.where)
            hint = did_you_mean(name, self.schema.names)
            raise UserError(f"{self.where}: unknown column '{name}' in '{self.text}'", hint=hint)
        self.columns.add(found)
        attribute = next(a for a in self.schema if a.name == found)
        return Term('"' + found.replace('"', '""') + '"', attribute.type)

    def call(self, node: exp.Expr) -> Term:
        name, arguments = node.name.lower(), list(node.expressions)
        table = functions()
        if name in ("unix_timestamp", "to_unix_timestamp") and not arguments:
            raise refusal("now", self.text.replace("now", name), self.where)
        if name in _CASTS and len(arguments) == 1:
            return computed(cast(self.term(arguments[0]), parse_type(name)))
        if name not in table:
            raise refusal(name, self.text, self.where)
        for argument in arguments:
            if isinstance(argument, exp.Distinct | exp.Star | exp.Kwarg | exp.Lambda):
                raise self.refused(argument)
        first: list[Term] = []
        if name in UNIT_FUNCTIONS and len(arguments) == 3:
            unit = arguments.pop(0)
            if not isinstance(unit, exp.Column) or unit.table:
                raise Unfit(f"'{unit.sql('spark')}' is not a unit of time", f"write {name}(DAY, …)")
            first = [Term("", UNIT, unit.name)]
        return computed(table[name].apply([*first, *(self.term(a) for a in arguments)]))

    def literal(self, node: exp.Expr) -> Term:
        if node.is_string:
            return text(node.name)
        return number(node.name)

    def negated(self, node: exp.Expr) -> Term:
        """A sign before a number belongs to it; before anything else it is computed."""
        if isinstance(node.this, exp.Literal) and node.this.name == str(1 << 63):
            return negative(Term(node.this.name, BIG, 1 << 63))
        inner = self.term(node.this)
        if isinstance(node.this, exp.Paren | exp.Neg):
            return computed(negative(computed(inner)))
        return negative(inner)

    def cast(self, node: exp.Expr) -> Term:
        t = self.type_of(node)
        if isinstance(node, exp.TryCast):
            return computed(try_cast(self.term(node.this), t))
        inner = node.this
        if isinstance(inner, exp.Literal) and not inner.is_string and (made := suffixed(inner.name, t, self.text)):
            return made
        return computed(cast(self.term(inner), t))

    def type_of(self, node: exp.Expr) -> pa.DataType:
        to = node.args["to"]
        name = to.sql("spark").lower()
        name = {"timestamp_ltz": "timestamp", "timestamptz": "timestamp"}.get(name, name)
        try:
            return parse_type(name)
        except UserError as error:
            raise UserError(f"{self.where}: {error.args[0] if error.args else error}", hint=error.hint) from None

    def case(self, node: exp.Expr) -> Term:
        subject = self.term(node.this) if node.this else None
        cases = []
        for when in node.args["ifs"]:
            test = self.term(when.this)
            if subject is None and test.type == NULL:
                raise Unfit("NULL is not a condition of CASE", "leave that case out: it is never true")
            cases.append((compare.compared("=", subject, test) if subject else test, self.term(when.args["true"])))
        default = self.term(node.args["default"]) if node.args.get("default") else None
        return compare.chosen(cases, default)

    def is_(self, node: exp.Expr) -> Term:
        this, that = self.term(node.this), node.expression
        if isinstance(that, exp.Null):
            return Term(f"{this.inner} IS NULL", BOOLEAN)
        if isinstance(that, exp.Boolean):
            return Term(f"{compare.condition(this).inner} IS {'TRUE' if that.this else 'FALSE'}", BOOLEAN)
        raise self.refused(node)

    def in_(self, node: exp.Expr) -> Term:
        if node.args.get("query") or not node.expressions:
            raise self.refused(node.args.get("query") or node)
        fallible = any(can_fail(v, self.schema) for v in node.expressions)
        return compare.among(self.term(node.this), [self.term(v) for v in node.expressions], fallible=fallible)

    def between(self, node: exp.Expr) -> Term:
        this, low, high = (self.term(node.args[k]) for k in ("this", "low", "high"))
        fallible = any(can_fail(node.args[k], self.schema) for k in ("low", "high"))
        return compare.between(this, low, high, fallible=fallible)

    def like(self, node: exp.Expr) -> Term:
        escape = "\\"
        if isinstance(node, exp.Escape):
            if not node.expression.is_string or len(node.expression.name) != 1:
                raise Unfit("ESCAPE takes one character")
            escape, node = node.expression.name, node.this
        if isinstance(node.expression, exp.Any | exp.All | exp.Tuple):
            raise Unfit("LIKE ANY and LIKE ALL are not available", "write s like 'a%' or s like 'b%'")
        this, pattern = self.term(node.this), self.term(node.expression)
        if isinstance(node, exp.ILike):
            if not isinstance(pattern.value, str) or (
                pattern.value != pattern.value.lower() and not pattern.value.isascii()
            ):
                raise Unfit("ILIKE takes a literal pattern of ASCII letters", "use lower(s) like 'a%'")
            this, pattern = fill(LOWER, cast(this, STRING), type=STRING), text(pattern.value.lower())
        made = compare.like(this, pattern, escape)
        return Term(f"NOT ({made.sql})", BOOLEAN) if node.args.get("negate") else made

    def bracket(self, node: exp.Expr) -> Term:
        this, index = self.term(node.this), [self.term(e) for e in node.expressions]
        if this.type != TEXTS or len(index) != 1 or index[0].type not in INTEGERS:
            raise Unfit(f"[…] after {one(this.type)} is not available", "it takes parts of split(…): split(s, ',')[0]")
        template = (
            f"CASE WHEN {{1}} < 0 OR {{1}} >= len({{0}}) THEN {raising('there is no such part', STRING)}"
            " ELSE {0}[{1} + 1] END"
        )
        return fill(template, this, index[0], type=STRING)

    def trim(self, node: exp.Expr) -> Term:
        this = cast(self.term(node.this), STRING)
        characters = cast(self.term(node.expression), STRING) if node.expression else text(" ")
        name = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(str(node.args.get("position") or "BOTH").upper(), "trim")
        if this.type != STRING or characters.type != STRING:
            raise Unfit("trim(…) needs texts", "cast them: cast(… as string)")
        return Term(f"{name}({this.sql}, {characters.sql})", STRING, closed=True)

    def substring(self, node: exp.Expr) -> Term:
        given = [node.args.get(k) for k in ("this", "start", "length")]
        return functions()["substring"].apply([self.term(g) for g in given if g is not None])

    def position(self, node: exp.Expr) -> Term:
        given = [node.args.get(k) for k in ("substr", "this", "position")]
        return functions()["position"].apply([self.term(g) for g in given if g is not None])

    def overlay(self, node: exp.Expr) -> Term:
        given = [node.args.get(k) for k in ("this", "expression", "from_", "for_")]
        return functions()["overlay"].apply([self.term(g) for g in given if g is not None])

    def concat(self, node: exp.Expr) -> Term:
        parts = node.expressions or [node.this, node.expression]
        if isinstance(node, exp.DPipe) and (
            isinstance(node.expression, exp.Add | exp.Sub) or any(type(p) in _BITWISE for p in parts)
        ):
            raise Unfit("|| beside another operator", "write parentheses around one of them")
        if all(isinstance(p, exp.Literal) and p.is_string for p in parts):
            return text("".join(p.name for p in parts))
        return functions()["concat"].apply([self.term(p) for p in parts])

    def interval(self, node: exp.Expr) -> Term:
        amount, unit = node.this, node.args.get("unit")
        if isinstance(amount, exp.Neg):
            amount = exp.Literal.string("-" + amount.this.name)
        if not isinstance(amount, exp.Literal) or not isinstance(unit, exp.Var):
            found = re.fullmatch(r"\s*([+-]?\d+)\s+([A-Za-z]+)\s*", amount.name) if amount is not None else None
            if not found or unit is not None:
                raise Unfit(
                    f"'{node.sql('spark')}' is not available", "write a whole number of one unit: interval 5 minutes"
                )
            return interval(found[1], found[2])
        return interval(amount.name, unit.name)

    def refused(self, node: exp.Expr) -> UserError:
        if isinstance(node, exp.Window):
            return UserError(f"{self.where}: window function in '{self.text}'", hint="use .window(…) and .agg(…)")
        if isinstance(node, exp.Query | exp.Exists):
            return UserError(
                f"{self.where}: subquery in '{self.text}'", hint="an expression sees the attributes of one event only"
            )
        if isinstance(node, exp.Placeholder | exp.Parameter):
            return UserError(f"{self.where}: parameter '{node.sql()}' in '{self.text}'", hint="write the value itself")
        if isinstance(node, exp.Star):
            return UserError(f"{self.where}: '*' in '{self.text}'", hint="name the attributes one by one")
        if isinstance(node, exp.UDTF | exp.Explode | exp.Posexplode):
            return refusal("explode", self.text, self.where)
        if isinstance(node, exp.Filter | exp.IgnoreNulls | exp.Distinct):
            return refusal("sum", self.text, self.where)
        if isinstance(node, exp.Func) and not isinstance(node, exp.Anonymous):
            return refusal(node.sql_name().lower(), self.text, self.where)
        what = type(node).__name__
        shown_ = node.sql("spark")
        return UserError(
            f"{self.where}: '{shown_ if len(shown_) < 60 else what}' in '{self.text}' is not available",
            hint="docs/functions.md lists the operators and functions there are",
        )


_HANDLERS: dict[type, Callable[[Translator, exp.Expr], Term]] = {
    exp.Column: Translator.column,
    exp.Anonymous: Translator.call,
    exp.Literal: Translator.literal,
    exp.Cast: Translator.cast,
    exp.TryCast: Translator.cast,
    exp.Case: Translator.case,
    exp.Is: Translator.is_,
    exp.In: Translator.in_,
    exp.Between: Translator.between,
    exp.Like: Translator.like,
    exp.ILike: Translator.like,
    exp.Escape: Translator.like,
    exp.RegexpLike: lambda t, n: compare.rlike(t.term(n.this), t.term(n.expression)),
    exp.Bracket: Translator.bracket,
    exp.Trim: Translator.trim,
    exp.Substring: Translator.substring,
    exp.StrPosition: Translator.position,
    exp.Overlay: Translator.overlay,
    exp.Concat: Translator.concat,
    exp.DPipe: Translator.concat,
    exp.Interval: Translator.interval,
    exp.Extract: lambda t, n: extract(n.this.name.upper(), t.term(n.expression)),
    exp.Paren: lambda t, n: t.term(n.this),
    exp.Neg: Translator.negated,
    exp.Not: lambda t, n: Term(f"NOT {compare.condition(t.term(n.this)).inner}", BOOLEAN),
    exp.BitwiseNot: lambda t, n: bit_not(t.term(n.this)),
    exp.NullSafeEQ: lambda t, n: same(t.term(n.this), t.term(n.expression)),
    exp.NullSafeNEQ: lambda t, n: Term(f"NOT ({same(t.term(n.this), t.term(n.expression)).sql})", BOOLEAN),
    exp.Null: lambda t, n: Term("NULL", NULL),
    exp.Boolean: lambda t, n: Term("TRUE" if n.this else "FALSE", BOOLEAN, bool(n.this)),
    exp.HexString: lambda t, n: Term(f"from_hex('{n.name}')", BINARY, closed=True),
}
