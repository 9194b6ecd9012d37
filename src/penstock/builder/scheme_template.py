"""Templates of schemes, as words by attribute or as text: `[[ts:+, sensor:#]]`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from penstock.errors import UserError

#: What a scheme may say of an attribute, and its sign in a template.
_CLASSES = {
    **{sign: sign for sign in ("+", "#", "range", "-")},
    "up to": "+",
    "value": "#",
    "each value": "#",
    "any": "-",
    "*": "-",
}


def written(text: str) -> dict[str, str]:
    """Attribute → class, of a template as text.

    >>> written("[[ts:+, sensor:#]]")
    {'ts': '+', 'sensor': '#'}
    """
    inside = text.strip()
    parts = [p.strip() for p in inside[2:-2].split(",")] if inside[:2] == "[[" and inside[-2:] == "]]" else [""]
    if not all(":" in p for p in parts):
        raise UserError(f"scheme('{text}') is not a template", hint="write it as [[ts:+, sensor:#, speed:-]]")
    return {name.strip().strip("`"): said for name, _, said in (p.rpartition(":") for p in parts)}


def template(
    classes: Mapping[str, str], named: Callable[[str, str], str], names: Sequence[str], call: str
) -> tuple[tuple[str, str], ...]:
    """The attributes that are restricted, in the order of `names`, and how; `named` finds one, or complains."""
    found: dict[str, str] = {}
    for name, said in classes.items():
        sign = _CLASSES.get(said.strip().lower()) if isinstance(said, str) else None
        if sign is None:
            raise UserError(
                f"{call}: '{name}' is {said!r}", hint="one of 'up to' (+), 'value' (#), 'range' and 'any' (-)"
            )
        found[named(name, call)] = sign
    tagged = tuple((n, found[n]) for n in names if found.get(n, "-") != "-")
    if not tagged:
        raise UserError(
            f"{call} restricts nothing: that would be the end of the stream",
            hint="name what ends: scheme(trip='value'); for the end of a bounded run call ends()",
        )
    return tagged
