/** OpenAI-like servers without a socket, one for each rank of a simulated engine. */

import { Completion } from "../engine/completion.ts";
import { LIMITS } from "../engine/limits.ts";
import type { SimulatedScheduler } from "../engine/scheduler.ts";
import {
  type AnswerHead,
  completionKind,
  errorResponse,
  type FinishReason,
  STREAM_END,
  streamEvent,
  wholeAnswer,
} from "./openai.ts";
import { type Asked, readAsked } from "./prompt.ts";
import type { Backend } from "./proxy.ts";

const MODEL = "simulated";
/** How long an answer is if nobody sets a limit. */
const USUAL_TOKENS = 64;
const WORDS = [" one", " word", " for", " each", " token", " that", " was", " decoded,"] as const;

/** The ranks of a simulated engine, as what a proxy sends requests to. */
export function simulatedBackend(schedulers: readonly SimulatedScheduler[]): Backend {
  return async (dpRank, request) => {
    const { pathname } = new URL(request.url);
    if (pathname === "/v1/models") {
      const model = { id: MODEL, object: "model", created: 0, owned_by: "loadslots" };
      return Response.json({ object: "list", data: [model] });
    }
    const kind = completionKind(pathname);
    const scheduler = schedulers[dpRank];
    if (kind === null || scheduler === undefined) {
      return errorResponse(404, "not_found", `Nothing is at ${pathname} of rank ${dpRank}`);
    }
    const asked = readAsked(await request.text());
    if (asked === null) {
      return errorResponse(400, "invalid_body", "The body is no JSON object with a prompt");
    }
    const outputTokens = asked.maxTokens ?? USUAL_TOKENS;
    if (!(Number.isInteger(outputTokens) && outputTokens >= 1)) {
      return errorResponse(400, "invalid_max_tokens", "max_tokens is no whole number above 0");
    }
    if (asked.promptTokens > LIMITS.maxPromptTokens || outputTokens > LIMITS.maxOutputTokens) {
      return errorResponse(
        400,
        "context_length_exceeded",
        `At most ${LIMITS.maxPromptTokens} tokens of prompt and ${LIMITS.maxOutputTokens} of answer`,
      );
    }
    return await answer(scheduler, kind, { ...asked, outputTokens }, request.signal);
  };
}

async function answer(
  scheduler: SimulatedScheduler,
  kind: AnswerHead["kind"],
  asked: Asked & { readonly outputTokens: number },
  signal: AbortSignal,
): Promise<Response> {
  const head: AnswerHead = {
    kind,
    id: `${kind === "chat" ? "chatcmpl" : "cmpl"}-${crypto.randomUUID()}`,
    model: asked.model ?? MODEL,
    created: Math.floor(Date.now() / 1000),
  };
  const finishReason = asked.maxTokens === null ? "stop" : "length";
  const completion = new Completion(scheduler, asked, signal);
  if (asked.stream) {
    const events = ReadableStream.from(eventsOf(completion, head, finishReason));
    return new Response(events.pipeThrough(new TextEncoderStream()), {
      headers: { "content-type": "text/event-stream", "cache-control": "no-store" },
    });
  }
  let text = "";
  let tokens = 0;
  for await (const more of completion) {
    text += textOf(tokens, more);
    tokens += more;
  }
  return wholeAnswer(head, text, finishReason, { prompt: asked.promptTokens, completion: tokens });
}

/** One event for the tokens of each step, as an engine streams them. */
async function* eventsOf(
  completion: Completion,
  head: AnswerHead,
  finishReason: FinishReason,
): AsyncGenerator<string> {
  let tokens = 0;
  for await (const more of completion) {
    yield streamEvent(head, textOf(tokens, more), null);
    tokens += more;
  }
  yield streamEvent(head, "", finishReason);
  yield STREAM_END;
}

function textOf(from: number, tokens: number): string {
  return Array.from({ length: tokens }, (_, at) => WORDS[(from + at) % WORDS.length]).join("");
}
