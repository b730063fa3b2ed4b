/** The little of OpenAI's API that the proxy and its simulated ranks speak. */

/** What can go wrong, by `code`, with the type that OpenAI gives it. */
const ERROR_TYPES = {
  400: "invalid_request_error",
  404: "invalid_request_error",
  405: "invalid_request_error",
  502: "server_error",
  503: "server_error",
} as const;

/** A status that answers an error. */
export type ErrorStatus = keyof typeof ERROR_TYPES;

/**
 * @param status The HTTP status.
 * @param code What a client can branch on.
 * @param message What a person can read.
 * @param headers More headers.
 * @returns An error as OpenAI's clients understand it.
 */
export function errorResponse(
  status: ErrorStatus,
  code: string,
  message: string,
  headers: Readonly<Record<string, string>> = {},
): Response {
  const error = { message, type: ERROR_TYPES[status], param: null, code };
  return Response.json({ error }, { status, headers });
}

/** Which API a request uses. */
export type CompletionKind = "chat" | "text";

/** @returns The API behind a path, or `null` if it is none of the two. */
export function completionKind(path: string): CompletionKind | null {
  if (path === "/v1/chat/completions") return "chat";
  return path === "/v1/completions" ? "text" : null;
}

/** What the parts of one answer have in common. */
export interface AnswerHead {
  readonly kind: CompletionKind;
  readonly id: string;
  readonly model: string;
  /** Unix time, in seconds. */
  readonly created: number;
}

/** Why an answer ended. */
export type FinishReason = "stop" | "length";

/** @returns One event of a streamed answer. */
export function streamEvent(
  { kind, ...head }: AnswerHead,
  text: string,
  finishReason: FinishReason | null,
): string {
  const choice = kind === "chat"
    ? { index: 0, delta: finishReason === null ? { role: "assistant", content: text } : {} }
    : { index: 0, text };
  const object = kind === "chat" ? "chat.completion.chunk" : "text_completion";
  const choices = [{ ...choice, finish_reason: finishReason }];
  return `data: ${JSON.stringify({ ...head, object, choices })}\n\n`;
}

/** What ends a streamed answer. */
export const STREAM_END = "data: [DONE]\n\n";

/** @returns The whole of an answer that is not streamed. */
export function wholeAnswer(
  { kind, ...head }: AnswerHead,
  text: string,
  finishReason: FinishReason,
  tokens: { readonly prompt: number; readonly completion: number },
): Response {
  const choice = kind === "chat"
    ? { index: 0, message: { role: "assistant", content: text } }
    : { index: 0, text };
  return Response.json({
    ...head,
    object: kind === "chat" ? "chat.completion" : "text_completion",
    choices: [{ ...choice, finish_reason: finishReason }],
    usage: {
      prompt_tokens: tokens.prompt,
      completion_tokens: tokens.completion,
      total_tokens: tokens.prompt + tokens.completion,
    },
  });
}
