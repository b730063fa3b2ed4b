/** How the actors are started. */

import { fileURLToPath } from "node:url";
import type { ReadyPeers } from "../../peers/setup.ts";
import type { Program } from "../actor.ts";
import type { ObserverOrder, WriterOrder } from "./orders.ts";

const pathOf = (name: string): string => fileURLToPath(new URL(name, import.meta.url));

/** Permissions of what is under test, and of reading what the kernel says of a thread. */
const DENO = ["run", "--quiet", "--no-prompt", "--allow-ffi", "--allow-read"];

/** One of our writers. */
export function writerProgram(order: WriterOrder): Program {
  const args = [...DENO, pathOf("writer.ts"), JSON.stringify(order)];
  return { command: Deno.execPath(), args };
}

/** One of our readers. */
export function observerProgram(order: ObserverOrder): Program {
  const args = [...DENO, pathOf("observer.ts"), JSON.stringify(order)];
  return { command: Deno.execPath(), args };
}

/** One of SGLang's writers or readers. */
export function pythonProgram(
  peers: ReadyPeers,
  script: "writer.py" | "reader.py",
  order: object,
): Program {
  const args = ["-E", "-s", "-B", pathOf(script), peers.moduleDir, JSON.stringify(order)];
  return { command: peers.python, args };
}

/** The same program with a clock that the harness sets: libfaketime's, of this process only. */
export function withClock(program: Program, library: string, offsetFile: string): Program {
  return {
    ...program,
    env: {
      LD_PRELOAD: library,
      FAKETIME_TIMESTAMP_FILE: offsetFile,
      FAKETIME_NO_CACHE: "1",
      FAKETIME_DONT_FAKE_MONOTONIC: "1",
    },
  };
}
