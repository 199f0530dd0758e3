// Gives the orders of a person to the group, where the page's server takes them.

import { byId, make, setText } from "./dom.js";

const CONSUMER = "Consumer";
const PINNED = "Partition or topic";
const TABLE = "Table";
// What each order is, and which fields it has besides: a name, a number, a reason, an end.
const ORDERS = {
  freeze: { text: "freeze: move nothing", reason: true, until: true },
  unfreeze: { text: "unfreeze" },
  pin: { text: "pin to a consumer", what: PINNED, number: CONSUMER, reason: true, until: true },
  unpin: { text: "unpin", what: PINNED },
  cordon: { text: "cordon: give it nothing more", number: CONSUMER, reason: true, until: true },
  drain: { text: "drain: empty and end it", number: CONSUMER, reason: true, until: true },
  uncordon: { text: "uncordon, or end a drain", number: CONSUMER },
  scale: { text: "scale to a number", number: "Consumers", reason: true, until: true },
  unscale: { text: "unscale: follow the load" },
  adopt: { text: "adopt what savings propose", number: "Proposal", reason: true, until: true },
  unadopt: { text: "unadopt: a setting as the file has it", what: "Setting" },
  pause: { text: "pause a table", what: TABLE, reason: true },
  resume: { text: "resume a table", what: TABLE },
  approve: { text: "approve a plan", number: "Plan" },
};

const field = (name, text, properties = {}) => {
  const input = make("input", { name, autocomplete: "off", ...properties });
  const label = make("span", {}, text);
  return { input, label, node: make("label", {}, label, " ", input) };
};

export class OrderForm {
  /** @param send posts JSON to a path and gives the reply's; it rejects with what is wrong */
  constructor(send) {
    this.send = send;
    this.order = make("select", { name: "order", onchange: () => this.show() },
      ...Object.entries(ORDERS).map(([name, { text }]) => make("option", { value: name }, text)));
    this.fields = {
      what: field("what", PINNED, { maxlength: 300, spellcheck: "false" }),
      number: field("number", CONSUMER, { type: "number", min: 0, step: 1 }),
      reason: field("reason", "Reason", { maxlength: 500 }),
      until: field("until", "Until", { maxlength: 40, placeholder: "2h, 18:00 UTC; empty: no end", spellcheck: "false" }),
    };
    this.button = make("button", { type: "submit" }, "Give the order");
    byId("give-form").append(make("label", {}, "Order ", this.order),
      ...Object.values(this.fields).map((each) => each.node), this.button);
    byId("give-form").addEventListener("submit", (event) => {
      event.preventDefault();
      this.give();
    });
    this.show();
  }

  /** Show the fields of the chosen order; all but the end must be filled. */
  show() {
    const order = ORDERS[this.order.value];
    for (const [name, { input, label, node }] of Object.entries(this.fields)) {
      node.hidden = !order[name];
      input.required = Boolean(order[name]) && name !== "until";
      if (typeof order[name] === "string") setText(label, order[name]);
    }
  }

  /** Choose an order about a number, and go to its button. */
  prepare(order, number) {
    this.order.value = order;
    this.fields.number.input.value = number;
    this.show();
    this.button.focus();
  }

  async give() {
    const chosen = ORDERS[this.order.value];
    const found = { order: this.order.value };
    for (const [name, { input }] of Object.entries(this.fields)) {
      if (chosen[name] && input.value !== "") found[name] = name === "number" ? input.valueAsNumber : input.value.trim();
    }
    this.button.disabled = true;
    setText(byId("give-result"), "The order is on its way.");
    try {
      setText(byId("give-result"), `${(await this.send("orders", found)).text}.`);
    } catch (error) {
      setText(byId("give-result"), `Not done: ${error.message}`);
    } finally {
      this.button.disabled = false;
      this.button.focus();
    }
  }
}
