
"use strict";

const ROW = 26; // pixels, as --row
const MIN_LEVEL = 5; // of 255; fainter lines are not drawn
const MAX_LISTED = 5; // tokens listed below the figure
const SPREAD = 12; // pixels over which the lines of a token's heads are spread
const MARK = "\u2581"; // SentencePiece's mark of a space
const SVG = "http://www.w3.org/2000/svg";

const byId = (id) => document.getElementById(id);
const data = JSON.parse(byId("data").textContent);
const kinds = new Map(data.kinds.map((kind) => [kind.name, kind]));
for (const kind of kinds.values()) {
  kind.bytes = Uint8Array.from(atob(kind.weights), (character) => character.charCodeAt(0));
}
const first = kinds.get("cross") ?? data.kinds[0];
const SIDES = { from: "queries", at: "memory" };

// A token is {side: "from" or "at", place: its index}, or null.
const selection = { kind: first, layer: 0, heads: new Set(), token: null };
let hovered = null;
let timer = 0;

const colour = (head) => data.colours[(head - 1) % data.colours.length];
const selectedHeads = () => selection.kind.heads.filter((head) => selection.heads.has(head));

/** Returns the attention weight, 0 to 255, of a query for a memory position. */
function weight(head, query, memory) {
  const { kind, layer } = selection;
  const map = kind.layers.indexOf(layer) * kind.heads.length + kind.heads.indexOf(head);
  return kind.bytes[(map * kind.queries.length + query) * kind.memory.length + memory];
}

function element(name, attributes = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
}

/** Returns the weights of one token, each [weight, index on the other side]. */
function weightsOf(head, token) {
  const others = token.side === "from" ? selection.kind.memory : selection.kind.queries;
  return others.map((_, other) => [
    token.side === "from" ? weight(head, token.place, other) : weight(head, other, token.place),
    other,
  ]);
}

function drawKinds() {
  for (const input of byId("kinds").querySelectorAll("input")) input.checked = input.value === selection.kind.name;
}

function drawLayersAndHeads() {
  byId("layer").replaceChildren(
    ...selection.kind.layers.map((layer) => element("option", { value: layer }, String(layer))),
  );
  byId("layer").value = selection.layer;
  byId("boxes").replaceChildren(
    ...selection.kind.heads.map((head) => {
      const input = element("input", { type: "checkbox", name: "head", value: head });
      input.checked = selection.heads.has(head);
      const label = element("label", { "data-head": head }, input, ` ${head}`);
      label.style.setProperty("--head", colour(head));
      return label;
    }),
  );
}

/** Returns a piece with a fainter mark for a space. */
function withMarks(text) {
  return text.split(MARK).flatMap((part, number) => [
    ...(number ? [element("span", { class: "mark" }, MARK)] : []),
    part,
  ]);
}

function drawTokens() {
  for (const [side, name] of Object.entries(SIDES)) {
    byId(`${name}-title`).textContent = selection.kind[`${name}Title`];
    byId(name).replaceChildren(
      ...selection.kind[name].map((text, place) => {
        const label = element("bdi", { dir: "auto" }, ...withMarks(text));
        const attributes = { class: "token", role: "option", tabindex: -1, title: text };
        const token = element("div", attributes, element("span", { class: "strips" }), label);
        token.dataset.side = side;
        token.dataset.place = place;
        return token;
      }),
    );
  }
}

function drawLines(active) {
  const svg = byId("lines");
  const heads = selectedHeads();
  const step = Math.min(3, SPREAD / heads.length);
  const lines = [];
  heads.forEach((head, number) => {
    const middle = ROW / 2 + (number - (heads.length - 1) / 2) * step;
    const draw = (strength, query, memory) => {
      if (strength < MIN_LEVEL) return;
      const line = document.createElementNS(SVG, "line");
      const ends = { x1: 0, y1: query * ROW + middle, x2: "100%", y2: memory * ROW + middle };
      for (const [key, value] of Object.entries(ends)) line.setAttribute(key, value);
      line.setAttribute("stroke-opacity", (strength / 255).toFixed(3));
      Object.assign(line.dataset, { head, query, memory });
      line.style.setProperty("--head", colour(head));
      lines.push(line);
    };
    const tokens = active ? [active] : selection.kind.queries.map((_, place) => ({ side: "from", place }));
    for (const token of tokens) {
      for (const [strength, other] of weightsOf(head, token)) {
        if (token.side === "from") draw(strength, token.place, other);
        else draw(strength, other, token.place);
      }
    }
  });
  svg.setAttribute("height", ROW * Math.max(selection.kind.queries.length, selection.kind.memory.length));
  svg.replaceChildren(...lines);
}

