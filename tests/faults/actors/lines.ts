/** An actor's side of the conversation: it says one JSON object a line, and is told so. */

/** Says something. */
export function say(message: Readonly<Record<string, unknown>> | object): void {
  const bytes = new TextEncoder().encode(`${JSON.stringify(message)}\n`);
  for (let at = 0; at < bytes.length;) at += Deno.stdout.writeSync(bytes.subarray(at));
}

/** What is said to this process, until its input ends. */
export async function* heard<Message>(): AsyncGenerator<Message> {
  let rest = "";
  for await (const text of Deno.stdin.readable.pipeThrough(new TextDecoderStream())) {
    const lines = (rest + text).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) yield JSON.parse(line) as Message;
  }
}

/** Counts by name. */
export class Tally {
  readonly counts: Record<string, number> = {};

  add(name: string, by = 1): void {
    this.counts[name] = (this.counts[name] ?? 0) + by;
  }
}
