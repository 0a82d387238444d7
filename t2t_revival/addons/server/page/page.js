"use strict";

const TYPING_MS = 350; // of silence before a text is translated
const LOADING_MS = 500; // between two questions for models that are being loaded
const RECENT = 12; // texts kept in the browser
const MAX_EXPLAINED = 8; // lines of a text whose words are explained unasked
const FILE_LINES = 500; // of a file in one request
const FILE_CHARACTERS = 400_000;
const SURE = 0.9; // words as likely as this are not shaded
const MIN_SHOWN = 0.005; // probability of an alternative that is shown whatever its rank, and in percent
const ALWAYS_SHOWN = 3; // alternatives, however unlikely
const LIT = 0.35; // of the strongest link; weaker ones are not shown
const DEPTH = 46; // pixels between two levels of a tree
const UNKNOWN_TAG = "XX"; // stands for a part of speech that the parser does not tell
const SVG = "http://www.w3.org/2000/svg";
const THEMES = ["auto", "light", "dark"];

const byId = (id) => document.getElementById(id);
const percent = (probability) => `${Math.round(100 * probability)} %`;
const signed = (score) => score.toFixed(3).replace("-", "\u2212");
const grouped = (value) => value?.toLocaleString("en");
const characters = (text) => Array.from(text); // places in answers count characters, not UTF-16 units

// A line is {text, origin: {model, tag}, outputs: [{text, score}], shown: index, asked: number of requests for its
// words, explained: the answer to the last of them or null}.
const state = { models: [], lines: [], active: 0, work: null, timer: 0, tree: 1, file: null, loading: null, others: null };
const model = () => state.models.find((one) => one.name === byId("model").value) ?? state.models[0];
const shown = (line) => line.outputs[line.shown];

function element(name, attributes = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
}

function drawn(name, attributes = {}, ...children) {
  const node = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
}

/** Reads or writes a value that the browser keeps: until the tab is closed, or for good. */
function stored(name, value, where = "localStorage") {
  try {
    if (value === undefined) return window[where].getItem(`t2t.${name}`);
    window[where].setItem(`t2t.${name}`, value);
  } catch {} // the browser keeps nothing, and the page works without
  return null;
}

const apiKey = (value) => stored("key", value, "sessionStorage");

/** Sends a request; returns the response, or throws an Error with the server's message. */
async function send(path, body, signal) {
  const headers = { "Content-Type": "application/json" };
  const key = apiKey();
  if (key) headers.Authorization = `Bearer ${key}`;
  const method = body ? "POST" : "GET";
  const response = await fetch(path, { method, headers, signal, body: body && JSON.stringify(body) }).catch((error) => {
    throw error.name === "AbortError" ? error : new Error("The server does not answer: is it still running?");
  });
  if (response.status === 401) {
    await askForKey(Boolean(key) && key === apiKey());
    return send(path, body, signal);
  }
  if (response.ok) return response;
  const { error } = await response.json().catch(() => ({ error: `status ${response.status}` }));
  throw new Error(error);
}

const ask = async (...request) => (await send(...request)).json();

let keyAsked = null;

function askForKey(isWrong) {
  const dialog = byId("key-dialog");
  keyAsked ??= new Promise((done, fail) => {
    byId("key-error").textContent = isWrong ? "This key is not valid." : "";
    dialog.returnValue = "";
    dialog.showModal();
    dialog.onclose = () => {
      keyAsked = null;
      if (dialog.returnValue !== "given") return fail(new Error("The server needs an API key."));
      apiKey(byId("key").value);
      byId("key").value = "";
      done();
    };
  });
  return keyAsked;
}

