"""Sends load snapshots over ZeroMQ for a benchmark.

Usage: zmq_sender.py MODULES ENDPOINT, then lines of "COUNT GROUP PAUSE_US" or "paced SECONDS PER_SECOND"
COUNT messages in groups, rank by rank, with a pause between groups; or SGLang's own writers of 8 ranks at
a pace, with the time of sending as their timestamp.
"""

import json
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "peers"))

import sglang_load  # noqa: E402
import zmq  # noqa: E402

load = sglang_load.load(sys.argv[1])
endpoint = sys.argv[2]
RANKS = 8


def snapshot(rank, stamp, step):
    return load.LoadSnapshot(
        timestamp=stamp,
        dp_rank=rank,
        num_running_reqs=20 + step % 40,
        num_waiting_reqs=step % 9,
        num_used_tokens=100_000 + step,
        num_total_tokens=120_000 + step,
        max_total_num_tokens=500_000,
        max_running_requests=256,
        token_usage=0.2,
        gen_throughput=1234.5,
        memory=load.MemoryMetrics(15.2, 40.1, 2.5, 500_000),
        queues=load.QueueMetrics(step % 9, 0, 0, 0, 0),
    )


def say(answer):
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


def send(count, group, pause):
    for start in range(0, count, group):
        for step in range(start, min(start + group, count)):
            socket.send(payloads[step % len(payloads)])
        if pause:
            time.sleep(pause)


def send_paced(seconds, rate):
    writers = [load.ZmqLoadSnapshotWriter(endpoint, RANKS, rank) for rank in range(RANKS)]
    time.sleep(0.3)
    begin = time.perf_counter()
    for step in range(int(seconds * rate)):
        due = begin + step / rate
        while (left := due - time.perf_counter()) > 0:
            time.sleep(left)
        writers[step % RANKS].write(snapshot(step % RANKS, time.time(), step))
    time.sleep(0.1)
    for writer in writers:
        writer.close()


payloads = [
    load.snapshot_encoder.encode(snapshot(step % RANKS, 1.7e9 + step, step)) for step in range(512)
]
socket = zmq.Context.instance().socket(zmq.PUSH)
socket.setsockopt(zmq.SNDHWM, 0)
socket.setsockopt(zmq.LINGER, 0)
socket.connect(endpoint)
say({})
for line in sys.stdin:
    words = line.split()
    if words[0] == "paced":
        send_paced(float(words[1]), float(words[2]))
    else:
        send(int(words[0]), int(words[1]), int(words[2]) / 1e6)
    say({})
