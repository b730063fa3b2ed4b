/**
 * The load of an LLM engine, live: SGLang's load snapshots, read and written byte for byte.
 *
 * @example
 * ```ts
 * import { ShmLoadSnapshotReader, shmPathFor } from "./mod.ts";
 *
 * using reader = new ShmLoadSnapshotReader(shmPathFor("my-engine"));
 * for (const load of reader.readAll()) console.log(load.dpRank, load.numRunningReqs);
 * ```
 *
 * @module
 */

export {
  type DispatchFault,
  EndpointInUseError,
  KvMetricsDecodeError,
  type KvMetricsRefusal,
  LibzmqError,
  type LibzmqFailure,
  LockTimeoutError,
  NoRankAvailableError,
  type PickleRefusal,
  PickleRefusedError,
  SlotFileError,
  type SlotFileErrorOptions,
  type SlotFileReason,
  SnapshotDecodeError,
  WorkerFailedError,
  type WorkerFailure,
  ZmqError,
} from "./src/errors.ts";
export type { LoadReader, LoadUpdate, WatchOptions } from "./src/load_reader.ts";
export { decodeLoadSnapshot, encodeLoadSnapshot } from "./src/snapshot/codec.ts";
export {
  createLoadSnapshot,
  type DisaggregationMetrics,
  type LoadSnapshot,
  type LoadSnapshotInit,
  type LoRAMetrics,
  type MemoryMetrics,
  type QueueMetrics,
  type SectionInit,
  type SectionTail,
  type SpeculativeMetrics,
} from "./src/snapshot/load_snapshot.ts";
export { RawMsgpack } from "./src/snapshot/raw_msgpack.ts";
export { type LoadDict, toDict } from "./src/snapshot/to_dict.ts";
export { removeSlotFile } from "./src/slotfile/created_file.ts";
export {
  fileSize,
  HEADER_SIZE,
  MAGIC,
  SLOT_SIZE,
  slotOffset,
  VERSION,
} from "./src/slotfile/layout.ts";
export type { RankHealth, RankState } from "./src/slotfile/rank_health.ts";
export {
  ShmLoadSnapshotReader,
  type ShmLoadSnapshotReaderOptions,
  type ShmLoadSnapshotReaderStats,
} from "./src/slotfile/reader.ts";
export { shmPathFor } from "./src/slotfile/shm_path.ts";
export {
  ShmLoadSnapshotWriter,
  type ShmLoadSnapshotWriterOptions,
  type ShmLoadSnapshotWriterStats,
} from "./src/slotfile/writer.ts";
export type { DrainCounts } from "./src/zmq/control_block.ts";
export {
  type CurveClientOptions,
  type CurveKeys,
  type CurveServerOptions,
  generateCurveKeys,
} from "./src/zmq/curve.ts";
export {
  ZmqShmLoadSnapshotReader,
  type ZmqShmLoadSnapshotReaderOptions,
  type ZmqShmLoadSnapshotReaderStats,
} from "./src/zmq/reader.ts";
export {
  ZmqLoadSnapshotWriter,
  type ZmqLoadSnapshotWriterOptions,
  type ZmqLoadSnapshotWriterStats,
} from "./src/zmq/writer.ts";
export {
  createLoadSnapshotReader,
  createLoadSnapshotWriter,
  type CreateReaderOptions,
  type CreateWriterOptions,
  type Environment,
  type PortArgs,
  type ReaderCaller,
  type ServerArgs,
  shouldUseZmq,
  zmqAddressFor,
  zmqReaderOwner,
} from "./src/topology.ts";
export type { RandomSource } from "./src/balance/chance.ts";
export type {
  DispatchMethod,
  DispatchOptions,
  DpBudgetOptions,
  UpdateOptions,
} from "./src/balance/dispatch_options.ts";
export { DpBudget, type DpBudgetStats } from "./src/balance/dp_budget.ts";
export { DpRouter, type DpRouterOptions, RoutedRequest } from "./src/balance/dp_router.ts";
export type {
  DispatchExplanation,
  DispatchReason,
  RankExplanation,
} from "./src/balance/explanation.ts";
export type { RankStanding } from "./src/balance/rank_standing.ts";
export {
  createKvMetrics,
  type KvMetrics,
  kvMetricsFrom,
  type KvMetricsFromOptions,
  type KvMetricsInit,
  type KvMetricsMessage,
  totalPages,
  usedPages,
} from "./src/kv_metrics/kv_metrics.ts";
export {
  checkKvMetrics,
  type KvMetricsCheck,
  type KvMetricsCheckOptions,
  type KvMetricsFault,
} from "./src/kv_metrics/check_kv_metrics.ts";
export { decodeKvMetrics } from "./src/kv_metrics/codec.ts";
export { decodeKvMetricsMsgpack, encodeKvMetricsMsgpack } from "./src/kv_metrics/msgpack.ts";
export type { PickleForm } from "./src/kv_metrics/pickle_layout.ts";
export { decodeKvMetricsPickle } from "./src/kv_metrics/pickle_reader.ts";
export {
  encodeKvMetricsPickle,
  KV_METRICS_MODULES,
  type PickleOptions,
} from "./src/kv_metrics/pickle_writer.ts";
export {
  type EmitOutcome,
  KvMetricsEmitter,
  type KvMetricsEmitterOptions,
  type KvMetricsEmitterStats,
} from "./src/kv_metrics/emitter.ts";
export type { ReceivedKvMetrics } from "./src/kv_metrics/received_kv_metrics.ts";
export { KvMetricsReceiver, type KvMetricsReceiverStats } from "./src/kv_metrics/receiver.ts";
export type { KvMetricsReceiverOptions } from "./src/kv_metrics/receiver_options.ts";
export type { ReceiveCounts } from "./src/kv_metrics/receive_block.ts";
export type { KvMetricsRefusalKind } from "./src/kv_metrics/refusals.ts";
export {
  type ForwardPassMetrics,
  type LoadEvent,
  loadEventJson,
  loadEventOf,
  type LoadEventOptions,
  LoadEventPublisher,
  type LoadEventPublisherOptions,
} from "./src/kv_metrics/publishers/load_event.ts";
export type { OnFailure } from "./src/kv_metrics/publishers/outlet.ts";
export {
  type PrometheusGauge,
  type PrometheusGaugeConfiguration,
  type PrometheusModule,
  PrometheusPublisher,
  type PrometheusPublisherOptions,
} from "./src/kv_metrics/publishers/prometheus_publisher.ts";
export type {
  KvMetricsOutlet,
  KvMetricsOutletStats,
  KvMetricsPublisher,
  KvMetricsTerms,
} from "./src/kv_metrics/publishers/publisher.ts";
export { KvMetricsRelay, type KvMetricsRelayOptions } from "./src/kv_metrics/publishers/relay.ts";
export {
  loadSnapshotFrom,
  SlotFilePublisher,
  type SlotFilePublisherOptions,
} from "./src/kv_metrics/publishers/slot_file_publisher.ts";