function options() {
  const form = byId("options");
  const fields = [...form.querySelectorAll("input:enabled")];
  const tag = byId("tag").value;
  const sampling_method = byId("sampling_method").value;
  const changed = isSampling() || fields.some((field) => field.value !== field.defaultValue);
  if (!changed && !tag) return undefined;
  const wrong = fields.find((field) => !field.checkValidity());
  if (wrong) throw new Error(faultOf(wrong));
  const numbers = Object.fromEntries(fields.map((field) => [field.id, field.valueAsNumber]));
  return { ...numbers, ...(isSampling() && { sampling_method }), ...(tag && { tag }) };
}

/** Returns what is wrong with a field of the options, with its name and its bounds. */
function faultOf({ labels, min, max, step, value }) {
  const kind = step === "any" ? "a number" : "a whole number";
  const name = labels[0].firstChild.textContent;
  const bounds = max ? `between ${min} and ${grouped(Number(max))}` : `at least ${min}`;
  return `${name} must be ${kind} ${bounds}${value && `: ${value}`}.`;
}

const isSampling = () => byId("sampling_method").value === "random";

/** Shows the options that belong to the way of decoding. */
function setDecoding() {
  for (const label of byId("options").querySelectorAll(".sampling, .searching")) {
    label.hidden = label.className !== (isSampling() ? "sampling" : "searching");
    label.querySelector("input").disabled = label.hidden;
  }
}

function request(more) {
  const chosen = options();
  return { model: model().name, ...(chosen && { options: chosen }), ...more };
}

const aboutLine = ({ text, origin }, more) => ({ ...origin, text, ...more });

/** Shows an error, or none. */
function showError(error) {
  if (error?.name === "AbortError") return;
  byId("error").hidden = !error;
  byId("error").textContent = error ? error.message : "";
}

function stop() {
  clearTimeout(state.timer);
  state.work?.abort();
  byId("result").setAttribute("aria-busy", "false");
}

async function translate() {
  stop();
  showError(null);
  const text = byId("source").value.trimEnd();
  if (!text.trim()) return show([]);
  if (!state.models.length) return load();
  const work = (state.work = new AbortController());
  byId("result").setAttribute("aria-busy", "true");
  try {
    const lines = text.split("\n");
    const origin = { model: model().name, tag: byId("tag").value };
    const { translations } = await ask("translate", request({ text: lines }), work.signal);
    show(translations.map(({ text, score, nbest }, place) => {
      const outputs = nbest ?? [{ text, score }];
      return { text: lines[place], origin, outputs, shown: 0, asked: 0, explained: null };
    }));
    byId("status").textContent = "Translated.";
    const cut = translations.findIndex(({ truncated }) => truncated);
    if (cut >= 0) showError(new Error(`Line ${cut + 1} is longer than the model reads: its end is missing. Split it.`));
    remember(text);
    byId("result").setAttribute("aria-busy", "false");
    await explainLines(work.signal);
  } catch (error) {
    if (error.name !== "AbortError") show([]);
    showError(error);
  } finally {
    if (state.work === work) byId("result").setAttribute("aria-busy", "false");
  }
}

/** Asks for the words of each line; where the server has none for it, the text stays as it is. */
async function explainLines(signal) {
  if (!model().explains || !model().explains_unasked) return;
  for (const line of state.lines.slice(0, MAX_EXPLAINED)) await explain(line, signal);
}

async function explain(line, signal = state.work?.signal) {
  if (!line.text.trim() || !shown(line)?.text) return;
  try {
    await askForWords(line, { output: shown(line).text }, signal);
  } catch (error) {
    if (error.name === "AbortError") throw error;
  }
  drawLine(line);
}

/** Sets a line's words; returns false if others were asked for in the meantime. */
async function askForWords(line, more, signal) {
  const number = (line.asked += 1);
  const found = await ask("explain", aboutLine(line, more), signal);
  if (number !== line.asked || !state.lines.includes(line)) return false;
  line.explained = found;
  return true;
}

