// Waits for documents with the Realtime of unmodified clients of supabase-js. Prints the result of each case of standard
// input: {url, timeout, ids, own, later}. `own` is a channel that the caller has open; a wait for `later` follows the others.

import { createRequire } from "node:module";
import { json } from "node:stream/consumers";
import { setTimeout as pass } from "node:timers/promises";

import { Mnemosyne } from "@mnemosyne-ai/sdk";

const given = await json(process.stdin);
const { createClient } = createRequire(given.root)("@supabase/supabase-js");
// The test sets the SDK's pauses: beside Realtime, and without it the first one of a wait and the next ones.
const set = globalThis.setTimeout;
globalThis.setTimeout = (run, milliseconds, ...more) => {
  const name = milliseconds === 10_000 ? "beside" : milliseconds < 700 ? "first" : "next";
  const pause = new Error().stack.includes("sleep") ? given[name] : undefined;
  return set(run, pause ?? milliseconds, ...more);
};

async function result({ url, timeout, ids, own, later }) {
  const options = { accessToken: async () => given.token, realtime: { timeout: timeout * 1000 } };
  const supabase = createClient(url, "sb_publishable_x", options);
  await supabase.realtime.setAuth();
  if (own) {
    const channel = supabase.channel(own, { config: { private: true } });
    await new Promise((resolve) => channel.subscribe(resolve));
  }
  const client = new Mnemosyne(given.client);
  const removals = [];
  const remove = supabase.removeChannel.bind(supabase);
  supabase.removeChannel = (channel) => {
    removals.push(pass(given.removal).then(() => remove(channel)));
    return removals.at(-1);
  };
  const wait = (id) => client.documents.waitUntilReady(id, { timeout: 60_000, realtime: supabase });
  const began = Date.now();
  const ended = await Promise.all(ids.map(wait));
  if (later) {
    // This wait ends while the channel is being removed.
    await client.documents.waitUntilReady("x", { timeout: 0, realtime: supabase }).catch(() => undefined);
    ended.push(await wait(later));
  }
  const seconds = (Date.now() - began) / 1000;
  await Promise.all(removals);
  const channels = supabase.getChannels().map(({ topic }) => topic);
  return { states: ended.map(({ id, status }) => `${id} ${status}`), seconds, channels };
}

process.stdout.write(JSON.stringify(await Promise.all(given.cases.map(result))));
// supabase-js holds its connections, and timers, for a while.
process.exit();
