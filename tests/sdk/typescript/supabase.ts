// The clients of supabase-js report changes to a wait: compiled against the packed package, never run.

import { Mnemosyne } from '@mnemosyne-ai/sdk';
import type { SupabaseClient } from '@supabase/supabase-js';

declare const supabase: SupabaseClient;
const client = new Mnemosyne();
await client.documents.waitUntilReady('x', { realtime: supabase });
await client.documents.waitUntilReady('x', { realtime: supabase.realtime });
