"""SGLang's class KvMetrics, made anew in whichever module and form, as its releases have had it."""

import dataclasses
import sys
import types

import msgspec

FIELDS = {
    "request_active_slots": int,
    "request_total_slots": int,
    "kv_active_blocks": int,
    "kv_total_blocks": int,
    "num_requests_waiting": int,
    "gpu_cache_usage_perc": float,
    "gpu_prefix_cache_hit_rate": float,
    "data_parallel_rank": int,
}


def module_named(name):
    """A module on the fly, and the packages around it."""
    parts = name.split(".")
    for count in range(1, len(parts) + 1):
        path = ".".join(parts[:count])
        if path not in sys.modules:
            sys.modules[path] = types.ModuleType(path)
    return sys.modules[name]


def plain_class():
    class KvMetrics:
        def __init__(self):
            for name in FIELDS:
                setattr(self, name, None)

    return KvMetrics


def bare_class():
    class KvMetrics:
        pass

    return KvMetrics


def dataclass_class(**options):
    zeros = [(name, kind, dataclasses.field(default=kind())) for name, kind in FIELDS.items()]
    return dataclasses.make_dataclass("KvMetrics", zeros, **options)


def struct_class(**options):
    zeros = [(name, kind, kind()) for name, kind in FIELDS.items()]
    return msgspec.defstruct("KvMetrics", zeros, tag=True, array_like=True, **options)


FORMS = {
    "plain": plain_class,
    "bare": bare_class,
    "dataclass": dataclass_class,
    "slots": lambda: dataclass_class(slots=True),
    "struct": lambda: struct_class(kw_only=True),
    "positional": struct_class,
}


def class_of(module, form):
    """Makes the class, and puts it where pickle looks for it."""
    made = FORMS[form]()
    made.__module__ = module
    made.__qualname__ = "KvMetrics"
    module_named(module).KvMetrics = made
    return made


def filled(made, values):
    metrics = made()
    for name, value in zip(FIELDS, values):
        setattr(metrics, name, value)
    return metrics
