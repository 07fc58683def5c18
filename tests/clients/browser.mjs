// A page of another origin in real Chromium calls the stack with fetch (so with a preflight) and with
// supabase-js. Reads {browser, page, url, key, token} as JSON from standard input.

import { json } from "node:stream/consumers";
import { chromium } from "playwright-core";

const given = await json(process.stdin);
const browser = await chromium.connect(given.browser);
try {
  const page = await browser.newPage();
  await page.goto(given.page);
  const result = await page.evaluate(async ({ url, key, token }) => {
    const answer = await fetch(`${url}/functions/v1/rag-search`, {
      method: "POST",
      headers: {
        Authorization: `Bearer ${token}`,
        apikey: key,
        "Content-Type": "application/json",
        "X-Client-Info": "a-browser",
      },
      body: JSON.stringify({ query_text: "kettle" }),
    });
    const client = window.supabase.createClient(url, key, { accessToken: async () => token });
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
}
