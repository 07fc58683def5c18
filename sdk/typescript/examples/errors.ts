// What can go wrong, and how it is told apart.

import {
  APIConnectionError,
  APIError,
  AuthenticationError,
  ConflictError,
  Mnemosyne,
  NotFoundError,
  ValidationError,
} from '@mnemosyne-ai/sdk';

async function tried(what: string, call: () => Promise<unknown>): Promise<void> {
  try {
    await call();
    console.log(`${what}: done`);
  } catch (error) {
    if (error instanceof ValidationError) console.log(`${what}: ${error.details['field']} is not valid`);
    else if (error instanceof AuthenticationError) console.log(`${what}: not a valid key (${error.status})`);
    else if (error instanceof ConflictError) console.log(`${what}: ${error.code}`);
    else if (error instanceof NotFoundError) console.log(`${what}: there is no such thing (${error.code})`);
    else if (error instanceof APIError) console.log(`${what}: ${error.status} ${error.message}`);
    else if (error instanceof APIConnectionError) console.log(`${what}: nobody answers`);
    else throw error;
  }
}

const client = new Mnemosyne();
const stranger = new Mnemosyne({ apiKey: 'mn_live_nobody' });
// (Nothing listens there.)
const lost = new Mnemosyne({ baseUrl: 'http://127.0.0.1:9/api/v1', maxRetries: 0 });
const name = 'errors-example';
const { id } = await client.collections.create({ name });

await tried('the same name again', () => client.collections.create({ name }));
await tried('too many at once', () => client.collections.list({ limit: 1000 }));
await tried('another id', () => client.documents.get('00000000-0000-4000-8000-000000000000'));
await tried('a wrong key', () => stranger.collections.list());
await tried('a server that is gone', () => lost.collections.list());
await tried('deleted', () => client.collections.delete(id, { cascade: true }));
