/** As much of a browser's document as the scripts of pages use, for Node: elements, selectors and events. */

const kebab = (name) => `data-${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
const escaped = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll('"', "&quot;");
const FLAGS = ["hidden", "open", "disabled"]; // attributes that are there or not
const TEXTS = ["id", "className", "href", "type", "title"]; // attributes that are properties too

class Leaf {
  nodeType = 3;
  nodeName = "#text";
  parentNode = null;
  childNodes = [];

  constructor(data) {
    this.data = data;
  }

  get textContent() {
    return this.data;
  }

  cloneNode() {
    return new Leaf(this.data);
  }

  remove() {
    if (this.parentNode) this.parentNode.childNodes = this.parentNode.childNodes.filter((node) => node !== this);
    this.parentNode = null;
  }

  replaceWith(next) {
    if (next === this) return;
    next.remove();
    const { parentNode } = this;
    parentNode.childNodes[parentNode.childNodes.indexOf(this)] = next;
    [next.parentNode, this.parentNode] = [parentNode, null];
  }

  isEqualNode(other) {
    return markup(this) === markup(other);
  }
}

export class Element extends Leaf {
  nodeType = 1;
  listeners = {};
  held = new Map(); // attributes

  constructor(name, attributes = {}) {
    super("");
    [this.localName, this.nodeName] = [name, name.toUpperCase()];
    for (const [key, value] of Object.entries(attributes)) this.setAttribute(key, value);
  }

  get attributes() {
    return [...this.held].map(([name, value]) => ({ name, value }));
  }

  getAttribute(name) {
    return this.held.get(name) ?? null;
  }

  hasAttribute(name) {
    return this.held.has(name);
  }

  setAttribute(name, value) {
    this.held.set(name, String(value));
  }

  removeAttribute(name) {
    this.held.delete(name);
  }

  get dataset() {
    return new Proxy({}, {
      get: (_, name) => this.held.get(kebab(name)),
      has: (_, name) => this.held.has(kebab(name)),
      set: (_, name, value) => Boolean(this.held.set(kebab(name), String(value))),
    });
  }

  get classList() {
    const names = () => (this.getAttribute("class") ?? "").split(" ").filter(Boolean);
    return {
      contains: (name) => names().includes(name),
      add: (name) => this.setAttribute("class", [...new Set([...names(), name])].join(" ")),
      toggle: (name, is) => this.setAttribute("class", [...names().filter((own) => own !== name), ...(is ? [name] : [])].join(" ")),
    };
  }

  get textContent() {
    return this.childNodes.map((node) => node.textContent).join("");
  }

  set textContent(text) {
    this.replaceChildren(...(text === "" ? [] : [String(text)]));
  }

  append(...nodes) {
    for (const node of nodes) {
      const added = node instanceof Leaf ? node : new Leaf(String(node));
      added.remove();
      this.childNodes.push(added);
      added.parentNode = this;
    }
  }

  prepend(node) {
    const others = [...this.childNodes];
    this.append(node, ...others);
  }

  replaceChildren(...nodes) {
    for (const node of [...this.childNodes]) node.remove();
    this.append(...nodes);
  }

  cloneNode(deep) {
    const made = new Element(this.localName, Object.fromEntries(this.held));
    if (deep) made.append(...this.childNodes.map((node) => node.cloneNode(true)));
    return made;
  }

  get children() {
    return this.childNodes.filter((node) => node.nodeType === 1);
  }

  get lastChild() {
    return this.childNodes.at(-1);
  }

  *all() {
    for (const child of this.children) {
      yield child;
      yield* child.all();
    }
  }

  matches(selector) {
    return selector.split(/,\s*/).some((path) => isAt(this, path.trim().split(/\s+/)));
  }

  closest(selector) {
    for (let at = this; at; at = at.parentNode) if (at.matches(selector)) return at;
    return null;
  }

  querySelectorAll(selector) {
    return [...this.all()].filter((element) => element.matches(selector));
  }

  querySelector(selector) {
    return this.querySelectorAll(selector)[0] ?? null;
  }

  // tables
  get tHead() {
    return this.children.find(({ localName }) => localName === "thead");
  }

  get tBodies() {
    return this.children.filter(({ localName }) => localName === "tbody");
  }

  get caption() {
    return this.children.find(({ localName }) => localName === "caption");
  }

  get rows() {
    return this.children.filter(({ localName }) => localName === "tr");
  }

  get cells() {
    return this.children.filter(({ localName }) => localName === "td" || localName === "th");
  }

  get cellIndex() {
    return this.parentNode.cells.indexOf(this);
  }

  // forms
  get options() {
    return this.querySelectorAll("option");
  }

  get selectedOptions() {
    const { options } = this;
    return [options.find((option) => option === this.chosen) ?? options.find((option) => option.hasAttribute("selected")) ?? options[0]];
  }

  set selected(is) {
    if (is) this.closest("select").chosen = this;
  }

  get value() {
    if (this.localName === "select") return this.selectedOptions[0].value;
    return this.typed ?? this.getAttribute("value") ?? "";
  }

  set value(text) {
    if (this.localName === "select") this.chosen = this.options.find((option) => option.value === String(text));
    else this.typed = String(text);
  }

  get checked() {
    return this.ticked ?? this.hasAttribute("checked");
  }

  set checked(is) {
    this.ticked = is;
  }

  // events
  addEventListener(type, listener) {
    (this.listeners[type] ??= []).push(listener);
  }

  dispatchEvent(event) {
    return Promise.all((this.listeners[event.type] ?? []).map((listener) => listener(event)));
  }

  focus() {
    document.activeElement = this;
  }

  click() {
    if (this.localName === "a") downloads.push([this.download, blobs.get(this.href)]);
    return emit("click", this);
  }
}

for (const name of FLAGS) {
  const is = { get() { return this.hasAttribute(name); }, set(on) { if (on) this.setAttribute(name, ""); else this.removeAttribute(name); } };
  Object.defineProperty(Element.prototype, name, is);
}
for (const name of TEXTS) {
  const key = name === "className" ? "class" : name;
  const text = { get() { return this.getAttribute(key) ?? ""; }, set(value) { this.setAttribute(key, value); } };
  Object.defineProperty(Element.prototype, name, text);
}

const PART = /#([\w-]+)|\.([\w-]+)|\[([\w-]+)(?:(\^?=)(?:"([^"]*)"|'([^']*)'|([^\]]*)))?\]|(:checked)|^([a-z][\w]*)/g;

/** Whether an element is at the end of a path of simple selectors. */
function isAt(element, path) {
  if (!isOne(element, path.at(-1))) return false;
  const before = path.slice(0, -1);
  if (!before.length) return true;
  for (let at = element.parentNode; at; at = at.parentNode) if (isAt(at, before)) return true;
  return false;
}

function isOne(element, simple) {
  let read = 0;
  for (const [all, id, name, attribute, how, ...found] of simple.matchAll(PART)) {
    read += all.length;
    const [checked, tag] = found.slice(3);
    const wanted = found.slice(0, 3).find((text) => text !== undefined);
    const own = attribute && element.getAttribute(attribute);
    const holds = id ? element.id === id
      : name ? element.classList.contains(name)
      : checked ? element.checked
      : tag ? element.localName === tag
      : own !== null && (!how || (how === "=" ? own === wanted : own.startsWith(wanted)));
    if (!holds) return false;
  }
  if (read !== simple.length) throw new Error(`this document does not know the selector ${simple}`);
  return true;
}

/** What a node is as text. */
export function markup(node) {
  if (node.nodeType === 3) return escaped(node.data);
  const attributes = node.attributes.map(({ name, value }) => ` ${name}="${escaped(value)}"`).sort().join("");
  return `<${node.localName}${attributes}>${node.childNodes.map(markup).join("")}</${node.localName}>`;
}

/** The node of a tree: a text, or a list of name, attributes and children. */
export function built(tree) {
  if (typeof tree === "string") return new Leaf(tree);
  const [name, attributes, children] = tree;
  const made = new Element(name, attributes);
  made.append(...children.map(built));
  return made;
}

/** What was saved (name and Blob), the Blobs of addresses that were not revoked, and calls that wait for their time. */
export const [downloads, blobs, timers] = [[], new Map(), []];

/** An event at an element, of which the elements around it and the document hear too; resolves when all have ended. */
export async function emit(type, target) {
  for (let at = target; at; at = at.parentNode ?? (at === document ? null : document)) {
    await Promise.all((at.listeners[type] ?? []).map((listener) => listener({ type, target })));
  }
}

/** Makes a tree the document of this program. */
export function open(tree) {
  const page = built(tree);
  const root = page.querySelector("html") ?? page;
  const document = new Element("#document");
  document.childNodes = [root];
  root.parentNode = null;
  Object.assign(document, {
    documentElement: root,
    getElementById: (id) => [...root.all()].find((element) => element.id === id) ?? null,
    createElement: (name) => new Element(name),
    createElementNS: (_, name) => new Element(name),
  });
  globalThis.document = document;
  return document;
}

globalThis.Node = { ELEMENT_NODE: 1 };
globalThis.XMLSerializer = class {
  serializeToString = markup;
};
globalThis.DOMParser = class {
  parseFromString = (text) => built(JSON.parse(text)); // where a browser reads a page, a test has its tree
};
const later = globalThis.setTimeout;
globalThis.setTimeout = (call, milliseconds) => timers.push([call, milliseconds]);
URL.createObjectURL = (blob) => {
  const address = `blob:${blobs.size}`;
  blobs.set(address, blob);
  return address;
};
URL.revokeObjectURL = (address) => blobs.delete(address);

/** Resolves as soon as something holds, of a page that works by itself. */
export async function until(holds) {
  for (const end = Date.now() + 60_000; !holds(); ) {
    if (Date.now() > end) throw new Error(`a page must get ready within a minute: ${holds}`);
    await new Promise((resolve) => later(resolve, 2));
  }
}

// What tests do on a page.
export const all = (selector) => document.querySelectorAll(selector);
export const texts = (selector) => all(selector).map((element) => element.textContent);

export function one(selector) {
  const found = document.querySelector(selector);
  if (!found) throw new Error(`the page has no ${selector}`);
  return found;
}

export function type(selector, text) {
  one(selector).value = text;
  return emit("input", one(selector));
}

export function tick(selector) {
  one(selector).checked = !one(selector).checked;
  return emit("input", one(selector));
}

export const press = (selector) => one(selector).click();

/** Name, type and content of what a button saves. */
export async function save(selector) {
  await press(selector);
  const [name, blob] = downloads.at(-1);
  return [name, blob.type, await blob.text()];
}
