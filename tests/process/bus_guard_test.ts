/** A file that shrinks under its mapping: what a guard keeps from killing the process, and what not. */

import assert from "node:assert/strict";
import { guardMapping } from "../../src/slotfile/bus_guard.ts";
import type { Libc } from "../../src/slotfile/libc.ts";

const SCENARIOS = new URL("./fixtures/bus_guard_scenarios.ts", import.meta.url);
// Where there is no guard, callers have to lock: that is another test's business.
const ignore = Deno.build.os !== "linux";

function scenarioCommand(...args: string[]): Deno.Command {
  return new Deno.Command(Deno.execPath(), {
    args: ["run", "--quiet", "--no-prompt", "--allow-ffi", "--allow-read", SCENARIOS.href, ...args],
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
  });
}

/** Runs a scenario that its process must survive. */
async function outcomeOf(scenario: string): Promise<unknown> {
  const { code, signal, stdout, stderr } = await scenarioCommand(scenario).output();
  const text = new TextDecoder().decode(stderr);
  assert.deepEqual({ code, signal }, { code: 0, signal: null }, `${scenario}: ${text}`);
  return JSON.parse(new TextDecoder().decode(stdout));
}

/** Runs a scenario that must end its process. */
async function endOf(scenario: string): Promise<number | Deno.Signal> {
  const { code, signal, stdout } = await scenarioCommand(scenario).output();
  assert.equal(new TextDecoder().decode(stdout), "", `${scenario} must not survive`);
  return signal ?? code;
}

Deno.test("a guarded mapping reads zeros beyond the end of its file", { ignore }, async () => {
  assert.deepEqual(await outcomeOf("readsZeros"), {
    kept: 1,
    untouched: false,
    lost: [0, 0, 0],
    last: 0,
    tripped: true,
  });
});

Deno.test("a guard tells of its own mapping only, also when released", { ignore }, async () => {
  assert.deepEqual(await outcomeOf("trippedBelongsToOneGuard"), {
    released: true,
    other: false,
    next: false,
  });
});

Deno.test("a store beyond the end of the file does not kill", { ignore }, async () => {
  assert.deepEqual(await outcomeOf("storesBeyondTheEnd"), { stored: 7, filled: 8, tripped: true });
});

Deno.test("optimised loops survive that their file shrinks", { ignore }, async () => {
  assert.deepEqual(
    await outcomeOf("optimisedLoops"),
    ["bytes", "doubles", "dataView", "atomics", "stores", "set"].map((name) => ({
      name,
      sum: 0,
      tripped: true,
    })),
  );
});

Deno.test("memcmp and memcpy called by FFI see zeros", { ignore }, async () => {
  assert.deepEqual(await outcomeOf("nativeReads"), {
    difference: 0,
    copied: true,
    tripped: [true, true],
  });
});

Deno.test("a reader survives that another process shrinks its file", { ignore }, async () => {
  const path = await Deno.makeTempFile({ dir: "/dev/shm", prefix: "loadslots-bus-guard-" });
  try {
    // Two pages, of whatever size this machine has.
    await Deno.writeFile(path, new Uint8Array(2 * 65536).fill(1));
    await using child = scenarioCommand("shrunkByAnother", path).spawn();
    const reader = child.stdout.pipeThrough(new TextDecoderStream()).getReader();
    assert.deepEqual(await reader.read(), { done: false, value: "ready\n" });
    await Deno.truncate(path, 0);
    assert.deepEqual(await reader.read(), { done: false, value: '{"tripped":true}\n' });
    assert.deepEqual(await reader.read(), { done: true, value: undefined });
    await child.stderr.cancel();
    assert.equal((await child.status).code, 0);
  } finally {
    await Deno.remove(path);
  }
});

for (
  const [state, scenario] of [
    ["that was never guarded", "neverGuarded"],
    ["whose guard was released", "released"],
    ["just before a guarded one", "justBefore"],
    ["just behind a guarded one", "justBehind"],
  ] as const
) {
  Deno.test(`a mapping ${state} still kills the process`, { ignore }, async () => {
    assert.equal(await endOf(scenario), "SIGBUS");
  });
}

Deno.test("a signal sent to the process kills where that was the default", { ignore }, async () => {
  assert.equal(await endOf("defaultBefore"), "SIGBUS");
});

Deno.test("a handler that was there gets the faults that are not ours", { ignore }, async () => {
  assert.equal(await endOf("handlerBefore"), 7);
});

Deno.test("the handlers of the runtime are kept", { ignore }, async () => {
  assert.deepEqual(await outcomeOf("keepsThePrevious"), { replaced: true, bus: true, segv: true });
});

Deno.test("a listener for the signal does not take the guard away", { ignore }, async () => {
  assert.deepEqual(await outcomeOf("listenerBehind"), { zero: 0, tripped: true });
});

Deno.test("ten thousand guards in turn do not fill the table", { ignore }, async () => {
  assert.deepEqual(await outcomeOf("manyRounds"), { refused: 0 });
});

Deno.test("a full table refuses, until a guard is released", { ignore }, async () => {
  assert.deepEqual(await outcomeOf("manyAtOnce"), {
    given: 4080,
    refused: 4080,
    zeros: 4080,
    again: true,
  });
});

Deno.test("a range that the table cannot hold is refused", { ignore }, async () => {
  assert.deepEqual(await outcomeOf("unusable"), [null, null, null, null]);
});

Deno.test("two copies of the module share one handler", { ignore }, async () => {
  assert.deepEqual(await outcomeOf("twoCopies"), {
    copies: true,
    shared: true,
    zeros: [0, 0],
    tripped: [true, true],
  });
});

Deno.test("the handler is found behind that of another release", { ignore }, async () => {
  assert.deepEqual(await outcomeOf("otherRelease"), {
    kept: true,
    zeros: [0, 0],
    tripped: [true, true],
  });
});

Deno.test("there is no guard, and no handler, where executable memory is refused", {
  ignore,
}, async () => {
  assert.deepEqual(await outcomeOf("executableRefused"), { asExpected: true });
});

const READ = { zeros: true, tripped: true };

Deno.test("fifty workers in turn use the handler that is there", { ignore }, async () => {
  assert.deepEqual(await outcomeOf("workersInTurn"), {
    outcomes: Array.from({ length: 50 }, () => READ),
    sameHandler: true,
  });
});

Deno.test(
  "workers that install the handler at the same moment all survive",
  { ignore },
  async () => {
    assert.deepEqual(await outcomeOf("workersAtOnce"), {
      outcomes: [READ, READ, READ, READ],
      zero: 0,
      tripped: true,
    });
  },
);

Deno.test("two workers never hold the same entry", { ignore }, async () => {
  const alone = { won: true, together: 0 };
  assert.deepEqual(await outcomeOf("oneEntryForTwo"), [alone, alone]);
});

if (ignore) {
  // deno-lint-ignore no-console -- nothing is left out without a word.
  console.log("left out: what a guard does, for it is for Linux only");
  Deno.test("there is no guard where the operating system has no such signal", () => {
    assert.equal(guardMapping(null as unknown as Libc, 4096n, 4096), null);
  });
}