function show(lines) {
  Object.assign(state, { lines, active: Math.min(state.active, Math.max(lines.length - 1, 0)) });
  byId("output").replaceChildren(...lines.map(() => element("p", { dir: "auto" })));
  byId("copy").disabled = !lines.length;
  lines.forEach(drawLine);
  drawActive();
}

function word(text, place, isFirst) {
  return element("span", { class: "word", "data-place": place, role: "button", tabindex: isFirst ? 0 : -1 }, text);
}

/** Returns text with its words as elements; places count characters. */
function withWords(text, words) {
  const all = characters(text);
  const nodes = [];
  let end = 0;
  words.forEach((one, place) => {
    nodes.push(all.slice(end, one.start).join(""), word(all.slice(one.start, one.end).join(""), place, !place));
    end = one.end;
  });
  return [...nodes, all.slice(end).join("")];
}

function drawLine(line) {
  const place = state.lines.indexOf(line);
  const node = byId("output").children[place];
  if (!node) return;
  const { explained } = line;
  const output = shown(line)?.text ?? "";
  if (!explained || model().trees) {
    node.replaceChildren(output);
  } else {
    node.replaceChildren(...withWords(explained.output, explained.output_words));
    for (const one of node.querySelectorAll(".word")) {
      const { probability } = explained.output_words[one.dataset.place];
      one.style.setProperty("--unsure", `${Math.max(0, Math.round(90 * (1 - probability / SURE)))}%`);
      one.setAttribute("aria-label", `${one.textContent}, ${percent(probability)} likely`);
    }
  }
  if (place === state.active) drawActive();
}

/** Draws all that belongs to the active line. */
function drawActive() {
  const line = state.lines[state.active];
  [...byId("output").children].forEach((node, place) => node.classList.toggle("active", place === state.active));
  const explained = line?.explained;
  const canShade = Boolean(explained && !model().trees);
  byId("shading").hidden = !canShade;
  byId("open-attention").hidden = !(explained && model().explains);
  byId("source-words").hidden = !canShade;
  if (canShade) byId("source-words").replaceChildren(...withWords(explained.text, explained.words));
  byId("details").hidden = true;
  const score = line && shown(line)?.score;
  byId("score").textContent = score == null ? "" : `score ${signed(score)}`;
  byId("nbest-card").hidden = !line || line.outputs.length < 2;
  const focused = [...byId("nbest").children].findIndex((item) => item.contains(document.activeElement));
  byId("nbest").replaceChildren(...(line?.outputs ?? []).map((output, place) => {
    const number = output.score == null ? "yours" : signed(output.score);
    const parts = [element("span", { class: "number" }, number), element("bdi", { dir: "auto" }, output.text)];
    const button = element("button", { type: "button", "aria-pressed": place === line.shown }, ...parts);
    button.addEventListener("click", () => choose(line, place));
    return element("li", {}, button);
  }));
  byId("nbest").children[focused]?.firstElementChild.focus();
  drawTree(model()?.trees ? shown(line ?? { outputs: [] })?.text : "");
}

async function choose(line, place) {
  Object.assign(line, { shown: place, explained: null });
  drawLine(line);
  if (model().explains) await explain(line).catch(showError);
}

/** Lights a word and those of the other side that it is linked with. */
function light(node) {
  for (const lit of document.querySelectorAll(".lit")) lit.classList.remove("lit");
  if (!node) return;
  const isSource = byId("source-words").contains(node);
  const owner = isSource ? byId("output").children[state.active] : node.parentElement;
  const line = state.lines[[...byId("output").children].indexOf(owner)];
  const links = line?.explained?.output_words.map(({ attention }) => {
    const most = Math.max(...attention);
    return attention.map((weight) => weight / most);
  }) ?? [];
  const place = Number(node.dataset.place);
  const strengths = isSource ? links.map((ofWord) => ofWord[place]) : links[place];
  node.classList.add("lit");
  node.style.setProperty("--strength", "100%");
  if (!isSource && state.lines[state.active] !== line) return;
  const others = isSource ? owner : byId("source-words");
  for (const other of others?.querySelectorAll(".word") ?? []) {
    const strength = strengths?.[other.dataset.place] ?? 0;
    other.classList.toggle("lit", strength >= LIT);
    other.style.setProperty("--strength", percent(strength).replace(" ", ""));
  }
}

