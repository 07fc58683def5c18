// The same calls by plain fetch and by the SDK, in turns, over kept connections; milliseconds of each.

import fs from "node:fs";

import { Mnemosyne } from "@mnemosyne-ai/sdk";

const { url, token, query, rounds } = JSON.parse(fs.readFileSync(0, "utf8"));
const client = new Mnemosyne({ apiKey: token, baseUrl: url, maxRetries: 0 });
const [{ id: collection }] = await client.collections.list({ limit: 1 });
const Authorization = `Bearer ${token}`;

async function plain(path, init = {}) {
  const response = await fetch(url + path, { ...init, headers: { ...init.headers, Authorization } });
  if (!response.ok) throw new Error(`${path}: ${response.status}`);
  return response.json();
}

const retrieval = {
  method: "POST",
  headers: { "Content-Type": "application/json" },
  body: JSON.stringify({ collection_id: collection, query, top_k: 10 }),
};
const calls = {
  "collections.get": {
    sdk: () => client.collections.get(collection),
    plain: () => plain(`/collections/${collection}`),
  },
  "retrievals.retrieve": {
    sdk: () => client.retrievals.retrieve({ collectionId: collection, query, topK: 10 }),
    plain: () => plain("/retrievals", retrieval),
  },
};

const taken = {};
for (const [name, ways] of Object.entries(calls)) {
  taken[name] = { sdk: [], plain: [] };
  for (let round = -20; round < rounds; round++) {
    // Who goes first changes, so that what a turn leaves behind meets both.
    for (const way of round % 2 ? ["sdk", "plain"] : ["plain", "sdk"]) {
      const began = performance.now();
      await ways[way]();
      if (round >= 0) taken[name][way].push(performance.now() - began);
    }
  }
}
process.stdout.write(JSON.stringify(taken));
