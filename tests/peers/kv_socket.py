"""SGLang's scheduler and Dynamo's worker, as far as their sockets go: pyzmq's send_pyobj and recv_pyobj.

One JSON request a line, {"cmd", ...arguments}; one answer a line, {"ok"} or {"error", "type"}. Sockets
stay open until the input ends.

Usage: kv_socket.py FOLDER-OF-MODULES
"""

import sys

sys.path.insert(0, sys.argv[1])

import json_values  # noqa: E402
import msgspec  # noqa: E402
import zmq  # noqa: E402
from kv_classes import FIELDS, class_of, filled  # noqa: E402

WAIT_MS = 20_000

context = zmq.Context()
pushes = {}
pulls = {}

commands = {}


def command(function):
    commands[function.__name__] = function
    return function


def push_to(endpoint):
    """A socket as the scheduler's: connected, and without a limit."""
    if endpoint not in pushes:
        pushes[endpoint] = context.socket(zmq.PUSH)
        pushes[endpoint].setsockopt(zmq.SNDHWM, 0)
        pushes[endpoint].connect(endpoint)
    return pushes[endpoint]


@command
def send(endpoint, module, form, protocol, records):
    """Sends records as the scheduler does; protocol 0 is MessagePack."""
    made = class_of(module, form)
    socket = push_to(endpoint)
    for values in records:
        metrics = filled(made, values)
        if protocol == 0:
            socket.send(msgspec.msgpack.encode(metrics))
        else:
            socket.send_pyobj(metrics, protocol=protocol)
    return len(records)


@command
def bind(endpoint):
    """Binds a socket as Dynamo's worker does; tells the endpoint."""
    socket = context.socket(zmq.PULL)
    socket.setsockopt(zmq.RCVTIMEO, WAIT_MS)
    socket.bind(endpoint)
    bound = socket.getsockopt_string(zmq.LAST_ENDPOINT)
    pulls[bound] = socket
    return bound


@command
def receive(endpoint, module, form, count, msgpack=False):
    """Takes messages as the worker does; the class is the one that its SGLang has."""
    made = class_of(module, form)
    records = []
    for _ in range(count):
        socket = pulls[endpoint]
        if msgpack:
            metrics = msgspec.msgpack.decode(socket.recv(), type=made)
        else:
            metrics = socket.recv_pyobj()
        if type(metrics) is not made:
            raise TypeError(f"{type(metrics)} instead of {made}")
        records.append([getattr(metrics, name) for name in FIELDS])
    return records


@command
def close(endpoint):
    """Closes a socket of either kind."""
    (pushes.pop(endpoint, None) or pulls.pop(endpoint)).close(linger=0)


def answer(line):
    request = json_values.loads(line)
    try:
        return {"ok": commands[request.pop("cmd")](**request)}
    except Exception as error:
        return {"error": str(error), "type": type(error).__name__}


for request_line in sys.stdin:
    sys.stdout.write(json_values.dumps(answer(request_line)) + "\n")
    sys.stdout.flush()

context.destroy(linger=0)
