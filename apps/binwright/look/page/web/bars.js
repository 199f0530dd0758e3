// Consumers as bars, their partitions as blocks, and the way through them by keys.

import { keyed, make, setAttribute, setStyle, setText } from "./dom.js";
import { count, duration, percent, plural, rate } from "./format.js";

const SMALL = 0.01; // of a bar's width: smaller partitions are one block together
const MOVING = 20; // of a bar: more are one block together, too
const ANIMATED = 12; // bars at most: more would keep a browser busy
const COLOURS = 8;
const STATES = { ready: "●", starting: "◔", leaving: "→", silent: "✕", awaited: "…" };

const nameOf = (view, [topic, number]) => `${view.topics[topic]}-${number}`;
const known = (value) => value ?? 0;

/** Return where each moving partition goes, and what each consumer gets. */
function movesOf(view) {
  const leaving = new Map();
  const coming = new Map();
  for (const [topic, number, old, next, phase] of view.moves) {
    const key = `${topic}/${number}`;
    leaving.set(key, { old, next, phase });
    if (!coming.has(next)) coming.set(next, []);
    coming.get(next).push({ key, topic, number, old, phase });
  }
  return { leaving, coming };
}

/** Return the view's consumers, and those that its moves wait for. */
export function consumersOf(view) {
  const there = new Set(view.consumers.map((each) => each.slot));
  const awaited = new Set(view.moves.map((move) => move[3]).filter((slot) => !there.has(slot)));
  const empty = { state: "awaited", limit: view.limit, load: 0, staging: 0, lag: 0, tables: [], partitions: [] };
  return [...view.consumers, ...[...awaited].sort((a, b) => a - b).map((slot) => ({ ...empty, slot }))];
}

export class Bars {
  constructor(grid, inspector, onList, onPage) {
    Object.assign(this, { grid, inspector, onList, onPage, current: null });
    grid.addEventListener("keydown", (event) => this.walk(event));
    grid.addEventListener("focusin", (event) => this.enter(event.target));
    for (const name of ["pointerover", "focusin"]) {
      grid.addEventListener(name, (event) => this.inspect(event.target));
    }
    grid.addEventListener("dblclick", (event) => this.list(event.target));
  }

  /** Draw `consumers`, some of the view's; all bars have one scale. */
  draw(view, all, consumers, first) {
    const focused = this.grid.contains(document.activeElement) ? document.activeElement : null;
    this.scale = Math.max(1, ...consumers.map((c) => Math.max(1.2 * c.limit, Math.min(c.load, 2 * c.limit))));
    this.measured = view.consumers.some((c) => c.partitions.some((p) => p[2] !== null));
    this.most = Math.max(1, ...consumers.map((c) => c.partitions.length));
    this.moves = movesOf(view);
    this.bytesOf = new Map();
    for (const partitions of [view.unread, ...view.consumers.map((c) => c.partitions)]) {
      for (const [topic, number, bytesPerS] of partitions) this.bytesOf.set(`${topic}/${number}`, bytesPerS);
    }
    setAttribute(this.grid, "aria-rowcount", all);
    setAttribute(this.grid, "data-many", consumers.length > ANIMATED);
    let row = first;
    keyed(this.grid, consumers, (c) => c.slot, (c) => this.make(c), (node, c) => {
      row += 1;
      setAttribute(node, "aria-rowindex", row);
      this.update(node, view, c);
    });
    this.keepFocus(focused);
    if (this.inspected?.isConnected) this.inspect(this.inspected);
  }

  make(consumer) {
    const title = make("b", {}, `consumer ${consumer.slot}`);
    const parts = {
      header: make("div", { role: "rowheader", class: "who", tabindex: "-1" }),
      state: make("span", { class: "chip" }),
      load: make("span", { class: "load" }),
      limit: make("span", { class: "limit", "aria-hidden": "true" }),
      blocks: make("div", { role: "presentation", class: "blocks" }),
    };
    parts.header.append(title, " ", parts.state, " ", parts.load);
    const track = make("div", { role: "presentation", class: "track" }, parts.blocks, parts.limit);
    const node = make("div", { role: "row", class: "bar" }, parts.header, track);
    return Object.assign(node, { parts, slot: consumer.slot });
  }

