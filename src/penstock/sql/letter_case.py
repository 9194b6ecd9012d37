"""Capital and small letters, as Java has them; a text with a letter that DuckDB knows otherwise raises."""

from __future__ import annotations

from penstock.sql.term import STRING, raising


def _letters(ranges: str) -> str:
    """The inside of a set of characters, from code points such as `1E96-1E9A 587`."""
    bounds = [r.split("-") for r in ranges.split()]
    return "".join("-".join(f"\\x{{{b}}}" for b in pair) for pair in bounds)


#: Letters whose capital is several letters (beside ß), or is younger than DuckDB's tables.
UPPER_ODD = _letters(
    "149 19B 1F0 264 390 3B0 587 1C8A 1E96-1E9A 1F50 1F52 1F54 1F56 1F80-1FAF 1FB2-1FB4 1FB6 1FB7 1FBC 1FC2-1FC4 1FC6"
    " 1FC7 1FCC 1FD2 1FD3 1FD6 1FD7 1FE2-1FE4 1FE6 1FE7 1FF2-1FF4 1FF6 1FF7 1FFC A7CD A7CF A7D3 A7D5 A7DB FB00-FB06"
    " FB13-FB17 10D70-10D85 16EBB-16ED3"
)
#: İ, Σ (whose small letter depends on the word), and letters younger than DuckDB's tables.
LOWER_ODD = _letters("130 3A3 1C89 A7CB A7CC A7CE A7D2 A7D4 A7DA A7DC 10D50-10D65 16EA0-16EB8")


def _cased(name: str, odd: str, reason: str) -> str:
    inner = "upper(replace({0}, 'ß', 'SS'))" if name == "upper" else "lower({0})"
    fails = raising(reason, STRING)
    return (
        f"CASE WHEN strlen({{0}}) = length({{0}}) THEN {name}({{0}})"
        f" WHEN regexp_matches({{0}}, '[{odd}]') THEN {fails} ELSE {inner} END"
    )


UPPER = _cased("upper", UPPER_ODD, "upper(…) of a letter that has no capital of one letter")
LOWER = _cased("lower", LOWER_ODD, "lower(…) of Σ or İ, whose small letter depends on the word")
#: Words are what spaces part; the first letters of others than ASCII have a third case.
INITCAP = (
    "CASE WHEN strlen({0}) = length({0}) THEN array_to_string(list_transform(string_split(lower({0}), ' '),"
    " lambda w__: upper(w__[1]) || w__[2:]), ' ')"
    f" WHEN {{0}} IS NOT NULL THEN {raising('initcap(…) of texts beyond ASCII', STRING)} END"
)
