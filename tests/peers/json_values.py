"""Values of Python as JSON, without loss; driver_values.ts is the other end.

JSON has one kind of number. So a float travels as {"f": its 8 bytes in hex, big endian}, which also
keeps NaN, infinities and -0.0; an int as a number up to 2^53 and as {"i": its digits} beyond; bytes
as {"b": hex}. {"np": [type, value]} makes a numpy scalar, which never comes back.
"""

import json
import struct

_EXACT = 2**53 - 1


def dumps(value):
    return json.dumps(_plain(value), separators=(",", ":"))


def loads(line):
    return json.loads(line, object_hook=_restored)


def _plain(value):
    if isinstance(value, float):
        return {"f": struct.pack(">d", value).hex()}
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > _EXACT:
        return {"i": str(value)}
    if isinstance(value, bytes):
        return {"b": value.hex()}
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value


def _restored(entry):
    if len(entry) != 1:
        return entry
    ((tag, content),) = entry.items()
    if tag == "f":
        return struct.unpack(">d", bytes.fromhex(content))[0]
    if tag == "i":
        return int(content)
    if tag == "b":
        return bytes.fromhex(content)
    if tag == "np":
        import numpy

        return getattr(numpy, content[0])(content[1])
    return entry
