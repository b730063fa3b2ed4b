/** The two kinds of socket that loads go through: PUSH connects and never waits, PULL binds. */

import {
  CONFLATE,
  CONNECT_TIMEOUT,
  IMMEDIATE,
  IPV6,
  LAST_ENDPOINT,
  MAXMSGSIZE,
  PULL,
  PUSH,
  type RawSocket,
  RCVHWM,
  RCVMORE,
  SNDHWM,
  TCP_KEEPALIVE,
  TCP_KEEPALIVE_CNT,
  TCP_KEEPALIVE_IDLE,
  TCP_KEEPALIVE_INTVL,
  TCP_MAXRT,
  USE_FD,
  ZmqContext,
} from "./context.ts";
import {
  applyCurveClient,
  applyCurveServer,
  type CurveClientOptions,
  type CurveServerOptions,
} from "./curve.ts";
import { sizeT } from "../slotfile/size_t.ts";
import { type Endpoint, isLoopback, needsIpv6, needsLookup, parseEndpoint } from "./endpoint.ts";
import { IpcGuard } from "./ipc_guard.ts";
import { checkZmq, cText, EAGAIN, EINTR, type Libzmq, zmqError } from "./libzmq.ts";
import { ZapHandler } from "./zap_handler.ts";

const DONTWAIT = 1;

/** How long a connection may leave sent bytes unacknowledged before it is made anew. */
const UNACKNOWLEDGED_MS = 15_000;

/** How long one attempt to connect may take: the system's own ones become rarer and rarer. */
const CONNECT_MS = 3_000;

/** What CURVE adds to a message on the wire, which libzmq's limit counts: "MESSAGE", nonce, flags, MAC. */
const CURVE_OVERHEAD = 33;

/** Options of {@linkcode PushSocket}. */
export interface PushSocketOptions {
  /** Keep only the newest message that could not be sent yet. */
  readonly conflate?: boolean;
  /**
   * ZMQ_SNDHWM: messages that are kept until they can be sent; 0 is no limit. Not with `conflate`.
   *
   * @default {1000}
   */
  readonly sendHighWaterMark?: number;
  /**
   * ZMQ_IMMEDIATE: take messages only while there is a connection. Otherwise libzmq keeps the first
   * ones until there is, and what it keeps cannot be superseded.
   */
  readonly onlyConnected?: boolean;
  readonly curve?: CurveClientOptions | undefined;
  readonly libzmqPath?: string | undefined;
}

/** A connected PUSH socket. */
export class PushSocket implements Disposable {
  readonly #endpoint: Endpoint;
  readonly #context: ZmqContext;
  readonly #socket: RawSocket;
  #closed = false;

