/**
 * The load of an engine as OpenTelemetry metrics: observable gauges, which the exporter of the
 * process reads and sends when its time comes. Deno has one built in (`OTEL_DENO=true`).
 *
 * {@linkcode observeLoad} registers them.
 *
 * @module
 */

export { type LoadObservation, observeLoad, type ObserveLoadOptions } from "./observe_load.ts";
