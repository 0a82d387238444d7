// Translates the lines of standard input: node bergamot.mjs PACKAGE FOLDER
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [library, folder] = process.argv.slice(2);
const registry = JSON.parse(readFileSync(`${folder}/registry.json`));
const [from, to] = Object.keys(registry)[0].match(/../g);
const { BatchTranslator, TranslatorBacking } = await import(pathToFileURL(`${library}/translator.js`));

class Backing extends TranslatorBacking {
  async loadModelRegistery() {
    return Object.entries(registry).map(([, files]) => ({ from, to, files }));
  }

  async fetch(name) {
    return new Uint8Array(readFileSync(`${folder}/${name}`)).buffer;
  }
}

const options = { batchSize: 32, downloadTimeout: 0 };
const translator = new BatchTranslator(options, new Backing({ ...options, pivotLanguage: null }));
const lines = readFileSync(0, "utf-8").split("\n").slice(0, -1);
const start = performance.now();
const translated = await Promise.all(lines.map((text) => translator.translate({ from, to, text })));
console.error(`${((performance.now() - start) / 1000).toFixed(2)} s`);
console.log(translated.map(({ target }) => target.text).join("\n"));
translator.delete();
