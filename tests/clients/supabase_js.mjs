// The unmodified @supabase/supabase-js against the stack. Reads {url, key, token, vector} as JSON from
// standard input and prints what each call returned.

import { createClient } from "@supabase/supabase-js";
import { json } from "node:stream/consumers";

const { url, key, token, vector } = await json(process.stdin);
const supabase = createClient(url, key, { accessToken: async () => token });

const search = await supabase.functions.invoke("rag-search", { body: { query_text: "kettle", top_k: 3 } });
const answer = await supabase.functions.invoke("rag-answer", { body: { query_text: "How hot is the kettle?" } });
const invalid = await supabase.functions.invoke("rag-search", { body: { query_text: "" } });
const match = await supabase.rpc("rag_match", { query_vector: vector, top_k: 3, filters: { source_type: "doc" } });
const member = await supabase.rpc("is_org_member", { org_id: "00000000-0000-4000-8000-00000000dead" });
const table = await supabase.from("chunks").select("*");

console.log(
  JSON.stringify({
    search: search.data,
    answer: answer.data,
    invalid: { status: invalid.error.context.status, body: await invalid.error.context.json() },
    match: match.data,
    matchError: match.error,
    member: member.data,
    tableError: table.error.code,
  }),
);
