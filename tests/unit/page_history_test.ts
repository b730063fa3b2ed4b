/** The last minutes: what rings keep, and what the charts make of it. */

import assert from "node:assert/strict";
import fc from "npm:fast-check@4.11.0";
import { Courses } from "../../src/http/page/client/courses.js";
import { Group } from "../../src/http/page/client/group.js";
import { History } from "../../src/http/page/client/history.js";

const sample = (value: number) => ({
  tokens: value,
  running: value + 1,
  waiting: value + 2,
  throughput: value + 3,
});

Deno.test("a ring keeps the newest samples, each row its own, as a list would", () => {
  const run = fc.array(fc.option(fc.nat({ max: 1000 })), { maxLength: 40 });
  fc.assert(fc.property(run, fc.integer({ min: 1, max: 12 }), (values, capacity) => {
    const history = new History(2, capacity);
    values.forEach((value, time) =>
      history.push(time, (row) => value === null ? null : sample(value + row * 10_000))
    );
    const kept = values.slice(-capacity);
    assert.equal(history.size, kept.length);
    assert.deepEqual(history.series(0, "tokens", 0), kept);
    assert.deepEqual(
      history.series(1, "waiting", 0),
      kept.map((value) => value === null ? null : value + 10_002),
    );
    const since = values.length - 3;
    assert.deepEqual(
      history.times(since),
      values.map((_, time) => time).slice(-capacity).filter((
        time,
      ) => time >= since),
    );
  }));
});

Deno.test("another number of rows keeps the rows that stay", () => {
  const history = new History(2, 3);
  for (let time = 0; time < 5; time++) history.push(time, (row) => sample(time + 10 * row));
  const grown = history.resized(3);
  assert.deepEqual(grown.times(0), [2, 3, 4]);
  assert.deepEqual(grown.series(1, "tokens", 0), [12, 13, 14]);
  assert.deepEqual(grown.series(2, "tokens", 0), [null, null, null]);
  assert.deepEqual(history.resized(1).series(0, "tokens", 0), [2, 3, 4]);
});

/** A group of two ranks that carry something. */
function twoRanks(): Group {
  const group = new Group();
  group.applyHealth({ dp_size: 2, ranks: [] }, 0);
  group.applyLoads({
    loads: [0, 1].map((rank) => ({
      dp_rank: rank,
      num_running_reqs: 10 + rank,
      num_used_tokens: 100,
      max_total_num_tokens: 400,
      state: "live",
      age_ms: 0,
    })),
  }, 0);
  return group;
}

Deno.test("a course has a sample a second, whatever the number of events", () => {
  const courses = new Courses(100);
  const group = twoRanks();
  const taken = [0, 0.3, 0.9, 1, 1.5, 2].filter((time) => courses.sample(group, time, () => true));
  assert.deepEqual(taken, [0, 1, 2]);
  assert.deepEqual(courses.course(null, "running", 0), {
    times: [0, 1, 2],
    values: [21, 21, 21],
    mean: [null, null, null],
  });
  assert.deepEqual(courses.course(1, "running", 1), {
    times: [1, 2],
    values: [11, 11],
    mean: [10.5, 10.5],
  });
});

Deno.test("a rank that is not live has a gap; the group has one when none is", () => {
  const courses = new Courses(100);
  const group = twoRanks();
  courses.sample(group, 0, ({ dpRank }) => dpRank === 0);
  courses.sample(group, 1, () => false);
  assert.deepEqual(courses.course(0, "running", 0).values, [10, null]);
  assert.deepEqual(courses.course(1, "running", 0).values, [null, null]);
  assert.deepEqual(courses.course(null, "running", 0).values, [21, null]);
});

Deno.test("a time without samples is a gap, not a line across it", () => {
  const courses = new Courses(100);
  const group = twoRanks();
  courses.sample(group, 0, () => true);
  courses.sample(group, 60, () => true);
  assert.deepEqual(courses.course(null, "running", 0), {
    times: [0, 1, 60],
    values: [21, null, 21],
    mean: [null, null, null],
  });
});

Deno.test("a clock that is set back starts the course anew", () => {
  const courses = new Courses(100);
  const group = twoRanks();
  courses.sample(group, 500, () => true);
  courses.sample(group, 100, () => true);
  assert.deepEqual(courses.course(0, "running", 0).times, [100]);
});

Deno.test("a tile's course is the share of the pool along the time shown", () => {
  const courses = new Courses(100);
  const group = twoRanks();
  for (let time = 0; time <= 4; time++) courses.sample(group, time, () => time !== 3);
  const [first] = group.ranks;
  assert.ok(first !== undefined);
  assert.deepEqual(courses.spark(first, 0, 4), {
    along: [0, 0.25, 0.5, 0.75, 1],
    usage: [0.25, 0.25, 0.25, null, 0.25],
  });
});
