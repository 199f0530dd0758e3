// A table that is sorted, filtered and shown in pages; on narrow screens a card for each row.

import { keyed, make, setAttribute, setText } from "./dom.js";
import { count } from "./format.js";

let made = 0;

/** Buttons that turn pages, for whatever is shown in pages. */
export class Pager {
  constructor(size, what, redraw) {
    Object.assign(this, { size, what, redraw, page: 0, total: 0 });
    this.back = make("button", { type: "button", onclick: () => this.turn(-1) }, `Previous ${what}`);
    this.text = make("span", { class: "quiet" });
    this.next = make("button", { type: "button", onclick: () => this.turn(1) }, `Next ${what}`);
    this.node = make("div", { class: "pager" }, this.back, this.text, this.next);
  }

  turn(pages) {
    const before = this.page;
    this.page = Math.min(Math.max(0, this.page + pages), this.last());
    if (this.page !== before) this.redraw();
    return this.page !== before;
  }

  last() {
    return Math.max(0, Math.ceil(this.total / this.size) - 1);
  }

  /** Return the items of this page. */
  of(items) {
    this.total = items.length;
    this.page = Math.min(this.page, this.last());
    const first = this.page * this.size;
    const shown = items.slice(first, first + this.size);
    this.node.hidden = items.length <= this.size;
    setText(this.text, `${count(first + 1)} to ${count(first + shown.length)} of ${count(items.length)}`);
    // A button that is disabled under the finger would lose the focus.
    setAttribute(this.back, "aria-disabled", this.page === 0);
    setAttribute(this.next, "aria-disabled", this.page === this.last());
    return shown;
  }
}

export class DataTable {
  /**
   * @param columns each {name, text(row), order(row), number: right-aligned, state: row's look}
   * @param options {name, key(row), size, filter: label of an input or nothing, empty: text,
   *   why: called with what a row is named, by a button in it; or nothing}
   */
  constructor(host, columns, options) {
    Object.assign(this, { columns, options, items: [], sorted: options.sorted ?? 0, down: options.down ?? false });
    this.pager = new Pager(options.size ?? 50, options.name, () => this.show());
    if (options.filter) host.append(this.makeFilter());
    this.heads = columns.map((column, index) => this.makeHead(column, index));
    if (options.why) this.heads.push(make("th", { role: "columnheader", scope: "col" }, "why"));
    this.body = make("tbody", { role: "rowgroup" });
    this.table = make("table", { role: "table", "aria-label": options.name },
      make("thead", { role: "rowgroup" }, make("tr", { role: "row" }, ...this.heads)), this.body);
    this.none = make("p", { class: "quiet" }, options.empty);
    host.append(this.table, this.none, this.pager.node);
  }

  makeFilter() {
    made += 1;
    const id = `filter-${made}`;
    const typed = () => {
      this.pager.page = 0;
      this.show();
    };
    this.filter = make("input", { id, type: "search", autocomplete: "off", spellcheck: "false", oninput: typed });
    return make("p", { class: "tools" }, make("label", { for: id }, this.options.filter), " ", this.filter);
  }

  makeHead(column, index) {
    const press = () => {
      this.down = this.sorted === index ? !this.down : Boolean(column.number);
      this.sorted = index;
      this.show();
    };
    const button = make("button", { type: "button", onclick: press }, column.name);
    return make("th", { role: "columnheader", scope: "col", class: column.number ? "number" : "" }, button);
  }

  draw(items) {
    this.items = items;
    this.show();
  }

  show() {
    const wanted = this.filter?.value.trim().toLowerCase();
    const found = wanted ? this.items.filter((item) => this.options.words(item).toLowerCase().includes(wanted)) : [...this.items];
    const { order } = this.columns[this.sorted];
    const way = this.down ? -1 : 1;
    const compared = (a, b) => (a < b ? -way : a > b ? way : 0);
    found.sort((a, b) => compared(order(a), order(b)));
    this.heads.slice(0, this.columns.length).forEach((head, index) => {
      const sort = this.down ? "descending" : "ascending";
      setAttribute(head, "aria-sort", index === this.sorted ? sort : null);
    });
    const shown = this.pager.of(found);
    this.table.hidden = !found.length;
    this.none.hidden = Boolean(found.length);
    keyed(this.body, shown, this.options.key, () => this.makeRow(), (node, item) => {
      this.columns.forEach((column, index) => setText(node.children[index], column.text(item)));
      if (this.options.look) setAttribute(node, "data-look", this.options.look(item));
      if (this.options.why) setAttribute(node.lastChild.firstChild, "data-what", this.columns[0].text(item));
      if (this.options.why) setAttribute(node.lastChild.firstChild, "aria-label", `Why ${this.columns[0].text(item)}?`);
    });
  }

  makeRow() {
    const cells = this.columns.map((column) =>
      make("td", { role: "cell", "data-name": column.name, class: column.number ? "number" : "" }));
    const { why } = this.options;
    const ask = (event) => why(event.currentTarget.dataset.what);
    if (why) cells.push(make("td", { role: "cell", "data-name": "why" }, make("button", { type: "button", onclick: ask }, "?")));
    return make("tr", { role: "row" }, ...cells);
  }
}
