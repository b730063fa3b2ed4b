/** Server-Sent Events as text, and the marks by which a stream is resumed. */

/** One event. Its data is JSON, which has no line breaks. */
export function eventText(event: string, data: string, id: string | null = null): string {
  return `${id === null ? "" : `id: ${id}\n`}event: ${event}\ndata: ${data}\n\n`;
}

/** What a stream begins with: how soon a client comes back that lost it, in ms. */
export const RETRY_TEXT = "retry: 1000\n\n";

/** The mark of an event: changes are counted within one epoch, which is one run of a handler. */
export function markText(epoch: string, seq: number): string {
  return `${epoch}-${seq}`;
}

/**
 * Tells what a client that comes back has seen already.
 *
 * @param text Its `Last-Event-ID`.
 * @returns The last change that it was told, or -1 if it has to be told everything.
 */
export function seenSeq(text: string | null, epoch: string, newest: number): number {
  const [, ofEpoch, digits] = /^([0-9a-f]{1,32})-(\d{1,15})$/.exec(text ?? "") ?? [];
  const seq = Number(digits);
  return ofEpoch === epoch && seq <= newest ? seq : -1;
}