function openWord(node) {
  const place = [...byId("output").children].indexOf(node.parentElement);
  if (place !== state.active) activate(place);
  const line = state.lines[place];
  const own = byId("output").children[place].querySelectorAll(".word")[node.dataset.place];
  const one = line.explained.output_words[node.dataset.place];
  for (const chosen of document.querySelectorAll(".chosen")) chosen.classList.remove("chosen");
  own.classList.add("chosen");
  light(own);
  const title = element("b", { dir: "auto" }, own.textContent);
  byId("details").replaceChildren(title, percent(one.probability), element("span", { class: "number" }, "\u2026"));
  byId("details").hidden = false;
  offerOthers(line, Number(node.dataset.place), title).catch(showError);
}

/** Shows the words that could stand in the place of one, which is open as long as its title is there. */
async function offerOthers(line, place, title) {
  showError(null);
  state.others?.abort();
  state.others = new AbortController();
  const asked = aboutLine(line, { output: shown(line).text, word: place });
  const { output_words } = await ask("explain", asked, state.others.signal);
  if (!title.isConnected) return;
  const offered = output_words[place].alternatives.filter(({ probability }, rank) => rank < ALWAYS_SHOWN || probability >= MIN_SHOWN);
  const buttons = offered.map(({ text, prefix, probability }) => {
    const likely = probability < MIN_SHOWN ? "<\u00a01\u00a0%" : percent(probability);
    const label = [element("bdi", {}, text), element("span", { class: "number" }, `\u00a0${likely}`)];
    const button = element("button", { type: "button" }, ...label);
    button.addEventListener("click", () => continueWith(line, prefix, place).catch(showError));
    return button;
  });
  byId("details").lastElementChild.replaceWith(...buttons);
}

/** Decodes again from a beginning that ends with another choice of the word at a place. */
async function continueWith(line, prefix, place) {
  showError(null);
  if (!(await askForWords(line, { prefix }, state.work?.signal))) return;
  const own = { text: line.explained.output, score: null };
  line.outputs = [own, ...line.outputs.filter(({ score }) => score != null)];
  line.shown = 0;
  drawLine(line);
  byId("output").children[state.lines.indexOf(line)].querySelectorAll(".word")[place]?.focus();
}

function activate(place) {
  state.active = place;
  drawActive();
  const line = state.lines[place];
  if (model().explains && !line.explained) explain(line).catch(showError);
}

/** Reads brackets: a node is {label, children}, a leaf a text. */
function readTree(text) {
  const stack = [{ label: "", children: [] }];
  for (const token of text.match(/\(|\)|[^\s()]+/g) ?? []) {
    const top = stack.at(-1);
    if (token === "(") {
      const node = { label: "", children: [] };
      top.children.push(node);
      stack.push(node);
    } else if (token === ")") {
      if (stack.length > 1) stack.pop();
    } else if (!top.label && top !== stack[0]) {
      top.label = token;
    } else {
      top.children.push(token);
    }
  }
  return stack[0].children[0];
}

