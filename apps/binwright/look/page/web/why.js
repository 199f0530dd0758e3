// Asks the server why the group is as it is, and shows the sentences of its answer.

import { byId, make } from "./dom.js";

const HEADS = { is: "is", why: "why", otherwise: "otherwise", held: "held back by", change: "would change it" };

/** Draw an answer: a term for each kind of line, and its lines below it. */
function draw(answer) {
  const list = make("dl", { class: "answer" });
  let kind = null;
  for (const line of answer.lines) {
    if (line.kind !== kind) list.append(make("dt", {}, HEADS[line.kind]));
    list.append(make("dd", {}, line.text));
    kind = line.kind;
  }
  byId("why-answer").replaceChildren(make("h3", {}, answer.about), list);
}

export class Why {
  /** @param ask gets a path's JSON; it rejects with what is wrong */
  constructor(ask) {
    this.ask = ask;
    this.what = byId("why-what");
    byId("why-ask").addEventListener("click", () => this.explain(this.what.value.trim()));
    this.what.addEventListener("keydown", (event) => {
      if (event.key === "Enter") this.explain(this.what.value.trim());
    });
  }

  /** Ask about what a row names, and go to the answer. */
  about(name) {
    this.what.value = name;
    byId("why-title").focus();
    return this.explain(name);
  }

  async explain(what) {
    try {
      draw(await this.ask(`explain/${encodeURIComponent(what)}`));
    } catch (error) {
      byId("why-answer").replaceChildren(make("p", {}, error.message));
    }
  }
}
