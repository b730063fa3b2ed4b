/** A context of libzmq and its sockets, which have to end in the right order. */

import { acquireLibzmq, checkZmq, cText, EINTR, type Libzmq, type LibzmqLease } from "./libzmq.ts";

export const PUSH = 8;
export const PULL = 7;
export const REP = 4;

export const RCVMORE = 13;
export const LINGER = 17;
export const MAXMSGSIZE = 22;
export const SNDHWM = 23;
export const RCVHWM = 24;
export const LAST_ENDPOINT = 32;
export const TCP_KEEPALIVE = 34;
export const TCP_KEEPALIVE_CNT = 35;
export const TCP_KEEPALIVE_IDLE = 36;
export const TCP_KEEPALIVE_INTVL = 37;
export const IMMEDIATE = 39;
export const IPV6 = 42;
export const CURVE_SERVER = 47;
export const CURVE_PUBLICKEY = 48;
export const CURVE_SECRETKEY = 49;
export const CURVE_SERVERKEY = 50;
export const CONFLATE = 54;
export const ZAP_DOMAIN = 55;
export const CONNECT_TIMEOUT = 79;
export const TCP_MAXRT = 80;
export const USE_FD = 89;
export const ZAP_ENFORCE_DOMAIN = 93;

/**
 * A context for one owner: two threads of libzmq's, which share nothing with other owners', so that a
 * slow look-up of one's host does not hold up the rest, and closing waits for nobody else.
 */
export class ZmqContext {
  readonly libzmq: Libzmq;
  readonly #lease: LibzmqLease;
  readonly #context: Deno.PointerValue;
  readonly #sockets: RawSocket[] = [];
  #closed = false;

  /**
   * @param libzmqPath A system libzmq to use.
   * @throws {LibzmqError} If there is no libzmq.
   * @throws {ZmqError} If there are too many descriptors.
   */
  constructor(libzmqPath?: string) {
    this.#lease = acquireLibzmq(libzmqPath);
    this.libzmq = this.#lease.libzmq;
    this.#context = this.libzmq.zmq_ctx_new();
    if (this.#context !== null) return;
    try {
      checkZmq(this.libzmq, -1, "zmq_ctx_new", null);
    } finally {
      this.#lease.release();
    }
  }

  /**
   * Opens a socket that drops what it has not sent when it is closed.
   *
   * @param type PUSH, PULL or REP.
   * @param endpoint What it is for, for errors.
   */
  open(type: number, endpoint: string): RawSocket {
    const handle = this.libzmq.zmq_socket(this.#context, type);
    if (handle === null) checkZmq(this.libzmq, -1, "zmq_socket", endpoint);
    const socket = new RawSocket(this.libzmq, handle, endpoint);
    this.#sockets.push(socket);
    socket.setInt(LINGER, 0);
    return socket;
  }

  /**
   * Closes the sockets, then the context. Twice is fine.
   *
   * @param aside Does not wait for libzmq's threads. They end at once, unless one of them looks up a
   *   host: that can take many seconds, for which the process goes on, but does not stand still.
   */
  close({ aside = false }: { readonly aside?: boolean } = {}): void {
    if (this.#closed) return;
    this.#closed = true;
    for (const socket of this.#sockets) this.libzmq.zmq_close(socket.handle);
    if (aside) {
      void this.#endAside();
      return;
    }
    let result: number;
    do result = this.libzmq.zmq_ctx_term(this.#context); while (
      result < 0 && this.libzmq.zmq_errno() === EINTR
    );
    this.#lease.release();
  }

  async #endAside(): Promise<void> {
    // It fails on a signal only; errno of another thread cannot be asked for.
    while (await this.libzmq.zmq_ctx_term_aside(this.#context) < 0);
    this.#lease.release();
  }
}

/** A socket and its options. Its context closes it. */
export class RawSocket {
  readonly handle: Deno.PointerValue;
  readonly #libzmq: Libzmq;
  readonly #endpoint: string;
  readonly #int: Int32Array<ArrayBuffer> = new Int32Array(1);
  readonly #length: BigUint64Array<ArrayBuffer> = new BigUint64Array(1);

  /** Made by {@linkcode ZmqContext.open}. */
  constructor(libzmq: Libzmq, handle: Deno.PointerValue, endpoint: string) {
    this.#libzmq = libzmq;
    this.handle = handle;
    this.#endpoint = endpoint;
  }

  /** Sets an option that is an int. */
  setInt(option: number, value: number): void {
    this.#set(option, Int32Array.of(value));
  }

  /** Sets an option that is an int64_t. */
  setBigInt(option: number, value: bigint): void {
    this.#set(option, BigInt64Array.of(value));
  }

  /** Sets an option that is a text; the NUL counts, as keys in Z85 want it. */
  setKey(option: number, key: string): void {
    this.#set(option, cText(key));
  }

  /** Sets an option that is a text without a NUL. */
  setText(option: number, text: string): void {
    this.#set(option, new TextEncoder().encode(text));
  }

  /** Tells an option that is an int. */
  getInt(option: number): number {
    this.#length[0] = 4n;
    const result = this.#libzmq.zmq_getsockopt(this.handle, option, this.#int, this.#length);
    checkZmq(this.#libzmq, result, "zmq_getsockopt", this.#endpoint);
    return this.#int[0]!;
  }

  /** Tells an option that is a text. */
  getText(option: number): string {
    const text = new Uint8Array(1024);
    this.#length[0] = BigInt(text.length);
    const result = this.#libzmq.zmq_getsockopt(this.handle, option, text, this.#length);
    checkZmq(this.#libzmq, result, "zmq_getsockopt", this.#endpoint);
    return new TextDecoder().decode(text.subarray(0, Number(this.#length[0]) - 1));
  }

  #set(
    option: number,
    value: Uint8Array<ArrayBuffer> | Int32Array<ArrayBuffer> | BigInt64Array<ArrayBuffer>,
  ): void {
    const length = BigInt(value.byteLength);
    const result = this.#libzmq.zmq_setsockopt(this.handle, option, value, length);
    checkZmq(this.#libzmq, result, "zmq_setsockopt", this.#endpoint);
  }
}
