// supabase-js calls the edge function `rag`. Reads {url, key, token} as JSON from standard input and prints what each
// call returned.

import { createClient } from "@supabase/supabase-js";
import { json } from "node:stream/consumers";

const { url, key, token } = await json(process.stdin);
const supabase = createClient(url, key, { accessToken: async () => token });
const body = { query_text: "How hot is the kettle?" };

const answer = await supabase.functions.invoke("rag/answer", { body });
const search = await supabase.functions.invoke("rag/search", { body });
const invalid = await supabase.functions.invoke("rag/search", { body: { query_text: "" } });
const collections = await supabase.functions.invoke("rag/api/v1/collections", { method: "GET" });
// The path of the edge runtime, whose gateway removes /functions/v1.
const anonymous = await fetch(`${url}/rag/answer`, { method: "POST", body: "{}" });
const preflight = await fetch(`${url}/rag/answer`, {
  method: "OPTIONS",
  headers: {
    Origin: "https://app.example", "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization",
  },
});
const chat = await supabase.functions.invoke("rag/api/v1/chat", { body: { message: body.query_text, stream: true } });

console.log(
  JSON.stringify({
    answer: answer.data,
    search: search.data,
    invalid: { status: invalid.error.context.status, body: await invalid.error.context.json() },
    collections: collections.data,
    anonymous: anonymous.status,
    preflight: [preflight.status, preflight.headers.get("access-control-allow-origin")],
    events: await (chat.data ?? chat.error.context).text(),
  }),
);
