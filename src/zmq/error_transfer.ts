/** Errors on their way from a worker: cloning keeps neither their class nor their fields. */

import {
  EndpointInUseError,
  LibzmqError,
  LockTimeoutError,
  SlotFileError,
  SnapshotDecodeError,
  ZmqError,
} from "../errors.ts";

/** An error as a message can carry it. */
export interface PackedError {
  readonly name: string;
  readonly message: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

const CLASSES: Readonly<Record<string, { readonly prototype: Error }>> = {
  EndpointInUseError,
  LibzmqError,
  LockTimeoutError,
  SlotFileError,
  SnapshotDecodeError,
  ZmqError,
  RangeError,
  TypeError,
  NotCapable: Deno.errors.NotCapable,
};

/** Makes an error fit for a message. */
export function packError(error: unknown): PackedError {
  if (!(error instanceof Error)) return { name: "Error", message: String(error), fields: {} };
  const fields = Object.fromEntries(
    Object.entries(error).filter(([key, value]) => key !== "name" && typeof value !== "function"),
  );
  return { name: error.name, message: error.message, fields };
}

/** Makes it an error of its class again; one of an unknown class becomes a plain `Error`. */
export function unpackError({ name, message, fields }: PackedError): Error {
  const error = new Error(message);
  const known = CLASSES[name];
  if (known !== undefined) Object.setPrototypeOf(error, known.prototype);
  Object.assign(error, fields);
  if (error.name !== name) Object.defineProperty(error, "name", { value: name });
  return error;
}
