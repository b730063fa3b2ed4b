/** A worker that owns a socket, as the main isolate holds it: start, watch, stop, in that order. */

// Not the Web's Worker: that one can neither be unreferenced, so that a program which forgets to
// close would never end, nor tells when it exits.
import { SHARE_ENV, Worker } from "node:worker_threads";
import { WorkerFailedError } from "../errors.ts";
import { type PackedError, unpackError } from "./error_transfer.ts";
import type { Wakeup } from "./wakeup.ts";

/** What a worker says: it runs, it could not start or failed, it has ended and let go of all. */
export type WorkerMessage<Ready> =
  | { readonly type: "ready"; readonly ready: Ready }
  | { readonly type: "failed"; readonly error: PackedError }
  | { readonly type: "closed" };

/** What the main isolate shares with its worker. */
export interface WorkerControl {
  /** Changes as long as the worker is alive. */
  readonly heartbeat: number;
  /** Asks the worker to end. */
  stop(): void;
}

// A heartbeat is due twice as often as it is looked for, and one look that comes late after
// this whole process was stopped is not yet a silence.
const LOOK_MS = 1000;
const SILENT_LOOKS = 3;
// A worker that was asked to end and is not stuck does so in milliseconds.
const STOP_TIMEOUT_MS = 5000;
const MAX_TIMER_MS = 2 ** 31 - 1;

/** A running worker. */
export class WorkerHandle<Ready> {
  /** What the worker said when it was ready. */
  readonly ready: Ready;
  /** Resolves when the worker has ended: with `null` as asked, or with the reason. Never rejects. */
  readonly closed: Promise<WorkerFailedError | null>;

  readonly #worker: Worker;
  readonly #control: WorkerControl;
  readonly #wakeup: Wakeup;
  readonly #close: (reason: WorkerFailedError | null) => void;
  readonly #exited: Promise<void>;
  readonly #onUnload: () => void;
  #timer: ReturnType<typeof setInterval> | undefined;
  #hasEnded = false;
  #stopped: Promise<void> | null = null;

  private constructor(
    worker: Worker,
    ready: Ready,
    control: WorkerControl,
    wakeup: Wakeup,
  ) {
    this.#worker = worker;
    this.ready = ready;
    this.#control = control;
    this.#wakeup = wakeup;
    const closed = Promise.withResolvers<WorkerFailedError | null>();
    this.closed = closed.promise;
    this.#close = closed.resolve;
    this.#exited = this.#follow();
    this.#onUnload = () => this.#ask();
    // A worker in a blocking call keeps the process from ending unless it is told to end.
    addEventListener("unload", this.#onUnload);
    this.#watchHeartbeat();
    worker.unref();
  }

  /**
   * Starts a worker and waits until it is ready.
   *
   * @param url The worker's module.
   * @param data What it gets as `workerData`.
   * @param control What is shared with it.
   * @param wakeup What wakes it; it is closed with the worker.
   * @throws The worker's own error if it could not start; then nothing is left of it.
   */
  static async start<Ready>(
    url: URL,
    data: unknown,
    control: WorkerControl,
    wakeup: Wakeup,
  ): Promise<WorkerHandle<Ready>> {
    let worker: Worker;
    try {
      // Without a word on it the environment is copied, and on a terminal Deno asks for leave to.
      worker = new Worker(moduleUrl(url), { workerData: data, env: SHARE_ENV });
    } catch (error) {
      wakeup.close();
      throw error;
    }
    const first = Promise.withResolvers<Ready>();
    worker.on("message", (message: WorkerMessage<Ready>) => {
      if (message.type === "ready") first.resolve(message.ready);
      else if (message.type === "failed") first.reject(unpackError(message.error));
    });
    worker.on("error", (error: Error) => first.reject(error));
    worker.on("exit", () => first.reject(new Error("Cannot start worker: it exited")));
    try {
      return new WorkerHandle(worker, await first.promise, control, wakeup);
    } catch (error) {
      await worker.terminate();
      wakeup.close();
      throw error;
    }
  }

  /** Wakes the worker. */
  wake(): void {
    this.#wakeup.wake();
  }

  /** Keeps the process alive while something of the worker is awaited. */
  async hold<Result>(work: Promise<Result>): Promise<Result> {
    // Not the worker's ref: it does not count who wants it, and the worker may end meanwhile.
    const timer = setInterval(() => {}, MAX_TIMER_MS);
    try {
      return await work;
    } finally {
      clearInterval(timer);
    }
  }

  /** Stops the worker and waits until it has let go of everything. Twice is fine. */
  stop(): Promise<void> {
    return this.#stopped ??= this.#stop();
  }

  async #stop(): Promise<void> {
    clearInterval(this.#timer);
    if (!this.#hasEnded) {
      this.#worker.ref();
      this.#ask();
      let timer: ReturnType<typeof setTimeout> | undefined;
      const timeout = new Promise<"timeout">((resolve) => {
        timer = setTimeout(() => resolve("timeout"), STOP_TIMEOUT_MS);
      });
      const outcome = await Promise.race([this.#exited, timeout]);
      clearTimeout(timer);
      if (outcome === "timeout") {
        // Its descriptors and memory stay with it: taking them away would end the process.
        this.#close(new WorkerFailedError("silent", "the worker does not end"));
        this.#worker.unref();
        removeEventListener("unload", this.#onUnload);
        return;
      }
    }
    await this.#worker.terminate();
    removeEventListener("unload", this.#onUnload);
    this.#wakeup.close();
    this.#close(null);
  }

  #ask(): void {
    this.#control.stop();
    this.#wakeup.wake();
  }

  /** Resolves when the worker has let go of everything, however it came to that. */
  #follow(): Promise<void> {
    return new Promise((resolve) => {
      const end = (reason: WorkerFailedError | null) => {
        this.#hasEnded = true;
        clearInterval(this.#timer);
        if (reason !== null) this.#close(reason);
        resolve();
      };
      this.#worker.on("message", (message: WorkerMessage<Ready>) => {
        if (message.type === "closed") end(null);
        if (message.type !== "failed") return;
        const cause = unpackError(message.error);
        end(new WorkerFailedError("crashed", cause.message, { cause }));
      });
      this.#worker.on(
        "error",
        (cause: Error) => end(new WorkerFailedError("crashed", cause.message, { cause })),
      );
      this.#worker.on("exit", () => {
        if (!this.#hasEnded) end(new WorkerFailedError("exited", "the worker has ended"));
      });
    });
  }

  #watchHeartbeat(): void {
    let seen = this.#control.heartbeat;
    let silent = 0;
    this.#timer = setInterval(() => {
      const now = this.#control.heartbeat;
      silent = now === seen ? silent + 1 : 0;
      seen = now;
      if (silent < SILENT_LOOKS) return;
      clearInterval(this.#timer);
      this.#close(new WorkerFailedError("silent", "the worker shows no sign of life"));
    }, LOOK_MS);
    this.#timer.unref();
  }
}

/** node:worker_threads takes files only; a module of the network is imported by one of its own. */
function moduleUrl(url: URL): URL {
  if (url.protocol === "file:" || url.protocol === "data:") return url;
  return new URL(`data:text/javascript,import ${encodeURIComponent(JSON.stringify(url.href))}`);
}
