"""What the driver can do: each function with `@command` answers the request of its name.

What is opened gets a handle, a number. Snapshots are objects with SGLang's names; their sections are
lists, as on the wire.
"""

import fcntl
import os
import sys
import threading
import time
import types

import msgspec

import sglang_load
from loops import Loop, time_calls

sglang = sglang_load.load(sys.argv[1])
sections = {
    field.name: next(t for t in field.type.__args__ if t is not type(None))
    for field in msgspec.structs.fields(sglang.LoadSnapshot)
    if field.name in sglang._SECTION_FIELDS
}

handles = {}
commands = {}


def command(function):
    commands[function.__name__] = function
    return function


def keep(thing):
    handle = len(handles) + 1
    handles[handle] = thing
    return handle


# --- snapshots


def from_dict(values):
    """Makes a snapshot; msgspec does not check what it is given here."""
    return sglang.LoadSnapshot(
        **{
            name: sections[name](*value) if name in sections and value is not None else value
            for name, value in values.items()
        }
    )


def as_dict(snapshot):
    return {
        name: list(msgspec.structs.astuple(value)) if isinstance(value, msgspec.Struct) else value
        for name, value in msgspec.structs.asdict(snapshot).items()
    }


def read_result(snapshot):
    if snapshot is None:
        return None
    return {"snapshot": as_dict(snapshot), "reencoded": sglang.snapshot_encoder.encode(snapshot)}


def decode_one(payload):
    try:
        return read_result(sglang.snapshot_decoder.decode(payload))
    except Exception as error:
        return {"error": str(error), "type": type(error).__name__}


@command
def encode(snapshots):
    return [sglang.snapshot_encoder.encode(from_dict(values)) for values in snapshots]


@command
def decode(payloads):
    return [decode_one(payload) for payload in payloads]


@command
def to_dict(requests):
    results = []
    for values, include in requests:
        try:
            names = None if include is None else set(include)
            results.append({"dict": from_dict(values).to_dict(names)})
        except ValueError as error:
            results.append({"error": str(error), "type": type(error).__name__})
    return results


# --- layout and topology


@command
def constants():
    return {
        "magic": sglang.MAGIC,
        "version": sglang.VERSION,
        "header_size": sglang.HEADER_STRUCT.size,
        "slot_size": sglang.SLOT_SIZE,
    }


@command
def shm_path_for(names):
    return [sglang.shm_path_for(name) for name in names]


@command
def file_size(dp_size, **options):
    return sglang.file_size(dp_size, **options)


@command
def slot_offset(dp_rank, **options):
    return sglang.slot_offset(dp_rank, **options)


@command
def should_use_zmq(server):
    sglang_load.configure(server)
    return bool(sglang.should_use_zmq())


@command
def zmq_reader_owner(server, caller):
    sglang_load.configure(server)
    return bool(sglang.zmq_reader_owner(caller))


@command
def zmq_addr_for(port_args):
    return sglang._zmq_addr_for(types.SimpleNamespace(**port_args))


# --- writers


@command
def writer_open(path, dp_size, dp_rank):
    return keep(sglang.ShmLoadSnapshotWriter(path, dp_size, dp_rank))


@command
def zmq_writer_open(endpoint, dp_size, dp_rank):
    return keep(sglang.ZmqLoadSnapshotWriter(endpoint, dp_size, dp_rank))


@command
def write(handle, snapshots, interval_us=0):
    for number, values in enumerate(snapshots):
        if number and interval_us:
            time.sleep(interval_us / 1e6)
        handles[handle].write(from_dict(values))


@command
def write_raw(handle, payload):
    """Publishes any bytes in the module's own way."""
    writer = handles[handle]
    if isinstance(writer, sglang.ShmLoadSnapshotWriter):
        with sglang.file_lock(writer.fd, fcntl.LOCK_EX):
            writer._write_payload(msgspec.Raw(payload))
    else:
        writer._socket.send(payload, writer._zmq.NOBLOCK)


@command
def write_loop(handle, snapshot, moments=0, **limits):
    """Writes again and again. The step's number stands in the counts, so that a reader can tell a
    torn snapshot; `moments` lets the payload's length change from step to step."""
    writer, values = handles[handle], from_dict(snapshot)

    def step(number):
        values.timestamp = time.time()
        values.num_running_reqs = values.num_waiting_reqs = values.num_total_tokens = number
        if moments:
            values.decode_moments = [float(number)] * (number % (moments + 1))
        writer.write(values)

    return start_loop(step, **limits)


# --- readers


@command
def reader_open(path, dp_size):
    return keep(sglang.ShmLoadSnapshotReader(path, dp_size))


@command
def zmq_reader_open(endpoint, shm_path, dp_size):
    reader = sglang.ZmqShmLoadSnapshotReader(endpoint, shm_path, dp_size)
    bound = reader._socket.getsockopt_string(reader._zmq.LAST_ENDPOINT)
    return {"handle": keep(reader), "endpoint": bound}


@command
def read(handle, dp_rank):
    return read_result(handles[handle].read(dp_rank))


@command
def read_all(handle):
    return [read_result(snapshot) for snapshot in handles[handle].read_all()]


@command
def poll(handle):
    handles[handle].poll()


@command
def read_loop(handle, dp_rank=None, **limits):
    reader = handles[handle]
    if dp_rank is None:
        return start_loop(lambda number: reader.read_all(), **limits)
    return start_loop(lambda number: reader.read(dp_rank), **limits)


@command
def time_write(handle, snapshot, calls, rounds):
    writer, values = handles[handle], from_dict(snapshot)
    return time_calls(lambda: writer.write(values), calls, rounds)


@command
def time_read(handle, dp_rank, calls, rounds):
    reader = handles[handle]
    if dp_rank is None:
        return time_calls(reader.read_all, calls, rounds)
    return time_calls(lambda: reader.read(dp_rank), calls, rounds)


# --- locks, loops and handles


@command
def hold_lock(path, exclusive, seconds=None):
    """Takes the lock, and answers when it is held."""
    fd = os.open(path, os.O_RDWR)
    fcntl.flock(fd, fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH)
    lock = Lock(fd)
    if seconds is not None:
        timer = threading.Timer(seconds, lock.close)
        timer.daemon = True
        timer.start()
    return keep(lock)


class Lock:
    def __init__(self, fd):
        self._fds = [fd]

    def close(self):
        # The timer and the test may both come: `pop` lets one of them close.
        try:
            os.close(self._fds.pop())
        except IndexError:
            pass


def start_loop(step, **limits):
    loop = Loop(step, **limits)
    loop.start()
    return keep(loop)


@command
def loop_stop(handle):
    handles[handle].stop()


@command
def loop_result(handle):
    return handles[handle].result()


@command
def close(handle):
    handles[handle].close()


# --- what is served over HTTP


@command
def prometheus_text(snapshots, include):
    """SGLang's text for `format=prometheus`."""
    route = sys.modules.get("sglang.srt.entrypoints.v1_loads") or sglang_load.load_route(sys.argv[1])
    chosen = None if include is None else set(include)
    response = route._format_loads_prometheus([from_dict(values) for values in snapshots], chosen)
    return response.body.decode()


@command
def parse_prometheus(text):
    """What Python's own client reads out of a scrape."""
    from prometheus_client.parser import text_string_to_metric_families

    return [
        {
            "name": family.name,
            "type": family.type,
            "help": family.documentation,
            "samples": [[one.name, one.labels, float(one.value)] for one in family.samples],
        }
        for family in text_string_to_metric_families(text)
    ]