/** Highlights the active token, and colours the tokens on the other side by their weights. */
function drawStrips(active) {
  const heads = selectedHeads();
  const weights = active ? heads.map((head) => weightsOf(head, active)) : [];
  for (const token of document.querySelectorAll(".token")) {
    const place = Number(token.dataset.place);
    const own = { side: token.dataset.side, place };
    token.classList.toggle("active", same(own, active));
    token.setAttribute("aria-selected", same(own, selection.token));
    const isOther = active && active.side !== token.dataset.side;
    token.firstChild.replaceChildren(
      ...(isOther ? heads : []).map((head, number) => {
        const strip = element("i");
        strip.style.setProperty("--head", colour(head));
        strip.style.opacity = (0.6 * weights[number][place][0]) / 255;
        return strip;
      }),
    );
  }
  for (const [side, name] of Object.entries(SIDES)) {
    const focusable = selection.token && selection.token.side === side ? selection.token.place : 0;
    byId(name).childNodes.forEach((token, place) => (token.tabIndex = place === focusable ? 0 : -1));
  }
}

/** Lists the strongest weights of the active token, averaged over the selected heads. */
function showStatus(active) {
  const heads = selectedHeads();
  if (!heads.length) return byId("status").replaceChildren("No head is selected.");
  if (!active) return byId("status").replaceChildren();
  const { queries, memory } = selection.kind;
  const [own, others] = active.side === "from" ? [queries, memory] : [memory, queries];
  const weights = heads.map((head) => weightsOf(head, active));
  const means = others.map((_, other) => [
    weights.reduce((sum, ofHead) => sum + ofHead[other][0], 0) / heads.length / 255,
    other,
  ]);
  const named = means.filter(([mean]) => mean >= 0.005).sort((a, b) => b[0] - a[0]);
  const parts = named.slice(0, MAX_LISTED).flatMap(([mean, other], number) => [
    number ? ", " : " ",
    element("bdi", {}, others[other]),
    ` ${Math.round(100 * mean)} %`,
  ]);
  const verb = active.side === "from" ? " attends to" : " is attended to by";
  const average = heads.length > 1 ? ` (mean of ${heads.length} heads)` : "";
  return byId("status").replaceChildren(element("bdi", {}, own[active.place]), verb, ...parts, average);
}

function drawAttention() {
  const active = hovered || selection.token;
  drawLines(active);
  drawStrips(active);
  showStatus(active);
}

function draw() {
  hovered = null;
  drawKinds();
  drawLayersAndHeads();
  drawTokens();
  drawAttention();
}

/** Returns the selection as the address stores it, such as #kind=cross&layer=2&heads=1,3&from=4. */
function toHash() {
  const { kind, layer, token } = selection;
  const parts = [`kind=${kind.name}`, `layer=${layer}`, `heads=${selectedHeads().join(",")}`];
  if (token) parts.push(`${token.side}=${token.place + 1}`);
  return `#${parts.join("&")}`;
}

function fromHash() {
  const parameters = new URLSearchParams(location.hash.slice(1));
  const kind = kinds.get(parameters.get("kind")) ?? first;
  const heads = (parameters.get("heads") ?? kind.heads.join(",")).split(",").map(Number);
  selection.kind = kind;
  selection.layer = kind.layers.includes(Number(parameters.get("layer"))) ? Number(parameters.get("layer")) : kind.layers.at(-1);
  selection.heads = new Set(heads.filter((head) => kind.heads.includes(head)));
  selection.token = null;
  for (const [side, name] of Object.entries(SIDES)) {
    const place = Number(parameters.get(side)) - 1;
    if (kind[name][place] !== undefined) selection.token = { side, place };
  }
}

