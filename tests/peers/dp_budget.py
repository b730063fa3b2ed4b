"""Runs SGLang's own DPBudget, and its controller's round robin, on sequences of updates and dispatches.

They are taken out of the wheel's controller module as they stand there. The module itself cannot be
imported without SGLang's schedulers and a GPU stack, so only what is needed of it is compiled; nothing
in that is changed.

One JSON request a line, a list of sequences; one answer a line. A sequence is {"ranks", "steps"}; a step
is a list of loads, [rank, timestamp, running, waiting, tokens], a dispatch, {"method", "tokens"}, or the
ranks that are active for round robin from then on, {"active"}. The answer to a sequence is the list of ranks that were chosen, and the counts at the end.

Usage: dp_budget.py FOLDER-OF-MODULES
"""

import ast
import enum
import json
import sys
import types

PATH = f"{sys.argv[1]}/sglang/srt/managers/data_parallel_controller.py"
CLASSES = ("LoadBalanceMethod", "DPBudget")
METHOD = "round_robin_scheduler"

sent = []


def take_out():
    with open(PATH) as file:
        tree = ast.parse(file.read(), PATH)
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    controller = classes["DataParallelController"]
    method = next(node for node in controller.body if getattr(node, "name", None) == METHOD)
    tree.body = [*(classes[name] for name in CLASSES), method]
    names = {
        "Enum": enum.Enum,
        "auto": enum.auto,
        "Req": object,
        "logger": types.SimpleNamespace(debug=lambda text: None),
        "sock_send": lambda worker, request: sent.append(worker),
    }
    exec(compile(tree, PATH, "exec"), names)
    return [names[name] for name in (*CLASSES, METHOD)]


LoadBalanceMethod, DPBudget, round_robin_scheduler = take_out()


def load_of(rank, timestamp, running, waiting, tokens):
    return types.SimpleNamespace(
        dp_rank=rank,
        timestamp=timestamp,
        num_running_reqs=running,
        num_waiting_reqs=waiting,
        num_total_tokens=tokens,
    )


def run(ranks, steps):
    budget = DPBudget(ranks)
    controller = types.SimpleNamespace(
        maybe_external_dp_rank_routing=lambda request: False,
        round_robin_counter=0,
        status=[True] * ranks,
        workers=list(range(ranks)),
        _active_workers=list(range(ranks)),
    )
    chosen = []
    for step in steps:
        if isinstance(step, list):
            budget.update_budget([load_of(*values) for values in step])
        elif "active" in step:
            controller._active_workers = step["active"]
        elif step["method"] == "round_robin":
            round_robin_scheduler(controller, None)
            chosen.append(sent.pop())
        else:
            method = LoadBalanceMethod.from_str(step["method"])
            tokens = {} if step["tokens"] is None else {"estimated_tokens": step["tokens"]}
            chosen.append(budget.dispatch(method, **tokens))
    return {
        "chosen": chosen,
        "requests": budget.total_requests,
        "tokens": budget.total_tokens,
    }


if __name__ == "__main__":
    for line in sys.stdin:
        print(json.dumps([run(**sequence) for sequence in json.loads(line)]), flush=True)
