"""Makes and reads KvMetrics for a test, with Python's own pickle, pyzmq, msgspec and numpy.

SGLang's class is made anew in whichever module and form a request names, as its releases have had it.
One JSON request a line, {"cmd", ...arguments}; one answer a line, {"ok"} or {"error", "type"}.

Usage: kv_driver.py FOLDER-OF-MODULES
"""

import io
import pickle
import sys
import types

sys.path.insert(0, sys.argv[1])

import json_values  # noqa: E402
import msgspec  # noqa: E402
import numpy  # noqa: E402
import zmq  # noqa: E402
from kv_classes import FIELDS, class_of, filled  # noqa: E402

context = zmq.Context()
pull, push = context.socket(zmq.PULL), context.socket(zmq.PUSH)
pull.bind("inproc://kv")
push.connect("inproc://kv")

commands = {}


def command(function):
    commands[function.__name__] = function
    return function


# --- numbers


class Numpy1Scalar:
    """Travels as numpy 1 sends its scalars: by a function in a module that numpy 2 has moved."""

    def __init__(self, value):
        self._value = value

    def __reduce__(self):
        _, args = self._value.__reduce__()
        return numpy1_scalar, args


def numpy1_scalar(dtype, content):
    return numpy._core.multiarray.scalar(dtype, content)


numpy1_scalar.__module__ = "numpy.core.multiarray"
numpy1_scalar.__name__ = numpy1_scalar.__qualname__ = "scalar"
sys.modules["numpy.core.multiarray"] = types.ModuleType("numpy.core.multiarray")
sys.modules["numpy.core.multiarray"].scalar = numpy1_scalar


def as_sent(value, numpy1):
    return Numpy1Scalar(value) if numpy1 and isinstance(value, numpy.generic) else value


def plain_value(value):
    return value.item() if isinstance(value, numpy.generic) else value


# --- pickle


@command
def dumps(module, form, protocol, records, numpy1=False):
    made = class_of(module, form)
    pickles = []
    for values in records:
        metrics = filled(made, [as_sent(value, numpy1) for value in values])
        push.send_pyobj(metrics, protocol=protocol)
        pickles.append(pull.recv())
    return pickles


@command
def loads(module, form, pickles):
    made = class_of(module, form)
    records = []
    for content in pickles:
        try:
            push.send(content)
            metrics = pull.recv_pyobj()
            if type(metrics) is not made:
                raise TypeError(f"{type(metrics)} instead of {made}")
            records.append([plain_value(getattr(metrics, name)) for name in FIELDS])
        except Exception as error:
            records.append({"error": str(error), "type": type(error).__name__})
    return records


class Collector:
    """Takes whatever SGLang's class is made of."""

    def __init__(self, *args, **fields):
        self.__dict__.update(zip(FIELDS, args), **fields)

    def __setstate__(self, state):
        for part in state if isinstance(state, tuple) else (state,):
            self.__dict__.update(part or {})


class CollectingUnpickler(pickle.Unpickler):
    """Finds the class in any module, and nothing else that a KvMetrics does not need."""

    def find_class(self, module, name):
        if name == "KvMetrics" and module.startswith("sglang."):
            return Collector
        if (module.partition(".")[0], name) in ALLOWED:
            return super().find_class(module, name)
        raise pickle.UnpicklingError(f"not allowed: {module}.{name}")


ALLOWED = {
    ("msgspec", "rebuild"),
    ("numpy", "scalar"),
    ("numpy", "dtype"),
    ("_codecs", "encode"),
}


@command
def collect(pickles):
    """Reads pickles of any module and form; only such as were found harmless."""
    records = []
    for content in pickles:
        try:
            metrics = CollectingUnpickler(io.BytesIO(content)).load()
            records.append([plain_value(metrics.__dict__.get(name)) for name in FIELDS])
        except Exception as error:
            records.append({"error": str(error), "type": type(error).__name__})
    return records


# --- MessagePack


@command
def encode(module, records):
    made = class_of(module, "struct")
    encoder = msgspec.msgpack.Encoder()
    return [encoder.encode(filled(made, values)) for values in records]


@command
def decode(module, payloads):
    decoder = msgspec.msgpack.Decoder(class_of(module, "struct"))
    return [list(msgspec.structs.astuple(decoder.decode(content))) for content in payloads]


# --- requests


def answer(line):
    request = json_values.loads(line)
    try:
        return {"ok": commands[request.pop("cmd")](**request)}
    except Exception as error:
        return {"error": str(error), "type": type(error).__name__}


for request_line in sys.stdin:
    sys.stdout.write(json_values.dumps(answer(request_line)) + "\n")

context.destroy(linger=0)
