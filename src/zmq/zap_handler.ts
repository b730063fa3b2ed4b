/** Answers libzmq's question whether a client is let in (ZeroMQ RFC 27, ZAP). */

import { type RawSocket, RCVMORE, REP, type ZmqContext } from "./context.ts";
import { encodeKey } from "./curve.ts";
import { checkZmq, cText, EAGAIN, type Libzmq, zmqError } from "./libzmq.ts";

/** Where libzmq asks, in each context. */
const ENDPOINT = "inproc://zeromq.zap.01";
const DONTWAIT = 1;
const SNDMORE = 2;
const KEY_BYTES = 32;

/** Clients that knock all the time must not keep the server from its messages. */
const MOST_AT_ONCE = 64;

// The frames of a question that matter, by their place.
const VERSION = 0;
const REQUEST_ID = 1;
const MECHANISM = 5;
const CREDENTIALS = 6;

interface Question {
  readonly frames: readonly Uint8Array<ArrayBuffer>[];
  /** Whether a frame had more bytes than any question's has. */
  readonly oversized: boolean;
}

/**
 * Lets in the clients of one context whose public keys are known.
 *
 * A client waits for the answer in its handshake, so whoever polls the server's socket polls
 * {@linkcode handle} with it, and calls {@linkcode answer} when it is readable.
 */
export class ZapHandler {
  readonly #libzmq: Libzmq;
  readonly #socket: RawSocket;
  readonly #allowed: ReadonlySet<string>;
  readonly #buffer: Uint8Array<ArrayBuffer> = new Uint8Array(256);
  #denied = 0;

  /**
   * @param context The context of the server's socket, which it also closes with. Make the handler
   *   before the server binds.
   * @param allowedClients The public keys of the clients to let in.
   */
  constructor(context: ZmqContext, allowedClients: readonly string[]) {
    this.#libzmq = context.libzmq;
    this.#allowed = new Set(allowedClients);
    this.#socket = context.open(REP, ENDPOINT);
    const result = this.#libzmq.zmq_bind(this.#socket.handle, cText(ENDPOINT));
    checkZmq(this.#libzmq, result, "zmq_bind", ENDPOINT);
  }

  /** What to poll. */
  get handle(): Deno.PointerValue {
    return this.#socket.handle;
  }

  /** How many clients were turned away; one that tries again counts again. */
  get denied(): number {
    return this.#denied;
  }

  /** Answers the questions that are there, up to some number. Does not wait. */
  answer(): void {
    for (let answered = 0; answered < MOST_AT_ONCE; answered++) {
      const question = this.#receive();
      if (question === null) return;
      const isKnown = this.#isKnown(question);
      if (!isKnown) this.#denied++;
      const id = question.frames[REQUEST_ID] ?? new Uint8Array();
      this.#reply(id, isKnown);
    }
  }

  #isKnown({ frames, oversized }: Question): boolean {
    if (oversized || textOf(frames[VERSION]) !== "1.0") return false;
    const key = frames[CREDENTIALS];
    if (textOf(frames[MECHANISM]) !== "CURVE" || key?.length !== KEY_BYTES) return false;
    return this.#allowed.has(encodeKey(this.#libzmq, key));
  }

  #receive(): Question | null {
    const frames: Uint8Array<ArrayBuffer>[] = [];
    let oversized = false;
    do {
      const size = this.#libzmq.zmq_recv(
        this.#socket.handle,
        this.#buffer,
        BigInt(this.#buffer.length),
        DONTWAIT,
      );
      if (size < 0) {
        const errno = this.#libzmq.zmq_errno();
        if (errno === EAGAIN) return null;
        throw zmqError(this.#libzmq, errno, "zmq_recv", ENDPOINT);
      }
      oversized ||= size > this.#buffer.length;
      frames.push(this.#buffer.slice(0, size));
    } while (this.#socket.getInt(RCVMORE) !== 0);
    return { frames, oversized };
  }

  #reply(id: Uint8Array<ArrayBuffer>, isKnown: boolean): void {
    const [code, text] = isKnown ? ["200", "OK"] : ["400", "unknown client"];
    const frames = ["1.0", id, code, text, "", ""];
    frames.forEach((frame, index) => {
      const bytes = typeof frame === "string" ? new TextEncoder().encode(frame) : frame;
      const flags = index < frames.length - 1 ? DONTWAIT | SNDMORE : DONTWAIT;
      const { handle } = this.#socket;
      const result = this.#libzmq.zmq_send(handle, bytes, BigInt(bytes.length), flags);
      checkZmq(this.#libzmq, result, "zmq_send", ENDPOINT);
    });
  }
}

function textOf(frame: Uint8Array | undefined): string {
  return new TextDecoder().decode(frame);
}
