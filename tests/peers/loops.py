"""Calls made many times: beside the command loop until told to stop, or timed in rounds."""

import threading
import time


class Loop:
    """Runs `step(i)` for i = 1, 2, ... in a thread of its own."""

    def __init__(self, step, count=None, seconds=None, interval_us=0):
        self._step = step
        self._count = count
        self._seconds = seconds
        self._interval_ns = int(interval_us * 1000)
        self._stop = threading.Event()
        self._begun = threading.Event()
        self._error = None
        self._elapsed = 0.0
        self._nanoseconds = []
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self):
        """Returns when the first step is done, or has failed."""
        self._thread.start()
        self._begun.wait()

    def stop(self):
        self._stop.set()

    def result(self):
        """Waits for the end; how many steps there were and how long they took."""
        self._thread.join()
        if self._error is not None:
            raise self._error
        return {
            "steps": len(self._nanoseconds),
            "seconds": self._elapsed,
            "latency_us": _percentiles(self._nanoseconds),
        }

    def _run(self):
        step, stop, clock, times = self._step, self._stop, time.perf_counter_ns, self._nanoseconds
        begin = clock()
        end = None if self._seconds is None else begin + int(self._seconds * 1e9)
        due = begin
        try:
            while not stop.is_set() and (self._count is None or len(times) < self._count):
                before = clock()
                if end is not None and before >= end:
                    break
                step(len(times) + 1)
                times.append(clock() - before)
                if len(times) == 1:
                    self._begun.set()
                if self._interval_ns:
                    # A late step does not make the next ones hurry.
                    due = max(due + self._interval_ns, clock())
                    stop.wait((due - clock()) / 1e9)
        except Exception as error:
            self._error = error
        self._elapsed = (clock() - begin) / 1e9
        self._begun.set()


def _percentiles(nanoseconds):
    ordered = sorted(nanoseconds) or [0]
    at = lambda share: ordered[min(len(ordered) - 1, int(len(ordered) * share))] / 1000
    return {
        "p50": at(0.5),
        "p90": at(0.9),
        "p99": at(0.99),
        "p999": at(0.999),
        "max": ordered[-1] / 1000,
        "mean": sum(ordered) / len(ordered) / 1000,
    }


def time_calls(call, calls, rounds):
    """The microseconds that one call takes, by round."""
    microseconds = []
    for _ in range(rounds):
        begin = time.perf_counter_ns()
        for _ in range(calls):
            call()
        microseconds.append((time.perf_counter_ns() - begin) / calls / 1000)
    return microseconds
