"""Publications that say whether they are whole, as publication.ts makes them, for SGLang's module."""

import time

PRIME = 2_147_483_647


def check_value(dp_rank, incarnation, number, micros, first_micros):
    check = 7
    for value in (dp_rank, incarnation, number, micros, first_micros):
        check = (check * 31 + value) % PRIME
    return check


def snapshot_of(sglang, dp_rank, incarnation, number, micros, first_micros):
    check = check_value(dp_rank, incarnation, number, micros, first_micros)
    memory = queues = None
    if number % 3 == 1:
        memory = sglang.MemoryMetrics(check + 0.25, number + 0.25, 0.25, check)
    if number % 2 == 1:
        queues = sglang.QueueMetrics(number, incarnation, check, 0, check)
    return sglang.LoadSnapshot(
        timestamp=micros / 1e6,
        dp_rank=dp_rank,
        num_running_reqs=number,
        num_waiting_reqs=incarnation,
        num_used_tokens=check,
        num_total_tokens=check + 1,
        num_active_tokens=first_micros,
        max_total_num_tokens=check + 2,
        token_usage=(check % 1000) / 1024,
        decode_moments=[check + 0.5] * (number % 8) or None,
        memory=memory,
        queues=queues,
    )


def is_whole(sglang, snapshot):
    """Whether a snapshot is one publication, or the default one of a writer's start."""
    if snapshot.timestamp == 0:
        return snapshot == sglang.LoadSnapshot(dp_rank=snapshot.dp_rank)
    expected = snapshot_of(
        sglang,
        snapshot.dp_rank,
        snapshot.num_waiting_reqs,
        snapshot.num_running_reqs,
        round(snapshot.timestamp * 1e6),
        snapshot.num_active_tokens,
    )
    return snapshot == expected


def now_micros():
    return time.time_ns() // 1000
