// What only a server in the same process can show: that a connection is closed while its client lives on, and
// that a client goes on with a server that was gone.

import { getEventListeners, once } from "node:events";
import fs from "node:fs";
import http from "node:http";

import { Mnemosyne } from "@mnemosyne-ai/sdk";

const delta = 'data: {"type":"delta","content":"x"}\n\n';
const { apiKey } = JSON.parse(fs.readFileSync(0, "utf8"));
const closed = [];
let reads = 0;

const server = http.createServer((request, response) => {
  if (request.method === "GET") {
    reads += 1;
    response.end(JSON.stringify({ id: "d", status: reads < 3 ? "processing" : "completed" }));
    return;
  }
  response.on("close", () => closed.push(response.writableFinished));
  response.writeHead(200, { "Content-Type": "text/event-stream" });
  response.write(delta + delta);
});
server.listen(0, "127.0.0.1");
await once(server, "listening");
const { port } = server.address();

/** The same port again, as a deployment that is started anew. */
async function back() {
  server.listen(port, "127.0.0.1");
  await once(server, "listening");
}

async function gone() {
  server.closeAllConnections();
  server.close();
  await once(server, "close");
}

let asked = 0;
const client = new Mnemosyne({
  apiKey,
  baseUrl: `http://127.0.0.1:${port}`,
  // It is back when it was missed twice.
  fetch: async (...request) => {
    asked += 1;
    if (asked === missed + 3) await back();
    return fetch(...request);
  },
});
let missed = Infinity;

const ways = {
  break: async (stream) => {
    for await (const _ of stream) break;
  },
  close: async (stream) => {
    for await (const _ of stream) stream.close();
  },
  unread: (stream) => stream.close(),
  returned: (stream) => stream[Symbol.asyncIterator]().return(),
};
const left = [];
const { signal } = new AbortController();
const messages = [{ role: "user", content: "q" }];
for (const [name, leave] of Object.entries(ways)) {
  const stream = await client.chat.completions.create({ messages, stream: true }, { signal });
  await leave(stream);
  // (Where nobody closes it, this never ends.)
  while (closed.length <= left.length) await new Promise((resolve) => setTimeout(resolve, 10));
  left.push(name);
}

const before = (await client.documents.get("d")).status;
await gone();
missed = asked;
const after = (await client.documents.waitUntilReady("d", { timeout: 60_000 })).status;
await gone();
const listeners = getEventListeners(signal, "abort").length;
process.stdout.write(JSON.stringify({ left, closed, listeners, before, after, reads, asked: asked - missed }));
