/** Serves the page and a stream whose every event a test decides: also what no good server would do. */

import { PAGE_CSP, pageAsset } from "../../src/http/page/assets.ts";

/** A rank as its state is told. */
export interface ScriptedRank {
  readonly dp_rank: number;
  readonly state: "unreported" | "live" | "stale" | "corrupt";
  readonly age_ms: number | null;
}

/** A rank as its load is told; values that are left out are 0. */
export type ScriptedLoad = ScriptedRank & Readonly<Record<string, unknown>>;

/** What a {@linkcode PageServer} is told. */
export interface PageServerOptions {
  /** Where the page is mounted: `/` or `/some/path/`. */
  readonly base?: string;
  /** The token that the stream wants. */
  readonly token?: string;
}

const NUMBERS = {
  timestamp: 0,
  num_running_reqs: 0,
  num_waiting_reqs: 0,
  num_waiting_uncached_tokens: 0,
  num_used_tokens: 0,
  num_total_tokens: 0,
  max_total_num_tokens: 0,
  max_running_requests: 0,
  token_usage: 0,
  gen_throughput: 0,
  cache_hit_rate: 0,
};

/** One server. */
export class PageServer implements AsyncDisposable {
  /** What was asked for: path, and the id that a stream was to go on after. */
  readonly requests: { readonly path: string; readonly lastEventId: string | null }[] = [];
  readonly #server: Deno.HttpServer<Deno.NetAddr>;
  readonly #base: string;
  readonly #token: string | null;
  readonly #streams = new Set<ReadableStreamDefaultController<Uint8Array>>();
  readonly #loads = new Map<number, ScriptedLoad>();
  #ranks: readonly ScriptedRank[] = [];
  #eventId = 0;
  #refusing = false;

  constructor(options: PageServerOptions = {}) {
    this.#base = options.base ?? "/";
    this.#token = options.token ?? null;
    this.#server = Deno.serve(
      { hostname: "127.0.0.1", port: 0, onListen: () => {} },
      (request) => this.#answer(request),
    );
  }

  /** Where the page is. */
  get url(): string {
    return `http://127.0.0.1:${this.#server.addr.port}${this.#base}`;
  }

  /** How many clients listen. */
  get streams(): number {
    return this.#streams.size;
  }

  /** The id of the event that was sent last. */
  get lastEventId(): string {
    return String(this.#eventId);
  }

  /** Tells loads, with their ranks' states. */
  tell(loads: readonly ScriptedLoad[]): void {
    for (const load of loads) this.#loads.set(load.dp_rank, { ...NUMBERS, ...load });
    this.#send("loads", {
      timestamp: new Date().toISOString(),
      loads: loads.map(({ dp_rank }) => this.#loads.get(dp_rank)),
    });
  }

  /** Tells all ranks' states. */
  tellHealth(ranks: readonly ScriptedRank[]): void {
    this.#ranks = ranks;
    this.#send("health", this.#health());
  }

  /** Sends text as it is. */
  write(text: string): void {
    const bytes = new TextEncoder().encode(text);
    for (const stream of this.#streams) stream.enqueue(bytes);
  }

  /** Ends all streams, and refuses new ones until told otherwise. */
  drop(reason?: string): void {
    this.#refusing = true;
    if (reason !== undefined) this.#send("bye", { reason });
    for (const stream of this.#streams) stream.close();
    this.#streams.clear();
  }

  /** Takes streams again. */
  accept(): void {
    this.#refusing = false;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.drop();
    await this.#server.shutdown();
  }

  #health() {
    return {
      timestamp: new Date().toISOString(),
      dp_size: this.#ranks.length,
      ranks: this.#ranks,
    };
  }

  #answer(request: Request): Response {
    const { pathname } = new URL(request.url);
    const lastEventId = request.headers.get("Last-Event-ID");
    this.requests.push({ path: pathname, lastEventId });
    if (!pathname.startsWith(this.#base)) return new Response(null, { status: 404 });
    const path = `/${pathname.slice(this.#base.length)}`;
    if (path === "/v1/loads/stream") return this.#stream(request);
    const asset = pageAsset(path);
    if (asset === null) return new Response(null, { status: 404 });
    return new Response(asset.body, {
      headers: {
        "Content-Type": asset.contentType,
        "Content-Security-Policy": PAGE_CSP,
        "ETag": asset.etag,
      },
    });
  }

  #stream(request: Request): Response {
    const { headers } = request;
    if (this.#token !== null && headers.get("Authorization") !== `Bearer ${this.#token}`) {
      return new Response(null, { status: 401 });
    }
    if (this.#refusing) return new Response(null, { status: 503 });
    let mine: ReadableStreamDefaultController<Uint8Array> | undefined;
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => {
        mine = controller;
        this.#streams.add(controller);
        controller.enqueue(new TextEncoder().encode(
          "retry: 200\n\n" + this.#event("health", this.#health()) +
            this.#event("loads", { loads: [...this.#loads.values()] }),
        ));
      },
      cancel: () => {
        if (mine !== undefined) this.#streams.delete(mine);
      },
    });
    return new Response(body, {
      headers: { "Content-Type": "text/event-stream", "Cache-Control": "no-store" },
    });
  }

  #send(type: string, data: unknown): void {
    this.write(this.#event(type, data));
  }

  #event(type: string, data: unknown): string {
    return `id: ${++this.#eventId}\nevent: ${type}\ndata: ${JSON.stringify(data)}\n\n`;
  }
}
