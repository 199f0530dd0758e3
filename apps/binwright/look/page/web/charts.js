// Small charts of the last hour; a finger, a mouse or the arrow keys read single moments.

import { make, setAttribute, setText } from "./dom.js";
import { bytes, clock, count, duration } from "./format.js";

const WIDTH = 300;
const HEIGHT = 80;
const CHARTS = [
  { name: "Load", lines: [["load", "written"], ["staging", "staged"], ["limit", "limit of all"]], show: (v) => `${bytes(v)}/s` },
  { name: "Consumers", lines: [["consumers", "live"]], show: count, steps: true },
  { name: "Lag", lines: [["lag", "records"]], show: count },
  { name: "Oldest row", lines: [["age_s", "of all tables"]], show: duration },
];

function svg(tag, attributes) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  return node;
}

class Chart {
  constructor(host, { name, lines, show, steps }) {
    Object.assign(this, { name, lines, show, steps, points: [], at: null });
    this.paths = lines.map((_, index) => svg("path", { class: `line line-${index}` }));
    this.cursor = svg("path", { class: "cursor" });
    this.picture = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", "aria-hidden": "true" });
    this.picture.append(...this.paths, this.cursor);
    this.box = make("div", { class: "plot", tabindex: "0", role: "slider", "aria-orientation": "horizontal" }, this.picture);
    this.keys = lines.map(([, label], index) => {
      const value = make("b");
      return { label, value, node: make("span", { class: `reading line-${index}` }, make("i"), ` ${label} `, value) };
    });
    this.time = make("span", { class: "quiet" });
    this.highest = make("span", { class: "quiet" });
    host.append(make("figure", {},
      make("figcaption", {}, make("b", {}, name), " ", this.time, " ", ...this.keys.map((key) => key.node)),
      this.box, make("p", { class: "axis" }, this.highest)));
    this.box.addEventListener("pointermove", (event) => this.point(event));
    for (const event of ["pointerleave", "blur"]) this.box.addEventListener(event, () => this.read(null));
    this.box.addEventListener("keydown", (event) => this.step(event));
  }

  draw(history) {
    const column = Object.fromEntries(history.fields.map((field, index) => [field, index]));
    this.points = history.points;
    this.columns = this.lines.map(([field]) => column[field]);
    this.begin = this.points[0]?.[0] ?? 0;
    this.length = Math.max(1, (this.points.at(-1)?.[0] ?? 0) - this.begin);
    this.top = Math.max(1e-9, ...this.columns.map((index) => this.points.reduce((most, p) => Math.max(most, p[index]), 0)));
    const gap = 3000 * history.step_s;
    this.paths.forEach((path, index) => setAttribute(path, "d", this.path(this.columns[index], gap)));
    setText(this.highest, this.points.length
      ? `${clock(this.begin)} to ${clock(this.points.at(-1)[0])}, highest ${this.show(this.top === 1e-9 ? 0 : this.top)}`
      : "nothing was measured yet");
    this.read(this.at);
  }

  x(point) {
    return (WIDTH * (point[0] - this.begin)) / this.length;
  }

  path(index, gap) {
    const parts = [];
    let before = null;
    for (const point of this.points) {
      const [x, y] = [this.x(point).toFixed(1), (HEIGHT - 2 - (HEIGHT - 4) * (point[index] / this.top)).toFixed(1)];
      if (!before || point[0] - before > gap) parts.push(`M${x} ${y}`);
      else parts.push(this.steps ? `H${x}V${y}` : `L${x} ${y}`);
      before = point[0];
    }
    return parts.join("");
  }

  /** Show the moment number `at`; null: the last one. */
  read(at) {
    this.at = at === null || at >= this.points.length ? null : at;
    const index = this.at ?? this.points.length - 1;
    const point = this.points[index];
    setAttribute(this.cursor, "d", this.at === null || !point ? "" : `M${this.x(point).toFixed(1)} 0V${HEIGHT}`);
    setText(this.time, this.at === null || !point ? "now" : clock(point[0]));
    this.keys.forEach((key, number) => setText(key.value, point ? this.show(point[this.columns[number]]) : "–"));
    const told = this.keys.map((key) => `${key.label} ${key.value.textContent}`).join(", ");
    setAttribute(this.box, "aria-label", `${this.name} over the last hour`);
    setAttribute(this.box, "aria-valuemin", 0);
    setAttribute(this.box, "aria-valuemax", Math.max(0, this.points.length - 1));
    setAttribute(this.box, "aria-valuenow", Math.max(0, index));
    setAttribute(this.box, "aria-valuetext", point ? `${clock(point[0])}: ${told}` : "nothing was measured yet");
  }

  point(event) {
    const box = this.box.getBoundingClientRect();
    const wanted = this.begin + (this.length * (event.clientX - box.left)) / box.width;
    const later = this.points.findIndex((point) => point[0] >= wanted);
    if (this.points.length) this.read(later < 0 ? this.points.length - 1 : later);
  }

  step(event) {
    const last = this.points.length - 1;
    const at = this.at ?? last;
    const steps = { ArrowLeft: at - 1, ArrowRight: at + 1, PageUp: at - 12, PageDown: at + 12, Home: 0, End: last };
    if (last < 0 || !Object.hasOwn(steps, event.key)) return;
    event.preventDefault();
    this.read(Math.min(Math.max(0, steps[event.key]), last));
  }
}

export class Charts {
  constructor(host) {
    this.charts = CHARTS.map((chart) => new Chart(host, chart));
  }

  draw(history) {
    for (const chart of this.charts) chart.draw(history);
  }
}
