// deno-lint-ignore-file no-console -- the reason for a test that is left out is printed
/** Tests that need a Python peer, and what becomes of them where there is none. */

import { PythonPeer } from "./peer.ts";
import { ensurePeers } from "./setup.ts";

/** Registers one test; it gets a fresh peer, which ends with the test. */
export type PeerTest = (
  name: string,
  run: (peer: PythonPeer, context: Deno.TestContext) => void | Promise<void>,
) => void;

/**
 * Looks for the peers, once in each test file.
 *
 * Without them, each test is left out with a printed reason; where the environment says `CI=true`
 * that is an error instead.
 *
 * @returns What to register tests with, in the place of `Deno.test`.
 */
export async function peerTests(): Promise<PeerTest> {
  const peers = await ensurePeers();
  return (name, run) => {
    const ignore = peers.state === "missing";
    if (ignore) console.error(`left out: "${name}": no Python peers: ${peers.reason}`);
    Deno.test({
      name,
      ignore,
      fn: async (context) => {
        await using peer = await PythonPeer.start();
        await run(peer, context);
      },
    });
  };
}