function drawTree(text) {
  byId("tree-card").hidden = !text;
  if (!text) return byId("tree").replaceChildren();
  const context = element("canvas").getContext("2d");
  context.font = `15px ${getComputedStyle(document.body).fontFamily}`;
  const lines = [];
  const texts = [];
  let width = 0;
  let depth = 0;
  const write = (label, x, level, isLeaf) => {
    depth = Math.max(depth, level);
    texts.push(drawn("text", { x, y: level * DEPTH + 18, ...(isLeaf && { class: "leaf" }) }, label));
    return x;
  };
  const place = (node, level) => {
    if (node.label === UNKNOWN_TAG && node.children.length === 1) return place(node.children[0], level);
    if (typeof node === "string" || !node.children.length) {
      const label = typeof node === "string" ? node : node.label;
      const half = context.measureText(label).width / 2 + 9;
      width += 2 * half;
      return write(label, width - half, level, true);
    }
    const from = width;
    const places = node.children.map((child) => place(child, level + 1));
    width = Math.max(width, from + context.measureText(node.label).width + 18);
    const x = (places[0] + places.at(-1)) / 2;
    const [top, bottom] = [level * DEPTH + 25, (level + 1) * DEPTH + 2];
    for (const child of places) lines.push(drawn("path", { d: `M${x} ${top}L${child} ${bottom}` }));
    return write(node.label, x, level, false);
  };
  place(readTree(text), 0);
  const height = depth * DEPTH + 30;
  const attributes = { viewBox: `0 0 ${width} ${height}`, width: width * state.tree, role: "img", "aria-label": text };
  byId("tree").replaceChildren(drawn("svg", attributes, ...lines, ...texts));
}

function zoom(factor) {
  state.tree = Math.min(4, Math.max(0.25, state.tree * factor));
  drawTree(shown(state.lines[state.active])?.text);
}

async function copy(text, button) {
  if (!navigator.clipboard) throw new Error("The browser lets pages copy only over HTTPS, or from this machine.");
  await navigator.clipboard.writeText(text);
  button.dataset.label ??= button.textContent;
  button.textContent = "Copied";
  setTimeout(() => (button.textContent = button.dataset.label), 1200);
}

/** Adds a text to the recent ones, in place of the last if that is its beginning. */
function remember(text) {
  const [last, ...before] = recent();
  const others = last !== undefined && !text.startsWith(last) ? [last, ...before] : before;
  const texts = [text, ...others.filter((one) => one !== text)].slice(0, RECENT);
  stored("recent", JSON.stringify(texts));
  drawRecent();
}

const recent = () => JSON.parse(stored("recent") ?? "[]");

function drawRecent() {
  const texts = recent();
  byId("recent-card").hidden = !texts.length;
  byId("recent").replaceChildren(...texts.map((text) => {
    const button = element("button", { type: "button" }, element("bdi", { dir: "auto" }, text));
    button.addEventListener("click", () => setSource(text));
    return element("li", {}, button);
  }));
}

function setSource(text) {
  byId("source").value = text;
  byId("source").focus();
  translate();
}

function* chunks(lines) {
  let chunk = [];
  let size = 0;
  for (const line of lines) {
    if (chunk.length === FILE_LINES || (chunk.length && size + line.length > FILE_CHARACTERS)) {
      yield chunk;
      [chunk, size] = [[], 0];
    }
    chunk.push(line);
    size += line.length;
  }
  if (chunk.length) yield chunk;
}

/** Yields the objects of an answer that comes line by line. */
async function* objects(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const lines = (rest + value).split("\n");
    rest = lines.pop();
    for (const line of lines) yield JSON.parse(line);
  }
}

/** Returns the lines of a text file; throws an Error if they cannot be translated. */
async function linesOf(file) {
  const text = await file.text();
  if (!text || /[\0\ufffd]/.test(text)) throw new Error(`${file.name} is ${text ? "not a text file in UTF-8" : "empty"}.`);
  const lines = text.replace(/\r?\n$/, "").split(/\r?\n/);
  const { max_characters } = model();
  const long = lines.findIndex((line) => characters(line).length > max_characters);
  if (long < 0) return lines;
  throw new Error(`${file.name}, line ${long + 1} has more than ${grouped(max_characters)} characters: split it.`);
}

