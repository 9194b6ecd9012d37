"""Arguments of the calls that build a query, checked against what their signatures say.

Whoever writes `where(None)` or `rename(5)` should read what was expected there, not a stack trace from inside. Calls
check what they know best, with words of their own. Where one fails nevertheless, and an argument is not what the
signature says, that is the reason, and is said instead. Texts that cannot be written are refused at once.
"""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, ParamSpec, TypeVar, Union, get_args, get_origin, get_type_hints

from penstock.errors import PenstockError, UserError, a, encodable, shortly

P = ParamSpec("P")
T = TypeVar("T")
C = TypeVar("C", bound=type)

#: What to write, by the name of the parameter.
_WRITE = {
    "predicate": "SQL as text: where('speed > 40')",
    "columns": "names, one by one: select('ts', 'speed')",
    "computed": "SQL as text: with_columns(mph='speed / 1.609')",
    "mapping": "rename({'old': 'new'}), or rename(old='new')",
    "renames": "rename(old='new')",
    "keys": "names, one by one: group_by('segment', 'day')",
    "by": "names, one by one: order_by('ts', 'speed desc')",
    "aggregations": "SQL as text: agg(n='count(*)', mean='avg(speed)')",
    "schema": "names and types as text: 'ts timestamp, segment int, speed double'",
    "on": "on='key', with the name of an attribute",
    "time": "time='ts', with the name of an attribute",
    "keeps": "keeps=['ts', 'segment']",
    "name": "a name such as 'traffic'",
}
#: Parameters whose texts are names of attributes.
_NAMES = ("columns", "keys", "by", "on", "time", "key", "attribute", "column", "name", "past", "version", "until")


def worded(cls: C) -> C:
    """A class whose public methods check what they are given."""
    for name, made in list(vars(cls).items()):
        if name.startswith("_"):
            continue
        if isinstance(made, staticmethod | classmethod):
            setattr(cls, name, type(made)(checked(made.__func__)))
        elif inspect.isfunction(made):
            setattr(cls, name, checked(made))
    return cls


def checked(function: Callable[P, T]) -> Callable[P, T]:
    """A function that says of its texts, lists and dicts which one is wrong, if it fails.

    >>> @checked
    ... def where(predicate: str) -> str:
    ...     return predicate.strip()
    >>> where(None)
    Traceback (most recent call last):
    penstock.errors.UserError: where: predicate=None is not a text. Hint: SQL as text: where('speed > 40')
    """
    signature = inspect.signature(function)
    call = function.__name__

    @functools.wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            given = signature.bind(*args, **kwargs).arguments
        except TypeError as error:
            raise UserError(f"{call}(): {error}", hint=f"it takes {_shown(signature)}") from None
        arguments = [*_labelled(signature, given)]
        for _, label, value in arguments:
            _refuse_unwritable(call, label, value)
        try:
            return function(*args, **kwargs)
        except PenstockError:
            raise
        except Exception:
            hints = _hints(function)
            for name, label, value in arguments:
                if not _fits(value, hints.get(name, Any)):
                    text = "a name" if name in _NAMES else "a text"
                    wanted = _words(hints[name], text)
                    raise UserError(f"{call}: {label}{shortly(value)} is not {wanted}", hint=_WRITE.get(name)) from None
            raise  # The arguments are as they should be, so this is a defect of ours.

    return run


def _labelled(signature: inspect.Signature, given: Mapping[str, Any]) -> Iterator[tuple[str, str, Any]]:
    """Parameter, label for people and value of every argument."""
    for name, value in given.items():
        kind = signature.parameters[name].kind
        if kind is inspect.Parameter.VAR_POSITIONAL:
            yield from ((name, "", one) for one in value)
        elif kind is inspect.Parameter.VAR_KEYWORD:
            yield from ((name, f"{key}=", one) for key, one in value.items())
            yield name, "", [*value]
        elif name not in ("self", "cls"):
            yield name, f"{name}=", value


def _shown(signature: inspect.Signature) -> str:
    return ", ".join(n for n in signature.parameters if n != "self") or "nothing"


@functools.cache
def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    """The annotations, as far as they can be looked up: what is imported for type checkers only is not judged."""
    found = {}
    for name, text in function.__annotations__.items():
        alone = types.SimpleNamespace(__annotations__={name: text}, __module__=function.__module__)
        try:
            found[name] = get_type_hints(alone, vars(inspect.getmodule(function)))[name]
        except Exception:
            found[name] = Any
    return found


def _refuse_unwritable(call: str, label: str, value: Any) -> None:
    if (bad := next((t for t in _texts(value) if not encodable(t)), None)) is not None:
        raise UserError(
            f"{call}: {label}{shortly(bad)} has half of a surrogate pair, which cannot be written",
            hint="was it read in the wrong encoding?",
        )


def _texts(value: Any) -> Iterable[str]:
    if isinstance(value, str):
        return (value,)
    inside = [*value, *value.values()] if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    return (t for t in inside if isinstance(t, str))


def _fits(value: Any, hint: Any) -> bool:
    """Whether a value may be meant; what is not judged here may always be."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        # A class among other things is all that its parameter may be; one alone is left to the call, which knows more.
        return any(isinstance(value, one) if _is_class(one) else _fits(value, one) for one in inner)
    if hint is str or hint is bool:
        return isinstance(value, hint)
    if hint is None or hint is type(None):
        return value is None
    if origin is Literal:
        return isinstance(value, str | int | None)
    if origin is not None and isinstance(origin, type):
        if issubclass(origin, Mapping):
            key, of = inner
            return isinstance(value, Mapping) and all(_fits(k, key) and _fits(v, of) for k, v in value.items())
        if issubclass(origin, tuple):
            return isinstance(value, tuple | list) and all(any(_fits(v, one) for one in inner) for v in value)
        if issubclass(origin, Sequence):
            # A text is a sequence of texts, too, but hardly meant as one.
            fits = isinstance(value, Collection) and not isinstance(value, str | bytes | Mapping)
            return fits and all(_fits(v, inner[0]) for v in value)
        if issubclass(origin, Iterable):
            return isinstance(value, Iterable) and not isinstance(value, str | bytes)
    return True


def _is_class(hint: Any) -> bool:
    # Numbers have checks of their own, which say more than that it must be a number.
    return isinstance(hint, type) and hint not in (int, float, object, type(None))


def _words(hint: Any, text: str) -> str:
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return ", or ".join(dict.fromkeys(_words(one, text) for one in inner if one is not type(None)))
    if hint is str:
        return text
    if hint is bool:
        return "True or False"
    if origin is Literal:
        return "one of " + ", ".join(map(repr, inner))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return "a dict from names to " + {str: "texts", int: "numbers"}.get(inner[1], "values")
    if isinstance(origin, type) and issubclass(origin, tuple):
        return "a pair"
    if isinstance(origin, type) and issubclass(origin, Iterable):
        return "a list of names" if inner[0] is str else "a list"
    return a(hint.__name__) if isinstance(hint, type) else "that"
