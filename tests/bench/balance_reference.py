"""SGLang's own DPBudget, timed within Python; see balance_ours.ts.

Usage: balance_reference.py MODULES METHOD RANKS ROUND-MS WARM-UP-MS
"""

import json
import math
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "peers"))

from dp_budget import DPBudget, LoadBalanceMethod, load_of  # noqa: E402

method = LoadBalanceMethod.from_str(sys.argv[2])
ranks, round_ms, warm_ms = map(int, sys.argv[3:6])
clock = time.perf_counter_ns

budget = DPBudget(ranks)
budget.update_budget(
    [load_of(rank, 1.7e9, rank * 7 % 32, 0, rank * 7919 % 100_000) for rank in range(ranks)]
)


def timed(calls):
    dispatch = budget.dispatch
    begin = clock()
    for step in range(calls):
        dispatch(method, 100 + step % 997)
    return clock() - begin


def main():
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
