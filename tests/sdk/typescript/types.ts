// What the types promise: compiled against the packed package, never run.

import {
  type ChatCompletion,
  type ChatCompletionChunk,
  type Document,
  Mnemosyne,
  type Page,
  type RetrievalResults,
  type Stream,
} from '@mnemosyne-ai/sdk';

const client = new Mnemosyne({ apiKey: async () => 'token' });
const messages = [{ role: 'user' as const, content: 'x' }];
declare const flag: boolean;

const whole: ChatCompletion = await client.chat.completions.create({ messages });
const streamed: Stream<ChatCompletionChunk> = await client.chat.completions.create({
  messages,
  stream: true,
});
const either: ChatCompletion | Stream<ChatCompletionChunk> = await client.chat.completions.create({
  messages,
  stream: flag,
});
const page: Page<Document> = await client.documents.list({ collectionId: 'x', sortBy: 'size_bytes' });
const titles: string[] = page.map((document) => document.title);
const found: RetrievalResults = await client.retrievals.retrieve({ query: 'x' });
const text: string = whole.choices[0].message.content + found[0]?.content + found.retrievalMetadata.mode;
await client.documents.create({ collectionId: 'x', file: new Uint8Array(1), filename: 'x.txt' });
await client.documents.create({ collectionId: 'x', file: { name: 'x.txt', content: 'x' } });
await client.documents.create({ collectionId: 'x', file: new Blob(['x']) });
await client.documents.create({ collectionId: 'x', file: 'guide.pdf' }, { onProgress: (sent, size) => sent / size });
// What an answer says of its session and collection is handed back as it is.
await client.chat.completions.create({
  messages,
  sessionId: whole.sessionId,
  collectionId: whole.metadata.collectionId,
  retrieval: { documentType: 'legal' },
});
await client.retrievals.retrieve({ query: 'x', collectionId: whole.metadata.collectionId });
const total: number | undefined = page.pagination?.total;

// @ts-expect-error: a stream is no answer
streamed.choices;
// @ts-expect-error: nor is what may be one
either.choices;
// @ts-expect-error: there is no such mode
await client.retrievals.retrieve({ query: 'x', mode: 'magic' });
// @ts-expect-error: a list needs a collection
await client.documents.list({});
// @ts-expect-error: names are camelCase
await client.retrievals.retrieve({ query: 'x', top_k: 10 });
// @ts-expect-error: what came is not to be changed
whole.query = 'y';

export { text, titles, total };
