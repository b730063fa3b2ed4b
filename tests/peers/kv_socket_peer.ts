/** Python at the other end of a KvMetrics socket, for tests. */

import { fileURLToPath } from "node:url";
import type { KvMetrics } from "../../src/kv_metrics/kv_metrics.ts";
import { Child } from "../support/child.ts";
import { type DriverValue, parse, stringify } from "./driver_values.ts";
import { type PythonClass, toPython } from "./kv_peer.ts";
import { ensurePeers } from "./setup.ts";

/** How Python's sender encodes: a protocol of pickle, or MessagePack. */
export type PythonEncoding = 2 | 3 | 4 | 5 | "msgpack";

/** A process with sockets of pyzmq. */
export class KvSocketPeer implements AsyncDisposable {
  readonly #child: Child;

  private constructor(child: Child) {
    this.#child = child;
  }

  /** @throws {Error} If there is no Python; `kvPeerTests` leaves tests out instead. */
  static async start(): Promise<KvSocketPeer> {
    const peers = await ensurePeers();
    if (peers.state === "missing") throw new Error(`No Python peers: ${peers.reason}`);
    const script = fileURLToPath(new URL("kv_socket.py", import.meta.url));
    // Nothing of the user's own Python settings, and no bytecode in this folder.
    return new KvSocketPeer(new Child(peers.python, ["-E", "-s", "-B", script, peers.moduleDir]));
  }

  /** Sends metrics as the scheduler does, with a class as it has; or values as Python has them. */
  async send(
    endpoint: string,
    of: PythonClass,
    encoding: PythonEncoding,
    records: readonly (KvMetrics | readonly DriverValue[])[],
  ): Promise<void> {
    const values = records.map((record) => "length" in record ? record : toPython(record));
    const protocol = encoding === "msgpack" ? 0 : encoding;
    await this.#ask("send", { endpoint, ...of, protocol, records: values });
  }

  /** Binds as Dynamo's worker does; tells the endpoint. */
  async bind(endpoint: string): Promise<string> {
    return await this.#ask("bind", { endpoint });
  }

  /** Takes messages; each is its values in wire order. */
  async receive(
    endpoint: string,
    of: PythonClass,
    count: number,
    { msgpack = false }: { readonly msgpack?: boolean } = {},
  ): Promise<readonly (number | null)[][]> {
    return await this.#ask("receive", { endpoint, ...of, count, msgpack });
  }

  /** Closes the socket of an endpoint. */
  async close(endpoint: string): Promise<void> {
    await this.#ask("close", { endpoint });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#child[Symbol.asyncDispose]();
  }

  async #ask<Answer>(cmd: string, args: Readonly<Record<string, unknown>>): Promise<Answer> {
    await this.#child.say(stringify({ cmd, ...args }));
    // The script's answers are taken at their word: it is ours.
    const answer = parse(await this.#child.line()) as
      | { readonly ok: Answer }
      | { readonly error: string; readonly type: string };
    if ("error" in answer) throw new Error(`${answer.type}: ${answer.error}`);
    return answer.ok;
  }
}
