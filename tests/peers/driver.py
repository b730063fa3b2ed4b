"""Drives SGLang's own load module on behalf of a test: one JSON request a line, one answer a line.

A request is {"id", "cmd", ...arguments}; the answer {"id", "ok"} or {"id", "error", "type"}. Answers
come in the order of the requests, but for `loop_result`, which is answered when the loop ends. The
program ends when its input does.

Usage: driver.py FOLDER-OF-MODULES
"""

import os
import sys
import threading

sys.path.insert(0, sys.argv[1])

import json_values  # noqa: E402
from commands import commands  # noqa: E402

output_lock = threading.Lock()


def answer(request):
    request_id, name = request.pop("id"), request.pop("cmd")
    try:
        line = json_values.dumps({"id": request_id, "ok": commands[name](**request)})
    except Exception as error:
        kind = type(error).__name__
        line = json_values.dumps({"id": request_id, "error": str(error), "type": kind})
    with output_lock:
        sys.stdout.write(line + "\n")
        sys.stdout.flush()


for request_line in sys.stdin:
    request = json_values.loads(request_line)
    if request["cmd"] == "loop_result":
        threading.Thread(target=answer, args=(request,), daemon=True).start()
    else:
        answer(request)

# Loops may still run, and a pyzmq context would wait for its sockets.
os._exit(0)
