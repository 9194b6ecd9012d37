"""Bytes: hashes of them, and texts that stand for them."""

# ruff: noqa: E501 - a row of a table or a template of SQL reads best as one line.
from __future__ import annotations

from penstock.sql.function import Function, function
from penstock.sql.term import BINARY, STRING, Term, Unfit, fill, raising


def _sha2(s: Term, bits: Term) -> Term:
    if bits.value not in (0, 256):
        raise Unfit(f"sha2(…, {bits.value}) is not available", "sha2(…, 256) is")
    return fill("sha256({0})", s, type=STRING)


def _charset(name: Term) -> None:
    if name.value.lower() not in ("utf-8", "utf8"):
        raise Unfit(f"the character set '{name.value}' is not available", "'utf-8' is")


def _encode(s: Term, charset: Term) -> Term:
    _charset(charset)
    return fill("encode({0})", s, type=BINARY)


def _decode(b: Term, charset: Term) -> Term:
    _charset(charset)
    return fill("decode({0})", b, type=STRING)


_UNHEX = (
    "CASE WHEN regexp_full_match({0}, '[0-9a-fA-F]*') THEN unhex({0})"
    f" WHEN {{0}} IS NOT NULL THEN {raising('a text that is not hexadecimal', BINARY)} END"
)
_UNBASE64 = (
    "CASE WHEN regexp_full_match({0}, '(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/][AQgw]==|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=)?')"
    f" THEN from_base64({{0}}) WHEN {{0}} IS NOT NULL THEN {raising('a text that is not base64', BINARY)} END"
)
_URL = "replace(replace(replace(url_encode({0}), '%20', '+'), '%2A', '*'), '~', '%7E')"
BYTES: tuple[Function, ...] = (
    *function("md5", "hashes", ("text", STRING, "md5({0})"), ("binary", STRING, "md5({0})")),
    *function("sha1 sha", "hashes", ("text", STRING, "sha1({0})"), ("binary", STRING, "sha1({0})")),
    *function("sha2", "hashes", ("text, int!", STRING, _sha2), ("binary, int!", STRING, _sha2), note="of 256 bits"),
    *function("hex", "hashes", ("text", STRING, "hex(encode({0}))"), ("binary", STRING, "hex({0})")),
    *function(
        "base64",
        "hashes",
        ("text", STRING, "base64(encode({0}))"),
        ("binary", STRING, "base64({0})"),
        note="as Spark writes it without line breaks",
    ),
    *function("encode", "hashes", ("string, string!", BINARY, _encode)),
    *function("decode", "hashes", ("binary, string!", STRING, _decode), note="raises for bytes that are not UTF-8"),
    *function("unhex", "hashes", ("string", BINARY, _UNHEX), note="raises for what is not hexadecimal"),
    *function("unbase64", "hashes", ("string", BINARY, _UNBASE64), note="raises for what base64 does not write"),
    *function("url_encode", "hashes", ("string", STRING, _URL)),
)
