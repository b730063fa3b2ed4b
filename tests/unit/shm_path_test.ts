/** The path that an engine's name stands for. */

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import fc from "npm:fast-check@4.11.0";
import { nameDigest, safeName, shmPathFor } from "../../src/slotfile/shm_path.ts";

const PREFIX = "/dev/shm/sglang_loads_";

Deno.test("names have SGLang's digests", () => {
  assert.equal(nameDigest("4c00ec5647f7"), "b4fb99a3");
  assert.equal(nameDigest("default"), "0ffc6dbe");
  assert.equal(nameDigest(""), "36e9d246");
  assert.equal(nameDigest("ipc:///tmp/tmpabc123"), "3c574a91");
});

Deno.test("a digest of four bytes is not the start of a longer one", () => {
  const longer = createHash("blake2s256").update("default").digest("hex");
  assert.notEqual(nameDigest("default"), longer.slice(0, 8));
});

Deno.test("an instance id is its own safe name", () => {
  assert.equal(shmPathFor("4c00ec5647f7"), `${PREFIX}4c00ec5647f7_b4fb99a3.shm`);
});

Deno.test("of an IPC name, the last part is seen and the whole is digested", () => {
  assert.equal(shmPathFor("ipc:///tmp/tmpabc123"), `${PREFIX}tmpabc123_3c574a91.shm`);
  assert.notEqual(shmPathFor("ipc:///var/tmpabc123"), shmPathFor("ipc:///tmp/tmpabc123"));
});

Deno.test("slashes at the end change the digest only", () => {
  for (const name of ["engine/", "engine///", "/a/b/engine/"]) {
    assert.equal(shmPathFor(name), `${PREFIX}engine_${nameDigest(name)}.shm`);
  }
});

Deno.test("a name without a last part is called default, with its own digest", () => {
  assert.equal(shmPathFor(""), `${PREFIX}default_36e9d246.shm`);
  assert.equal(shmPathFor("///"), `${PREFIX}default_${nameDigest("///")}.shm`);
  assert.equal(shmPathFor("default"), `${PREFIX}default_0ffc6dbe.shm`);
});

Deno.test("only letters, digits and ._- stay in a safe name", () => {
  assert.equal(safeName("a.b_c-D9"), "a.b_c-D9");
  assert.equal(safeName("tcp:[::1]:30006 \0\n\\~"), "tcp____1__30006_____");
});

Deno.test("letters and numerals of every script are alphanumeric, like Python has it", () => {
  for (const name of ["é", "ß", "ж", "漢", "あ", "ª", "ǅ", "²", "½", "Ⅷ", "٣", "〇", "𝒜", "🄀"]) {
    assert.equal(safeName(name), name);
  }
});

Deno.test("a character is replaced as one, however many UTF-16 units it has", () => {
  assert.equal(safeName("🚀"), "_");
  assert.equal(safeName("a\u0301"), "a_");
  assert.equal(safeName("\u200d\u{e0001}"), "__");
});

Deno.test("no name leads out of /dev/shm", () => {
  fc.assert(fc.property(fc.string({ unit: "binary" }), (name) => {
    assert.match(shmPathFor(name), /^\/dev\/shm\/sglang_loads_[^/\0]+_[0-9a-f]{8}\.shm$/u);
  }));
});
