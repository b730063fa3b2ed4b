"""Loads SGLang's own load module, and its route, without SGLang around them.

The module takes a handful of names from the rest of SGLang, which would bring in torch and a GPU
stack. They are replaced by stand-ins that answer as a server without peers to restrict would.
"""

import importlib.util
import ipaddress
import sys
import types

SERVER_DEFAULTS = {
    "attn_dp_enabled": False,
    "nnodes": 1,
    "node_rank": 0,
    "num_dp_ranks": 1,
    "load_balance_method": "round_robin",
    "tokenizer_worker_num": 1,
    "use_zmq": False,
}

# What the stand-ins of SGLang's runtime context answer; `configure` changes it.
server = types.SimpleNamespace(**SERVER_DEFAULTS)


def configure(settings):
    """Sets the server's arguments; those left out get their defaults."""
    unknown = settings.keys() - SERVER_DEFAULTS.keys()
    if unknown:
        raise ValueError(f"unknown server settings: {sorted(unknown)}")
    server.__dict__.update(SERVER_DEFAULTS | settings)


def load(module_dir):
    """Returns the module `load_snapshot` out of the folder that setup.ts filled."""
    _stand_in("sglang")
    _stand_in("sglang.srt")
    _stand_in("sglang.srt.managers")
    _stand_in("sglang.srt.utils")
    use_zmq = types.SimpleNamespace(get=lambda: server.use_zmq)
    _stand_in(
        "sglang.srt.environ",
        envs=types.SimpleNamespace(SGLANG_LOAD_SNAPSHOT_USE_ZMQ=use_zmq),
    )
    _stand_in(
        "sglang.srt.runtime_context",
        get_parallel=lambda: server,
        get_serving=lambda: server,
    )
    _stand_in(
        "sglang.srt.utils.network",
        is_zmq_endpoint_ipv6=_names_ipv6_host,
        restrict_zmq_peers=lambda context, socket: None,
        zmq_connect=lambda socket, endpoint: socket.connect(endpoint),
    )
    return _own_module(module_dir, "sglang.srt.managers.load_snapshot")


def load_route(module_dir, tokenizer_manager=None):
    """Returns the module `v1_loads`; `load` comes first."""
    server.tp_size, server.pp_size = 1, 1
    state = types.SimpleNamespace(tokenizer_manager=tokenizer_manager)
    _stand_in("sglang.version", __version__="0.5.23")
    _stand_in("sglang.srt.entrypoints")
    _stand_in("sglang.srt.entrypoints.http_server", get_global_state=lambda: state)
    sys.modules["sglang.srt.utils"].get_device_name = lambda: None
    return _own_module(module_dir, "sglang.srt.entrypoints.v1_loads")


def _own_module(module_dir, name):
    path = f"{module_dir}/{name.replace('.', '/')}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    # msgspec resolves the annotations of a struct through its module's entry here.
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _stand_in(name, **names):
    module = types.ModuleType(name)
    module.__dict__.update(names)
    sys.modules[name] = module


def _names_ipv6_host(endpoint):
    host, bracket, _ = endpoint.removeprefix("tcp://[").partition("]")
    if not endpoint.startswith("tcp://[") or not bracket:
        return False
    try:
        ipaddress.IPv6Address(host)
    except ValueError:
        return False
    return True
