"""Python's side of one case of KvMetrics, timed within Python; see kv_metrics_ours.ts.

Usage: kv_metrics_reference.py MODULES CASE MESSAGES ROUND-MS WARM-UP-MS FORM
"""

import json
import math
import os
import pickle
import sys
import time

sys.path.insert(0, sys.argv[1])
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "peers"))

import msgspec  # noqa: E402
from kv_classes import class_of  # noqa: E402

name, path = sys.argv[2:4]
round_ms, warm_ms = map(int, sys.argv[4:6])
form = sys.argv[6]
clock = time.perf_counter_ns

OLDEST = "sglang.srt.managers.scheduler"
NEWEST = "sglang.srt.managers.scheduler_components.kv_events_publisher"
made = class_of(NEWEST if form == "struct" else OLDEST, form)
encoder, decoder = msgspec.msgpack.Encoder(), msgspec.msgpack.Decoder(made) if form == "struct" else None

with open(path) as file:
    messages = [bytes.fromhex(line) for line in file]


def back_to_back(function, inputs):
    """Calls the function on one input after the other, with as little around it as Python allows."""

    def timed(calls):
        rounds, rest = divmod(calls, len(inputs))
        begin = clock()
        for _ in range(rounds):
            for content in inputs:
                function(content)
        for content in inputs[:rest]:
            function(content)
        return clock() - begin

    return timed


def main():
    timed = {
        "decode-pickle": lambda: back_to_back(pickle.loads, messages),
        "decode-msgpack": lambda: back_to_back(decoder.decode, messages),
        "encode-pickle": lambda: back_to_back(
            lambda metrics: pickle.dumps(metrics, 5), [pickle.loads(one) for one in messages]
        ),
        "encode-msgpack": lambda: back_to_back(
            encoder.encode, [decoder.decode(one) for one in messages]
        ),
    }[name]()
    end = clock() + warm_ms * 1_000_000
    calls, per_call = 16, math.inf
    while clock() < end or calls * per_call < round_ms * 1e6 / 2:
        per_call = timed(calls) / calls
        calls = max(16, math.ceil(min(round_ms * 1e6 / per_call, calls * 2)))
    print(json.dumps({"calls": calls}), flush=True)
    for _ in sys.stdin:
        print(json.dumps({"ns": timed(calls) / calls}), flush=True)


try:
    main()
except KeyboardInterrupt:
    # Ctrl-C reaches this process too; bench/main.ts says what there is to say.
    sys.exit(130)