/** Stores the selection in the address, delayed, since browsers limit how often an address may change. */
function updateHash() {
  if (location.protocol === "about:") return; // in a frame of t2t-server's page, which has no address
  clearTimeout(timer);
  timer = setTimeout(() => history.replaceState(null, "", toHash()), 150);
}

function select(change) {
  Object.assign(selection, change);
  updateHash();
  drawAttention();
}

function selectHeads(heads) {
  select({ heads: new Set(heads) });
  byId("boxes").querySelectorAll("input").forEach((box) => (box.checked = selection.heads.has(Number(box.value))));
}

const tokenOf = (node) => {
  const found = node instanceof Element && node.closest(".token");
  return found ? { side: found.dataset.side, place: Number(found.dataset.place) } : null;
};
const same = (one, other) => one?.side === other?.side && one?.place === other?.place;

function hover(token) {
  if (same(token, hovered)) return;
  hovered = token;
  drawAttention();
}

const toggle = (token) => select({ token: same(token, selection.token) ? null : token });

/** Returns the token that a key moves to, or undefined. */
function next(token, key) {
  const last = (side) => selection.kind[SIDES[side]].length - 1;
  const at = (side, place) => ({ side, place: Math.max(0, Math.min(place, last(side))) });
  const steps = {
    ArrowUp: () => at(token.side, token.place - 1),
    ArrowDown: () => at(token.side, token.place + 1),
    ArrowLeft: () => at("from", token.place),
    ArrowRight: () => at("at", token.place),
    Home: () => at(token.side, 0),
    End: () => at(token.side, last(token.side)),
  };
  return Object.hasOwn(steps, key) ? steps[key]() : undefined;
}

for (const kind of kinds.values()) {
  const input = element("input", { type: "radio", name: "kind", value: kind.name });
  byId("kinds").append(element("label", {}, input, ` ${kind.title}`));
}
byId("source").textContent = data.source;
byId("target").textContent = data.target;
byId("kinds").addEventListener("change", (event) => {
  const kind = kinds.get(event.target.value);
  const layer = kind.layers.includes(selection.layer) ? selection.layer : kind.layers.at(-1);
  Object.assign(selection, { kind, layer, token: null });
  updateHash();
  draw();
});
byId("layer").addEventListener("change", (event) => select({ layer: Number(event.target.value) }));
byId("boxes").addEventListener("change", () => {
  selectHeads([...byId("boxes").querySelectorAll(":checked")].map((box) => Number(box.value)));
});
byId("boxes").addEventListener("dblclick", (event) => {
  const label = event.target.closest("label");
  if (label) selectHeads([Number(label.dataset.head)]);
});
byId("all").addEventListener("click", () => selectHeads(selection.kind.heads));
byId("none").addEventListener("click", () => selectHeads([]));
byId("controls").addEventListener("submit", (event) => event.preventDefault());

const figure = byId("figure");
figure.addEventListener("pointerover", (event) => hover(tokenOf(event.target)));
figure.addEventListener("pointerleave", () => hover(null));
figure.addEventListener("click", (event) => {
  const token = tokenOf(event.target);
  if (token) toggle(token);
});
figure.addEventListener("focusin", (event) => {
  const token = tokenOf(event.target);
  if (token && event.target.matches(":focus-visible") && !same(token, selection.token)) select({ token });
});
figure.addEventListener("keydown", (event) => {
  const token = tokenOf(event.target);
  if (!token || event.ctrlKey || event.altKey || event.metaKey) return;
  if (event.key === "Enter" || event.key === " ") {
    toggle(token);
    event.preventDefault();
    return;
  }
  const to = next(token, event.key);
  if (!to) return;
  event.preventDefault();
  hovered = null;
  select({ token: to });
  byId(SIDES[to.side]).childNodes[to.place].focus();
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") select({ token: null });
});
window.addEventListener("hashchange", () => {
  if (location.hash === toHash()) return;
  fromHash();
  draw();
});
if (window.parent !== window) { // such as the page of t2t-server, which has a title, and gives the height asked for
  document.body.classList.add("embedded");
  new ResizeObserver(() => window.parent.postMessage(document.documentElement.offsetHeight, "*")).observe(document.body);
}

fromHash();
draw();
