"""Contracts for plain Spark: is the state of a Structured Streaming query bounded?

The one module that looks into Spark's logical plan. It reads the plan that Spark will run, after its own optimizer:
that one has time ranges from a later `where` in the join condition, and has lost the columns nobody uses, and with
them their watermarks. The rules are in `penstock.spark_check.rules`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, get_args

from penstock.contract.report import Report
from penstock.errors import UserError
from penstock.spark_check.plan import (
    Column,
    Constant,
    Custom,
    Deduplicate,
    Expression,
    Less,
    Opaque,
    SparkAggregate,
    SparkJoin,
    SparkLimit,
    SparkNode,
    SparkSource,
    SparkUnion,
    Static,
    Sum,
    Through,
    Watermark,
)
from penstock.spark_check.rules import Mode, analyse

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_DELAY = "spark.watermarkDelayMs"
_SECOND = 1_000_000
_DAY = 86_400 * _SECOND
_HOW = {"Inner": "inner", "LeftOuter": "left_outer", "RightOuter": "right_outer", "FullOuter": "full_outer"}
_HOW |= {"LeftSemi": "left_semi", "LeftAnti": "left_anti", "Cross": "inner"}
#: Aggregates whose state has every value of the group, or every distinct one.
_HOARDERS = ("CollectList", "CollectSet", "ListAgg", "Mode", "Percentile", "PercentileCont", "PercentileDisc", "Median")
_NUMBERS = ("tinyint", "smallint", "int", "bigint", "float", "double", "decimal", "timestamp")


def check_spark(df: DataFrame, output_mode: str = "append") -> Report:
    """Whether the state of a streaming DataFrame stays bounded, operator by operator, and what to add if not.

    Nothing is started. `print(check_spark(df))` is meant to be read; `bool(check_spark(df))` is True when it is safe.

        >>> clicks = spark.readStream.schema("ts timestamp, user int").parquet("clicks")      # doctest: +SKIP
        >>> print(ps.check_spark(clicks.dropDuplicates(["user"])))                             # doctest: +SKIP
        unsafe: dropDuplicates(["user"]): state grows for ever

    It needs a classic session: a Spark Connect client never sees the plan.
    """
    mode = _mode(output_mode)
    if type(df).__module__.startswith("pyspark.sql.connect"):
        raise UserError(
            "check_spark: this DataFrame belongs to a Spark Connect session, which does not show its plan",
            hint='check it in a classic session: SparkSession.builder.master("local[1]").getOrCreate()',
        )
    if not hasattr(df, "_jdf"):
        raise UserError(f"check_spark: {type(df).__name__} is not a Spark DataFrame", hint="pass a streaming DataFrame")
    if not df.isStreaming:
        raise UserError("check_spark: this DataFrame is not a stream", hint="start it with spark.readStream")
    analyzed = df._jdf.queryExecution().analyzed()
    return analyse(_QueryReader(analyzed).read(_optimized(df, analyzed)), mode, _refused(df, analyzed, mode))


def _mode(said: str) -> Mode:
    for mode in get_args(Mode):
        if said.lower() == mode:
            known: Mode = mode
            return known
    raise UserError(f"check_spark: output mode '{said}'", hint="append, update or complete")


def _optimized(df: DataFrame, analyzed: Any) -> Any:
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    try:
        return df.sparkSession._jsparkSession.sessionState().optimizer().execute(analyzed)
    except (Py4JJavaError, PySparkException):
        return analyzed  # A rule that needs the running query: the plan as written is nearly as good.


def _refused(df: DataFrame, analyzed: Any, mode: Mode) -> str | None:
    """Why Spark would not start it, in Spark's words."""
    from pyspark.errors import AnalysisException

    session = df.sparkSession
    if session.conf.get("spark.sql.streaming.unsupportedOperationCheck", "true") != "true":
        return None
    sql = session._jvm.org.apache.spark.sql  # type: ignore[union-attr]
    try:
        wanted = getattr(sql.streaming.OutputMode, mode.capitalize())()
        sql.catalyst.analysis.UnsupportedOperationChecker.checkForStreaming(analyzed, wanted)
    except AnalysisException as error:
        return str(error).splitlines()[0].removesuffix(";")
    return None