async function translateFile(file) {
  showError(null);
  if (!state.models.length) await load();
  if (!state.models.length) return;
  const asked = request({ stream: true });
  const lines = await linesOf(file);
  state.file?.abort();
  const work = (state.file = new AbortController());
  const outputs = [];
  const started = performance.now();
  byId("file-card").hidden = byId("cancel").hidden = false;
  byId("file-title").textContent = file.name;
  byId("save").hidden = true;
  byId("progress").value = 0;
  const say = (more) => {
    byId("progress").value = outputs.length / lines.length;
    byId("file-state").textContent = `${grouped(outputs.length)} of ${grouped(lines.length)} lines${more}`;
  };
  say("");
  let end = ", done";
  let cut = 0;
  try {
    for (const chunk of chunks(lines)) {
      const expected = outputs.length + chunk.length;
      const response = await send("translate", { ...asked, text: chunk }, work.signal);
      for await (const { text, truncated, error } of objects(response)) {
        if (error) throw new Error(error);
        outputs.push(text);
        if (truncated) cut += 1;
        const left = ((performance.now() - started) / 1000 / outputs.length) * (lines.length - outputs.length);
        say(`, ${Math.floor(left / 60)}:${String(Math.floor(left % 60)).padStart(2, "0")} left`);
      }
      if (outputs.length < expected) throw new Error("the server ended its answer early");
    }
  } catch (error) {
    end = error.name === "AbortError" ? ", cancelled" : `, stopped: ${error.message}`;
  }
  if (state.file !== work) return;
  say(cut ? `${end}; ${grouped(cut)} too long, their ends are missing` : end);
  byId("status").textContent = `${file.name}: ${byId("file-state").textContent}`;
  byId("cancel").hidden = true;
  if (!outputs.length) return;
  URL.revokeObjectURL(byId("save").href);
  byId("save").href = URL.createObjectURL(new Blob([`${outputs.join("\n")}\n`], { type: "text/plain" }));
  byId("save").download = file.name.replace(/(\.[^.]*)?$/, ".output$1");
  byId("save").hidden = false;
}

function fact(name, value) {
  return value == null || value === "" ? [] : [element("dt", {}, name), element("dd", {}, String(value))];
}

function drawAbout() {
  const { name, version, training } = model();
  const score = training?.score;
  byId("facts").replaceChildren(
    ...fact("Name", name),
    ...fact("Version", version),
    ...fact("Problem", training?.problem),
    ...fact("Hparams set", training?.hparams_set),
    ...fact("Weights", grouped(training?.parameters)),
    ...fact("Step", grouped(training?.step)),
    ...fact(`Dev ${score?.name}`, score?.value.toFixed(2)),
  );
  drawCurve(training?.curves);
}

function drawCurve(curves) {
  const kinds = [["loss", "dev loss"], ["score", `dev ${model().training?.metric}`]].filter(([kind]) => curves?.[kind]?.length > 1);
  byId("curve").hidden = !kinds.length;
  if (!kinds.length) return;
  const [width, height, edge] = [600, 220, 34];
  const most = Math.max(...kinds.flatMap(([kind]) => curves[kind].map(([tokens]) => tokens)));
  const svg = drawn("svg", { viewBox: `0 0 ${width} ${height}`, role: "img" });
  svg.append(drawn("path", { class: "axis", fill: "none", d: `M${edge} 8V${height - 26}H${width - edge}` }));
  const descriptions = kinds.map(([kind, name], place) => {
    const values = curves[kind].map(([, value]) => value);
    const [low, high] = [Math.min(...values), Math.max(...values)];
    const x = (tokens) => edge + (tokens / most) * (width - 2 * edge);
    const y = (value) => height - 26 - ((value - low) / (high - low || 1)) * (height - 44);
    const points = curves[kind].map(([tokens, value]) => `${x(tokens).toFixed(1)},${y(value).toFixed(1)}`).join(" ");
    svg.append(drawn("polyline", { class: kind, points }));
    const at = place ? { x: width - edge + 4, "text-anchor": "start" } : { x: edge - 4, "text-anchor": "end" };
    for (const value of [low, high]) {
      svg.append(drawn("text", { ...at, y: y(value) + 4, class: `of-${kind}` }, value.toFixed(value < 10 ? 2 : 1)));
    }
    return `${name} from ${values[0].toFixed(2)} to ${values.at(-1).toFixed(2)}`;
  });
  svg.append(drawn("text", { x: width - edge, y: height - 8, "text-anchor": "end" }, `${(most / 1e6).toFixed(1)} million target tokens`));
  const caption = descriptions.join(kinds.length > 1 ? " (grey), " : "") + (kinds.length > 1 ? " (colour)." : ".");
  svg.setAttribute("aria-label", caption);
  byId("curve").firstElementChild.replaceChildren(svg);
  byId("curve").lastElementChild.textContent = caption;
}

