// Asks the server each second and draws what it says; nothing is loaded from elsewhere.

import { Bars, consumersOf } from "./bars.js";
import { Charts } from "./charts.js";
import { DataTable, Pager } from "./datatable.js";
import { byId, keyed, lines, make, setAttribute, setText } from "./dom.js";
import { bytes, clock, count, duration, plural, rate } from "./format.js";
import { lostMessage, messagesOf } from "./messages.js";
import { OrderForm } from "./orders.js";
import { Why } from "./why.js";

const PERIOD_MS = 1000;
const SHARE = 0.25; // of the time at most, for asking and drawing: large groups are drawn more rarely
const REQUEST_MS = 10000;
const ORDER_MS = 90000; // a controller or a writer may have to follow
const BARS = 50; // consumers shown at once
const STATES = { steady: "●", moving: "⇄", unread: "✕", silent: "✕", refused: "✕", unwritten: "✕", empty: "○" };
const TABLE_STATES = { landing: "●", claiming: "◔", paused: "‖", refused: "✕", unwritten: "✕", silent: "✕" };
const STATE_RANK = ["silent", "awaited", "starting", "leaving", "ready"];
const ORDERS = {
  "number": (a, b) => a.slot - b.slot,
  "highest load first": (a, b) => b.load / b.limit - a.load / a.limit || a.slot - b.slot,
  "highest lag first": (a, b) => b.lag - a.lag || a.slot - b.slot,
  "state, worst first": (a, b) => STATE_RANK.indexOf(a.state) - STATE_RANK.indexOf(b.state) || a.slot - b.slot,
};

let view = null;
let answered = Date.now();
let lost = null;

const slotText = (slot) => (slot === null ? "nobody" : `consumer ${slot}`);
const slotOrder = (slot) => slot ?? -1;

// --- parts of the page -----------------------------------------------------------------------------

const order = make("select", { id: "order", onchange: () => drawBars() },
  ...Object.keys(ORDERS).map((name) => make("option", {}, name)));
const find = make("input", { id: "find", type: "search", autocomplete: "off", spellcheck: "false",
  oninput: () => { pager.page = 0; drawBars(); } });
const pager = new Pager(BARS, "consumers", () => drawBars());
byId("consumers-tools").append(make("label", { for: "order" }, "Order"), " ", order, " ",
  make("label", { for: "find" }, "Only those with"), " ", find);
byId("inspector").before(pager.node);

const why = new Why(ask);
const orderForm = new OrderForm(send);
byId("proposal-approve").addEventListener("click", () => orderForm.prepare("approve", view.proposal.plan));
const bars = new Bars(byId("bars"), byId("inspector"), listPartitions, (pages) => pager.turn(pages));
const charts = new Charts(byId("charts"));

const partitionTable = new DataTable(byId("partitions"), [
  { name: "partition", text: (p) => p.name, order: (p) => p.place },
  { name: "consumer", text: (p) => slotText(p.slot), order: (p) => slotOrder(p.slot) },
  { name: "rate", text: (p) => rate(p.rate), order: (p) => p.rate ?? -1, number: true },
  { name: "lag", text: (p) => (p.lag === null ? "unknown" : count(p.lag)), order: (p) => p.lag ?? -1, number: true },
  { name: "on its way", text: (p) => p.way, order: (p) => p.way },
], {
  name: "partitions", key: (p) => p.key, size: 25, filter: "Only those with", empty: "No partition.",
  why: (name) => why.about(name),
  words: (p) => `${p.name} ${slotText(p.slot)};`,
});

const tables = new DataTable(byId("tables"), [
  { name: "table", text: (t) => (t.name === t.topic ? t.name : `${t.name} (of ${t.topic})`), order: (t) => t.name },
  { name: "state", text: (t) => `${TABLE_STATES[t.state]} ${t.state}${t.fault ? `: ${t.fault}` : ""}`, order: (t) => t.state },
  { name: "writer", text: (t) => slotText(t.writer), order: (t) => slotOrder(t.writer) },
  { name: "oldest row", text: (t) => (t.age_s ? duration(t.age_s) : "–"), order: (t) => t.age_s, number: true },
  { name: "waiting", text: (t) => bytes(t.pending_bytes), order: (t) => t.pending_bytes, number: true },
  { name: "lag", text: (t) => count(t.lag), order: (t) => t.lag, number: true },
  { name: "rows", text: (t) => count(t.rows), order: (t) => t.rows, number: true },
  { name: "commits", text: (t) => count(t.commits), order: (t) => t.commits, number: true },
], { name: "tables", key: (t) => t.name, size: 25, empty: "No table yet.", look: (t) => t.state,
  why: (name) => why.about(name) });

