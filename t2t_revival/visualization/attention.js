
"use strict";

const ROW = 26; // pixels, as --row
const LEAST = 5; // of 255: lines that are fainter are not drawn
const MOST_SAID = 5; // tokens that are named below the figure
const SPREAD = 12; // pixels over which the lines of a token's heads are spread
const MARK = "\u2581"; // SentencePiece writes a space so
const SVG = "http://www.w3.org/2000/svg";

const byId = (id) => document.getElementById(id);
const data = JSON.parse(byId("data").textContent);
const kinds = new Map(data.kinds.map((kind) => [kind.name, kind]));
for (const kind of kinds.values()) {
  kind.bytes = Uint8Array.from(atob(kind.weights), (character) => character.charCodeAt(0));
}
const SIDES = { from: "queries", at: "memory" };

// What is shown: a token is {side: "from" or "at", place: counted from 0}, or null.
const chosen = { kind: data.kinds[0], layer: 0, heads: new Set(), token: null };
let pointed = null;
let keeping = 0;

const colour = (head) => data.colours[(head - 1) % data.colours.length];
const headsShown = () => chosen.kind.heads.filter((head) => chosen.heads.has(head));

/** The weight, 0 to 255, of what a query gives to a place in memory. */
function weight(head, query, memory) {
  const { kind, layer } = chosen;
  const map = kind.layers.indexOf(layer) * kind.heads.length + kind.heads.indexOf(head);
  return kind.bytes[(map * kind.queries.length + query) * kind.memory.length + memory];
}

function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

/** The weights of one token, each [weight, place on the other side]. */
function ofToken(head, token) {
  const others = token.side === "from" ? chosen.kind.memory : chosen.kind.queries;
  return others.map((_, other) => [
    token.side === "from" ? weight(head, token.place, other) : weight(head, other, token.place),
    other,
  ]);
}

function drawKinds() {
  for (const input of byId("kinds").querySelectorAll("input")) input.checked = input.value === chosen.kind.name;
}

function drawLayersAndHeads() {
  byId("layer").replaceChildren(
    ...chosen.kind.layers.map((layer) => element("option", { value: layer }, String(layer))),
  );
  byId("layer").value = chosen.layer;
  byId("boxes").replaceChildren(
    ...chosen.kind.heads.map((head) => {
      const input = element("input", { type: "checkbox", name: "head", value: head });
      input.checked = chosen.heads.has(head);
      const label = element("label", { "data-head": head }, input, ` ${head}`);
      label.style.setProperty("--head", colour(head));
      return label;
    }),
  );
}

/** A piece whose mark for a space is fainter than its letters. */
function marked(text) {
  return text.split(MARK).flatMap((part, number) => [
    ...(number ? [element("span", { class: "mark" }, MARK)] : []),
    part,
  ]);
}

