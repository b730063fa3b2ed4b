/** From a message to a pickle, byte for byte as Python's pickler writes it. */

import { KV_FIELD_COUNT, KV_FIELDS } from "./fields.ts";
import { valuesToEncode } from "./field_values.ts";
import type { KvMetricsMessage } from "./kv_metrics.ts";
import {
  type FormLayout,
  FRAME_LENGTH_AT,
  FRAMED_AT,
  KEYS,
  LAYOUTS,
  type PickleForm,
  shortText,
} from "./pickle_layout.ts";
import * as op from "./pickle_opcodes.ts";

/** The modules that SGLang's class has been in, the newest last. */
export const KV_METRICS_MODULES = [
  "sglang.srt.managers.scheduler",
  "sglang.srt.managers.scheduler_metrics_mixin",
  "sglang.srt.observability.scheduler_metrics_mixin",
  "sglang.srt.managers.scheduler_components.kv_events_publisher",
] as const;

const NEWEST: string = KV_METRICS_MODULES[3];

/** How a pickle is written: for which receiver. */
export interface PickleOptions {
  /**
   * The pickle protocol: 4 as senders of 2025, 5 as they do now. Any Python that SGLang runs on
   * reads both.
   *
   * @default {5}
   */
  readonly protocol?: 4 | 5;
  /**
   * The module in which the receiver's Python finds `KvMetrics`.
   *
   * @default {"sglang.srt.managers.scheduler_components.kv_events_publisher"}
   */
  readonly module?: string;
  /**
   * How the receiver's class is made. Python refuses a form that its class cannot take.
   *
   * @default {"struct" for the newest module, "plain" for every other}
   */
  readonly form?: PickleForm;
}

const DOTTED_NAME = /^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*$/;
const LONGEST_NAME = 255;
/** Bytes of a value at most: an instruction, a length, and an integer of up to 2^53. */
const MAX_VALUE_BYTES = 9;

/** Writes pickles of one kind. */
export class PickleWriter {
  readonly #layout: FormLayout;
  readonly #bytes: Uint8Array<ArrayBuffer>;
  readonly #view: DataView;
  readonly #valuesAt: number;

  /**
   * @param options See {@linkcode PickleOptions}.
   * @throws {RangeError} If an option is none of its values, or the module no dotted ASCII name.
   */
  constructor(options: PickleOptions = {}) {
    const { protocol = 5, module = NEWEST } = options;
    const { form = module === NEWEST ? "struct" : "plain" } = options;
    if (protocol !== 4 && protocol !== 5) {
      throw new RangeError(`Cannot write pickle protocol ${protocol}: only 4 and 5`);
    }
    if (module.length > LONGEST_NAME || !DOTTED_NAME.test(module)) {
      throw new RangeError(`Cannot write a class of module ${module}: not a dotted name`);
    }
    if (!Object.hasOwn(LAYOUTS, form)) {
      throw new RangeError(`Cannot write a class of form ${form}: not plain, slots or struct`);
    }
    this.#layout = LAYOUTS[form];
    const head = [
      ...[op.PROTO, protocol, op.FRAME, 0, 0, 0, 0, 0, 0, 0, 0],
      ...this.#layout.before.bytes,
      // What follows the name begins with the step that remembers it.
      ...shortText(module).slice(0, -1),
      ...this.#layout.after.bytes,
    ];
    const keyBytes = KEYS.reduce((sum, { bytes }) => sum + bytes.length, 0);
    this.#bytes = new Uint8Array(
      head.length + keyBytes + KV_FIELD_COUNT * MAX_VALUE_BYTES + this.#layout.end.bytes.length,
    );
    this.#bytes.set(head);
    this.#view = new DataView(this.#bytes.buffer);
    this.#valuesAt = head.length;
  }

  /**
   * Writes one message.
   *
   * @param message The values; `null` becomes None.
   * @returns The pickle.
   * @throws {TypeError} If a value is neither a number nor `null`.
   * @throws {RangeError} If a count has a fraction, or is beyond 2^53.
   */
  write(message: KvMetricsMessage): Uint8Array<ArrayBuffer> {
    const values = valuesToEncode(message);
    let at = this.#valuesAt;
    for (let n = 0; n < KV_FIELD_COUNT; n++) {
      const key = KEYS[n]!.bytes;
      this.#bytes.set(key, at);
      at = this.#value(at + key.length, values[n]!, KV_FIELDS[n]!.type === "int");
    }
    this.#bytes.set(this.#layout.end.bytes, at);
    const end = at + this.#layout.end.bytes.length;
    this.#view.setUint32(FRAME_LENGTH_AT, end - FRAMED_AT, true);
    return this.#bytes.slice(0, end);
  }

  /** Writes a value in its shortest form, as Python does; returns where the next one starts. */
  #value(at: number, value: number | null, isInt: boolean): number {
    const view = this.#view;
    if (value === null) {
      view.setUint8(at, op.NONE);
      return at + 1;
    }
    if (!isInt) {
      view.setUint8(at, op.BINFLOAT);
      view.setFloat64(at + 1, value);
      return at + 9;
    }
    if (value >= 0 && value <= 0xff) {
      view.setUint16(at, op.BININT1 << 8 | value);
      return at + 2;
    }
    if (value >= 0 && value <= 0xffff) {
      view.setUint8(at, op.BININT2);
      view.setUint16(at + 1, value, true);
      return at + 3;
    }
    if (value >= -(2 ** 31) && value < 2 ** 31) {
      view.setUint8(at, op.BININT);
      view.setInt32(at + 1, value, true);
      return at + 5;
    }
    return this.#long(at, value);
  }

  /** Two's complement in as few bytes as keep the sign. */
  #long(at: number, value: number): number {
    let length = 5;
    while (value < -(2 ** (8 * length - 1)) || value >= 2 ** (8 * length - 1)) length++;
    this.#view.setUint8(at, op.LONG1);
    this.#view.setUint8(at + 1, length);
    for (let n = 0; n < length; n++) {
      this.#view.setUint8(at + 2 + n, Math.floor(value / 2 ** (8 * n)) % 256);
    }
    return at + 2 + length;
  }
}

/**
 * Pickles metrics, so that Python's `recv_pyobj` makes an object of SGLang's class of them.
 *
 * Which class the receiver has decides the form: SGLang's newest one is a msgspec Struct, and takes
 * `"struct"` alone; the one of 2025 is a plain class, and takes `"plain"` or `"slots"`; the
 * dataclass between them takes every form.
 *
 * @param message The metrics; `null` becomes None.
 * @param options See {@linkcode PickleOptions}.
 * @returns The pickle: the bytes that `pickle.dumps` gives for such an object.
 * @throws {TypeError} If a value is neither a number nor `null`.
 * @throws {RangeError} If a count has a fraction or is beyond 2^53, or an option is wrong.
 *
 * @example
 * ```ts
 * import { createKvMetrics, encodeKvMetricsPickle } from "./mod.ts";
 *
 * const pickle = encodeKvMetricsPickle(createKvMetrics({ requestActiveSlots: 3 }), {
 *   protocol: 4,
 *   module: "sglang.srt.managers.scheduler",
 * });
 * console.log(pickle.length); // 273
 * ```
 */
export function encodeKvMetricsPickle(
  message: KvMetricsMessage,
  options: PickleOptions = {},
): Uint8Array<ArrayBuffer> {
  return new PickleWriter(options).write(message);
}