class _QueryReader:
    """Reads one query. The analyzed plan tells what the optimized one has lost: aliases, and columns nobody uses."""

    def __init__(self, analyzed: Any) -> None:
        self.aliases: dict[int, str] = {}
        self.seen: list[tuple[str, tuple[tuple[Column, ...], ...]]] = []
        self.distinct = False
        for plan in _post_order(analyzed):
            if (kind := _stateful(plan)) is not None:
                self.seen.append((kind, tuple(_columns(c) for c in _each(plan.children()))))
                self.distinct |= _kind(plan) == "Distinct"
            elif _kind(plan) == "SubqueryAlias":
                sources = [p for p in _post_order(plan) if _is_source(p)]
                if len(sources) == 1:
                    self.aliases.setdefault(sources[0].output().head().exprId().id(), plan.identifier().name())

    def read(self, optimized: Any) -> SparkNode:
        plans = list(_post_order(optimized))
        # Spark moves no operator with state past another, so they can be told apart by their order.
        seen = iter(self.seen if [k for k, _ in self.seen] == [k for p in plans if (k := _stateful(p))] else [])
        derived = _derived(plans)
        stack: list[SparkNode] = []
        for plan in plans:
            if not plan.isStreaming():
                stack.append(Static(_columns(plan)))
                continue
            count = plan.children().size()
            inputs = tuple(stack[len(stack) - count :])
            del stack[len(stack) - count :]
            node = self._node(plan, inputs, derived)
            stack.append(replace(node, seen=next(seen, ("", ()))[1]) if _stateful(plan) else node)
        return stack.pop()

    def _node(self, plan: Any, inputs: tuple[SparkNode, ...], derived: dict[int, str]) -> SparkNode:
        kind, columns = _kind(plan), _columns(plan)
        match kind:
            case _ if not inputs:
                alias = self.aliases.get(columns[0].id) if columns else None
                return SparkSource(columns, name=alias or (plan.sourceName() if _is_source(plan) else plan.nodeName()))
            case "EventTimeWatermark":
                return Watermark(columns, inputs, column=_column(plan.eventTime()), delay=plan.delay().toString())
            case "Union":
                return SparkUnion(columns, inputs)
            case "Aggregate":
                keys = tuple(_key(k, derived) for k in _each(plan.groupingExpressions()))
                bare = all(_kind(e) == "AttributeReference" for e in _each(plan.aggregateExpressions()))
                hoards = next((h for e in _each(plan.aggregateExpressions()) if (h := _hoards(e))), None)
                return SparkAggregate(columns, inputs, keys=keys, distinct=self.distinct and bare, hoards=hoards)
            case "Deduplicate" | "DeduplicateWithinWatermark":
                names = tuple(_column(k) for k in _each(plan.keys()))
                return Deduplicate(columns, inputs, keys=names, within_watermark=kind != "Deduplicate")
            case "Join":
                return _join(plan, columns, inputs, derived)
            case "GlobalLimit":
                return SparkLimit(columns, inputs, rows=plan.limitExpr().sql())
            case "FlatMapGroupsWithState" | "FlatMapGroupsInPandasWithState":
                return _custom(plan, columns, inputs, plan.timeout().toString(), "NoTimeout")
            case "TransformWithState" | "TransformWithStateInPySpark":
                return _custom(plan, columns, inputs, plan.timeMode().toString(), "NoTime")
        return Through(columns, inputs)


def _stateful(plan: Any) -> str | None:
    """The kind of an operator with state whose inputs the user should recognise."""
    kind = _kind(plan)
    if kind == "Distinct":
        return "Aggregate"
    if kind == "Join" and not all(c.isStreaming() for c in _each(plan.children())):
        return None
    return kind if kind in ("Aggregate", "Deduplicate", "DeduplicateWithinWatermark", "Join") else None


def _derived(plans: list[Any]) -> dict[int, str]:
    """Columns that the optimizer made up, and the expressions they stand for."""
    made = {}
    for plan in plans:
        if _kind(plan) == "Project":
            for one in _each(plan.projectList()):
                if _kind(one) == "Alias" and one.name().startswith(("_groupingexpression", "_common_expr")):
                    made[one.exprId().id()] = _text(one.child())
    return made


def _custom(plan: Any, columns: tuple[Column, ...], inputs: tuple[SparkNode, ...], setting: str, none: str) -> Custom:
    kind = _kind(plan)
    if kind == "TransformWithStateInPySpark":
        keys = inputs[0].columns[: plan.groupingAttributesLen()]
    else:
        keys = tuple(_column(k) for k in _each(plan.groupingAttributes()))
    call = {
        "FlatMapGroupsInPandasWithState": "applyInPandasWithState",
        "FlatMapGroupsWithState": "flatMapGroupsWithState",
    }.get(kind, "transformWithState")
    return Custom(columns, inputs, call=call, keys=keys, timed=setting != none, setting=setting)