  update(node, view, consumer) {
    const { header, state, load, limit, blocks } = node.parts;
    const share = consumer.limit ? consumer.load / consumer.limit : 0; // no controller ever led
    const over = share > 1 ? ", over its limit" : "";
    setAttribute(node, "data-state", consumer.state);
    setAttribute(node, "data-over", share > 1);
    const quiet = consumer.state === "silent" ? ` for ${duration(consumer.silent_s)}` : "";
    const lost = consumer.lost_offsets ? `, lost ${count(consumer.lost_offsets)} offsets` : "";
    setText(state, `${STATES[consumer.state]} ${consumer.state}${quiet}${lost}`);
    setText(load, `${rate(consumer.load)}, ${percent(share)}${over}`);
    const writes = consumer.tables.length ? `, writes ${consumer.tables.slice(0, 5).join(", ")}` : "";
    setAttribute(header, "aria-label",
      `consumer ${consumer.slot}, ${consumer.state}${quiet}${lost}, ${rate(consumer.load)}, ` +
      `${percent(share)} of its limit${over}, ${plural(consumer.partitions.length, "partition")}, ` +
      `lag ${plural(consumer.lag, "record")}${writes}`);
    setStyle(limit, "left", `${(100 * consumer.limit) / this.scale}%`);
    keyed(blocks, this.blocksOf(view, consumer), (b) => b.key,
      (b) => make("div", { role: "gridcell", tabindex: "-1", "data-key": b.key }),
      (cell, b) => {
        setAttribute(cell, "class", `block ${b.look}`);
        setStyle(cell, "width", `${Math.min(100, 100 * b.share).toFixed(3)}%`);
        setText(cell, b.name);
        setAttribute(cell, "aria-label", b.label);
      });
  }

  /** Return a consumer's blocks: its partitions, small ones as one, and what is on its way. */
  blocksOf(view, consumer) {
    let moving = 0;
    const all = consumer.partitions.map((at) => {
      const move = this.moves.leaving.get(`${at[0]}/${at[1]}`);
      const share = this.measured ? known(at[2]) / this.scale : 0.8 / this.most;
      moving += move ? 1 : 0;
      return { at, share, move, small: share < SMALL && !(move && moving <= MOVING) };
    });
    const small = all.filter((each) => each.small);
    const own = small.length > 1 ? all.filter((each) => !each.small) : all;
    const blocks = own.map(({ at, share, move }) => this.block(view, consumer, at, share, at[3], move));
    if (small.length > 1) blocks.push(this.mergedBlock(consumer, small));
    return [...blocks, ...this.comingTo(view, consumer)];
  }

  block(view, consumer, at, share, lag, move) {
    const name = nameOf(view, at);
    let way = "";
    let look = `colour-${at[0] % COLOURS}`;
    if (move && move.next === consumer.slot) {
      way = `, comes${move.old === null ? "" : ` from consumer ${move.old}`} (${move.phase})`;
      look += " coming";
    } else if (move) {
      way = `, moves to consumer ${move.next} (${move.phase})`;
      look += " moving";
    }
    const label = `${name}, consumer ${consumer.slot}, ${rate(at[2])}, lag ${plural(lag, "record")}${way}`;
    return { key: `${at[0]}/${at[1]}`, name, share, look, label };
  }

  mergedBlock(consumer, small) {
    const sum = (value) => small.reduce((all, each) => all + value(each), 0);
    const moving = sum((each) => (each.move ? 1 : 0));
    const way = moving ? `, ${count(moving)} of them move` : "";
    const label = `${count(small.length)} small partitions, consumer ${consumer.slot}, ` +
      `${rate(sum((each) => known(each.at[2])))}, lag ${plural(sum((each) => each.at[3]), "record")}${way}; Enter lists them`;
    return { key: "small", name: `+${count(small.length)}`, share: sum((each) => each.share), look: "merged", label };
  }

