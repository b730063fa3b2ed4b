"""SGLang's own collector in a benchmark; see zmq_ours.ts.

Usage: zmq_reference.py MODULES PATH, then "endpoint", a number of messages, "idle SECONDS",
"turns COUNT", or
"serve SECONDS", which polls every 20 ms.

Its PULL conflates, and would see the last message of a connection only. Where every message is to be
counted, it gets a PULL that does not; its own drain, check and write are what is timed.
"""

import json
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "peers"))

import sglang_load  # noqa: E402
import zmq  # noqa: E402

load = sglang_load.load(sys.argv[1])
path = sys.argv[2]


class Counting:
    """A PULL that counts what it hands out, and ends a drain after so many."""

    def __init__(self, socket):
        self.socket = socket
        self.count = 0
        self.left = sys.maxsize

    def recv(self, flags):
        if self.left == 0:
            raise zmq.Again()
        self.left -= 1
        data = self.socket.recv(flags)
        self.count += 1
        return data

    def close(self):
        self.socket.close(linger=0)


socket = zmq.Context.instance().socket(zmq.PULL)
socket.setsockopt(zmq.RCVHWM, 0)
socket.bind("tcp://127.0.0.1:*")
endpoint = socket.getsockopt_string(zmq.LAST_ENDPOINT)
counting = Counting(socket)
collector = load.ZmqShmLoadSnapshotReader.__new__(load.ZmqShmLoadSnapshotReader)
collector._zmq = zmq
collector._socket = counting
collector._endpoint = endpoint
collector._shm_path = path
collector.dp_size = 8
collector._shm_reader = load.ShmLoadSnapshotReader(path, 8)
collector._shm_writers = {}


def say(answer):
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


def drain(count):
    end = counting.count + count
    while counting.count < end:
        socket.poll()
        collector._poll()


say({})
for line in sys.stdin:
    words = line.split()
    cpu = time.process_time_ns()
    if words[0] == "endpoint":
        say({"endpoint": endpoint})
    elif words[0] == "turns":
        before, begin = counting.count, time.perf_counter_ns()
        for _ in range(int(words[1])):
            counting.left = 8
            collector._poll()
        ns = time.perf_counter_ns() - begin
        counting.left = sys.maxsize
        say({"ns": ns, "count": counting.count - before})
    elif words[0] == "idle":
        time.sleep(float(words[1]))
        say({"cpuNs": (time.process_time_ns() - cpu) / float(words[1])})
    elif words[0] == "serve":
        end = time.monotonic() + float(words[1])
        while time.monotonic() < end:
            time.sleep(0.02)
            collector._poll()
        say({})
    else:
        drain(int(words[0]))
        say({"cpuNs": (time.process_time_ns() - cpu) / int(words[0])})
collector.close()
