/** The cases of our side, each as something that can be timed. */

import {
  decodeLoadSnapshot,
  encodeLoadSnapshot,
  type LoadSnapshot,
  ShmLoadSnapshotReader,
  ShmLoadSnapshotWriter,
  slotOffset,
} from "../../mod.ts";
import { acquireLibc, O_RDWR } from "../../src/slotfile/libc.ts";
import { Mapping } from "../../src/slotfile/mapping.ts";
import { openFile } from "../../src/slotfile/open_file.ts";
import { SnapshotDecoder } from "../../src/snapshot/decoder.ts";
import { SnapshotEncoder } from "../../src/snapshot/encoder.ts";
import { imageOf, PAYLOAD_AT } from "../../src/snapshot/image.ts";
import { ShapeCache } from "../../src/snapshot/shape_cache.ts";
import { Workspace } from "../../src/snapshot/workspace.ts";
import { strideOf, VERSIONS } from "./payloads.ts";
import { backToBack, oneByOne, type TimedCalls } from "./timing.ts";

/** What a case works on. */
export interface Bed {
  /** The slot file; "-" for a case without one. */
  readonly shm: string;
  /** The prepared publications. */
  readonly publications: Uint8Array<ArrayBuffer>;
  readonly ranks: number;
}

/** A case: what is timed, and a check, after each round, that it did what it is to show. */
export interface Case {
  readonly timed: TimedCalls;
  readonly check: () => void;
}

/** The cases by name. The reader or writer of a case stays open as long as the process. */
export const CASES: Readonly<Record<string, (bed: Bed) => Case>> = {
  "write": write,
  "read-changed": (bed) => read(bed, { all: false, changed: true }),
  "read-unchanged": (bed) => read(bed, { all: false, changed: false }),
  "read-all-changed": (bed) => read(bed, { all: true, changed: true }),
  "read-all-unchanged": (bed) => read(bed, { all: true, changed: false }),
  "decode": decode,
  "decode-once": decodeOnce,
  "encode": encode,
  "encode-once": encodeOnce,
};

/** Keeps results from being optimised away. */
let sink: unknown = null;

function write(bed: Bed): Case {
  const dpRank = bed.ranks >> 1;
  const loads = loadsOf(bed, dpRank);
  const writer = new ShmLoadSnapshotWriter(bed.shm, { dpSize: bed.ranks, dpRank });
  const reader = new ShmLoadSnapshotReader(bed.shm);
  let last = 0;
  return {
    timed: backToBack((step) => {
      last = step % VERSIONS;
      writer.write(loads[last]!);
    }),
    check() {
      expect(reader.read(dpRank)?.timestamp, loads[last]!.timestamp);
    },
  };
}

function read(bed: Bed, { all, changed }: { all: boolean; changed: boolean }): Case {
  const { ranks } = bed;
  const reader = new ShmLoadSnapshotReader(bed.shm);
  reader.readAll();
  const before = reader.stats();
  let calls = 0;
  const call = all
    ? () => {
      sink = reader.readAll();
      calls++;
    }
    : (step: number) => {
      sink = reader.read(step % ranks);
      calls++;
    };
  return {
    timed: changed ? oneByOne(all ? pokeAll(bed) : pokeOne(bed), call) : backToBack(call),
    check() {
      const { publications, unchanged } = reader.stats();
      expect(publications - before.publications, changed ? calls * (all ? ranks : 1) : 0);
      expect(unchanged - before.unchanged, changed ? 0 : calls);
    },
  };
}

/** Puts the next publication of each rank into its slot, as plain bytes. */
function pokeAll(bed: Bed): (step: number) => void {
  const slots = mapSlots(bed);
  const images = imagesOf(bed);
  return (step) => {
    const next = images[(step + 1) % VERSIONS]!;
    for (let dpRank = 0; dpRank < slots.length; dpRank++) slots[dpRank]!.set(next[dpRank]!);
  };
}

