// Elements are made of nodes and text nodes only: names of topics may hold any character.

export const byId = (id) => document.getElementById(id);

export function make(tag, properties = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name === "class") node.className = value;
    else if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value);
  }
  node.append(...children);
  return node;
}

// What has not changed is not touched: an unchanged page costs the browser nothing.
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

export function setAttribute(node, name, value) {
  if (value === null || value === false) node.removeAttribute(name);
  else if (node.getAttribute(name) !== String(value)) node.setAttribute(name, value);
}

export function setStyle(node, name, value) {
  if (node.style.getPropertyValue(name) !== value) node.style.setProperty(name, value);
}

const childrenOf = new WeakMap();

/** Make the children of `parent` those of `items`: one each, in order, kept by its key. */
export function keyed(parent, items, keyOf, create, update) {
  const before = childrenOf.get(parent) ?? new Map();
  const now = new Map();
  for (const item of items) {
    const key = keyOf(item);
    now.set(key, before.get(key) ?? create(item));
  }
  for (const [key, node] of before) if (!now.has(key)) node.remove();
  let place = parent.firstChild;
  for (const item of items) {
    const node = now.get(keyOf(item));
    update(node, item);
    if (node === place) place = place.nextSibling;
    else parent.insertBefore(node, place);
  }
  childrenOf.set(parent, now);
}

export const lines = (parent, texts) =>
  keyed(parent, texts.map((text, index) => ({ text, index })), (line) => line.index,
    () => make("li"), (node, line) => setText(node, line.text));
