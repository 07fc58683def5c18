// A conversation of two turns, streamed: what each is written from, the text as it comes, and how sure it is.
// Asks over everything that the key may see, or over COLLECTION_ID.

import { Mnemosyne } from '@mnemosyne-ai/sdk';

const client = new Mnemosyne();
const collectionId = process.env['COLLECTION_ID'];
let sessionId: string | undefined;

for (const content of ['How do I deploy the application?', 'And how do I roll it back?']) {
  console.log(`> ${content}`);
  const stream = await client.chat.completions.create({
    collectionId,
    sessionId,
    messages: [{ role: 'user', content }],
    stream: true,
  });
  for await (const chunk of stream) {
    if (chunk.type === 'sources') console.log(`(${chunk.sources?.map((source) => source.title).join(', ')})`);
    process.stdout.write(chunk.choices[0].delta.content ?? '');
    if (chunk.type === 'done') {
      console.log(`\n(${chunk.confidenceDetail?.level} confidence)`);
      sessionId = chunk.sessionId ?? undefined;
    }
  }
}

// The session remembers both turns, until it is deleted.
if (sessionId !== undefined) {
  const messages = await client.chat.sessions.messages(sessionId);
  console.log(`${messages.length} messages kept`);
  await client.chat.sessions.delete(sessionId);
}