def _join(plan: Any, columns: tuple[Column, ...], inputs: tuple[SparkNode, ...], derived: dict[int, str]) -> SparkJoin:
    left, right = ({c.id for c in i.columns} for i in inputs)
    keys: list[tuple[Expression, Expression]] = []
    ranges: list[Less] = []
    stack = [plan.condition().get()] if plan.condition().isDefined() else []
    while stack:
        one = stack.pop(0)
        kind, parts = _kind(one), _each(one.children())
        if kind == "And":
            stack[:0] = parts
        elif kind in ("EqualTo", "EqualNullSafe"):
            ids = [_ids(p) for p in parts]
            # Spark rewrites a null-safe key to coalesce(…): the watermark does not survive that.
            first, second = (_key(p, derived) if kind == "EqualTo" else Opaque(_text(p), _ids(p)) for p in parts)
            if ids[0] and ids[0] <= left and ids[1] and ids[1] <= right:
                keys.append((first, second))
            elif ids[0] and ids[0] <= right and ids[1] and ids[1] <= left:
                keys.append((second, first))
        elif kind in ("LessThan", "LessThanOrEqual"):
            ranges.append(Less(_sum(parts[0], derived), _sum(parts[1], derived), kind == "LessThan"))
        elif kind in ("GreaterThan", "GreaterThanOrEqual"):
            ranges.append(Less(_sum(parts[1], derived), _sum(parts[0], derived), kind == "GreaterThan"))
        elif kind == "Between":
            # Only in a plan that the optimizer could not rewrite.
            low, middle, high = _sum(one.lower(), derived), _sum(one.input(), derived), _sum(one.upper(), derived)
            ranges += [Less(low, middle), Less(middle, high)]
    how = plan.joinType().toString()
    return SparkJoin(columns, inputs, how=_HOW.get(how, how), keys=tuple(keys), ranges=tuple(ranges))


def _sum(expression: Any, derived: dict[int, str]) -> Expression:
    """An expression as Spark's search for a state watermark reads it: sums of columns and intervals, nothing else."""
    kind, parts = _kind(expression), _each(expression.children())
    match kind:
        case "AttributeReference":
            return _column(expression, derived)
        case "Literal":
            return _constant(expression)
        case "Add" | "TimestampAddInterval" | "TimeAdd":
            return Sum(((1, _sum(parts[0], derived)), (1, _sum(parts[1], derived))))
        case "Subtract":
            return Sum(((1, _sum(parts[0], derived)), (-1, _sum(parts[1], derived))))
        case "UnaryMinus":
            return Sum(((-1, _sum(parts[0], derived)),))
        case "DatetimeSub" | "PromotePrecision" | "CheckOverflow":
            return _sum(parts[0], derived)
        case "Cast" if expression.dataType().catalogString().split("(")[0] in _NUMBERS:
            return _sum(parts[0], derived)
    return Opaque(_text(expression), _ids(expression))


def _constant(literal: Any) -> Expression:
    from py4j.java_gateway import get_field

    text, kind, value = _text(literal), literal.dataType().catalogString(), literal.value()
    if kind == "interval":
        if get_field(value, "months") != 0:
            return Opaque(text)
        return Constant(
            f"INTERVAL {value.toString()}", get_field(value, "days") * _DAY + get_field(value, "microseconds")
        )
    if kind.startswith("interval"):
        return Opaque(text) if "month" in kind or "year" in kind else Constant(text, int(value))
    if isinstance(value, int | float) and not isinstance(value, bool) and not kind.startswith("timestamp"):
        return Constant(text, int(value * _SECOND))
    return Constant(text)


def _key(expression: Any, derived: dict[int, str]) -> Expression:
    """A key keeps its watermark only as the bare column."""
    if _kind(expression) == "AttributeReference":
        return _column(expression, derived)
    return Opaque(_text(expression), _ids(expression))


def _column(attribute: Any, derived: Mapping[int, str] = MappingProxyType({})) -> Column:
    metadata, ident = attribute.metadata(), attribute.exprId().id()
    delay = metadata.getLong(_DELAY) if metadata.contains(_DELAY) else None
    name = derived.get(ident, attribute.name())
    return Column(ident, name, attribute.dataType().catalogString(), delay, derived=ident in derived)


def _columns(plan: Any) -> tuple[Column, ...]:
    return tuple(_column(a) for a in _each(plan.output()))


def _ids(expression: Any) -> frozenset[int]:
    if _kind(expression) == "AttributeReference":
        return frozenset({expression.exprId().id()})
    return frozenset().union(*(_ids(c) for c in _each(expression.children())))


def _hoards(expression: Any) -> str | None:
    if _kind(expression) in _HOARDERS:
        return str(expression.prettyName())
    return next((h for c in _each(expression.children()) if (h := _hoards(c))), None)


def _text(expression: Any) -> str:
    # Spark writes `spark_catalog`.`db`.`t`.`column`; the last name is what the user wrote.
    return re.sub(r"\b(?:\w+\.)+(?=[A-Za-z_])", "", expression.sql().replace("`", ""))


def _kind(node: Any) -> str:
    return str(node.getClass().getSimpleName()).removesuffix("$")


def _each(seq: Any) -> list[Any]:
    return [seq.apply(i) for i in range(seq.size())]


def _is_source(plan: Any) -> bool:
    return _kind(plan) in ("StreamingRelation", "StreamingRelationV2", "StreamingExecutionRelation")


def _post_order(plan: Any) -> Iterator[Any]:
    """Inputs first. Below a table there is nothing to see."""
    stack = [(plan, False)]
    while stack:
        node, done = stack.pop()
        if done or not node.isStreaming():
            yield node
        else:
            stack.append((node, True))
            stack += [(c, False) for c in reversed(_each(node.children()))]
