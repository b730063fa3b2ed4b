"""Serves SGLang's own `/v1/loads` under FastAPI and uvicorn, with SGLang's own reader.

Prints the port, and ends when its input does.

Usage: load_route.py FOLDER-OF-MODULES SLOT-FILE DP-SIZE
"""

import asyncio
import socket
import sys

import fastapi
import uvicorn
import uvloop

import sglang_load

module_dir, path, dp_size = sys.argv[1], sys.argv[2], int(sys.argv[3])
sglang = sglang_load.load(module_dir)


class TokenizerManager:
    """What the route asks; the same few lines are a method of SGLang's TokenizerManager."""

    def __init__(self):
        self.reader = sglang.ShmLoadSnapshotReader(path, dp_size)

    async def get_loads(self, include=None, dp_rank=None):
        if dp_rank is None:
            return self.reader.read_all()
        if dp_rank < 0 or dp_rank >= dp_size:
            return []
        load = self.reader.read(dp_rank)
        return [] if load is None else [load]


app = fastapi.FastAPI()
app.include_router(sglang_load.load_route(module_dir, TokenizerManager()).router)


async def main():
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    print(listener.getsockname()[1], flush=True)
    config = uvicorn.Config(app, http="httptools", log_level="critical", access_log=False, lifespan="off")
    server = uvicorn.Server(config)
    ended = asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    await asyncio.wait([ended, serving], return_when=asyncio.FIRST_COMPLETED)
    server.should_exit = server.force_exit = True
    await serving


uvloop.run(main())