async function openAttention() {
  showError(null);
  const line = state.lines[state.active];
  const { page } = await ask("attention", aboutLine(line, { output: shown(line).text }));
  byId("attention-frame").srcdoc = page;
  byId("attention").showModal();
}

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  byId("theme").textContent = `◐ ${theme}`;
  byId("theme").setAttribute("aria-label", `Theme: ${theme}`);
  stored("theme", theme);
}

/** Adapts the page to the chosen model. */
function setModel() {
  const { name, samples, has_tags, tags, trees, options, max_beam_size, training } = model();
  byId("title").textContent = trees ? "Parse" : "Translate";
  document.title = `${byId("title").textContent}: ${name}`;
  const score = training?.score;
  const described = [name, training && `step ${grouped(training.step)}`, score && `dev ${score.name} ${score.value.toFixed(1)}`];
  byId("subtitle").textContent = described.filter(Boolean).join(" · ");
  byId("tags").hidden = !has_tags;
  byId("tag").replaceChildren(element("option", { value: "" }, "in the text"), ...tags.map((tag) => element("option", {}, tag)));
  if (tags.length) byId("tag").value = options.tag || tags[0];
  byId("decoding").hidden = !samples;
  byId("beam_size").max = byId("n").max = max_beam_size;
  for (const field of byId("options").querySelectorAll("input")) field.defaultValue = options[field.id];
  byId("options").reset();
}

async function start() {
  setTheme(THEMES.includes(stored("theme")) ? stored("theme") : "auto");
  byId("shade").checked = stored("shade") !== "false";
  byId("output").classList.toggle("shaded", byId("shade").checked);
  drawRecent();
  await load();
}

/** Asks for the models until all are loaded; the first one that answers translates the text that is there. */
function load() {
  state.loading ??= askForModels().catch((error) => {
    showLoading([], []);
    showError(error);
  }).finally(() => (state.loading = null));
  return state.loading;
}

async function askForModels() {
  for (;;) {
    const { models, loading } = await ask("models");
    showLoading(models, loading);
    setModels(models);
    if (!loading.length) return;
    await new Promise((done) => setTimeout(done, LOADING_MS));
  }
}

function showLoading(models, loading) {
  const text = loading.length ? `loading ${models.length + 1} of ${models.length + loading.length}` : "";
  if (byId("loading").textContent !== text) byId("loading").textContent = text; // readers say what changes
}

/** Offers the models that answer; the chosen one and its options stay as they are. */
function setModels(models) {
  if (models.length === state.models.length) return;
  const chosen = byId("model").value;
  state.models = models;
  byId("model").replaceChildren(...models.map(({ name }) => element("option", {}, name)));
  byId("models").hidden = models.length < 2;
  if (chosen) byId("model").value = chosen;
  else setModel();
}

