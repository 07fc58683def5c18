// The playground in Chromium: first visits, and questions asked by it and by plain fetch in turns; milliseconds.

import { json } from "node:stream/consumers";
import { chromium } from "playwright-core";

const { url, token, question, rounds, browser: executablePath } = await json(process.stdin);
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu"] });
const taken = { paint: [], text: [], page: [], fetch: [], bytes: 0 };

/** Of a first visit: nothing is cached in a context that is new. */
async function painted(path) {
  const context = await browser.newContext();
  const page = await context.newPage();
  await page.goto(url + path, { waitUntil: "networkidle" });
  const seen = await page.evaluate(() => ({
    paint: performance.getEntriesByName("first-contentful-paint")[0].startTime,
    bytes: [...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")].reduce((sum, entry) => sum + entry.transferSize, 0),
  }));
  await context.close();
  return seen;
}

for (let round = -2; round < rounds; round++) {
  const page = await painted("/");
  const text = await painted("/style.css");
  if (round < 0) continue;
  taken.paint.push(page.paint);
  taken.text.push(text.paint);
  taken.bytes = page.bytes;
}

const page = await browser.newPage();
await page.goto(url);
await page.getByLabel("Access token").fill(token);
await page.getByRole("button", { name: "Sign in" }).click();
await page.locator("#desk").waitFor();

async function asked() {
  await page.getByRole("button", { name: "New session" }).click();
  await page.getByLabel("Your question").fill(question);
  await page.evaluate(() => performance.clearMeasures());
  await page.locator("#send").click();
  await page.locator(".confidence").waitFor();
  return page.evaluate(() => performance.getEntriesByName("first-token")[0].duration);
}

/** The same request, in the same page, read no further than to its first word. */
function fetched() {
  return page.evaluate(
    async ({ token, question }) => {
      const body = JSON.stringify({ message: question, retrieval: { mode: "hybrid", top_k: 8, hierarchical: false } });
      const headers = { Authorization: `Bearer ${token}`, "Content-Type": "application/json" };
      const began = performance.now();
      const answer = await fetch("/api/v1/chat", { method: "POST", headers, body, cache: "no-store" });
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      for (let text = ""; !text.includes('"type":"delta"'); ) {
        const { done, value } = await reader.read();
        if (done) throw new Error(text);
        text += value;
      }
      const waited = performance.now() - began;
      while (!(await reader.read()).done);
      return waited;
    },
    { token, question },
  );
}

for (let round = -2; round < rounds; round++) {
  const [ours, plain] = [await asked(), await fetched()];
  if (round < 0) continue;
  taken.page.push(ours);
  taken.fetch.push(plain);
}
await browser.close();
console.log(JSON.stringify(taken));
