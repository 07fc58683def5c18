// Calls of the SDK: each line of standard input is a case, answered by a line: {client, steps, hurried, bytewise, refused}.
// The cases of all tests run in one process, one after the other.
// `refused` is where nobody listens: there goes each step's first attempt. `growing` is a file that grows before each request.
// A step is {call: "documents.get", args: [...]}, with what is to happen to a stream or a list beside it.

import fs from "node:fs";
import readline from "node:readline";
import { inspect } from "node:util";

import { APIError, Mnemosyne, MnemosyneError } from "@mnemosyne-ai/sdk";

const set = globalThis.setTimeout;

for await (const line of readline.createInterface({ input: process.stdin })) {
  process.stdout.write(JSON.stringify(await results(JSON.parse(line))) + "\n");
}

async function results(given) {
  const waits = [];
  if (given.hurried) hurry(waits);
  const tokens = given.client.tokens;
  const asked = [];
  const client = new Mnemosyne({
    ...given.client,
    // One after the other, as of a browser that renews what expires.
    ...(tokens && { apiKey: async () => tokens.shift() }),
    ...(given.client.hangs && { apiKey: () => new Promise(() => undefined) }),
    fetch: async (input, init) => {
      asked.push(init.method);
      if (given.growing) fs.appendFileSync(given.growing, "x");
      const response = await fetch(given.refused && asked.length === 1 ? given.refused : input, init);
      return given.bytewise ? bytewise(response) : response;
    },
  });

  const results = [];
  for (const step of given.steps) {
    asked.length = 0;
    const result = await tried(client, step);
    results.push({ ...result, asked: asked.length });
  }
  globalThis.setTimeout = set;
  const shown = inspect(client, { depth: 9, showHidden: true }) + JSON.stringify(client);
  return { results, waits, shown };
}

/** The SDK's waits between attempts are fifty times as fast, its time-outs of ten seconds and more are not: on a busy
 * machine a request would exceed them. Adds the milliseconds of each timer to `seen`. */
function hurry(seen) {
  globalThis.setTimeout = (run, milliseconds, ...more) => {
    if (!new Error().stack.includes("@mnemosyne-ai")) return set(run, milliseconds, ...more);
    seen.push(milliseconds);
    return set(run, milliseconds < 10_000 ? milliseconds / 50 : milliseconds);
  };
}

/** The same answer in packets of a byte. */
function bytewise(response) {
  const transform = (packet, to) => packet.forEach((byte) => to.enqueue(Uint8Array.of(byte)));
  return new Response(response.body.pipeThrough(new TransformStream({ transform })), response);
}

async function tried(client, step) {
  try {
    return { value: await happened(client, step) };
  } catch (raised) {
    return { error: told(raised) };
  }
}

async function happened(client, step) {
  const { signal, made, progress } = prepared(step);
  if (step.client) return new Mnemosyne(step.client) && "made";
  const names = step.call.split(".");
  const method = names.pop();
  const resource = names.reduce((inner, name) => inner[name], client);
  const value = await resource[method](...made);
  if (step.read) return read(value, step, signal);
  if (step.all) return all(value, step.all);
  if (step.progress) return { ...value, progress };
  return Array.isArray(value) ? { items: [...value], ...named(value) } : value;
}

/** Arguments, with files and signals where they are asked for. */
function prepared(step) {
  const signal = new AbortController();
  const made = (step.args ?? []).map((argument) => structuredClone(argument));
  if (step.file) made[0].file = fileOf(step.file);
  if (step.aborted || step.abortAt) made[1] = { ...made[1], signal: signal.signal };
  if (step.aborted) signal.abort(new Error("enough"));
  const progress = [];
  if (step.progress) made[1] = { ...made[1], onProgress: (...numbers) => progress.push(numbers) };
  return { signal, made, progress };
}

function fileOf({ kind, name, text, path }) {
  const bytes = new TextEncoder().encode(text);
  switch (kind) {
    case "path":
      return path;
    case "large":
      return { name, content: text + "x".repeat(7_000_000) };
    case "stream":
      return fs.createReadStream(path);
    case "web":
      return new Blob([bytes]).stream();
    case "blob":
      return new Blob([bytes], { type: "text/plain" });
    case "file":
      return new File([bytes], name);
    case "bytes":
      return bytes;
    case "named":
      return { name, content: text };
    case "none":
      return 17;
  }
}

/** A stream, to its end or as far as the step says. */
async function read(stream, step, signal) {
  const chunks = [];
  try {
    for await (const chunk of stream) {
      chunks.push(chunk);
      if (chunks.length === step.breakAt) break;
      if (chunks.length === step.closeAt) stream.controller.abort();
      if (chunks.length === step.abortAt) signal.abort(new Error("enough"));
    }
    return { chunks };
  } catch (raised) {
    return { chunks, error: told(raised) };
  }
}

/** Every item of every page, or so many. */
async function all(page, most) {
  const items = [];
  for await (const item of page) {
    items.push(item.name ?? item.title ?? item.id);
    if (items.length === most) break;
  }
  return { items, plain: page.map(() => 1).constructor === Array };
}

function named(array) {
  return Object.fromEntries(Object.entries(array).filter(([name]) => !/^\d+$/.test(name)));
}

function told(raised) {
  const { name, message, status, code, requestId, details, retryAfter, lastStatus } = raised;
  return {
    name, message, status, code, requestId, details, retryAfter, lastStatus,
    ours: raised instanceof MnemosyneError,
    api: raised instanceof APIError,
    shown: inspect(raised, { depth: 9, showHidden: true }) + raised.stack + JSON.stringify(raised),
  };
}
