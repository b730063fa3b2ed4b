/**
 * The load of an LLM engine over HTTP: SGLang's own routes, and those that its users ask for.
 *
 * {@linkcode serveLoad} runs a server, {@linkcode createLoadHandler} makes what others mount.
 *
 * @module
 */

export type { CorsOptions } from "./access.ts";
export {
  createLoadHandler,
  type LoadHandler,
  type LoadHandlerOptions,
  type LoadHandlerStats,
} from "./load_handler.ts";
export type { EngineDescription } from "./load_json.ts";
export { type LoadServer, type LoadServerOptions, serveLoad } from "./load_server.ts";
export type { StreamCounts } from "./stream/load_feed.ts";