const change = [
  { name: "partition", text: (m) => m.name, order: (m) => m.place },
  { name: "from", text: (m) => slotText(m.old), order: (m) => slotOrder(m.old) },
  { name: "to", text: (m) => slotText(m.next), order: (m) => m.next },
];
const changeOptions = { key: (m) => m.key, size: 25, empty: "" };
const moves = new DataTable(byId("moves-list"),
  [...change, { name: "state", text: (m) => m.phase, order: (m) => m.phase }], { ...changeOptions, name: "moves" });
const changes = new DataTable(byId("proposal-changes"), change, { ...changeOptions, name: "changes", empty: "It moves nothing." });

function changeOf([topic, number, old, next, phase]) {
  const name = `${view.topics[topic]}-${number}`;
  return { key: name, name, place: 1e7 * topic + number, old, next, phase };
}

function listPartitions(slot) {
  partitionTable.filter.value = `consumer ${slot};`;
  partitionTable.pager.page = 0;
  drawPartitions();
  byId("partitions-title").focus();
}

// --- drawing ---------------------------------------------------------------------------------------

function drawMessages() {
  const found = lost === null ? [] : [lostMessage(answered, view, lost)];
  if (view) found.push(...messagesOf(view));
  keyed(byId("messages"), found.map((message, index) => ({ ...message, index })), (m) => m.index,
    () => make("p"), (node, m) => {
      setAttribute(node, "class", `message ${m.level}`);
      setText(node, m.text);
    });
  setAttribute(document.documentElement, "data-lost", lost !== null || view?.problem ? "true" : null);
  const mark = found.some((m) => m.level === "fault") ? "(!) " : "";
  setText(document.querySelector("title"), `${mark}binwright${view ? ` · ${view.group}` : ""}`);
}

function drawHead() {
  setText(byId("group"), view.group);
  setText(byId("state"), `${STATES[view.state]} ${view.state}`);
  setAttribute(byId("state"), "data-state", view.state);
  const led = view.term !== null;
  setText(byId("controller"), `${led ? "" : "no controller yet, "}at ${clock(view.at_ms)}`);
  byId("controller").title = led ? `led by controller ${view.controller}, term ${view.term}` : "";
  const live = view.consumers.filter((c) => c.state !== "silent").length;
  const totals = [
    ["written", rate(view.load)], ["staged", rate(view.staging)], ["records behind", count(view.lag)],
    ["oldest row", view.age_s ? duration(view.age_s) : "–"], ["consumers", count(live)],
    ["partitions", count(view.partitions)], ["moves", count(view.moves.length)], ["rows landed", count(view.landed_rows)],
  ];
  keyed(byId("totals"), totals, ([name]) => name,
    ([name]) => make("div", {}, make("dt", {}, name), make("dd")),
    (node, [, text]) => setText(node.lastChild, text));
}

function drawBars() {
  if (!view) return;
  const wanted = find.value.trim().toLowerCase();
  const topics = view.topics.map((topic) => topic.toLowerCase());
  const fits = (c) => `consumer ${c.slot} ${c.state}`.includes(wanted) ||
    c.partitions.some(([topic, number]) => `${topics[topic]}-${number}`.includes(wanted));
  const all = consumersOf(view);
  const found = (wanted ? all.filter(fits) : all).sort(ORDERS[order.value]);
  const shown = pager.of(found);
  bars.draw(view, found.length, shown, pager.page * pager.size);
  byId("legend").hidden = !shown.length;
}

function drawPartitions() {
  const ways = new Map(view.moves.map(([topic, number, , next, phase]) => [`${topic}/${number}`, `to consumer ${next} (${phase})`]));
  const row = (slot) => ([topic, number, bytesPerS, lag]) => {
    const key = `${topic}/${number}`;
    const name = `${view.topics[topic]}-${number}`;
    return { key: `${name} ${slot}`, name, place: 1e7 * topic + number, slot, rate: bytesPerS ?? null, lag: lag ?? null, way: ways.get(key) ?? "" };
  };
  const read = view.consumers.flatMap((consumer) => consumer.partitions.map(row(consumer.slot)));
  const taken = new Set(read.map((p) => p.name));
  const unread = view.unread.map(row(null)).filter((p) => !taken.has(p.name));
  partitionTable.draw([...unread, ...read]);
}