/** Puts the next publication of one rank into its slot; the ranks take turns. */
function pokeOne(bed: Bed): (step: number) => void {
  const slots = mapSlots(bed);
  const images = imagesOf(bed);
  return (step) => {
    const dpRank = step % slots.length;
    const version = (Math.floor(step / slots.length) + 1) % VERSIONS;
    slots[dpRank]!.set(images[version]![dpRank]!);
  };
}

/** The publications as they stand in slots, by version and rank. */
function imagesOf({ publications, ranks }: Bed): Uint8Array[][] {
  const stride = strideOf(publications, ranks);
  return Array.from(
    { length: VERSIONS },
    (_, version) =>
      Array.from({ length: ranks }, (_, dpRank) => {
        const at = (version * ranks + dpRank) * stride;
        return publications.subarray(at, at + stride);
      }),
  );
}

function mapSlots({ shm, publications, ranks }: Bed): Uint8Array[] {
  const stride = strideOf(publications, ranks);
  const { libc } = acquireLibc(shm);
  const file = openFile(libc, shm, O_RDWR, null);
  if (file === null) throw new Error(`Cannot poke ${shm}: nothing is there`);
  const mapping = new Mapping(libc, file.fd, slotOffset(ranks), "write", shm);
  return Array.from(
    { length: ranks },
    (_, dpRank) => new Uint8Array(mapping.view(slotOffset(dpRank), stride)),
  );
}

/** As a reader decodes: each rank has a decoder that knows the publication before. */
function decode(bed: Bed): Case {
  const payloads = inTurn(bed);
  const workspace = new Workspace(payloads.length + bed.ranks);
  const images = payloads.map((payload) => imageOf(payload, workspace));
  const holder = { image: images[0]! };
  const ends = payloads.map((payload) => PAYLOAD_AT + payload.length);
  const shapes = new ShapeCache(workspace);
  const decoders = Array.from({ length: bed.ranks }, () => new SnapshotDecoder(shapes));
  return unchecked(backToBack((step) => {
    const n = step % images.length;
    holder.image = images[n]!;
    sink = decoders[n % decoders.length]!.decode(holder, ends[n]!);
  }));
}

function decodeOnce(bed: Bed): Case {
  const payloads = inTurn(bed);
  return unchecked(backToBack((step) => {
    sink = decodeLoadSnapshot(payloads[step % payloads.length]!);
  }));
}

/** As writers encode: each knows its publication before. */
function encode(bed: Bed): Case {
  const loads = inTurn(bed).map((payload) => decodeLoadSnapshot(payload));
  const encoders = Array.from({ length: bed.ranks }, () => new SnapshotEncoder());
  return unchecked(backToBack((step) => {
    const n = step % loads.length;
    sink = encoders[n % encoders.length]!.encode(loads[n]!);
  }));
}

function encodeOnce(bed: Bed): Case {
  const loads = inTurn(bed).map((payload) => decodeLoadSnapshot(payload));
  return unchecked(backToBack((step) => {
    sink = encodeLoadSnapshot(loads[step % loads.length]!);
  }));
}

function unchecked(timed: TimedCalls): Case {
  return { timed, check: () => void sink };
}

/** All payloads, the ranks taking turns. */
function inTurn(bed: Bed): Uint8Array<ArrayBuffer>[] {
  const byRank = Array.from({ length: bed.ranks }, (_, dpRank) => payloadsOf(bed, dpRank));
  return Array.from({ length: VERSIONS }, (_, version) => byRank.map((all) => all[version]!))
    .flat();
}

function payloadsOf({ publications, ranks }: Bed, dpRank: number): Uint8Array<ArrayBuffer>[] {
  const view = new DataView(publications.buffer);
  const stride = strideOf(publications, ranks);
  return Array.from({ length: VERSIONS }, (_, version) => {
    const at = (version * ranks + dpRank) * stride;
    return publications.slice(at + 4, at + 4 + view.getUint32(at, true));
  });
}

function loadsOf(bed: Bed, dpRank: number): LoadSnapshot[] {
  return payloadsOf(bed, dpRank).map((payload) => decodeLoadSnapshot(payload));
}

function expect(actual: unknown, expected: unknown): void {
  if (actual === expected) return;
  throw new Error(`The case did not do what it shows: ${actual} instead of ${expected}`);
}
