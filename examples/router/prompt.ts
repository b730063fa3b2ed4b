/** What a router wants to know of a request before it is sent on: how long it is, and how it begins. */

/** What the body of a request asks for; what is missing or of another type is left out. */
export interface Asked {
  readonly promptTokens: number;
  /** The same for requests that begin alike, or come from the same user. */
  readonly prefixKey: string | null;
  readonly stream: boolean;
  readonly maxTokens: number | null;
  readonly model: string | null;
}

/** English has about four characters to a token; a router needs no better. */
const CHARACTERS_PER_TOKEN = 4;
/** Conversations that are the same up to here are taken for the same one. */
const PREFIX_CHARACTERS = 256;

/** @returns How many tokens a text of that length is, about. */
export function tokensOf(characters: number): number {
  return Math.ceil(characters / CHARACTERS_PER_TOKEN);
}

/** @returns What a body asks for, or `null` if it is no JSON object with a prompt. */
export function readAsked(text: string): Asked | null {
  const body = parseObject(text);
  if (body === null) return null;
  const texts = promptTexts(body);
  const [first] = texts;
  if (first === undefined) return null;
  const characters = texts.reduce((sum, it) => sum + it.length, 0);
  const maxTokens = body["max_completion_tokens"] ?? body["max_tokens"];
  return {
    promptTokens: Math.max(1, tokensOf(characters)),
    prefixKey: typeof body["user"] === "string"
      ? `user ${body["user"]}`
      : first.slice(0, PREFIX_CHARACTERS),
    stream: body["stream"] === true,
    maxTokens: typeof maxTokens === "number" ? maxTokens : null,
    model: typeof body["model"] === "string" ? body["model"] : null,
  };
}

/** The beginning of a body, and a body that has not lost it. */
export interface PeekedBody {
  /** What was read. */
  readonly head: Uint8Array<ArrayBuffer>;
  /** What is to be sent on: the head if that is all, else a stream of the head and the rest. */
  readonly body: Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array<ArrayBuffer>>;
}

/**
 * Reads the beginning of a body.
 *
 * @param body The body.
 * @param bytes How much to read at least, if there is as much.
 */
export async function peekBody(
  body: ReadableStream<Uint8Array<ArrayBuffer>>,
  bytes: number,
): Promise<PeekedBody> {
  const reader = body.getReader();
  const parts: Uint8Array<ArrayBuffer>[] = [];
  let length = 0;
  while (length < bytes) {
    const { done, value } = await reader.read();
    if (done) {
      const head = await new Blob(parts).bytes();
      return { head, body: head };
    }
    parts.push(value);
    length += value.length;
  }
  const head = await new Blob(parts).bytes();
  return { head, body: withHead(head, reader) };
}

/** Reads on only as far as the taker of the stream does. */
function withHead(
  head: Uint8Array<ArrayBuffer>,
  reader: ReadableStreamDefaultReader<Uint8Array<ArrayBuffer>>,
): ReadableStream<Uint8Array<ArrayBuffer>> {
  let isHeadSent = false;
  return new ReadableStream({
    async pull(controller) {
      if (!isHeadSent) {
        isHeadSent = true;
        return controller.enqueue(head);
      }
      const { done, value } = await reader.read();
      if (done) controller.close();
      else controller.enqueue(value);
    },
    cancel: (reason) => reader.cancel(reason),
  }, { highWaterMark: 0 });
}

/** The texts of a chat's messages, or of a prompt. */
function promptTexts(body: Readonly<Record<string, unknown>>): string[] {
  const { messages, prompt } = body;
  if (typeof prompt === "string") return [prompt];
  if (Array.isArray(prompt)) return prompt.filter((it) => typeof it === "string");
  if (!Array.isArray(messages)) return [];
  return messages.map((message: unknown) => {
    const content = isRecord(message) ? message["content"] : null;
    return typeof content === "string" ? content : JSON.stringify(content ?? "");
  });
}

function parseObject(text: string): Readonly<Record<string, unknown>> | null {
  try {
    const value: unknown = JSON.parse(text);
    return isRecord(value) ? value : null;
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    return null;
  }
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
