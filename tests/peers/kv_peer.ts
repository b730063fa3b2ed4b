// deno-lint-ignore-file no-console -- the reason for a test that is left out is printed
/** Python as the sender and the receiver of KvMetrics, for tests. */

import { fileURLToPath } from "node:url";
import { KV_FIELDS } from "../../src/kv_metrics/fields.ts";
import type { KvMetricsMessage } from "../../src/kv_metrics/kv_metrics.ts";
import { type DriverValue, Float, parse, stringify } from "./driver_values.ts";
import { ensurePeers, type ReadyPeers } from "./setup.ts";

/** How Python's class is made; "bare" sets no attribute, "positional" is a struct of any arguments. */
export type PythonForm = "plain" | "bare" | "dataclass" | "slots" | "struct" | "positional";

/** A class, by where it is and how it is made. */
export interface PythonClass {
  readonly module: string;
  readonly form: PythonForm;
}

/** What became of one message in Python: its values in wire order, or why there are none. */
export type Loaded =
  | readonly (number | bigint | boolean | null)[]
  | { readonly error: string; readonly type: string };

/** A process that makes and reads KvMetrics; it ends with its last answer. */
export class KvPeer {
  readonly #peers: ReadyPeers;

  constructor(peers: ReadyPeers) {
    this.#peers = peers;
  }

  /** Pickles records as pyzmq's `send_pyobj` does; a record is the values in wire order. */
  async dumps(
    of: PythonClass,
    protocol: number,
    records: readonly (readonly DriverValue[])[],
    { numpy1 = false }: { readonly numpy1?: boolean } = {},
  ): Promise<Uint8Array[]> {
    return await this.#ask("dumps", { ...of, protocol, records, numpy1 });
  }

  /** Reads pickles as pyzmq's `recv_pyobj` does, where the class is as named. */
  async loads(of: PythonClass, pickles: readonly Uint8Array[]): Promise<Loaded[]> {
    return await this.#ask("loads", { ...of, pickles });
  }

  /** Reads pickles with Python's machine, whatever module and form their class has. */
  async collect(pickles: readonly Uint8Array[]): Promise<Loaded[]> {
    return await this.#ask("collect", { pickles });
  }

  async encode(module: string, records: readonly (readonly DriverValue[])[]) {
    return await this.#ask<Uint8Array[]>("encode", { module, records });
  }

  async decode(module: string, payloads: readonly Uint8Array[]) {
    return await this.#ask<Loaded[]>("decode", { module, payloads });
  }

  /** Each request has a process of its own: nothing of one class is left when the next is made. */
  async #ask<Answer>(cmd: string, args: Readonly<Record<string, unknown>>): Promise<Answer> {
    const child = new Deno.Command(this.#peers.python, {
      args: [
        // Nothing of the user's own Python settings, and no bytecode in this folder.
        ...["-E", "-s", "-B"],
        fileURLToPath(new URL("kv_driver.py", import.meta.url)),
        this.#peers.moduleDir,
      ],
      stdin: "piped",
      stdout: "piped",
      stderr: "piped",
    }).spawn();
    const output = child.output();
    const input = child.stdin.getWriter();
    await input.write(new TextEncoder().encode(`${stringify({ cmd, ...args })}\n`));
    await input.close();
    const { success, stdout, stderr } = await output;
    if (!success) throw new Error(`Python failed: ${new TextDecoder().decode(stderr).trim()}`);
    // The driver's answers are taken at their word: it is ours.
    const answer = parse(new TextDecoder().decode(stdout)) as
      | { readonly ok: Answer }
      | { readonly error: string; readonly type: string };
    if ("error" in answer) throw new Error(`${answer.type}: ${answer.error}`);
    return answer.ok;
  }
}

/** A message as Python's values: counts are ints, shares are floats. */
export function toPython(message: KvMetricsMessage): DriverValue[] {
  return KV_FIELDS.map(({ name, type }) => {
    const value = message[name];
    return value !== null && type === "share" ? new Float(value) : value;
  });
}

/** Registers one test that needs Python; without, it is left out with a printed reason. */
export type KvPeerTest = (name: string, run: (peer: KvPeer) => Promise<void>) => void;

/** Looks for Python, once in each test file; see `peerTests`. */
export async function kvPeerTests(): Promise<KvPeerTest> {
  const peers = await ensurePeers();
  return (name, run) => {
    if (peers.state === "missing") {
      console.error(`left out: "${name}": no Python peers: ${peers.reason}`);
      Deno.test({ name, ignore: true, fn: () => {} });
    } else {
      Deno.test(name, () => run(new KvPeer(peers)));
    }
  };
}
