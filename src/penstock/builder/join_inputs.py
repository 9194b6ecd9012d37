"""What is asked of the inputs of a join of many: keys, windows and times, checked, and names for its columns."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from penstock.builder.extent import measurable, ticks_of
from penstock.errors import UserError, did_you_mean
from penstock.operators.join.operator import Taken
from penstock.operators.source.operator import Source
from penstock.plan.operator import Operator
from penstock.plan.policy import Extent

#: One key attribute: its name in all inputs, or its names in each.
Key = str | Sequence[str]


def input_name(operator: Operator, number: int) -> str:
    """What to call an input: the name of the one source it comes from, else its number."""
    found = operator
    while len(found.inputs) == 1:
        (found,) = found.inputs
    return found.name if isinstance(found, Source) else f"input {number + 1}"


def keys_of(inputs: Sequence[Operator], on: str | Sequence[Key]) -> tuple[tuple[str, ...], ...]:
    """The key attributes of each input, checked for existence and type."""
    wanted = [on] if isinstance(on, str) else list(on)
    if not wanted:
        raise UserError("join: no key", hint="on='key', on=['a', 'b'] or on=[('name in first', 'name in second', …)]")
    found: list[list[str]] = [[] for _ in inputs]
    for key in wanted:
        names = [key] * len(inputs) if isinstance(key, str) else list(key)
        if len(names) != len(inputs):
            raise UserError(
                f"join: the key {tuple(names)!r} has {len(names)} names for {len(inputs)} inputs",
                hint="one name for all, or one for each",
            )
        for i, (operator, name) in enumerate(zip(inputs, names)):
            spelled = operator.schema.resolve(name)
            if spelled is None:
                hint = did_you_mean(name, operator.schema.names)
                if isinstance(on, Sequence) and not isinstance(on, str) and len(wanted) == len(inputs):
                    hint += "; the names of one key in each input are one tuple: on=[('a', 'b', …)]"
                raise UserError(f"join: {input_name(operator, i)} has no column '{name}'", hint=hint)
            if spelled in found[i]:
                raise UserError(
                    f"join: '{spelled}' of {input_name(operator, i)} is in the key twice", hint="name it once"
                )
            found[i].append(spelled)
            mine, first = operator.schema.type_of(spelled), inputs[0].schema.type_of(found[0][-1])
            if mine != first and not (pa.types.is_integer(mine) and pa.types.is_integer(first)):
                both = (inputs[0], 0, found[0][-1]), (operator, i, spelled)
                shown = (f"{o.schema.attributes[o.schema.index(k)]} of {input_name(o, n)}" for o, n, k in both)
                raise UserError(
                    f"join: the keys differ in type: {', '.join(shown)}",
                    hint="cast one of them first: with_columns(key='cast(key AS …)')",
                )
    return tuple(map(tuple, found))


def windows_of(
    inputs: Sequence[Operator],
    within: Extent | None,
    windows: Sequence[Extent | None] | None,
    times: Sequence[str | None] | None,
) -> tuple[tuple[str | None, ...], tuple[int | None, ...]]:
    """The time attributes and the windows in ticks."""
    if within is not None and windows is not None:
        raise UserError("join: within= and windows= exclude each other", hint="windows=[…] has one for each input")
    for name, listed in (("windows", windows), ("times", times)):
        if listed is not None and (isinstance(listed, str) or len(listed) != len(inputs)):
            given = 1 if isinstance(listed, str) else len(listed)
            raise UserError(f"join: {given} {name} for {len(inputs)} inputs", hint="one for each input, or None")
    wanted = [within] * len(inputs) if windows is None else list(windows)
    if all(w is None for w in wanted):
        return (None,) * len(inputs), (None,) * len(inputs)
    found = [time_of(o, i, None if times is None else times[i]) for i, o in enumerate(inputs)]
    first = inputs[0].schema.type_of(found[0])
    ticks = []
    for i, (operator, time, window) in enumerate(zip(inputs, found, wanted)):
        if operator.schema.type_of(time) != first:
            raise UserError(
                f"join: '{found[0]}' of {input_name(inputs[0], 0)} and '{time}' of {input_name(operator, i)} are "
                "times of different types",
                hint="cast one of them",
            )
        measurable(operator.schema, time, f"join: {input_name(operator, i)}")
        ticks.append(None if window is None else ticks_of(window, first, "join"))
        if (last := ticks[-1]) is not None and last < 0:
            raise UserError(f"join: a window of {window!r} is negative", hint="for how long later events can join it")
    return tuple(found), tuple(ticks)


def time_of(operator: Operator, number: int, given: str | None) -> str:
    schema, name = operator.schema, input_name(operator, number)
    if given is not None:
        spelled = schema.resolve(given)
        if spelled is None:
            raise UserError(f"join: {name} has no column '{given}'", hint=did_you_mean(given, schema.names))
        return spelled
    if len(schema.times) != 1:
        known = ", ".join(schema.times) or "none is declared"
        raise UserError(
            f"join: which time attribute of {name}? ({known})", hint="ps.stream(…, time='…') or join(…, times=[…])"
        )
    return schema.times[0]


def columns_of(inputs: Sequence[Operator], keys: Sequence[Sequence[str]]) -> tuple[Taken, ...]:
    """Keys first and once, then what else each input has, under distinct names."""
    origins = [(0, k) for k in keys[0]]
    origins += [(i, n) for i, o in enumerate(inputs) for n in o.schema.names if n not in keys[i]]
    names = distinct_names([name for _, name in origins])
    return tuple(Taken(name, (origin,)) for name, origin in zip(names, origins))


def distinct_names(names: Sequence[str]) -> list[str]:
    """Names that differ: the second of one gets `_2`, the third `_3`, or the next number that is free.

    >>> distinct_names(["ts", "v", "ts", "v_2", "V", "ts"])
    ['ts', 'v', 'ts_2', 'v_2', 'V_3', 'ts_3']
    """
    taken = {n.casefold() for n in names}
    seen: set[str] = set()
    found = []
    for name in names:
        chosen, number = name, 2
        if name.casefold() in seen:
            while (chosen := f"{name}_{number}").casefold() in taken:
                number += 1
        seen.add(name.casefold())
        taken.add(chosen.casefold())
        found.append(chosen)
    return found
