"""SGLang's own reader, which opens the slot files anew each time, as it does not follow them.

Usage: reader.py FOLDER-OF-MODULES ORDER, with {"sources": [{"name", "path"}], "intervalMs"}.
"""

import json
import os
import sys
import threading
import time

sys.path[:0] = [
    os.path.dirname(os.path.dirname(os.path.abspath(__file__))),
    os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "peers"),
]

import sglang_load  # noqa: E402
from publication import is_whole  # noqa: E402

sglang = sglang_load.load(sys.argv[1])
order = json.loads(sys.argv[2])
is_over = threading.Event()
reads = publications = failures = 0


def say(message):
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def listen():
    for _ in sys.stdin:
        pass
    is_over.set()


def dp_size_of(path):
    with open(path, "rb") as file:
        return int.from_bytes(file.read(8)[6:8], "little")


def look(source):
    """Whatever a fault did to the file may fail here; what is read has to be whole."""
    global reads, publications, failures
    try:
        reader = sglang.ShmLoadSnapshotReader(source["path"], dp_size_of(source["path"]))
    except Exception:
        failures += 1
        return
    try:
        snapshots = reader.read_all()
    except Exception:
        failures += 1
        return
    finally:
        reader.close()
    reads += 1
    for snapshot in snapshots:
        publications += 1
        if not is_whole(sglang, snapshot):
            detail = f"SGLang's reader read a torn snapshot from {source['name']}: {snapshot}"
            say({"kind": "broken", "invariant": "torn", "detail": detail})


threading.Thread(target=listen, daemon=True).start()
say({"kind": "up"})
reported = time.monotonic()
while not is_over.wait(order["intervalMs"] / 1000):
    for source in order["sources"]:
        look(source)
    if time.monotonic() > reported + 1:
        reported = time.monotonic()
        say({"kind": "python-reader", "reads": reads, "failures": failures})
say({"kind": "python-reader", "reads": reads, "failures": failures})
os._exit(0)
