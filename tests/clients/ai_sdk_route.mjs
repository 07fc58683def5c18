import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { convertToModelMessages, streamText } from 'ai';

// The passages and the confidence of an answer, from the last part of its stream.
const sources = ({ source_nodes, confidence_detail } = {}) => ({ citerow: { source_nodes, confidence_detail } });
const metadataExtractor = {
  extractMetadata: async ({ parsedBody }) => sources(parsedBody),
  createStreamExtractor: () => {
    let last;
    return { processChunk: (part) => void (last = part.source_nodes ? part : last), buildMetadata: () => sources(last) };
  },
};

export async function POST(request) {
  const authorization = request.headers.get('Authorization');
  if (!authorization) return new Response('Sign in first.', { status: 401 });
  const { messages } = await request.json();
  const citerow = createOpenAICompatible({
    name: 'citerow',
    baseURL: process.env.CITEROW_URL, // https://your-domain.com/v1
    // The user's own Supabase token: the answer uses only documents that this user may read.
    apiKey: authorization.replace('Bearer ', ''),
    metadataExtractor,
  });
  const result = streamText({ model: citerow('rag/kettles'), messages: await convertToModelMessages(messages) });
  return result.toUIMessageStreamResponse({
    onError: (error) => error.message, // without it: "An error occurred."
    messageMetadata: ({ part }) => (part.type === 'finish-step' ? part.providerMetadata?.citerow : undefined),
  });
}
