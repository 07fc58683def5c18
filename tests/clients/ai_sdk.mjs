// The Vercel AI SDK, unmodified, in a route as the documentation shows it. Reads {url, token, question} as JSON from
// standard input and prints the text and the metadata of the answer.

import { readUIMessageStream, parseJsonEventStream, uiMessageChunkSchema } from 'ai';
import { json } from 'node:stream/consumers';

const { url, token, question } = await json(process.stdin);
process.env.CITEROW_URL = `${url}/v1`;
const { POST } = await import('./ai_sdk_route.mjs');
const messages = [{ id: '1', role: 'user', parts: [{ type: 'text', text: question }] }];
const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' };
const request = new Request('http://localhost/api/chat', { method: 'POST', headers, body: JSON.stringify({ messages }) });
const response = await POST(request);
const parsed = parseJsonEventStream({ stream: response.body, schema: uiMessageChunkSchema });
const errors = [];
const chunks = parsed.pipeThrough(
  new TransformStream({
    transform(part, controller) {
      if (part.success && part.value.type === 'error') errors.push(part.value.errorText);
      else if (part.success) controller.enqueue(part.value);
      else errors.push(String(part.error));
    },
  }),
);
let message;
for await (const state of readUIMessageStream({ stream: chunks })) message = state;
const text = (message?.parts ?? []).filter((part) => part.type === 'text').map((part) => part.text).join('');
const { status } = await POST(new Request('http://localhost/api/chat', { method: 'POST' }));
console.log(JSON.stringify({ withoutToken: status, text, metadata: message?.metadata ?? null, errors }));
