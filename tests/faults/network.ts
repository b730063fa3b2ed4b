/**
 * The network between writers and their collector: where the machine allows, the writers are in a
 * network namespace of their own, at the other end of a cable that can be cut and made slow.
 */

import type { Program } from "./actor.ts";

const NEAR = "10.77.0.1";
const FAR = "10.77.0.2";

/** Runs a program to its end; tells what it said if it failed. */
async function failureOf(command: string, ...args: readonly string[]): Promise<string | null> {
  try {
    const child = new Deno.Command(command, { args: [...args], stdin: "null" });
    const { success, stderr } = await child.output();
    return success ? null : new TextDecoder().decode(stderr).trim() || "it failed";
  } catch (error) {
    return String(error);
  }
}

/** A cable, or what stands for it. */
export class Network implements AsyncDisposable {
  /** The address that a relay listens at. */
  readonly hostname: string;
  /** What cannot be done here, and why. */
  readonly leftOut: readonly string[];
  readonly #holder: Deno.ChildProcess | null;
  readonly #canDelay: boolean;

  private constructor(
    holder: Deno.ChildProcess | null,
    canDelay: boolean,
    leftOut: readonly string[],
  ) {
    this.#holder = holder;
    this.#canDelay = canDelay;
    this.leftOut = leftOut;
    this.hostname = holder === null ? "127.0.0.1" : NEAR;
  }

  /**
   * Lays the cable.
   *
   * @param isOwn Whether this process is in a network namespace of its own.
   */
  static async lay(isOwn: boolean): Promise<Network> {
    const problem = "network cut by a cable: ";
    if (!isOwn) return new Network(null, false, [`${problem}no namespace of its own`]);
    const holder = new Deno.Command("unshare", {
      args: ["--net", "cat"],
      stdin: "piped",
      stdout: "null",
      stderr: "null",
    }).spawn();
    const why = await Network.#connect(holder.pid);
    if (why !== null) {
      await holder.stdin.close();
      await holder.status;
      return new Network(null, false, [problem + why]);
    }
    const noDelay = await failureOf("tc", ..."qdisc add dev ls0 root netem delay 1ms".split(" "));
    if (noDelay === null) await failureOf("tc", ..."qdisc del dev ls0 root".split(" "));
    const leftOut = noDelay === null ? [] : [`network delay by tc netem: ${noDelay}`];
    return new Network(holder, noDelay === null, leftOut);
  }

  static async #connect(pid: number): Promise<string | null> {
    const own = (await Deno.readLink("/proc/self/ns/net")).toString();
    // The holder is there before it is in its namespace.
    for (let n = 0; await Deno.readLink(`/proc/${pid}/ns/net`) === own; n++) {
      if (n > 200) return "unshare --net does nothing";
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    const far = ["nsenter", `--net=/proc/${pid}/ns/net`];
    const commands = [
      `ip link add ls0 type veth peer name ls1 netns ${pid}`,
      `ip addr add ${NEAR}/24 dev ls0`,
      "ip link set ls0 up",
      `${far.join(" ")} ip addr add ${FAR}/24 dev ls1`,
      `${far.join(" ")} ip link set ls1 up`,
      `${far.join(" ")} ip link set lo up`,
    ];
    for (const line of commands) {
      const [command = "", ...args] = line.split(" ");
      const failure = await failureOf(command, ...args);
      if (failure !== null) return `${line}: ${failure}`;
    }
    return null;
  }

  /** Whether the cable can be cut. */
  get canCut(): boolean {
    return this.#holder !== null;
  }

  /** Whether the kernel can delay what goes through the cable. */
  get canDelay(): boolean {
    return this.#canDelay;
  }

  /** The same program, at the far end. */
  atFarEnd(program: Program): Program {
    if (this.#holder === null) return program;
    const net = `--net=/proc/${this.#holder.pid}/ns/net`;
    return { ...program, command: "nsenter", args: [net, program.command, ...program.args] };
  }

  /** Cuts the cable, or mends it. */
  async setUp(isUp: boolean): Promise<void> {
    await failureOf("ip", "link", "set", "ls0", isUp ? "up" : "down");
  }

  /** Delays what goes to the far end; 0 takes that away. */
  async delay(ms: number): Promise<void> {
    const what = ms === 0 ? "qdisc del dev ls0 root" : `qdisc add dev ls0 root netem delay ${ms}ms`;
    await failureOf("tc", ...what.split(" "));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#holder === null) return;
    await this.#holder.stdin.close();
    await this.#holder.status;
  }
}
