/** CURVE: who may write, and that nobody in between reads or changes a load. */

import { LibzmqError } from "../errors.ts";
import {
  CURVE_PUBLICKEY,
  CURVE_SECRETKEY,
  CURVE_SERVER,
  CURVE_SERVERKEY,
  type RawSocket,
  ZAP_DOMAIN,
  ZAP_ENFORCE_DOMAIN,
} from "./context.ts";
import { acquireLibzmq, checkZmq, cText, type Libzmq } from "./libzmq.ts";

/** A key pair, each key as the 40 characters of its Z85 form. */
export interface CurveKeys {
  /** May be told to anybody. */
  readonly publicKey: string;
  /** Must be told to nobody. */
  readonly secretKey: string;
}

/** What a writer needs for CURVE. */
export interface CurveClientOptions {
  /** The reader's public key, so that no other reader gets the loads. */
  readonly serverKey: string;
  /**
   * The writer's own keys, which the reader may know it by.
   *
   * @default {a new pair}
   */
  readonly keys?: CurveKeys;
}

/** What a reader needs for CURVE. */
export interface CurveServerOptions {
  /** The reader's own keys. Writers need the public one. */
  readonly keys: CurveKeys;
  /**
   * The public keys of the writers that are let in. Without it, every writer is let in that knows
   * the reader's public key.
   */
  readonly allowedClients?: readonly string[];
}

/** Bytes of a Z85 key with its NUL. */
const KEY_BUFFER = 41;
const KEY_BYTES = 32;

/**
 * Makes a new key pair.
 *
 * @param options `libzmqPath`: a system libzmq to use instead of the shipped one.
 * @returns The pair.
 * @throws {LibzmqError} If there is no libzmq, or it was built without CURVE.
 *
 * @example
 * ```ts
 * import { generateCurveKeys } from "./mod.ts";
 *
 * const { publicKey, secretKey } = generateCurveKeys();
 * console.log(publicKey.length, secretKey.length); // 40 40
 * ```
 */
export function generateCurveKeys(
  options: { readonly libzmqPath?: string } = {},
): CurveKeys {
  const { libzmq, release } = acquireLibzmq(options.libzmqPath);
  try {
    return newKeys(libzmq);
  } finally {
    release();
  }
}

/**
 * Makes a socket a CURVE client.
 *
 * @throws {TypeError} If a key is none, or two do not belong together.
 * @throws {LibzmqError} If libzmq was built without CURVE.
 */
export function applyCurveClient(
  libzmq: Libzmq,
  socket: RawSocket,
  options: CurveClientOptions,
): void {
  requireCurve(libzmq);
  checkKey(libzmq, options.serverKey, "serverKey");
  if (options.keys !== undefined) checkKeys(libzmq, options.keys);
  const { publicKey, secretKey } = options.keys ?? newKeys(libzmq);
  socket.setKey(CURVE_SERVERKEY, options.serverKey);
  socket.setKey(CURVE_PUBLICKEY, publicKey);
  socket.setKey(CURVE_SECRETKEY, secretKey);
}

/**
 * Makes a socket a CURVE server.
 *
 * @throws {TypeError} If a key is none, or two do not belong together.
 * @throws {LibzmqError} If libzmq was built without CURVE.
 */
export function applyCurveServer(
  libzmq: Libzmq,
  socket: RawSocket,
  options: CurveServerOptions,
): void {
  requireCurve(libzmq);
  checkKeys(libzmq, options.keys);
  for (const key of options.allowedClients ?? []) checkKey(libzmq, key, "an allowed client");
  socket.setInt(CURVE_SERVER, 1);
  socket.setKey(CURVE_SECRETKEY, options.keys.secretKey);
  if (options.allowedClients === undefined) return;
  // Without these two, libzmq lets everybody in where nobody answers its questions.
  socket.setText(ZAP_DOMAIN, "loadslots");
  socket.setInt(ZAP_ENFORCE_DOMAIN, 1);
}

/** A key's 32 bytes in Z85. */
export function encodeKey(libzmq: Libzmq, bytes: Uint8Array<ArrayBuffer>): string {
  const text = new Uint8Array(KEY_BUFFER);
  libzmq.zmq_z85_encode(text, bytes, BigInt(KEY_BYTES));
  return textOf(text);
}

function newKeys(libzmq: Libzmq): CurveKeys {
  requireCurve(libzmq);
  const publicKey = new Uint8Array(KEY_BUFFER);
  const secretKey = new Uint8Array(KEY_BUFFER);
  const result = libzmq.zmq_curve_keypair(publicKey, secretKey);
  checkZmq(libzmq, result, "zmq_curve_keypair", null);
  return { publicKey: textOf(publicKey), secretKey: textOf(secretKey) };
}

function requireCurve(libzmq: Libzmq): void {
  if (libzmq.zmq_has(cText("curve")) === 1) return;
  throw new LibzmqError("it was built without CURVE", []);
}

function checkKeys(libzmq: Libzmq, { publicKey, secretKey }: CurveKeys): void {
  checkKey(libzmq, publicKey, "publicKey");
  checkKey(libzmq, secretKey, "secretKey");
  const derived = new Uint8Array(KEY_BUFFER);
  const result = libzmq.zmq_curve_public(derived, cText(secretKey));
  checkZmq(libzmq, result, "zmq_curve_public", null);
  if (textOf(derived) === publicKey) return;
  throw new TypeError("Cannot use CURVE keys: publicKey and secretKey do not belong together");
}

/** Refuses what is no key, without telling it: it may be a secret one. */
function checkKey(libzmq: Libzmq, key: string, name: string): void {
  const isText = typeof key === "string" && key.length === KEY_BUFFER - 1 && !key.includes("\0");
  if (isText && libzmq.zmq_z85_decode(new Uint8Array(KEY_BYTES), cText(key)) !== null) return;
  throw new TypeError(`Cannot use CURVE keys: ${name} is not 40 characters of Z85`);
}

function textOf(buffer: Uint8Array<ArrayBuffer>): string {
  return new TextDecoder().decode(buffer.subarray(0, KEY_BUFFER - 1));
}
