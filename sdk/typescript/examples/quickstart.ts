// From a file to an answer: a collection, a document, what is found in it, and a chat, whole and streamed.
// MNEMOSYNE_API_KEY and MNEMOSYNE_BASE_URL say who asks, and where.

import fs from 'node:fs';

import { Mnemosyne } from '@mnemosyne-ai/sdk';

// Initialize client
const client = new Mnemosyne({ apiKey: process.env['MNEMOSYNE_API_KEY'] });

// Create collection
const collection = await client.collections.create({
  name: 'company-docs',
  description: 'Internal documentation',
});

// Upload document
const document = await client.documents.create({
  collectionId: collection.id,
  file: fs.createReadStream('guide.pdf'),
});

// Wait for processing
await client.documents.waitUntilReady(document.id, { timeout: 300000 });

// Retrieve relevant chunks
const results = await client.retrievals.retrieve({
  collectionId: collection.id,
  query: 'How do I deploy?',
  mode: 'hybrid',
  topK: 10,
  rerank: true,
});

for (const result of results) {
  console.log(`Score: ${result.score}`);
  console.log(`Content: ${result.content}\n`);
}

// Chat completion
const response = await client.chat.completions.create({
  collectionId: collection.id,
  messages: [
    { role: 'user', content: 'How do I deploy the application?' }
  ],
  model: 'gpt-4o-mini',
  stream: false,
});

console.log(response.choices[0].message.content);

// Streaming chat
const stream = await client.chat.completions.create({
  collectionId: collection.id,
  messages: [
    { role: 'user', content: 'Explain the architecture' }
  ],
  stream: true,
});

for await (const chunk of stream) {
  if (chunk.choices[0]?.delta?.content) {
    process.stdout.write(chunk.choices[0].delta.content);
  }
}
