// @ts-check
/** The page: the stream's events go into the group, and frames show what has become of it. */

/// <reference lib="dom" />

import { Announcer } from "./announcer.js";
import { Charts, LONGEST_S } from "./charts.js";
import { Courses, sampleOf, sampleOfTotals } from "./courses.js";
import { percent } from "./format.js";
import { Frames } from "./frames.js";
import { Group } from "./group.js";
import { ageNow, shownState, usageOf } from "./rank.js";
import { HeatMap } from "./heat_map.js";
import { LoadStream } from "./load_stream.js";
import { RankPanel } from "./rank_panel.js";
import { RankTable } from "./rank_table.js";
import { Status } from "./status.js";
import { ThemeSwitch } from "./theme.js";
import { takeToken } from "./token.js";
import { Legend, TotalsRow } from "./totals.js";
import { byId } from "./dom.js";

/** Ages go on without events. */
const TICK_MS = 500;

const group = new Group();
// A sample a second, and one for each gap.
const courses = new Courses(LONGEST_S + 60);
const announcer = new Announcer();
/** @type {import("./status.js").Connection} */
const connection = { phase: "connecting", reason: null, heardAt: null };
/** @type {number | null} */
let selected = null;
let chartsAreDue = true;

const frames = new Frames(draw);
const theme = new ThemeSwitch(byId("theme"), redraw);
const status = new Status((token) => stream.useToken(token));
const heatMap = new HeatMap(select, () => frames.request());
const panel = new RankPanel(() => select(null));
const table = new RankTable(() => frames.request());
const charts = new Charts(redraw);
const totals = new TotalsRow();
const legend = new Legend();

const stream = new LoadStream({
  url: "v1/loads/stream",
  token: takeToken(),
  onEvent: take,
  onPhase: (phase, reason) => {
    if (phase !== connection.phase) tellPhase(phase);
    connection.phase = phase;
    connection.reason = reason;
    frames.requestSoon();
  },
});

/**
 * @param {string} type
 * @param {string} text
 */
function take(type, text) {
  const now = performance.now();
  connection.heardAt = now;
  /** @type {unknown} */
  let data;
  try {
    data = JSON.parse(text);
  } catch {
    // A proxy's word, or a torn event: the next one is whole.
    return;
  }
  if (type === "loads") group.applyLoads(data, now);
  else if (type === "health") announcer.sayChanges(group.applyHealth(data, now));
  sample(now);
  frames.requestSoon();
}

/** @param {number} now */
function sample(now) {
  const connected = isConnected();
  const taken = courses.sample(
    group,
    Date.now() / 1000,
    (rank) => shownState(rank, now, connected) === "live",
  );
  if (taken) chartsAreDue = true;
}

/** @param {number | null} rank */
function select(rank) {
  selected = rank;
  heatMap.select(rank);
  redraw();
}

function redraw() {
  chartsAreDue = true;
  frames.request();
}

function isConnected() {
  return connection.phase === "live";
}

/** @param {import("./load_stream.js").StreamPhase} phase */
function tellPhase(phase) {
  if (phase === "live" && connection.phase === "retrying") announcer.say("Connected again");
  if (phase === "retrying" && connection.phase === "live") announcer.say("Connection lost");
}

/** @param {number} now */
function draw(now) {
  const connected = isConnected();
  status.update(connection, group, now);
  if (group.ranks.length === 0) return;
  if (selected !== null && selected >= group.ranks.length) {
    selected = null;
    heatMap.select(null);
  }
  const counts = group.stateCounts(now, connected);
  const sums = group.totals();
  totals.update(sums, counts);
  legend.update(counts, theme.palette);
  heatMap.draw(
    group.ranks.map((rank) => viewOf(rank, now, connected)),
    theme.palette,
    sparks(),
  );
  panel.update(selected === null ? null : group.ranks[selected] ?? null, now, connected);
  table.update(group.ranks, now, connected);
  charts.showNow(
    selected === null ? sums && sampleOfTotals(sums) : valuesOf(group.ranks[selected] ?? null),
  );
  if (chartsAreDue) {
    chartsAreDue = false;
    charts.draw(courses, selected, Date.now() / 1000, theme.palette);
    nameTab(sums);
  }
}

/** @param {import("./rank.js").Rank | null} rank */
function valuesOf(rank) {
  return rank === null || rank.load === null ? null : sampleOf(rank.load);
}

/**
 * @param {import("./rank.js").Rank} rank
 * @param {number} now
 * @param {boolean} connected
 * @returns {import("./tile.js").TileView}
 */
function viewOf(rank, now, connected) {
  return {
    dpRank: rank.dpRank,
    state: shownState(rank, now, connected),
    usage: usageOf(rank.load),
    running: rank.load?.num_running_reqs ?? null,
    waiting: rank.load?.num_waiting_reqs ?? null,
    ageMs: ageNow(rank, now),
    spark: null,
  };
}

/** @returns {import("./heat_map.js").Sparks} */
function sparks() {
  const to = courses.version;
  const from = to - charts.spanS;
  return {
    version: from,
    of: (index) => {
      const rank = group.ranks[index];
      return rank === undefined ? { along: [], usage: [] } : courses.spark(rank, from, to);
    },
  };
}

/** @param {import("./group.js").Totals | null} sums */
function nameTab(sums) {
  const figures = sums === null || !isConnected()
    ? ""
    : `${percent(sums.usage)} %, ${sums.waiting} waiting – `;
  const title = `${figures}loadslots`;
  if (document.title !== title) document.title = title;
}

setInterval(() => {
  sample(performance.now());
  frames.requestSoon();
}, TICK_MS);
globalThis.addEventListener("online", () => stream.retryNow());
document.addEventListener("visibilitychange", () => {
  if (!document.hidden) stream.retryNow();
});
stream.run();
