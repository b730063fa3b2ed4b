/** What the examples' command lines have in common. */

import { parseArgs } from "node:util";
import { shmPathFor } from "../mod.ts";

/** The user asked for something that there is not; the command ends with exit code 2. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

/** Which flags a command takes: `"string"` wants a value, `"strings"` several, `"boolean"` none. */
export type Flags = Readonly<Record<string, "string" | "strings" | "boolean">>;

/** The values of {@linkcode Flags}, by name. */
export type FlagValues<F extends Flags> = {
  readonly [Name in keyof F]?: F[Name] extends "string" ? string
    : F[Name] extends "strings" ? readonly string[]
    : boolean;
};

/**
 * Reads a command line.
 *
 * @throws {UsageError} If it has an unknown flag, a flag without its value, or anything else.
 */
export function readFlags<const F extends Flags>(args: readonly string[], flags: F): FlagValues<F> {
  const options = Object.fromEntries(
    Object.entries(flags).map(([name, type]) => [
      name,
      type === "strings" ? { type: "string" as const, multiple: true } : { type },
    ]),
  );
  try {
    return parseArgs({ args: [...args], options }).values as FlagValues<F>;
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    throw new UsageError(error.message, { cause: error });
  }
}

/**
 * @param text The flag's value, if it was given.
 * @returns The number that it stands for, or `fallback`.
 * @throws {UsageError} If it is no number, or out of range.
 */
export function numberFlag<Fallback>(
  name: string,
  text: string | undefined,
  range: { readonly low: number; readonly high: number; readonly whole: boolean },
  fallback: Fallback,
): number | Fallback {
  if (text === undefined) return fallback;
  const value = /^\d+(\.\d+)?$/.test(text) ? Number(text) : NaN;
  const inRange = value >= range.low && value <= range.high;
  if (inRange && (!range.whole || Number.isInteger(value))) return value;
  throw new UsageError(
    `--${name} takes a ${
      range.whole ? "whole " : ""
    }number from ${range.low} to ${range.high}, not "${text}"`,
  );
}

/**
 * @returns The slot file that `--path` or `--instance-id` names, or `null` without either.
 * @throws {UsageError} If both are given, or an empty one.
 */
export function slotPathFlag(
  flags: { readonly path?: string | undefined; readonly "instance-id"?: string | undefined },
): string | null {
  const { path, "instance-id": instanceId } = flags;
  if (path !== undefined && instanceId !== undefined) {
    throw new UsageError("--path and --instance-id name the same thing: give one of them");
  }
  if (path === "" || instanceId === "") throw new UsageError("The engine's name is empty");
  return path ?? (instanceId === undefined ? null : shmPathFor(instanceId));
}

/** Says when to stop: on the first of several signals, and never twice. */
export interface StopSignal extends Disposable {
  readonly signal: AbortSignal;
}

const STOPPED_BY = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

/** Listens for Ctrl-C and its kin until it is disposed of. */
export function stopSignal(): StopSignal {
  const controller = new AbortController();
  const stop = (): void => controller.abort();
  for (const name of STOPPED_BY) Deno.addSignalListener(name, stop);
  return {
    signal: controller.signal,
    [Symbol.dispose]() {
      for (const name of STOPPED_BY) Deno.removeSignalListener(name, stop);
    },
  };
}

/** @returns A signal that is also aborted after that many seconds from now, if there is a limit. */
export function withTimeLimit(signal: AbortSignal, seconds: number | null): AbortSignal {
  return seconds === null ? signal : AbortSignal.any([signal, AbortSignal.timeout(seconds * 1000)]);
}

/** @returns When the signal is aborted. It never rejects. */
export function untilAborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
}

/**
 * Opens what listens at a port.
 *
 * @throws {Error} With a way out, if the port is taken.
 */
export function listenAt<Server>(port: number, open: () => Server): Server {
  try {
    return open();
  } catch (error) {
    if (!(error instanceof Deno.errors.AddrInUse)) throw error;
    throw new Error(`Something else listens at port ${port}: choose another by --port`, {
      cause: error,
    });
  }
}

/** @returns The value of `--port`, or a default. */
export function portFlag(text: string | undefined, fallback: number): number {
  return numberFlag("port", text, { low: 0, high: 65_535, whole: true }, fallback);
}

/** Writes a line for people. */
export function say(line: string, to: typeof Deno.stdout | typeof Deno.stderr = Deno.stdout): void {
  writeAll(`${line}\n`, to);
}

/** Writes all of a text, however little the terminal takes at once. */
export function writeAll(
  text: string,
  to: typeof Deno.stdout | typeof Deno.stderr = Deno.stdout,
): void {
  let rest = new TextEncoder().encode(text);
  while (rest.length > 0) rest = rest.subarray(to.writeSync(rest));
}

/**
 * Runs a command and sets the exit code: what it returns, 2 for a wrong command line, 1 for a
 * failure. A closed pipe, as of `| head`, is a normal end.
 *
 * @param usage What is shown for a wrong command line.
 * @param command The command.
 */
export async function runCommand(usage: string, command: () => Promise<number>): Promise<void> {
  try {
    Deno.exitCode = await command();
  } catch (error) {
    if (error instanceof Deno.errors.BrokenPipe) return;
    Deno.exitCode = error instanceof UsageError ? 2 : 1;
    const text = error instanceof Error ? error.message : String(error);
    say(error instanceof UsageError ? `${text}\n\n${usage}` : text, Deno.stderr);
  }
}
