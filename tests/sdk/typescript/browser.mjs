// The SDK in a page of another origin, in real Chromium. Reads {browser, dist, client} as JSON, and to upload a large
// file the {collectionId}.

import { readFile } from "node:fs/promises";
import http from "node:http";
import { join } from "node:path";
import { json } from "node:stream/consumers";

import { chromium } from "playwright-core";

const given = await json(process.stdin);
const server = http.createServer(async (request, response) => {
  const isScript = /^(\/[a-z]+)+\.js$/.test(request.url);
  response.setHeader("Content-Type", isScript ? "text/javascript" : "text/html");
  response.end(isScript ? await readFile(join(given.dist, request.url)) : "<p>a page</p>");
});
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
const browser = await chromium.connect(given.browser);
try {
  const page = await browser.newPage();
  await page.goto(`http://127.0.0.1:${server.address().port}/`);
  const upload = async ({ client: options, collectionId }) => {
    const { Mnemosyne } = await import("/index.js");
    const client = new Mnemosyne(options);
    const file = new File(["hot", "x".repeat(7_000_000)], "kiln.txt", { type: "text/plain" });
    const progress = [];
    const onProgress = (sent, size) => progress.push([sent, size]);
    const { filename } = await client.documents.create({ collectionId, file }, { onProgress });
    const path = await client.documents.create({ collectionId, file: "kiln.txt" }).catch(({ message }) => message);
    // A service worker has none.
    delete globalThis.XMLHttpRequest;
    const other = new File(["warm", "x".repeat(7_000_000)], "kiln");
    const atOnce = [];
    await client.documents.create({ collectionId, file: other }, { onProgress: (sent) => atOnce.push(sent) });
    return { filename, progress, path, atOnce };
  };
  const everything = async ({ client: options }) => {
    const { Mnemosyne } = await import("/index.js");
    const client = new Mnemosyne({ ...options, apiKey: async () => options.apiKey });
    const stranger = new Mnemosyne({ ...options, apiKey: "mn_live_nobody" });
    const { id } = await client.collections.create({ name: "of a page" });
    const file = new File(["hot"], "kiln.txt", { type: "text/plain" });
    const document = await client.documents.create({ collectionId: id, file });
    const chunks = [];
    const messages = [{ role: "user", content: "How hot is it?" }];
    const stream = await client.chat.completions.create({ messages, stream: true });
    for await (const chunk of stream) chunks.push(chunk.type);
    const error = await stranger.collections.list().catch((raised) => raised);
    const changed = await client.documents.update(document.id, { title: "Kiln" });
    await client.collections.delete(id, { cascade: true });
    return {
      filename: document.filename,
      title: changed.title,
      chunks,
      error: { name: error.name, code: error.code, hasRequestId: error.requestId !== undefined },
      left: (await client.collections.list()).length,
    };
  };
  const result = await page.evaluate(given.collectionId ? upload : everything, given);
  process.stdout.write(JSON.stringify(result));
} finally {
  await browser.close();
  server.close();
}