  comingTo(view, consumer) {
    const here = new Set(consumer.partitions.map(([topic, number]) => `${topic}/${number}`));
    const coming = (this.moves.coming.get(consumer.slot) ?? []).filter((move) => !here.has(move.key));
    return coming.slice(0, MOVING).map((move) => {
      const name = nameOf(view, [move.topic, move.number]);
      const from = move.old === null ? "" : ` from consumer ${move.old}`;
      const share = known(this.bytesOf.get(move.key)) / this.scale;
      const label = `${name}, comes to consumer ${consumer.slot}${from} (${move.phase})`;
      return { key: `coming/${move.key}`, name, share, look: "ghost", label };
    });
  }

  // --- the way through them --------------------------------------------------------------------

  rows() {
    return [...this.grid.children];
  }

  cells(row) {
    return [row.parts.header, ...row.parts.blocks.children];
  }

  enter(target) {
    const cell = target.closest("[role=rowheader], [role=gridcell]");
    if (!cell) return;
    if (this.current && this.current !== cell) this.current.tabIndex = -1;
    cell.tabIndex = 0;
    this.current = cell;
  }

  inspect(target) {
    const cell = target.closest?.("[role=rowheader], [role=gridcell]");
    if (!cell) return;
    this.inspected = cell;
    setText(this.inspector, cell.getAttribute("aria-label"));
  }

  /** One cell can be reached by Tab; one that had the focus and is gone hands it to its bar. */
  keepFocus(focused) {
    if (!this.current?.isConnected) {
      const slot = this.current?.closest(".bar")?.slot ?? this.currentSlot;
      const row = this.rows().find((each) => each.slot === slot) ?? this.rows()[0];
      this.current = row ? row.parts.header : null;
      if (this.current) this.current.tabIndex = 0;
    }
    this.currentSlot = this.current?.closest(".bar").slot;
    if (focused && document.activeElement !== focused) this.current?.focus();
  }

  list(target) {
    const row = target.closest(".bar");
    if (row) this.onList(row.slot);
  }

  async walk(event) {
    const cell = event.target.closest("[role=rowheader], [role=gridcell]");
    if (!cell || event.altKey || event.metaKey) return;
    const row = cell.closest(".bar");
    const cells = this.cells(row);
    const at = cells.indexOf(cell);
    const rows = this.rows();
    const steps = {
      ArrowRight: () => cells[at + 1],
      ArrowLeft: () => cells[at - 1],
      ArrowDown: () => this.beside(rows[rows.indexOf(row) + 1], cell),
      ArrowUp: () => this.beside(rows[rows.indexOf(row) - 1], cell),
      Home: () => (event.ctrlKey ? rows[0].parts.header : cells[0]),
      End: () => (event.ctrlKey ? rows.at(-1).parts.header : cells.at(-1)),
      PageDown: () => this.turned(1),
      PageUp: () => this.turned(-1),
      Enter: () => this.list(cell),
      " ": () => this.list(cell),
    };
    if (!Object.hasOwn(steps, event.key)) return;
    event.preventDefault();
    steps[event.key]()?.focus();
  }

  turned(pages) {
    return this.onPage(pages) ? this.rows()[0]?.parts.header : undefined;
  }

  /** Return the cell of a bar that is above or below another one. */
  beside(row, cell) {
    if (!row) return undefined;
    const blocks = [...row.parts.blocks.children];
    if (cell.getAttribute("role") === "rowheader" || !blocks.length) return row.parts.header;
    const middle = (each) => each.offsetLeft + each.offsetWidth / 2;
    const far = (each) => Math.abs(middle(each) - middle(cell));
    return blocks.reduce((best, each) => (far(each) < far(best) ? each : best));
  }
}
