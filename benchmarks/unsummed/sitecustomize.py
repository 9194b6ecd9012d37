"""On `PYTHONPATH` of a contestant that is to do without checksums: what is left of the time is what they cost."""

import zlib


def _nothing(data: object, value: int = 0) -> int:
    return 0


zlib.crc32 = _nothing
