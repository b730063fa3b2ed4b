/** The live table in a terminal: redrawn in place, within its size, and gone without a trace. */

import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { textWidth } from "../../examples/terminal/text.ts";
import { ensurePeers } from "../peers/setup.ts";
import { denoArgs } from "./fixtures/example_process.ts";

const peers = await ensurePeers();
// A pseudo-terminal needs a language that can fork; where the peers' Python is missing, that is
// told by the tests that are about it.
const ignore = peers.state === "missing";

const CTRL_C = "\x03";
const FRAME_START = "\x1b[?2026h\x1b[H";
const FRAME_END = "\x1b[J\x1b[?2026l";

interface TerminalOutcome {
  readonly code: number;
  readonly output: string;
}

interface Terminal {
  readonly columns: number;
  readonly lines: number;
  /** What the user types once `awaited` is on the screen. */
  readonly typed?: string;
  readonly awaited?: string;
}

async function runInTerminal(
  terminal: Terminal,
  ...args: readonly string[]
): Promise<TerminalOutcome> {
  assert.ok(peers.state === "ready");
  const { columns, lines, typed = "", awaited = "" } = terminal;
  const fixture = fileURLToPath(new URL("./fixtures/pseudo_terminal.py", import.meta.url));
  const { stdout, stderr } = await new Deno.Command(peers.python, {
    args: [
      ...[fixture, String(columns), String(lines), typed, awaited],
      ...[Deno.execPath(), ...denoArgs("start.ts", args)],
    ],
    stdin: "null",
  }).output();
  assert.equal(new TextDecoder().decode(stderr), "");
  return JSON.parse(new TextDecoder().decode(stdout));
}

/** The screens that were drawn, as lines without colour. */
function framesOf(output: string): readonly (readonly string[])[] {
  return output.split(FRAME_START).slice(1).map((text) =>
    // deno-lint-ignore no-control-regex -- it is control characters that are taken out
    text.split(FRAME_END)[0]!.replace(/\x1b\[[0-9;]*[mK]/g, "").split(/\r+\n/)
  );
}

Deno.test("the table is redrawn within the terminal, in colour", { ignore }, async () => {
  for (const [columns, lines, ranks] of [[80, 24, 8], [60, 10, 512], [40, 12, 2]] as const) {
    const flags = ["--seconds", "2", "--ranks", String(ranks)];
    const { code, output } = await runInTerminal({ columns, lines }, ...flags);
    assert.equal(code, 0, output);
    assert.ok(output.includes("\x1b[32mlive"));
    const frames = framesOf(output);
    assert.ok(frames.length >= 2 && frames.length <= 10, `${frames.length} frames`);
    for (const frame of frames) {
      assert.ok(frame.length <= lines);
      for (const line of frame) assert.ok(textWidth(line) <= columns, line);
      assert.match(frame.at(-1)!, /^ +all .*live$/);
    }
  }
});

Deno.test("Ctrl-C gives the terminal back, with the last table in it", { ignore }, async () => {
  const { code, output } = await runInTerminal(
    { columns: 80, lines: 24, typed: CTRL_C, awaited: "8 live" },
  );
  assert.equal(code, 0, output);
  const left = output.split("\x1b[?25h\x1b[?1049l");
  assert.equal(left.length, 2);
  assert.ok(left[0]!.includes("\x1b[?1049h\x1b[?25l"));
  assert.ok(!left[1]!.includes("\x1b[?"));
  assert.match(left[1]!, /8 live/);
});

Deno.test("a terminal is waited in, too", { ignore }, async () => {
  const path = `/dev/shm/loadslots_test_${crypto.randomUUID()}.shm`;
  const { code, output } = await runInTerminal(
    { columns: 120, lines: 24, typed: CTRL_C, awaited: "waiting" },
    ...["--path", path],
  );
  assert.equal(code, 1);
  assert.deepEqual(framesOf(output)[0], [
    path,
    `No engine publishes at ${path}; waiting for one`,
  ]);
});

Deno.test("what cannot be watched leaves the terminal as it is", { ignore }, async () => {
  const { code, output } = await runInTerminal({ columns: 80, lines: 24 }, "--path", "/dev/shm");
  assert.equal(code, 1);
  assert.ok(output.includes("/dev/shm") && !output.includes("\x1b[?"));
});

Deno.test("--plain in a terminal uses no escape sequences", { ignore }, async () => {
  const flags = ["--plain", "--seconds", "0.5"];
  const { code, output } = await runInTerminal({ columns: 100, lines: 24 }, ...flags);
  assert.equal(code, 0, output);
  assert.ok(output.includes("8 live") && !output.includes("\x1b[?") && !output.includes("\x1b[3"));
});
