/**
 * A small reverse proxy that gives each OpenAI-style request the rank where it waits least: over an
 * embedded, simulated engine, or over the servers of a real one.
 *
 * ```sh
 * deno task route
 * curl -N -i http://127.0.0.1:8686/v1/completions -d '{"prompt": "Hello", "stream": true}'
 * ```
 *
 * The task is `deno run --allow-ffi --allow-read --allow-net=127.0.0.1 examples/router.ts` with
 * `--unstable-no-legacy-abort`. Without that flag it works as well, but Deno warns once that it ends
 * the signal of each request, also of one that was answered.
 */

import { DpRouter } from "../mod.ts";
import {
  listenAt,
  numberFlag,
  portFlag,
  readFlags,
  runCommand,
  say,
  stopSignal,
  untilAborted,
  UsageError,
  withTimeLimit,
} from "./command_line.ts";
import { SimulatedEngine } from "./engine.ts";
import { NO_ARRIVALS } from "./engine/workload.ts";
import {
  type ChosenEngine,
  chosenEngine,
  ENGINE_FLAGS,
  openReader,
  ownPath,
  whileRunning,
} from "./own_engine.ts";
import { backendUrls, httpBackend } from "./router/http_backend.ts";
import { errorResponse } from "./router/openai.ts";
import { type Backend, proxy } from "./router/proxy.ts";
import { ranksApi } from "./router/ranks_api.ts";
import { simulatedBackend } from "./router/simulated_backend.ts";

const USAGE = `Gives each OpenAI-style request the rank where it waits least, as a reverse proxy.

  deno task route [flags]

  Without a name it runs a simulated engine that has no other requests, and answers with words.

  --ranks N         ranks of the simulated engine, 1 to 512 (default 8)
  --instance-id X   choose by the load of the engine with this instance id
  --path P          choose by the load of the engine that publishes to this slot file
  --backend URL     where a rank of that engine answers; once for each, rank 0 first. Beyond
                    127.0.0.1 Deno asks for --allow-net
  --port N          port to listen at, on 127.0.0.1 (default 8686; 0 has the system choose)
  --seconds T       end by itself
  --help            show this

  POST /v1/chat/completions, POST /v1/completions and GET /v1/models go to a rank, which the
  header x-dp-rank names. GET /ranks tells of all; PUT and DELETE /ranks/N/drain drain one and
  take it in again.

  Exit code: 0, 1 if it cannot be served, 2 for a wrong command line.`;

/** What the command line asks for. */
interface Request extends ChosenEngine {
  readonly backends: readonly URL[];
  readonly port: number;
  readonly seconds: number | null;
}

async function main(): Promise<number> {
  const request = readRequest(Deno.args);
  if (request === "help") {
    say(USAGE);
    return 0;
  }
  using stop = stopSignal();
  const signal = withTimeLimit(stop.signal, request.seconds);
  const { path, port, ranks, backends } = request;
  if (path !== null) return await route(path, httpBackend(backends), port, signal);

  const simulated = ownPath();
  using engine = SimulatedEngine.publishingTo(simulated, { dpSize: ranks, arrivals: NO_ARRIVALS });
  engine.step(0); // each rank has told that it is idle before the first request comes
  const backend = simulatedBackend(engine.schedulers);
  return await whileRunning(engine, signal, (both) => route(simulated, backend, port, both));
}

function readRequest(args: readonly string[]): Request | "help" {
  const flags = readFlags(args, {
    ...ENGINE_FLAGS,
    backend: "strings",
    port: "string",
    seconds: "string",
    help: "boolean",
  });
  if (flags.help) return "help";
  const engine = chosenEngine(flags);
  const backends = backendUrls(flags.backend ?? []);
  if ((engine.path === null) !== (backends.length === 0)) {
    throw new UsageError("A real engine takes both its name and --backend for each rank");
  }
  return {
    ...engine,
    backends,
    port: portFlag(flags.port, 8686),
    seconds: numberFlag("seconds", flags.seconds, { low: 0, high: 1e6, whole: false }, null),
  };
}

/** Routes by a slot file until the signal is aborted. @returns The exit code. */
async function route(
  path: string,
  backend: Backend,
  port: number,
  signal: AbortSignal,
): Promise<number> {
  using reader = openReader(path);
  using router = new DpRouter(reader);
  const toRanks = proxy(router, backend, signal);
  const toOperator = ranksApi(router, reader);
  const server = listenAt(port, () =>
    Deno.serve(
      { hostname: "127.0.0.1", port, signal, onListen: () => {}, onError: broken(signal) },
      (request) => toOperator(request) ?? toRanks(request),
    ));
  const url = `http://127.0.0.1:${server.addr.port}`;
  say(`Routing by ${path}`);
  say(`  curl -N -i ${url}/v1/completions -d '{"prompt": "Hello", "stream": true}'`);
  say(`  deno run --allow-ffi --allow-read examples/start.ts --path ${path}`);
  await untilAborted(signal);
  await server.finished;
  return 0;
}

/** What is said of an answer that breaks off; nothing if it is we who end it. */
function broken(signal: AbortSignal): (error: unknown) => Response {
  return (error) => {
    if (!signal.aborted) say(`An answer broke off: ${error}`, Deno.stderr);
    return errorResponse(502, "bad_gateway", "The answer broke off");
  };
}

if (import.meta.main) await runCommand(USAGE, main);
