/**
 * A simulated engine that emits KvMetrics. `examples/kv_metrics.ts` starts it as a process of its own;
 * by hand it can stand in for SGLang's scheduler before any receiver, such as Dynamo's worker:
 *
 * ```sh
 * deno run --allow-ffi --allow-read examples/kv_metrics/emitter.ts --endpoint tcp://127.0.0.1:5557
 * ```
 */

import { KV_METRICS_MODULES, KvMetricsEmitter } from "../../mod.ts";
import {
  numberFlag,
  readFlags,
  runCommand,
  say,
  stopSignal,
  UsageError,
  withTimeLimit,
} from "../command_line.ts";
import { emittingEngine } from "./emitting_engine.ts";

const USAGE = `Runs a simulated engine that emits KvMetrics.

  deno run --allow-ffi --allow-read examples/kv_metrics/emitter.ts --endpoint E [flags]

  --endpoint E      where the receiver is, such as tcp://127.0.0.1:5557
  --ranks N         data-parallel ranks, 1 to 64 (default 4)
  --msgpack         emit MessagePack instead of pickle
  --module M        the module of the receiver's class, for pickle (default: the newest of SGLang)
  --seconds T       end by itself
  --with-input      end when the standard input does
  --help            show this

  Modules of SGLang's releases:
${KV_METRICS_MODULES.map((module) => `    ${module}`).join("\n")}`;

async function main(): Promise<number> {
  const flags = readFlags(Deno.args, {
    endpoint: "string",
    ranks: "string",
    msgpack: "boolean",
    module: "string",
    seconds: "string",
    "with-input": "boolean",
    help: "boolean",
  });
  if (flags.help) {
    say(USAGE);
    return 0;
  }
  const ranks = numberFlag("ranks", flags.ranks, { low: 1, high: 64, whole: true }, 4);
  const seconds = numberFlag("seconds", flags.seconds, { low: 0, high: 1e6, whole: false }, null);
  if (flags.endpoint === undefined) throw new UsageError("Give --endpoint");

  using stop = stopSignal();
  const signals = [stop.signal];
  if (flags["with-input"]) signals.push(endOfInput());
  using emitter = new KvMetricsEmitter(flags.endpoint, {
    encoding: flags.msgpack ? "msgpack" : "pickle",
    ...(flags.module === undefined ? {} : { pickle: { module: flags.module } }),
  });
  using engine = emittingEngine(emitter, ranks);
  await engine.run({ signal: withTimeLimit(AbortSignal.any(signals), seconds) });
  return 0;
}

/** Aborts at the end of the input: a process that was killed cannot end its children. */
function endOfInput(): AbortSignal {
  const controller = new AbortController();
  void (async () => {
    // Not the stream: what still waits for it must not keep the process from ending.
    while (await Deno.stdin.read(new Uint8Array(64)) !== null);
    controller.abort();
  })();
  return controller.signal;
}

if (import.meta.main) await runCommand(USAGE, main);
