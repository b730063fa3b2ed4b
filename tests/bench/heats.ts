/** Processes that keep processors busy on demand: readers of ours, of SGLang's, and mere spinning. */

import { PythonPeer } from "../peers/peer.ts";
import type { PeerReader } from "../peers/peer_handles.ts";
import { SideProcess } from "./side_process.ts";

/** Keeps so many processes hot for a while; resolves when that is over. */
export type Heat = (ms: number, hot: number) => Promise<void>;

/** Our readers, or processes that are the same but do not read. */
export async function heatOfOurs(
  mode: "spin" | "read",
  path: string,
  count: number,
  stack: AsyncDisposableStack,
  signal: AbortSignal,
): Promise<Heat> {
  const processes: SideProcess[] = [];
  for (let n = 0; n < count; n++) {
    processes.push(stack.use(await SideProcess.startScript("hot.ts", [mode, path], signal)));
  }
  return async (ms, hot) => {
    const done = await Promise.all(
      processes.slice(0, hot).map((process) =>
        process.ask<{ readonly calls: number; readonly publications: number }>(String(ms))
      ),
    );
    if (mode === "read" && done.some(({ publications }) => publications < 2)) {
      throw new Error("A hot reader saw nothing of what was published");
    }
  };
}

/** SGLang's readers. */
export async function heatOfReference(
  path: string,
  dpSize: number,
  count: number,
  stack: AsyncDisposableStack,
  signal: AbortSignal,
): Promise<Heat> {
  const readers: PeerReader[] = [];
  for (let n = 0; n < count; n++) {
    const peer = await startPeer(stack, signal);
    readers.push(await peer.openReader(path, { dpSize }));
  }
  return async (ms, hot) => {
    const loops = await Promise.all(
      readers.slice(0, hot).map((reader) => reader.readLoop({ seconds: ms / 1000 })),
    );
    for (const loop of loops) await loop.result();
  };
}

/** A peer that ends with the stack, and at once when the run is to end early. */
export async function startPeer(
  stack: AsyncDisposableStack,
  signal: AbortSignal,
): Promise<PythonPeer> {
  signal.throwIfAborted();
  const peer = stack.use(await PythonPeer.start());
  const kill = () => peer.kill("SIGKILL");
  signal.addEventListener("abort", kill, { once: true });
  stack.defer(() => signal.removeEventListener("abort", kill));
  return peer;
}
