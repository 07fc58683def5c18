// The unmodified @supabase/supabase-js uploads a file where POST /documents/upload said. Reads {url, key, token,
// bucket, path, uploadToken, text} as JSON from standard input and prints what each call returned.

import { createClient } from "@supabase/supabase-js";
import { json } from "node:stream/consumers";

const { url, key, token, bucket, path, uploadToken, text } = await json(process.stdin);
const supabase = createClient(url, key, { accessToken: async () => token });
const files = supabase.storage.from(bucket);

const body = new TextEncoder().encode(text);
const uploaded = await files.uploadToSignedUrl(path, uploadToken, body, { contentType: "text/html" });
const again = await files.uploadToSignedUrl(path, uploadToken, body, { contentType: "text/html" });
const info = await files.info(path);
const removed = await files.remove([path]);

console.log(
  JSON.stringify({
    uploaded: uploaded.data,
    error: uploaded.error && String(uploaded.error),
    again: again.error.statusCode,
    size: info.data.size,
    removed: removed.data,
  }),
);
