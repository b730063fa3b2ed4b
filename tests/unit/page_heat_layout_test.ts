/** Where tiles go, and where keys lead. */

import assert from "node:assert/strict";
import fc from "npm:fast-check@4.11.0";
import {
  layoutHeat,
  rankAfterKey,
  rankAt,
  SMALLEST_TILE,
  tileOf,
} from "../../src/http/page/client/heat_layout.js";

const sizes = {
  count: fc.integer({ min: 1, max: 1200 }),
  width: fc.integer({ min: 280, max: 2500 }),
  height: fc.integer({ min: 200, max: 1000 }),
};

Deno.test("every tile is within the width, large enough to read, and apart from all others", () => {
  fc.assert(fc.property(sizes.count, sizes.width, sizes.height, (count, width, height) => {
    const layout = layoutHeat(count, width, height);
    let before: ReturnType<typeof tileOf> | null = null;
    for (let rank = 0; rank < count; rank++) {
      const tile = tileOf(layout, rank);
      assert.ok(tile.x >= 0 && tile.x + tile.width <= width, "width");
      assert.ok(tile.y >= 0 && tile.y + tile.height <= layout.height, "height");
      assert.ok(tile.width >= SMALLEST_TILE - 1 && tile.height >= SMALLEST_TILE, "size");
      if (before !== null && tile.y === before.y) assert.ok(tile.x > before.x + before.width);
      else if (before !== null) assert.ok(tile.y > before.y + before.height && tile.x === 0);
      before = tile;
    }
  }));
});

Deno.test("what is at the middle of a tile is its rank, and between tiles there is none", () => {
  fc.assert(fc.property(sizes.count, sizes.width, sizes.height, (count, width, height) => {
    const layout = layoutHeat(count, width, height);
    for (let rank = 0; rank < count; rank += 7) {
      const { x, y, width, height } = tileOf(layout, rank);
      assert.equal(rankAt(layout, x + width / 2, y + height / 2), rank);
      assert.equal(rankAt(layout, x + width / 2, y + height + layout.gap / 2), null);
    }
    assert.equal(rankAt(layout, -1, 5), null);
    assert.equal(rankAt(layout, 5, layout.height + 1), null);
  }));
});

Deno.test("usual group sizes get full rows of powers of two on a wide screen", () => {
  for (const count of [8, 16, 32, 64, 128, 256, 512]) {
    const { columns, rows, height } = layoutHeat(count, 1340, 380);
    assert.equal(columns * rows, count);
    assert.equal(Math.log2(columns) % 1, 0, `${count}: ${columns}`);
    assert.ok(height <= 420, `${count}: ${height}`);
  }
});

Deno.test("on a phone 512 ranks have tiles that can be read", () => {
  const { columns, tileWidth } = layoutHeat(512, 320, 450);
  assert.equal(columns, 16);
  assert.ok(tileWidth >= SMALLEST_TILE);
});

Deno.test("no ranks have no tiles", () => {
  const layout = layoutHeat(0, 500, 300);
  assert.equal(layout.height, 0);
  assert.equal(rankAt(layout, 0, 0), null);
  assert.equal(rankAfterKey(layout, null, "ArrowRight"), null);
});

Deno.test("arrow keys go to the neighbour, and stay where there is none", () => {
  const layout = layoutHeat(10, 400, 300);
  const { columns } = layout;
  assert.equal(rankAfterKey(layout, 0, "ArrowRight"), 1);
  assert.equal(rankAfterKey(layout, 1, "ArrowLeft"), 0);
  assert.equal(rankAfterKey(layout, 0, "ArrowDown"), columns);
  assert.equal(rankAfterKey(layout, columns, "ArrowUp"), 0);
  assert.equal(rankAfterKey(layout, 0, "ArrowUp"), 0);
  assert.equal(rankAfterKey(layout, 0, "ArrowLeft"), 0);
  assert.equal(rankAfterKey(layout, 9, "ArrowRight"), 9);
  assert.equal(rankAfterKey(layout, 3, "Home"), 0);
  assert.equal(rankAfterKey(layout, 3, "End"), 9);
});

Deno.test("the first key chooses the first rank or the last, and other keys do nothing", () => {
  const layout = layoutHeat(10, 400, 300);
  assert.equal(rankAfterKey(layout, null, "ArrowDown"), 0);
  assert.equal(rankAfterKey(layout, null, "End"), 9);
  assert.equal(rankAfterKey(layout, null, "a"), null);
  assert.equal(rankAfterKey(layout, 2, "toString"), null);
});

Deno.test("no key leads out of the group, and arrows reach every rank", () => {
  const keys = fc.constantFrom(
    "ArrowLeft",
    "ArrowRight",
    "ArrowUp",
    "ArrowDown",
    "PageUp",
    "PageDown",
  );
  fc.assert(fc.property(sizes.count, fc.array(keys, { maxLength: 60 }), (count, keys) => {
    const layout = layoutHeat(count, 1000, 400);
    let rank = 0;
    for (const key of keys) {
      rank = rankAfterKey(layout, rank, key) ?? -1;
      assert.ok(rank >= 0 && rank < count);
    }
  }));
  const layout = layoutHeat(37, 1000, 400);
  const reached = new Set([0]);
  for (const rank of reached) {
    for (const key of ["ArrowRight", "ArrowDown"]) {
      reached.add(rankAfterKey(layout, rank, key) ?? 0);
    }
  }
  assert.equal(reached.size, 37);
});