function drawTokens() {
  for (const [side, name] of Object.entries(SIDES)) {
    byId(`${name}-title`).textContent = chosen.kind[`${name}Title`];
    byId(name).replaceChildren(
      ...chosen.kind[name].map((text, place) => {
        const label = element("bdi", { dir: "auto" }, ...marked(text));
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
  const heads = headsShown();
  const step = Math.min(3, SPREAD / heads.length);
  const lines = [];
  heads.forEach((head, number) => {
    const middle = ROW / 2 + (number - (heads.length - 1) / 2) * step;
    const draw = (strength, query, memory) => {
      if (strength < LEAST) return;
      const line = document.createElementNS(SVG, "line");
      const ends = { x1: 0, y1: query * ROW + middle, x2: "100%", y2: memory * ROW + middle };
      for (const [key, value] of Object.entries(ends)) line.setAttribute(key, value);
      line.setAttribute("stroke-opacity", (strength / 255).toFixed(3));
      Object.assign(line.dataset, { head, query, memory });
      line.style.setProperty("--head", colour(head));
      lines.push(line);
    };
    const tokens = active ? [active] : chosen.kind.queries.map((_, place) => ({ side: "from", place }));
    for (const token of tokens) {
      for (const [strength, other] of ofToken(head, token)) {
        if (token.side === "from") draw(strength, token.place, other);
        else draw(strength, other, token.place);
      }
    }
  });
  svg.setAttribute("height", ROW * Math.max(chosen.kind.queries.length, chosen.kind.memory.length));
  svg.replaceChildren(...lines);
}

/** Marks the active token, and colours those on the other side by what it gives them or they give it. */
function drawMarks(active) {
  const heads = headsShown();
  const weights = active ? heads.map((head) => ofToken(head, active)) : [];
  for (const token of document.querySelectorAll(".token")) {
    const place = Number(token.dataset.place);
    const own = { side: token.dataset.side, place };
    token.classList.toggle("active", same(own, active));
    token.setAttribute("aria-selected", same(own, chosen.token));
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
    const there = chosen.token && chosen.token.side === side ? chosen.token.place : 0;
    byId(name).childNodes.forEach((token, place) => (token.tabIndex = place === there ? 0 : -1));
  }
}

/** Says in words what the active token looks at, on average over the heads that are shown. */
function say(active) {
  const heads = headsShown();
  if (!heads.length) return byId("said").replaceChildren("No head is chosen.");
  if (!active) return byId("said").replaceChildren();
  const { queries, memory } = chosen.kind;
  const [own, others] = active.side === "from" ? [queries, memory] : [memory, queries];
  const weights = heads.map((head) => ofToken(head, active));
  const means = others.map((_, other) => [
    weights.reduce((sum, ofHead) => sum + ofHead[other][0], 0) / heads.length / 255,
    other,
  ]);
  const named = means.filter(([mean]) => mean >= 0.005).sort((a, b) => b[0] - a[0]);
  const parts = named.slice(0, MOST_SAID).flatMap(([mean, other], number) => [
    number ? ", " : " ",
    element("bdi", {}, others[other]),
    ` ${Math.round(100 * mean)} %`,
  ]);
  const verb = active.side === "from" ? " looks at" : " is looked at by";
  const average = heads.length > 1 ? ` (mean of ${heads.length} heads)` : "";
  return byId("said").replaceChildren(element("bdi", {}, own[active.place]), verb, ...parts, average);
}

function drawAttention() {
  const active = pointed || chosen.token;
  drawLines(active);
  drawMarks(active);
  say(active);
}

function draw() {
  pointed = null;
  drawKinds();
  drawLayersAndHeads();
  drawTokens();
  drawAttention();
}

/** What is chosen as the address keeps it, such as #kind=cross&layer=2&heads=1,3&from=4. */
function toHash() {
  const { kind, layer, token } = chosen;
  const parts = [`kind=${kind.name}`, `layer=${layer}`, `heads=${headsShown().join(",")}`];
  if (token) parts.push(`${token.side}=${token.place + 1}`);
  return `#${parts.join("&")}`;
}

function fromHash() {
  const asked = new URLSearchParams(location.hash.slice(1));
  const kind = kinds.get(asked.get("kind")) || data.kinds[0];
  const heads = (asked.get("heads") ?? kind.heads.join(",")).split(",").map(Number);
  chosen.kind = kind;
  chosen.layer = kind.layers.includes(Number(asked.get("layer"))) ? Number(asked.get("layer")) : kind.layers.at(-1);
  chosen.heads = new Set(heads.filter((head) => kind.heads.includes(head)));
  chosen.token = null;
  for (const [side, name] of Object.entries(SIDES)) {
    const place = Number(asked.get(side)) - 1;
    if (kind[name][place] !== undefined) chosen.token = { side, place };
  }
}

/** Once for many changes in a row: browsers limit how often an address may change. */
function keep() {
  clearTimeout(keeping);
  keeping = setTimeout(() => history.replaceState(null, "", toHash()), 150);
}

function choose(change) {
  Object.assign(chosen, change);
  keep();
  drawAttention();
}

function chooseHeads(heads) {
  choose({ heads: new Set(heads) });
  byId("boxes").querySelectorAll("input").forEach((box) => (box.checked = chosen.heads.has(Number(box.value))));
}

const tokenOf = (node) => {
  const found = node instanceof Element && node.closest(".token");
  return found ? { side: found.dataset.side, place: Number(found.dataset.place) } : null;
};
const same = (one, other) => one?.side === other?.side && one?.place === other?.place;

function point(token) {
  if (same(token, pointed)) return;
  pointed = token;
  drawAttention();
}

const toggle = (token) => choose({ token: same(token, chosen.token) ? null : token });

/** The token to which a key leads, or undefined. */
function next(token, key) {
  const last = (side) => chosen.kind[SIDES[side]].length - 1;
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
  const layer = kind.layers.includes(chosen.layer) ? chosen.layer : kind.layers.at(-1);
  Object.assign(chosen, { kind, layer, token: null });
  keep();
  draw();
});
byId("layer").addEventListener("change", (event) => choose({ layer: Number(event.target.value) }));
byId("boxes").addEventListener("change", () => {
  chooseHeads([...byId("boxes").querySelectorAll(":checked")].map((box) => Number(box.value)));
});
byId("boxes").addEventListener("dblclick", (event) => {
  const label = event.target.closest("label");
  if (label) chooseHeads([Number(label.dataset.head)]);
});
byId("all").addEventListener("click", () => chooseHeads(chosen.kind.heads));
byId("none").addEventListener("click", () => chooseHeads([]));
byId("controls").addEventListener("submit", (event) => event.preventDefault());

const figure = byId("figure");
figure.addEventListener("pointerover", (event) => point(tokenOf(event.target)));
figure.addEventListener("pointerleave", () => point(null));
figure.addEventListener("click", (event) => {
  const token = tokenOf(event.target);
  if (token) toggle(token);
});
figure.addEventListener("focusin", (event) => {
  const token = tokenOf(event.target);
  if (token && event.target.matches(":focus-visible") && !same(token, chosen.token)) choose({ token });
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
  pointed = null;
  choose({ token: to });
  byId(SIDES[to.side]).childNodes[to.place].focus();
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") choose({ token: null });
});
window.addEventListener("hashchange", () => {
  if (location.hash === toHash()) return;
  fromHash();
  draw();
});

fromHash();
draw();
