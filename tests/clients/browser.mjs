// A page of another origin in real Chromium calls the stack with fetch (so with a preflight) and with
// supabase-js. Reads {chromium, page, url, anonKey, token} as JSON from standard input.

import { json } from "node:stream/consumers";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium } from "playwright-core";

const given = await json(process.stdin);
const profile = await mkdtemp(join(tmpdir(), "rag-browser-"));
const browser = await chromium.launchPersistentContext(profile, {
  executablePath: given.chromium,
  headless: true,
  args: [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
  ],
});
try {
  const page = await browser.newPage();
  await page.goto(given.page);
  const result = await page.evaluate(async ({ url, anonKey, token }) => {
    const answer = await fetch(`${url}/functions/v1/rag-search`, {
      method: "POST",
      headers: {
        Authorization: `Bearer ${token}`,
        apikey: anonKey,
        "Content-Type": "application/json",
        "X-Client-Info": "a-browser",
      },
      body: JSON.stringify({ query_text: "kettle" }),
    });
    const client = window.supabase.createClient(url, anonKey, { accessToken: async () => token });
    const invoked = await client.functions.invoke("rag-answer", { body: { query_text: "How hot is the kettle?" } });
    const member = await client.rpc("is_org_member", { org_id: "00000000-0000-4000-8000-00000000dead" });
    return {
      origin: location.origin,
      status: answer.status,
      body: await answer.json(),
      remaining: answer.headers.get("x-ratelimit-remaining"),
      requestId: answer.headers.get("x-request-id"),
      invoked: invoked.data,
      invokedError: invoked.error && String(invoked.error),
      member: member.data,
      memberError: member.error,
    };
  }, given);
  console.log(JSON.stringify(result));
} finally {
  await browser.close();
  await rm(profile, { recursive: true, force: true });
}
