"""SGLang's own side of one case, timed within Python; see ours.ts, timing.ts and ours_cases.ts.

Usage: reference.py MODULES CASE SLOT-FILE PUBLICATIONS RANKS ROUND-MS WARM-UP-MS
"""

import json
import math
import mmap
import os
import statistics
import struct
import sys
import time

sys.path.insert(0, sys.argv[1])
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "peers"))

import sglang_load  # noqa: E402

sglang = sglang_load.load(sys.argv[1])
name, shm, publications_path = sys.argv[2:5]
ranks, round_ms, warm_ms = map(int, sys.argv[5:8])

VERSIONS = 16
clock = time.perf_counter_ns

with open(publications_path, "rb") as file:
    publications = file.read()
STRIDE = len(publications) // (VERSIONS * ranks)


def image(version, dp_rank):
    at = (version * ranks + dp_rank) * STRIDE
    return publications[at : at + STRIDE]


def payloads(dp_rank):
    images = [image(version, dp_rank) for version in range(VERSIONS)]
    return [found[4 : 4 + struct.unpack_from("<I", found)[0]] for found in images]


# --- timing


def back_to_back(call):
    def timed(first, calls):
        begin = clock()
        for step in range(first, first + calls):
            call(step)
        return clock() - begin

    return timed


def one_by_one(prepare, call):
    cost = clock_cost()

    def timed(first, calls):
        total = 0
        for step in range(first, first + calls):
            prepare(step)
            begin = clock()
            call(step)
            total += clock() - begin
        return total - calls * cost

    return timed


def clock_cost():
    costs = []
    for _ in range(301):
        total = 0
        for _ in range(300):
            begin = clock()
            total += clock() - begin
        costs.append(total / 300)
    return statistics.median(costs)


# --- cases


def write():
    dp_rank = ranks >> 1
    snapshots = [sglang.snapshot_decoder.decode(payload) for payload in payloads(dp_rank)]
    writer = sglang.ShmLoadSnapshotWriter(shm, ranks, dp_rank)
    return back_to_back(lambda step: writer.write(snapshots[step % VERSIONS]))


def read(changed):
    reader = sglang.ShmLoadSnapshotReader(shm, ranks)
    if not changed:
        return back_to_back(lambda step: reader.read(step % ranks))
    slots = map_slots()
    images = [[image(version, r) for r in range(ranks)] for version in range(VERSIONS)]

    def poke(step):
        dp_rank = step % ranks
        start = sglang.slot_offset(dp_rank)
        slots[start : start + STRIDE] = images[(step // ranks + 1) % VERSIONS][dp_rank]

    return one_by_one(poke, lambda step: reader.read(step % ranks))


def read_all(changed):
    reader = sglang.ShmLoadSnapshotReader(shm, ranks)
    if not changed:
        return back_to_back(lambda step: reader.read_all())
    slots = map_slots()
    images = [[image(version, r) for r in range(ranks)] for version in range(VERSIONS)]
    starts = [sglang.slot_offset(dp_rank) for dp_rank in range(ranks)]

    def poke(step):
        for start, bytes_of_slot in zip(starts, images[(step + 1) % VERSIONS]):
            slots[start : start + STRIDE] = bytes_of_slot

    return one_by_one(poke, lambda step: reader.read_all())


def map_slots():
    fd = os.open(shm, os.O_RDWR)
    return mmap.mmap(fd, sglang.file_size(ranks), access=mmap.ACCESS_WRITE)


def in_turn():
    """All payloads, the ranks taking turns."""
    by_rank = [payloads(dp_rank) for dp_rank in range(ranks)]
    return [by_rank[r][version] for version in range(VERSIONS) for r in range(ranks)]


def decode():
    """msgspec's typed decode of a slice of a mapping, as SGLang's reader calls it."""
    found = in_turn()
    mapped = mmap.mmap(-1, len(found) * STRIDE)
    bounds = []
    for number, payload in enumerate(found):
        begin = number * STRIDE
        mapped[begin : begin + len(payload)] = payload
        bounds.append((begin, begin + len(payload)))
    decoder, count = sglang.snapshot_decoder, len(found)

    def call(step):
        begin, end = bounds[step % count]
        decoder.decode(mapped[begin:end])

    return back_to_back(call)


def encode():
    snapshots = [sglang.snapshot_decoder.decode(payload) for payload in in_turn()]
    encoder, count = sglang.snapshot_encoder, len(snapshots)
    return back_to_back(lambda step: encoder.encode(snapshots[step % count]))


cases = {
    "write": write,
    "read-changed": lambda: read(True),
    "read-unchanged": lambda: read(False),
    "read-all-changed": lambda: read_all(True),
    "read-all-unchanged": lambda: read_all(False),
    "decode": decode,
    "decode-once": decode,
    "encode": encode,
    "encode-once": encode,
}


def main():
    timed = cases[name]()
    end = clock() + warm_ms * 1_000_000
    first, calls, per_call = 0, 16, math.inf
    while clock() < end or calls * per_call < round_ms * 1e6 / 2:
        begin = clock()
        timed(first, calls)
        first += calls
        per_call = (clock() - begin) / calls
        calls = max(16, math.ceil(min(round_ms * 1e6 / per_call, calls * 2)))
    print(json.dumps({"calls": calls}), flush=True)
    for _ in sys.stdin:
        took = timed(first, calls)
        first += calls
        print(json.dumps({"ns": took / calls}), flush=True)


try:
    main()
except KeyboardInterrupt:
    # Ctrl-C reaches this process too; bench/main.ts says what there is to say.
    sys.exit(130)