  /**
   * Connects. The peer need not be there: libzmq goes on trying.
   *
   * @throws {RangeError} If the endpoint cannot be used.
   * @throws {TypeError} If a key is none.
   * @throws {LibzmqError} If there is no libzmq.
   * @throws {ZmqError} If libzmq refuses.
   */
  constructor(endpoint: string, options: PushSocketOptions = {}) {
    this.#endpoint = parseEndpoint(endpoint, "connect");
    this.#context = new ZmqContext(options.libzmqPath);
    try {
      const { libzmq } = this.#context;
      this.#socket = this.#context.open(PUSH, endpoint);
      if (needsIpv6(this.#endpoint)) this.#socket.setInt(IPV6, 1);
      if (options.conflate) this.#socket.setInt(CONFLATE, 1);
      if (options.sendHighWaterMark !== undefined) {
        this.#socket.setInt(SNDHWM, options.sendHighWaterMark);
      }
      if (options.onlyConnected) this.#socket.setInt(IMMEDIATE, 1);
      // A peer whose machine is gone says nothing, and the system would try for a quarter of an hour.
      this.#socket.setInt(TCP_MAXRT, UNACKNOWLEDGED_MS);
      this.#socket.setInt(CONNECT_TIMEOUT, CONNECT_MS);
      if (options.curve) applyCurveClient(libzmq, this.#socket, options.curve);
      const result = libzmq.zmq_connect(this.#socket.handle, cText(endpoint));
      checkZmq(libzmq, result, "zmq_connect", endpoint);
    } catch (error) {
      this.#context.close();
      throw error;
    }
  }

  /**
   * Hands a message to libzmq, which copies it. Does not wait.
   *
   * @returns `"dropped"` if libzmq has no room for it, or with `onlyConnected` no connection; with
   *   `conflate` it always has.
   * @throws {TypeError} If the socket is closed.
   * @throws {ZmqError} If libzmq fails otherwise.
   */
  send(message: Uint8Array<ArrayBuffer>): "sent" | "dropped" {
    if (this.#closed) throw new TypeError("Cannot send: the socket is closed");
    const { libzmq } = this.#context;
    const length = sizeT(message.length);
    if (libzmq.zmq_send(this.#socket.handle, message, length, DONTWAIT) >= 0) return "sent";
    const errno = libzmq.zmq_errno();
    if (errno === EAGAIN || errno === EINTR) return "dropped";
    throw zmqError(libzmq, errno, "zmq_send", this.#endpoint.text);
  }

  /** Closes at once; what was not sent yet is lost. Twice is fine. */
  close(): void {
    this.#closed = true;
    this.#context.close({ aside: needsLookup(this.#endpoint) });
  }

  [Symbol.dispose](): void {
    this.close();
  }
}

/** Options of {@linkcode PullSocket}. */
export interface PullSocketOptions {
  /** ZMQ_MAXMSGSIZE: a peer that sends more loses its connection before the message is held. */
  readonly maxMessageSize: number;
  /**
   * ZMQ_RCVHWM: messages that are kept for each peer; then its writes wait.
   *
   * @default {1000}
   */
  readonly receiveHighWaterMark?: number;
  readonly curve?: CurveServerOptions | undefined;
  /** Bind to more than this machine without `curve`. */
  readonly allowInsecureBind?: boolean | undefined;
  readonly libzmqPath?: string | undefined;
}

/** {@linkcode PullSocket.receive} found nothing. */
export const NOTHING = -1;
/** {@linkcode PullSocket.receive} took a message of several parts, and threw it away. */
export const MULTIPART = -2;

/**
 * A bound PULL socket. It is for polling, with `zap` beside it where there is one.
 *
 * It does not conflate: libzmq 4.3 aborts the process when a conflating socket gets a message's first
 * part without its last. What it cannot limit is a message of endless parts: libzmq holds them all
 * until the last has come, whatever RCVHWM and MAXMSGSIZE say. Only peers that are let in can do
 * that, so on a network use CURVE with `allowedClients`.
 */
export class PullSocket implements Disposable {
  /** Where it is bound, with the port that a wildcard got. */
  readonly endpoint: string;
  /** Answers whether a client is let in; `null` without `allowedClients`. */
  readonly zap: ZapHandler | null = null;

  readonly #context: ZmqContext;
  readonly #socket: RawSocket;
  readonly #guard: IpcGuard | null;
  #closed = false;

  /**
   * Binds.
   *
   * @throws {RangeError} If the endpoint cannot be used.
   * @throws {TypeError} If a key is none, or the endpoint is open to a network without keys.
   * @throws {EndpointInUseError} If another socket is bound to it.
   * @throws {LibzmqError} If there is no libzmq.
   * @throws {ZmqError} If libzmq or the system refuses.
   */
  constructor(endpoint: string, options: PullSocketOptions) {
    const parsed = parseEndpoint(endpoint, "bind");
    const isOpen = options.curve === undefined && options.allowInsecureBind !== true;
    if (isOpen && !isName(parsed)) refuseNetwork(parsed);
    this.#context = new ZmqContext(options.libzmqPath);
    let guard: IpcGuard | null = null;
    try {
      const { libzmq } = this.#context;
      this.#socket = this.#context.open(PULL, endpoint);
      this.#setOptions(parsed, options);
      // Before the bind: a client that comes first would find nobody to let it in.
      const allowed = options.curve?.allowedClients;
      if (allowed !== undefined) this.zap = new ZapHandler(this.#context, allowed);
      if (parsed.transport === "ipc") guard = IpcGuard.take(libzmq, parsed);
      if (guard !== null) this.#socket.setInt(USE_FD, guard.fd);
      checkZmq(libzmq, libzmq.zmq_bind(this.#socket.handle, cText(endpoint)), "zmq_bind", endpoint);
      guard?.handOver();
      this.endpoint = this.#socket.getText(LAST_ENDPOINT);
      if (isOpen && isName(parsed)) refuseNetwork(parseEndpoint(this.endpoint, "bind"));
    } catch (error) {
      this.#context.close();
      guard?.release();
      throw error;
    }
    this.#guard = guard;
  }

  /** libzmq, for polling. */
  get libzmq(): Libzmq {
    return this.#context.libzmq;
  }

  /** What to poll. */
  get handle(): Deno.PointerValue {
    return this.#socket.handle;
  }

  /**
   * Takes one message. Does not wait.
   *
   * @param buffer Gets as many of its bytes as it holds.
   * @returns The size of the message, which may be more; {@linkcode NOTHING} or {@linkcode MULTIPART}.
   * @throws {TypeError} If the socket is closed.
   * @throws {ZmqError} If libzmq fails.
   */
  receive(buffer: Uint8Array<ArrayBuffer>): number {
    if (this.#closed) throw new TypeError("Cannot receive: the socket is closed");
    const size = this.#receivePart(buffer);
    if (size < 0 || this.#socket.getInt(RCVMORE) === 0) return size;
    // All parts are there: libzmq delivers none before the last.
    do this.#receivePart(buffer); while (this.#socket.getInt(RCVMORE) !== 0);
    return MULTIPART;
  }

  /** Unbinds and closes, and removes the file of an ipc endpoint. Twice is fine. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#context.close();
    this.#guard?.release();
  }

  [Symbol.dispose](): void {
    this.close();
  }

  #setOptions(endpoint: Endpoint, options: PullSocketOptions): void {
    const socket = this.#socket;
    if (needsIpv6(endpoint)) socket.setInt(IPV6, 1);
    const overhead = options.curve === undefined ? 0 : CURVE_OVERHEAD;
    socket.setBigInt(MAXMSGSIZE, BigInt(options.maxMessageSize + overhead));
    if (options.receiveHighWaterMark !== undefined) {
      socket.setInt(RCVHWM, options.receiveHighWaterMark);
    }
    // A peer whose machine is gone never says so. After two minutes its descriptor is given up.
    socket.setInt(TCP_KEEPALIVE, 1);
    socket.setInt(TCP_KEEPALIVE_IDLE, 60);
    socket.setInt(TCP_KEEPALIVE_INTVL, 15);
    socket.setInt(TCP_KEEPALIVE_CNT, 4);
    if (options.curve !== undefined) applyCurveServer(this.libzmq, socket, options.curve);
  }

  #receivePart(buffer: Uint8Array<ArrayBuffer>): number {
    const { libzmq } = this.#context;
    const length = BigInt(buffer.length);
    const size = libzmq.zmq_recv(this.#socket.handle, buffer, length, DONTWAIT);
    if (size >= 0) return size;
    const errno = libzmq.zmq_errno();
    if (errno === EAGAIN || errno === EINTR) return NOTHING;
    throw zmqError(libzmq, errno, "zmq_recv", this.endpoint);
  }
}

/** A name may stand for any address; it is known once the socket is bound. */
function isName(endpoint: Endpoint): boolean {
  return endpoint.transport === "tcp" && endpoint.hostKind === "name";
}

function refuseNetwork(endpoint: Endpoint): void {
  if (isLoopback(endpoint)) return;
  throw new TypeError(
    `Cannot bind ${endpoint.text}: other machines reach it, and without CURVE keys whoever does can ` +
      "write any rank's load; give curve, or bind to loopback, or say allowInsecureBind",
  );
}
