// Forwards requests to the deployed functions with the caller's token, which the deployment checks.
// supabase.functions.invoke("rag/answer") calls /api/rag/answer, "rag/api/v1/chat" calls /api/v1/chat.
// Bodies pass through as streams: neither this function nor its limit of processor time sees their size.

// supabase secrets set RAG_URL=https://rag.example.com
const DEPLOYMENT = Deno.env.get("RAG_URL")?.replace(/\/+$/, "");
const FORWARDED = [
  "accept", "authorization", "content-type", "idempotency-key", "traceparent", "x-api-key", "x-rag-read-after",
  "x-request-id", "x-workspace-id",
  "origin", "access-control-request-headers", "access-control-request-method",
];

function failure(status: number, code: string, message: string): Response {
  const headers = { "Access-Control-Allow-Origin": "*" };
  return Response.json({ error: { code, message } }, { status, headers });
}

Deno.serve(async (request) => {
  if (!DEPLOYMENT) return failure(500, "deployment_unset", "Set the secret RAG_URL of this edge function.");
  const { pathname, search } = new URL(request.url);
  const path = pathname.replace(/^(\/functions\/v1)?\/rag(?=\/|$)/, "");
  // The address begins with the deployment's: a path cannot name another host.
  const address = DEPLOYMENT + (/^\/(api|v1)\//.test(path) ? path : `/api/rag${path}`) + search;
  const headers = new Headers({ "accept-encoding": "identity" });
  for (const name of FORWARDED) {
    const value = request.headers.get(name);
    if (value !== null) headers.set(name, value);
  }
  // Deno gives an empty stream for OPTIONS and DELETE without a body, which would be sent as a chunked body.
  const hasBody = ["content-length", "content-type", "transfer-encoding"].some((name) => request.headers.has(name));
  const body = hasBody ? request.body : null;
  try {
    const { method, signal } = request;
    const response = await fetch(address, { method, headers, body, signal, redirect: "manual" });
    return new Response(response.body, { status: response.status, headers: response.headers });
  } catch {
    return failure(502, "deployment_unreachable", "The deployment does not answer. Try again later.");
  }
});
