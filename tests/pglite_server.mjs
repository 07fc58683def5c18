// Postgres 17 with pgvector and pgTAP in WebAssembly (PGlite), for psql and psycopg: listens on the port of the first
// argument, and ends with its standard input. One session serves all connections, one after the other.

import { PGlite } from "@electric-sql/pglite";
import { pgtap } from "@electric-sql/pglite/pgtap";
import { vector } from "@electric-sql/pglite/vector";
import { PGLiteSocketServer } from "@electric-sql/pglite-socket";

const db = await PGlite.create({ extensions: { vector, pgtap } });
// Its superuser is named postgres, which Supabase's is not.
await db.exec(`create role supabase_admin superuser login; set session authorization supabase_admin;
  alter role postgres rename to pglite`);
await new PGLiteSocketServer({ db, host: "127.0.0.1", port: Number(process.argv[2]), maxConnections: 10 }).start();
console.log("ready");
process.stdin.resume();
process.stdin.on("end", () => process.exit());
