"""Python's side of a case of receiving, by pyzmq's own recv_pyobj; see kv_receive_ours.ts.

Usage: kv_receive_reference.py MODULES pickle|msgpack
"""

import json
import os
import sys
import time

sys.path.insert(0, sys.argv[1])
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "peers"))

import msgspec  # noqa: E402
import zmq  # noqa: E402
from kv_classes import class_of  # noqa: E402

NEWEST = "sglang.srt.managers.scheduler_components.kv_events_publisher"
made = class_of(NEWEST, "struct")
decoder = msgspec.msgpack.Decoder(made)

context = zmq.Context()
socket = context.socket(zmq.PULL)
socket.bind("tcp://127.0.0.1:*")
newest = {}


def receive_pickle():
    metrics = socket.recv_pyobj()
    newest[metrics.data_parallel_rank] = metrics


def receive_msgpack():
    metrics = decoder.decode(socket.recv())
    newest[metrics.data_parallel_rank] = metrics


receive = receive_msgpack if sys.argv[2] == "msgpack" else receive_pickle


def say(answer):
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


say({})
for line in sys.stdin:
    if line.strip() == "endpoint":
        say({"endpoint": socket.getsockopt_string(zmq.LAST_ENDPOINT)})
        continue
    count = int(line)
    receive()
    begin, cpu = time.perf_counter_ns(), time.process_time_ns()
    for _ in range(count - 1):
        receive()
    wall, cpu = time.perf_counter_ns() - begin, time.process_time_ns() - cpu
    say({"ns": wall / count, "cpuNs": cpu / count, "taken": count, "refused": 0})
context.destroy(linger=0)
