// The unmodified openai package of npm, pointed at us by its base URL alone. Reads {url, token, index} as JSON from
// standard input and prints what it made of each answer.

import OpenAI from "openai";
import { json } from "node:stream/consumers";

const { url, token, index } = await json(process.stdin);
const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: token, maxRetries: 0 });
const messages = [{ role: "user", content: "At how many degrees does the kettle switch off?" }];
const model = "vendor/model-1";
const tools = [{ type: "function", function: { name: "weather", parameters: { type: "object", properties: {} } } }];

async function streamed(more) {
  const said = { text: "", usage: null, nodes: null, finish: null, error: null };
  try {
    const options = { stream: true, stream_options: { include_usage: true } };
    const stream = await client.chat.completions.create({ model, messages, ...options, ...more });
    for await (const chunk of stream) {
      said.text += chunk.choices[0]?.delta?.content ?? "";
      said.finish = chunk.choices[0]?.finish_reason ?? said.finish;
      said.nodes = chunk.source_nodes ?? said.nodes;
      said.usage = chunk.usage ?? said.usage;
    }
  } catch (error) {
    said.error = { message: error.message, code: error.code };
  }
  return said;
}

async function refused(more) {
  try {
    await client.chat.completions.create({ model, messages, ...more });
  } catch (error) {
    return { name: error.constructor.name, status: error.status, message: error.message, code: error.code };
  }
  return null;
}

const models = [];
for await (const listed of client.models.list()) models.push(listed.id);
const over_index = await client.chat.completions.create({ model: `rag/${index}`, messages });
const plain = await client.chat.completions.create({ model, messages });
const grounded = await client.chat.completions.create({ model, messages, index_name: index });
const called = await client.chat.completions.create({ model, messages, tools });
console.log(
  JSON.stringify({
    models,
    over_index,
    plain,
    grounded,
    called,
    stream: await streamed({ index_name: index }),
    broken: await streamed({}),
    no_index: await refused({ model: "rag/nope" }),
    missing: await refused({ index_name: "nowhere" }),
    invalid: await refused({ messages: [{ role: "user" }] }),
    busy: await refused({}),
  }),
);
