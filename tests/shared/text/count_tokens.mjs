// Reads a JSON list of texts on standard input; prints each one's true token counts, by encoding.
import { text } from "node:stream/consumers";
import * as cl100k from "gpt-tokenizer/encoding/cl100k_base";
import * as o200k from "gpt-tokenizer/encoding/o200k_base";

// Words like <|endoftext|> in a document are text, not control.
const plain = { allowedSpecial: new Set(), disallowedSpecial: new Set() };
const count = (document) => ({
  cl100k: cl100k.countTokens(document, plain),
  o200k: o200k.countTokens(document, plain),
});

console.log(JSON.stringify(JSON.parse(await text(process.stdin)).map(count)));