/** Moves from word to word with arrow keys. */
function step(event) {
  const node = event.target.closest(".word");
  if (!node) return;
  if (event.key === "Enter" || event.key === " ") {
    event.preventDefault();
    if (byId("output").contains(node)) openWord(node);
    else light(node);
    return;
  }
  const by = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
  if (!by) return;
  event.preventDefault();
  const rightToLeft = getComputedStyle(node.parentElement).direction === "rtl" && event.key.match(/Left|Right/);
  const words = [...node.closest("#output, #source-words").querySelectorAll(".word")];
  const next = words[words.indexOf(node) + (rightToLeft ? -by : by)];
  if (!next) return;
  node.tabIndex = -1;
  next.tabIndex = 0;
  next.focus();
}

for (const id of ["output", "source-words"]) {
  const panel = byId(id);
  panel.addEventListener("pointerover", (event) => light(event.target.closest(".word")));
  panel.addEventListener("pointerleave", () => light(null));
  panel.addEventListener("focusin", (event) => light(event.target.closest(".word")));
  panel.addEventListener("focusout", () => light(null));
  panel.addEventListener("keydown", step);
}
byId("output").addEventListener("click", (event) => {
  const node = event.target.closest(".word");
  if (node) return openWord(node);
  const place = [...byId("output").children].indexOf(event.target.closest("p"));
  if (place >= 0 && !(place === state.active && state.lines[place].explained)) activate(place);
});
byId("source").addEventListener("input", () => {
  stop();
  state.timer = setTimeout(translate, TYPING_MS);
});
byId("options").addEventListener("input", () => {
  setDecoding();
  stop();
  state.timer = setTimeout(translate, TYPING_MS);
});
byId("options").addEventListener("submit", (event) => event.preventDefault());
byId("options").addEventListener("reset", () => setTimeout(() => { // once the fields have their defaults
  setDecoding();
  translate();
}));
byId("model").addEventListener("change", () => {
  show([]);
  setModel();
});
byId("tag").addEventListener("change", translate);
byId("clear").addEventListener("click", () => setSource(""));
byId("copy").addEventListener("click", (event) => copy(state.lines.map((line) => shown(line).text).join("\n"), event.target).catch(showError));
byId("copy-tree").addEventListener("click", (event) => copy(shown(state.lines[state.active]).text, event.target).catch(showError));
byId("larger").addEventListener("click", () => zoom(1.25));
byId("smaller").addEventListener("click", () => zoom(0.8));
byId("shade").addEventListener("change", ({ target }) => {
  byId("output").classList.toggle("shaded", target.checked);
  stored("shade", target.checked);
});
byId("theme").addEventListener("click", () => {
  setTheme(THEMES[(THEMES.indexOf(document.documentElement.dataset.theme) + 1) % THEMES.length]);
});
byId("forget").addEventListener("click", () => {
  stored("recent", "[]");
  drawRecent();
});
byId("open-about").addEventListener("click", () => {
  drawAbout();
  byId("about").showModal();
});
byId("open-attention").addEventListener("click", () => openAttention().catch(showError));
window.addEventListener("message", ({ source, data: height }) => {
  const frame = byId("attention-frame");
  if (source === frame.contentWindow) frame.style.height = `${Number(height)}px`;
});
byId("file").addEventListener("change", ({ target }) => {
  if (target.files[0]) translateFile(target.files[0]).catch(showError);
  target.value = "";
});
byId("cancel").addEventListener("click", () => state.file?.abort());
document.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) translate();
  if (event.key === "Escape" && !document.querySelector("dialog[open]")) stop();
});
document.addEventListener("dragover", (event) => {
  event.preventDefault();
  byId("drop").hidden = !event.dataTransfer.types.includes("Files");
});
document.addEventListener("dragleave", (event) => {
  if (!event.relatedTarget) byId("drop").hidden = true;
});
document.addEventListener("drop", (event) => {
  byId("drop").hidden = true;
  if (!event.dataTransfer.files.length) return;
  event.preventDefault();
  translateFile(event.dataTransfer.files[0]).catch(showError);
});
start();