function drawPlans() {
  const { plan, proposal } = view;
  byId("plan").hidden = !plan;
  if (plan) {
    setText(byId("plan-what"), `${duration(plan.age_s)} ago: ${plural(plan.consumers, "consumer")}, ` +
      `${plural(plan.moves, "move")}, ${plan.rscore.toFixed(2)} times a consumer's capacity moved.`);
    lines(byId("plan-reasons"), plan.reasons);
  }
  byId("proposal").hidden = !proposal;
  if (proposal) {
    const how = proposal.approved ? "is approved" : proposal.waits ? "waits for approval" : "is only shown";
    setText(byId("proposal-title"), `Plan ${proposal.plan} ${how}`);
    const open = proposal.waits && !proposal.approved;
    byId("proposal-tools").hidden = !open || !view.takes_orders;
    const command = open ? ` Approve it: binwright approve ${proposal.plan} --group ${view.group}` : "";
    setText(byId("proposal-how"), `${duration(proposal.age_s)} old, ${plural(proposal.consumers, "consumer")}, ` +
      `${proposal.rscore.toFixed(2)} times a consumer's capacity moved.${command}`);
    lines(byId("proposal-reasons"), proposal.reasons);
    changes.draw(proposal.changes.map(changeOf));
  }
}

function drawOrders() {
  byId("give").hidden = !view.takes_orders;
  byId("orders").hidden = !view.orders.length && !view.held.length;
  lines(byId("orders-list"), view.orders);
  byId("held-title").hidden = !view.held.length;
  lines(byId("held-list"), view.held);
}

function draw() {
  byId("group-view").hidden = view.term === null && !view.consumers.length;
  drawHead();
  drawOrders();
  drawBars();
  byId("moves").hidden = !view.moves.length;
  moves.draw(view.moves.map(changeOf));
  tables.draw(view.tables);
  drawPartitions();
  drawPlans();
  keyed(byId("news"), view.news.map(([at, text], index) => ({ at, text, index })).reverse(), (n) => n.index,
    () => make("li", {}, make("time"), " ", make("span")),
    (node, n) => {
      setText(node.firstChild, clock(n.at));
      setText(node.lastChild, n.text);
    });
}

// --- asking ----------------------------------------------------------------------------------------

async function ask(path) {
  const answer = await fetch(path, { cache: "no-store", signal: AbortSignal.timeout(REQUEST_MS) });
  if (!answer.ok) throw new Error((await answer.json().catch(() => ({}))).error ?? `HTTP ${answer.status}`);
  return answer.json();
}

/** Send something; return what the server makes of it. */
async function send(path, found) {
  const answer = await fetch(path, {
    method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(found),
    signal: AbortSignal.timeout(ORDER_MS),
  });
  const reply = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Error(reply.error ?? `HTTP ${answer.status}`);
  return reply;
}

let pastUntil = 0;

/** Ask and draw; return how long that took. What fails is told and tried again. */
async function refresh() {
  const began = performance.now();
  try {
    const found = await ask("view");
    if (began >= pastUntil) {
      const history = await ask("history");
      charts.draw(history);
      pastUntil = began + (history.points.length ? 1000 * history.step_s : PERIOD_MS);
    }
    view = found;
    lost = null;
    answered = Date.now();
  } catch (error) {
    lost = error.name === "TimeoutError" ? "it takes too long" : error.message;
  }
  if (view && lost === null) draw();
  drawMessages();
  return performance.now() - began;
}

let wake = () => {};
document.addEventListener("visibilitychange", () => wake());

async function keepOn() {
  for (;;) {
    const took = document.hidden ? 0 : await refresh();
    await new Promise((resume) => {
      wake = resume;
      setTimeout(resume, Math.max(PERIOD_MS, took / SHARE));
    });
  }
}

// --- colours ---------------------------------------------------------------------------------------

const theme = byId("theme");
const remembered = (value) => {
  try { // storage may be forbidden: then the choice lasts as long as the page
    if (value !== undefined) localStorage.setItem("binwright-theme", value);
    return localStorage.getItem("binwright-theme");
  } catch {
    return value ?? "";
  }
};
const colour = (value) => setAttribute(document.documentElement, "data-theme", value || null);
theme.value = remembered() ?? "";
colour(theme.value);
theme.addEventListener("change", () => {
  remembered(theme.value);
  colour(theme.value);
});

keepOn().catch((error) => {
  const text = `This page has failed, and shows nothing new: ${error.message}`;
  byId("messages").append(make("p", { class: "message fault" }, text));
  throw error;
});
