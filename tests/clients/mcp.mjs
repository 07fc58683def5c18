// An unmodified TypeScript client of MCP against the stack. Reads {modules, url, token, question} as JSON from standard
// input and prints the result of each call. `modules` are those of the client: the SDK's packages differ by version.

import { json } from "node:stream/consumers";

const { modules, url, token, question } = await json(process.stdin);
const exported = await Promise.all(modules.map((name) => import(name)));
const { Client, StreamableHTTPClientTransport, discoverOAuthProtectedResourceMetadata } = Object.assign({}, ...exported);

async function connected(bearer) {
  const client = new Client({ name: "test", version: "1" });
  const requestInit = { headers: { Authorization: `Bearer ${bearer}` } };
  await client.connect(new StreamableHTTPClientTransport(new URL(`${url}/mcp`), { requestInit }));
  return client;
}

const client = await connected(token);
const { tools } = await client.listTools();
const search = await client.callTool({ name: "search", arguments: { query: question } });
const answer = await client.callTool({ name: "answer", arguments: { question } });
const invalid = await client.callTool({ name: "search", arguments: { query: question, limit: 1000 } });
const missing = await client.callTool({ name: "read_document", arguments: { document_id: "x" } });
const { resourceTemplates } = await client.listResourceTemplates();
const uri = resourceTemplates[0].uriTemplate.replace(/\{.*/, search.structuredContent.results[0].document_id);
const resource = await client.readResource({ uri });
await client.close();
const refused = await connected("x").then(() => "connected", String);
const metadata = await discoverOAuthProtectedResourceMetadata(`${url}/mcp`);

console.log(
  JSON.stringify({ tools: tools.map((tool) => tool.name), search, answer, invalid, missing, resource, refused, metadata }),
);
