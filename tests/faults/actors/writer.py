"""SGLang's own writers in a process that publishes until its input ends, or a fault ends it.

Usage: writer.py FOLDER-OF-MODULES ORDER, with the order of writer.ts. How long the writes of each
output took is counted by powers of 2 ** (1 / 8) nanoseconds.
"""

import json
import math
import os
import sys
import threading
import time

sys.path[:0] = [
    os.path.dirname(os.path.dirname(os.path.abspath(__file__))),
    os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "peers"),
]

import sglang_load  # noqa: E402
from publication import now_micros, snapshot_of  # noqa: E402

sglang = sglang_load.load(sys.argv[1])
order = json.loads(sys.argv[2])
skew_micros = int(order["skewMs"] * 1000)
interval = order["intervalMs"] / 1000
burst = order["burstMs"] / 1000
outputs = order["outputs"]
numbers = [0] * len(outputs)
first_micros = [0] * len(outputs)
latencies = [{} for _ in outputs]
publications = 0
is_over = threading.Event()


def open_writer(output):
    kind = sglang.ShmLoadSnapshotWriter if output["kind"] == "shm" else sglang.ZmqLoadSnapshotWriter
    return kind(output["target"], output["dpSize"], output["dpRank"])


def publish(index):
    global publications
    output = outputs[index]
    now = now_micros()
    first_micros[index] = first_micros[index] or now
    numbers[index] += 1
    snapshot = snapshot_of(
        sglang,
        output["dpRank"],
        output["incarnation"],
        numbers[index],
        now + skew_micros,
        first_micros[index],
    )
    before = time.perf_counter_ns()
    writers[index].write(snapshot)
    took = time.perf_counter_ns() - before
    bucket = int(8 * math.log2(max(took, 1)))
    latencies[index][bucket] = latencies[index].get(bucket, 0) + 1
    publications += 1


def say(message):
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def report():
    say({"kind": "writer", "publications": publications, "refused": {}, "latencies": latencies})


def listen():
    global skew_micros, hot_until
    for line in sys.stdin:
        told = json.loads(line)
        if "skewMs" in told:
            skew_micros = int(told["skewMs"] * 1000)
        hot_until = time.monotonic() + told.get("hotMs", 0) / 1000
    is_over.set()


writers = [open_writer(output) for output in outputs]
threading.Thread(target=listen, daemon=True).start()
turn = 0
hot_until = 0
reported = time.monotonic()
while not is_over.is_set():
    turn += 1
    end = max(hot_until, time.monotonic() + (burst if turn % 20 == 0 else 0))
    while True:
        # Each is the first as often as the others.
        for place in range(len(outputs)):
            publish((place + turn) % len(outputs))
        if time.monotonic() >= end:
            break
    if turn == 1:
        say({"kind": "up"})
    if time.monotonic() > reported + 1:
        reported = time.monotonic()
        report()
    is_over.wait(interval)
report()
# A pyzmq context would wait for its sockets.
os._exit(0)
