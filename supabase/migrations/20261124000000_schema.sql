-- Schemas, extensions and the worker's role. `rag` holds tables and internal functions; PostgREST never exposes it. The
-- exposed functions are in `public`, named rag_*, so that they do not collide with those of an existing project. They
-- run as their caller, so row security applies everywhere.
--
-- pgvector lives in `extensions`, where hosted Supabase keeps it. Functions here set an empty search_path
-- and therefore spell its operators out: operator(extensions.<=>).

-- First, so that a refusal leaves the database as it was.
do $$
declare
  vector record;
begin
  if current_setting('server_version_num')::integer < 150000 then
    raise exception 'Postgres 15 or newer is needed, and this server is %.', current_setting('server_version')
      using hint = 'Upgrade the project in its Settings, Infrastructure, then apply the migration again.';
  end if;
  select coalesce(extension.extversion, available.default_version) as version, extension.extnamespace::regnamespace as home
  into vector
  from pg_available_extensions as available
  left join pg_extension as extension on extension.extname = available.name
  where available.name = 'vector';
  if not coalesce(string_to_array(substring(vector.version from '^[0-9.]+'), '.')::integer[] >= '{0,8}', false) then
    raise exception 'pgvector 0.8 or newer is needed, and this database has %.', coalesce(vector.version, 'none')
      using hint = 'Run: alter extension vector update. If the version stays, upgrade the project in its Settings, '
        'Infrastructure, or install pgvector on your server.';
  elsif vector.home <> coalesce(to_regnamespace('extensions'), 0) then
    raise exception 'pgvector is in the schema %, and must be in the schema extensions.', vector.home
      using hint = 'Run: create schema if not exists extensions; alter extension vector set schema extensions. '
        'Functions of yours that name the former schema need the new one.';
  end if;
end;
$$;

create schema if not exists extensions;
create extension if not exists vector with schema extensions;

create schema rag;
revoke all on schema rag from public;
-- PostgREST calls rag.check_request as the role of each request. The grants of schema rag are in 99_grants.sql.
grant usage on schema rag to public;

-- The worker's role, without a login: PostgREST assumes it for a token that names it. Roles are cluster-wide.
do $$
begin
  create role rag_worker nologin noinherit;
exception when duplicate_object then null;
end;
$$;
grant rag_worker to authenticator;

-- Checks of values that tables and exposed functions share: texts, metadata, numbers and the size of JSON.

create function rag.is_visible_text(content text)
returns boolean
language sql immutable security invoker set search_path = ''
as $$
  select content !~ ('[\u0001-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b\u200e\u200f\u202a-\u202e'
    || '\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e0fff]');
$$;

comment on function rag.is_visible_text is
  'Whether a text holds only what its reader sees, besides tab and line feed: no control characters, no zero-width '
  'or bidirectional controls, no tags. The functions clean texts before they store them; tables check, because a '
  'member may also call the exposed functions directly.';

create function rag.is_readable(value jsonb)
returns boolean
language sql immutable security invoker set search_path = ''
as $$
  select not jsonb_path_exists(value, '$.**{36}') and not exists (
    -- As an array: the time of jsonb_path_query grows with the square of the number of its results.
    select from jsonb_array_elements(
      jsonb_path_query_array(value, 'strict $.** ? (@.type() == "number")')) as found (number)
    where abs(found.number::numeric) >= 1e300 or scale(found.number::numeric) > 300);
$$;

comment on function rag.is_readable is
  'Whether clients in other programming languages can parse the value: at most 36 levels (metadata: 32), and numbers '
  'with at most 300 digits on either side of the point. Numbers are compared, never rendered as text: 1e131071 takes '
  'eight bytes here and 131,072 as text.';

create function rag.is_metadata(value jsonb)
returns boolean
language sql immutable security invoker set search_path = ''
as $$
  select case
    when jsonb_typeof(value) <> 'object' or pg_column_size(value) > 65536 or jsonb_path_exists(value, '$.**{32}')
      then false
    else rag.is_readable(value)
  end;
$$;

comment on function rag.is_metadata is
  'Whether the value may be metadata: an object of at most 64 KB and 32 levels, with readable numbers.';

create function rag.is_whole(value jsonb, lowest integer, highest integer)
returns boolean
language sql immutable security invoker set search_path = ''
as $$
  select case coalesce(jsonb_typeof(value), '')
    when '' then true
    when 'number' then scale(value::numeric) = 0 and value::numeric between lowest and highest
    else false
  end;
$$;

comment on function rag.is_whole is
  'Whether the value is a whole number within these bounds. Null, the value of an absent key, is accepted.';

create function rag.check_json(name text, value jsonb, bytes integer default null)
returns void
language plpgsql immutable security invoker set search_path = ''
as $$
begin
  if pg_column_size(value) > bytes then
    raise exception '% must have at most % bytes', name, bytes using errcode = 'PT400', detail = 'json_too_large';
  elsif not rag.is_readable(value) then
    raise exception '% must have at most 36 levels, and numbers of at most 300 digits on each side of the point', name
      using errcode = 'PT400', detail = 'unreadable_json';
  end if;
end;
$$;

comment on function rag.check_json is
  'Raises PT400 for JSON with more than `bytes` bytes (null: no limit), or that is not rag.is_readable. Each exposed '
  'function that takes JSON calls it before it converts the JSON, because every conversion renders numbers.';

create function rag.check_ids(name text, ids uuid[])
returns void
language plpgsql immutable security invoker set search_path = ''
as $$
begin
  if coalesce(cardinality(ids), 0) not between 1 and 100 or array_position(ids, null) is not null then
    raise exception '% must have 1 to 100 ids', name using errcode = 'PT400', detail = 'invalid_ids';
  end if;
end;
$$;

comment on function rag.check_ids is 'Raises PT400 unless there are 1 to 100 ids, none of them null.';

-- Ids of documents and chunks. An id begins with the time, as version 7 of RFC 9562 does. The keys of most tables of an
-- org begin with such an id, so new rows go to the end of the org's part of an index: the index pages are full, and
-- few of the pages change.

create function rag.time_ordered_id()
returns uuid
language sql volatile security invoker set search_path = ''
as $$
  select (lpad(to_hex((extract(epoch from clock_timestamp()) * 1000)::bigint), 12, '0') || '7'
    || right(replace(gen_random_uuid()::text, '-', ''), 19))::uuid;
$$;

comment on function rag.time_ordered_id is
  'A new UUID of version 7: milliseconds since 1970 in 48 bits, then random bits.';

-- Settings of a deployment: the embedding model, the bound of exact matches, the weights of ranking. The deployer
-- writes the row in SQL; every signed-in caller reads it inside the functions. One row for all orgs. The defaults are
-- measured: docs/benchmarks.md.

create function rag.is_calibrations(value jsonb)
returns boolean
language sql immutable security invoker set search_path = ''
as $$
  select jsonb_typeof(value) = 'object' and not exists (
    select
    from jsonb_each(case jsonb_typeof(value) when 'object' then value else '{}' end) as model (name, calibration)
    cross join lateral (
      values (model.calibration), (model.calibration -> 'other_languages')
    ) as part (fit)
    where fit is not null and coalesce(not (
      jsonb_typeof(fit) = 'object'
      and jsonb_typeof(fit -> 'slope') = 'number' and jsonb_typeof(fit -> 'intercept') = 'number'
      and fit -> 'slope' between '-1000' and '1000' and fit -> 'intercept' between '-1000' and '1000'
      and '0' <= fit -> 'medium' and fit -> 'medium' <= fit -> 'high' and fit -> 'high' <= '1'
      and '0' <= fit -> 'ceiling_medium' and fit -> 'ceiling_medium' <= fit -> 'ceiling_high'
      and fit -> 'ceiling_high' <= '1'
      and coalesce(fit -> 'relevance' between '0' and '1000', true)
      and coalesce(fit -> 'coverage_weight' between '0' and '1000', true)), true))
$$;

comment on function rag.is_calibrations is
  'Whether the value is a set of calibrations by embedding model, or by embedding model and reranker.';

create function rag.is_dimensions(value jsonb)
returns boolean
language sql immutable security invoker set search_path = ''
as $$
  select jsonb_typeof(value) = 'object' and not exists (
    select
    from jsonb_each(case jsonb_typeof(value) when 'object' then value else '{}' end) as model (name, dimensions)
    where not rag.is_whole(model.dimensions, 256, 3072) or length(model.name) not between 1 and 100);
$$;

comment on function rag.is_dimensions is
  'Whether the value is an object of numbers of dimensions, 256 to 3,072, by embedding model.';

create function rag.is_issuers(value jsonb)
returns boolean
language sql immutable security invoker set search_path = ''
as $$
  select jsonb_typeof(value) = 'object' and not exists (
    select
    from jsonb_each(case jsonb_typeof(value) when 'object' then value else '{}' end) as entry (issuer, audience)
    where issuer !~ '^https?://\S+$' or jsonb_typeof(audience) not in ('string', 'null') or audience = '""');
$$;

comment on function rag.is_issuers is 'Whether the value is an object of audiences, or null, by issuer.';

create table rag.settings (
  singleton boolean primary key default true check (singleton),
  embedding_model text not null default 'text-embedding-3-small'
    check (length(embedding_model) between 1 and 100),
  other_embedding_models text[] not null default '{}',
  next_embedding_model text check (next_embedding_model = any (embedding_model || other_embedding_models)),
  embedding_dimensions jsonb not null default '{}' check (rag.is_dimensions(embedding_dimensions)),
  exact_rows integer not null default 12000 check (exact_rows >= 0),
  ef_search integer not null default 40 check (ef_search between 1 and 1000),
  language text not null default 'en' check (language ~ '^[A-Za-z]{2,8}$'),
  -- BM25: k1 bounds the weight of a word's repetitions, b lowers the scores of long passages.
  bm25_k1 real not null default 1.5 check (bm25_k1 between 0 and 10),
  bm25_b real not null default 0.85 check (bm25_b between 0 and 1),
  document_share real not null default 0.5 check (document_share between 0 and 1),
  phrase_share real not null default 0.02 check (phrase_share between 0 and 1),
  similarity_share real not null default 0.4 check (similarity_share between 0 and 1),
  graph_share real not null default 0.3 check (graph_share between 0 and 1),
  mentions_read integer not null default 100 check (mentions_read between 10 and 10000),
  graph_milliseconds integer not null default 200 check (graph_milliseconds between 1 and 10000),
  calibrations jsonb not null default '{}' check (rag.is_calibrations(calibrations)),
  calibration_claims jsonb not null default '{}',
  functions_secret_hashes text[] not null default '{}'
    check (cardinality(functions_secret_hashes) <= 2
      and array_to_string(functions_secret_hashes, ',', '') ~ '^([0-9a-f]{64}(,[0-9a-f]{64})?)?$'),
  issuer text check (issuer ~ '^https?://\S+$'),
  third_party_issuers jsonb not null default '{}' check (rag.is_issuers(third_party_issuers)),
  groups_claim text[] check (cardinality(groups_claim) between 1 and 5 and array_position(groups_claim, null) is null),
  open_to_direct_callers boolean not null default false,
  reads_per_user integer not null default 2 check (reads_per_user between 1 and 1000),
  reads_per_org integer not null default 3 check (reads_per_org between 1 and 1000),
  writes_per_user integer not null default 2 check (writes_per_user between 1 and 1000),
  writes_per_org integer not null default 3 check (writes_per_org between 1 and 1000),
  -- Without its own issuer, the deployment would take a third-party issuer that ends in /auth/v1 for Supabase Auth.
  constraint third_party_issuers_need_issuer
    check (third_party_issuers = '{}' or issuer is not null and not third_party_issuers ? issuer)
);

comment on table rag.settings is 'Settings of the deployment: the one row for all orgs, written by the deployer.';
comment on column rag.settings.embedding_model is
  'The embedding model of the functions, and the default of filters.model.';
comment on column rag.settings.other_embedding_models is
  'Further models whose embeddings may be stored, while a deployment changes its model.';
comment on column rag.settings.next_embedding_model is
  'The model to which `python -m local change-model` changes one org after the other; null: no change.';
comment on column rag.settings.embedding_dimensions is
  'The dimensions of embeddings by model; 1,536 for a model that is not listed. rag.set_dimensions writes them.';
comment on column rag.settings.exact_rows is
  'The largest number of candidate rows that a search compares exactly. For more rows it uses the HNSW index.';
comment on column rag.settings.ef_search is
  'The candidates that the HNSW index considers (pgvector''s hnsw.ef_search) for an org with half of a table '
  'of 50,000 rows; more for smaller orgs and larger tables (rag.ef_search_for).';
comment on column rag.settings.language is 'The language of documents that have none.';
comment on column rag.settings.document_share is
  'The share of a passage''s keyword score that is the score of its whole document.';
comment on column rag.settings.phrase_share is
  'The share of a passage''s keyword score that depends on how many adjacent words of the question are adjacent in '
  'it.';
comment on column rag.settings.similarity_share is
  'The share of a hybrid score that is the similarity; the rest is the keyword score.';
comment on column rag.settings.graph_share is 'The weight of the graph score in a search that uses the graph.';
comment on column rag.settings.mentions_read is
  'The maximum number of mentions of an entity that a search reads, most prominent first.';
comment on column rag.settings.graph_milliseconds is 'Time limit of graph expansion in a search, in milliseconds.';
comment on column rag.settings.calibrations is
  'Calibrations of confidence by embedding model, in the place of the built-in ones, or by "MODEL + RERANKER": slope, '
  'intercept, high, medium, ceiling_high, ceiling_medium, relevance, the weight of a reranker''s best score, and '
  'coverage_weight, that of the question''s words; other_languages, the same for questions in another language than '
  'the best passage; also date, set and expected errors. `make calibrate` writes them. Those whose source is shipped_questions '
  'are the worker''s.';
comment on column rag.settings.calibration_claims is
  'By model: question_set, and until when no other worker fits a calibration to these shipped questions; a week for a '
  'model that none fits.';
comment on column rag.settings.functions_secret_hashes is
  'SHA-256 of the secret that our functions send, in hexadecimal. Two hashes are valid during a rotation.';
comment on column rag.settings.issuer is
  'The claim iss of Supabase Auth''s tokens, as SUPABASE_JWT_ISSUER of the functions; null: none, or any that ends in /auth/v1.';
comment on column rag.settings.third_party_issuers is
  'Other issuers of users'' tokens, each with the audience that their tokens need, or null; those of RAG_THIRD_PARTY_ISSUERS.';
comment on column rag.settings.groups_claim is
  'The path of the claim of users'' tokens that names their groups, for example {app_metadata,groups}; null: no claim. The '
  'claim is a list of names, or an object with a list for each org''s id. Users must not be able to change it.';
comment on column rag.settings.open_to_direct_callers is
  'Whether callers without that secret may call all exposed functions, within the limits of direct calls.';
comment on column rag.settings.reads_per_user is 'The maximum of concurrent reads of one user.';
comment on column rag.settings.reads_per_org is
  'The maximum of concurrent reads of all users of an org. Keep it and writes_per_org together well below PostgREST''s pool '
  'of connections (db-pool).';
comment on column rag.settings.writes_per_user is
  'The maximum of concurrent writes of one user: those that may take long, and those of direct callers.';
comment on column rag.settings.writes_per_org is 'The same of all users of an org.';

alter table rag.settings enable row level security;
alter table rag.settings force row level security;

create policy "signed-in callers read the settings" on rag.settings
  for select to authenticated using (true);

create policy "the worker reads the settings" on rag.settings
  for select to rag_worker using (true);

insert into rag.settings default values;

create function rag.check_models(models text[])
returns void
language plpgsql stable security invoker set search_path = ''
as $$
declare
  unknown text;
begin
  select candidate.model into unknown
  from unnest(models) as candidate (model)
  cross join rag.settings
  where candidate.model <> all (settings.embedding_model || settings.other_embedding_models)
  limit 1;
  if found and rag.current_user_id() is not null then
    raise exception '% is not an embedding model of this deployment. Ask its operator for their names.',
      left(unknown, 100)
      using errcode = 'PT400', detail = 'unknown_embedding_model';
  end if;
end;
$$;

comment on function rag.check_models is
  'Raises PT400 for an embedding model that rag.settings does not list. A database session without a user (the '
  'deployer''s) may store embeddings of any model.';

-- Dimensions of embeddings. A model has 1,536 dimensions, or the number that the deployer set for it. Vectors of models
-- with different numbers are in one column, with one HNSW index for each number.

create function rag.dimensions_of(model text)
returns integer
language sql stable security invoker set search_path = ''
as $$
  select coalesce((settings.embedding_dimensions -> model)::integer, 1536) from rag.settings;
$$;

comment on function rag.dimensions_of is 'The dimensions of a model''s embeddings in the database.';

create function rag.fit_dimensions(embedding extensions.halfvec, dimensions integer, name text)
returns extensions.halfvec
language plpgsql immutable security invoker set search_path = ''
as $$
declare
  given constant integer := extensions.vector_dims(embedding);
begin
  if given = dimensions or embedding is null then
    return embedding;
  elsif given > dimensions
    and extensions.l2_norm(extensions.subvector(embedding, dimensions + 1, given - dimensions)) = 0
  then
    return extensions.subvector(embedding, 1, dimensions);
  end if;
  raise exception '% must have % dimensions, not %', name, dimensions, given
    using errcode = 'PT400', detail = 'wrong_dimensions', hint = 'pad shorter embeddings with zeros';
end;
$$;

comment on function rag.fit_dimensions is
  'The embedding with the given number of dimensions, without zeros at its end that are too many. Raises PT400, with the '
  'name of the argument, for another number.';

create function rag.hnsw_index(dimensions integer)
returns text
language sql immutable security invoker set search_path = ''
as $$
  select 'chunks_by_embedding_' || dimensions;
$$;

comment on function rag.hnsw_index is 'The name of the HNSW index of embeddings with that number of dimensions.';

create function rag.set_dimensions(model text, dimensions integer)
returns void
language plpgsql volatile security invoker set search_path = ''
as $$
begin
  update rag.settings set embedding_dimensions = embedding_dimensions || jsonb_build_object(model, dimensions);
  -- No chunk is stored between the check and the end of the transaction.
  lock table rag.chunks, rag.other_embeddings in share mode;
  if exists (
      select from rag.chunks
      where embedding_model = model and extensions.vector_dims(embedding) <> dimensions)
    or exists (
      select from rag.other_embeddings
      where embedding_model = model and extensions.vector_dims(embedding) <> dimensions)
  then
    raise exception 'There are embeddings of % with another number of dimensions. Set the number before the first one '
      'is stored.', model;
  end if;
  execute format('create index if not exists %I on rag.chunks '
    'using hnsw ((embedding::extensions.halfvec(%s)) extensions.halfvec_cosine_ops) '
    'where in_hnsw and extensions.vector_dims(embedding) = %s', rag.hnsw_index(dimensions), dimensions, dimensions);
end;
$$;

comment on function rag.set_dimensions is
  'For the deployer: store the embeddings of a model with 256 to 3,072 dimensions, and create the HNSW index for this '
  'number unless there is one. Raises an exception if the model has embeddings with another number. Writes wait '
  'meanwhile.';

-- The parts that the queues of the worker share. The queues are jobs (20_documents: ingestion and extraction), deliveries
-- (50_webhooks), object removals (40_storage) and sources (55_sources). A claim leases due items, the same number for
-- every org. An item whose lease has expired is due again, and after rag.max_attempts() without a result it fails. A
-- removal has no lease and never fails. The claims themselves differ by table (docs/decisions/storage.md).

create function rag.check_claim(max_items integer, lease_seconds integer default 60)
returns void
language plpgsql stable security invoker set search_path = ''
as $$
begin
  -- Raises PT401 for a worker's token of another issuer, also without PostgREST's pre-request function.
  perform rag.current_user_id();
  if max_items is null or max_items not between 1 and 100
    or lease_seconds is null or lease_seconds not between 5 and 3600
  then
    raise exception 'max_items must be between 1 and 100, and lease_seconds between 5 and 3600'
      using errcode = 'PT400', detail = 'invalid_claim';
  end if;
end;
$$;

comment on function rag.check_claim is 'Raises PT400 for invalid arguments of a claim, PT401 for a token of an issuer that is not trusted.';

create function rag.max_attempts()
returns integer
language sql immutable security invoker set search_path = ''
as $$
  select 16;
$$;

comment on function rag.max_attempts is 'The number of claims after which an item without a result fails: 16.';

-- Secrets in Supabase Vault, where the project has it: those of webhooks and the credentials of sources. Vault encrypts them
-- in tables, backups and replicas. For each secret, its table has a column and a column …_id for the id in Vault, of which
-- one is null; without Vault the table has the secret itself.
--
-- These three functions run as their owner, because Vault grants its functions to no user. Users cannot call them: two are
-- triggers, and the worker's role alone executes the third. They touch no table of schema rag, and of Vault only secrets
-- whose name begins with "rag.".

create function rag.store_in_vault()
returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
declare
  has_vault constant boolean := coalesce(
    has_function_privilege(to_regprocedure('vault.create_secret(text,text,text,uuid)'), 'execute'), false);
  field text;
  content text;
begin
  foreach field in array tg_argv loop
    content := to_jsonb(new) ->> field;
    if content is not null and has_vault then
      new := jsonb_populate_record(new, jsonb_build_object(field, null, field || '_id',
        vault.create_secret(content, format('rag.%s.%s %s', tg_table_name, field, gen_random_uuid()))));
    elsif content is not null then
      -- The previous secret may be in a Vault that was removed.
      new := jsonb_populate_record(new, jsonb_build_object(field || '_id', null));
    end if;
  end loop;
  return new;
end;
$$;

comment on function rag.store_in_vault is
  'Trigger that moves the named columns to Supabase Vault, if the project has it; else the new text replaces an id in Vault. '
  'It runs as its owner, to whom alone Vault grants this.';

create function rag.erase_from_vault()
returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
declare
  field text;
  secret_id uuid;
begin
  if to_regclass('vault.secrets') is null then
    -- Vault was removed, and its secrets with it.
    return null;
  end if;
  foreach field in array tg_argv loop
    secret_id := to_jsonb(old) ->> (field || '_id');
    -- A rotated secret has become the old one.
    if secret_id is not null
      and not exists (select from jsonb_each_text(to_jsonb(new)) as present where present.value = secret_id::text) then
      delete from vault.secrets where secrets.id = secret_id and secrets.name like 'rag.%';
    end if;
  end loop;
  return null;
end;
$$;

comment on function rag.erase_from_vault is
  'Trigger that deletes a row''s secrets from Supabase Vault, with the row or when they are replaced, if the project '
  'has it. It runs as its owner, to whom alone Vault grants this.';

create function rag.secret_in_vault(secret_id uuid)
returns text
language plpgsql stable strict security definer set search_path = ''
as $$
begin
  return (
    select decrypted_secrets.decrypted_secret
    from vault.decrypted_secrets
    where decrypted_secrets.id = secret_in_vault.secret_id and decrypted_secrets.name like 'rag.%');
exception when others then
  -- Another project's key encrypted it, or Vault was removed: the claims of all others go on.
  return null;
end;
$$;

comment on function rag.secret_in_vault is
  'A secret of this schema in Supabase Vault, for the worker alone; null if it cannot be read. It runs as its owner, to whom '
  'alone Vault grants this.';

-- The caller of a request, for all policies and functions. The subject of a Supabase token is the user's id. The subject of a
-- third-party token (Clerk, Auth0, Firebase) is any text: the id is computed from issuer and subject. PostgREST verifies signatures, and knows no issuer: a token of an issuer that rag.settings does not name is
-- refused here. A third-party token has no claim `rag`: that claim restricts API keys, and serves the functions' own tokens.

create function rag.third_party_user_id(issuer text, subject text)
returns uuid
language sql immutable security invoker set search_path = ''
as $$
  -- A UUID of version 8 (RFC 9562): Supabase's users have version 4, unless an admin chose an id. shared/access/jwt_verifier.py computes the same.
  select encode(set_byte(set_byte(digest, 6, get_byte(digest, 6) & 15 | 128), 8, get_byte(digest, 8) & 63 | 128), 'hex')::uuid
  from (values (substr(sha256(convert_to(issuer || ' ' || subject, 'UTF8')), 1, 16))) as hashed (digest);
$$;

comment on function rag.third_party_user_id is
  'The id of a user of a third-party issuer: of the claims iss and sub. For rows that name the user, such as rag.members.';

create function rag.auth_user_id(user_id uuid)
returns uuid
language sql immutable security invoker set search_path = ''
as $$
  select case when substr(user_id::text, 15, 1) <> '8' then user_id end;
$$;

comment on function rag.auth_user_id is
  'The id of a user of Supabase Auth, null for an id of rag.third_party_user_id. Columns with it reference auth.users.';

create function rag.current_user_id()
returns uuid
language plpgsql stable security invoker set search_path = ''
as $$
declare
  -- Not auth.jwt(): the worker's role may not use the schema auth.
  claims constant jsonb := nullif(current_setting('request.jwt.claims', true), '');
  issuer constant text := claims ->> 'iss';
  own text;
  others jsonb;
begin
  -- Also of Supabase's legacy keys anon and service_role, in functions that run as their owner.
  if claims is null or not claims ?| array['sub', 'rag'] and current_user not in ('authenticated', 'rag_worker') then
    return null;
  elsif issuer <> '' and issuer = current_setting('rag.own_issuer', true) then
    return nullif(claims ->> 'sub', '')::uuid;
  end if;
  select settings.issuer, settings.third_party_issuers into own, others from rag.settings;
  if (issuer = own or own is null and (issuer is null or issuer like '%/auth/v1'))
    -- As PostgREST's jwt-aud, which a project with third-party issuers cannot set: a token without aud is accepted. The functions
    -- refuse it.
    and coalesce(claims -> 'aud' @> '"authenticated"', true)
  then
    -- For the further calls of this transaction, a dozen in a search. A caller who could set it could set the claims.
    perform set_config('rag.own_issuer', issuer, true);
    return nullif(claims ->> 'sub', '')::uuid;
  elsif others ? issuer and not claims ? 'rag'
    and (others -> issuer = 'null' or claims -> 'aud' @> (others -> issuer))
  then
    -- auth.uid() in an adopter's memberships(), or in the policies of its tables, would take this subject for the user of
    -- Supabase Auth with that id.
    if translate(claims ->> 'sub', '{-}', '') ~* '^[0-9a-f]{32}$' and exists (
      select
      from (
        select coalesce(pg_get_function_sqlbody(oid), prosrc) as body
        from pg_proc
        where oid = to_regprocedure('rag.memberships()')
        offset 0
      ) as memberships
      where body !~* '\mrag"?\s*\.\s*"?current_user_id\M' or body ~* '\mauth"?\s*\.\s*"?uid\M')
    then
      raise exception 'This project is not set up for users whose id is a UUID. Ask its operator.'
        using errcode = 'PT401', detail = 'untrusted_issuer',
          hint = 'rag.memberships() must contain rag.current_user_id() and no auth.uid().';
    end if;
    return rag.third_party_user_id(issuer, nullif(claims ->> 'sub', ''));
  end if;
  raise exception 'The token is of an issuer or for an audience that is not trusted here. Sign in to this project.'
    using errcode = 'PT401', detail = 'untrusted_issuer';
end;
$$;

comment on function rag.current_user_id is
  'The id of the caller: of a user of Supabase Auth the claim sub, of a third-party issuer''s rag.third_party_user_id. Null '
  'without a user. Raises PT401 for an issuer that is neither Supabase Auth''s nor one of rag.settings, for another audience, '
  'for a third-party token with the claim rag, and for one whose subject is a UUID if rag.memberships() contains auth.uid() or '
  'lacks rag.current_user_id().';

create function rag.token_claim()
returns jsonb
language plpgsql stable security invoker set search_path = ''
as $$
declare
  claim constant jsonb := auth.jwt() -> 'rag';
begin
  if claim is not null then
    -- Raises PT401 for a token of another issuer.
    perform rag.current_user_id();
  end if;
  return claim;
end;
$$;

comment on function rag.token_claim is 'The claim `rag` of the token, which only tokens that our functions sign have.';

-- Claims of the JWT beyond its user. A user's own token has none and is not restricted. The short-lived token of an API
-- key carries {"rag": {"org", "collection", "scopes", "key", "requests_per_minute"}}, which every policy reads through
-- these functions. These claims only restrict, and a malformed claim permits nothing. (rag.current_org_ids reads the
-- org.) Claims that permit something without a user are read by rag.token_claim().
-- Every statement calls the first two: PL/pgSQL keeps their plans, which saves a search a twentieth of its time.

create function rag.has_scope(variadic scopes text[])
returns boolean
language plpgsql stable security invoker set search_path = ''
as $$
declare
  claims constant jsonb := auth.jwt();
  claim constant jsonb := claims -> 'rag';
begin
  return case
    when claims ? 'client_id' and not coalesce(rag.client_scopes() && (scopes || array['admin']), true) then false
    when coalesce(jsonb_typeof(claim), 'null') = 'null' then true
    when jsonb_typeof(claim) <> 'object' then false
    when coalesce(jsonb_typeof(claim -> 'scopes'), 'null') = 'null' then true
    when jsonb_typeof(claim -> 'scopes') = 'array' then claim -> 'scopes' ?| (scopes || array['admin'])
    else false
  end;
end;
$$;

comment on function rag.has_scope is 'Whether the token carries one of the scopes, or admin, which implies them all; also those of its OAuth client.';

create function rag.require_scope(variadic scopes text[])
returns boolean
language plpgsql stable security invoker set search_path = ''
as $$
begin
  if not rag.has_scope(variadic scopes) then
    raise exception 'The API key lacks the scope %. Use a key that has it.', array_to_string(scopes, ' or ')
      using errcode = 'PT403', detail = 'missing_scope';
  end if;
  return true;
end;
$$;

comment on function rag.require_scope is
  'Raises PT403 for a key without any of the scopes. It returns true, as rag.begin_call does.';

create function rag.bound_collection()
returns uuid
language plpgsql stable security invoker set search_path = ''
as $$
declare
  claim constant jsonb := auth.jwt() -> 'rag';
begin
  return case
    when coalesce(jsonb_typeof(claim), 'null') = 'null' then null
    when jsonb_typeof(claim) = 'object'
      and coalesce(jsonb_typeof(claim -> 'collection'), 'null') = 'null' then null
    when claim ->> 'collection' ~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$'
      then (claim ->> 'collection')::uuid
    else '00000000-0000-0000-0000-000000000000'
  end;
end;
$$;

comment on function rag.bound_collection is
  'The collection that the token is bound to; null for an unbound token; for a malformed claim, an id that no '
  'collection has.';

create function rag.require_whole_org()
returns void
language plpgsql stable security invoker set search_path = ''
as $$
begin
  if rag.bound_collection() is not null then
    raise exception 'The API key is bound to a collection. Use a key for the whole org.'
      using errcode = 'PT403', detail = 'key_bound';
  end if;
end;
$$;

comment on function rag.require_whole_org is 'Raises PT403 for a token that is bound to a collection.';

create function rag.caller_id()
returns uuid
language sql stable security invoker set search_path = ''
as $$
  select coalesce((rag.token_claim() ->> 'key')::uuid, rag.current_user_id());
$$;

comment on function rag.caller_id is 'The id under which a request is counted: that of the API key, or of the user.';

create function rag.creator_id()
returns uuid
language sql stable security invoker set search_path = ''
as $$
  select coalesce(case when rag.token_claim() -> 'anonymous' is distinct from 'true' then rag.current_user_id() end,
    '00000000-0000-0000-0000-000000000000');
$$;

comment on function rag.creator_id is
  'The user who creates the rows of this request (created_by). It is the nil UUID for the anonymous caller of the '
  'index API, whose token is that of a member (shared/access/token_signer.py), and for a database session without a '
  'token.';

create function rag.lookup_hash()
returns text
language sql stable security invoker set search_path = ''
as $$
  select rag.token_claim() ->> 'key_hash';
$$;

comment on function rag.lookup_hash is
  'The hash of the API key that the token may look up. Such a token has no user and permits nothing else.';

create function rag.lease_of_token()
returns uuid
language sql stable security invoker set search_path = ''
as $$
  select (rag.token_claim() ->> 'lease')::uuid;
$$;

comment on function rag.lease_of_token is
  'The lease of the job that the token was made for; null for every other token.';

create function rag.reads_metrics()
returns boolean
language sql stable security invoker set search_path = ''
as $$
  select coalesce(rag.token_claim() -> 'metrics' = 'true', false);
$$;

comment on function rag.reads_metrics is 'Whether the token may read the sums of /metrics. Such a token has no user.';

-- Tokens of OAuth clients. A client that signed in through the project's OAuth server, such as an MCP client, has a token of
-- its user with the claim client_id. The scopes of OAuth do not limit the database, so each client has scopes here, those of
-- API keys. A client without a row reads. The deployer writes the rows.

create table rag.oauth_clients (
  client_id text primary key check (length(client_id) between 1 and 255),
  scopes text[] not null check (array_ndims(scopes) = 1 and cardinality(scopes) between 1 and 6
    and scopes <@ array['documents:read', 'documents:write', 'retrievals:read', 'chat:read',
      'collections:manage', 'admin']),
  created_at timestamptz not null default now()
);

comment on table rag.oauth_clients is
  'What OAuth clients may do with the tokens of their users: the scopes of API keys. A client without a row reads.';

alter table rag.oauth_clients enable row level security;
alter table rag.oauth_clients force row level security;

create policy "a client reads its scopes" on rag.oauth_clients
  for select to authenticated using (client_id = (select auth.jwt()) ->> 'client_id');

create function rag.client_scopes()
returns text[]
language sql stable security invoker set search_path = ''
as $$
  select coalesce(
    (select oauth_clients.scopes from rag.oauth_clients where oauth_clients.client_id = token.claims ->> 'client_id'),
    array['documents:read', 'retrievals:read', 'chat:read'])
  from (select auth.jwt() as claims) as token
  cross join rag.settings
  where token.claims ? 'client_id' and not settings.third_party_issuers ? coalesce(token.claims ->> 'iss', '');
$$;

comment on function rag.client_scopes is
  'The scopes of the OAuth client of the token; null for a token without the claim client_id, and for one of a third-party '
  'issuer, whose claim has another meaning.';

-- Admission of calls to exposed functions. Browsers call a short list of readers with the user's token alone. Every
-- other exposed function also requires a secret header, which only our own functions send. The secret shows that a
-- call comes from them. It gives no access to data: row security depends on the token alone.
--
-- rag.settings holds the SHA-256 of the secret, and during a rotation that of the next secret. The header reaches SQL
-- in request.headers, which PostgREST sets. A direct database session has none and is not checked. A role other
-- than anon and authenticated is not checked either: its token was signed by our own functions.

create function rag.functions_secret_status()
returns text
language sql stable security invoker set search_path = ''
as $$
  select case
    when settings.functions_secret_hashes = '{}' then 'unset'
    when encode(sha256(convert_to(
      nullif(current_setting('request.headers', true), '')::json ->> 'x-rag-functions-secret', 'UTF8')), 'hex')
      = any (settings.functions_secret_hashes) then 'ok'
    else 'wrong'
  end
  from rag.settings;
$$;

comment on function rag.functions_secret_status is
  'ok, unset (rag.settings has no hash) or wrong (the header is absent, or has another secret).';

create function rag.is_direct_call()
returns boolean
language sql stable security invoker set search_path = ''
as $$
  select coalesce(current_setting('request.headers', true), '') <> ''
    and current_user in ('anon', 'authenticated')
    and rag.functions_secret_status() <> 'ok';
$$;

comment on function rag.is_direct_call is
  'Whether the call came from a client of PostgREST that did not send the secret.';

create function rag.begin_call(needs_org boolean default true)
returns boolean
language plpgsql volatile security invoker set search_path = ''
as $$
begin
  if rag.is_direct_call() then
    if not (select open_to_direct_callers from rag.settings) then
      if rag.functions_secret_status() = 'unset' then
        raise exception 'The functions secret is not set in this database. See docs/install.md, Functions secret.'
          using errcode = 'PT403', detail = 'functions_secret_unset';
      end if;
      raise exception 'Only this project''s functions may call this. Call the HTTP API instead.'
        using errcode = 'PT403', detail = 'functions_secret_required';
    end if;
    perform rag.limit_direct_call();
  else
    if needs_org then
      perform rag.require_org();
    end if;
    perform rag.limit_reads();
  end if;
  perform set_config('lock_timeout', '3s', true);
  return true;
end;
$$;

comment on function rag.begin_call is
  'First statement of all other exposed functions. Raises PT403 for a direct call, unless rag.settings opens these '
  'functions to direct callers, and with needs_org for a caller without an org (rag.require_org). A direct call of an '
  'opened function has the limits of rag.limit_direct_call, which always needs an org, a call by our functions that of '
  'rag.limit_reads. It returns '
  'true, so that it can initialize the first variable of a function. It sets a lock time-out of three seconds for the '
  'transaction, including its deferred triggers: PostgREST has few connections, and a waiting call occupies one.';

-- PostgREST's pre-request function, which runs before an exposed function: the size of a direct call; the trace id and
-- the state of the replica for other calls.

create function rag.check_direct_size()
returns void
language plpgsql stable security invoker set search_path = ''
as $$
declare
  headers constant json := current_setting('request.headers');
  size constant text := coalesce(headers ->> 'content-length',
    case when current_setting('request.method', true) in ('GET', 'HEAD') then '0' end, '');
begin
  if headers ->> 'transfer-encoding' is not null or size !~ '^[0-9]{1,15}$' then
    raise exception 'A direct call must have the header Content-Length. Send the body whole, not in chunks.'
      using errcode = 'PT400', detail = 'length_required';
  elsif size::bigint > 1048576 then
    raise exception 'A direct call may have at most 1,048,576 bytes. Send less at once, or call the HTTP API.'
      using errcode = 'PT413', detail = 'body_too_large';
  end if;
end;
$$;

comment on function rag.check_direct_size is
  'Raises PT413 for a direct call of more than a megabyte, and PT400 for a call that does not state its size. A '
  'request with neither header has no body, unless it is a POST of HTTP/2.';

create function rag.name_trace()
returns void
language plpgsql stable security invoker set search_path = ''
as $$
declare
  trace_id constant text := substring(current_setting('request.headers')::json ->> 'traceparent'
    from '^00-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}$');
begin
  if trace_id is not null then
    perform set_config('application_name', 'rag ' || trace_id, true);
  end if;
end;
$$;

comment on function rag.name_trace is
  'Set application_name of a call by the functions to the trace id of its request, for this transaction: '
  'pg_stat_activity and the log of Postgres name it. Any other header than hexadecimal digits is ignored.';

create function rag.check_replication()
returns void
language plpgsql stable security invoker set search_path = ''
as $$
declare
  headers constant json := current_setting('request.headers');
  read_after constant text := substring(headers ->> 'x-rag-read-after' from '^[0-9]{1,19}$');
begin
  if read_after is not null and not pg_visible_in_snapshot(read_after::xid8, pg_current_snapshot()) then
    raise exception 'The replica lacks a transaction that the caller must see.'
      using errcode = 'PT425', detail = 'replica_behind';
  elsif headers ->> 'x-rag-return-transaction' is not null and current_setting('transaction_read_only') = 'off' then
    perform set_config('response.headers',
      jsonb_build_array(jsonb_build_object('X-Rag-Transaction', pg_current_xact_id()::text))::text, true);
  end if;
end;
$$;

comment on function rag.check_replication is
  'Of a deployment with a read replica: the response of a write has its transaction id; a read with the header '
  'X-Rag-Read-After gets PT425 on a replica that has not replayed that transaction. (shared/clients/read_replica.py)';

-- PostgREST's pre-request function (db-pre-request), which runs before PostgREST hands the body to Postgres. A function
-- can check a size only after the conversion of its arguments, and Postgres needs a gigabyte to convert 38 MB. A path
-- with percent-encoding may name any function, so the check covers it. anon and service_role may not execute
-- rag.is_direct_call, so all calls of roles other than authenticated are limited, even with the secret.
create function rag.check_request()
returns void
language plpgsql stable security invoker set search_path = ''
as $$
begin
  if current_setting('request.path', true) ~ '^/rpc/(rag_|is_org_member)|%.*/|/.*/.*%' then
    -- As in hosted projects. Elsewhere a JIT compiler may take seconds for a call of milliseconds.
    perform set_config('jit', 'off', true);
    if current_user = 'rag_worker' then
      -- Raises PT401 for a token of another issuer.
      perform rag.current_user_id();
    end if;
    -- Nested, because Postgres may check the privileges of both conditions of an "and" first.
    if current_user = 'authenticated' then
      if not rag.is_direct_call() then
        perform rag.name_trace(), rag.check_replication();
        return;
      end if;
    end if;
    perform rag.check_direct_size();
  end if;
end;
$$;

comment on function rag.check_request is
  'Pre-request function of PostgREST: rag.check_direct_size for this project''s exposed functions, before Postgres '
  'converts the body. It ignores calls of authenticated with the functions'' secret, and requests for other tables and '
  'functions, except functions with a percent-encoded name. Calls of all other roles are limited, even with the '
  'secret. A call with the secret gets its trace id (rag.name_trace, rag.check_replication). docs/install.md has the statement that sets it.';

-- Checks at the start of exposed functions: an org, the size of a direct call, concurrent calls; plans of a
-- session. rag.begin_call is in 20_functions_secret.sql.

create function rag.require_org()
returns void
language plpgsql stable security invoker set search_path = ''
as $$
begin
  if current_user = 'authenticated' and not exists (select from rag.current_org_ids())
    and rag.current_user_id() is not null and auth.jwt() -> 'rag' -> 'lease' is null
  then
    raise exception 'You belong to no org. Ask an admin to invite you to one.' using errcode = 'PT403', detail = 'no_org';
  end if;
end;
$$;

comment on function rag.require_org is
  'Raises PT403 for a user who belongs to no org, and for a token that counts for none. Tokens that our functions sign '
  'for one task are not checked: those without a user (a key''s look-up, metrics), and that of a job''s lease.';

create function rag.try_slot(holder text, most integer)
returns boolean
language plpgsql volatile security invoker set search_path = ''
as $$
begin
  for slot in 1..most loop
    if pg_try_advisory_xact_lock(hashtextextended(format('rag.%s %s', holder, slot), 0)) then
      return true;
    end if;
  end loop;
  return false;
end;
$$;

comment on function rag.try_slot is
  'Take one of the holder''s `most` slots for the rest of the transaction; false when none is free. A slot is an advisory '
  'lock, because a read-only transaction cannot count in a table.';

create function rag.take_slot(kind text)
returns void
language plpgsql volatile security invoker set search_path = ''
as $$
declare
  link constant text := rag.token_claim() ->> 'document';
  -- Downloads by a link take no slot of the user who created it, nor of the org's searches.
  holders constant text := concat_ws(' ', kind, case when link is not null then 'by link' end);
  orgs uuid[];
  per_user integer;
  per_org integer;
begin
  -- The worker bounds its jobs itself.
  if rag.lease_of_token() is not null then
    return;
  end if;
  orgs := array(select rag.current_org_ids() order by 1);
  select case kind when 'read' then reads_per_user else writes_per_user end,
    case kind when 'read' then reads_per_org else writes_per_org end
  into per_user, per_org
  from rag.settings;
  -- A member of several orgs takes a slot of any of them.
  if rag.try_slot(concat_ws(' ', holders, rag.current_user_id(), link), per_user)
    and (orgs = '{}' or exists (
      select from unnest(orgs) as org where rag.try_slot(format('%s of org %s', holders, org), per_org)))
  then
    return;
  end if;
  -- With the hint, our functions bound how many calls of an org wait for a slot. Status 503 would make PostgREST connect again
  -- and load its schema cache.
  if kind = 'read' then
    raise exception 'Too many searches of you or your org are running at the same time. Please wait until one of them ends.'
      using errcode = 'PT429', detail = 'too_many_reads', hint = coalesce(orgs[1]::text, '');
  end if;
  raise exception 'Too many changes of you or your org are running at the same time. Please wait until one of them ends.'
    using errcode = 'PT429', detail = 'too_many_writes', hint = coalesce(orgs[1]::text, '');
end;
$$;

comment on function rag.take_slot is
  'Take a slot of that kind (read, write) of the user, and one of the org, for the rest of the transaction. So an org, '
  'however many of its members call, cannot occupy PostgREST''s pool of connections. Raises PT429 when no slot is free; '
  'its hint is an org of the caller.';

create function rag.limit_reads()
returns void
language plpgsql volatile security invoker set search_path = ''
as $$
begin
  -- PostgREST calls stable functions in a read-only transaction. Database sessions and the worker's role are not limited.
  if current_setting('transaction_read_only') = 'on' and current_user = 'authenticated'
    and coalesce(current_setting('request.headers', true), '') <> ''
  then
    perform rag.take_slot('read');
  end if;
end;
$$;

comment on function rag.limit_reads is
  'Limit of concurrency for the calls by our functions that only read (PT429).';

create function rag.limit_direct_call()
returns boolean
language plpgsql volatile security invoker set search_path = ''
as $$
begin
  if not rag.is_direct_call() then
    perform rag.require_org(), rag.limit_reads();
    return true;
  end if;
  perform rag.check_direct_size();
  perform rag.require_org();
  -- PostgREST calls stable functions in a read-only transaction.
  if current_setting('transaction_read_only') = 'on' then
    perform rag.take_slot('read');
  else
    perform rag.take_slot('write');
  end if;
  return true;
end;
$$;

comment on function rag.limit_direct_call is
  'First statement of the readers that browsers may call directly. Raises PT403 for a caller without an org. Limits of a '
  'direct call: its size, and the number of reads or writes that run at the same time (PT429). '
  'A call by our functions has the limit of rag.limit_reads. It returns true, as rag.begin_call does.';

create function rag.renew_plans()
returns void
language plpgsql volatile security invoker set search_path = ''
as $$
declare
  size constant bigint := pg_relation_size('rag.chunks');
  planned_size constant bigint := coalesce(nullif(current_setting('rag.planned_size', true), ''), '0');
begin
  if size > 2 * planned_size then
    discard plans;
    perform set_config('rag.planned_size', size::text, false);
  end if;
end;
$$;

comment on function rag.renew_plans is
  'Discard the session''s cached plans when rag.chunks has become twice as large as it was when they were made. '
  'Postgres does so itself only after an ANALYZE: until then, plans from nearly empty tables would read all rows of an '
  'org for each row that a call writes.';

create function rag.begin_write()
returns boolean
language plpgsql volatile security invoker set search_path = ''
as $$
begin
  perform rag.begin_call();
  perform rag.renew_plans();
  -- A direct call has its slot by now. A database session is not limited.
  if coalesce(current_setting('request.headers', true), '') <> '' and not rag.is_direct_call() then
    perform rag.take_slot('write');
  end if;
  return true;
end;
$$;

comment on function rag.begin_write is
  'First statement of guarded functions that may take a minute (their time-out), wait for one that does, or store up '
  'to a megabyte: rag.begin_call, and a limit of concurrency (PT429).';

-- Tiers: the limits of each org. A tier has a number of requests a day for each user and, optionally, limits a minute
-- that replace the deployment's, and quotas of tokens (90_operations/28_token_quotas.sql). The deployer writes tiers;
-- every signed-in caller reads them inside rag_check_rate_limit. All orgs share the tiers, so the table has no org.

create table rag.tiers (
  name text primary key check (name ~ '^[a-z][a-z0-9-]{0,39}$'),
  requests_per_day integer check (requests_per_day > 0),
  rag_requests_per_minute integer check (rag_requests_per_minute > 0),
  api_requests_per_minute integer check (api_requests_per_minute > 0),
  collections integer check (collections > 0),
  documents_per_collection integer check (documents_per_collection > 0),
  file_bytes bigint check (file_bytes > 0),
  storage_bytes bigint check (storage_bytes > 0),
  upload_bytes_per_minute bigint check (upload_bytes_per_minute between 1024 and 1000000000000),
  model_tokens_alert bigint check (model_tokens_alert > 0),
  model_tokens_per_day bigint check (model_tokens_per_day > 0),
  embedding_tokens_alert bigint check (embedding_tokens_alert > 0),
  embedding_tokens_per_day bigint check (embedding_tokens_per_day > 0),
  is_paused boolean not null default false
);

comment on table rag.tiers is 'Tiers of service: limits that orgs share, written by the deployer.';
comment on column rag.tiers.requests_per_day is
  'Requests per user and day, including those of all the user''s API keys; null: no daily limit.';
comment on column rag.tiers.rag_requests_per_minute is
  'Requests per user and minute to rag-search and rag-answer together; the next column: per user to all other '
  'functions, with all keys of the user. Null: the deployment''s limits (RAG_RATE_LIMIT_RAG, RAG_RATE_LIMIT_API).';
comment on column rag.tiers.collections is
  'The maximum number of collections of an org; the next column: of documents per collection. Null: no limit.';
comment on column rag.tiers.file_bytes is 'The maximum size of an uploaded file.';
comment on column rag.tiers.storage_bytes is
  'The maximum size of an org''s documents and original files together (rag.stored_bytes). Null: no limit.';
comment on column rag.tiers.upload_bytes_per_minute is
  'Bytes of files and texts that a user, with all API keys, may send to the ingestion API in a minute. Null: no limit.';
comment on column rag.tiers.model_tokens_alert is
  'Tokens of an org and day, in prompts, replies and texts of rerankers, that cause an alert. Null: no alert.';
comment on column rag.tiers.model_tokens_per_day is
  'Tokens of an org and day after which no chat model or reranker is called until midnight UTC. Null: no limit.';
comment on column rag.tiers.embedding_tokens_alert is
  'Tokens of an org and day, in embedded texts, that cause an alert. Null: no alert.';
comment on column rag.tiers.embedding_tokens_per_day is
  'Tokens of an org and day after which no embedding model is called until midnight UTC. Null: no limit.';
comment on column rag.tiers.is_paused is
  'Whether the worker leaves out the queues of the tier''s orgs: their documents, extractions, deliveries, removals and '
  'sources wait until it is false.';

alter table rag.tiers enable row level security;
alter table rag.tiers force row level security;

create policy "signed-in callers read the tiers" on rag.tiers
  for select to authenticated using (true);

create policy "the worker sees which tiers are paused" on rag.tiers
  for select to rag_worker using (true);

insert into rag.tiers (name, requests_per_day, collections, documents_per_collection, file_bytes, storage_bytes,
  upload_bytes_per_minute)
values
  ('standard', null, null, null, null, 50::bigint << 30, 120 << 20),
  ('free', 100, 5, 10, 10 << 20, 500 << 20, 30 << 20),
  ('developer', 10000, 50, 1000, 100 << 20, 10::bigint << 30, 120 << 20),
  ('professional', 100000, null, null, 100 << 20, 500::bigint << 30, 300 << 20);

-- Orgs and their members. An org is a tenant; a member belongs to it as admin or member. The deployer writes orgs and
-- members (SQL editor, seed, own back office), an org's admins invite users (45_manage_members.sql); signed-in callers read
-- their own rows. An invitation is a row without accepted_at: it is no membership, and only the invited user accepts it.
--
-- rag.memberships() is the one function that an adopter replaces to plug in a membership table of their
-- own (and rag.org_members(), if the list of members is to show theirs). Everything else asks
-- rag.current_org_ids() and rag.admin_org_ids(), which stay as they are: they narrow the memberships by the
-- claims that a token carries, so no replacement can widen a token.

create table rag.orgs (
  id uuid primary key default gen_random_uuid(),
  name text not null check (length(name) between 1 and 200),
  tier text not null default 'standard' references rag.tiers (name) on update cascade,
  record_days integer check (record_days between 1 and 3650),
  embedding_model text check (length(embedding_model) between 1 and 100),
  restricts_collections boolean not null default false,
  served jsonb not null default '{}',
  created_at timestamptz not null default now()
);

comment on table rag.orgs is 'Tenants, written by the deployer.';
comment on column rag.orgs.record_days is
  'The days for which answered requests are recorded (rag.request_records); null records none. A shorter '
  'retention also applies to earlier records. The org''s admins change it too.';
comment on column rag.orgs.embedding_model is
  'The model of the org''s embeddings, if the deployment changed it; null: that of rag.settings.';
comment on column rag.orgs.restricts_collections is
  'Whether a new collection that belongs to the whole org is restricted: its creator alone has a grant. The org''s admins '
  'change it.';
comment on column rag.orgs.served is
  'When the worker last claimed work of the org, by kind: ingestion, extraction, source. Orgs take turns by it, and no user '
  'can change it.';

-- Renaming a tier.
create index orgs_by_tier on rag.orgs (tier);

create table rag.members (
  org_id uuid not null references rag.orgs (id) on delete cascade,
  user_id uuid not null,
  role text not null default 'member' check (role in ('admin', 'member')),
  name text check (length(name) between 1 and 200 and rag.is_visible_text(name)),
  created_at timestamptz not null default now(),
  accepted_at timestamptz default now(),
  auth_user_id uuid generated always as (rag.auth_user_id(user_id)) stored references auth.users (id) on delete cascade,
  primary key (org_id, user_id)
);

comment on table rag.members is 'Members of orgs and their roles, and invitations. Written by the deployer and by admins.';
comment on column rag.members.name is
  'The member''s name or address, for the org''s admins. Null: they see the user''s id.';
comment on column rag.members.accepted_at is
  'Null: an invitation, which the user has not accepted, and which gives no right. A row of the deployer''s is accepted.';

-- memberships() and the policy of rag.orgs: where user_id = rag.current_user_id()
create index members_by_user on rag.members (user_id) include (org_id, role, accepted_at);

-- Deleting a user.
create index members_by_auth_user on rag.members (auth_user_id);

alter table rag.orgs enable row level security;
alter table rag.orgs force row level security;
alter table rag.members enable row level security;
alter table rag.members force row level security;

create function rag.memberships()
returns table (org_id uuid, role text)
language sql stable security invoker set search_path = ''
begin atomic
  select members.org_id, members.role
  from rag.members
  where members.user_id = (select rag.current_user_id()) and members.accepted_at is not null;
end;

comment on function rag.memberships is
  'The caller''s orgs and roles. An adopter with a membership table of their own replaces this function.';

create function rag.current_org_ids()
returns setof uuid
language sql stable security invoker set search_path = ''
as $$
  select memberships.org_id
  from rag.memberships(), lateral (select auth.jwt() -> 'rag') as token (claim)
  -- Of an adopter's memberships() too: a token of an issuer that is not trusted raises PT401.
  where (select rag.current_user_id()) is not null and memberships.org_id is not null
    and (coalesce(jsonb_typeof(token.claim), 'null') = 'null'
      or (jsonb_typeof(token.claim) = 'object'
        and coalesce(lower(token.claim ->> 'org'), memberships.org_id::text) = memberships.org_id::text));
$$;

comment on function rag.current_org_ids is
  'The orgs that the caller''s token permits: those of all memberships, or only the org in the claim {"rag": {"org": '
  '"<uuid>"}} of an API key''s token. A malformed claim permits none.';

create function rag.admin_org_ids()
returns setof uuid
language sql stable security invoker set search_path = ''
as $$
  select memberships.org_id
  from rag.memberships()
  where memberships.role = 'admin'
    and memberships.org_id in (select rag.current_org_ids())
    and rag.has_scope('admin');
$$;

comment on function rag.admin_org_ids is 'The orgs that the caller administers, with a token that has the scope admin.';

create function rag.require_admin_org()
returns uuid[]
language plpgsql stable security invoker set search_path = ''
as $$
declare
  own constant uuid[] := array(select rag.admin_org_ids());
begin
  if cardinality(own) = 0 then
    raise exception 'Only admins of the org may see this. An API key also needs the scope admin.'
      using errcode = 'PT403', detail = 'admin_required';
  end if;
  return own;
end;
$$;

comment on function rag.require_admin_org is 'The orgs that the caller administers; PT403 without one.';

create function rag.require_admin(org_id uuid)
returns void
language plpgsql stable security invoker set search_path = ''
as $$
begin
  if require_admin.org_id not in (select rag.admin_org_ids()) or rag.bound_collection() is not null then
    raise exception 'Only admins of the org may do this. A key needs the scope admin, and no bound collection.'
      using errcode = 'PT403', detail = 'admin_required';
  end if;
end;
$$;

comment on function rag.require_admin is
  'Raises PT403 for a caller who is no admin of the org, and for a key that is bound to a collection.';

create function rag.listed_org_ids()
returns setof uuid
language plpgsql stable security invoker set search_path = ''
as $$
begin
  if current_setting('rag.lists_members', true) = 'true' then
    -- admin_org_ids() reads rag.members, whose policy calls this function again.
    perform set_config('rag.lists_members', 'false', true);
    return query select rag.admin_org_ids();
    perform set_config('rag.lists_members', 'true', true);
  end if;
end;
$$;

comment on function rag.listed_org_ids is
  'The orgs whose members the caller may list: in rag_list_members those that the caller administers, elsewhere none. '
  'The setting rag.lists_members only prevents the recursion of the policy: it grants nothing to a caller who is no '
  'admin.';

create policy "members read their orgs, and invited users the org" on rag.orgs
  for select to authenticated
  using (id = any (array(select rag.current_org_ids())) or id = any (array(
    select members.org_id from rag.members
    where members.user_id = (select rag.current_user_id()) and members.accepted_at is null)));

create policy "the worker sees the tiers of orgs" on rag.orgs
  for select to rag_worker using (true);

create policy "the worker notes when it served an org" on rag.orgs
  for update to rag_worker using (true) with check (true);

create policy "admins change the settings of their orgs" on rag.orgs
  for update to authenticated
  using (id = any (array(select rag.admin_org_ids())) and (select rag.bound_collection()) is null)
  with check (id = any (array(select rag.admin_org_ids())) and (select rag.bound_collection()) is null);

-- Not current_org_ids(), which reads this table and would recurse endlessly.
create policy "users read their own memberships, admins list their orgs'" on rag.members
  for select to authenticated
  using (user_id = (select rag.current_user_id()) or org_id = any (array(select rag.listed_org_ids())));

create function rag.org_members(org_ids uuid[])
returns table (org_id uuid, user_id uuid, role text, name text, created_at timestamptz)
language sql stable security invoker set search_path = ''
begin atomic
  select members.org_id, members.user_id, members.role, members.name, members.created_at
  from rag.members
  where members.org_id = any (org_members.org_ids) and members.accepted_at is not null;
end;

comment on function rag.org_members is
  'The members of these orgs, for rag_list_members. An adopter who has replaced rag.memberships() replaces this function '
  'too, or the list of members is empty.';

create function rag.resolve_org(org_id uuid)
returns uuid
language plpgsql stable security invoker set search_path = ''
as $$
declare
  own constant uuid[] := array(select rag.current_org_ids());
begin
  if org_id is null and cardinality(own) > 1 then
    raise exception 'You belong to several orgs. Set org_id to one of them.'
      using errcode = 'PT400', detail = 'org_required';
  elsif coalesce(org_id, own[1]) = any (own) then
    return coalesce(org_id, own[1]);
  end if;
  raise exception 'There is no such org. Check its id.' using errcode = 'PT404', detail = 'org_not_found';
end;
$$;

comment on function rag.resolve_org is
  'The given org, or the caller''s only org. Raises PT400 if the caller has several, and PT404 for an org of '
  'others.';

create function rag.org_tier(org_id uuid)
returns rag.tiers
language sql stable security invoker set search_path = ''
as $$
  select tiers.*
  from rag.orgs join rag.tiers on tiers.name = orgs.tier
  where orgs.id = org_tier.org_id;
$$;

comment on function rag.org_tier is 'The tier of an org; null fields if the org is not the caller''s.';

create function rag.paused_org_ids()
returns setof uuid
language sql stable security invoker set search_path = ''
as $$
  select orgs.id
  from rag.tiers join rag.orgs on orgs.tier = tiers.name
  where tiers.is_paused;
$$;

comment on function rag.paused_org_ids is
  'The orgs whose tier is paused, for the worker''s claims; of a user''s orgs those that are.';

create function public.is_org_member(org_id uuid)
returns boolean
language sql stable security invoker set search_path = ''
as $$
  select coalesce(is_org_member.org_id in (select rag.current_org_ids()), false);
$$;

comment on function public.is_org_member is
  'Whether the caller is a member of the org, for an adopter''s own policies and for clients.';

create function public.rag_list_orgs()
returns table (id uuid, name text, role text, embedding_model text)
language plpgsql stable security invoker set search_path = ''
as $$
#variable_conflict use_column
begin
  perform rag.begin_call(), rag.require_scope('documents:read', 'documents:write', 'retrievals:read', 'chat:read',
    'collections:manage');
  return query
    select memberships.org_id, orgs.name,
      coalesce(max(memberships.role) filter (where memberships.role = 'admin'), max(memberships.role)),
      coalesce(orgs.embedding_model, settings.embedding_model)
    from rag.memberships()
    left join rag.orgs on orgs.id = memberships.org_id
    cross join rag.settings
    where memberships.org_id in (select rag.current_org_ids())
    group by memberships.org_id, orgs.name, orgs.embedding_model, settings.embedding_model
    order by orgs.name, memberships.org_id
    limit 1000;
end;
$$;

comment on function public.rag_list_orgs is
  'The caller''s orgs by name, at most 1,000. The name is null for an org without a row in rag.orgs, which an '
  'adopter''s memberships may have. Of several roles in an org it is admin. embedding_model: with which new documents '
  'of the org are embedded. A key needs any scope.';

-- Changes of rag.members by an org's admins, where the deployment keeps its memberships in that table. The caller's own
-- rights decide: auth.users is not readable, so a user is named by id. No admin changes or removes their own membership,
-- so that every org keeps an admin; other members may leave. Admins invite: a user whom another org could add without
-- consent would find its documents in every search (46_invitations.sql).

create policy "admins invite users to their orgs" on rag.members
  for insert to authenticated
  with check (org_id = any (array(select rag.admin_org_ids())) and (select rag.bound_collection()) is null
    and accepted_at is null);

create policy "admins change the other members of their orgs, and users accept their invitations" on rag.members
  for update to authenticated
  using (case when user_id = (select rag.current_user_id()) then accepted_at is null and (select auth.jwt()) -> 'rag' is null
      and (select rag.has_scope('admin'))
    else org_id = any (array(select rag.admin_org_ids())) and (select rag.bound_collection()) is null end)
  with check (case when user_id = (select rag.current_user_id()) then accepted_at is not null
    else org_id = any (array(select rag.admin_org_ids())) and (select rag.bound_collection()) is null end);

create policy "admins remove other members, and members leave" on rag.members
  for delete to authenticated
  using (case when user_id = (select rag.current_user_id())
    then (role <> 'admin' or accepted_at is null) and (select rag.caller_id()) = user_id
      and (select rag.has_scope('admin'))
    else org_id = any (array(select rag.admin_org_ids())) and (select rag.bound_collection()) is null end);

create function rag.manage_members(org_id uuid)
returns void
language plpgsql volatile security invoker set search_path = ''
as $$
begin
  -- First, so that of two admins who remove each other at once the second is no admin any more.
  perform pg_advisory_xact_lock(hashtextextended('rag.members ' || org_id, 0));
  perform rag.require_admin(org_id);
  if rag.caller_id() <> rag.current_user_id() then
    raise exception 'An API key cannot change members. Use your own token.'
      using errcode = 'PT403', detail = 'user_required';
  elsif not exists (
    select from rag.members
    where members.org_id = manage_members.org_id and members.user_id = rag.current_user_id() and members.accepted_at is not null)
  then
    raise exception 'This deployment keeps its members in a table of its own. Change them there.'
      using errcode = 'PT409', detail = 'members_elsewhere';
  end if;
  -- For the policy of rag.members (rag.listed_org_ids), in this transaction.
  perform set_config('rag.lists_members', 'true', true);
end;
$$;

comment on function rag.manage_members is
  'Begins a change of the org''s members: PT403 for a caller who is no admin, or an API key, whose '
  'changes would last longer than the key; PT409 if the memberships are not in rag.members.';

create function rag.record_member_event(org_id uuid, event text, user_id uuid)
returns void
language plpgsql volatile security invoker set search_path = ''
as $$
#variable_conflict use_variable
begin
  insert into rag.audit_events (org_id, user_id, event, namespace, document_count, chunk_count)
  values (org_id, rag.current_user_id(), event, user_id::text, 0, 0);
end;
$$;

comment on function rag.record_member_event is 'Write an audit event about a membership. user_id: whose it is.';

create function public.rag_put_member(
  user_id uuid, org_id uuid default null, role text default 'member', name text default null
)
returns void
language plpgsql volatile security invoker set search_path = ''
as $$
#variable_conflict use_variable
declare
  is_admitted constant boolean := rag.begin_call();
  org constant uuid := rag.resolve_org(org_id);
begin
  perform rag.manage_members(org);
  if role is null or role not in ('admin', 'member') then
    raise exception 'role must be admin or member' using errcode = 'PT400', detail = 'invalid_role';
  elsif length(name) not between 1 and 200 or not rag.is_visible_text(name) then
    raise exception 'name must have 1 to 200 characters, none of them invisible'
      using errcode = 'PT400', detail = 'invalid_name';
  elsif user_id = rag.current_user_id() then
    raise exception 'Admins cannot change or remove their own membership. Ask another admin of the org.'
      using errcode = 'PT409', detail = 'own_membership';
  elsif (
    select count(*) filter (where members.accepted_at is null) >= 100 and not bool_or(members.user_id = user_id)
    from rag.members where members.org_id = org)
  then
    raise exception 'The org has 100 open invitations. Remove some of them first.'
      using errcode = 'PT409', detail = 'too_many_invitations';
  end if;
  insert into rag.members as present (org_id, user_id, role, name, accepted_at)
  values (org, user_id, role, name, null)
  on conflict on constraint members_pkey do update set role = excluded.role, name = excluded.name;
  perform rag.record_member_event(org, 'member.put', user_id);
exception
  when foreign_key_violation or not_null_violation then
    raise exception 'There is no user with this id. Check the id.' using errcode = 'PT404', detail = 'user_not_found';
end;
$$;

comment on function public.rag_put_member is
  'Invite a user to an org that the caller administers, or replace the role and name of a member or an invitation. PT403 '
  'for a caller who is no admin; PT404 for an unknown user of Supabase Auth (third-party users are not checked); PT409 for the caller''s own membership, with 100 open invitations, and '
  'where the memberships are not in rag.members.';

create function public.rag_remove_member(user_id uuid, org_id uuid default null)
returns void
language plpgsql volatile security invoker set search_path = ''
as $$
#variable_conflict use_variable
declare
  is_admitted constant boolean := rag.begin_call();
  org constant uuid := rag.resolve_org(org_id);
begin
  if user_id <> rag.caller_id() or org in (select rag.admin_org_ids()) then
    perform rag.manage_members(org);
    if user_id = rag.current_user_id() then
      raise exception 'Admins cannot change or remove their own membership. Ask another admin of the org.'
        using errcode = 'PT409', detail = 'own_membership';
    end if;
  end if;
  update rag.api_keys set revoked_at = now()
  where api_keys.org_id = org and api_keys.owner_id = rag_remove_member.user_id and api_keys.revoked_at is null;
  delete from rag.group_members
  where group_members.org_id = org and group_members.owner_id = rag_remove_member.user_id;
  delete from rag.collection_grants as given where given.org_id = org and given.user_id = rag_remove_member.user_id;
  perform rag.record_member_event(org, 'member.remove', user_id);
  delete from rag.members where members.org_id = org and members.user_id = rag_remove_member.user_id;
  if not found then
    raise exception 'The org has no such member. Check the id of the user.'
      using errcode = 'PT404', detail = 'member_not_found';
  end if;
end;
$$;

comment on function public.rag_remove_member is
  'Remove a member or an invitation of an org that the caller administers, or leave an org. The member''s keys of the org are '
  'revoked, and the member''s groups and grants are deleted; private documents stay, for the admins. PT403 for a caller who is no admin; PT404 for a user who is no member; PT409 '
  'for an admin''s own membership, and where the memberships are not in rag.members.';

-- Invitations: rows of rag.members without accepted_at. Admins write them, and only the invited user accepts, with a token
-- of their own: neither a key nor a narrowed token does.

-- A policy sees the old row in one expression and the new row in another. This compares them.
create function rag.check_consent()
returns trigger
language plpgsql volatile security invoker set search_path = ''
as $$
begin
  if row_security_active(tg_relid) and (case when new.user_id = rag.current_user_id()
    then (new.role, new.name) is distinct from (old.role, old.name)
    else new.accepted_at is distinct from old.accepted_at end)
  then
    raise exception 'Only the invited user accepts an invitation, and only admins change the role and the name.'
      using errcode = 'PT403', detail = 'consent_required';
  end if;
  return new;
end;
$$;

comment on function rag.check_consent is
  'Raises PT403 for an admin who accepts for another user, and for a user who changes their own role or name. Roles that row '
  'security does not restrict change all.';

create trigger check_consent before update on rag.members for each row execute function rag.check_consent();

create function public.rag_list_invitations()
returns table (org_id uuid, org_name text, role text, created_at timestamptz)
language plpgsql stable security invoker set search_path = ''
as $$
#variable_conflict use_column
begin
  perform rag.begin_call(needs_org => false);
  return query
    select members.org_id, orgs.name, members.role, members.created_at
    from rag.members join rag.orgs on orgs.id = members.org_id
    where members.user_id = rag.current_user_id() and members.accepted_at is null and auth.jwt() -> 'rag' is null
    order by members.created_at, members.org_id
    limit 100;
end;
$$;

comment on function public.rag_list_invitations is
  'The caller''s open invitations, the oldest first, at most 100, with the role that the user gets. A user without an org may '
  'call it. Empty for a key.';

create function public.rag_answer_invitation(org_id uuid, accept boolean)
returns void
language plpgsql volatile security invoker set search_path = ''
as $$
declare
  is_admitted constant boolean := rag.begin_call(needs_org => false);
begin
  if accept then
    update rag.members set accepted_at = now()
    where members.org_id = rag_answer_invitation.org_id and members.user_id = rag.current_user_id() and members.accepted_at is null;
  elsif auth.jwt() -> 'rag' is null then
    delete from rag.members
    where members.org_id = rag_answer_invitation.org_id and members.user_id = rag.current_user_id() and members.accepted_at is null
      and not accept;
  end if;
  if not found then
    raise exception 'You have no open invitation to this org. Check its id.'
      using errcode = 'PT404', detail = 'invitation_not_found';
  end if;
end;
$$;

comment on function public.rag_answer_invitation is
  'Accept or decline the caller''s own invitation to an org. A user without an org may call it. PT404 without an open '
  'invitation, and for a key.';

-- Groups of an org and their members. A grant on a collection names a group (../20_documents/12_collection_grants.sql). A
-- group is a name: rows, a claim of the token or the adopter's own tables say which groups a user belongs to.
--
-- rag.group_memberships() is the one function that an adopter replaces to plug in groups of their own.

create table rag.groups (
  org_id uuid not null references rag.orgs (id) on delete cascade,
  name text not null check (length(name) between 1 and 200 and rag.is_visible_text(name)),
  owner_id uuid check (owner_id is null),
  description text check (length(description) <= 500 and rag.is_visible_text(description)),
  created_at timestamptz not null default now(),
  primary key (org_id, name)
);

comment on table rag.groups is 'Groups of orgs whose members are rows, written by admins.';
comment on column rag.groups.owner_id is 'Always null: groups belong to the org.';

create table rag.group_members (
  org_id uuid not null,
  group_name text not null,
  owner_id uuid not null,
  created_at timestamptz not null default now(),
  auth_user_id uuid generated always as (rag.auth_user_id(owner_id)) stored references auth.users (id) on delete cascade,
  primary key (org_id, group_name, owner_id),
  foreign key (org_id, group_name) references rag.groups (org_id, name) on delete cascade
);

comment on table rag.group_members is 'Members of groups, written by admins. A member reads their own rows.';
comment on column rag.group_members.owner_id is 'The user who belongs to the group. Without a membership of the org, the row gives no right.';

-- rag.group_memberships().
create index group_members_by_user on rag.group_members (owner_id);
-- Deleting a user.
create index group_members_by_auth_user on rag.group_members (auth_user_id);

create function rag.claimed_groups()
returns table (org_id uuid, group_name text)
language sql stable security invoker set search_path = ''
as $$
  select ids.id, named.name
  from rag.settings
  cross join lateral (select auth.jwt() #> settings.groups_claim as names offset 0) as claim
  cross join rag.current_org_ids() as ids (id)
  cross join lateral jsonb_array_elements_text(case
    when jsonb_typeof(claim.names) = 'array' then claim.names
    when jsonb_typeof(claim.names -> ids.id::text) = 'array' then claim.names -> ids.id::text
    else '[]' end) as named (name)
  where claim.names is not null;
$$;

comment on function rag.claimed_groups is
  'The groups that the claim of rag.settings.groups_claim names: a list for all the caller''s orgs, or a list for each.';

create function rag.group_memberships()
returns table (org_id uuid, group_name text)
language sql stable security invoker set search_path = ''
begin atomic
  select group_members.org_id, group_members.group_name
  from rag.group_members
  where group_members.owner_id = (select rag.current_user_id())
  union all
  select claimed.org_id, claimed.group_name from rag.claimed_groups() as claimed;
end;

comment on function rag.group_memberships is
  'The caller''s groups. An adopter with groups in tables of their own replaces this function.';

create function rag.closed_collections(access text)
returns setof uuid
language plpgsql stable security invoker set search_path = '' rows 10
as $$
declare
  rights constant text[] := case closed_collections.access when 'manage' then array['manage']
    when 'edit' then array['edit', 'manage'] else array['view', 'edit', 'manage'] end;
  -- The result for the further calls of this transaction, a dozen in a search, after a hash of the claims. A caller who could
  -- set it could set the claims.
  setting constant text := 'rag.closed_to_' || closed_collections.access;
  caller constant text := md5(coalesce(current_setting('request.jwt.claims', true), ''));
  closed text := current_setting(setting, true);
begin
  if left(closed, 32) = caller then
    closed := substr(closed, 33);
  else
    -- Otherwise the policies of the two tables would call this function again. This setting opens no documents.
    perform set_config('rag.reads_grants', 'true', true);
    closed := array(
      select collections.id
      from rag.collections
      where collections.restricted_by is not null and collections.owner_id is null and collections.deleted_at is null
        and collections.org_id <> all (array(select rag.admin_org_ids()))
        and (collections.org_id, collections.id) not in (
          select given.org_id, given.collection_id
          from rag.collection_grants as given
          where given.access = any (rights)
            and (closed_collections.access <> 'original' or given.original or given.access <> 'view')
            and (given.user_id = (select rag.current_user_id()) or (given.org_id, given.group_name) in (
              select own.org_id, own.group_name from rag.group_memberships() as own))));
    perform set_config('rag.reads_grants', '', true), set_config(setting, caller || closed, true);
  end if;
  if closed <> '{}' then
    return query select unnest(closed::uuid[]);
  end if;
end;
$$;

comment on function rag.closed_collections is
  'The restricted collections of the caller''s orgs in which the caller lacks a right: view, edit, manage, or original (to read '
  'the original files). None of an org that the caller administers. Policies call it once a statement; it reads the grants once '
  'a transaction.';

create function rag.forget_closed_collections()
returns trigger
language plpgsql volatile security invoker set search_path = ''
as $$
begin
  perform set_config('rag.closed_to_' || access, '', true)
  from unnest(array['view', 'edit', 'manage', 'original']) as access;
  return null;
end;
$$;

comment on function rag.forget_closed_collections is
  'Trigger after which rag.closed_collections reads the grants again in this transaction.';

create trigger forget_closed_collections after insert or update or delete on rag.group_members
  for each statement execute function rag.forget_closed_collections();

-- Policies that tenant tables share: one wording, so that an overlay can exchange it in all tables. Each table calls
-- these procedures where it is created. They exist during the migration only (99_grants.sql drops them);
-- tests/sql/test_catalogue.py checks which tables have the policies.

create procedure rag.admit_members(table_name text, label text default null)
language plpgsql security invoker set search_path = ''
as $$
begin
  execute format('alter table rag.%I enable row level security', table_name);
  execute format('alter table rag.%I force row level security', table_name);
  -- Rows of the org that are in no closed collection, and of the private ones those that the user owns; admins of the org use
  -- all. A subplan with a hash: an array would be searched for each row.
  execute format('create policy %1$I on rag.%2$I for all to authenticated using (%3$s) with check (%3$s)',
    'members use their org''s ' || coalesce(label, table_name), table_name,
    'org_id = any (array(select rag.current_org_ids())) and (owner_id is null' || coalesce((
        select format(case
          when table_name in ('collections', 'collection_grants')
            then ' and ((select current_setting(''rag.reads_grants'', true)) = ''true'' or %1$I not in (%2$s))'
          when attnotnull then ' and %1$I not in (%2$s)'
          else ' and (%1$I is null or %1$I not in (%2$s))' end, attname, 'select rag.closed_collections(''view'')')
        from pg_catalog.pg_attribute
        where attrelid = format('rag.%I', table_name)::regclass
          and attname = case table_name when 'collections' then 'id' else 'collection_id' end), '')
      || ' or owner_id = (select rag.current_user_id()) or org_id = any (array(select rag.admin_org_ids())))');
end;
$$;

-- Writes need the right to edit the collection. Owners of private rows may delete them without it.
create procedure rag.require_edit(table_name text)
language plpgsql security invoker set search_path = ''
as $$
declare
  editable constant text := 'collection_id not in (select rag.closed_collections(''edit''))';
  deletable constant text := 'owner_id = (select rag.current_user_id()) or ' || editable;
begin
  execute format('create policy "editors add" on rag.%I as restrictive for insert to authenticated with check (%s)',
    table_name, editable);
  execute format('create policy "editors change" on rag.%I as restrictive for update to authenticated '
    'using (%s) with check (%s)', table_name, deletable, editable);
  execute format('create policy "editors and owners delete" on rag.%I as restrictive for delete to authenticated '
    'using (%s)', table_name, deletable);
end;
$$;

create procedure rag.bind_keys(table_name text)
language plpgsql security invoker set search_path = ''
as $$
begin
  execute format('create policy "a bound key stays in its collection" on rag.%1$I as restrictive for all '
    'to authenticated using (%2$s) with check (%2$s)', table_name,
    '(select rag.bound_collection()) is null or collection_id = (select rag.bound_collection())');
end;
$$;

-- A key reads with one of the scopes, and writes and deletes with documents:write.
create procedure rag.restrict_keys(table_name text, variadic read_scopes text[])
language plpgsql security invoker set search_path = ''
as $$
begin
  execute format('create policy "a key reads and writes with the scopes for it" on rag.%I as restrictive for all '
    'to authenticated using ((select rag.has_scope(%s))) '
    'with check ((select rag.has_scope(''documents:write'')))', table_name,
    (select string_agg(quote_literal(scope), ', ') from unnest(read_scopes) as scope));
  execute format('create policy "a key deletes with documents:write" on rag.%I as restrictive for delete '
    'to authenticated using ((select rag.has_scope(''documents:write'')))', table_name);
end;
$$;

-- Names of private collections: a name that ends in ":u:" and a user's id denotes that user's collection, which only this
-- user and the org's admins may create or name.

create function rag.owner_in_name(name text)
returns uuid
language sql immutable security invoker set search_path = ''
as $$
  select substring(owner_in_name.name from ':u:([0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12})$')::uuid;
$$;

comment on function rag.owner_in_name is
  'The user whose private collection a name denotes, by its last segment: ":u:" and a user''s id. Null for every '
  'other name.';

create function rag.check_owner_in_name(org_id uuid, name text)
returns void
language plpgsql stable security invoker set search_path = ''
as $$
begin
  if name ~ ':u:[^:]*$' and rag.owner_in_name(name) is distinct from rag.current_user_id()
    and check_owner_in_name.org_id not in (select rag.admin_org_ids())
  then
    raise exception 'This name belongs to another user. Choose another name.'
      using errcode = 'PT403', detail = 'another_users_name';
  end if;
end;
$$;

comment on function rag.check_owner_in_name is
  'Raises PT403 for a name that denotes another user''s private collection, unless the caller is an admin.';

create function rag.new_collection_owner(org_id uuid, name text)
returns uuid
language plpgsql stable security invoker set search_path = ''
as $$
begin
  perform rag.check_owner_in_name(new_collection_owner.org_id, new_collection_owner.name);
  if new_collection_owner.name ~ ':u:[^:]*$' and rag.owner_in_name(new_collection_owner.name) is null then
    raise exception 'after :u:, the name must end in the id of a user' using errcode = 'PT400', detail = 'invalid_name';
  end if;
  return rag.owner_in_name(new_collection_owner.name);
end;
$$;

comment on function rag.new_collection_owner is
  'The owner of a new collection of that name, null without a user in the name. Raises what rag.check_owner_in_name '
  'raises, and PT400 for a name that ends in an invalid user id.';

-- Collections: named sets of documents (an index, a namespace or a workspace in the APIs). A collection belongs to an
-- org and, when owner_id is set, to one user in the org. Members write and read through functions
-- (20_manage_collections.sql); a collection is also created with the first document that names it.

create function rag.is_config(value jsonb)
returns boolean
language sql immutable security invoker set search_path = ''
as $$
  select case
    when pg_column_size(value) > 2000 or not rag.is_metadata(value)
      or not rag.is_whole(value -> 'chunk_size', 32, 8000) or not rag.is_whole(value -> 'chunk_overlap', 0, 4000)
      then false
    else coalesce((value -> 'chunk_overlap')::integer < coalesce((value -> 'chunk_size')::integer, 512), true)
      and coalesce(jsonb_typeof(value -> 'embedding_model') = 'string', true)
      and coalesce(length(value ->> 'embedding_model') between 1 and 100, true)
      and coalesce(jsonb_typeof(value -> 'enable_hybrid_search') in ('boolean', 'null'), true)
      and coalesce(jsonb_typeof(value -> 'enable_knowledge_graph') in ('boolean', 'null'), true)
  end;
$$;

comment on function rag.is_config is
  'Whether the value may be a collection''s config: the known keys have the types and bounds that the functions '
  'rely on. Without chunk_size, chunk_overlap must be below 512, the functions'' default.';

create table rag.collections (
  org_id uuid not null references rag.orgs (id) on delete cascade,
  id uuid not null default gen_random_uuid(),
  owner_id uuid,
  created_by uuid not null default rag.creator_id(),
  name text not null check (length(name) between 1 and 255),
  description text check (length(description) <= 2000 and rag.is_visible_text(description)),
  metadata jsonb not null default '{}' check (rag.is_metadata(metadata)),
  config jsonb not null default '{}' check (rag.is_config(config)),
  loading_name text check (length(loading_name) between 1 and 255),
  restricted_by uuid,
  deleted_at timestamptz,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  primary key (org_id, id)
);

comment on table rag.collections is 'Named sets of documents: an index, a namespace or a workspace in the APIs.';
comment on column rag.collections.created_by is 'The user who created it. No permission depends on this.';
comment on column rag.collections.config is
  'Settings for chunking, embedding and search: chunk_size, chunk_overlap, embedding_model, enable_hybrid_search, '
  'enable_knowledge_graph. A missing key takes the deployment''s default.';
comment on column rag.collections.loading_name is
  'While it is loaded from a snapshot: the name that it will have. Until then no name finds it.';
comment on column rag.collections.restricted_by is
  'The user who restricted it to those with a grant (rag.collection_grants); null: every member of the org may view, edit and '
  'manage it. Without meaning for a private collection.';
comment on column rag.collections.deleted_at is
  'When a member deleted it. It then exists only for the owners of private documents in it and for the org''s '
  'admins, until the last of these documents goes (22_delete_collections.sql).';

-- Two users may each have a private "notes"; the org has its own. The name of a deleted collection is free. So is that of a
-- restricted one, or a member would learn of it.
create unique index collections_name on rag.collections (org_id, owner_id, name, restricted_by) nulls not distinct
  where deleted_at is null;

-- rag.closed_collections
create index collections_restricted on rag.collections (org_id, id)
  where restricted_by is not null and owner_id is null and deleted_at is null;

-- rag_remove_deleted_collections: collections that members deleted.
create index collections_deleted on rag.collections (deleted_at) where deleted_at is not null;

call rag.admit_members('collections');

-- A collection comes into being with its first document: writing documents is enough for that.
create policy "a key makes collections with a scope that writes" on rag.collections
  as restrictive for insert to authenticated
  with check ((select rag.has_scope('collections:manage', 'documents:write')));

create policy "a key changes collections with collections:manage" on rag.collections
  as restrictive for update to authenticated
  using ((select rag.has_scope('collections:manage')))
  with check ((select rag.has_scope('collections:manage')));

-- Its documents go with it, whether or not the key may write documents.
create policy "a key deletes collections with collections:manage" on rag.collections
  as restrictive for delete to authenticated
  using ((select rag.has_scope('collections:manage')));

create policy "managers change collections" on rag.collections
  as restrictive for update to authenticated
  using (id not in (select rag.closed_collections('manage')))
  with check (id not in (select rag.closed_collections('manage')));

create policy "managers delete collections" on rag.collections
  as restrictive for delete to authenticated
  using (id not in (select rag.closed_collections('manage')));

create policy "a bound key stays in its collection" on rag.collections
  as restrictive for all to authenticated
  using ((select rag.bound_collection()) is null or id = (select rag.bound_collection()))
  with check ((select rag.bound_collection()) is null or id = (select rag.bound_collection()));

-- Except the row that comes back as deleted (22_delete_collections.sql).
create policy "a collection keeps the name of its creator" on rag.collections
  as restrictive for insert to authenticated
  with check (created_by = (select rag.creator_id()) or deleted_at is not null);

create function rag.collection_by_name(org_id uuid, name text, or_deleted boolean default false)
returns setof rag.collections
language sql stable security invoker set search_path = ''
as $$
  select collections.*
  from rag.collections
  where collections.org_id = collection_by_name.org_id and collections.name = collection_by_name.name
    and collections.loading_name is null and (collections.deleted_at is null or or_deleted)
    and case when rag.owner_in_name(collection_by_name.name) is null
      then collections.owner_id is null or collections.owner_id = rag.current_user_id()
      else collections.owner_id = rag.owner_in_name(collection_by_name.name) end
  order by collections.deleted_at desc nulls first, collections.owner_id nulls last, collections.restricted_by nulls last,
    collections.created_at
  limit 1;
$$;

comment on function rag.collection_by_name is
  'The collection of that name, or no row: that of the user in the name, else the caller''s own before the org''s, '
  'and of the org''s a restricted one first. '
  'A collection that is being loaded has no name yet. or_deleted: a deleted collection that the caller still sees '
  'has its name as long as no other collection has it.';

create function rag.ensure_collection(org_id uuid, name text)
returns rag.collections
language plpgsql volatile security invoker set search_path = ''
as $$
#variable_conflict use_column
declare
  home rag.collections;
begin
  perform rag.check_owner_in_name(ensure_collection.org_id, ensure_collection.name);
  for attempt in 1..2 loop
    select * into home from rag.collection_by_name(ensure_collection.org_id, ensure_collection.name);
    if found then
      perform rag.require_access(home.id, 'edit');
      return home;
    end if;
    perform rag.check_collection_quota(ensure_collection.org_id);
    -- Two writers may meet here: the second inserts nothing and reads what the first made.
    insert into rag.collections (org_id, owner_id, name)
    values (ensure_collection.org_id, rag.new_collection_owner(ensure_collection.org_id, ensure_collection.name),
      ensure_collection.name)
    on conflict do nothing;
  end loop;
  return home;
end;
$$;

comment on function rag.ensure_collection is 'The collection of that name, created if there is none.';

-- Grants on restricted collections: a group or a user may view, edit or manage a collection. `view` reads, `edit` adds, changes
-- and deletes documents, `manage` also changes the grants and the collection. Managers write them, those who may view the
-- collection read them. rag.closed_collections (../10_identity/48_groups.sql) decides by them, for all policies.

create table rag.collection_grants (
  org_id uuid not null,
  id uuid not null default gen_random_uuid(),
  collection_id uuid not null,
  owner_id uuid check (owner_id is null),
  group_name text check (length(group_name) between 1 and 200 and rag.is_visible_text(group_name)),
  user_id uuid,
  access text not null check (access in ('view', 'edit', 'manage')),
  original boolean not null default true,
  created_at timestamptz not null default now(),
  primary key (org_id, id),
  check (num_nonnulls(group_name, user_id) = 1),
  constraint collection_grants_grantee unique nulls not distinct (org_id, collection_id, group_name, user_id),
  foreign key (org_id, collection_id) references rag.collections (org_id, id) on delete cascade
);

comment on table rag.collection_grants is 'Who may view, edit or manage a restricted collection.';
comment on column rag.collection_grants.owner_id is 'Always null: a grant belongs to its collection.';
comment on column rag.collection_grants.group_name is
  'The name of a group (rag.group_memberships), which may have no row in rag.groups.';
comment on column rag.collection_grants.original is
  'Whether the original files may be read too. Those who edit or manage read them in any case.';

call rag.admit_members('groups');
call rag.admit_members('group_members', 'members of groups');
call rag.admit_members('collection_grants', 'grants');
call rag.bind_keys('collection_grants');

create policy "admins manage groups" on rag.groups
  as restrictive for all to authenticated
  using (org_id = any (array(select rag.admin_org_ids())) and (select rag.bound_collection()) is null)
  with check (org_id = any (array(select rag.admin_org_ids())) and (select rag.bound_collection()) is null);

create policy "admins add members of groups" on rag.group_members
  as restrictive for insert to authenticated
  with check (org_id = any (array(select rag.admin_org_ids())) and (select rag.bound_collection()) is null);

create policy "admins remove members of groups, and members leave" on rag.group_members
  as restrictive for delete to authenticated
  using (org_id = any (array(select rag.admin_org_ids())) and (select rag.bound_collection()) is null
    or owner_id = (select rag.caller_id()));

create policy "managers grant" on rag.collection_grants
  as restrictive for insert to authenticated
  with check ((select rag.has_scope('collections:manage'))
    and collection_id not in (select rag.closed_collections('manage')));

create policy "managers change grants" on rag.collection_grants
  as restrictive for update to authenticated
  using ((select rag.has_scope('collections:manage')) and collection_id not in (select rag.closed_collections('manage')))
  with check ((select rag.has_scope('collections:manage')));

create policy "managers revoke" on rag.collection_grants
  as restrictive for delete to authenticated
  using ((select rag.has_scope('collections:manage')) and collection_id not in (select rag.closed_collections('manage')));

create function rag.require_access(collection_id uuid, access text)
returns void
language plpgsql stable security invoker set search_path = ''
as $$
begin
  if require_access.collection_id in (select rag.closed_collections(require_access.access)) then
    raise exception 'You may not % this collection. Ask one of its managers for a grant.', require_access.access
      using errcode = 'PT403', detail = 'access_denied';
  end if;
end;
$$;

comment on function rag.require_access is
  'Raises PT403 for a collection that the caller sees without the right: edit or manage. Row security refuses it too.';

create trigger forget_closed_collections after insert or update or delete on rag.collection_grants
  for each statement execute function rag.forget_closed_collections();

create trigger forget_closed_collections after update of restricted_by, owner_id, deleted_at on rag.collections
  for each statement execute function rag.forget_closed_collections();

create function rag.check_restriction()
returns trigger
language plpgsql volatile security invoker set search_path = ''
as $$
begin
  -- A session of the deployer may restrict every collection.
  if old.restricted_by is null and old.created_by <> rag.creator_id() and rag.current_user_id() is not null
    and old.org_id not in (select rag.admin_org_ids())
  then
    raise exception 'Only its creator and the admins of the org may restrict a collection that all members may use.'
      using errcode = 'PT403', detail = 'access_denied';
  end if;
  return new;
end;
$$;

comment on function rag.check_restriction is
  'Trigger that raises PT403 for a member who would take a collection from the others.';

create trigger check_restriction before update of restricted_by on rag.collections
  for each row when (new.restricted_by is distinct from old.restricted_by)
  execute function rag.check_restriction();

create function rag.restrict_new_collection()
returns trigger
language plpgsql volatile security invoker set search_path = ''
as $$
begin
  if rag.current_user_id() is null or not exists (
    select from rag.orgs where orgs.id = new.org_id and orgs.restricts_collections)
  then
    return null;
  end if;
  -- While the collection is open, its creator may write grants.
  insert into rag.collection_grants (org_id, collection_id, user_id, access)
  values (new.org_id, new.id, new.created_by, 'manage');
  update rag.collections set restricted_by = new.created_by
  where collections.org_id = new.org_id and collections.id = new.id;
  if not found then
    raise exception 'New collections of your org are restricted. Use a key with the scope collections:manage.'
      using errcode = 'PT403', detail = 'missing_scope';
  end if;
  return null;
end;
$$;

comment on function rag.restrict_new_collection is
  'Trigger that restricts a new collection to its creator, in orgs that ask for it (rag.orgs.restricts_collections).';

create trigger restrict_new_collection after insert on rag.collections
  for each row when (new.owner_id is null and new.deleted_at is null and new.restricted_by is null)
  execute function rag.restrict_new_collection();

create function rag.copy_access(older rag.collections, newer rag.collections)
returns void
language plpgsql volatile security invoker set search_path = ''
as $$
begin
  if older.restricted_by is null then
    update rag.collections set restricted_by = null
    where collections.org_id = newer.org_id and collections.id = newer.id;
    delete from rag.collection_grants as given where given.org_id = newer.org_id and given.collection_id = newer.id;
    return;
  end if;
  insert into rag.collection_grants (org_id, collection_id, group_name, user_id, access, original)
  select given.org_id, newer.id, given.group_name, given.user_id, given.access, given.original
  from rag.collection_grants as given
  where given.org_id = older.org_id and given.collection_id = older.id
  on conflict do nothing;
  update rag.collections set restricted_by = older.restricted_by
  where collections.org_id = newer.org_id and collections.id = newer.id;
end;
$$;

comment on function rag.copy_access is 'Give a collection the restriction and the grants of another, which it replaces.';

create function public.rag_get_access(collection_id uuid)
returns jsonb
language plpgsql stable security invoker set search_path = ''
as $$
declare
  is_admitted constant boolean := rag.begin_call();
  home constant rag.collections := rag.get_collection(rag_get_access.collection_id);
begin
  perform rag.require_scope('documents:read', 'collections:manage');
  return jsonb_build_object('collection_id', home.id, 'restricted', home.restricted_by is not null and home.owner_id is null,
    'access', case
      when home.owner_id is not null or home.id not in (select rag.closed_collections('manage')) then 'manage'
      when home.id not in (select rag.closed_collections('edit')) then 'edit'
      else 'view' end,
    'grants', (
      select coalesce(jsonb_agg(jsonb_build_object('group', given.group_name, 'user_id', given.user_id,
        'access', given.access, 'original', given.original) order by given.group_name, given.user_id), '[]')
      from rag.collection_grants as given
      where given.org_id = home.org_id and given.collection_id = home.id));
end;
$$;

comment on function public.rag_get_access is
  'Who may use a collection: {"collection_id", "restricted", "access", "grants": [{"group", "user_id", "access", "original"}]}. '
  'access: the right of the caller. PT404 for a collection that the caller may not view.';

create function public.rag_put_access(collection_id uuid, restricted boolean, grants jsonb default '[]')
returns jsonb
language plpgsql volatile security invoker set search_path = ''
as $$
declare
  is_admitted constant boolean := rag.begin_call();
  home constant rag.collections := rag.get_collection(rag_put_access.collection_id);
begin
  perform rag.require_scope('collections:manage'), rag.require_access(home.id, 'manage');
  perform rag.check_json('grants', grants, 100000);
  if home.owner_id is not null then
    raise exception 'A private collection has no grants. Choose a collection of the org.'
      using errcode = 'PT400', detail = 'private_collection';
  elsif coalesce(jsonb_typeof(grants), 'null') <> 'array' or restricted is null or not restricted and grants <> '[]'
    or jsonb_array_length(grants) > 200
  then
    raise exception 'grants must be a list of at most 200 grants, and empty for a collection that is not restricted'
      using errcode = 'PT400', detail = 'invalid_grants';
  end if;
  -- In this order, the caller has the right to manage for each statement.
  if not restricted then
    update rag.collections set restricted_by = null where collections.org_id = home.org_id and collections.id = home.id;
  end if;
  insert into rag.collection_grants as given (org_id, collection_id, group_name, user_id, access, original)
  select home.org_id, home.id, wanted."group", wanted.user_id, wanted.access, coalesce(wanted.original, true)
  from jsonb_to_recordset(grants) as wanted ("group" text, user_id uuid, access text, original boolean)
  on conflict on constraint collection_grants_grantee
    do update set access = excluded.access, original = excluded.original;
  delete from rag.collection_grants as given
  where given.org_id = home.org_id and given.collection_id = home.id
    and not exists (
      select from jsonb_to_recordset(grants) as wanted ("group" text, user_id uuid)
      where (wanted."group", wanted.user_id) is not distinct from (given.group_name, given.user_id));
  if restricted and home.restricted_by is null then
    update rag.collections set restricted_by = rag.current_user_id()
    where collections.org_id = home.org_id and collections.id = home.id;
  end if;
  if home.id in (select rag.closed_collections('manage')) then
    raise exception 'You would no longer manage the collection. Keep a grant to manage for yourself or one of your groups.'
      using errcode = 'PT400', detail = 'own_grant';
  end if;
  return public.rag_get_access(home.id);
exception
  when check_violation or not_null_violation or invalid_text_representation then
    raise exception 'A grant has either a group or a user_id, and the access view, edit or manage.'
      using errcode = 'PT400', detail = 'invalid_grants';
  when cardinality_violation then
    raise exception 'A group or a user has two grants. Send one for each.' using errcode = 'PT400', detail = 'invalid_grants';
  when unique_violation then
    raise exception 'A collection of this name already exists. Choose another name.'
      using errcode = 'PT409', detail = 'duplicate_collection';
end;
$$;

comment on function public.rag_put_access is
  'Restrict a collection to grants, in place of the earlier ones, or open it to all members of the org. PT403 for a caller who '
  'may not manage it, PT400 for invalid grants, for a private collection, and for grants without one by which the caller '
  'manages it, PT409 for a name that is taken among the collections of all members.';

create function public.rag_list_groups(org_id uuid default null)
returns jsonb
language plpgsql stable security invoker set search_path = ''
as $$
declare
  is_admitted constant boolean := rag.begin_call();
  org constant uuid := rag.resolve_org(rag_list_groups.org_id);
begin
  perform rag.require_admin(org);
  return jsonb_build_object(
    'restricts_collections', (select orgs.restricts_collections from rag.orgs where orgs.id = org),
    'groups', (
      select coalesce(jsonb_agg(jsonb_build_object('name', groups.name, 'description', groups.description,
        'user_ids', array(
          select group_members.owner_id from rag.group_members
          where group_members.org_id = org and group_members.group_name = groups.name
          order by group_members.owner_id)) order by groups.name), '[]')
      from rag.groups where groups.org_id = org));
end;
$$;

comment on function public.rag_list_groups is
  'For admins: {"restricts_collections", "groups": [{"name", "description", "user_ids"}]}. Groups of claims have no row.';

create function public.rag_put_group(
  name text, user_ids uuid[], description text default null, org_id uuid default null
)
returns void
language plpgsql volatile security invoker set search_path = ''
as $$
declare
  is_admitted constant boolean := rag.begin_call();
  org constant uuid := rag.resolve_org(rag_put_group.org_id);
begin
  perform rag.require_admin(org);
  if user_ids is null or cardinality(user_ids) > 10000 then
    raise exception 'user_ids must be a list of at most 10000 ids' using errcode = 'PT400', detail = 'invalid_group';
  end if;
  insert into rag.groups (org_id, name, description) values (org, rag_put_group.name, rag_put_group.description)
  on conflict on constraint groups_pkey do update set description = excluded.description;
  delete from rag.group_members
  where group_members.org_id = org and group_members.group_name = rag_put_group.name
    and group_members.owner_id <> all (user_ids);
  insert into rag.group_members (org_id, group_name, owner_id)
  select distinct org, rag_put_group.name, wanted.id from unnest(user_ids) as wanted (id)
  on conflict do nothing;
exception
  when check_violation or not_null_violation then
    raise exception 'A group has a name of 1 to 200 visible characters, and a description of at most 500.'
      using errcode = 'PT400', detail = 'invalid_group';
  when foreign_key_violation then
    raise exception 'There is no user with this id. Check the id.' using errcode = 'PT404', detail = 'user_not_found';
end;
$$;

comment on function public.rag_put_group is
  'For admins: create a group, or replace its members and description. PT404 for an unknown user of Supabase Auth.';

create function public.rag_delete_group(name text, org_id uuid default null)
returns void
language plpgsql volatile security invoker set search_path = ''
as $$
declare
  is_admitted constant boolean := rag.begin_call();
  org constant uuid := rag.resolve_org(rag_delete_group.org_id);
begin
  perform rag.require_admin(org);
  delete from rag.collection_grants as given where given.org_id = org and given.group_name = rag_delete_group.name;
  delete from rag.groups where groups.org_id = org and groups.name = rag_delete_group.name;
  if not found then
    raise exception 'There is no such group. Check its name.' using errcode = 'PT404', detail = 'group_not_found';
  end if;
end;
$$;

comment on function public.rag_delete_group is
  'For admins: delete a group with its members and grants. Its collections stay restricted. PT404 for an unknown group.';

create function public.rag_restrict_new_collections(restricts boolean, org_id uuid default null)
returns void
language plpgsql volatile security invoker set search_path = ''
as $$
declare
  is_admitted constant boolean := rag.begin_call();
  org constant uuid := rag.resolve_org(rag_restrict_new_collections.org_id);
begin
  perform rag.require_admin(org);
  update rag.orgs set restricts_collections = coalesce(restricts, false) where orgs.id = org;
end;
$$;

comment on function public.rag_restrict_new_collections is
  'For admins: whether new collections of the org are restricted to their creators.';

-- Documents: a call, a mail, a page. A document keeps its converted text, so that the span of every chunk can be
-- checked against it, and the fields that searches filter by. rag_put_documents writes and replaces documents; searches
-- read them when they return rows. owner_id null: the whole org sees it.

create table rag.documents (
  org_id uuid not null,
  id uuid not null default rag.time_ordered_id(),
  collection_id uuid not null,
  owner_id uuid,
  created_by uuid not null default rag.creator_id(),
  external_id text check (length(external_id) between 1 and 500),
  source_type text not null default 'doc' check (source_type ~ '^[A-Za-z0-9_-]{1,64}$'),
  title text not null check (length(title) between 1 and 1000 and title !~ '[\n\t]' and rag.is_visible_text(title)),
  uri text check (length(uri) <= 2000 and uri ~ '^https?://[^[:space:]]+$' and rag.is_visible_text(uri)),
  lang text check (lang ~ '^[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*$' and length(lang) <= 35),
  occurred_at timestamptz check (occurred_at >= '0001-01-02Z' and occurred_at < '9999-12-31Z'),
  origin text check (length(origin) between 1 and 200 and rag.is_visible_text(origin)),
  author text check (length(author) between 1 and 200 and rag.is_visible_text(author)),
  state text check (length(state) between 1 and 200 and rag.is_visible_text(state)),
  labels text[] not null default '{}' check (
    cardinality(labels) <= 100 and array_position(labels, null) is null
    and length(array_to_string(labels, '')) <= 10000 and rag.is_visible_text(array_to_string(labels, ' '))
  ),
  metadata jsonb not null default '{}' check (rag.is_metadata(metadata)),
  content text not null check (length(content) <= 20000000 and rag.is_visible_text(content)),
  content_hash text not null check (content_hash ~ '^[0-9a-f]{64}$'),
  status text not null default 'completed' check (status in ('processing', 'completed', 'failed')),
  error_code text check (error_code ~ '^[a-z_]{1,40}$'),
  error_message text check (length(error_message) <= 500 and rag.is_visible_text(error_message)),
  filename text check (length(filename) between 1 and 512 and filename !~ '[\n\t]' and rag.is_visible_text(filename)),
  content_type text check (length(content_type) between 1 and 255 and rag.is_visible_text(content_type)),
  size_bytes bigint check (size_bytes >= 0),
  processing_info jsonb not null default '{}' check (
    pg_column_size(processing_info) <= 4000 and rag.is_metadata(processing_info)
  ),
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  primary key (org_id, id),
  -- No cascade: the trigger below deletes a collection's documents.
  foreign key (org_id, collection_id) references rag.collections (org_id, id)
);

comment on table rag.documents is 'Documents with their converted text and the fields that searches filter by.';
comment on column rag.documents.created_by is 'The user who created it. No permission depends on this.';
comment on column rag.documents.external_id is
  'The caller''s own name for it, when there is one: putting the same name again replaces the document.';
comment on column rag.documents.uri is 'A link that a page may show: no javascript: or data: address.';
comment on column rag.documents.occurred_at is
  'The document''s own date (of the call, of the mail), not the date of its ingestion. Within what readers in other '
  'languages can represent: one document must not break a whole search.';
comment on column rag.documents.origin is
  'The source system of the document (github, slack); the next columns: its author and its state (open, merged).';
comment on column rag.documents.content_hash is
  'SHA-256 of the text; of a document with an original (30_original_files.sql), of the original''s bytes.';
comment on column rag.documents.status is
  'The ingestion status of the latest version. Before completion, searches find the previous version.';
comment on column rag.documents.error_code is
  'The error code of a failed ingestion; the next column has the message.';
comment on column rag.documents.filename is 'The name of the uploaded file; null for a document without a file.';

-- rag_put_documents: replace by name. The owner is part of the key, so that one user's private name
-- neither blocks nor betrays another's.
create unique index documents_external_id
  on rag.documents (org_id, collection_id, owner_id, external_id) nulls not distinct
  where external_id is not null;

-- The keyword half of rag_search, for the documents that its filters leave; and deleting a collection.
create index documents_by_scope on rag.documents (org_id, collection_id, source_type, occurred_at)
  include (owner_id, lang, id);

call rag.admit_members('documents');
call rag.bind_keys('documents');
call rag.require_edit('documents');

create function rag.deleted_collection()
returns uuid
language sql stable security invoker set search_path = ''
as $$
  select nullif(current_setting('rag.deleted_collection', true), '')::uuid
  where rag.has_scope('collections:manage');
$$;

comment on function rag.deleted_collection is
  'The collection that the running statement deletes; null outside of the trigger '
  'rag.delete_documents_of_collection. A key that may delete a collection may delete the documents in it.';

create policy "a key reads and writes with the scopes for it" on rag.documents
  as restrictive for all to authenticated
  using ((select rag.has_scope('documents:read', 'documents:write', 'retrievals:read', 'chat:read'))
    or collection_id = (select rag.deleted_collection()))
  with check ((select rag.has_scope('documents:write')));

create policy "a key deletes with documents:write" on rag.documents
  as restrictive for delete to authenticated
  using ((select rag.has_scope('documents:write')) or collection_id = (select rag.deleted_collection()));

-- Functions to create, list and change collections, within the tier's quota. They run as their caller: row security
-- decides which collections a caller sees, and which documents are counted.

create type rag.collection as (
  id uuid, org_id uuid, owner_id uuid, created_by uuid, name text, description text, metadata jsonb, config jsonb,
  document_count bigint, created_at timestamptz, updated_at timestamptz
);

comment on type rag.collection is 'A collection as a list returns it.';

create function rag.render(collection rag.collections)
returns rag.collection
language sql stable security invoker set search_path = ''
as $$
  select collection.id, collection.org_id, collection.owner_id, collection.created_by, collection.name,
    collection.description, collection.metadata, collection.config,
    (select count(*) from rag.documents
      where documents.org_id = collection.org_id and documents.collection_id = collection.id),
    collection.created_at, collection.updated_at;
$$;

comment on function rag.render(rag.collections) is 'A collection as a list returns it.';

create function rag.get_collection(collection_id uuid)
returns rag.collections
language plpgsql stable security invoker set search_path = ''
as $$
declare
  found_collection rag.collections;
begin
  select * into found_collection
  from rag.collections
  where org_id = any (array(select rag.current_org_ids())) and id = get_collection.collection_id;
  if not found then
    raise exception 'There is no such collection. Check its id or name.'
      using errcode = 'PT404', detail = 'collection_not_found';
  end if;
  return found_collection;
end;
$$;

comment on function rag.get_collection is 'The collection of that id; PT404 for one that the caller does not see.';

create function public.rag_create_collection(
  name text, description text default null, metadata jsonb default '{}', config jsonb default '{}',
  org_id uuid default null, private boolean default false
)
returns setof rag.collection
language plpgsql volatile security invoker set search_path = ''
as $$
#variable_conflict use_variable
declare
  made rag.collections;
  owner_id uuid;
begin
  perform rag.begin_call();
  perform rag.check_json('metadata', metadata, 65536);
  config := jsonb_strip_nulls(coalesce(config, '{}'));
  perform rag.check_config(config, config);
  org_id := rag.resolve_org(org_id);
  perform rag.check_name(name);
  owner_id := coalesce(rag.new_collection_owner(org_id, name), case when private then rag.current_user_id() end);
  perform rag.check_collection_quota(org_id);
  insert into rag.collections (org_id, owner_id, name, description, metadata, config)
  values (org_id, owner_id, name, description, coalesce(metadata, '{}'), config)
  on conflict do nothing
  returning * into made;
  if made.id is null then
    raise exception 'A collection of this name already exists. Choose another name.'
      using errcode = 'PT409', detail = 'duplicate_collection';
  end if;
  return next rag.render(made);
end;
$$;

comment on function public.rag_create_collection is
  'Create a collection, in the caller''s only org unless one is given. private: only its creator and the org''s '
  'admins see it. PT409 for a name that is taken, PT429 above the tier''s number of collections.';

create function rag.check_config(config jsonb, changes jsonb)
returns void
language plpgsql stable security invoker set search_path = ''
as $$
begin
  if not rag.is_config(config) then
    raise exception 'config: chunk_size must be 32 to 8000, chunk_overlap 0 to 4000 and below chunk_size, '
      'embedding_model a string, enable_hybrid_search and enable_knowledge_graph booleans; at most 2000 bytes in all'
      using errcode = 'PT400', detail = 'invalid_config';
  end if;
  perform rag.check_models(array[changes ->> 'embedding_model']);
end;
$$;

comment on function rag.check_config is
  'Raises PT400 for an invalid config (rag.is_config). changes: the part of the config that this call sets; its '
  'embedding model must be one of the deployment''s.';

create function rag.check_name(name text)
returns void
language plpgsql immutable security invoker set search_path = ''
as $$
begin
  if not rag.is_visible_text(name) then
    raise exception 'a name must not have invisible characters' using errcode = 'PT400', detail = 'invalid_name';
  end if;
end;
$$;

comment on function rag.check_name is
  'Raises PT400 for a name with invisible characters. (The table does not check it: a collection that was created '
  'with a document may have one.)';

create function rag.check_collection_quota(org_id uuid)
returns void
language plpgsql volatile security invoker set search_path = ''
as $$
declare
  allowed constant integer := (rag.org_tier(org_id)).collections;
begin
  if allowed is null then
    return;
  end if;
  perform pg_advisory_xact_lock(hashtextextended('rag.collections ' || org_id::text, 0));
  if allowed <= (
    select count(*)
    from rag.collections
    where collections.org_id = check_collection_quota.org_id and collections.deleted_at is null
  ) then
    raise exception 'The tier of your org allows % collections. Delete a collection, or ask for a larger tier.', allowed
      using errcode = 'PT429', detail = 'collection_limit_reached';
  end if;
end;
$$;

comment on function rag.check_collection_quota is
  'Raises PT429 if the org''s tier permits no further collection. It locks, so that two concurrent calls do not '
  'both count the last place as free.';

create function public.rag_list_collections(
  "limit" integer default 20, "offset" integer default 0, sort_by text default 'created_at',
  "order" text default 'desc'
)
returns jsonb
language plpgsql stable security invoker set search_path = ''
as $$
begin
  perform rag.begin_call(), rag.require_scope('documents:read', 'collections:manage');
  perform rag.check_page("limit", "offset", "order", sort_by, array['created_at', 'name', 'document_count']);
  return (
    with placed as (
      select shown.*, count(*) over () as total, row_number() over (
        order by case sort_by when 'name' then shown.name end, case sort_by
          when 'created_at' then shown.created_at end, case sort_by
          when 'document_count' then shown.document_count end, shown.id) as position
      from rag.collections
      cross join lateral rag.render(collections) as shown
      where collections.org_id = any (array(select rag.current_org_ids())) and collections.loading_name is null
    ), page as (
      select placed.*, case "order" when 'desc' then -position else position end as turn
      from placed
      order by turn
      limit "limit" offset "offset"
    )
    select jsonb_build_object(
      'total', (select count(*) from placed),
      'collections', coalesce(jsonb_agg(to_jsonb(page) - array['total', 'position', 'turn'] order by page.turn), '[]'))
    from page);
end;
$$;

comment on function public.rag_list_collections is
  '{"total", "collections": [...]}: a page of those that the caller sees, and how many there are.';

create function rag.check_page("limit" integer, "offset" integer, "order" text, sort_by text, sortable text[])
returns void
language plpgsql immutable security invoker set search_path = ''
as $$
begin
  if "limit" is null or "limit" not between 1 and 100 then
    raise exception 'limit must be between 1 and 100' using errcode = 'PT400', detail = 'invalid_limit';
  elsif "offset" is null or "offset" < 0 then
    raise exception 'offset must be at least 0' using errcode = 'PT400', detail = 'invalid_offset';
  elsif "order" is null or "order" not in ('asc', 'desc') then
    raise exception 'order must be asc or desc' using errcode = 'PT400', detail = 'invalid_order';
  elsif sort_by is null or not sort_by = any (sortable) then
    raise exception 'sort_by must be one of %', array_to_string(sortable, ', ')
      using errcode = 'PT400', detail = 'invalid_sort_by';
  end if;
end;
$$;

comment on function rag.check_page is 'Raises PT400 for an invalid page.';

create function public.rag_get_collection(collection_id uuid)
returns setof rag.collection
language plpgsql stable security invoker set search_path = ''
as $$
begin
  -- Retrieval looks its collection up with the scope retrievals:read.
  perform rag.begin_call(), rag.require_scope('documents:read', 'collections:manage', 'retrievals:read');
  return query
    select shown.* from rag.render(rag.get_collection(rag_get_collection.collection_id)) as shown;
end;
$$;

comment on function public.rag_get_collection is 'A collection; PT404 for one that the caller does not see.';

create function public.rag_update_collection(
  collection_id uuid, name text default null, description text default null, metadata jsonb default null,
  config jsonb default null
)
returns setof rag.collection
language plpgsql volatile security invoker set search_path = ''
set statement_timeout = '60s'
as $$
#variable_conflict use_variable
declare
  is_admitted constant boolean := rag.begin_write();
  present rag.collections := rag.get_collection(collection_id);
  was_graphed constant boolean := rag.is_in_graph(present.org_id, present.id);
  changed rag.collections;
begin
  perform rag.require_access(present.id, 'manage');
  perform rag.check_json('metadata', metadata, 65536), rag.check_json('config', config, 2000);
  perform rag.check_config(jsonb_strip_nulls(present.config || coalesce(config, '{}')), config), rag.check_name(name);
  if rag.new_collection_owner(present.org_id, name) <> coalesce(present.owner_id, '00000000-0000-0000-0000-000000000000') then
    raise exception 'a name that ends in :u: and the id of a user must belong to a private collection of that user'
      using errcode = 'PT400', detail = 'invalid_name';
  end if;
  if config ? 'embedding_model'
    and config -> 'embedding_model' is distinct from present.config -> 'embedding_model'
    and (rag.render(present)).document_count > 0
  then
    raise exception 'The collection has documents of another embedding model. Create another collection for this model.'
      using errcode = 'PT409', detail = 'collection_not_empty';
  end if;
  begin
    update rag.collections as renewed
    set name = coalesce(rag_update_collection.name, renewed.name),
      description = coalesce(rag_update_collection.description, renewed.description),
      metadata = coalesce(rag_update_collection.metadata, renewed.metadata),
      config = jsonb_strip_nulls(renewed.config || coalesce(rag_update_collection.config, '{}')),
      updated_at = clock_timestamp()
    where renewed.org_id = present.org_id and renewed.id = present.id
    returning renewed.* into changed;
  exception when unique_violation then
    raise exception 'A collection of this name already exists. Choose another name.'
      using errcode = 'PT409', detail = 'duplicate_collection';
  end;
  if changed.id is null then
    raise exception 'The API key may not change this collection. Check its scopes and its collection.'
      using errcode = 'PT403', detail = 'missing_scope';
  end if;
  if config ? 'enable_knowledge_graph' then
    perform rag.on_graph_setting_changed(changed, was_graphed);
  end if;
  return next rag.render(changed);
end;
$$;

comment on function public.rag_update_collection is
  'Change a collection. Null leaves a field as it is. metadata replaces the previous one; config is merged by '
  'key, and a null removes a key. enable_knowledge_graph adds the documents to the graph, or removes them from '
  'it (70_graph). PT409 for a name that is taken, and for another embedding model once there are documents.';

-- Deletion of collections, with or without their documents. Private documents of other users stay, and keep the deleted
-- collection until the last of them is gone.

create function public.rag_delete_collection(collection_id uuid, "cascade" boolean default false)
returns void
language plpgsql volatile security invoker set search_path = ''
set statement_timeout = '60s'
as $$
declare
  is_admitted constant boolean := rag.begin_write();
  gone rag.collections := rag.get_collection(collection_id);
begin
  perform rag.require_access(gone.id, 'manage');
  -- For the trigger that deletes the documents.
  perform set_config('rag.cascade', coalesce("cascade", false)::text, true);
  delete from rag.collections where org_id = gone.org_id and id = gone.id;
  if not found then
    raise exception 'The API key may not delete this collection. Check its scopes and its collection.'
      using errcode = 'PT403', detail = 'missing_scope';
  end if;
  perform set_config('rag.cascade', '', true);
end;
$$;

comment on function public.rag_delete_collection is
  'Delete a collection. cascade: its documents are deleted too; without cascade, PT409 if the collection has '
  'documents. Unless the caller is an admin, private documents of others are neither deleted nor counted: their '
  'owners keep the collection (22_delete_collections.sql).';

-- For collections that a member deleted. Row security applies to the documents in this condition.
create policy "a deleted collection is seen by those who see documents in it" on rag.collections
  as restrictive for select to authenticated
  using (deleted_at is null or (select current_setting('rag.reads_grants', true)) = 'true' or exists (
    select from rag.documents
    where documents.org_id = collections.org_id and documents.collection_id = collections.id));

-- Private documents of others stay, and so must the collection. A member does not see whether there are any, and must
-- not learn it. So the row of every collection that a member deletes comes back as deleted, with its id: whether
-- documents are left in it makes no difference to the statement, its errors, or its duration. Keys, webhooks and
-- sessions refer to the row that was deleted, and go or change with it. An admin sees all documents and leaves none;
-- a database session without a user leaves none either. The worker removes deleted collections without documents.
create function rag.delete_documents_of_collection()
returns trigger
language plpgsql volatile security invoker set search_path = ''
as $$
declare
  deleted rag.collections := old;
begin
  if current_user = 'rag_worker' then
    return null;
  end if;
  perform set_config('rag.deleted_collection', old.id::text, true);
  delete from rag.documents where documents.org_id = old.org_id and documents.collection_id = old.id;
  if found and current_setting('rag.cascade', true) = 'false' then
    raise exception 'The collection has documents. Delete them first, or set cascade to delete them too.'
      using errcode = 'PT409', detail = 'collection_not_empty';
  end if;
  perform set_config('rag.deleted_collection', '', true);
  if rag.current_user_id() is not null and old.org_id not in (select rag.admin_org_ids()) then
    deleted.deleted_at := coalesce(old.deleted_at, now());
    insert into rag.collections values (deleted.*);
  end if;
  return null;
end;
$$;

comment on function rag.delete_documents_of_collection is
  'Deletes the collection''s documents that the caller may delete. It runs for every statement that deletes a '
  'collection. PT409 if there are such documents and rag_delete_collection was called without cascade (rag.cascade '
  'is false).';

-- Triggers fire in the order of their names: this trigger before the check of the foreign key (RI_ConstraintTrigger).
create trigger "Documents are deleted with their collection" after delete on rag.collections
  for each row execute function rag.delete_documents_of_collection();

create function rag.require_undeleted_collection()
returns trigger
language plpgsql volatile security invoker set search_path = ''
as $$
begin
  if exists (
    select from added
    where not exists (
      select from rag.collections
      where collections.org_id = added.org_id and collections.id = added.collection_id
        and collections.deleted_at is null)
  ) then
    raise exception 'The collection was deleted. Choose another collection.' using errcode = '23503';
  end if;
  return null;
end;
$$;

comment on function rag.require_undeleted_collection is
  'Trigger that raises a foreign key violation if another transaction has deleted the collection of an inserted '
  'document.';

create trigger require_undeleted_collection after insert on rag.documents
  referencing new table as added
  for each statement execute function rag.require_undeleted_collection();

create policy "the worker sees deleted collections" on rag.collections
  for select to rag_worker using (deleted_at is not null);

create policy "the worker removes deleted collections" on rag.collections
  for delete to rag_worker using (deleted_at is not null);

create function public.rag_remove_deleted_collections()
returns bigint
language sql volatile security invoker set search_path = ''
as $$
  -- Raises PT401 for a token of another issuer.
  select rag.current_user_id();
  with removed as (
    delete from rag.collections
    where collections.deleted_at is not null and collections.org_id <> all (array(select rag.paused_org_ids()))
      and not exists (
      select from rag.documents
        where documents.org_id = collections.org_id and documents.collection_id = collections.id)
    returning 1
  )
  select count(*) from removed;
$$;

comment on function public.rag_remove_deleted_collections is
  'For the worker: remove the deleted collections that have no document, and return their number. Those of paused orgs '
  'stay.';

-- Chunks: passages of documents with their embeddings, which searches return. A chunk repeats its document's owner and
-- filter fields, because under row security only columns of the scanned table, compared by leakproof operators (= on
-- uuid and text, < on timestamptz), reach an index. Only rag_put_documents writes chunks, from the row of the document,
-- so the copies cannot disagree.

create function rag.is_chunk_location(value jsonb)
returns boolean
language sql immutable security invoker set search_path = ''
as $$
  select pg_column_size(value) <= 4000 and rag.is_metadata(value)
    and rag.is_whole(value -> 'page_number', 0, 2147483647) and rag.is_whole(value -> 'page_end', 0, 2147483647)
    and coalesce(jsonb_typeof(value -> 'section') = 'string', true);
$$;

comment on function rag.is_chunk_location is
  'Whether the value may be a chunk''s location in its document: page_number, page_end and section have the types '
  'that the functions rely on.';

create table rag.chunks (
  org_id uuid not null,
  id uuid not null default rag.time_ordered_id(),
  document_id uuid not null,
  collection_id uuid not null,
  owner_id uuid,
  -- The keyword index has 22 bits for it.
  ordinal integer not null check (ordinal between 0 and 4194303),
  content text not null check (length(content) <= 100000 and rag.is_visible_text(content)),
  span_start integer not null check (span_start >= 0),
  span_end integer not null,
  token_count integer not null check (token_count >= 0),
  source_type text not null,
  lang text,
  occurred_at timestamptz,
  embedding_model text not null check (length(embedding_model) between 1 and 100),
  embedding extensions.halfvec not null
    check (extensions.l2_norm(embedding) > 0 and extensions.vector_dims(embedding) between 256 and 3072),
  metadata jsonb not null default '{}' check (rag.is_chunk_location(metadata)),
  in_hnsw boolean not null default true,
  primary key (org_id, id),
  -- With token_count, so that the sum of a document's tokens is read from the index alone.
  unique (org_id, document_id, ordinal) include (token_count),
  foreign key (org_id, document_id) references rag.documents (org_id, id) on delete cascade,
  check (span_end > span_start)
);

comment on table rag.chunks is 'Passages of documents with their embeddings, which searches return.';
comment on column rag.chunks.content is 'The text of its span: rag.cut_texts.';
comment on column rag.chunks.span_start is 'Characters [span_start, span_end) of the document''s content.';
comment on column rag.chunks.embedding is
  'With the dimensions of its model (rag.dimensions_of). Shorter embeddings are padded with zeros, which leaves every '
  'cosine as it was.';
comment on column rag.chunks.metadata is
  'The position in the document: page_number, page_end, section; header, header_start, header_end (rag.cut_headers).';
comment on column rag.chunks.in_hnsw is
  'Whether the HNSW index has it; the worker adds chunks later (57_chunks_outside_hnsw.sql).';

-- Vectors are stored in the row: an exact scan reads every vector, and fetching each from TOAST takes 2 to 5
-- times as long. A page has room for two rows with 1,536 dimensions. A text that fits into half a page together with its
-- vector stays in the row; a longer text moves to TOAST.
alter table rag.chunks alter column embedding set storage plain;
alter table rag.chunks set (toast_tuple_target = 4080);

-- rag_match: counts and scans the rows that row security and the filters leave.
create index chunks_by_scope on rag.chunks (org_id, embedding_model, source_type, occurred_at)
  include (owner_id, lang, collection_id, document_id);

-- The same for one of an org's many collections.
create index chunks_by_collection on rag.chunks (org_id, collection_id, embedding_model)
  include (owner_id, lang, source_type, occurred_at, document_id);

-- rag_match, for orgs too large to scan. rag.set_dimensions creates the same for another number of dimensions.
create index chunks_by_embedding_1536 on rag.chunks
  using hnsw ((embedding::extensions.halfvec(1536)) extensions.halfvec_cosine_ops)
  where in_hnsw and extensions.vector_dims(embedding) = 1536;

-- rag_match and the worker: the chunks that are not in that index yet.
create index chunks_outside_hnsw on rag.chunks (org_id, embedding_model) where not in_hnsw;

call rag.admit_members('chunks');
call rag.restrict_keys('chunks', 'documents:read', 'documents:write', 'retrievals:read', 'chat:read');
call rag.bind_keys('chunks');
call rag.require_edit('chunks');

create function rag.cut_texts(content text, chunks jsonb)
returns text[]
language plpgsql stable security invoker set search_path = ''
as $$
declare
  bytes constant bytea := convert_to(content, 'UTF8');
  size constant integer := length(bytes);
  -- The first byte and the first character of each block, both counted from 0; last, the end of the text.
  first_bytes integer[] := array[0];
  first_characters integer[] := array[0];
  next_byte integer := 0;
  characters integer := 0;
  starts integer[];
  ends integer[];
begin
  for block in 1..(size + 4095) / 4096 loop
    next_byte := least(block * 4096, size);
    -- A character's bytes after its first begin with the bits 10.
    while next_byte < size and get_byte(bytes, next_byte) & 192 = 128 loop
      next_byte := next_byte + 1;
    end loop;
    characters := characters + length(convert_from(
      substring(bytes from first_bytes[block] + 1 for next_byte - first_bytes[block]), 'UTF8'));
    first_bytes[block + 1] := next_byte;
    first_characters[block + 1] := characters;
  end loop;
  select array_agg((item.body ->> 'span_start')::integer order by item.position),
    array_agg((item.body ->> 'span_end')::integer order by item.position)
  into starts, ends
  from jsonb_array_elements(chunks) with ordinality as item (body, position);
  if exists (
    select from unnest(starts, ends) as span (first, last)
    where (span.first >= 0 and span.last > span.first and span.last <= characters) is not true)
  then
    raise exception 'the span of a chunk must be within its document' using errcode = 'PT400', detail = 'span_outside';
  elsif (select sum(span.last - span.first) from unnest(starts, ends) as span (first, last))
    > greatest(8::bigint * characters, 1000000)
  then
    raise exception 'the chunks must have at most eight times the length of their document'
      using errcode = 'PT400', detail = 'spans_too_long';
  end if;
  return array(
    select substr(
      convert_from(substring(bytes from first_bytes[held.first] + 1
        for first_bytes[held.last + 1] - first_bytes[held.first]), 'UTF8'),
      span.first - first_characters[held.first] + 1, span.last - span.first)
    from unnest(starts, ends) with ordinality as span (first, last, position)
    cross join lateral (
      select width_bucket(span.first, first_characters) as first,
        width_bucket(span.last - 1, first_characters) as last
      offset 0
    ) as held
    order by span.position);
end;
$$;

comment on function rag.cut_texts is
  'The texts of chunks, {span_start, span_end} in characters of the document''s text, in their order. PT400 for a '
  'span that is not within the text, and for spans that repeat the text many times: a short call would need much '
  'memory. Postgres finds a character of a text by counting from its beginning: for every chunk of a long text, '
  'that takes quadratic time. Here the text is read once, in blocks of 4,096 bytes, and a chunk is cut from its '
  'blocks.';

create function rag.cut_headers(content text, chunks jsonb)
returns text[]
language plpgsql stable security invoker set search_path = ''
as $$
declare
  spans jsonb;
  headers text[];
begin
  if not jsonb_path_exists(chunks, '$[*].metadata ? (exists(@.header_start) || exists(@.header_end))') then
    return null;
  elsif exists (
    select from jsonb_array_elements(chunks) as item (body)
    cross join lateral (
      select item.body -> 'metadata' -> 'header_start' as header_start,
        item.body -> 'metadata' -> 'header_end' as header_end
    ) as span
    where (span.header_start is not null or span.header_end is not null) and case
      when span.header_start is null or span.header_end is null then true
      when not rag.is_whole(span.header_start, 0, 2147483647) or not rag.is_whole(span.header_end, 0, 2147483647)
        then true
      else span.header_end::integer not between span.header_start::integer + 1 and span.header_start::integer + 500
        or span.header_end::integer > (item.body ->> 'span_start')::integer
    end)
  then
    raise exception 'the header of a chunk must be a span of at most 500 characters before the chunk'
      using errcode = 'PT400', detail = 'invalid_header';
  end if;
  -- Each header once: many chunks of a table have the same.
  select jsonb_agg(distinct jsonb_build_object('span_start', item.body -> 'metadata' -> 'header_start',
    'span_end', item.body -> 'metadata' -> 'header_end')) into spans
  from jsonb_array_elements(chunks) as item (body)
  where item.body -> 'metadata' ? 'header_start';
  headers := rag.cut_texts(content, spans);
  return array(
    select headers[span.position]
    from jsonb_array_elements(chunks) with ordinality as item (body, position)
    left join jsonb_array_elements(spans) with ordinality as span (body, position)
      on span.body -> 'span_start' = item.body -> 'metadata' -> 'header_start'
      and span.body -> 'span_end' = item.body -> 'metadata' -> 'header_end'
    order by item.position);
end;
$$;

comment on function rag.cut_headers is
  'For each chunk the header of its table, or the question that it answers, at most 500 characters; null for a chunk '
  'without one. metadata.header_start and metadata.header_end are its span, before the chunk. PT400 for another span.';

-- Original files: the bytes, the address or the object of Supabase Storage that a document was made of, kept so that it
-- can be converted again and downloaded. Written with the document and its job in one transaction; read by the worker
-- and by everyone who may read the document.

create table rag.originals (
  org_id uuid not null,
  document_id uuid not null,
  collection_id uuid not null,
  owner_id uuid,
  bytes bytea check (length(bytes) <= 50000000),
  url text check (length(url) <= 2000 and url ~ '^https?://[^[:space:]]+$' and rag.is_visible_text(url)),
  object_bytes bigint check (object_bytes >= 0),
  path text check (path ~ '^([0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/){4}[A-Za-z0-9_][A-Za-z0-9._-]{0,99}$'),
  content_hash text check (content_hash ~ '^[0-9a-f]{64}$'),
  created_at timestamptz not null default now(),
  primary key (org_id, document_id),
  foreign key (org_id, document_id) references rag.documents (org_id, id) on delete cascade,
  check (num_nonnulls(bytes, url, path, content_hash) > 0),
  check (split_part(path, '/', 1) = org_id::text)
);

comment on table rag.originals is 'Original files: the bytes, address or Storage object that a document was made of.';
comment on column rag.originals.bytes is 'Null for an object, for an address that is not fetched yet, and for a file of a kind that is never read.';
comment on column rag.originals.object_bytes is 'The size of the object.';
comment on column rag.originals.path is
  'The path of a large file''s Storage object: org/collection/user/unique part/name.';
comment on column rag.originals.content_hash is
  'SHA-256 of the bytes. For an object or a URL, the worker sets it after reading the content.';

-- Most file formats are compressed: further compression takes time and saves little.
alter table rag.originals alter column bytes set storage external;

-- Duplicate content is refused. The owner is part of the key, so that no user learns of another user's files.
create unique index originals_content
  on rag.originals (org_id, collection_id, owner_id, content_hash) nulls not distinct
  where content_hash is not null;

-- An object belongs to one document. Storage's policies look up whether it does.
create unique index originals_path on rag.originals (org_id, path) where path is not null;

call rag.admit_members('originals');
call rag.restrict_keys('originals', 'documents:read', 'documents:write');
call rag.bind_keys('originals');
call rag.require_edit('originals');

create policy "originals are read with a grant for them" on rag.originals
  as restrictive for select to authenticated
  using (owner_id = (select rag.current_user_id()) or collection_id not in (select rag.closed_collections('original')));

-- A reader of a document may read its object; so no user may add a document with another user's object.
create policy "an object is brought by who uploaded it" on rag.originals
  as restrictive for insert to authenticated
  with check (path is null or split_part(path, '/', 3) = (select rag.current_user_id())::text);

create policy "an object takes a place by who uploaded it" on rag.originals
  as restrictive for update to authenticated
  using (true) with check (path is null or split_part(path, '/', 3) = (select rag.current_user_id())::text);

-- Bytes that an org stores: the texts of its documents and their original files. Triggers on both tables write a row for
-- each change, so that writers never wait for each other, and the sum of an org's rows is what its tier limits. A
-- write from time to time folds the rows of its org into one.

create table rag.stored_bytes (
  org_id uuid not null references rag.orgs (id) on delete cascade,
  id bigint generated always as identity,
  owner_id uuid check (owner_id is null),
  bytes bigint not null,
  primary key (org_id, id)
);

comment on table rag.stored_bytes is
  'Bytes of an org''s documents and original files, objects of Storage included: a log of differences, whose sum the tier '
  'limits.';
comment on column rag.stored_bytes.owner_id is 'Always null: the sum is that of the org.';

call rag.admit_members('stored_bytes');

create policy "a key counts with a scope that writes" on rag.stored_bytes
  as restrictive for all to authenticated
  using ((select rag.has_scope('documents:write', 'collections:manage')))
  with check ((select rag.has_scope('documents:write', 'collections:manage')));

create function rag.check_storage(org_id uuid)
returns void
language plpgsql volatile security invoker set search_path = ''
as $$
declare
  allowed constant bigint := (rag.org_tier(org_id)).storage_bytes;
begin
  if allowed < (select sum(stored.bytes) from rag.stored_bytes as stored where stored.org_id = check_storage.org_id) then
    raise exception 'The tier of your org allows % MB of documents and files. Delete some, or ask for a larger tier.',
      allowed >> 20
      using errcode = 'PT429', detail = 'storage_limit_reached';
  end if;
end;
$$;

comment on function rag.check_storage is
  'Raises PT429 if the org stores more bytes than its tier allows. Calls that run at the same time do not see each '
  'other''s bytes, and may exceed the limit by them.';

create function rag.add_stored_bytes(org_id uuid, bytes bigint)
returns void
language plpgsql volatile security invoker set search_path = ''
as $$
begin
  if bytes = 0 or not exists (select from rag.orgs where orgs.id = add_stored_bytes.org_id) then
    return;
  end if;
  insert into rag.stored_bytes (org_id, bytes) values (add_stored_bytes.org_id, add_stored_bytes.bytes);
  -- A session of the deployer is not limited.
  if bytes > 0 and rag.current_user_id() is not null then
    perform rag.check_storage(org_id);
  end if;
  if random() < 0.0625 then
    with locked_rows as (
      select stored.ctid from rag.stored_bytes as stored
      where stored.org_id = add_stored_bytes.org_id for update skip locked
    ), removed_rows as (
      delete from rag.stored_bytes as stored using locked_rows where stored.ctid = locked_rows.ctid returning stored.bytes
    )
    insert into rag.stored_bytes (org_id, bytes)
    select add_stored_bytes.org_id, sum(removed_rows.bytes) from removed_rows having count(*) > 0;
  end if;
end;
$$;

comment on function rag.add_stored_bytes is
  'Add a change to the bytes of an org, and check the limit of the tier. One call in sixteen folds the rows of the org. '
  'Nothing is counted for a deleted org.';

create function rag.count_bytes_of_documents()
returns trigger
language plpgsql volatile security invoker set search_path = ''
as $$
declare
  changes constant text := concat_ws(' union all ',
    case when tg_op <> 'DELETE' then 'select org_id, octet_length(content) from added' end,
    case when tg_op <> 'INSERT' then 'select org_id, -octet_length(content) from removed' end);
begin
  execute format(
    'select rag.add_stored_bytes(org_id, sum(bytes)) from (%s) as change (org_id, bytes) group by org_id', changes);
  return null;
end;
$$;

comment on function rag.count_bytes_of_documents is
  'Trigger that adds the changed bytes of a statement''s texts to rag.stored_bytes.';

create trigger count_bytes_of_new_documents after insert on rag.documents
  referencing new table as added
  for each statement execute function rag.count_bytes_of_documents();

create trigger count_bytes_of_changed_documents after update on rag.documents
  referencing old table as removed new table as added
  for each statement execute function rag.count_bytes_of_documents();

create trigger count_bytes_of_deleted_documents after delete on rag.documents
  referencing old table as removed
  for each statement execute function rag.count_bytes_of_documents();

create function rag.count_bytes_of_original()
returns trigger
language plpgsql volatile security invoker set search_path = ''
as $$
begin
  perform rag.add_stored_bytes(
    case when tg_op = 'DELETE' then old.org_id else new.org_id end,
    coalesce(length(new.bytes), 0) + coalesce(new.object_bytes, 0)
      - coalesce(length(old.bytes), 0) - coalesce(old.object_bytes, 0));
  return null;
end;
$$;

comment on function rag.count_bytes_of_original is
  'Trigger of each row, since a transition table would write a file once more to disk.';

create trigger count_bytes_of_original after insert or update or delete on rag.originals
  for each row execute function rag.count_bytes_of_original();

-- Facets: the filterable values of a document besides its own columns (origin, author, state, labels, type, each entry
-- of its metadata). The operators of jsonb and numeric are not leakproof, and under row security would scan the whole
-- org; so each value is a row that a search finds by equality, and a value of the metadata by order too. A trigger
-- writes facets, rag.resolve_filters reads them.

create table rag.facets (
  org_id uuid not null,
  facet uuid not null,
  document_id uuid not null,
  collection_id uuid not null,
  owner_id uuid,
  metadata_key uuid,
  sort_key text collate "C",
  primary key (org_id, document_id, facet),
  foreign key (org_id, document_id) references rag.documents (org_id, id) on delete cascade
);

comment on table rag.facets is
  'Filterable values of documents: hashes that a search finds by equality, and sort keys that it finds by range.';
comment on column rag.facets.facet is
  'A hash of kind and value (rag.facet_hash): as long for a long value as for a short one.';
comment on column rag.facets.metadata_key is
  'A hash of the key of the metadata (rag.facet_hash); null for other fields.';
comment on column rag.facets.sort_key is 'The value of the metadata by order (rag.sort_key); null for other fields.';

-- rag.resolve_filters: the documents with a facet.
create index facets_by_value on rag.facets (org_id, facet) include (document_id, collection_id, owner_id);

-- rag.resolve_filters: the documents with a key in their metadata, and a value within a range.
create index facets_by_order on rag.facets (org_id, metadata_key, sort_key)
  include (document_id, collection_id, owner_id) where metadata_key is not null;

call rag.admit_members('facets');
call rag.restrict_keys('facets', 'documents:read', 'documents:write', 'retrievals:read', 'chat:read');
call rag.bind_keys('facets');
call rag.require_edit('facets');

create function rag.normalize_numbers(value jsonb)
returns jsonb
language plpgsql immutable security invoker set search_path = ''
as $$
begin
  return case jsonb_typeof(value)
    when 'number' then to_jsonb(trim_scale(value::numeric))
    when 'array' then coalesce((
      select jsonb_agg(rag.normalize_numbers(item) order by position)
      from jsonb_array_elements(value) with ordinality as items (item, position)), '[]')
    when 'object' then coalesce((
      select jsonb_object_agg(entry.key, rag.normalize_numbers(entry.value)) from jsonb_each(value) as entry), '{}')
    else value
  end;
end;
$$;

comment on function rag.normalize_numbers is
  'The value with its numbers as short as they can be, since equal ones are one: 1.0 is 1, and [1.0] is [1].';

create function rag.facet_hash(kind text, value jsonb)
returns uuid
language sql immutable security invoker set search_path = ''
as $$
  select encode(substr(sha256(convert_to(kind || ':' || case
    when jsonb_path_exists(value, '$.**{32}') then value else rag.normalize_numbers(value)
  end::text, 'UTF8')), 1, 16), 'hex')::uuid;
$$;

comment on function rag.facet_hash is
  'The first 128 bits of SHA-256 over kind and value. No document''s value is deeper than 32 levels.';

create function rag.sort_key(value jsonb)
returns text
language sql immutable security invoker set search_path = ''
as $$
  select case jsonb_typeof(value)
    when 'string' then 's' || left(value #>> '{}', 201)
    when 'number' then (
      select 'n' || case sign(number)
        when 1 then '2' || 500 + exponent || digits
        when 0 then '1'
        -- Of negative numbers, the larger comes first, and the more digits.
        else '0' || 500 - exponent || translate(digits, '0123456789', '9876543210') || '~'
      end
      from (
        select number, length(significant) - scale(number), rtrim(significant, '0')
        from (select value::numeric, ltrim(replace(abs(value::numeric)::text, '.', ''), '0'))
          as plain (number, significant)
      ) as scientific (number, exponent, digits))
    else ''
  end;
$$;

comment on function rag.sort_key is
  'A text whose order, collate "C", is that of numbers among numbers (exactly: sign, exponent, digits) and of strings '
  'among strings (their first 201 characters); empty for another value. Numbers have at most 300 digits on either side '
  'of the point (rag.is_metadata).';

create function rag.document_facets(document rag.documents)
returns table (facet uuid, metadata_key uuid, sort_key text)
language sql immutable security invoker set search_path = ''
as $$
  select distinct rag.facet_hash(found.kind, found.value), null::uuid, null
  from (
    select field.kind, to_jsonb(field.value)
    from (values ('origin', document.origin), ('author', document.author), ('state', document.state))
      as field (kind, value)
    where field.value is not null
    union all
    select 'label', to_jsonb(label) from unnest(document.labels) as label
    union all
    select 'document_type', said.value
    from (values (document.metadata -> 'document_type'), (document.processing_info -> 'document_type'))
      as said (value)
    where jsonb_typeof(said.value) = 'string'
  ) as found (kind, value)
  union all
  select rag.facet_hash('metadata.' || entry.key, entry.value), rag.facet_hash('metadata key', to_jsonb(entry.key)),
    rag.sort_key(entry.value)
  from jsonb_each(document.metadata) as entry;
$$;

comment on function rag.document_facets is
  'The facets of a document. Metadata have the kind "metadata.key", so that none can be confused with a label or an '
  'author. A document has two types, the declared one and the detected one: filters accept either.';

create function rag.index_new_facets()
returns trigger
language plpgsql volatile security invoker set search_path = ''
as $$
begin
  insert into rag.facets (org_id, facet, document_id, collection_id, owner_id, metadata_key, sort_key)
  select added.org_id, found.facet, added.id, added.collection_id, added.owner_id, found.metadata_key, found.sort_key
  from added
  cross join lateral rag.document_facets(added) as found;
  return null;
end;
$$;

comment on function rag.index_new_facets is 'Trigger that writes the facets of inserted documents, once a statement.';

create trigger index_facets_of_new_documents after insert on rag.documents
  referencing new table as added
  for each statement execute function rag.index_new_facets();

create function rag.index_changed_facets()
returns trigger
language plpgsql volatile security invoker set search_path = ''
as $$
begin
  delete from rag.facets where facets.org_id = new.org_id and facets.document_id = new.id;
  insert into rag.facets (org_id, facet, document_id, collection_id, owner_id, metadata_key, sort_key)
  select new.org_id, facet, new.id, new.collection_id, new.owner_id, metadata_key, sort_key
  from rag.document_facets(new);
  return null;
end;
$$;

comment on function rag.index_changed_facets is 'Trigger that replaces the facets of a document.';

create trigger index_facets_of_changed_documents
  after update of origin, author, state, labels, metadata, processing_info, collection_id, owner_id on rag.documents
  for each row
  when ((old.origin, old.author, old.state, old.labels, old.metadata, old.processing_info -> 'document_type',
      old.collection_id, old.owner_id)
    is distinct from
    (new.origin, new.author, new.state, new.labels, new.metadata, new.processing_info -> 'document_type',
      new.collection_id, new.owner_id))
  execute function rag.index_changed_facets();

-- Jobs: two queues of documents, for ingestion (convert, chunk, embed and store) and for the extraction of entities
-- (70_graph). A job is written in the transaction that adds the document or its chunks. The worker claims it under a role
-- of its own, which sees jobs and nothing else; it stores the result as the user who requested the job, with a token that
-- names the lease. A finished job stays as a log. A document has one extraction, whose row is used again; most
-- documents come with their entities, and their extractions are done from the beginning.

create table rag.jobs (
  org_id uuid not null,
  id uuid not null default gen_random_uuid(),
  kind text not null default 'ingestion' check (kind in ('ingestion', 'extraction')),
  document_id uuid not null,
  collection_id uuid not null,
  owner_id uuid,
  user_id uuid not null,
  document jsonb check (
    jsonb_typeof(document) = 'object' and pg_column_size(document) <= 100000 and rag.is_readable(document)
  ),
  next_ordinal integer not null default 0 check (next_ordinal >= 0),
  passages_hash text check (passages_hash ~ '^[0-9a-f]{64}$'),
  embeddings extensions.halfvec[] check (cardinality(embeddings) between 1 and 10000),
  state text not null default 'waiting' check (state in ('waiting', 'running', 'done', 'failed')),
  attempts integer not null default 0,
  due_at timestamptz not null default now(),
  lease uuid,
  step text check (step ~ '^[a-z]{1,40}$'),
  error_code text check (error_code ~ '^[a-z_]{1,40}$'),
  error_message text check (length(error_message) <= 500 and rag.is_visible_text(error_message)),
  created_at timestamptz not null default now(),
  started_at timestamptz,
  finished_at timestamptz,
  primary key (org_id, id),
  foreign key (org_id, document_id) references rag.documents (org_id, id) on delete cascade,
  check ((state = 'running') = (lease is not null)),
  check ((kind = 'ingestion') = (document is not null)),
  check ((embeddings is null) = (passages_hash is null)),
  check (embeddings is null or kind = 'ingestion' and state in ('waiting', 'running')),
  check (kind = 'ingestion' or id = document_id)
);

comment on table rag.jobs is
  'Jobs of the worker: documents to ingest, documents whose entities are to be extracted, and a log of finished jobs.';
comment on column rag.jobs.id is 'Of an extraction, the id of its document: a document has one extraction.';
comment on column rag.jobs.kind is 'ingestion or extraction.';
comment on column rag.jobs.user_id is 'The user who requested the job; the worker acts as this user.';
comment on column rag.jobs.document is
  'Of an ingestion, the document''s fields as its author sent them. The completed job stores them.';
comment on column rag.jobs.next_ordinal is 'Of an extraction, the ordinal of the next chunk.';
comment on column rag.jobs.passages_hash is
  'Of an ingestion whose embedder failed: SHA-256 of the model and of all passages. The next column has the vectors of '
  'the first passages. The next attempt continues after them if it makes the same passages.';
comment on column rag.jobs.due_at is
  'Not before this. While it runs: when its lease ends and any worker may claim it again.';
comment on column rag.jobs.lease is 'Only the worker with this id may finish the job.';
comment on column rag.jobs.step is 'Of an ingestion, the current step: fetching, converting, embedding, storing.';

-- Deletion of a document, and the status of its processing.
create index jobs_by_document on rag.jobs (org_id, document_id, created_at);

-- rag_claim_jobs: the orgs with jobs of a kind, and of each org those that are due.
create index jobs_due on rag.jobs (kind, org_id, due_at, id) where state in ('waiting', 'running');

-- rag_list_jobs
create index jobs_failed on rag.jobs (org_id, created_at desc) where kind = 'ingestion' and state = 'failed';

-- rag.lock_job
create index jobs_by_lease on rag.jobs (org_id, lease) where lease is not null;

-- One ingestion of a document at a time: a new upload of the document deletes its older job.
create unique index jobs_one_of_a_document on rag.jobs (org_id, document_id)
  where kind = 'ingestion' and state in ('waiting', 'running');

call rag.admit_members('jobs');
call rag.restrict_keys('jobs', 'documents:read', 'documents:write');
call rag.bind_keys('jobs');
call rag.require_edit('jobs');

-- A job runs as the user who requests it.
create policy "jobs are for oneself" on rag.jobs
  as restrictive for insert to authenticated
  with check (user_id = (select rag.current_user_id()) and attempts = 0
    and (state = 'waiting' or kind = 'extraction' and state = 'done'));

-- No user's own token names a lease: only the worker's for one job does. An extraction is requested again by an update.
create policy "the holder of the lease continues a job" on rag.jobs
  as restrictive for update to authenticated
  using (kind = 'extraction' or lease = (select rag.lease_of_token()))
  with check (kind = 'ingestion'
    or user_id = (select rag.current_user_id()) and (lease is null or lease = (select rag.lease_of_token())));

create policy "the worker claims jobs" on rag.jobs
  for select to rag_worker using (true);

create policy "the worker leases jobs" on rag.jobs
  for update to rag_worker using (true) with check (state in ('running', 'failed'));

-- Ids and states, to give documents up and to find collections without documents.
create policy "the worker sees which documents there are" on rag.documents
  for select to rag_worker using (true);

create policy "the worker gives documents up" on rag.documents
  for update to rag_worker using (status = 'processing') with check (status = 'failed');

create function rag.enqueue_job(document rag.documents, fields jsonb)
returns void
language plpgsql volatile security invoker set search_path = ''
as $$
begin
  delete from rag.jobs
  where jobs.org_id = document.org_id and jobs.document_id = document.id and jobs.kind = 'ingestion'
    and jobs.state in ('waiting', 'running');
  insert into rag.jobs (org_id, document_id, collection_id, owner_id, user_id, document)
  values (document.org_id, document.id, document.collection_id, document.owner_id, rag.current_user_id(), fields);
end;
$$;

comment on function rag.enqueue_job is
  'Enqueue the ingestion of a document, in place of its unfinished job. fields: the document''s fields, which the '
  'completed job stores.';

create function rag.lock_job(kind text default null, with_document boolean default true)
returns rag.jobs
language plpgsql volatile security invoker set search_path = ''
as $$
#variable_conflict use_variable
declare
  job rag.jobs;
begin
  if with_document then
    -- The document first: every transaction that deletes or replaces a document locks it before its jobs.
    perform from rag.documents
    join rag.jobs on jobs.org_id = documents.org_id and jobs.document_id = documents.id
    where jobs.org_id = any (array(select rag.current_org_ids())) and jobs.lease = (select rag.lease_of_token())
    for no key update of documents;
  end if;
  select jobs.* into job
  from rag.jobs
  where jobs.org_id = any (array(select rag.current_org_ids())) and jobs.lease = (select rag.lease_of_token())
    and (kind is null or jobs.kind = lock_job.kind)
  for update;
  if not found then
    raise exception 'The lease has ended. Claim the item again.' using errcode = 'PT409', detail = 'lease_lost';
  end if;
  return job;
end;
$$;

comment on function rag.lock_job is
  'The job of the token''s lease, locked; kind: only one of that kind. PT409 when the lease is lost: the job was claimed '
  'again, or its document was replaced or deleted, or the user no longer sees it. with_document: the document is locked '
  'too.';

-- The claim of jobs, under the worker's role: fair among orgs, with a lease. The worker claims each kind of its own, so
-- that extractions do not delay documents.

create function rag.fail_exhausted_jobs()
returns void
language sql volatile security invoker set search_path = ''
as $$
  -- Documents are locked before their jobs, in every transaction.
  with exhausted as (
    select documents.org_id, documents.id
    from rag.documents
    join rag.jobs on jobs.org_id = documents.org_id and jobs.document_id = documents.id
    where jobs.kind = 'ingestion' and jobs.state = 'running' and jobs.due_at <= clock_timestamp()
      and jobs.attempts >= rag.max_attempts()
    for update of documents skip locked
  ), failed as (
    update rag.jobs
    set state = 'failed', lease = null, step = null, passages_hash = null, embeddings = null,
      finished_at = clock_timestamp(), error_code = 'processing_failed', error_message = 'Processing failed too often; upload the document again.'
    from exhausted
    where jobs.org_id = exhausted.org_id and jobs.document_id = exhausted.id and jobs.kind = 'ingestion'
      and jobs.state = 'running' and jobs.due_at <= clock_timestamp()
    returning jobs.org_id, jobs.document_id, jobs.error_code, jobs.error_message
  )
  update rag.documents
  set status = 'failed', error_code = failed.error_code, error_message = failed.error_message
  from failed
  where documents.org_id = failed.org_id and documents.id = failed.document_id and documents.status = 'processing';

  update rag.jobs
  set state = 'failed', lease = null, finished_at = clock_timestamp(), error_code = 'extraction_failed',
    error_message = 'The extraction failed too often; build the graph of the collection again.'
  from (
    select jobs.org_id, jobs.id
    from rag.jobs
    where jobs.kind = 'extraction' and jobs.state = 'running' and jobs.due_at <= clock_timestamp()
      and jobs.attempts >= rag.max_attempts()
    for update skip locked
  ) as exhausted
  where jobs.org_id = exhausted.org_id and jobs.id = exhausted.id;
$$;

comment on function rag.fail_exhausted_jobs is
  'Fail the jobs whose last lease has expired after rag.max_attempts() attempts, and the documents of ingestion jobs.';

create function rag.due_jobs(kind text, max_items integer, busy_orgs uuid[])
returns table (org_id uuid, id uuid, is_expired boolean, rank bigint)
language plpgsql stable security invoker set search_path = ''
as $$
#variable_conflict use_column
begin
  return query
  with recursive queued (org_id) as (
    -- The next org with a job, by the index: there may be many jobs and few orgs.
    (select jobs.org_id
    from rag.jobs
    where jobs.kind = due_jobs.kind and jobs.state in ('waiting', 'running')
    order by jobs.org_id
    limit 1)
    union all
    select (
      select jobs.org_id
      from rag.jobs
      where jobs.kind = due_jobs.kind and jobs.state in ('waiting', 'running') and jobs.org_id > queued.org_id
      order by jobs.org_id
      limit 1)
    from queued
    where queued.org_id is not null
  ), due as (
    select job.*, served.at as served_at, min(job.due_at) over (partition by job.org_id) as since
    from queued
    cross join lateral (
      select (orgs.served ->> due_jobs.kind)::timestamptz as at
      from rag.orgs
      where orgs.id = queued.org_id
    ) as served
    cross join lateral (
      select jobs.org_id, jobs.id, jobs.due_at, jobs.state
      from rag.jobs
      where jobs.kind = due_jobs.kind and jobs.org_id = queued.org_id and jobs.state in ('waiting', 'running')
        and jobs.due_at <= clock_timestamp()
      order by jobs.due_at, jobs.id
      limit max_items
    ) as job
    where queued.org_id is not null and queued.org_id <> all (busy_orgs)
      and queued.org_id <> all (array(select rag.paused_org_ids()))
  )
  select due.org_id, due.id, due.state = 'running',
    row_number() over (order by due.served_at nulls first, due.since, due.org_id, due.due_at, due.id)
  from due;
end;
$$;

comment on function rag.due_jobs is
  'Due jobs of a kind in the order of their claim, without orgs that are paused or in busy_orgs: first those of the org that '
  'was served least recently, of each org the longest waiting first. is_expired: the job was claimed, and its lease has '
  'expired.';

create function public.rag_claim_jobs(
  kind text, max_items integer default 1, lease_seconds integer default 60, busy_orgs uuid[] default '{}'
)
returns table (
  job_id uuid, org_id uuid, document_id uuid, user_id uuid, as_admin boolean, lease uuid, attempts integer
)
language plpgsql volatile security invoker set search_path = ''
as $$
#variable_conflict use_column
begin
  perform rag.check_claim(max_items, lease_seconds);
  if (rag_claim_jobs.kind in ('ingestion', 'extraction')) is not true then
    raise exception 'kind must be ingestion or extraction' using errcode = 'PT400', detail = 'invalid_claim';
  end if;
  perform rag.fail_exhausted_jobs();

  return query
  with due as materialized (
    select * from rag.due_jobs(rag_claim_jobs.kind, max_items, coalesce(busy_orgs, '{}'))
  ), locked as materialized (
    -- Of one org, and only one while others wait, so that slow documents of an org delay no other.
    select jobs.org_id, jobs.id
    from (
      select due.*
      from due
      where due.is_expired or not exists (select from due as expired where expired.is_expired)
      order by due.rank
      limit 4 * max_items
    ) as due
    cross join lateral (
      select jobs.org_id, jobs.id
      from rag.jobs
      where jobs.org_id = due.org_id and jobs.id = due.id and jobs.state in ('waiting', 'running')
        and jobs.due_at <= clock_timestamp()
      for update skip locked
    ) as jobs
    limit case when exists (select from due where due.is_expired)
      or (select count(distinct due.org_id) from due) > 1 then 1 else max_items end
  ), claimed as (
    update rag.jobs
    set state = 'running', attempts = jobs.attempts + 1, lease = gen_random_uuid(), step = null,
      started_at = clock_timestamp(), due_at = clock_timestamp() + make_interval(secs => lease_seconds)
    from locked
    where jobs.org_id = locked.org_id and jobs.id = locked.id
    returning jobs.id, jobs.org_id, jobs.document_id, jobs.user_id, jobs.owner_id, jobs.lease, jobs.attempts
  ), noted as (
    update rag.orgs
    set served = orgs.served || jsonb_build_object(rag_claim_jobs.kind, clock_timestamp())
    from (
      select orgs.id from rag.orgs where orgs.id in (select claimed.org_id from claimed) for no key update skip locked
    ) as one
    where orgs.id = one.id
  )
  -- In that order: of two documents with the same text the one that came first is the one that stays.
  select claimed.id, claimed.org_id, claimed.document_id, claimed.user_id,
    coalesce(claimed.owner_id <> claimed.user_id, false), claimed.lease, claimed.attempts
  from claimed
  join due on due.org_id = claimed.org_id and due.id = claimed.id
  order by due.rank;
end;
$$;

comment on function public.rag_claim_jobs is
  'Lease due jobs of a kind (ingestion, extraction), for the worker, in the order of rag.due_jobs: those of one org, and only '
  'one if other orgs have due jobs. busy_orgs: orgs of which the worker has jobs already. A job whose lease has '
  'expired is claimed again, alone, because it may have crashed its worker; the old lease can finish nothing. After '
  'rag.max_attempts() attempts the job fails. as_admin: the job''s user is an admin who works on another user''s '
  'document.';

-- Functions that the worker calls for an ingestion that it has claimed; rag_fail_job ends an extraction too. The token is
-- of the user who requested the job and names the lease (rag.lease_of_token): row security lets it write what that user
-- may, and change the one job. The job ends in the transaction that stores its result, so after a crash the document is
-- stored once, or the job is claimed again.

create function public.rag_open_job(lease_seconds integer default 300)
returns table (
  document_id uuid, document jsonb, bytes text, url text, path text, config jsonb, file_bytes bigint,
  passages_hash text, embeddings text[]
)
language plpgsql volatile security invoker set search_path = ''
as $$
declare
  is_admitted constant boolean := rag.begin_call();
  job constant rag.jobs := rag.lock_job('ingestion');
begin
  perform rag.require_embedding_quota();
  update rag.jobs
  set step = case when num_nonnulls(originals.url, originals.path) > 0 then 'fetching' else 'converting' end,
    due_at = clock_timestamp() + make_interval(secs => lease_seconds)
  from rag.originals
  where jobs.org_id = job.org_id and jobs.id = job.id
    and originals.org_id = job.org_id and originals.document_id = job.document_id;

  return query
  select job.document_id, job.document, encode(originals.bytes, 'base64'), originals.url, originals.path,
    collections.config, (rag.org_tier(job.org_id)).file_bytes, job.passages_hash, job.embeddings::text[]
  from rag.originals
  join rag.collections on collections.org_id = originals.org_id and collections.id = originals.collection_id
  where originals.org_id = job.org_id and originals.document_id = job.document_id;
end;
$$;

comment on function public.rag_open_job is
  'The job''s work: the document''s fields, its original, its collection''s config, and the most bytes that an '
  'address or an uploaded object may have; passages_hash and embeddings as rag_extend_job stored them. It extends the '
  'lease and sets the step: fetching, or converting if the '
  'database has the original. PT429 if the org has used up its tokens for embeddings today.';

create function public.rag_store_content(content_hash text, size_bytes bigint, lease_seconds integer default 300)
returns void
language plpgsql volatile security invoker set search_path = ''
as $$
declare
  is_admitted constant boolean := rag.begin_call();
  job constant rag.jobs := rag.lock_job('ingestion');
  stored rag.documents;
begin
  select documents.* into stored
  from rag.documents
  where documents.org_id = job.org_id and documents.id = job.document_id;
  perform rag.delete_failed_duplicate(stored, rag_store_content.content_hash);
  perform rag.check_not_duplicate(stored, rag_store_content.content_hash);
  update rag.originals
  set content_hash = rag_store_content.content_hash,
    object_bytes = case when originals.path is not null then rag_store_content.size_bytes end
  where originals.org_id = job.org_id and originals.document_id = job.document_id
    and num_nonnulls(originals.url, originals.path) > 0;
  update rag.jobs
  set step = 'converting', due_at = clock_timestamp() + make_interval(secs => lease_seconds)
  where jobs.org_id = job.org_id and jobs.id = job.id;
exception when unique_violation then
  raise exception 'Another call is adding a document of the same content. Wait for its result.'
    using errcode = 'PT409', detail = 'duplicate_document';
end;
$$;

comment on function public.rag_store_content is
  'Store the hash and, of an object, the size of the content that the worker has read from the document''s object or address, set the step to '
  'converting and extend the lease. PT409 for content that another document of the collection has; the id of that '
  'document is in hint.';

create function public.rag_extend_job(
  step text, lease_seconds integer, passages_hash text default null, embeddings extensions.halfvec[] default null
)
returns integer
language plpgsql volatile security invoker set search_path = ''
set statement_timeout = '60s'
as $$
declare
  is_admitted constant boolean := rag.begin_call();
  job constant rag.jobs := rag.lock_job('ingestion');
  -- A page that differs at each attempt is no progress.
  is_further constant boolean := job.passages_hash is null or job.passages_hash = rag_extend_job.passages_hash
    and cardinality(job.embeddings) < cardinality(rag_extend_job.embeddings);
  new_attempts constant integer := case when rag_extend_job.embeddings is not null and is_further then 0 else job.attempts end;
begin
  update rag.jobs
  set step = rag_extend_job.step, due_at = clock_timestamp() + make_interval(secs => lease_seconds)
  where jobs.org_id = job.org_id and jobs.id = job.id;
  if rag_extend_job.embeddings is not null then
    update rag.jobs
    set passages_hash = rag_extend_job.passages_hash, embeddings = rag_extend_job.embeddings,
      attempts = new_attempts
    where jobs.org_id = job.org_id and jobs.id = job.id;
  end if;
  return new_attempts;
end;
$$;

comment on function public.rag_extend_job is
  'Set the step of a job and extend its lease. embeddings: after a failure of the embedder, the vectors of the first '
  'passages, for the next attempt; passages_hash: SHA-256 of the model and of all passages. With more vectors than '
  'before, the count of attempts begins anew. Returns this count.';

create function public.rag_complete_job(document jsonb, chunks jsonb)
returns integer
language plpgsql volatile security invoker set search_path = ''
set statement_timeout = '60s'
as $$
declare
  is_admitted constant boolean := rag.begin_write();
  job constant rag.jobs := rag.lock_job('ingestion');
  input record;
  -- Changes of title and metadata since the upload stay.
  changed constant boolean := (
    select documents.updated_at > job.created_at
    from rag.documents
    where documents.org_id = job.org_id and documents.id = job.document_id);
begin
  perform rag.check_json('document', rag_complete_job.document), rag.check_json('chunks', rag_complete_job.chunks);
  select * into input from jsonb_to_record(rag_complete_job.document) as fields (
    source_type text, title text, uri text, lang text, occurred_at timestamptz, origin text, author text,
    state text, labels text[], metadata jsonb, filename text, content_type text, size_bytes bigint,
    content text, embedding_model text, processing_info jsonb, bytes text);

  if not changed then
    -- The words of the former chunks, which are deleted below, are not indexed again for another title.
    perform set_config('rag.words_later', 'true', true);
    update rag.documents as renewed
    set source_type = coalesce(input.source_type, 'doc'), title = input.title, uri = input.uri,
      lang = input.lang, occurred_at = input.occurred_at, origin = input.origin, author = input.author,
      state = input.state, labels = coalesce(input.labels, '{}'), metadata = coalesce(input.metadata, '{}')
    where renewed.org_id = job.org_id and renewed.id = job.document_id;
    perform set_config('rag.words_later', '', true);
  end if;
  update rag.documents as renewed
  set filename = input.filename, content_type = input.content_type, size_bytes = input.size_bytes,
    content = input.content, content_hash = coalesce((
      select originals.content_hash
      from rag.originals
      where originals.org_id = job.org_id and originals.document_id = job.document_id), renewed.content_hash),
    status = 'completed', error_code = null, error_message = null,
    processing_info = coalesce(input.processing_info, '{}'), updated_at = clock_timestamp()
  where renewed.org_id = job.org_id and renewed.id = job.document_id;

  if input.bytes is not null then
    update rag.originals
    set bytes = decode(input.bytes, 'base64')
    where originals.org_id = job.org_id and originals.document_id = job.document_id
      and originals.url is not null;
  end if;
  perform rag.delete_chunks(job.org_id, array[job.document_id]);
  perform rag.insert_chunks(job.org_id, array[rag.document_chunks(
    document_id => job.document_id, chunks => chunks, embedding_model => input.embedding_model)], 0);
  update rag.jobs
  set state = 'done', lease = null, step = null, error_code = null, error_message = null, passages_hash = null,
    embeddings = null, finished_at = clock_timestamp()
  where jobs.org_id = job.org_id and jobs.id = job.id;
  return jsonb_array_length(chunks);
end;
$$;

comment on function public.rag_complete_job is
  'Store the processed document in place of its previous version, for searches from now on. document: title, content, '
  'embedding_model, processing_info; filename, content_type, size_bytes and the fields that a search filters by, '
  'where they are known; bytes, in base64, of a document from an address. chunks: as rag_put_documents takes them.';

create function public.rag_fail_job(
  code text default null, message text default null, retry_seconds integer default null,
  is_attempt boolean default true, discards_original boolean default false
)
returns void
language plpgsql volatile security invoker set search_path = ''
as $$
declare
  is_admitted constant boolean := rag.begin_call();
  job constant rag.jobs := rag.lock_job(with_document => retry_seconds is null);
begin
  if retry_seconds is null then
    update rag.documents
    set status = 'failed', error_code = code, error_message = message, updated_at = clock_timestamp()
    where documents.org_id = job.org_id and documents.id = job.document_id and job.kind = 'ingestion';
    if discards_original then
      update rag.originals
      set bytes = null, path = null, object_bytes = null
      where originals.org_id = job.org_id and originals.document_id = job.document_id and originals.url is null;
    end if;
  end if;
  update rag.jobs
  set state = case when retry_seconds is null then 'failed' else 'waiting' end, lease = null, step = null,
    attempts = greatest(jobs.attempts - case when is_attempt then 0 else 1 end, 0),
    -- A job that was not begun, or goes on, keeps its place.
    due_at = case when retry_seconds = 0 and not is_attempt then jobs.created_at
      else clock_timestamp() + make_interval(secs => coalesce(retry_seconds, 0)) end,
    error_code = coalesce(code, jobs.error_code), error_message = coalesce(message, jobs.error_message),
    passages_hash = case when retry_seconds is not null then jobs.passages_hash end,
    embeddings = case when retry_seconds is not null then jobs.embeddings end,
    finished_at = case when retry_seconds is null then clock_timestamp() end
  where jobs.org_id = job.org_id and jobs.id = job.id;
end;
$$;

comment on function public.rag_fail_job is
  'End the attempt of a job that failed (with an error) or is postponed (without one). The job is due again after '
  'retry_seconds; null: never, and the document of an ingestion gets the error. is_attempt: whether the attempt counts. '
  'discards_original: whether a file that cannot be read at all is deleted; its hash stays, so that a second upload of it '
  'replaces the document. '
  'For a job that is due again, the document is neither changed nor locked: its lock may be the lock that the job could '
  'not get.';

-- Functions of an org's admins to list the ingestion jobs that wait, run or have failed, and to run them again. A failed
-- job counts until a later job of its document exists. They run as their caller.

create function public.rag_list_jobs(state text default null, "limit" integer default 20, "offset" integer default 0)
returns jsonb
language plpgsql stable security invoker set search_path = ''
as $$
declare
  is_admitted constant boolean := rag.begin_call();
  own constant uuid[] := rag.require_admin_org();
begin
  perform rag.check_page("limit", "offset", 'desc', 'created_at', array['created_at']);
  if rag_list_jobs.state not in ('waiting', 'running', 'failed') then
    raise exception 'state must be waiting, running or failed' using errcode = 'PT400', detail = 'invalid_state';
  end if;
  return (
    with listed as (
      select jobs.org_id, jobs.id, jobs.created_at
      from rag.jobs
      where jobs.org_id = any (own) and jobs.kind = 'ingestion' and jobs.state in ('waiting', 'running')
        and (rag_list_jobs.state is null or jobs.state = rag_list_jobs.state)
      union all
      select jobs.org_id, jobs.id, jobs.created_at
      from rag.jobs
      where jobs.org_id = any (own) and jobs.kind = 'ingestion' and jobs.state = 'failed'
        and coalesce(rag_list_jobs.state, 'failed') = 'failed' and not exists (
          select from rag.jobs as later
          where later.org_id = jobs.org_id and later.document_id = jobs.document_id and later.kind = 'ingestion'
            and later.created_at > jobs.created_at)
    ), listed_page as (
      select listed.* from listed order by listed.created_at desc, listed.id limit "limit" offset "offset"
    ), page as (
      select jobs.id, jobs.org_id, jobs.document_id, jobs.collection_id, jobs.user_id, jobs.state, jobs.step,
        jobs.attempts, jobs.error_code, jobs.error_message, jobs.created_at, jobs.started_at, jobs.finished_at,
        case when jobs.state = 'waiting' then jobs.due_at end as due_at, documents.title,
        collections.name as collection
      from listed_page
      join rag.jobs on jobs.org_id = listed_page.org_id and jobs.id = listed_page.id
      join rag.documents on documents.org_id = jobs.org_id and documents.id = jobs.document_id
      left join rag.collections on collections.org_id = jobs.org_id and collections.id = jobs.collection_id
    )
    select jsonb_build_object(
      'total', (select count(*) from listed),
      'jobs', coalesce(jsonb_agg(to_jsonb(page) order by page.created_at desc, page.id), '[]'))
    from page);
end;
$$;

comment on function public.rag_list_jobs is
  '{"total", "jobs": [...]}: a page of the ingestion jobs of the orgs that the caller administers, the newest first: '
  'those that wait, run or have failed, or only those of one state. due_at: the next attempt of a waiting job. PT403 '
  'for a caller who administers no org.';

create function rag.fields_for_retry(job rag.jobs, document rag.documents)
returns jsonb
language sql stable security invoker set search_path = ''
as $$
  -- Before the first completed job, the document's own fields are those of the job, or changes to them. Later they may
  -- be those of the version that the job replaces.
  select case
    when octet_length(document.content) > 0
      and document.updated_at <= coalesce(job.finished_at, job.created_at) then job.document
    else job.document
      || case when document.title = job.document ->> 'title' then '{}' else '{"has_title": true}'::jsonb end
      || jsonb_build_object(
        'title', document.title, 'source_type', document.source_type, 'uri', document.uri, 'lang', document.lang,
        'occurred_at', document.occurred_at, 'origin', document.origin, 'author', document.author,
        'state', document.state, 'labels', document.labels, 'metadata', document.metadata)
  end;
$$;

comment on function rag.fields_for_retry is
  'The fields of the document for another job: those of the job, with the changes of title and metadata since.';

create function public.rag_retry_jobs(job_ids uuid[])
returns setof uuid
language plpgsql volatile security invoker set search_path = ''
as $$
declare
  is_admitted constant boolean := rag.begin_write();
  own constant uuid[] := rag.require_admin_org();
  document rag.documents;
  job rag.jobs;
begin
  perform rag.check_ids('job_ids', job_ids);
  for document in
    -- Documents are locked before their jobs, in every transaction.
    select documents.*
    from rag.documents
    where documents.org_id = any (own) and documents.id in (
      select jobs.document_id from rag.jobs
      where jobs.org_id = any (own) and jobs.id = any (job_ids) and jobs.kind = 'ingestion')
      and not exists (
        select from rag.originals
        where originals.org_id = documents.org_id and originals.document_id = documents.id
          and num_nonnulls(originals.bytes, originals.path, originals.url) = 0)
    order by documents.org_id, documents.id
    for no key update
  loop
    select jobs.* into job
    from rag.jobs
    where jobs.org_id = document.org_id and jobs.document_id = document.id and jobs.kind = 'ingestion'
      and jobs.id = any (job_ids) and jobs.state in ('waiting', 'failed') and not exists (
        select from rag.jobs as later
        where later.org_id = jobs.org_id and later.document_id = jobs.document_id and later.kind = 'ingestion'
          and later.created_at > jobs.created_at);
    continue when not found;
    if job.state = 'waiting' then
      -- A worker may claim the job meanwhile: it locks no document.
      delete from rag.jobs where jobs.org_id = job.org_id and jobs.id = job.id and jobs.state = 'waiting';
      continue when not found;
    end if;
    update rag.documents
    set status = 'processing', error_code = null, error_message = null, updated_at = now()
    where documents.org_id = document.org_id and documents.id = document.id;
    perform rag.enqueue_job(document, rag.fields_for_retry(job, document));
    return next job.id;
  end loop;
end;
$$;

comment on function public.rag_retry_jobs is
  'Run up to 100 jobs again, now and with all attempts: those of the given jobs that wait or have failed. Each gets a new '
  'job in the name of the caller. Returns the ids of the jobs that were replaced. Jobs that run, are done or have a '
  'later job, and those of deleted files, are ignored, as are those of other orgs. PT403 for a caller who administers no org.';

-- Functions to list, read and download documents. They run as their caller.

create type rag.document as (
  id uuid, org_id uuid, collection_id uuid, owner_id uuid, created_by uuid, external_id text, title text,
  source_type text, uri text, lang text, metadata jsonb, filename text, content_type text, size_bytes bigint, content_hash text,
  status text, error_code text, error_message text, processing_info jsonb, chunk_count bigint,
  total_tokens bigint, step text, attempts integer, created_at timestamptz, updated_at timestamptz,
  processed_at timestamptz
);

comment on type rag.document is 'A document as a list returns it.';

create function rag.render(document rag.documents)
returns rag.document
language sql stable security invoker set search_path = ''
as $$
  select document.id, document.org_id, document.collection_id, document.owner_id, document.created_by,
    document.external_id, document.title, document.source_type, document.uri, document.lang, document.metadata,
    document.filename, document.content_type, document.size_bytes,
    -- For a failed document, the hash of its latest original, although searches may still find an earlier version.
    coalesce(
      case when document.status = 'failed' then (
        select originals.content_hash from rag.originals
        where originals.org_id = document.org_id and originals.document_id = document.id) end,
      document.content_hash),
    document.status,
    -- During ingestion: the error of the previous attempt.
    coalesce(document.error_code, job.error_code), coalesce(document.error_message, job.error_message),
    document.processing_info, counted.chunks, counted.tokens, job.step, job.attempts, document.created_at,
    document.updated_at,
    -- Without a job: the time of the last change.
    case when document.status <> 'processing' then coalesce(job.finished_at, document.updated_at) end
  from (
    select count(*) as chunks, coalesce(sum(chunks.token_count), 0) as tokens
    from rag.chunks
    where chunks.org_id = document.org_id and chunks.document_id = document.id
  ) as counted
  left join lateral (
    select jobs.step, jobs.attempts, jobs.error_code, jobs.error_message, jobs.finished_at
    from rag.jobs
    where jobs.org_id = document.org_id and jobs.document_id = document.id and jobs.kind = 'ingestion'
    order by jobs.created_at desc
    limit 1
  ) as job on true;
$$;

comment on function rag.render(rag.documents) is
  'A document as a list returns it, with its chunks counted and its latest ingestion job.';

create function rag.get_document(document_id uuid)
returns rag.documents
language plpgsql stable security invoker set search_path = ''
as $$
declare
  found_document rag.documents;
begin
  select * into found_document
  from rag.documents
  where org_id = any (array(select rag.current_org_ids())) and id = get_document.document_id;
  if not found then
    raise exception 'There is no such document. Check its id.' using errcode = 'PT404', detail = 'document_not_found';
  end if;
  return found_document;
end;
$$;

comment on function rag.get_document is 'The document of that id; PT404 for one that the caller does not see.';

create function public.rag_list_documents(
  collection_id uuid, "limit" integer default 20, "offset" integer default 0, status text default null,
  sort_by text default 'created_at', "order" text default 'desc', name text default null
)
returns jsonb
language plpgsql stable security invoker set search_path = ''
as $$
#variable_conflict use_variable
declare
  is_admitted constant boolean := rag.begin_call();
  home constant rag.collections := rag.get_collection(collection_id);
begin
  perform rag.check_page("limit", "offset", "order", sort_by, array['created_at', 'title', 'size_bytes']);
  if status not in ('processing', 'completed', 'failed') then
    raise exception 'status must be processing, completed or failed'
      using errcode = 'PT400', detail = 'invalid_status';
  elsif length(name) not between 1 and 200 then
    raise exception 'name must have 1 to 200 characters' using errcode = 'PT400', detail = 'invalid_name';
  end if;
  return (
    with placed as (
      select listed.id, row_number() over (
        order by case sort_by when 'title' then listed.title end, case sort_by
          when 'created_at' then listed.created_at end, case sort_by
          when 'size_bytes' then coalesce(listed.size_bytes, 0) end, listed.id) as position
      from rag.documents as listed
      where listed.org_id = home.org_id and listed.collection_id = home.id
        and (rag_list_documents.status is null or listed.status = rag_list_documents.status)
        and (name is null or strpos(lower(listed.title), lower(normalize(name, nfc))) > 0
          or strpos(lower(listed.filename), lower(normalize(name, nfc))) > 0)
    ), page as (
      select placed.id, case "order" when 'desc' then -placed.position else placed.position end as turn
      from placed
      order by turn
      limit "limit" offset "offset"
    )
    select jsonb_build_object(
      'total', (select count(*) from placed),
      'documents', coalesce(jsonb_agg(to_jsonb(shown) order by page.turn), '[]'))
    from page
    join rag.documents on documents.org_id = home.org_id and documents.id = page.id
    cross join lateral rag.render(documents) as shown);
end;
$$;

comment on function public.rag_list_documents is
  '{"total", "documents": [...]}: a page of a collection''s documents, and their number. name: only those whose title '
  'or file name contains it, in upper or lower case.';

create function public.rag_get_document(document_id uuid)
returns setof rag.document
language plpgsql stable security invoker set search_path = ''
as $$
begin
  perform rag.begin_call();
  return query
    select shown.* from rag.render(rag.get_document(rag_get_document.document_id)) as shown;
end;
$$;

comment on function public.rag_get_document is 'A document; PT404 for one that the caller does not see.';

create function public.rag_read_document(
  document_id uuid, "offset" integer default 0, "limit" integer default 10000
)
returns table (id uuid, collection_id uuid, title text, uri text, status text, notes jsonb, characters integer,
  text text)
language plpgsql stable security invoker set search_path = ''
as $$
#variable_conflict use_variable
begin
  perform rag.begin_call(), rag.require_scope('documents:read', 'retrievals:read', 'chat:read');
  if ("offset" between 0 and 20000000 and "limit" between 1 and 100000) is not true then
    raise exception 'offset must be from 0 to 20000000, and limit from 1 to 100000'
      using errcode = 'PT400', detail = 'invalid_page';
  end if;
  return query
  select document.id, document.collection_id, document.title, document.uri, document.status,
    coalesce(document.processing_info -> 'notes', '[]'), length(document.content),
    substr(document.content, "offset" + 1, "limit")
  from rag.get_document(document_id) as document;
end;
$$;

comment on function public.rag_read_document is
  'A part of a document''s text: `limit` characters from `offset` on, and the number of characters of the whole. PT404 '
  'for a document that the caller does not see, PT403 for a key without a scope that reads.';

create function public.rag_get_original(document_id uuid)
returns table (filename text, content_type text, bytes text, url text, path text)
language plpgsql stable security invoker set search_path = ''
as $$
#variable_conflict use_column
begin
  perform rag.begin_call();
  return query
    select document.filename, document.content_type, encode(originals.bytes, 'base64'), originals.url,
      originals.path
    from rag.get_document(rag_get_original.document_id) as document
    join rag.originals on originals.org_id = document.org_id and originals.document_id = document.id;
end;
$$;

comment on function public.rag_get_original is
  'The original of a document: bytes in base64, the address, or the path of the object.';

-- Addition of a document for ingestion: its row, its original file and its job in one transaction. The content must be
-- new to the collection, and within the tier's limits. The functions run as their caller.

create function public.rag_add_document(collection_id uuid, document jsonb)
returns setof rag.document
language plpgsql volatile security invoker set search_path = ''
set statement_timeout = '60s'
as $$
#variable_conflict use_column
declare
  is_admitted constant boolean := rag.begin_write();
  home constant rag.collections := rag.get_collection(rag_add_document.collection_id);
  bytes bytea;
  -- Null for an object or a URL until the worker has read the content (rag_store_content).
  hash text;
  size bigint;
  input record;
  stored rag.documents;
begin
  perform rag.check_json('document', rag_add_document.document - 'bytes', 100000);
  bytes := case jsonb_typeof(document -> 'bytes') when 'string' then decode(document ->> 'bytes', 'base64') end;
  hash := encode(sha256(bytes), 'hex');
  select * into input from jsonb_to_record(rag_add_document.document) as fields (
    external_id text, private boolean, source_type text, title text, uri text, lang text,
    occurred_at timestamptz, origin text, author text, state text, labels text[], metadata jsonb,
    filename text, content_type text, size_bytes bigint, url text, path text);
  size := coalesce(length(bytes), case when input.path is not null then input.size_bytes end);
  -- Before the work, which a refusal at the end would throw away.
  perform rag.check_upload(home, size, bytes is not null);
  stored := rag.take_upload_once(home, input.path);
  if stored.id is not null then
    return next rag.render(stored);
    return;
  end if;

  insert into rag.documents as present (org_id, collection_id, owner_id, external_id, source_type, title,
    uri, lang, occurred_at, origin, author, state, labels, metadata, filename, content_type, size_bytes,
    content, content_hash, status)
  values (home.org_id, home.id, case when input.private then rag.current_user_id() else home.owner_id end,
    input.external_id, coalesce(input.source_type, 'doc'), input.title, input.uri, input.lang,
    input.occurred_at, input.origin, input.author, input.state, coalesce(input.labels, '{}'),
    coalesce(input.metadata, '{}'), input.filename, input.content_type, input.size_bytes, '',
    coalesce(hash, repeat('0', 64)), 'processing')
  -- Until the job is done, searches return the earlier version.
  on conflict (org_id, collection_id, owner_id, external_id) where external_id is not null
  do update set status = 'processing', error_code = null, error_message = null, updated_at = now()
  returning present.* into stored;

  perform rag.delete_failed_duplicate(stored, hash);
  perform rag.check_document_quota(home);
  perform rag.check_not_duplicate(stored, hash);

  perform rag.store_original(
    stored, bytes, input.url, input.path, case when input.path is not null then size end, hash);
  perform rag.enqueue_job(
    stored, rag_add_document.document - array['bytes', 'url', 'path', 'private', 'external_id']);
  -- Last, because it locks the user's count until the end of the transaction. An object was counted when it was announced.
  perform rag.count_upload(home.org_id, length(bytes));
  return next rag.render(stored);
end;
$$;

comment on function public.rag_add_document is
  'Add a document: its row, its original and its job, in one transaction. document: title; optionally private, '
  'external_id, source_type, uri, lang, occurred_at, origin, author, state, labels, metadata, filename, '
  'content_type, size_bytes; and bytes in base64, url, or the path of an object that the caller has uploaded '
  '(rag_begin_upload). A second call with the same path returns the same document. A document replaces the earlier one '
  'with the same external_id, which searches return until the job is done. PT409 for a deleted collection, and for '
  'bytes that a document of the collection already has; hint has the id of that document. PT429 for more documents '
  'or bytes and PT413 for larger files than the org''s tier allows; PT404 for an unknown upload.';

create function rag.check_upload(home rag.collections, size_bytes bigint, has_bytes boolean)
returns void
language plpgsql volatile security invoker set search_path = ''
as $$
begin
  perform rag.require_access(home.id, 'edit');
  if home.deleted_at is not null then
    raise exception 'The collection was deleted. Choose another collection.'
      using errcode = 'PT409', detail = 'collection_deleted';
  end if;
  perform rag.check_file_size(home.org_id, check_upload.size_bytes);
  if has_bytes then
    perform rag.count_upload(home.org_id, check_upload.size_bytes, is_counted => false);
  end if;
end;
$$;

comment on function rag.check_upload is
  'Raises PT409 for a deleted collection, PT413 for a larger file than the org''s tier allows; for a file whose bytes the '
  'call has, PT429 beyond the bytes that the tier allows in a minute.';

create function public.rag_check_upload(collection_id uuid, size_bytes bigint)
returns boolean
language plpgsql volatile security invoker set search_path = ''
set statement_timeout = '60s'
as $$
declare
  is_admitted constant boolean := rag.begin_write();
  home constant rag.collections := rag.get_collection(rag_check_upload.collection_id);
begin
  perform rag.require_scope('documents:write'), rag.check_storage(home.org_id),
    rag.check_upload(home, rag_check_upload.size_bytes, true);
  return is_admitted;
end;
$$;

comment on function public.rag_check_upload is
  'True, or the errors of rag_add_document for a file of this size that do not depend on its content: the scope, the '
  'collection, the size, the bytes of the org and those of the user in a minute. A call of a few bytes, so that a refused file '
  'is not sent to the database.';

create function rag.check_file_size(org_id uuid, size_bytes bigint)
returns void
language plpgsql stable security invoker set search_path = ''
as $$
declare
  largest constant bigint := (rag.org_tier(org_id)).file_bytes;
begin
  if size_bytes > largest then
    raise exception 'The tier of your org allows files of at most % bytes. Send a smaller file.', largest
      using errcode = 'PT413', detail = 'file_too_large';
  end if;
end;
$$;

comment on function rag.check_file_size is 'Raises PT413 for a larger file than the org''s tier allows.';

create function rag.take_upload_once(home rag.collections, path text)
returns rag.documents
language plpgsql volatile security invoker set search_path = ''
as $$
declare
  present rag.documents;
begin
  if take_upload_once.path is null then
    return null;
  end if;
  -- A second call for the same upload waits for the first.
  perform pg_advisory_xact_lock(hashtextextended('rag.uploads ' || take_upload_once.path, 0));
  select documents.* into present
  from rag.originals
  join rag.documents on documents.org_id = originals.org_id and documents.id = originals.document_id
  where originals.org_id = home.org_id and originals.collection_id = home.id
    and originals.path = take_upload_once.path and split_part(originals.path, '/', 3) = rag.current_user_id()::text;
  if not found then
    perform rag.take_upload(home, take_upload_once.path);
  end if;
  return present;
end;
$$;

comment on function rag.take_upload_once is
  'The document that an earlier call created from the upload. Without such a document, the function takes the upload '
  '(rag.take_upload) and returns null.';

create function rag.store_original(
  stored rag.documents, bytes bytea, url text, path text, object_bytes bigint, content_hash text
)
returns void
language plpgsql volatile security invoker set search_path = ''
as $$
#variable_conflict use_column
begin
  insert into rag.originals as present (org_id, document_id, collection_id, owner_id, bytes, url, path, object_bytes,
    content_hash)
  values (stored.org_id, stored.id, stored.collection_id, stored.owner_id, store_original.bytes, store_original.url,
    store_original.path, store_original.object_bytes, store_original.content_hash)
  on conflict (org_id, document_id)
  -- For a URL, the bytes of an earlier fetch stay until the URL is fetched again.
  do update set bytes = case when excluded.url is null then excluded.bytes else present.bytes end,
    url = excluded.url, path = excluded.path, object_bytes = excluded.object_bytes, created_at = now(),
    content_hash = case when excluded.url is null then excluded.content_hash else present.content_hash end;
exception when unique_violation then
  raise exception 'Another call is adding a document of the same content. Wait for its result.'
    using errcode = 'PT409', detail = 'duplicate_document';
end;
$$;

comment on function rag.store_original is
  'Store the original of a document; PT409 if another transaction adds the same content at this moment.';

create function rag.delete_failed_duplicate(stored rag.documents, content_hash text)
returns void
language sql volatile security invoker set search_path = ''
as $$
  delete from rag.documents as failed
  using rag.originals
  where originals.org_id = stored.org_id and originals.collection_id = stored.collection_id
    and originals.owner_id is not distinct from stored.owner_id
    and originals.content_hash = delete_failed_duplicate.content_hash and originals.document_id <> stored.id
    and failed.org_id = originals.org_id and failed.id = originals.document_id and failed.status = 'failed'
    and not exists (
      select from rag.chunks where chunks.org_id = failed.org_id and chunks.document_id = failed.id);
$$;

comment on function rag.delete_failed_duplicate is 'Delete a failed document of the same content that has no chunks.';

create function rag.check_not_duplicate(stored rag.documents, content_hash text)
returns void
language plpgsql stable security invoker set search_path = ''
as $$
declare
  twin uuid;
begin
  select originals.document_id into twin
  from rag.originals
  where originals.org_id = stored.org_id and originals.collection_id = stored.collection_id
    and originals.owner_id is not distinct from stored.owner_id
    and originals.content_hash = check_not_duplicate.content_hash and originals.document_id <> stored.id;
  if found then
    raise exception 'The collection already has a document of the same content. No second one was stored.'
      using errcode = 'PT409', detail = 'duplicate_document', hint = twin::text;
  end if;
end;
$$;

comment on function rag.check_not_duplicate is
  'Raises PT409 if the collection has a document of the same content and owner; its id is in hint.';

create function rag.check_document_quota(home rag.collections)
returns void
language plpgsql volatile security invoker set search_path = ''
as $$
declare
  allowed constant integer := (rag.org_tier(home.org_id)).documents_per_collection;
begin
  if allowed is null then
    return;
  end if;
  perform pg_advisory_xact_lock(hashtextextended('rag.documents ' || home.id::text, 0));
  if allowed < (rag.render(home)).document_count then
    raise exception 'The tier of your org allows % documents in a collection. Delete some, or ask for a larger tier.',
      allowed
      using errcode = 'PT429', detail = 'document_limit_reached';
  end if;
end;
$$;

comment on function rag.check_document_quota is
  'Raises PT429 if the documents of the collection, with the one just inserted, exceed the tier''s limit. A lock per '
  'collection prevents two concurrent calls from both passing the check.';

-- Functions to change and delete documents. They run as their caller.

create function public.rag_update_document(document_id uuid, changes jsonb)
returns setof rag.document
language plpgsql volatile security invoker set search_path = ''
as $$
declare
  is_admitted constant boolean := rag.begin_write();
  present rag.documents := rag.get_document(document_id);
  changed rag.documents;
begin
  perform rag.check_json('changes', changes, 100000);
  changed := jsonb_populate_record(present, (
    select coalesce(jsonb_object_agg(change.key, change.value), '{}')
    from jsonb_each(changes) as change
    where change.value <> 'null' or (changes ? 'metadata' and change.key <> 'title')));
  update rag.documents as renewed
  set title = changed.title, metadata = changed.metadata, source_type = coalesce(changed.source_type, 'doc'),
    uri = changed.uri, lang = changed.lang, occurred_at = changed.occurred_at, origin = changed.origin,
    author = changed.author, state = changed.state, labels = changed.labels, updated_at = clock_timestamp()
  where renewed.org_id = present.org_id and renewed.id = present.id
  returning renewed.* into changed;
  if changed.id is null then
    raise exception 'The API key may not change this document. Check its scopes and its collection.'
      using errcode = 'PT403', detail = 'missing_scope';
  end if;
  update rag.chunks
  set source_type = changed.source_type, lang = changed.lang, occurred_at = changed.occurred_at
  where chunks.org_id = changed.org_id and chunks.document_id = changed.id
    and (chunks.source_type, chunks.lang, chunks.occurred_at)
      is distinct from (changed.source_type, changed.lang, changed.occurred_at);
  return next rag.render(changed);
end;
$$;

comment on function public.rag_update_document is
  'Change a document''s title and metadata. changes: title, metadata and the fields derived from metadata. A missing '
  'or null title or metadata stays unchanged. New metadata replace the old, and all fields derived from metadata, '
  'also by null.';

create function public.rag_delete_document(document_id uuid)
returns boolean
language plpgsql volatile security invoker set search_path = ''
as $$
declare
  is_admitted constant boolean := rag.begin_write();
begin
  delete from rag.documents
  where org_id = any (array(select rag.current_org_ids())) and id = rag_delete_document.document_id;
  return found;
end;
$$;

comment on function public.rag_delete_document is 'Delete a document; false if the caller sees none of that id.';

create function public.rag_delete_documents(document_ids uuid[])
returns setof uuid
language plpgsql volatile security invoker set search_path = ''
set statement_timeout = '60s'
as $$
declare
  is_admitted constant boolean := rag.begin_write();
  own constant uuid[] := array(select rag.current_org_ids());
begin
  perform rag.check_ids('document_ids', document_ids);
  -- In one order, so that two calls with the same documents do not wait for each other.
  perform from rag.documents
  where org_id = any (own) and id = any (document_ids)
  order by org_id, id
  for update;
  return query
    delete from rag.documents where org_id = any (own) and id = any (document_ids) returning id;
end;
$$;

comment on function public.rag_delete_documents is
  'Delete up to 100 documents in one transaction, and return the ids of those that were deleted. Documents that the '
  'caller does not see are ignored.';

-- Chunks of documents: written from their spans, with the entities and relations that they name.

create type rag.document_chunks as (document_id uuid, chunks jsonb, embedding_model text);

comment on type rag.document_chunks is
  'The chunks that a document is to have, as an array of {span_start, span_end, token_count, embedding, metadata, '
  'names, relations} in reading order. The text of a chunk is that of its span, and metadata.header is that of the '
  'span from metadata.header_start to header_end (rag.cut_headers). names: its entities, {name, kind, surfaces, '
  'weight}; relations: their relations, {subject, type, object, confidence}. Without names the worker extracts both.';

create function rag.document_chunks(document_id uuid, chunks jsonb, embedding_model text)
returns rag.document_chunks
language plpgsql immutable security invoker set search_path = ''
as $$
begin
  return (document_id, chunks, embedding_model);
end;
$$;

comment on function rag.document_chunks is 'The chunks of a document, from named fields.';

create function rag.delete_chunks(org_id uuid, document_ids uuid[])
returns void
language sql volatile security invoker set search_path = ''
as $$
  delete from rag.chunks
  where chunks.org_id = delete_chunks.org_id and chunks.document_id = any (delete_chunks.document_ids);
$$;

comment on function rag.delete_chunks is
  'Delete the chunks of documents before others take their place. The caller has locked the documents'' rows: a second '
  'writer waits, and then replaces these chunks.';

create function rag.insert_chunks(org_id uuid, documents rag.document_chunks[], first integer)
returns void
language plpgsql volatile security invoker set search_path = ''
as $$
declare
  is_full constant boolean := rag.is_hnsw_tail_full(insert_chunks.org_id);
begin
  perform rag.check_models(array(select chunked.embedding_model from unnest(insert_chunks.documents) as chunked));
  insert into rag.chunks (org_id, document_id, collection_id, owner_id, ordinal, content, span_start,
    span_end, token_count, source_type, lang, occurred_at, embedding_model, embedding, metadata, in_hnsw)
  select stored.org_id, stored.id, stored.collection_id, stored.owner_id, insert_chunks.first + item.position - 1,
    item.content, fields.span_start, fields.span_end, fields.token_count, stored.source_type,
    stored.lang, stored.occurred_at, chunked.embedding_model,
    rag.fit_dimensions(fields.embedding, chunked.dimensions, 'embedding'),
    coalesce(fields.metadata, '{}') - 'header' || jsonb_strip_nulls(jsonb_build_object('header', item.header)), is_full
  from (
    select document.*, rag.dimensions_of(document.embedding_model) as dimensions
    from unnest(insert_chunks.documents) as document
    offset 0
  ) as chunked
  cross join lateral (
    select documents.*
    from rag.documents
    where documents.org_id = insert_chunks.org_id and documents.id = chunked.document_id
    -- Without this, the planner may call rag.cut_texts for other documents too, before it filters them out.
    offset 0
  ) as stored
  cross join rows from (jsonb_array_elements(chunked.chunks), unnest(rag.cut_texts(stored.content, chunked.chunks)),
    unnest(rag.cut_headers(stored.content, chunked.chunks))) with ordinality as item (body, content, header, position)
  cross join jsonb_to_record(item.body) as fields (span_start integer, span_end integer, token_count integer,
    embedding extensions.halfvec, metadata jsonb);

  if (
    select rag.is_in_graph(stored.org_id, stored.collection_id)
    from rag.documents as stored
    where stored.org_id = insert_chunks.org_id and stored.id = insert_chunks.documents[1].document_id)
  then
    perform rag.insert_names(insert_chunks.org_id, insert_chunks.documents, insert_chunks.first);
    perform rag.enqueue_extractions(insert_chunks.org_id, insert_chunks.documents, insert_chunks.first > 0);
  end if;
end;
$$;

comment on function rag.insert_chunks is
  'Insert chunks of documents of one collection, numbered from `first` on, with the texts of their spans. Each chunk '
  'repeats fields of its document''s row.';

-- Documents that come with their chunks: inserted or replaced in one transaction, so that no reader sees half of a
-- document. The functions of this project call them as their user; row security checks every row.

create type rag.new_document as (
  number integer, id uuid, owner_id uuid, external_id text, source_type text, title text, uri text, lang text,
  occurred_at timestamptz, origin text, author text, state text, labels text[], metadata jsonb, content text,
  content_hash text, embedding_model text, chunks jsonb
);

comment on type rag.new_document is 'A document to store, and its number among those of the call.';

create type rag.stored_document as (number integer, document_id uuid, replaced boolean, chunk_count integer);

comment on type rag.stored_document is
  'A stored document: its number in the call, its id, and whether it replaced another.';

create function rag.stored_document(number integer, document_id uuid, replaced boolean, chunk_count integer)
returns rag.stored_document
language plpgsql immutable security invoker set search_path = ''
as $$
begin
  return (number, document_id, replaced, chunk_count);
end;
$$;

comment on function rag.stored_document is 'A stored document from named fields.';

create function rag.new_documents(home rag.collections, documents jsonb)
returns rag.new_document[]
language plpgsql volatile security invoker set search_path = ''
as $$
declare
  input record;
  document rag.new_document;
  new rag.new_document[];
begin
  for input in
    select item.number, item.body -> 'chunks' as chunks, fields.*
    from jsonb_array_elements(new_documents.documents) with ordinality as item (body, number),
      jsonb_to_record(item.body) as fields (external_id text, private boolean, source_type text, title text,
        uri text, lang text, occurred_at timestamptz, origin text, author text, state text, labels text[],
        metadata jsonb, content text, embedding_model text)
  loop
    document.number := input.number;
    document.id := rag.time_ordered_id();
    document.owner_id := case when input.private then rag.current_user_id() else home.owner_id end;
    document.external_id := input.external_id;
    document.source_type := coalesce(input.source_type, 'doc');
    document.title := input.title;
    document.uri := input.uri;
    document.lang := input.lang;
    document.occurred_at := input.occurred_at;
    document.origin := input.origin;
    document.author := input.author;
    document.state := input.state;
    document.labels := coalesce(input.labels, '{}');
    document.metadata := coalesce(input.metadata, '{}');
    document.content := input.content;
    document.content_hash := encode(sha256(convert_to(input.content, 'UTF8')), 'hex');
    document.embedding_model := input.embedding_model;
    document.chunks := input.chunks;
    new := new || document;
  end loop;
  return new;
end;
$$;

comment on function rag.new_documents is
  'The documents of a call as rows. The owner of private documents is the caller.';

create function rag.put_documents(home rag.collections, new rag.new_document[],
  only_present boolean default false)
returns setof rag.stored_document
language plpgsql volatile security invoker set search_path = ''
as $$
#variable_conflict use_variable
declare
  made uuid[] := '{}';
  absent rag.new_document[] := new;
  present uuid[];
  stored rag.stored_document[] := '{}';
begin
  perform rag.require_access(home.id, 'edit');
  if exists (
    select from unnest(new) as input
    where octet_length(input.content) > (select (rag.org_tier(home.org_id)).file_bytes)
  ) then
    raise exception 'The text is larger than the tier of your org allows. Send a shorter text.'
      using errcode = 'PT413', detail = 'file_too_large';
  end if;
  for attempt in 1..10 loop
    if not only_present then
      made := made || rag.insert_documents(home, absent);
      stored := stored || array(
        select rag.stored_document(number => input.number, document_id => input.id, replaced => false,
          chunk_count => jsonb_array_length(input.chunks))
        from unnest(absent) as input
        where input.id = any (made));
      absent := array(select input from unnest(absent) as input where input.id <> all (made));
      exit when absent = '{}';
    end if;
    -- Locked in one order, so that of two calls that replace the same documents one waits for the other.
    present := array(
      select documents.id
      from rag.documents
      where documents.org_id = home.org_id
        and documents.id = any (array(select target.document_id from rag.resolve_documents(home, absent) as target))
      order by documents.id
      for update);
    stored := stored || array(
      select rag.stored_document(number => target.number, document_id => target.document_id,
        replaced => target.document_id <> all (made), chunk_count => jsonb_array_length(input.chunks))
      from rag.resolve_documents(home, absent) as target
      join unnest(absent) as input on input.number = target.number
      where target.document_id = any (present));
    -- A document that another call deleted before it was locked is created again.
    absent := array(
      select input from unnest(absent) as input
      where input.number not in (select entry.number from unnest(stored) as entry));
    exit when only_present or absent = '{}';
  end loop;
  if not only_present and absent <> '{}' then
    raise exception 'Other calls are deleting these documents. Please try again.'
        using errcode = 'PT409', detail = 'conflict';
  end if;

  perform rag.replace_documents(home.org_id, new, array(
    select entry from unnest(stored) as entry where entry.replaced));
  perform rag.insert_chunks(home.org_id, array(
    select rag.document_chunks(
      document_id => entry.document_id, chunks => input.chunks, embedding_model => input.embedding_model)
    from unnest(stored) as entry
    join unnest(new) as input on input.number = entry.number), 0);
  return query select entry.* from unnest(stored) as entry order by entry.number;
end;
$$;

comment on function rag.put_documents is
  'Store documents, each in place of the one of its name and owner; no two have the same. only_present: documents '
  'that do not exist are skipped.';

create function rag.resolve_documents(home rag.collections, new rag.new_document[])
returns table (number integer, document_id uuid)
language sql stable security invoker set search_path = ''
  -- Without statistics, all indexes that begin with the org cost the same, and a look-up by name might read all
  -- documents of the org. Only documents_external_id has the order of names. Postgres 16 also scans a small table for
  -- each id.
  set enable_sort = off set enable_seqscan = off
as $$
  select input.number, target.id
  from unnest(new) as input
  cross join lateral (
    select documents.id, input.external_id
    from rag.documents
    where documents.org_id = home.org_id and documents.id = input.id
    union all
    (select documents.id, documents.external_id
    from rag.documents
    where documents.org_id = home.org_id and documents.collection_id = home.id
      and documents.owner_id = input.owner_id and documents.external_id >= input.external_id
    order by documents.owner_id, documents.external_id
    limit 1)
    union all
    (select documents.id, documents.external_id
    from rag.documents
    where documents.org_id = home.org_id and documents.collection_id = home.id and documents.owner_id is null
      and input.owner_id is null and documents.external_id >= input.external_id
    order by documents.owner_id, documents.external_id
    limit 1)
  ) as target (id, external_id)
  where target.external_id is not distinct from input.external_id;
$$;

comment on function rag.resolve_documents is
  'The existing documents that a call replaces, by their ids, or by name and owner. Each is a look-up in an index '
  'of its own: for a name, the first document from this name on in the order of names.';

create function rag.insert_documents(home rag.collections, new rag.new_document[])
returns uuid[]
language plpgsql volatile security invoker set search_path = ''
as $$
declare
  made uuid[];
begin
  with inserted as (
    insert into rag.documents (org_id, id, collection_id, owner_id, external_id, source_type, title, uri, lang,
      occurred_at, origin, author, state, labels, metadata, content, content_hash, created_at, updated_at)
    select home.org_id, input.id, home.id, input.owner_id, input.external_id, input.source_type, input.title,
      input.uri, input.lang, input.occurred_at, input.origin, input.author, input.state, input.labels,
      input.metadata, input.content, input.content_hash,
      -- Lists show them in the order in which they came.
      now() + input.number * interval '1 microsecond', now() + input.number * interval '1 microsecond'
    from unnest(new) as input
    order by input.external_id
    on conflict (org_id, collection_id, owner_id, external_id) where external_id is not null do nothing
    returning documents.id
  )
  select coalesce(array_agg(inserted.id), '{}') into made from inserted;
  if made <> '{}' then
    perform rag.check_document_quota(home);
  end if;
  return made;
end;
$$;

comment on function rag.insert_documents is 'Insert new documents; their ids.';

create function rag.replace_documents(org_id uuid, new rag.new_document[], present rag.stored_document[])
returns void
language plpgsql volatile security invoker set search_path = ''
as $$
begin
  if present = '{}' then
    return;
  end if;
  -- The words of all these documents leave the index with their chunks, below: two statements that remove words might wait
  -- for those of another call.
  perform set_config('rag.words_later', 'true', true);
  update rag.documents as renewed
  set source_type = input.source_type, title = input.title, uri = input.uri, lang = input.lang,
    occurred_at = input.occurred_at, origin = input.origin, author = input.author, state = input.state,
    labels = input.labels, metadata = input.metadata, content = input.content,
    content_hash = input.content_hash, status = 'completed', error_code = null, error_message = null,
    updated_at = clock_timestamp()
  from unnest(present) as entry
  join unnest(new) as input on input.number = entry.number
  where renewed.org_id = replace_documents.org_id and renewed.id = entry.document_id;
  perform set_config('rag.words_later', '', true);

  delete from rag.jobs
  using unnest(present) as entry
  where jobs.org_id = replace_documents.org_id and jobs.document_id = entry.document_id
    and jobs.kind = 'ingestion' and jobs.state in ('waiting', 'running');
  delete from rag.originals
  using unnest(present) as entry
  where originals.org_id = replace_documents.org_id and originals.document_id = entry.document_id;
  perform rag.delete_chunks(replace_documents.org_id, array(select entry.document_id from unnest(present) as entry));
end;
$$;

comment on function rag.replace_documents is
  'Replace the fields of existing documents, and delete their chunks, originals and unfinished ingestion jobs, which '
  'are older.';

-- Chunks that are not in the HNSW index yet: the tail. Inserting a chunk into that index takes longer than inserting it
-- into all other indexes. So a write leaves the insertion to the worker, up to a number of chunks of an org. A search
-- that uses the index compares the tail exactly (rag.hnsw_scan). A short tail stays: a search of a small org compares
-- all its chunks.

create function rag.is_hnsw_tail_full(org_id uuid)
returns boolean
language sql stable security invoker set search_path = ''
as $$
  select exists (
    select from rag.chunks
    where chunks.org_id = is_hnsw_tail_full.org_id and not chunks.in_hnsw
    offset (select least(3000, settings.exact_rows) from rag.settings));
$$;

comment on function rag.is_hnsw_tail_full is
  'Whether more than 3,000 chunks of the org that the caller sees are not in the HNSW index (more than exact_rows of '
  'the settings, if that is less). Further chunks are then inserted into it at once.';

create policy "the worker sees which chunks are in the HNSW index" on rag.chunks
  for select to rag_worker using (true);

create policy "the worker adds chunks to the HNSW index" on rag.chunks
  for update to rag_worker using (not in_hnsw) with check (in_hnsw);

create function public.rag_extend_hnsw(max_items integer default 100)
returns bigint
language plpgsql volatile security invoker set search_path = ''
set statement_timeout = '60s'
as $$
declare
  tail_org_id uuid := gen_random_uuid();
  added bigint;
begin
  perform rag.check_claim(max_items);
  -- The keyword index does not change.
  perform set_config('rag.words_later', 'true', true);
  -- The tails of a few orgs, from a random one on: the duration of a call does not depend on the number of orgs.
  for step in 1..50 loop
    select chunks.org_id into tail_org_id
    from rag.chunks
    where not chunks.in_hnsw and chunks.org_id > tail_org_id
    order by chunks.org_id
    limit 1;
    if not found then
      tail_org_id := '00000000-0000-0000-0000-000000000000';
    elsif exists (
      select from rag.chunks where chunks.org_id = tail_org_id and not chunks.in_hnsw offset 1000)
    then
      with tail as materialized (
        select chunks.org_id, chunks.id
        from rag.chunks
        where chunks.org_id = tail_org_id and not chunks.in_hnsw
        limit max_items
        for update skip locked
      )
      update rag.chunks
      set in_hnsw = true
      from tail
      where chunks.org_id = tail.org_id and chunks.id = tail.id and not chunks.in_hnsw;
      get diagnostics added = row_count;
      return added;
    end if;
  end loop;
  return 0;
end;
$$;

comment on function public.rag_extend_hnsw is
  'For the worker: add chunks of one org with a tail of more than 1,000 chunks to the HNSW index. Returns the number '
  'of chunks. A call examines the tails of 50 orgs at most, so 0 does not mean that no org has a longer tail.';

-- Collections and documents by the caller's names, for APIs without ids: an index or a namespace is a collection, and a
-- document has its external_id as its name, or its id if it has none. With several orgs the caller's token must name
-- one, as that of an API key does.

create function rag.external_name(document rag.documents)
returns text
language sql immutable security invoker set search_path = ''
as $$
  select coalesce(document.external_id, document.id::text);
$$;

comment on function rag.external_name is 'The caller''s name of a document.';

create function rag.require_collection(name text, in_org uuid default null)
returns rag.collections
language plpgsql stable security invoker set search_path = ''
as $$
declare
  org_id constant uuid := rag.resolve_org(in_org);
  home rag.collections;
begin
  perform rag.check_owner_in_name(org_id, require_collection.name);
  select * into home from rag.collection_by_name(org_id, require_collection.name, or_deleted => true);
  if not found then
    raise exception 'There is no such collection. Check its id or name.'
      using errcode = 'PT404', detail = 'collection_not_found';
  end if;
  return home;
end;
$$;

comment on function rag.require_collection is
  'The collection of that name; PT404 if there is none, PT403 for another user''s private collection.';

create function rag.documents_by_name(home rag.collections, names text[])
returns setof rag.documents
language plpgsql stable security invoker set search_path = ''
as $$
#variable_conflict use_column
begin
  -- All names in one scan: without statistics of a new table, the planner reads all documents of the org in a scan.
  return query
  select distinct on (found.name) (found.document).*
  from (
    select documents.external_id, documents
    from rag.documents
    where documents.org_id = home.org_id and documents.collection_id = home.id
      and documents.owner_id = rag.current_user_id() and documents.external_id = any (names)
    union all
    select documents.external_id, documents
    from rag.documents
    where documents.org_id = home.org_id and documents.collection_id = home.id
      and documents.owner_id = home.owner_id and documents.external_id = any (names)
    union all
    select documents.external_id, documents
    from rag.documents
    where documents.org_id = home.org_id and documents.collection_id = home.id
      and documents.owner_id is null and documents.external_id = any (names)
    union all
    select documents.id::text, documents
    from rag.documents
    where documents.org_id = home.org_id and documents.collection_id = home.id and documents.external_id is null
      and documents.id = any (array(
        select name::uuid from unnest(names) as name
        where name ~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$'))
  ) as found (name, document)
  order by found.name, (found.document).owner_id nulls last, (found.document).external_id nulls last;
end;
$$;

comment on function rag.documents_by_name is
  'The documents of those names in a collection: the caller''s own before a shared one, and an external_id before '
  'an id.';

create function public.rag_find_collection(collection text)
returns table (id uuid, org_id uuid, owner_id uuid, name text, description text, metadata jsonb, config jsonb)
language plpgsql stable security invoker set search_path = ''
as $$
#variable_conflict use_column
begin
  -- The scopes of those who write, delete or search by name. Lists of documents look the collection up themselves.
  perform rag.begin_call(),
    rag.require_scope('documents:write', 'collections:manage', 'retrievals:read', 'chat:read');
  return query
    select home.id, home.org_id, home.owner_id, home.name, home.description, home.metadata, home.config
    from rag.require_collection(rag_find_collection.collection) as home;
end;
$$;

comment on function public.rag_find_collection is
  'The collection of that name, without counting its documents, which takes longer.';

create function public.rag_list_names()
returns jsonb
language plpgsql stable security invoker set search_path = ''
as $$
begin
  perform rag.begin_call(),
    rag.require_scope('documents:read', 'documents:write', 'retrievals:read', 'chat:read');
  return (
    select coalesce(jsonb_agg(distinct collections.name), '[]')
    from rag.collections
    where collections.org_id = rag.resolve_org(null) and collections.loading_name is null
      and collections.id = (
        select named.id from rag.collection_by_name(collections.org_id, collections.name, or_deleted => true) as named));
end;
$$;

comment on function public.rag_list_names is 'The names of all collections that the caller can name, in their order.';

create function public.rag_find_documents(collection text, names text[])
returns table (name text, document_id uuid, content_hash text, metadata jsonb)
language plpgsql stable security invoker set search_path = ''
as $$
#variable_conflict use_column
begin
  perform rag.begin_call();
  return query
    select rag.external_name(found), found.id, found.content_hash, found.metadata
    from rag.documents_by_name(rag.require_collection(rag_find_documents.collection), rag_find_documents.names) as found;
end;
$$;

comment on function public.rag_find_documents is
  'The documents of those names in a collection, with the fields that show whether they have changed.';

create function public.rag_put_documents(
  collection text, documents jsonb, only_present boolean default false, org_id uuid default null
)
returns setof rag.stored_document
language plpgsql volatile security invoker set search_path = ''
-- PostgREST applies it before the call. A document of thousands of chunks takes its time: each is entered
-- into the HNSW index.
set statement_timeout = '60s'
as $$
declare
  home rag.collections;
  new rag.new_document[];
begin
  perform rag.begin_write();
  perform rag.check_json('documents', rag_put_documents.documents);
  if rag_put_documents.only_present then
    home := rag.require_collection(rag_put_documents.collection, rag_put_documents.org_id);
  else
    perform rag.check_name(rag_put_documents.collection);
    home := rag.ensure_collection(rag.resolve_org(rag_put_documents.org_id), rag_put_documents.collection);
  end if;
  new := rag.new_documents(home, rag_put_documents.documents);
  if rag_put_documents.only_present then
    for number in 1..coalesce(cardinality(new), 0) loop
      -- By id alone: the document of that name may belong to another user.
      new[number].id := (
        select found.id from rag.documents_by_name(home, array[new[number].external_id]) as found);
      new[number].external_id := null;
    end loop;
  end if;
  return query select stored.* from rag.put_documents(home, new, rag_put_documents.only_present) as stored;
end;
$$;

comment on function public.rag_put_documents is
  'Store documents with their chunks in the collection, which is created if it is new. A document replaces the '
  'document of its name. documents: title, content, embedding_model and chunks; optionally external_id (no two have the '
  'same), private (true: only the caller and the org''s admins see it), source_type, uri, lang, occurred_at, origin, '
  'author, state, labels, metadata. A private and a shared document of one external_id are two documents. only_present: '
  'documents that do not exist are skipped. org_id: by default the caller''s only org. number counts from 1.';

create function public.rag_list_named(
  collection text, "limit" integer, "offset" integer default 0, characters integer default null,
  metadata jsonb default '{}'
)
returns jsonb
language plpgsql stable security invoker set search_path = ''
as $$
declare
  is_admitted constant boolean := rag.begin_call();
  home constant rag.collections := rag.require_collection(rag_list_named.collection);
  facets uuid[];
  most_characters constant integer := greatest(least(coalesce(characters, 100000), 100000), 0);
begin
  perform rag.check_json('metadata', rag_list_named.metadata, 65536);
  facets := array(
    select rag.facet_hash('metadata.' || entry.key, entry.value) from jsonb_each(rag_list_named.metadata) as entry);
  return (
    with listed as (
      select documents.id, documents.created_at
      from rag.documents
      where documents.org_id = home.org_id and documents.collection_id = home.id
        -- An admin sees more, but not by these names.
        and (documents.owner_id is null or documents.owner_id = any (array[rag.current_user_id(), home.owner_id]))
        and not exists (
          select from unnest(facets) as asked (facet)
          where not exists (
            select from rag.facets as own
            where own.org_id = home.org_id and own.document_id = documents.id and own.facet = asked.facet))
    ), page as (
      select sized.*, sum(sized.bytes) over (order by sized.created_at, sized.id) - sized.bytes as bytes_before
      from (
        select listed.*, least(octet_length(documents.content), 4 * most_characters)
          -- The result of || is not compressed.
          + pg_column_size(documents.metadata || '{}') as bytes
        from listed
        join rag.documents on documents.org_id = home.org_id and documents.id = listed.id
        order by listed.created_at, listed.id
        limit least("limit", 1000) offset "offset"
      ) as sized
    )
    select jsonb_build_object('total', (select count(*) from listed), 'documents', coalesce(jsonb_agg(
      jsonb_build_object(
        'name', rag.external_name(documents), 'document_id', documents.id,
        'content', left(documents.content, most_characters),
        'is_truncated', length(documents.content) > most_characters,
        'content_hash', documents.content_hash, 'metadata', documents.metadata, 'title', documents.title,
        'source_type', documents.source_type, 'uri', documents.uri, 'status', documents.status,
        'created_at', documents.created_at, 'updated_at', documents.updated_at)
      order by page.created_at, page.id), '[]'))
    from page
    join rag.documents on documents.org_id = home.org_id and documents.id = page.id
    where page.bytes_before < 8 << 20);
end;
$$;

comment on function public.rag_list_named is
  '{"total", "documents": [{name, document_id, content, is_truncated, content_hash, metadata, title, source_type, '
  'uri, status, created_at, updated_at}]}: a page, the oldest first, of the documents whose metadata have all these '
  'values, with so many characters of their texts (at most 100,000), and how many there are. A page ends early '
  'after eight megabytes: the caller asks again for the rest.';

create function public.rag_delete_named(collection text, names text[])
returns setof text
language plpgsql volatile security invoker set search_path = ''
set statement_timeout = '60s'
as $$
declare
  is_admitted constant boolean := rag.begin_write();
  home constant rag.collections := rag.require_collection(rag_delete_named.collection);
  present constant uuid[] := array(select found.id from rag.documents_by_name(home, names) as found);
begin
  -- In the order in which writers lock them.
  perform from (
    select from rag.documents where documents.org_id = home.org_id and documents.id = any (present)
    order by documents.id
    for update
  ) as locked;
  return query
  delete from rag.documents as gone
  where gone.org_id = home.org_id and gone.id = any (present)
  returning rag.external_name(gone);
end;
$$;

comment on function public.rag_delete_named is 'Delete the documents of those names in a collection; their names.';

-- Documents and chunks by their ids, with as much text as one response holds. Ids that the caller does not see, and ids
-- that do not exist, are left out alike.

create function rag.text_bytes(content text)
returns bigint
language sql immutable security invoker set search_path = ''
as $$
  select octet_length(to_json(content)::text);
$$;

comment on function rag.text_bytes is 'The number of bytes of a text in a JSON response.';

create function rag.first_chunks(org_id uuid, document_id uuid, room bigint, out chunks jsonb,
  out taken bigint, out complete boolean)
language plpgsql stable security invoker set search_path = ''
set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_variable
declare
  parts jsonb[] := '{}';
  part record;
  size bigint;
begin
  taken := 0;
  complete := true;
  -- The loop stops reading texts when the response is full.
  for part in
    select present.id, present.document_id, present.ordinal, present.content as text, present.span_start,
      present.span_end
    from rag.chunks as present
    where present.org_id = first_chunks.org_id and present.document_id = first_chunks.document_id
    order by present.ordinal
  loop
    size := rag.text_bytes(part.text);
    complete := taken + size <= room;
    exit when not complete;
    taken := taken + size;
    parts := parts || to_jsonb(part);
  end loop;
  chunks := to_jsonb(parts);
end;
$$;

comment on function rag.first_chunks is
  'The first chunks of a document that take no more than `room` bytes together; complete: whether these are all.';

create function rag.contents_by_id(org_id uuid, kinds text[], ids uuid[], collection_id uuid)
returns table (content text, document jsonb, passage jsonb, id uuid)
language plpgsql stable security invoker set search_path = ''
as $$
#variable_conflict use_column
begin
  return query
  select coalesce(document.content, passage.content) as content, document.shown as document,
    passage.shown as passage, requested.id
  from unnest(kinds, ids) with ordinality as requested (kind, id, position)
  left join lateral (
    select present.content, jsonb_build_object('id', present.id, 'collection_id', present.collection_id,
      'title', present.title, 'source_type', present.source_type, 'origin', present.origin, 'uri', present.uri,
      'author', present.author, 'state', present.state, 'labels', present.labels,
      'occurred_at', present.occurred_at, 'metadata', present.metadata,
      'notes', coalesce(present.processing_info -> 'notes', '[]')) as shown
    from rag.documents as present
    where requested.kind = 'document' and present.org_id = contents_by_id.org_id and present.id = requested.id
      and (contents_by_id.collection_id is null or present.collection_id = contents_by_id.collection_id)
    offset 0
  ) as document on true
  left join lateral (
    select present.content, jsonb_build_object('id', present.id, 'document_id', present.document_id,
      'ordinal', present.ordinal, 'span_start', present.span_start, 'span_end', present.span_end) as shown
    from rag.chunks as present
    where requested.kind = 'chunk' and present.org_id = contents_by_id.org_id and present.id = requested.id
      and (contents_by_id.collection_id is null or present.collection_id = contents_by_id.collection_id)
    offset 0
  ) as passage on true
  where document.shown is not null or passage.shown is not null
  order by requested.position;
end;
$$;

comment on function rag.contents_by_id is
  'The documents and chunks of these ids, in their order: the text, and the other fields as JSON. The parameters are '
  'those of rag_get_contents.';

create function public.rag_get_contents(
  org_id uuid, kinds text[], ids uuid[], collection_id uuid default null, text boolean default true,
  chunks boolean default false
)
returns jsonb
language plpgsql stable security invoker set search_path = ''
-- Planning under row security takes longer than these statements run.
set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_variable
declare
  -- Lambda returns at most six megabytes.
  room bigint := 4500000;
  documents jsonb[] := '{}';
  passages jsonb[] := '{}';
  own record;
  size bigint;
  fits boolean;
  parts jsonb;
  taken bigint;
  complete boolean;
begin
  perform rag.begin_call(), rag.require_scope('documents:read', 'retrievals:read', 'chat:read');
  if ids is null or kinds is null or cardinality(ids) > 100 or cardinality(ids) <> cardinality(kinds) then
    raise exception 'ids must have at most 100 ids, and kinds a kind for each'
      using errcode = 'PT400', detail = 'invalid_ids';
  end if;
  for own in select * from rag.contents_by_id(org_id, kinds, ids, collection_id) loop
    room := room - octet_length(coalesce(own.document, own.passage)::text);
    -- A text that is larger than the whole response is not read.
    size := case when (text or own.document is null) and octet_length(own.content) <= room
      then rag.text_bytes(own.content) end;
    fits := coalesce(size <= room, false);
    if fits then
      room := room - size;
    end if;
    if own.passage is not null then
      passages := passages || (own.passage || jsonb_build_object('text', case when fits then own.content end));
      continue;
    end if;
    if chunks then
      select first.chunks, first.taken, first.complete into parts, taken, complete
      from rag.first_chunks(org_id, own.id, room) as first;
      room := room - taken;
    end if;
    documents := documents || (own.document || jsonb_build_object(
      'text', case when fits then own.content end, 'chunks', parts,
      'truncated', text and not fits or chunks and not complete));
  end loop;
  return jsonb_build_object('documents', to_jsonb(documents), 'chunks', to_jsonb(passages));
end;
$$;

comment on function public.rag_get_contents is
  'Documents and chunks by id. ids of documents and chunks, as their kinds say, of an org, or of one of its '
  'collections. text, chunks: whether documents come with these. In the order of the ids 4,500,000 bytes are given '
  'out: a text is whole or null, of chunks there are the first; where something did not fit, truncated is true. '
  'Ids that are not found are omitted. PT403 for a key without a scope that reads.';

-- Resolution of the workspace (a collection) or org that a request of the search API names. Each request resolves it
-- once, before it costs anything; its later calls pass the resolved ids.

create type rag.workspace as (org_id uuid, collection_id uuid);

comment on type rag.workspace is 'The org, and the collection if one is named, that a request searches.';

create function public.rag_resolve_workspace(workspace_id uuid default null, org_id uuid default null)
returns setof rag.workspace
language plpgsql stable security invoker set search_path = ''
as $$
#variable_conflict use_column
declare
  is_admitted constant boolean := rag.begin_call();
  org_ids constant uuid[] := case when rag_resolve_workspace.org_id is null then array(select rag.current_org_ids())
    else array[rag.resolve_org(rag_resolve_workspace.org_id)] end;
begin
  if workspace_id is null and rag_resolve_workspace.org_id is null then
    raise exception 'The request must name a workspace or an org.'
      using errcode = 'PT400', detail = 'workspace_required';
  elsif workspace_id is null then
    return query select org_ids[1], null::uuid;
    return;
  end if;
  return query
  select collections.org_id, collections.id
  from rag.collections
  where collections.org_id = any (org_ids) and collections.id = workspace_id and collections.loading_name is null;
  if not found then
    raise exception 'There is no such workspace. Check its id.' using errcode = 'PT404', detail = 'workspace_not_found';
  end if;
end;
$$;

comment on function public.rag_resolve_workspace is
  'The org and collection that the ids denote for the caller; without a workspace, the org. PT404 for a workspace '
  'that the caller does not see, that is in another org than the given one, or that is being loaded; and for an org '
  'of others.';

-- API keys. A function that receives a key looks up its hash and signs a token of one minute, which acts as the key's
-- owner in the key's org, restricted to its scopes and its collection; row security applies to that token. Only the
-- hash is stored, and no function returns it. Owners create, list, rotate and revoke their own keys; an org's admins
-- list and revoke all of the org's keys.

create table rag.api_keys (
  org_id uuid not null references rag.orgs (id) on delete cascade,
  id uuid not null default gen_random_uuid(),
  owner_id uuid not null,
  name text not null check (length(name) between 1 and 100 and rag.is_visible_text(name)),
  prefix text not null check (prefix ~ '^(mn_live|mn_test|mn_admin|sk)_[A-Za-z0-9_-]{4}$'),
  hash text not null check (hash ~ '^[0-9a-f]{64}$'),
  scopes text[] not null check (array_ndims(scopes) = 1 and cardinality(scopes) between 1 and 6
    and scopes <@ array['documents:read', 'documents:write', 'retrievals:read', 'chat:read',
      'collections:manage', 'admin']),
  collection_id uuid,
  requests_per_minute integer check (requests_per_minute > 0),
  created_at timestamptz not null default now(),
  expires_at timestamptz check (expires_at < '9999-12-31Z'),
  last_used_at timestamptz,
  revoked_at timestamptz,
  replaced_at timestamptz,
  auth_user_id uuid generated always as (rag.auth_user_id(owner_id)) stored references auth.users (id) on delete cascade,
  primary key (org_id, id),
  -- rag_open_key: a key is found by its hash, before its org is known.
  constraint api_keys_hash unique (hash),
  foreign key (org_id, collection_id) references rag.collections (org_id, id) on delete cascade
);

comment on table rag.api_keys is 'API keys: the hash, owner, scopes and validity of each.';
comment on column rag.api_keys.owner_id is
  'The user as whom the key acts. A key never has more rights than its owner, and is invalid without the membership.';
comment on column rag.api_keys.prefix is 'The first characters of the key, which distinguish keys in a list.';
comment on column rag.api_keys.hash is 'SHA-256 of the whole key, whose 256 random bits need no slower hash.';
comment on column rag.api_keys.collection_id is 'Null is every collection that the owner may use.';
comment on column rag.api_keys.requests_per_minute is
  'Set by the deployer: this key''s own limit a minute over the functions that take keys. Its requests also count for '
  'the user. If the key''s limit is higher than the user''s, it replaces the user''s for them (rag.caller_limits).';
comment on column rag.api_keys.last_used_at is
  'As exact as the functions'' caches, which keep a key for less than a minute.';
comment on column rag.api_keys.replaced_at is
  'When a new key replaced this one. The old key may stay valid until expires_at.';

-- rag_list_keys; and cascades from a deleted user or collection.
create index api_keys_by_owner on rag.api_keys (owner_id);
create index api_keys_by_auth_user on rag.api_keys (auth_user_id);
create index api_keys_by_collection on rag.api_keys (org_id, collection_id);

alter table rag.api_keys enable row level security;
alter table rag.api_keys force row level security;

-- The token that looks a key up has no user and no org: it names a hash and sees that one row.
create policy "owners and admins use their keys, and a key finds itself" on rag.api_keys
  for all to authenticated
  using ((org_id = any (array(select rag.current_org_ids()))
    and (owner_id is null or owner_id = (select rag.current_user_id())
      or org_id = any (array(select rag.admin_org_ids()))))
    or hash = (select rag.lookup_hash()))
  with check ((org_id = any (array(select rag.current_org_ids()))
    and (owner_id is null or owner_id = (select rag.current_user_id())
      or org_id = any (array(select rag.admin_org_ids()))))
    or hash = (select rag.lookup_hash()));

-- An admin's key for another user would act in that person's name; and a key that could make keys would
-- create keys that are valid after its own expiry. (The caller of a key's token is the key.)
create policy "keys are made for oneself, by oneself" on rag.api_keys
  as restrictive for insert to authenticated
  with check (owner_id = (select rag.caller_id()));

create policy "a key manages keys with the scope for it" on rag.api_keys
  as restrictive for all to authenticated
  using ((select rag.has_scope('admin')))
  with check ((select rag.has_scope('admin')));

call rag.bind_keys('api_keys');

create function rag.prevent_key_revival()
returns trigger
language plpgsql volatile security invoker set search_path = ''
as $$
begin
  if new.revoked_at is distinct from coalesce(old.revoked_at, new.revoked_at)
    or new.replaced_at is distinct from coalesce(old.replaced_at, new.replaced_at)
    or coalesce(new.expires_at, 'infinity') > coalesce(old.expires_at, 'infinity')
  then
    raise exception 'A revoked or replaced key cannot be used again, and its expiry cannot be later. Create another key.'
      using errcode = 'PT400', detail = 'key_ended';
  end if;
  return new;
end;
$$;

comment on function rag.prevent_key_revival is
  'Trigger that raises PT400 for an update which would make a revoked, replaced or expired key valid again.';

-- Applies to every update that the policies permit: no key becomes valid again, or valid for longer.
create trigger key_only_ends before update on rag.api_keys
  for each row execute function rag.prevent_key_revival();

-- Functions to create, list, rotate, revoke and look up API keys. They run as their caller.

create type rag.api_key as (
  id uuid, org_id uuid, owner_id uuid, name text, prefix text, scopes text[], collection text,
  created_at timestamptz, expires_at timestamptz, last_used_at timestamptz, revoked_at timestamptz
);

comment on type rag.api_key is 'An API key as a list returns it.';

create function rag.render(key rag.api_keys)
returns rag.api_key
language sql stable security invoker set search_path = ''
as $$
  select key.id, key.org_id, key.owner_id, key.name, key.prefix, key.scopes,
    (select collections.name from rag.collections
      where collections.org_id = key.org_id and collections.id = key.collection_id),
    key.created_at, key.expires_at, key.last_used_at, key.revoked_at;
$$;

comment on function rag.render(rag.api_keys) is 'An API key as a list returns it, without its hash.';

create function public.rag_list_keys(key_id uuid default null)
returns setof rag.api_key
language plpgsql stable security invoker set search_path = ''
as $$
begin
  perform rag.begin_call();
  -- Joined, not expanded: (f(row)).* would call it once for each column.
  return query
    select shown.*
    from rag.api_keys
    cross join lateral rag.render(api_keys) as shown
    where api_keys.org_id = any (array(select rag.current_org_ids()))
      and (rag_list_keys.key_id is null or api_keys.id = rag_list_keys.key_id)
    order by api_keys.revoked_at is not null or coalesce(api_keys.expires_at < now(), false),
      api_keys.created_at desc, api_keys.id
    limit 1000;
end;
$$;

comment on function public.rag_list_keys is
  'The keys that the caller may manage, or the one with the given id: valid keys first, then the newest.';

create function rag.check_key_quota(org_id uuid)
returns void
language plpgsql volatile security invoker set search_path = ''
as $$
begin
  if rag.caller_id() <> rag.current_user_id() then
    raise exception 'An API key cannot create or rotate keys. Use your own token.'
      using errcode = 'PT403', detail = 'user_required';
  end if;
  perform pg_advisory_xact_lock(hashtextextended('rag.api_keys ' || rag.current_user_id()::text, 0));
  if 100 <= (
    select count(*)
    from rag.api_keys
    where api_keys.org_id = check_key_quota.org_id and owner_id = rag.current_user_id()
      and revoked_at is null and (expires_at is null or expires_at > now())
  ) then
    raise exception 'You already have 100 valid API keys in this org. Revoke one first.'
      using errcode = 'PT400', detail = 'too_many_keys';
  end if;
end;
$$;

comment on function rag.check_key_quota is
  'Raises PT403 for a token of an API key, and PT400 for a user with 100 valid keys in the org. It locks, so that two '
  'concurrent calls do not both count the last place as free.';

create function public.rag_create_key(
  name text, prefix text, hash text, scopes text[],
  org_id uuid default null, collection text default null, expires_at timestamptz default null
)
returns setof rag.api_key
language plpgsql volatile security invoker set search_path = ''
as $$
#variable_conflict use_variable
declare
  bound uuid;
  made rag.api_keys;
begin
  perform rag.begin_call();
  org_id := rag.resolve_org(org_id);
  if 'admin' = any (scopes) and org_id not in (select rag.admin_org_ids()) then
    raise exception 'Only admins of the org may give a key the scope admin. Choose other scopes.'
      using errcode = 'PT403', detail = 'admin_required';
  elsif expires_at <= now() then
    raise exception 'expires_at must be in the future' using errcode = 'PT400', detail = 'invalid_expiry';
  end if;
  perform rag.check_key_quota(org_id);

  if collection is not null then
    select named.id into bound
    from rag.collections as named
    where named.org_id = rag_create_key.org_id and named.name = collection and named.deleted_at is null
      and (named.owner_id is null or named.owner_id = rag.current_user_id())
    order by named.owner_id nulls last
    limit 1;
    if bound is null then
      raise exception 'There is no such collection. Check its id or name.'
        using errcode = 'PT404', detail = 'collection_not_found';
    end if;
  end if;

  insert into rag.api_keys (org_id, owner_id, name, prefix, hash, scopes, collection_id, expires_at)
  values (org_id, rag.current_user_id(), name, prefix, hash, scopes, bound, expires_at)
  returning * into made;
  return next rag.render(made);
end;
$$;

comment on function public.rag_create_key is
  'Create a key of the caller, in the caller''s only org unless one is given. collection: a collection''s name, or '
  'null for all.';

create function public.rag_rotate_key(
  key_id uuid, prefix text, hash text, overlap_seconds integer default 0
)
returns setof rag.api_key
language plpgsql volatile security invoker set search_path = ''
as $$
#variable_conflict use_variable
declare
  old rag.api_keys;
  made rag.api_keys;
begin
  perform rag.begin_call();
  if overlap_seconds is null or overlap_seconds not between 0 and 604800 then
    raise exception 'overlap_seconds must be between 0 and 604800'
      using errcode = 'PT400', detail = 'invalid_overlap';
  end if;

  -- Taken for update: of two rotations at once the second finds it replaced.
  select * into old
  from rag.api_keys as present
  where present.org_id = any (array(select rag.current_org_ids())) and present.id = key_id
    and present.owner_id = rag.current_user_id() and present.revoked_at is null and present.replaced_at is null
    and (present.expires_at is null or present.expires_at > now())
  for update;
  if not found then
    raise exception 'There is no such key. Check its id.' using errcode = 'PT404', detail = 'key_not_found';
  end if;

  update rag.api_keys as ending
  set replaced_at = now(), revoked_at = case when overlap_seconds = 0 then now() end,
    expires_at = case when overlap_seconds = 0 then old.expires_at
      else least(old.expires_at, now() + make_interval(secs => overlap_seconds)) end
  where ending.org_id = old.org_id and ending.id = old.id;
  -- Checked after the old key has ended; a key that stays valid for a while counts.
  perform rag.check_key_quota(old.org_id);

  insert into rag.api_keys (org_id, owner_id, name, prefix, hash, scopes, collection_id, expires_at,
    requests_per_minute)
  values (old.org_id, old.owner_id, old.name, prefix, hash, old.scopes, old.collection_id,
    now() + (old.expires_at - old.created_at), old.requests_per_minute)
  returning * into made;
  return next rag.render(made);
end;
$$;

comment on function public.rag_rotate_key is
  'Replace a key of the caller''s by a new one of the same name, scopes, collection and lifetime. The old one works '
  'for `overlap_seconds` more, so that its users can change over; at most a week.';

create function public.rag_revoke_key(key_id uuid)
returns boolean
language plpgsql volatile security invoker set search_path = ''
as $$
begin
  perform rag.begin_call();
  update rag.api_keys set revoked_at = coalesce(revoked_at, now())
  where org_id = any (array(select rag.current_org_ids())) and id = rag_revoke_key.key_id;
  return found;
end;
$$;

comment on function public.rag_revoke_key is
  'Revoke a key; true if the caller has a key of that id, also if it was revoked before.';

create function public.rag_open_key()
returns table (key_id uuid, org_id uuid, owner_id uuid, collection_id uuid, scopes text[],
  requests_per_minute integer, expires_at timestamptz)
language plpgsql volatile security invoker set search_path = ''
as $$
#variable_conflict use_column
begin
  perform rag.begin_call();
  return query
    update rag.api_keys set last_used_at = now()
    where hash = (select rag.lookup_hash()) and revoked_at is null
      and (expires_at is null or expires_at > now())
    returning id, org_id, owner_id, collection_id, scopes, requests_per_minute, expires_at;
end;
$$;

comment on function public.rag_open_key is
  'The claims of the key whose hash the token names; nothing for a key that is unknown, revoked or expired. Each '
  'case takes one index look-up.';

-- Tokenization for keyword search: the stems of a text's words in its language, and its identifiers, which stay whole
-- (INC-4821, softLogout, a/b, mail addresses, v1.2.3). Documents and queries use the same functions.

create function rag.text_config(lang text)
returns regconfig
language sql immutable security invoker set search_path = ''
as $$
  select case split_part(lower(lang), '-', 1)
    when 'ar' then 'pg_catalog.arabic' when 'ca' then 'pg_catalog.catalan' when 'da' then 'pg_catalog.danish'
    when 'de' then 'pg_catalog.german' when 'el' then 'pg_catalog.greek' when 'en' then 'pg_catalog.english'
    when 'es' then 'pg_catalog.spanish' when 'eu' then 'pg_catalog.basque' when 'fi' then 'pg_catalog.finnish'
    when 'fr' then 'pg_catalog.french' when 'ga' then 'pg_catalog.irish' when 'hi' then 'pg_catalog.hindi'
    when 'hu' then 'pg_catalog.hungarian' when 'hy' then 'pg_catalog.armenian'
    when 'id' then 'pg_catalog.indonesian' when 'it' then 'pg_catalog.italian'
    when 'lt' then 'pg_catalog.lithuanian' when 'ne' then 'pg_catalog.nepali'
    when 'nb' then 'pg_catalog.norwegian' when 'nl' then 'pg_catalog.dutch'
    when 'nn' then 'pg_catalog.norwegian' when 'no' then 'pg_catalog.norwegian'
    when 'pt' then 'pg_catalog.portuguese' when 'ro' then 'pg_catalog.romanian'
    when 'ru' then 'pg_catalog.russian' when 'sr' then 'pg_catalog.serbian'
    when 'sv' then 'pg_catalog.swedish' when 'ta' then 'pg_catalog.tamil' when 'tr' then 'pg_catalog.turkish'
    when 'yi' then 'pg_catalog.yiddish' else 'pg_catalog.simple'
  end::regconfig;
$$;

comment on function rag.text_config is
  'Postgres'' text search configuration for a language tag: fr-CA is French. Languages that it has no stemmer for '
  'are searched by their words as they stand.';

create function rag.tokenized_text(content text)
returns text
language sql immutable security invoker set search_path = ''
as $$
  -- Between a letter in lower case and a capital, before the last capital of several, between letters and a final number.
  -- iPhone, nDCG, PhD and i18n stay whole: a part has two letters or more, but for a capital before a word.
  select regexp_replace(
    regexp_replace(text, '([[:alnum:]][[:lower:]](?=[[:upper:]][[:alnum:]])|[[:upper:]0-9](?=[[:upper:]][[:lower:]]{2}))',
      '\1' || chr(31), 'g'),
    '(\m[[:alpha:]]{2,}(?=[0-9]+\M))', '\1' || chr(31), 'g')
  from (
    select case when content ~ '[₀-₉‐-–−]'
      then translate(normalize(content, nfc), '₀₁₂₃₄₅₆₇₈₉‐‑‒–−', '0123456789-----') else normalize(content, nfc) end
  ) as composed (text);
$$;

comment on function rag.tokenized_text is
  'The text as keyword search reads it: with U+001F, which no document contains, between the parts of softLogout and ISO27001; '
  'each hyphen and short dash as "-", composed letters, CO2 for CO₂.';

create function rag.words(config regconfig, content text)
returns tsvector
language sql immutable security invoker set search_path = ''
as $$
  select to_tsvector(config, case
    when text ~ '[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]'
    then regexp_replace(regexp_replace(text, '([\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af])', ' \1 ', 'g'),
      '[-/.:@&+<>~\x1f]+', ' ', 'g')
    else regexp_replace(text, '[-/.:@&+<>~\x1f]+', ' ', 'g')
  end)
  from rag.tokenized_text(content) as text;
$$;

comment on function rag.words is
  'The words of a text with their places. Postgres'' own parser would read INC-4821 as "inc" and the number -4821, '
  'and a/b as a file: such punctuation is taken out first. Chinese, Japanese and Korean, which put no spaces '
  'between words, are taken character by character.';

create function rag.identifiers(content text)
returns setof text
language sql immutable security invoker set search_path = ''
as $$
  select found.parts[1]
  from rag.tokenized_text(content) as text, regexp_matches(lower(text),
    '([[:alnum:]]+(?:[-_./:@#&+\x1f]{1,3}[[:alnum:]]+)+|\m[[:alpha:]](?:\+\+|#)(?![[:alnum:]]))', 'g') as found (parts)
  where length(found.parts[1]) <= 200
  union all
  select ltrim(padded.parts[1], '0')
  from regexp_matches(content, '(?:^|[\s|(])(0{2,}[1-9][0-9]{0,30}|0[1-9][0-9]{1,30})(?![[:alnum:]])', 'g')
    as padded (parts)
  union all
  -- 2180 for 2,180 and 2.180, 1234.50 for 1.234,50. One pattern for both steps takes four times as long.
  select translate(regexp_replace(found.parts[1], '[.,][0-9]{1,2}$', ''), '.,’' || chr(160) || chr(8239), '')
    || coalesce('.' || substring(found.parts[1], '[.,]([0-9]{1,2})$'), '')
  from regexp_matches(content,
    '([[:alnum:].,]*[.,’\u00a0\u202f][0-9]{3}(?:[.,]?[[:alnum:]]+|[’\u00a0\u202f][0-9]{3})*)', 'g') as found (parts)
  where found.parts[1] ~ '^[1-9][0-9]{0,2}([.,’\u00a0\u202f][0-9]{3}){1,6}([.,][0-9]{1,2})?$';
$$;

comment on function rag.identifiers is
  'The identifiers in a text (rag.tokenized_text), in lower case, with repetitions: runs of letters and digits with '
  'punctuation or U+001F inside, C++ and C#, 417 for 00417 and 2180 for 2,180. Those of more than 200 characters are omitted.';

create function rag.identifier_terms(config regconfig, content text)
returns table (term text, place integer)
language sql immutable security invoker set search_path = ''
as $$
  with identifier as materialized (
    select name, row_number() over () as place from rag.identifiers(content) as name
  ), joined as (
    select translate(found.parts[1], '-_' || chr(31), '') as word, identifier.place, form.has_dashes
    from identifier
    cross join (values (true), (false)) as form (has_dashes)
    cross join regexp_matches(identifier.name, case when form.has_dashes
      then '[[:alnum:]]+(?:[-_\x1f]{1,3}[[:alnum:]]+)+' else '[[:alnum:]]+(?:\x1f[[:alnum:]]+)+' end, 'g') as found (parts)
    where found.parts[1] ~ '[[:alpha:]]' and form.has_dashes = (found.parts[1] ~ '[-_]')
  )
  select translate(identifier.name, chr(31), ''), identifier.place::integer + 1000000
  from identifier
  where identifier.name !~ '^[[:alnum:]_\x1f-]*[[:alpha:]][[:alnum:]_\x1f-]*$'
  union all
  -- A-T and I-T would be the stop words "at" and "it".
  select joined.word, joined.place::integer + 2000000
  from joined
  where length(joined.word) <= 3
  union all
  select word.lexeme, position
  from (
    select string_agg(joined.word, ' ' order by joined.place, joined.has_dashes) from joined where length(joined.word) > 3
  ) as line (words)
  cross join unnest(to_tsvector(config, line.words)) as word
  cross join unnest(word.positions) as position;
$$;

comment on function rag.identifier_terms is
  'The terms of the identifiers in a text, with a place that is the same in each language. Letters with hyphens and '
  'underscores are a word: softLogout, soft-logout and soft_logout have the term of softlogout, ISO-27001 that of '
  'ISO27001, MW30-Q5 those of MW30 and MW30Q5. Numbers and identifiers with other punctuation are terms as they stand.';

create function rag.terms(config regconfig, content text)
returns table (term text, occurrences integer)
language sql immutable security invoker set search_path = ''
as $$
  select found.term, sum(found.occurrences)::integer
  from (
    select word.lexeme, cardinality(word.positions) from unnest(rag.words(config, content)) as word
    union all
    select identifier.term, 1 from rag.identifier_terms(config, content) as identifier
  ) as found (term, occurrences)
  group by 1;
$$;

comment on function rag.terms is 'Each term of a text, and its number of occurrences.';

-- The inverted index of keyword search. A visibility class is what the same callers see: the documents of an org, a
-- collection and an owner. Each row belongs to one class, so the policies decide on whole rows, and statistics are sums over
-- the rows that the caller sees. The class is part of each key and generated from the columns that the policies check: a
-- caller can write no row that a statement on another class reads, and no key that another class has.
--
-- A document has a row with its terms. The latest documents of a class are its tail, which searches read document by
-- document. A write that makes the tail too long folds it into a segment: blocks that list, term by term, the documents of
-- up to 8,000 chunks. A search reads one block for each term and segment.
--
-- Terms are stored as hashes. Writes and deletions change all three tables in their own transaction, so a search never
-- finds words of a deleted text.

create function rag.term_key(term text)
returns bigint
language plpgsql immutable security invoker set search_path = ''
as $$
begin
  return hashtextextended(term collate "C", 0) & 9223372036854775807;
end;
$$;

comment on function rag.term_key is 'The hash of a term, 63 bits: the term''s key in the keyword index.';

create table rag.document_terms (
  org_id uuid not null,
  document_id uuid not null,
  collection_id uuid not null,
  owner_id uuid,
  class bytea not null generated always as (uuid_send(collection_id) || coalesce(uuid_send(owner_id), '')) stored,
  embedding_model text not null,
  config text not null,
  segment uuid,
  number integer check (number between 1 and 65535),
  chunks integer not null check (chunks between 1 and 4194304),
  length bigint not null check (length between 0 and 1000000000000),
  terms bigint[] not null check (array_position(terms, null) is null),
  places bigint[] not null check (cardinality(places) = cardinality(terms) and array_position(places, null) is null),
  check ((segment is null) = (number is null)),
  -- No foreign key to the document, which would be checked for each write. The trigger on chunks deletes the row.
  primary key (org_id, document_id, class, embedding_model)
);

comment on table rag.document_terms is
  'The terms of each document, for the exact scores of candidates and for removing the document from its segment.';
comment on column rag.document_terms.class is 'The visibility class: collection and owner.';
comment on column rag.document_terms.config is 'The name of the text search configuration (rag.text_config).';
comment on column rag.document_terms.segment is 'The segment that lists the document; null in the tail.';
comment on column rag.document_terms.number is 'The number of the document in its segment.';
comment on column rag.document_terms.length is 'Terms in the whole document.';
comment on column rag.document_terms.terms is
  'The keys of terms (rag.term_key) in order, a term once for each chunk that contains it.';
comment on column rag.document_terms.places is
  'For each of terms: (impact << 54) | (ordinal of the chunk << 32) | (terms in the chunk << 16) | occurrences. impact: an '
  'estimate of the document''s score for the term, 1 to 511, among passages of 100 terms in documents of 500.';

-- The documents of segments and tails by number, and the tails of an org.
create index document_terms_by_segment on rag.document_terms (org_id, class, segment, number);
create index document_terms_tail on rag.document_terms (org_id, collection_id) where segment is null;

create table rag.term_segments (
  org_id uuid not null,
  collection_id uuid not null,
  owner_id uuid,
  class bytea not null generated always as (uuid_send(collection_id) || coalesce(uuid_send(owner_id), '')) stored,
  segment uuid not null,
  config text not null,
  embedding_model text not null,
  documents integer not null check (documents between 0 and 65535),
  chunks bigint not null check (chunks between 0 and 1000000000000),
  length bigint not null check (length between 0 and 1000000000000),
  primary key (org_id, class, segment, config, embedding_model)
);

comment on table rag.term_segments is
  'The segments of the keyword index: the numbers of documents and chunks, and the terms in all of these chunks, by text '
  'search configuration and embedding model.';

create table rag.term_blocks (
  org_id uuid not null,
  collection_id uuid not null,
  owner_id uuid,
  class bytea not null generated always as (uuid_send(collection_id) || coalesce(uuid_send(owner_id), '')) stored,
  segment uuid not null,
  first bigint not null,
  terms bigint[] not null check (array_position(terms, null) is null),
  ends integer[] not null check (0 <= all (ends)),
  chunks integer[] not null check (0 < all (chunks)),
  entries integer[] not null check (array_position(entries, null) is null),
  impacts extensions.halfvec,
  primary key (org_id, class, segment, first)
);

comment on table rag.term_blocks is
  'The blocks of a segment: the documents that contain a term. A block has all of a segment''s terms from `first` up to the '
  'next block.';
comment on column rag.term_blocks.terms is 'The keys of the block''s terms, in order.';
comment on column rag.term_blocks.ends is
  'For each term, the sum of the numbers of documents up to it: the position of its last entry in entries.';
comment on column rag.term_blocks.chunks is 'For each term, the number of chunks that contain it.';
comment on column rag.term_blocks.entries is
  '(impact << 16) | number of the document in the segment; those of a term together, highest impact first.';
comment on column rag.term_blocks.impacts is
  'Of the last term, if an eighth of the segment''s documents contain it: the impact in each document by number, in place of '
  'entries. 0 for a document without the term.';

-- A block and a document of a few chunks stay in the row: reading from TOAST takes longer. Hashes and entries do not
-- compress.
alter table rag.document_terms set (toast_tuple_target = 8160);
alter table rag.document_terms alter column terms set storage external;
alter table rag.term_blocks alter column entries set storage external;
alter table rag.term_blocks set (toast_tuple_target = 8160);

call rag.admit_members('document_terms', 'terms of documents');
call rag.admit_members('term_segments', 'segments');
call rag.admit_members('term_blocks', 'blocks');

-- Who deletes a collection also removes its words. Rows are written by triggers and by rag_load_chunks alone: a row that a
-- caller invents would disturb the searches and writes of all who share the class.
do $$
declare
  by_index constant text :=
    '(select pg_trigger_depth()) > 0 or (select current_setting(''rag.loads_words'', true)) = ''true''';
  table_name text;
begin
  foreach table_name in array array['document_terms', 'term_segments', 'term_blocks'] loop
    call rag.bind_keys(table_name);
    execute format('create policy "a key reads and writes with the scopes for it" on rag.%I as restrictive for all '
      'to authenticated using ((select rag.has_scope(''documents:read'', ''documents:write'', ''retrievals:read'', '
      '''chat:read'')) or collection_id = (select rag.deleted_collection())) '
      'with check ((select rag.has_scope(''documents:write'')) or collection_id = (select rag.deleted_collection()))',
      table_name);
    execute format('create policy "a key deletes with documents:write" on rag.%I as restrictive for delete '
      'to authenticated using ((select rag.has_scope(''documents:write'')) '
      'or collection_id = (select rag.deleted_collection()))', table_name);
    execute format('create policy "the index inserts rows" on rag.%I as restrictive for insert to authenticated '
      'with check (%s)', table_name, by_index);
    execute format('create policy "the index changes rows" on rag.%I as restrictive for update to authenticated '
      'using (%s)', table_name, by_index);
    execute format('create policy "the index deletes rows" on rag.%I as restrictive for delete to authenticated '
      'using (%s)', table_name, by_index);
  end loop;
end;
$$;

-- PostgREST's connections cache plans. A plan made while these tables were empty would scan the filled tables; so these
-- functions disable sequential scans. They read what the joins name first, first: under row security the planner expects few
-- rows, and might read a document once for each term.
create function rag.index_totals(org_ids uuid[], collection_ids uuid[])
returns setof rag.term_segments
language plpgsql stable security invoker set search_path = '' set enable_seqscan = off
as $$
begin
  return query
  select counted.*
  from unnest(org_ids) as org (id)
  cross join lateral (
    (select segments.* from rag.term_segments as segments where segments.org_id = org.id offset 0)
    union all
    (select tail.org_id, tail.collection_id, tail.owner_id, tail.class, null, tail.config, tail.embedding_model,
      count(*)::integer, sum(tail.chunks)::bigint, sum(tail.length)::bigint
    from rag.document_terms as tail
    where tail.org_id = org.id and tail.segment is null
    group by 1, 2, 3, 4, 6, 7)
  ) as counted
  where index_totals.collection_ids is null or counted.collection_id = any (index_totals.collection_ids);
end;
$$;

comment on function rag.index_totals is
  'The segments of orgs, or of some of their collections, and their tails, each as a segment without an id.';

create type rag.term_list as (
  part integer, org_id uuid, class bytea, segment uuid, document_id uuid, key bigint, documents bigint, chunks bigint,
  entries integer[], impacts extensions.halfvec
);

comment on type rag.term_list is
  'The list of a term in a segment, or in one document of a tail. part: the number of the segment or tail. documents, chunks: '
  'the numbers of those that contain the term. entries, impacts: as in rag.term_blocks; none if the segment or document has no '
  'chunk of the wanted model.';

-- One look-up for each term and segment; tails are read document by document. Memoize would hash the arrays, which takes
-- longer than the look-ups that it saves.
create function rag.term_lists(parts rag.term_segments[], keys bigint[], model text)
returns setof rag.term_list
language plpgsql stable security invoker set search_path = '' set enable_seqscan = off set join_collapse_limit = 1
set enable_memoize = off
as $$
begin
  return query
  with part as materialized (
    select row_number() over ()::integer as part, parted.org_id, parted.class, parted.segment,
      bool_or(parted.embedding_model = model) as has_model
    from unnest(parts) as parted
    group by 2, 3, 4
  )
  select part.part, part.org_id, part.class, part.segment, null::uuid, term.key, (span.last - span.before)::bigint,
    block.chunks[place.i]::bigint,
    case when part.has_model then block.entries[span.before + 1 : span.last] else '{}' end,
    case when part.has_model and place.i = cardinality(block.terms) then block.impacts end
  from part
  cross join unnest(keys) as term (key)
  cross join lateral (
    select blocks.terms, blocks.ends, blocks.chunks, blocks.entries, blocks.impacts
    from rag.term_blocks as blocks
    where blocks.org_id = part.org_id and blocks.class = part.class and blocks.segment = part.segment
      and blocks.first <= term.key
    order by blocks.first desc
    limit 1
  ) as block
  cross join lateral (select width_bucket(term.key, block.terms) as i offset 0) as place
  cross join lateral (
    select block.ends[place.i] as last, coalesce(block.ends[place.i - 1], 0) as before offset 0
  ) as span
  where block.terms[place.i] = term.key
  union all
  select part.part, part.org_id, part.class, null, tail.document_id, term.key, 1,
    term.last - width_bucket(term.key - 1, tail.terms),
    case when tail.embedding_model = model then array[(tail.places[term.last] >> 54)::integer << 16] else '{}' end,
    null
  from part
  cross join lateral (
    -- The concatenation reads a long array from TOAST once.
    select waiting.document_id, waiting.embedding_model, waiting.terms || '{}' as terms, waiting.places || '{}' as places
    from rag.document_terms as waiting
    where waiting.org_id = part.org_id and waiting.class = part.class and waiting.segment is null
    offset 0
  ) as tail
  cross join lateral (
    select wanted.key, width_bucket(wanted.key, tail.terms) as last
    from unnest(keys) as wanted (key)
    where tail.terms[width_bucket(wanted.key, tail.terms)] = wanted.key
    offset 0
  ) as term
  where part.segment is null;
end;
$$;

comment on function rag.term_lists is
  'The lists of terms in parts of the index (rag.index_totals), with entries for chunks of the model.';

create function rag.term_counts(parts rag.term_segments[], keys bigint[])
returns table (key bigint, documents bigint, chunks bigint)
language sql stable security invoker set search_path = ''
as $$
  select list.key, sum(list.documents)::bigint, sum(list.chunks)::bigint
  from rag.term_lists(parts, keys, null) as list
  group by 1;
$$;

comment on function rag.term_counts is
  'The numbers of documents and chunks that contain each of the terms, in parts of the index (rag.index_totals). Terms that '
  'the caller sees in no document are omitted.';

-- Writes to the keyword index: triggers on chunks and documents, once a statement, and the folding of tails.
--
-- A writer locks the rows of documents first, in rag.documents and then here, and then the segments that lose a document, in
-- order. Folding locks rows of documents only, and skips those that are locked; so it waits for no other transaction.

create function rag.index_words(org_id uuid, document_ids uuid[])
returns void
language plpgsql volatile security invoker set search_path = '' set enable_seqscan = off
as $$
#variable_conflict use_column
begin
  -- Two writers of a document's chunks index it one after the other.
  perform from rag.documents
  where documents.org_id = index_words.org_id and documents.id = any (document_ids)
  order by documents.id
  for no key update;
  perform rag.remove_words(index_words.org_id, document_ids);

  insert into rag.document_terms (org_id, document_id, collection_id, owner_id, embedding_model, config, chunks, length,
    terms, places)
  with counted as materialized (
    select documents.id as document_id, documents.collection_id, documents.owner_id, present.embedding_model,
      present.config, present.ordinal, found.terms, found.occurrences, found.length,
      sum(found.length) over (partition by documents.id, present.embedding_model) as document_length
    from rag.settings
    cross join rag.documents
    -- "offset 0" keeps the order of the joins: under row security the planner expects one chunk, and might read all of
    -- the org first.
    cross join lateral (
      select chunks.ordinal, chunks.content, chunks.embedding_model,
        rag.text_config(coalesce(documents.lang, settings.language)) as config
      from rag.chunks
      where chunks.org_id = documents.org_id and chunks.document_id = documents.id
      offset 0
    ) as present
    cross join lateral (
      select array_agg(rag.term_key(term)) as terms, array_agg(occurrences) as occurrences,
        coalesce(sum(occurrences), 0) as length
      from rag.terms(present.config, documents.title || E'\n' || present.content)
    ) as found
    where documents.org_id = index_words.org_id and documents.id = any (document_ids)
  ), posting as (
    select document_id, embedding_model, key, ordinal, length, times,
      -- By the default settings, not the present ones: the impact selects candidates and scores nothing.
      (max(times / (times + 1.5 * (0.15 + 0.85::float8 * length / 100))) over term / 2
        + sum(times) over term / (sum(times) over term + 1.5 * (0.15 + 0.85::float8 * document_length / 500)) / 2)
        as impact
    from counted
    cross join unnest(terms, occurrences) as entry (key, times)
    window term as (partition by document_id, embedding_model, key)
  ), listed as (
    select document_id, embedding_model, array_agg(key order by key, ordinal) as terms,
      -- << and | bind alike, from the left.
      array_agg(greatest(1, floor(impact * 511))::bigint << 54 | (ordinal::bigint << 32) | (least(length, 65535)::bigint << 16)
        | least(times, 65535)::bigint order by key, ordinal) as places
    from posting
    group by 1, 2
  ), total as (
    select document_id, collection_id, owner_id, embedding_model, config, count(*) as chunks, sum(length) as length
    from counted
    group by 1, 2, 3, 4, 5
  )
  select index_words.org_id, document_id, collection_id, owner_id, embedding_model, pg_ts_config.cfgname, chunks, length,
    coalesce(listed.terms, '{}'), coalesce(listed.places, '{}')
  from total
  join pg_catalog.pg_ts_config on pg_ts_config.oid = config
  left join listed using (document_id, embedding_model);

  perform rag.fold_tail(index_words.org_id, written.class)
  from (
    select distinct class
    from rag.document_terms
    where org_id = index_words.org_id and document_id = any (document_ids) and segment is null
    offset 0
  ) as written;
end;
$$;

comment on function rag.index_words is
  'Rewrite the terms of documents, and fold the tails that become too long. A document''s title counts as part of each of '
  'its chunks, as it does for their embeddings.';

create function rag.remove_words(org_id uuid, document_ids uuid[])
returns void
language plpgsql volatile security invoker set search_path = '' set enable_seqscan = off set join_collapse_limit = 1
as $$
#variable_conflict use_variable
declare
  part record;
begin
  -- After it has waited for a fold that moved a document, the next statement sees the document's new segment.
  perform from rag.document_terms as gone
  where gone.org_id = org_id and gone.document_id = any (document_ids)
  order by gone.document_id, gone.class
  for update;
  perform from rag.term_segments as segments
  where segments.org_id = org_id and (segments.class, segments.segment) in (
    select gone.class, gone.segment
    from rag.document_terms as gone
    where gone.org_id = org_id and gone.document_id = any (document_ids) and gone.segment is not null)
  order by segments.class, segments.segment, segments.config, segments.embedding_model
  for update;

  for part in
    select gone.class, gone.segment, array_agg(gone.number) as numbers, count(*) >= (
      select sum(segments.documents)
      from rag.term_segments as segments
      where segments.org_id = org_id and segments.class = gone.class and segments.segment = gone.segment) as is_whole
    from rag.document_terms as gone
    where gone.org_id = org_id and gone.document_id = any (document_ids) and gone.segment is not null
    group by 1, 2
  loop
    if not part.is_whole then
      with lost as materialized (
        select term.key, count(distinct gone.number)::integer as documents, count(*)::integer as chunks,
          min((term.place >> 54 << 16)::integer | gone.number) as entry
        from rag.document_terms as gone
        cross join unnest(gone.terms, gone.places) as term (key, place)
        where gone.org_id = org_id and gone.class = part.class and gone.segment = part.segment
          and gone.number = any (part.numbers)
        group by 1
      ), touched as materialized (
        -- For each block: the removed terms in order, the sums of their documents up to each, and the entry if there is one.
        select found.first, array_agg(found.key order by found.key) as keys,
          array_agg(found.chunks order by found.key) as chunks, array_agg(found.documents order by found.key) as documents,
          case when max(found.documents) = 1 then min(found.entry) end as entry
        from (
          select block.first, lost.key, lost.chunks, lost.entry,
            sum(lost.documents) over (partition by block.first order by lost.key) as documents
          from lost
          cross join lateral (
            select blocks.first
            from rag.term_blocks as blocks
            where blocks.org_id = org_id and blocks.class = part.class and blocks.segment = part.segment
              and blocks.first <= lost.key
            order by blocks.first desc
            limit 1
          ) as block
        ) as found
        group by 1
      ), kept as materialized (
        -- Impacts are multiplied by it.
        select array(
            select case when number = any (part.numbers) then 0 else 1 end
            from generate_series(1, longest.length) as number)::real[]::extensions.halfvec as ones
        from (
          select max(extensions.vector_dims(blocks.impacts)) as length
          from touched
          join rag.term_blocks as blocks on blocks.org_id = org_id and blocks.class = part.class
            and blocks.segment = part.segment and blocks.first = touched.first
        ) as longest
        where longest.length is not null
      )
      update rag.term_blocks as blocks
      set entries = case when touched.entry is not null then array_remove(blocks.entries, touched.entry)
          else array(select entry from unnest(blocks.entries) as entry where entry & 65535 <> all (part.numbers)) end,
        (terms, ends, chunks, impacts) = (
          select coalesce(array_agg(term.key), '{}'),
            coalesce(array_agg(term.last - coalesce(touched.documents[term.i], 0)), '{}'),
            coalesce(array_agg(case when touched.keys[term.i] = term.key then term.chunks - touched.chunks[term.i]
              else term.chunks end), '{}'),
            case when max(term.position) = cardinality(blocks.terms)
              then blocks.impacts operator(extensions.*) (select kept.ones from kept) end
          from (
            select term.*, width_bucket(term.key, touched.keys) as i
            from unnest(blocks.terms, blocks.ends, blocks.chunks) with ordinality as term (key, last, chunks, position)
            offset 0
          ) as term
          where touched.keys[term.i] is distinct from term.key or term.chunks > touched.chunks[term.i]
        )
      from touched
      where blocks.org_id = org_id and blocks.class = part.class and blocks.segment = part.segment
        and blocks.first = touched.first;

      update rag.term_segments as segments
      set documents = segments.documents - lost.documents, chunks = segments.chunks - lost.chunks,
        length = segments.length - lost.length
      from (
        select gone.config, gone.embedding_model, count(*) as documents, sum(gone.chunks) as chunks,
          sum(gone.length) as length
        from rag.document_terms as gone
        where gone.org_id = org_id and gone.class = part.class and gone.segment = part.segment
          and gone.number = any (part.numbers)
        group by 1, 2
      ) as lost
      where segments.org_id = org_id and segments.class = part.class and segments.segment = part.segment
        and segments.config = lost.config and segments.embedding_model = lost.embedding_model;
    end if;
    delete from rag.term_blocks as blocks
    where blocks.org_id = org_id and blocks.class = part.class and blocks.segment = part.segment
      and (part.is_whole or blocks.terms = '{}');
    delete from rag.term_segments as segments
    where segments.org_id = org_id and segments.class = part.class and segments.segment = part.segment
      and (part.is_whole or segments.documents = 0);
  end loop;
  delete from rag.document_terms as gone where gone.org_id = org_id and gone.document_id = any (document_ids);
end;
$$;

comment on function rag.remove_words is
  'Remove documents and their terms from the index: the blocks of a segment are rewritten once for all of them. Waits for '
  'transactions that fold or remove documents of the same segments.';

create function rag.fold_tail(org_id uuid, class bytea)
returns void
language plpgsql volatile security invoker set search_path = '' set enable_seqscan = off
as $$
#variable_conflict use_variable
declare
  -- A larger segment would take seconds to write; smaller ones would be more look-ups for a search.
  most_chunks constant integer := 8000;
  -- A search reads tails document by document, and those of an org may be hundreds: a small class has a short one.
  most_documents constant integer := (
    select least(32, greatest(4, sum(segments.documents) / 4))
    from rag.term_segments as segments
    where segments.org_id = org_id and segments.class = class);
  tail record;
  small record;
begin
  loop
    select count(*) > most_documents or coalesce(sum(waiting.chunks), 0) > 256 as is_long into tail
    from rag.document_terms as waiting
    where waiting.org_id = org_id and waiting.class = class and waiting.segment is null;
    exit when not tail.is_long;
    -- Documents that another transaction is changing are skipped.
    select array_agg(waiting.document_id) as ids, sum(waiting.chunks) as chunks,
      count(*) > most_documents or coalesce(sum(waiting.chunks), 0) > 256 as is_long into tail
    from (
      select free.document_id, free.chunks, sum(free.chunks) over (order by free.document_id) - free.chunks as before
      from (
        select present.document_id, present.chunks
        from rag.document_terms as present
        where present.org_id = org_id and present.class = class and present.segment is null
        for update skip locked
      ) as free
    ) as waiting
    where waiting.before < most_chunks;
    exit when not tail.is_long;
    -- Segments of like size are merged, so that a class has few: up to the largest that is a third of the result; half, if
    -- the result is one of the largest segments. All segments of a class of up to 256 chunks are merged.
    select coalesce(array_agg(part.segment), '{}') as segments, sum(part.documents) as documents into small
    from (
      select whole.*, bool_or(whole.total <= most_chunks
          and whole.total >= whole.chunks
            * case when whole.total <= 256 then 1 when whole.total < most_chunks / 2 then 3 else 2 end)
        over (order by whole.total desc) as is_merged
      from (
        select segments.segment, sum(segments.documents) as documents, sum(segments.chunks) as chunks,
          tail.chunks + sum(sum(segments.chunks)) over (order by sum(segments.chunks), segments.segment) as total
        from rag.term_segments as segments
        where segments.org_id = org_id and segments.class = class
        group by 1
      ) as whole
    ) as part
    where part.is_merged;
    -- All of their documents, or none.
    if small.documents > (
      select count(*)
      from (
        select from rag.document_terms as held
        where held.org_id = org_id and held.class = class and held.segment = any (small.segments)
        for update skip locked
      ) as locked)
    then
      small.segments := '{}';
    end if;
    perform rag.write_segment(org_id, class, tail.ids, small.segments);
  end loop;
end;
$$;

comment on function rag.fold_tail is
  'Fold the tail of a visibility class into a segment if it has more than 256 chunks, or more documents than a quarter of those '
  'in segments, at least 4 and at most 32. What another transaction has locked is left to the next write.';

create function rag.write_segment(org_id uuid, class bytea, document_ids uuid[], sources uuid[])
returns void
language plpgsql volatile security invoker set search_path = '' set enable_seqscan = off
as $$
#variable_conflict use_variable
declare
  target constant uuid := gen_random_uuid();
  numbered integer;
begin
  delete from rag.term_blocks as blocks
  where blocks.org_id = org_id and blocks.class = class and blocks.segment = any (sources);
  delete from rag.term_segments as segments
  where segments.org_id = org_id and segments.class = class and segments.segment = any (sources);
  update rag.document_terms as present
  set segment = target, number = listed.number
  from (
    select source.document_id, source.embedding_model, row_number() over () as number
    from (
      (select tail.document_id, tail.embedding_model
      from rag.document_terms as tail
      where tail.org_id = org_id and tail.class = class and tail.segment is null and tail.document_id = any (document_ids)
      offset 0)
      union all
      (select held.document_id, held.embedding_model
      from rag.document_terms as held
      where held.org_id = org_id and held.class = class and held.segment = any (sources)
      offset 0)
    ) as source
  ) as listed
  where present.org_id = org_id and present.document_id = listed.document_id and present.class = class
    and present.embedding_model = listed.embedding_model;
  get diagnostics numbered = row_count;

  insert into rag.term_segments (org_id, collection_id, owner_id, segment, config, embedding_model, documents, chunks, length)
  select org_id, member.collection_id, member.owner_id, target, member.config, member.embedding_model, count(*),
    sum(member.chunks), sum(member.length)
  from rag.document_terms as member
  where member.org_id = org_id and member.class = class and member.segment = target
  group by member.collection_id, member.owner_id, member.config, member.embedding_model;

  insert into rag.term_blocks (org_id, collection_id, owner_id, segment, first, terms, ends, chunks, entries,
    impacts)
  with posting as materialized (
    select term.key, (min(term.place) >> 54 << 16)::integer | member.number as entry, count(*) as chunks
    from rag.document_terms as member
    cross join unnest(member.terms, member.places) as term (key, place)
    where member.org_id = org_id and member.class = class and member.segment = target
    group by term.key, member.number
  ), list as materialized (
    -- A block has about 128 entries, those of a small segment 512: a term begins a new one after each 128. A frequent term
    -- is the last of its block: its impacts are summed many times as fast as entries.
    select counted.*,
      counted.frequent << 32 | counted.entries / case when counted.all_documents <= 4096 then 512 else 128 end as block
    from (
      select term.*, sum(term.documents) over in_order as last, sum(term.documents) over () as all_documents,
        coalesce(count(*) filter (where term.is_frequent) over before, 0) as frequent,
        coalesce(sum(term.documents) filter (where not term.is_frequent) over before, 0)::bigint as entries
      from (
        select posting.key, count(*) as documents, sum(posting.chunks) as chunks,
          count(*) >= 128 and count(*) * 8 > numbered as is_frequent
        from posting
        group by 1
      ) as term
      window in_order as (order by term.key), before as (order by term.key rows between unbounded preceding and 1 preceding)
    ) as counted
  ), dictionary as (
    select list.block, min(list.key) as first, array_agg(list.key order by list.key) as terms,
      array_agg(list.chunks::integer order by list.key) as chunks,
      array_agg((list.last - list.before)::integer order by list.key) as ends
    from (select list.*, min(list.last - list.documents) over (partition by list.block) as before from list) as list
    group by 1
  ), content as (
    select list.block,
      coalesce(array_agg(posting.entry order by posting.key, posting.entry desc) filter (where not list.is_frequent), '{}')
        as entries,
      ('{' || string_agg((posting.entry & 65535) || ':' || (posting.entry >> 16), ',') filter (where list.is_frequent)
        || '}/' || numbered)::extensions.sparsevec::extensions.halfvec as impacts
    from posting
    join list on list.key = posting.key
    group by 1
  )
  select org_id, home.collection_id, home.owner_id, target, dictionary.first, dictionary.terms, dictionary.ends,
    dictionary.chunks, content.entries, content.impacts
  from (
    select distinct segments.collection_id, segments.owner_id
    from rag.term_segments as segments
    where segments.org_id = org_id and segments.class = class and segments.segment = target
  ) as home
  cross join dictionary
  join content on content.block = dictionary.block;
end;
$$;

comment on function rag.write_segment is
  'Replace segments of one visibility class, and documents of its tail, by one segment. The caller has locked the rows of '
  'all documents.';

create function rag.index_changed_chunks()
returns trigger
language plpgsql volatile security invoker set search_path = ''
as $$
declare
  part record;
begin
  -- A document that is stored in parts counts its words at the end (rag_load_chunks, rag.replace_documents).
  if current_setting('rag.words_later', true) = 'true' then
    return null;
  end if;
  if tg_op = 'UPDATE' then
    -- A loop, because rag_worker changes other columns and may not execute rag.index_words.
    for part in
      select different.org_id, array_agg(distinct different.document_id) as ids
      from (
        (select org_id, document_id, ordinal, embedding_model, content from changed
        except select org_id, document_id, ordinal, embedding_model, content from former)
        union all
        (select org_id, document_id, ordinal, embedding_model, content from former
        except select org_id, document_id, ordinal, embedding_model, content from changed)
      ) as different
      group by different.org_id
    loop
      perform rag.index_words(part.org_id, part.ids);
    end loop;
  else
    perform rag.index_words(changed.org_id, array_agg(distinct changed.document_id))
    from changed
    group by changed.org_id;
  end if;
  return null;
end;
$$;

comment on function rag.index_changed_chunks is 'Trigger that rewrites the terms of documents whose chunks changed.';

create function rag.index_changed_documents()
returns trigger
language plpgsql volatile security invoker set search_path = ''
as $$
declare
  part record;
begin
  if current_setting('rag.words_later', true) = 'true' then
    return null;
  end if;
  for part in
    select changed.org_id, array_agg(changed.id) as ids
    from changed
    join former on former.org_id = changed.org_id and former.id = changed.id
    where (former.title, former.lang, former.collection_id, former.owner_id)
      is distinct from (changed.title, changed.lang, changed.collection_id, changed.owner_id)
    group by changed.org_id
  loop
    perform rag.index_words(part.org_id, part.ids);
  end loop;
  return null;
end;
$$;

comment on function rag.index_changed_documents is
  'Trigger that rewrites the terms of documents whose title, language, collection or owner changed.';

create trigger index_words_of_new_chunks after insert on rag.chunks
  referencing new table as changed
  for each statement execute function rag.index_changed_chunks();

create trigger index_words_of_changed_chunks after update on rag.chunks
  referencing old table as former new table as changed
  for each statement execute function rag.index_changed_chunks();

create trigger index_words_of_deleted_chunks after delete on rag.chunks
  referencing old table as changed
  for each statement execute function rag.index_changed_chunks();

create trigger index_words_of_changed_documents after update on rag.documents
  referencing old table as former new table as changed
  for each statement execute function rag.index_changed_documents();

create function rag.delete_terms_of_org()
returns trigger
language plpgsql volatile security invoker set search_path = ''
as $$
begin
  -- Otherwise the documents would be deleted later, and their writers, for which the deletion waits, would leave terms.
  delete from rag.documents where documents.org_id = old.id;
  delete from rag.term_blocks where term_blocks.org_id = old.id;
  delete from rag.term_segments where term_segments.org_id = old.id;
  delete from rag.document_terms where document_terms.org_id = old.id;
  return null;
end;
$$;

comment on function rag.delete_terms_of_org is 'Trigger that deletes the documents and the keyword index of a deleted org.';

create trigger delete_terms_of_org after delete on rag.orgs
  for each row execute function rag.delete_terms_of_org();

-- Rebuilding of an org's keyword index, after a change of the tokenization or a repair. The command rebuild-keywords
-- (local/operations/rebuild_keywords.py), which the operator runs with the database's own URL, calls the function until it
-- returns null. Each call is a transaction: a search finds a document by its former terms or by its new ones.

create function rag.rebuild_keywords(org_id uuid, after uuid)
returns uuid
language plpgsql volatile security invoker set search_path = '' set enable_seqscan = off
as $$
#variable_conflict use_variable
declare
  -- Writers of these documents wait until the call ends. A longer document is the last of its step.
  most_chunks constant integer := 1000;
  document_ids uuid[];
begin
  select array_agg(part.id order by part.id) into document_ids
  from (
    select next.id, sum(next.chunks) over (order by next.id) - next.chunks as before
    from (
      select documents.id, (
          select count(*) from rag.chunks where chunks.org_id = org_id and chunks.document_id = documents.id
        ) as chunks
      from rag.documents
      where documents.org_id = org_id and documents.id > after
      order by documents.id
      limit most_chunks
    ) as next
  ) as part
  where part.before < most_chunks;
  if document_ids is not null then
    perform rag.index_words(org_id, document_ids);
    return document_ids[cardinality(document_ids)];
  end if;

  -- Every document has left its former segment. What remains belongs to no document.
  perform rag.remove_words(org_id, array(
    select stale.document_id
    from rag.document_terms as stale
    where stale.org_id = org_id and not exists (
      select from rag.documents where documents.org_id = org_id and documents.id = stale.document_id)));
  delete from rag.term_blocks as stale
  where stale.org_id = org_id and not exists (
    select from rag.document_terms as present
    where present.org_id = org_id and present.class = stale.class and present.segment = stale.segment);
  delete from rag.term_segments as stale
  where stale.org_id = org_id and not exists (
    select from rag.document_terms as present
    where present.org_id = org_id and present.class = stale.class and present.segment = stale.segment);
  return null;
end;
$$;

comment on function rag.rebuild_keywords is
  'Write the terms of an org''s next documents anew, by id, of about 1,000 chunks. Returns the id of the last one; null '
  'after the last call, which removes what belongs to no document.';

-- Removals: a queue of objects of Supabase Storage to delete, because no document has them: announced uploads without a
-- document, and objects of deleted documents. A removal is written in the transaction that causes it. The worker
-- deletes the object with a token that names it, and then the row. It does not delete an object that a document has. No
-- foreign keys: these rows outlive their collection and their org.

create table rag.object_removals (
  org_id uuid not null,
  path text not null check (
    path ~ '^([0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/){4}[A-Za-z0-9_][A-Za-z0-9._-]{0,99}$'
  ),
  collection_id uuid not null,
  owner_id uuid,
  expected_until timestamptz,
  storable_until timestamptz,
  due_at timestamptz not null default now(),
  attempts integer not null default 0,
  created_at timestamptz not null default now(),
  primary key (org_id, path),
  check (split_part(path, '/', 1) = org_id::text)
);

comment on table rag.object_removals is
  'Objects of Supabase Storage to delete, and announced uploads that no document has.';
comment on column rag.object_removals.expected_until is
  'Until then the user who announced the upload may create a document from it; null afterwards.';
comment on column rag.object_removals.storable_until is
  'Until then the upload link may store the object again. After that time the worker deletes the object once more.';

-- rag_claim_removals: those that are due.
create index object_removals_due on rag.object_removals (due_at);

call rag.admit_members('object_removals');
call rag.bind_keys('object_removals');

create policy "a key sees uploads with documents:write" on rag.object_removals
  as restrictive for select to authenticated
  using ((select rag.has_scope('documents:write')));

create policy "uploads are one's own" on rag.object_removals
  as restrictive for insert to authenticated
  with check (expected_until is null
    or (split_part(path, '/', 3) = (select rag.current_user_id())::text and (select rag.has_scope('documents:write'))));

-- Documents also go with their collection.
create policy "a key removes with a scope that deletes" on rag.object_removals
  as restrictive for insert to authenticated
  with check ((select rag.has_scope('documents:write', 'collections:manage')));

create policy "objects of deleted documents are removed" on rag.object_removals
  as restrictive for delete to authenticated
  using (expected_until is not null and (select rag.has_scope('documents:write')));

create policy "the worker sees objects to remove" on rag.object_removals
  for select to rag_worker using (true);

create policy "the worker puts removals off" on rag.object_removals
  for update to rag_worker using (true) with check (true);

create policy "the worker ends removals" on rag.object_removals
  for delete to rag_worker using (true);

create policy "the worker sees which objects documents have" on rag.originals
  for select to rag_worker using (path is not null);

create function rag.enqueue_object_removal()
returns trigger
language plpgsql volatile security invoker set search_path = ''
as $$
begin
  insert into rag.object_removals (org_id, path, collection_id, owner_id, storable_until)
  values (old.org_id, old.path, old.collection_id, old.owner_id, old.created_at + interval '3 hours')
  on conflict do nothing;
  return null;
end;
$$;

comment on function rag.enqueue_object_removal is
  'Trigger that enqueues the removal of an object whose document was deleted or has another object.';

-- For every deletion of a document: by a user, with its collection, or with its org.
create trigger remove_object after delete on rag.originals
  for each row when (old.path is not null) execute function rag.enqueue_object_removal();

create trigger remove_replaced_object after update of path on rag.originals
  for each row when (old.path is not null and old.path is distinct from new.path)
  execute function rag.enqueue_object_removal();

create function public.rag_claim_removals(max_items integer default 20)
returns table (org_id uuid, path text)
language plpgsql volatile security invoker set search_path = ''
as $$
#variable_conflict use_column
declare
  paused constant uuid[] := array(select rag.paused_org_ids());
begin
  perform rag.check_claim(max_items);
  delete from rag.object_removals
  using rag.originals
  where object_removals.due_at <= clock_timestamp() and object_removals.org_id <> all (paused)
    and originals.org_id = object_removals.org_id and originals.path = object_removals.path;
  return query
  with placed as (
    select object_removals.org_id, object_removals.path, object_removals.due_at, row_number() over (
      partition by object_removals.org_id order by object_removals.due_at) as turn
    from rag.object_removals
    where object_removals.due_at <= clock_timestamp() and object_removals.org_id <> all (paused)
  ), due as materialized (
    select locked.org_id, locked.path
    from (select placed.* from placed order by placed.turn, placed.due_at limit 4 * max_items) as placed
    cross join lateral (
      select object_removals.org_id, object_removals.path
      from rag.object_removals
      where object_removals.org_id = placed.org_id and object_removals.path = placed.path
        and object_removals.due_at <= clock_timestamp()
      for update skip locked
    ) as locked
    limit max_items
  )
  update rag.object_removals as claimed
  set attempts = claimed.attempts + 1,
    due_at = clock_timestamp() + least(interval '1 day', interval '1 minute' * 2 ^ least(claimed.attempts, 12))
  from due
  where claimed.org_id = due.org_id and claimed.path = due.path
  returning claimed.org_id, claimed.path;
end;
$$;

comment on function public.rag_claim_removals is
  'For the worker: due objects to delete, the same number of every org that is not paused. A removal is due again, after growing pauses, '
  'until rag_end_removal.';

create function public.rag_end_removal(org_id uuid, path text)
returns void
language plpgsql volatile security invoker set search_path = ''
as $$
begin
  -- Raises PT401 for a token of another issuer.
  perform rag.current_user_id();
  update rag.object_removals
  set due_at = storable_until, attempts = 0
  where object_removals.org_id = rag_end_removal.org_id and object_removals.path = rag_end_removal.path
    and storable_until > clock_timestamp();
  if not found then
    delete from rag.object_removals
    where object_removals.org_id = rag_end_removal.org_id and object_removals.path = rag_end_removal.path;
  end if;
end;
$$;

comment on function public.rag_end_removal is
  'Finish a removal. The row stays as long as the upload link of the object is valid.';

-- Policies on storage.objects and storage.buckets for the bucket of originals. The Storage server evaluates them as the
-- caller. A caller stores an object at the path that rag_begin_upload returned, reads it if they may read its document, and deletes it
-- with a token that names it; the path itself grants nothing. The restrictive policies apply whatever other policies a
-- project has, and do not affect its other buckets. Without the schema storage this file does nothing.

create function rag.may_upload_object(name text)
returns boolean
language sql stable security invoker set search_path = ''
as $$
  select exists (
    select from rag.object_removals
    where object_removals.org_id = any (array(select rag.current_org_ids()))
      and object_removals.path = may_upload_object.name
      and object_removals.expected_until > now() and split_part(object_removals.path, '/', 3) = rag.current_user_id()::text);
$$;

comment on function rag.may_upload_object is
  'Whether the caller announced an upload to that path and has made no document of it yet.';

create function rag.deletable_object()
returns text
language sql stable security invoker set search_path = ''
as $$
  select rag.token_claim() ->> 'object';
$$;

comment on function rag.deletable_object is 'The object that the token may delete; null for every other token.';

create function rag.may_read_object(name text)
returns boolean
language sql stable security invoker set search_path = ''
as $$
  select exists (
      select from rag.originals
      where originals.org_id = any (array(select rag.current_org_ids())) and originals.path = may_read_object.name)
    or rag.may_upload_object(may_read_object.name) or coalesce(may_read_object.name = rag.deletable_object(), false);
$$;

comment on function rag.may_read_object is
  'Whether the caller may read an object: row security on the document''s original decides.';

do $$
begin
  if to_regclass('storage.objects') is null then
    return;
  end if;
  insert into storage.buckets (id, name, public, file_size_limit)
  values ('rag-originals', 'rag-originals', false, 100 << 20)
  -- No policy protects the objects of a public bucket.
  on conflict (id) do update set public = false;

  create policy "rag: signed-in users use the bucket of originals" on storage.objects
    for all to authenticated
    using (bucket_id = 'rag-originals') with check (bucket_id = 'rag-originals');

  create policy "rag: an object is read by who reads its document" on storage.objects
    as restrictive for select to authenticated
    using (bucket_id is distinct from 'rag-originals' or rag.may_read_object(name));

  create policy "rag: an object is stored by who was told to" on storage.objects
    as restrictive for insert to authenticated
    with check (bucket_id is distinct from 'rag-originals' or rag.may_upload_object(name));

  create policy "rag: no object is changed" on storage.objects
    as restrictive for update to authenticated
    using (bucket_id is distinct from 'rag-originals') with check (bucket_id is distinct from 'rag-originals');

  create policy "rag: an object is deleted by a token that names it" on storage.objects
    as restrictive for delete to authenticated
    using (bucket_id is distinct from 'rag-originals' or name = rag.deletable_object());

  create policy "rag: anon does not use the bucket of originals" on storage.objects
    as restrictive for all to anon
    using (bucket_id is distinct from 'rag-originals') with check (bucket_id is distinct from 'rag-originals');

  create policy "rag: no user changes the bucket of originals" on storage.buckets
    as restrictive for update to anon, authenticated
    using (id <> 'rag-originals') with check (id <> 'rag-originals');

  create policy "rag: no user deletes the bucket of originals" on storage.buckets
    as restrictive for delete to anon, authenticated
    using (id <> 'rag-originals');
exception when insufficient_privilege then
  -- One transaction: the bucket never exists without its policies.
  raise warning 'rag: for large files, run the end of sql/40_storage/20_storage_policies.sql as the owner of storage.objects';
end;
$$;

-- Direct uploads to Supabase Storage, for files that are too large for a request. The caller announces an upload and
-- then makes a document of it. rag.object_removals holds uploads without a document, so that the worker deletes them.

create function public.rag_begin_upload(collection_id uuid, name text, size_bytes bigint)
returns table (path text, expires_at timestamptz)
language plpgsql volatile security invoker set search_path = ''
as $$
#variable_conflict use_column
declare
  is_admitted constant boolean := rag.begin_call();
  home constant rag.collections := rag.get_collection(rag_begin_upload.collection_id);
begin
  perform rag.check_file_size(home.org_id, rag_begin_upload.size_bytes), rag.check_storage(home.org_id);
  if 50 <= (
    select count(*) from rag.object_removals
    where object_removals.org_id = home.org_id and object_removals.owner_id = rag.current_user_id()
      and object_removals.expected_until > now())
  then
    raise exception 'You have begun 50 uploads. Complete them first, or wait until they expire.'
      using errcode = 'PT429', detail = 'too_many_uploads';
  end if;
  path := concat_ws('/', home.org_id, home.id, rag.current_user_id(), gen_random_uuid(), rag_begin_upload.name);
  -- As long as Storage's own links for uploads last; an upload that is running then has an hour more.
  expires_at := now() + interval '2 hours';
  insert into rag.object_removals (org_id, path, collection_id, owner_id, expected_until, due_at)
  values (home.org_id, rag_begin_upload.path, home.id, rag.current_user_id(), rag_begin_upload.expires_at,
    rag_begin_upload.expires_at + interval '1 hour');
  perform rag.count_upload(home.org_id, rag_begin_upload.size_bytes);
  return next;
end;
$$;

comment on function public.rag_begin_upload is
  'Announce an upload into the collection: its path, and until when the caller may create a document. name: ASCII '
  'letters, digits, dots, dashes and underscores. PT413 for a larger file than the org''s tier takes; PT429 beyond the bytes that '
  'the tier allows, and above 50 uploads of the user that are not completed.';

create function rag.take_upload(home rag.collections, path text)
returns void
language plpgsql volatile security invoker set search_path = ''
as $$
begin
  delete from rag.object_removals
  where object_removals.org_id = home.org_id and object_removals.collection_id = home.id
    and object_removals.path = take_upload.path
    and object_removals.expected_until > now() and split_part(object_removals.path, '/', 3) = rag.current_user_id()::text;
  if not found then
    raise exception 'There is no such upload. Check its id, or begin another.'
      using errcode = 'PT404', detail = 'upload_not_found';
  end if;
end;
$$;

comment on function rag.take_upload is
  'Take an announced upload for a document: once, by the user who announced it, and before it expires. PT404 '
  'otherwise.';

-- Webhooks: subscriptions of an org's admins to changes of collections and documents. An event is written in the
-- transaction of the change, one row for each endpoint (20_webhook_outbox.sql, 30_webhook_events.sql); the worker sends
-- it (40_claim_deliveries.sql). Events contain ids, states and names of collections, never the text of a document.

create table rag.webhooks (
  org_id uuid not null references rag.orgs (id) on delete cascade,
  id uuid not null default gen_random_uuid(),
  owner_id uuid check (owner_id is null),
  collection_id uuid,
  events text[] not null check (array_ndims(events) = 1 and cardinality(events) between 1 and 9
    and events <@ array['collection.created', 'collection.updated', 'collection.deleted',
      'document.processing_started', 'document.processing_completed', 'document.processing_failed',
      'document.deleted', 'quota.alert', 'quota.exceeded']),
  enabled boolean not null default true,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  primary key (org_id, id)
);

comment on table rag.webhooks is 'Subscriptions to events. Members read them, because their changes cause the events.';
comment on column rag.webhooks.owner_id is
  'Always null: webhooks belong to the org, and its admins manage them.';
comment on column rag.webhooks.collection_id is
  'Null is every collection. The webhook of a deleted collection remains, so that it gets the event of the '
  'deletion.';
comment on column rag.webhooks.enabled is
  'Off, by an admin, or by the worker after days without a response. Waiting deliveries then end.';

-- As a type, because a trigger may move the secret to Vault before the table checks its row.
create domain rag.webhook_secret as text check (value ~ '^whsec_[A-Za-z0-9+/]{43}=$');

comment on domain rag.webhook_secret is 'The signing secret of a webhook.';

create table rag.endpoints (
  org_id uuid not null,
  webhook_id uuid not null,
  owner_id uuid check (owner_id is null),
  url text not null check (length(url) <= 2000 and url ~ '^https?://[^[:space:]]+$' and rag.is_visible_text(url)),
  description text check (length(description) <= 500 and rag.is_visible_text(description)),
  secret rag.webhook_secret,
  secret_id uuid,
  old_secret rag.webhook_secret,
  old_secret_id uuid,
  old_secret_until timestamptz,
  failing_since timestamptz,
  paused_until timestamptz,
  primary key (org_id, webhook_id),
  check (num_nonnulls(secret, secret_id) = 1),
  foreign key (org_id, webhook_id) references rag.webhooks (org_id, id) on delete cascade
);

comment on table rag.endpoints is
  'Addresses and signing secrets of webhooks. A secret is returned once, when it is created; after that only the '
  'worker reads it.';
comment on column rag.endpoints.secret is 'The signing secret, in a project without Vault; the next column: its id in Vault.';
comment on column rag.endpoints.old_secret is
  'The previous secret, while both secrets sign; the next column: its id in Vault.';
comment on column rag.endpoints.failing_since is
  'The time of the first failure since the last success; the next column: the end of the pause before a new attempt.';

-- Expired old secrets.
create index endpoints_old_secrets on rag.endpoints (old_secret_until)
  where old_secret is not null or old_secret_id is not null;

call rag.admit_members('webhooks');
call rag.admit_members('endpoints');

-- A key that is bound to a collection manages no webhooks: it would choose the events that others receive.
create policy "admins make webhooks" on rag.webhooks
  as restrictive for insert to authenticated
  with check (org_id = any (array(select rag.admin_org_ids())) and (select rag.bound_collection()) is null);

create policy "admins change webhooks" on rag.webhooks
  as restrictive for update to authenticated
  using (org_id = any (array(select rag.admin_org_ids())) and (select rag.bound_collection()) is null)
  with check (org_id = any (array(select rag.admin_org_ids())) and (select rag.bound_collection()) is null);

create policy "admins delete webhooks" on rag.webhooks
  as restrictive for delete to authenticated
  using (org_id = any (array(select rag.admin_org_ids())) and (select rag.bound_collection()) is null);

create policy "admins alone see where webhooks lead" on rag.endpoints
  as restrictive for all to authenticated
  using (org_id = any (array(select rag.admin_org_ids())) and (select rag.bound_collection()) is null)
  with check (org_id = any (array(select rag.admin_org_ids())) and (select rag.bound_collection()) is null);

create policy "the worker sees subscriptions" on rag.webhooks
  for select to rag_worker using (true);

create policy "the worker disables failing webhooks" on rag.webhooks
  for update to rag_worker using (enabled) with check (not enabled);

create policy "the worker knows where webhooks lead" on rag.endpoints
  for select to rag_worker using (true);

create policy "the worker records the results of endpoints" on rag.endpoints
  for update to rag_worker using (true) with check (true);

create function rag.store_old_secret()
returns trigger
language plpgsql volatile security invoker set search_path = ''
as $$
begin
  new.old_secret := case when new.old_secret_until > now() then old.secret end;
  new.old_secret_id := case when new.old_secret_until > now() then old.secret_id end;
  return new;
end;
$$;

comment on function rag.store_old_secret is
  'Trigger that keeps the previous secret while both are valid. The admin who rotates a secret cannot read it.';

-- The admin who rotates a secret cannot read the old one.
create trigger keep_old_secret before update on rag.endpoints
  for each row when (new.secret is not null and new.secret is distinct from old.secret)
  execute function rag.store_old_secret();

-- After keep_old_secret: triggers run in the order of their names.
create trigger store_in_vault before insert or update on rag.endpoints
  for each row execute function rag.store_in_vault('secret', 'old_secret');

create trigger erase_from_vault after update or delete on rag.endpoints
  for each row execute function rag.erase_from_vault('secret', 'old_secret');

-- Deliveries: the outbox of webhooks, with the result of each event's last attempt.

create table rag.deliveries (
  org_id uuid not null,
  id uuid not null default gen_random_uuid(),
  webhook_id uuid not null,
  collection_id uuid,
  owner_id uuid,
  event_id uuid not null,
  event text not null check (event in ('collection.created', 'collection.updated', 'collection.deleted',
    'document.processing_started', 'document.processing_completed', 'document.processing_failed',
    'document.deleted', 'quota.alert', 'quota.exceeded')),
  object jsonb not null check (jsonb_typeof(object) = 'object' and pg_column_size(object) <= 10000),
  state text not null default 'waiting' check (state in ('waiting', 'running', 'done', 'failed')),
  attempts integer not null default 0,
  due_at timestamptz not null default now(),
  lease uuid,
  response_status integer check (response_status between 100 and 999),
  error text check (error ~ '^[a-z_]{1,40}$'),
  created_at timestamptz not null default now(),
  finished_at timestamptz,
  primary key (org_id, id),
  foreign key (org_id, webhook_id) references rag.webhooks (org_id, id) on delete cascade,
  check ((state = 'running') = (lease is not null))
);

comment on table rag.deliveries is 'The outbox of webhooks, and the results of its deliveries.';
comment on column rag.deliveries.collection_id is 'Null for events of a quota.';
comment on column rag.deliveries.owner_id is 'The owner of the document that the event is about.';
comment on column rag.deliveries.event_id is 'The id of the event, equal for all its addresses.';
comment on column rag.deliveries.due_at is
  'Not before this. While it is being sent: when its lease ends and any worker may send it again.';
comment on column rag.deliveries.response_status is
  'The response to the last attempt, if there was one, and why the attempt failed.';

-- rag_list_deliveries, newest first; deleting a webhook.
create index deliveries_by_webhook on rag.deliveries (org_id, webhook_id, created_at);

-- rag_claim_deliveries: the webhooks with deliveries, and the due ones of each.
create index deliveries_due on rag.deliveries (org_id, webhook_id, due_at) where state in ('waiting', 'running');

-- rag.clear_deliveries: finished deliveries that are too old to show.
create index deliveries_finished on rag.deliveries (finished_at) where finished_at is not null;

call rag.admit_members('deliveries');

-- The user who causes an event writes its deliveries, without seeing them.
create policy "who changes something has it told" on rag.deliveries
  as restrictive for insert to authenticated
  with check ((event in ('quota.alert', 'quota.exceeded')
      or (select rag.has_scope('documents:write', 'collections:manage'))
      and ((select rag.bound_collection()) is null or collection_id = (select rag.bound_collection())))
    and state = 'waiting' and attempts = 0);

create policy "admins see deliveries" on rag.deliveries
  as restrictive for select to authenticated
  using (org_id = any (array(select rag.admin_org_ids())) and (select rag.bound_collection()) is null);

create policy "admins have it told again" on rag.deliveries
  as restrictive for update to authenticated
  using (org_id = any (array(select rag.admin_org_ids())) and (select rag.bound_collection()) is null)
  with check (state = 'waiting' and attempts = 0);

create policy "the worker sends deliveries" on rag.deliveries
  for all to rag_worker using (true) with check (true);

-- Triggers that write webhook events, in the transaction of the change and at its end, when a document's chunks can be
-- counted and it is known whether its collection was deleted too.

create function rag.has_subscriber(org_id uuid, collection_id uuid, event text)
returns boolean
language sql stable security invoker set search_path = ''
as $$
  select exists (
    select from rag.webhooks
    where webhooks.org_id = has_subscriber.org_id and enabled and event = any (events)
      and (webhooks.collection_id is null or webhooks.collection_id = has_subscriber.collection_id));
$$;

comment on function rag.has_subscriber is 'Whether a webhook is subscribed to the event.';

create function rag.enqueue_event(org_id uuid, collection_id uuid, owner_id uuid, event text, object jsonb)
returns void
language plpgsql volatile security invoker set search_path = ''
as $$
declare
  event_id constant uuid := gen_random_uuid();
begin
  loop
    begin
      insert into rag.deliveries (org_id, webhook_id, collection_id, owner_id, event_id, event, object)
      select enqueue_event.org_id, webhooks.id, enqueue_event.collection_id, enqueue_event.owner_id, event_id,
        enqueue_event.event, object
      from rag.webhooks
      where webhooks.org_id = enqueue_event.org_id and enabled and enqueue_event.event = any (events)
        and (webhooks.collection_id is null or webhooks.collection_id = enqueue_event.collection_id);
      return;
    exception
      when foreign_key_violation then
        -- The row is deleted by now, so that the next query does not see it.
        null;
    end;
  end loop;
end;
$$;

comment on function rag.enqueue_event is
  'Enqueue an event for every subscribed webhook. A webhook that is deleted at the same time gets none, and does '
  'not fail the caller''s change.';

create function rag.enqueue_collection_event()
returns trigger
language plpgsql volatile security invoker set search_path = ''
as $$
declare
  collection constant rag.collections := coalesce(new, old);
  event constant text := case
    when tg_op = 'DELETE' then 'collection.deleted'
    -- One that was loaded is new when it has its name.
    when tg_op = 'INSERT' or old.loading_name is not null then 'collection.created'
    else 'collection.updated' end;
begin
  -- The event was sent when a member deleted the collection.
  if collection.loading_name is not null or collection.deleted_at is not null then
    return null;
  end if;
  if rag.has_subscriber(collection.org_id, collection.id, event) then
    perform rag.enqueue_event(collection.org_id, collection.id, collection.owner_id, event,
      jsonb_build_object('id', collection.id, 'name', collection.name));
  end if;
  return null;
end;
$$;

comment on function rag.enqueue_collection_event is 'Trigger that enqueues the event of a changed collection.';

create function rag.enqueue_document_event()
returns trigger
language plpgsql volatile security invoker set search_path = ''
as $$
declare
  document constant rag.documents := coalesce(new, old);
  event constant text := case
    when tg_op = 'DELETE' then 'document.deleted'
    when document.status = 'processing' then 'document.processing_started'
    else 'document.processing_' || document.status end;
  object jsonb := jsonb_build_object(
    'id', document.id, 'collection_id', document.collection_id, 'status', document.status);
begin
  if not rag.has_subscriber(document.org_id, document.collection_id, event) then
    return null;
  end if;
  -- No event while a snapshot is loading: the collection's event is written at the end of the load. (A failure is
  -- recorded by the worker, which sees no collections; a document of a running load has no job.)
  if event <> 'document.processing_failed' then
    if exists (
      select from rag.collections
      where collections.org_id = document.org_id and collections.id = document.collection_id
        and collections.loading_name is not null)
    then
      return null;
    end if;
  end if;
  if event = 'document.processing_completed' then
    object := object || jsonb_build_object('chunk_count', (
      select count(*) from rag.chunks
      where chunks.org_id = document.org_id and chunks.document_id = document.id));
  elsif event = 'document.processing_failed' then
    object := object || jsonb_build_object(
      'error_code', document.error_code, 'error_message', document.error_message);
  elsif event = 'document.deleted' and not exists (
    select from rag.collections
    where collections.org_id = document.org_id and collections.id = document.collection_id
      and collections.deleted_at is null)
  then
    -- The collection was deleted too, and has an event of its own.
    return null;
  end if;
  perform rag.enqueue_event(document.org_id, document.collection_id, document.owner_id, event, object);
  return null;
end;
$$;

comment on function rag.enqueue_document_event is 'Trigger that enqueues the event of a changed document.';

create constraint trigger tell_of_collection
  after insert or update or delete on rag.collections
  deferrable initially deferred for each row execute function rag.enqueue_collection_event();

create constraint trigger tell_of_document
  after insert or update of status or delete on rag.documents
  deferrable initially deferred for each row execute function rag.enqueue_document_event();

-- Functions that the worker calls to claim and end deliveries, under its own role.
-- shared/documents/webhook_delivery_attempts.py sends them, and decides when to try again.

create function rag.clear_deliveries()
returns void
language sql volatile security invoker set search_path = ''
as $$
  delete from rag.deliveries
  using (
    select ended.org_id, ended.id
    from rag.deliveries as ended
    where ended.finished_at < now() - interval '30 days'
    limit 1000
    for update skip locked
  ) as expired
  where deliveries.org_id = expired.org_id and deliveries.id = expired.id;

  update rag.deliveries
  set state = 'failed', error = 'webhook_disabled', finished_at = clock_timestamp()
  from (
    select waiting.org_id, waiting.id
    from rag.webhooks
    cross join lateral (
      select deliveries.org_id, deliveries.id
      from rag.deliveries
      where deliveries.org_id = webhooks.org_id and deliveries.webhook_id = webhooks.id
        and deliveries.state = 'waiting'
      limit 1000
      for update skip locked
    ) as waiting
    where not webhooks.enabled
    limit 1000
  ) as undeliverable
  where deliveries.org_id = undeliverable.org_id and deliveries.id = undeliverable.id;

  update rag.endpoints set old_secret = null, old_secret_id = null
  where (old_secret is not null or old_secret_id is not null) and old_secret_until <= now();
$$;

comment on function rag.clear_deliveries is
  'Delete deliveries that ended a month ago, those that wait for disabled webhooks, and old '
  'secrets.';

create function rag.due_deliveries(max_items integer)
returns table (org_id uuid, id uuid, rank bigint)
language sql stable security invoker set search_path = ''
as $$
  with recursive busy (org_id, webhook_id) as (
    -- The next address with due deliveries, by the index: there may be many deliveries for few addresses.
    (select first.org_id, first.webhook_id
      from rag.deliveries as first
      where first.state in ('waiting', 'running')
      order by first.org_id, first.webhook_id
      limit 1)
    union all
    select next.org_id, next.webhook_id
    from busy
    cross join lateral (
      select deliveries.org_id, deliveries.webhook_id
      from rag.deliveries
      where deliveries.state in ('waiting', 'running')
        and (deliveries.org_id, deliveries.webhook_id) > (busy.org_id, busy.webhook_id)
      order by deliveries.org_id, deliveries.webhook_id
      limit 1
    ) as next
  ), due as (
    select delivery.*, row_number() over (partition by delivery.org_id, delivery.webhook_id order by delivery.due_at) as turn
    from busy
    join rag.webhooks on webhooks.org_id = busy.org_id and webhooks.id = busy.webhook_id and webhooks.enabled
    join rag.endpoints on endpoints.org_id = busy.org_id and endpoints.webhook_id = busy.webhook_id
    cross join lateral (
      select deliveries.org_id, deliveries.webhook_id, deliveries.id, deliveries.due_at
      from rag.deliveries
      where deliveries.org_id = busy.org_id and deliveries.webhook_id = busy.webhook_id
        and deliveries.state in ('waiting', 'running') and deliveries.due_at <= now()
      -- By nothing else: the index has no more, and what happens at once is due at once.
      order by deliveries.due_at
      limit case when endpoints.failing_since is null then max_items else 1 end
    ) as delivery
    where coalesce(endpoints.paused_until, '-infinity') <= now()
      and busy.org_id <> all (array(select rag.paused_org_ids()))
  ), of_orgs as (
    select due.*, row_number() over (partition by due.org_id order by due.turn, due.due_at) as org_turn
    from due
  )
  select of_orgs.org_id, of_orgs.id, row_number() over (order by of_orgs.org_turn, of_orgs.due_at)
  from of_orgs;
$$;

comment on function rag.due_deliveries is
  'Due deliveries in the order of their claim: the same number of every org that is not paused, and of every address '
  'of an org, the longest waiting first. For an address that has failed recently, only one delivery.';

create function public.rag_claim_deliveries(max_items integer default 16, lease_seconds integer default 60)
returns table (
  org_id uuid, delivery_id uuid, lease uuid, attempts integer, event_id uuid, event text, object jsonb,
  created_at timestamptz, url text, secret text, old_secret text
)
language plpgsql volatile security invoker set search_path = ''
as $$
#variable_conflict use_column
begin
  perform rag.check_claim(max_items, lease_seconds);
  perform rag.clear_deliveries();

  return query
  with locked as materialized (
    select deliveries.org_id, deliveries.id
    from (select due.* from rag.due_deliveries(max_items) as due order by due.rank limit 4 * max_items) as due
    cross join lateral (
      select deliveries.org_id, deliveries.id
      from rag.deliveries
      where deliveries.org_id = due.org_id and deliveries.id = due.id
        and deliveries.state in ('waiting', 'running') and deliveries.due_at <= now()
      for update skip locked
    ) as deliveries
    limit max_items
  ), claimed as (
    update rag.deliveries as claimed
    set state = case when claimed.attempts < rag.max_attempts() then 'running' else 'failed' end,
      lease = case when claimed.attempts < rag.max_attempts() then gen_random_uuid() end,
      error = case when claimed.attempts < rag.max_attempts() then claimed.error else 'failed' end,
      finished_at = case when claimed.attempts >= rag.max_attempts() then clock_timestamp() end,
      attempts = claimed.attempts + 1, due_at = clock_timestamp() + make_interval(secs => lease_seconds)
    from locked
    where claimed.org_id = locked.org_id and claimed.id = locked.id
    returning claimed.*
  )
  select claimed.org_id, claimed.id, claimed.lease, claimed.attempts, claimed.event_id, claimed.event,
    claimed.object, claimed.created_at, endpoints.url,
    coalesce(endpoints.secret, rag.secret_in_vault(endpoints.secret_id)),
    case when endpoints.old_secret_until > now()
      then coalesce(endpoints.old_secret, rag.secret_in_vault(endpoints.old_secret_id)) end
  from claimed
  join rag.endpoints on endpoints.org_id = claimed.org_id and endpoints.webhook_id = claimed.webhook_id
  where claimed.lease is not null;
end;
$$;

comment on function public.rag_claim_deliveries is
  'Lease due deliveries, for the worker, with their address and the secrets that sign them. After '
  'rag.max_attempts() attempts without a result a delivery fails.';

create function public.rag_end_delivery(
  org_id uuid, delivery_id uuid, lease uuid, response_status integer default null, error text default null,
  retry_seconds integer default null
)
returns boolean
language plpgsql volatile security invoker set search_path = ''
as $$
#variable_conflict use_variable
declare
  webhook constant uuid := (
    select deliveries.webhook_id from rag.deliveries
    where deliveries.org_id = rag_end_delivery.org_id and deliveries.id = delivery_id);
  endpoint rag.endpoints;
  since timestamptz;
begin
  -- Raises PT401 for a token of another issuer.
  perform rag.current_user_id();
  -- In the order in which changing and deleting a webhook lock them.
  perform from rag.webhooks
  where webhooks.org_id = rag_end_delivery.org_id and webhooks.id = webhook
  for no key update;
  select * into endpoint
  from rag.endpoints
  where endpoints.org_id = rag_end_delivery.org_id and endpoints.webhook_id = webhook
  for update;
  update rag.deliveries
  set state = case when error is null then 'done' when retry_seconds is null then 'failed' else 'waiting' end,
    lease = null, response_status = rag_end_delivery.response_status, error = rag_end_delivery.error,
    due_at = clock_timestamp() + make_interval(secs => coalesce(retry_seconds, 0)),
    finished_at = case when error is null or retry_seconds is null then clock_timestamp() end
  where deliveries.org_id = rag_end_delivery.org_id and deliveries.id = delivery_id
    and deliveries.state = 'running' and deliveries.lease = rag_end_delivery.lease;
  if not found then
    return false;
  end if;

  if error is not null then
    -- Attempts are a day apart at most: a failure after a longer silence is a new one.
    since := coalesce(
      case when endpoint.paused_until > clock_timestamp() - interval '26 hours' then endpoint.failing_since end,
      clock_timestamp());
  end if;
  if error is not null or endpoint.failing_since is not null then
    update rag.endpoints
    set failing_since = since, paused_until = case when since is not null then clock_timestamp()
      + least(greatest(clock_timestamp() - since, interval '5 seconds'), interval '1 hour') end
    where endpoints.org_id = rag_end_delivery.org_id and endpoints.webhook_id = webhook;
  end if;
  if response_status = 410 or since < clock_timestamp() - interval '5 days' then
    update rag.webhooks set enabled = false, updated_at = clock_timestamp()
    where webhooks.org_id = rag_end_delivery.org_id and webhooks.id = webhook and webhooks.enabled;
  end if;
  return true;
end;
$$;

comment on function public.rag_end_delivery is
  'End a delivery attempt. error: null for a delivered event. retry_seconds: the pause before the next attempt, '
  'null for none. A worker that has lost the lease changes nothing. An address that fails gets no delivery for as '
  'long as it has failed, between five seconds and an hour. After five days of failures, or after a 410, its '
  'webhook is disabled.';

-- Functions of an org's admins to create, list, change and delete webhooks. They run as their caller.

create type rag.webhook as (
  id uuid, org_id uuid, url text, description text, events text[], collection_id uuid, enabled boolean,
  failing_since timestamptz, created_at timestamptz, updated_at timestamptz
);

comment on type rag.webhook is 'A webhook as a list returns it, without its secret.';

create function public.rag_list_webhooks(webhook_id uuid default null)
returns setof rag.webhook
language plpgsql stable security invoker set search_path = ''
as $$
begin
  perform rag.begin_call();
  return query
    select webhooks.id, webhooks.org_id, endpoints.url, endpoints.description, webhooks.events,
      webhooks.collection_id, webhooks.enabled, endpoints.failing_since, webhooks.created_at, webhooks.updated_at
    from rag.webhooks
    join rag.endpoints on endpoints.org_id = webhooks.org_id and endpoints.webhook_id = webhooks.id
    where webhooks.org_id = any (array(select rag.current_org_ids()))
      and (rag_list_webhooks.webhook_id is null or webhooks.id = rag_list_webhooks.webhook_id)
    order by webhooks.created_at, webhooks.id;
  if not found and webhook_id is not null then
    raise exception 'There is no such webhook. Check its id.' using errcode = 'PT404', detail = 'webhook_not_found';
  end if;
end;
$$;

comment on function public.rag_list_webhooks is
  'The webhooks that the caller administers, or the one with the given id; PT404 for another id.';

create function rag.get_webhook(webhook_id uuid)
returns rag.webhook
language sql stable security invoker set search_path = ''
as $$
  -- Without an id: the nil UUID, which none has.
  select * from public.rag_list_webhooks(coalesce(get_webhook.webhook_id, '00000000-0000-0000-0000-000000000000'));
$$;

comment on function rag.get_webhook is 'The webhook of that id; PT404 for one that the caller does not administer.';

create function public.rag_create_webhook(
  url text, secret text, events text[], collection_id uuid default null, description text default null,
  org_id uuid default null
)
returns setof rag.webhook
language plpgsql volatile security invoker set search_path = ''
as $$
#variable_conflict use_variable
declare
  home rag.collections;
  made uuid;
begin
  perform rag.begin_call();
  if collection_id is not null then
    home := rag.get_collection(collection_id);
    org_id := coalesce(org_id, home.org_id);
  end if;
  org_id := rag.resolve_org(org_id);
  perform rag.require_admin(org_id);
  if home.org_id <> org_id then
    raise exception 'There is no such collection. Check its id or name.'
      using errcode = 'PT404', detail = 'collection_not_found';
  end if;
  perform pg_advisory_xact_lock(hashtextextended('rag.webhooks ' || org_id::text, 0));
  if 20 <= (select count(*) from rag.webhooks where webhooks.org_id = rag_create_webhook.org_id) then
    raise exception 'The org already has 20 webhooks. Delete one first.'
      using errcode = 'PT400', detail = 'too_many_webhooks';
  end if;
  insert into rag.webhooks (org_id, collection_id, events) values (org_id, collection_id, events)
  returning id into made;
  insert into rag.endpoints (org_id, webhook_id, url, description, secret)
  values (org_id, made, url, description, secret);
  return query select * from public.rag_list_webhooks(made);
end;
$$;

comment on function public.rag_create_webhook is
  'Create a webhook, in the caller''s only org unless one is given. collection_id: only events of that collection. '
  'PT403 for a caller who is no admin of the org, PT400 above twenty webhooks.';

create function public.rag_update_webhook(
  webhook_id uuid, url text default null, events text[] default null, description text default null,
  enabled boolean default null
)
returns setof rag.webhook
language plpgsql volatile security invoker set search_path = ''
as $$
#variable_conflict use_variable
declare
  is_admitted constant boolean := rag.begin_call();
  present constant rag.webhook := rag.get_webhook(webhook_id);
  anew constant boolean := coalesce(enabled, url is not null);
begin
  update rag.webhooks as renewed
  set events = coalesce(rag_update_webhook.events, renewed.events),
    enabled = coalesce(rag_update_webhook.enabled, renewed.enabled), updated_at = clock_timestamp()
  where renewed.org_id = present.org_id and renewed.id = present.id;
  update rag.endpoints as renewed
  set url = coalesce(rag_update_webhook.url, renewed.url),
    description = coalesce(rag_update_webhook.description, renewed.description),
    failing_since = case when not anew then renewed.failing_since end,
    paused_until = case when not anew then renewed.paused_until end
  where renewed.org_id = present.org_id and renewed.webhook_id = present.id;
  return query select * from public.rag_list_webhooks(webhook_id);
end;
$$;

comment on function public.rag_update_webhook is
  'Change a webhook. Null leaves a field as it is. A webhook that is enabled again has no failures.';

create function public.rag_rotate_webhook(webhook_id uuid, secret text, overlap_seconds integer default 86400)
returns setof rag.webhook
language plpgsql volatile security invoker set search_path = ''
as $$
#variable_conflict use_variable
declare
  is_admitted constant boolean := rag.begin_call();
  present constant rag.webhook := rag.get_webhook(webhook_id);
begin
  if overlap_seconds is null or overlap_seconds not between 0 and 604800 then
    raise exception 'overlap_seconds must be between 0 and 604800'
      using errcode = 'PT400', detail = 'invalid_overlap';
  end if;
  update rag.endpoints as renewed
  set secret = rag_rotate_webhook.secret,
    old_secret_until = now() + make_interval(secs => overlap_seconds)
  where renewed.org_id = present.org_id and renewed.webhook_id = present.id;
  return query select * from public.rag_list_webhooks(webhook_id);
end;
$$;

comment on function public.rag_rotate_webhook is
  'Create a new secret. The old secret signs too, until the given time has passed.';

create function public.rag_delete_webhook(webhook_id uuid)
returns void
language plpgsql volatile security invoker set search_path = ''
as $$
declare
  is_admitted constant boolean := rag.begin_call();
  gone constant rag.webhook := rag.get_webhook(webhook_id);
begin
  delete from rag.webhooks where webhooks.org_id = gone.org_id and webhooks.id = gone.id;
end;
$$;

comment on function public.rag_delete_webhook is 'Delete a webhook with its deliveries; PT404 for an unknown one.';

-- Functions of an org's admins to list deliveries and to send one again. They run as their caller.

create function public.rag_list_deliveries(
  webhook_id uuid, "limit" integer default 20, "offset" integer default 0
)
returns jsonb
language plpgsql stable security invoker set search_path = ''
as $$
#variable_conflict use_variable
declare
  is_admitted constant boolean := rag.begin_call();
  webhook constant rag.webhook := rag.get_webhook(webhook_id);
begin
  perform rag.check_page("limit", "offset", 'desc', 'created_at', array['created_at']);
  return (
    with page as (
      select deliveries.id, deliveries.event_id, deliveries.event, deliveries.object, deliveries.state,
        deliveries.attempts, deliveries.response_status, deliveries.error, deliveries.created_at,
        deliveries.finished_at, deliveries.due_at
      from rag.deliveries
      where deliveries.org_id = webhook.org_id and deliveries.webhook_id = webhook.id
      order by deliveries.created_at desc, deliveries.id
      limit "limit" offset "offset"
    )
    select jsonb_build_object(
      'total', (select count(*) from rag.deliveries
        where deliveries.org_id = webhook.org_id and deliveries.webhook_id = webhook.id),
      'deliveries', coalesce(jsonb_agg(to_jsonb(page) order by page.created_at desc, page.id), '[]'))
    from page);
end;
$$;

comment on function public.rag_list_deliveries is
  '{"total", "deliveries": [...]}: sent and waiting deliveries, the newest first.';

create function public.rag_repeat_delivery(webhook_id uuid, delivery_id uuid)
returns void
language plpgsql volatile security invoker set search_path = ''
as $$
declare
  is_admitted constant boolean := rag.begin_call();
  webhook constant rag.webhook := rag.get_webhook(webhook_id);
begin
  if not webhook.enabled then
    raise exception 'The webhook is disabled. Enable it first.' using errcode = 'PT409', detail = 'webhook_disabled';
  end if;
  update rag.deliveries
  set state = 'waiting', attempts = 0, due_at = now(), response_status = null, error = null, finished_at = null
  where deliveries.org_id = webhook.org_id and deliveries.webhook_id = webhook.id
    and deliveries.id = delivery_id and deliveries.state in ('done', 'failed');
  if found then
    return;
  elsif exists (
    select from rag.deliveries
    where deliveries.org_id = webhook.org_id and deliveries.webhook_id = webhook.id
      and deliveries.id = delivery_id)
  then
    raise exception 'The delivery is still in progress. Please wait until it ends.'
      using errcode = 'PT409', detail = 'delivery_under_way';
  end if;
  raise exception 'There is no such delivery. Check its id.' using errcode = 'PT404', detail = 'delivery_not_found';
end;
$$;

comment on function public.rag_repeat_delivery is
  'Enqueue a finished delivery again, delivered or failed. PT404 for an unknown delivery, PT409 for one that is not '
  'finished, or whose webhook is disabled.';

-- Sources: websites and buckets whose contents the worker copies into a collection and follows. The org's admins write
-- and read them (20_manage_sources.sql). The worker claims due sources under its own role, and lists and stores as the
-- admin who created, changed or ran the source last (30_run_sources.sql). Documents of a source are ordinary documents.

create function rag.is_source_credentials(value jsonb)
returns boolean
language sql immutable security invoker set search_path = ''
as $$
  select case when value is null then true
    when jsonb_typeof(value) <> 'object' or pg_column_size(value) > 16384 or not rag.is_readable(value) then false
    else value ?& array['access_key_id', 'secret_access_key']
      and value - array['access_key_id', 'secret_access_key', 'session_token'] = '{}'
      and not exists (
        select from jsonb_each(value) as field (name, content)
        where not (jsonb_typeof(content) = 'string' and length(content #>> '{}') between 1 and 4000)
          and not (name = 'session_token' and content = 'null'))
  end;
$$;

comment on function rag.is_source_credentials is
  'Whether the value may be a bucket''s credentials: access_key_id and secret_access_key, and optionally session_token, '
  'each of 1 to 4,000 characters; or null. With others the worker might use credentials of its own.';

create table rag.sources (
  org_id uuid not null,
  id uuid not null default gen_random_uuid(),
  collection_id uuid not null,
  owner_id uuid,
  user_id uuid not null default rag.current_user_id(),
  kind text not null check (kind in ('website', 'bucket')),
  address text not null check (length(address) <= 2000 and rag.is_visible_text(address) and address !~ '::'
    and address ~ case kind
      when 'website' then '^https?://[^[:space:]]+$' else '^s3://[a-z0-9][a-z0-9.-]{1,62}(/.*)?$' end),
  endpoint text check (length(endpoint) <= 500 and endpoint ~ '^https?://[^[:space:]]+$'),
  region text check (region ~ '^[a-z0-9-]{1,40}$'),
  interval_seconds integer not null check (interval_seconds between 300 and 2592000),
  max_items integer not null check (max_items between 1 and case kind when 'website' then 10000 else 1000000 end),
  include_noindex boolean not null default false,
  enabled boolean not null default true,
  state text not null default 'waiting' check (state in ('waiting', 'running')),
  attempts integer not null default 0,
  due_at timestamptz not null default now(),
  lease uuid,
  run_number integer not null default 0,
  resume_after text check (octet_length(resume_after) <= 2000),
  started_at timestamptz,
  finished_at timestamptz,
  listed integer not null default 0,
  stored integer not null default 0,
  deleted integer not null default 0,
  failed integer not null default 0,
  gone integer not null default 0,
  left_out jsonb not null default '{}' check (jsonb_typeof(left_out) = 'object' and pg_column_size(left_out) <= 2000),
  error_code text check (error_code ~ '^[a-z_]{1,40}$'),
  error_message text check (length(error_message) <= 500 and rag.is_visible_text(error_message)),
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  primary key (org_id, id),
  foreign key (org_id, collection_id) references rag.collections (org_id, id) on delete cascade,
  check ((state = 'running') = (lease is not null)),
  check (kind = 'bucket' or num_nonnulls(endpoint, region) = 0),
  check (kind = 'website' or not include_noindex)
);

comment on table rag.sources is 'Websites and buckets whose contents the worker copies into a collection and follows.';
comment on column rag.sources.owner_id is 'The owner of the collection.';
comment on column rag.sources.user_id is
  'The admin who created, changed or ran the source last; the worker acts as this user.';
comment on column rag.sources.endpoint is
  'The S3-compatible service of a bucket; null: AWS. The functions accept those of the operator''s settings.';
comment on column rag.sources.max_items is 'A listing with more items fails, and deletes nothing.';
comment on column rag.sources.include_noindex is
  'Whether the pages of a website that ask not to be indexed are documents too.';
comment on column rag.sources.attempts is
  'Claims since the last time slice that ended, or that got further than an item which asked to wait.';
comment on column rag.sources.left_out is
  'Items of the last listing that are no documents: their number by reason, for example {"noindex": 2}.';
comment on column rag.sources.due_at is
  'Not before this. While it runs: when its lease ends and any worker may claim it again.';
comment on column rag.sources.run_number is 'The number of complete listings that have begun.';
comment on column rag.sources.resume_after is
  'The last item that the running listing has processed; null between listings. The next time slice continues after it.';
comment on column rag.sources.listed is
  'Items of the last listing; the next columns: documents that it added or replaced, documents that it deleted, items '
  'that failed; the last one: items that do not exist.';
comment on column rag.sources.error_code is
  'Why the last listing failed, or the error of an item that failed in it.';

-- rag_claim_sources
create index sources_due on rag.sources (due_at) where enabled;

-- Deletion of a collection.
create index sources_by_collection on rag.sources (org_id, collection_id);

-- As a type, because a trigger may move the credentials to Vault before the table checks its row.
create domain rag.bucket_credentials as jsonb check (rag.is_source_credentials(value));

comment on domain rag.bucket_credentials is 'The credentials of a bucket.';

create table rag.source_credentials (
  org_id uuid not null,
  source_id uuid not null,
  owner_id uuid,
  credentials rag.bucket_credentials,
  credentials_id uuid,
  primary key (org_id, source_id),
  check (num_nonnulls(credentials, credentials_id) = 1),
  foreign key (org_id, source_id) references rag.sources (org_id, id) on delete cascade
);

comment on table rag.source_credentials is
  'Credentials of buckets. Admins write them; only the worker reads them.';
comment on column rag.source_credentials.credentials is
  'The credentials, in a project without Vault; the next column: their id in Vault.';

create trigger store_in_vault before insert or update on rag.source_credentials
  for each row execute function rag.store_in_vault('credentials');

create trigger erase_from_vault after update or delete on rag.source_credentials
  for each row execute function rag.erase_from_vault('credentials');

create table rag.source_items (
  org_id uuid not null,
  source_id uuid not null,
  owner_id uuid,
  item text not null check (octet_length(item) between 1 and 2000),
  version text check (length(version) <= 500),
  document_id uuid not null,
  is_duplicate boolean not null default false,
  run_number integer not null,
  primary key (org_id, source_id, item),
  foreign key (org_id, source_id) references rag.sources (org_id, id) on delete cascade,
  foreign key (org_id, document_id) references rag.documents (org_id, id) on delete cascade
);

comment on table rag.source_items is 'Items of sources that have a document: pages, objects, messages.';
comment on column rag.source_items.item is 'The address of the item.';
comment on column rag.source_items.version is
  'The item''s version, as the source states it: a time stamp or an entity tag. Null: unknown.';
comment on column rag.source_items.is_duplicate is
  'The collection had the content already: the document belongs to another item, or to no source.';
comment on column rag.source_items.run_number is 'The last listing with this item.';

-- Deletion of a document.
create index source_items_by_document on rag.source_items (org_id, document_id);

-- rag_delete_missing_items
create index source_items_by_run on rag.source_items (org_id, source_id, run_number);

call rag.admit_members('sources');
call rag.admit_members('source_credentials', 'credentials of sources');
call rag.admit_members('source_items', 'items of sources');

create policy "admins manage sources" on rag.sources
  as restrictive for all to authenticated
  using (org_id = any (array(select rag.admin_org_ids())) and (select rag.bound_collection()) is null)
  with check (org_id = any (array(select rag.admin_org_ids())) and (select rag.bound_collection()) is null);

create policy "admins write credentials of sources" on rag.source_credentials
  as restrictive for all to authenticated
  using (org_id = any (array(select rag.admin_org_ids())) and (select rag.bound_collection()) is null)
  with check (org_id = any (array(select rag.admin_org_ids())) and (select rag.bound_collection()) is null);

create policy "admins see items of sources" on rag.source_items
  as restrictive for all to authenticated
  using (org_id = any (array(select rag.admin_org_ids())) and (select rag.bound_collection()) is null)
  with check (org_id = any (array(select rag.admin_org_ids())) and (select rag.bound_collection()) is null);

-- The worker acts as this user; during a run it acts as the user with whom the run began.
create policy "a source runs as the user who requests it" on rag.sources
  as restrictive for insert to authenticated
  with check (user_id = (select rag.current_user_id()) and state = 'waiting' and attempts = 0);

create policy "a changed source runs as the user who changes it" on rag.sources
  as restrictive for update to authenticated
  using (true) with check (user_id = (select rag.current_user_id()) or lease = (select rag.lease_of_token()));

create policy "the worker claims sources" on rag.sources
  for select to rag_worker using (true);

create policy "the worker leases sources" on rag.sources
  for update to rag_worker using (true) with check (true);

create policy "the worker reads credentials of sources" on rag.source_credentials
  for select to rag_worker using (true);

-- Functions of an org's admins to create, list, change, run and delete sources. They run as their caller.

create type rag.source as (
  id uuid, org_id uuid, collection_id uuid, kind text, address text, endpoint text, region text,
  interval_seconds integer, max_items integer, include_noindex boolean, enabled boolean,
  has_credentials boolean, state text,
  started_at timestamptz, finished_at timestamptz, due_at timestamptz, listed integer, stored integer,
  deleted integer, failed integer, left_out jsonb, error_code text, error_message text, created_at timestamptz,
  updated_at timestamptz
);

comment on type rag.source is
  'A source as a list returns it, without credentials. state: running from the first to the last time slice of a '
  'listing.';

create function public.rag_list_sources(source_id uuid default null)
returns setof rag.source
language plpgsql stable security invoker set search_path = ''
as $$
begin
  perform rag.begin_call();
  return query
    select sources.id, sources.org_id, sources.collection_id, sources.kind, sources.address, sources.endpoint,
      sources.region, sources.interval_seconds, sources.max_items, sources.include_noindex, sources.enabled,
      exists (
        select from rag.source_credentials
        where source_credentials.org_id = sources.org_id and source_credentials.source_id = sources.id),
      -- No worker claims a disabled source: if its worker died, its run is over.
      case when sources.enabled and sources.resume_after is not null
          or sources.state = 'running' and sources.due_at > clock_timestamp() then 'running'
        else 'waiting' end,
      sources.started_at, sources.finished_at, sources.due_at, sources.listed, sources.stored, sources.deleted,
      sources.failed, sources.left_out, sources.error_code, sources.error_message, sources.created_at,
      sources.updated_at
    from rag.sources
    where sources.org_id = any (array(select rag.current_org_ids()))
      and (rag_list_sources.source_id is null or sources.id = rag_list_sources.source_id)
    order by sources.created_at, sources.id;
  if not found and source_id is not null then
    raise exception 'There is no such source. Check its id.' using errcode = 'PT404', detail = 'source_not_found';
  end if;
end;
$$;

comment on function public.rag_list_sources is
  'The sources that the caller administers, or the one with the given id; PT404 for another id.';

create function rag.get_source(source_id uuid)
returns rag.source
language sql stable security invoker set search_path = ''
as $$
  -- Without an id: the nil UUID, which none has.
  select * from public.rag_list_sources(coalesce(get_source.source_id, '00000000-0000-0000-0000-000000000000'));
$$;

comment on function rag.get_source is 'The source of that id; PT404 for one that the caller does not administer.';

create function rag.check_source_credentials(kind text, credentials jsonb)
returns void
language plpgsql immutable security invoker set search_path = ''
as $$
begin
  perform rag.check_json('credentials', credentials, 16384);
  if not rag.is_source_credentials(credentials) then
    raise exception 'The credentials need an access_key_id and a secret_access_key, and may have a session_token. '
      'Send these alone.' using errcode = 'PT400', detail = 'invalid_credentials';
  elsif credentials is not null and kind <> 'bucket' then
    raise exception 'Only buckets have credentials. Create the source without them.'
      using errcode = 'PT400', detail = 'invalid_credentials';
  end if;
end;
$$;

comment on function rag.check_source_credentials is
  'Raises PT400 for credentials of a website, and for those that rag.is_source_credentials refuses.';

create function public.rag_create_source(
  collection_id uuid, kind text, address text, interval_seconds integer default 86400, max_items integer default 1000,
  endpoint text default null, region text default null, credentials jsonb default null,
  include_noindex boolean default false
)
returns setof rag.source
language plpgsql volatile security invoker set search_path = ''
as $$
#variable_conflict use_variable
declare
  is_admitted constant boolean := rag.begin_call();
  home constant rag.collections := rag.get_collection(collection_id);
  made uuid;
begin
  perform rag.check_source_credentials(kind, credentials), rag.require_admin(home.org_id);
  if home.deleted_at is not null then
    raise exception 'The collection was deleted. Choose another collection.'
      using errcode = 'PT409', detail = 'collection_deleted';
  end if;
  perform pg_advisory_xact_lock(hashtextextended('rag.sources ' || home.org_id::text, 0));
  if 50 <= (select count(*) from rag.sources where sources.org_id = home.org_id) then
    raise exception 'The org already has 50 sources. Delete one first.'
      using errcode = 'PT400', detail = 'too_many_sources';
  end if;
  insert into rag.sources (org_id, collection_id, owner_id, kind, address, interval_seconds, max_items, endpoint,
    region, include_noindex)
  values (home.org_id, home.id, home.owner_id, kind, address, interval_seconds, max_items, endpoint, region,
    include_noindex)
  returning id into made;
  if credentials is not null then
    insert into rag.source_credentials (org_id, source_id, owner_id, credentials)
    values (home.org_id, made, home.owner_id, credentials);
  end if;
  return query select * from public.rag_list_sources(made);
end;
$$;

comment on function public.rag_create_source is
  'Create a source that fills the collection, for the first time at once. PT403 for a caller who is no admin of the '
  'org, PT400 above fifty sources.';

create function public.rag_update_source(
  source_id uuid, interval_seconds integer default null, max_items integer default null,
  enabled boolean default null, credentials jsonb default null, include_noindex boolean default null
)
returns setof rag.source
language plpgsql volatile security invoker set search_path = ''
as $$
#variable_conflict use_variable
declare
  is_admitted constant boolean := rag.begin_call();
  present constant rag.source := rag.get_source(source_id);
begin
  perform rag.check_source_credentials(present.kind, credentials);
  update rag.sources as renewed
  set interval_seconds = coalesce(rag_update_source.interval_seconds, renewed.interval_seconds),
    max_items = coalesce(rag_update_source.max_items, renewed.max_items),
    enabled = coalesce(rag_update_source.enabled, renewed.enabled),
    include_noindex = coalesce(rag_update_source.include_noindex, renewed.include_noindex), user_id = rag.current_user_id(),
    updated_at = clock_timestamp()
  where renewed.org_id = present.org_id and renewed.id = present.id;
  if present.include_noindex and not include_noindex then
    -- The lease of a running time slice ends, and it stores nothing more. The next run reads unchanged pages too, and
    -- leaves out those that ask not to be indexed.
    update rag.sources as renewed set due_at = clock_timestamp()
    where renewed.org_id = present.org_id and renewed.id = present.id and renewed.state = 'running';
    update rag.source_items as renewed set version = null
    where renewed.org_id = present.org_id and renewed.source_id = present.id;
  end if;
  if credentials is not null then
    if present.has_credentials then
      update rag.source_credentials as renewed set credentials = rag_update_source.credentials
      where renewed.org_id = present.org_id and renewed.source_id = present.id;
    else
      insert into rag.source_credentials (org_id, source_id, owner_id, credentials)
      select sources.org_id, sources.id, sources.owner_id, rag_update_source.credentials
      from rag.sources
      where sources.org_id = present.org_id and sources.id = present.id;
    end if;
  end if;
  return query select * from public.rag_list_sources(source_id);
end;
$$;

comment on function public.rag_update_source is
  'Change a source. Null leaves a field as it is. The address cannot change: another bucket or website is another '
  'source, and credentials never go to another address than the one they were given for.';

create function public.rag_run_source(source_id uuid)
returns setof rag.source
language plpgsql volatile security invoker set search_path = ''
as $$
declare
  is_admitted constant boolean := rag.begin_call();
  present constant rag.source := rag.get_source(source_id);
begin
  if not present.enabled then
    raise exception 'The source is disabled. Enable it first.' using errcode = 'PT409', detail = 'source_disabled';
  end if;
  update rag.sources
  set due_at = least(sources.due_at, clock_timestamp()), user_id = rag.current_user_id()
  where sources.org_id = present.org_id and sources.id = present.id and sources.state = 'waiting';
  return query select * from public.rag_list_sources(source_id);
end;
$$;

comment on function public.rag_run_source is
  'Make a source due now, if it is not running. PT409 for a disabled source.';

create function public.rag_delete_source(source_id uuid, documents boolean default false)
returns void
language plpgsql volatile security invoker set search_path = ''
set statement_timeout = '60s'
as $$
#variable_conflict use_column
declare
  is_admitted constant boolean := rag.begin_write();
  gone constant rag.source := rag.get_source(source_id);
begin
  if rag_delete_source.documents then
    delete from rag.documents
    using rag.source_items
    where source_items.org_id = gone.org_id and source_items.source_id = gone.id and not source_items.is_duplicate
      and documents.org_id = source_items.org_id and documents.id = source_items.document_id;
  end if;
  delete from rag.sources where sources.org_id = gone.org_id and sources.id = gone.id;
end;
$$;

comment on function public.rag_delete_source is
  'Delete a source, with or without its documents; PT404 for an unknown one.';

-- Runs of sources. The worker claims a due source under its own role, which is the only reader of credentials, and ends
-- its time slice. Between these it lists and stores as the source's user, with a token that names the lease. A listing
-- takes as many time slices as it needs, so that sources of all orgs are served.

create function public.rag_claim_sources(max_items integer default 4, lease_seconds integer default 300)
returns table (
  org_id uuid, source_id uuid, user_id uuid, lease uuid, attempts integer, kind text, address text, endpoint text,
  region text, item_limit integer, include_noindex boolean, resume_after text, run_number integer, listed integer,
  gone integer, credentials jsonb, waiting_jobs bigint
)
language plpgsql volatile security invoker set search_path = ''
as $$
#variable_conflict use_column
begin
  perform rag.check_claim(max_items, lease_seconds);
  update rag.sources
  set state = 'waiting', lease = null, attempts = 0, resume_after = null, finished_at = clock_timestamp(),
    due_at = clock_timestamp() + make_interval(secs => sources.interval_seconds), error_code = 'source_failed',
    error_message = 'The worker stopped too often during this source. It is run again after its interval.'
  where sources.state = 'running' and sources.due_at <= clock_timestamp() and sources.attempts >= rag.max_attempts();

  return query
  with due as materialized (
    select distinct on (sources.org_id) sources.org_id, sources.id, sources.due_at,
      (select (orgs.served ->> 'source')::timestamptz from rag.orgs where orgs.id = sources.org_id) as served_at
    from rag.sources
    where sources.enabled and sources.due_at <= clock_timestamp()
      and sources.org_id <> all (array(select rag.paused_org_ids()))
      and not exists (
        select
        from rag.sources as running
        where running.org_id = sources.org_id and running.state = 'running' and running.due_at > clock_timestamp())
    order by sources.org_id, sources.due_at, sources.id
  ), locked as materialized (
    select sources.org_id, sources.id
    from (
      select due.* from due order by due.served_at nulls first, due.due_at, due.id limit 4 * max_items
    ) as due
    cross join lateral (
      select sources.org_id, sources.id
      from rag.sources
      where sources.org_id = due.org_id and sources.id = due.id and sources.due_at <= clock_timestamp()
      for update skip locked
    ) as sources
    limit max_items
  ), claimed as (
    update rag.sources
    set state = 'running', lease = gen_random_uuid(), attempts = sources.attempts + 1,
      due_at = clock_timestamp() + make_interval(secs => lease_seconds),
      run_number = sources.run_number + begun.count, listed = sources.listed * (1 - begun.count),
      stored = sources.stored * (1 - begun.count), deleted = sources.deleted * (1 - begun.count),
      failed = sources.failed * (1 - begun.count), gone = sources.gone * (1 - begun.count),
      left_out = case begun.count when 0 then sources.left_out else '{}' end,
      started_at = case begun.count when 0 then sources.started_at else clock_timestamp() end,
      finished_at = case begun.count when 0 then sources.finished_at end,
      error_code = case begun.count when 0 then sources.error_code end,
      error_message = case begun.count when 0 then sources.error_message end
    from locked
    join rag.sources as present on present.org_id = locked.org_id and present.id = locked.id
    cross join lateral (select case when present.resume_after is null then 1 else 0 end) as begun (count)
    where sources.org_id = locked.org_id and sources.id = locked.id
    returning sources.*
  ), noted as (
    update rag.orgs
    set served = orgs.served || jsonb_build_object('source', clock_timestamp())
    from (
      select orgs.id from rag.orgs where orgs.id in (select claimed.org_id from claimed) for no key update skip locked
    ) as one
    where orgs.id = one.id
  )
  select claimed.org_id, claimed.id, claimed.user_id, claimed.lease, claimed.attempts, claimed.kind, claimed.address,
    claimed.endpoint, claimed.region, claimed.max_items, claimed.include_noindex, claimed.resume_after,
    claimed.run_number, claimed.listed, claimed.gone,
    coalesce(source_credentials.credentials, rag.secret_in_vault(source_credentials.credentials_id)::jsonb), (
      select count(*)
      from (
        select from rag.jobs
        where jobs.kind = 'ingestion' and jobs.org_id = claimed.org_id and jobs.state in ('waiting', 'running')
        limit 1000
      ) as job)
  from claimed
  left join rag.source_credentials
    on source_credentials.org_id = claimed.org_id and source_credentials.source_id = claimed.id;
end;
$$;

comment on function public.rag_claim_sources is
  'Lease due sources, for the worker, with their credentials: one of each org that has none running, first of the org '
  'that was served least recently. A '
  'source without resume_after begins a new listing. A source whose lease has expired is claimed again and '
  'continues after resume_after; after rag.max_attempts() claims without an end its listing fails. waiting_jobs: '
  'unfinished ingestion jobs of the org, at most 1,000.';

create function public.rag_end_source(
  org_id uuid, source_id uuid, lease uuid, counts jsonb, resume_after text default null, error_code text default null,
  error_message text default null, retry_seconds integer default null
)
returns boolean
language plpgsql volatile security invoker set search_path = ''
as $$
#variable_conflict use_column
begin
  -- Raises PT401 for a token of another issuer.
  perform rag.current_user_id();
  update rag.sources as ended
  set state = 'waiting', lease = null, attempts = case when counts ? 'refused' then ended.attempts else 0 end,
    resume_after = rag_end_source.resume_after,
    listed = ended.listed + coalesce((counts ->> 'listed')::integer, 0),
    stored = ended.stored + coalesce((counts ->> 'stored')::integer, 0),
    deleted = ended.deleted + coalesce((counts ->> 'deleted')::integer, 0),
    failed = ended.failed + coalesce((counts ->> 'failed')::integer, 0),
    gone = ended.gone + coalesce((counts ->> 'gone')::integer, 0),
    left_out = (
      select coalesce(jsonb_object_agg(reasons.name, reasons.count), '{}')
      from (
        select one.key as name, sum(one.value::integer) as count
        from (
          select * from jsonb_each_text(ended.left_out)
          union all
          select * from jsonb_each_text(coalesce(counts -> 'left_out', '{}'))
        ) as one
        group by one.key
      ) as reasons),
    error_code = coalesce(rag_end_source.error_code, ended.error_code),
    error_message = coalesce(rag_end_source.error_message, ended.error_message),
    finished_at = case when rag_end_source.resume_after is null then clock_timestamp() end,
    due_at = clock_timestamp() + make_interval(secs => coalesce(retry_seconds, ended.interval_seconds))
  where ended.org_id = rag_end_source.org_id and ended.id = source_id and ended.lease = rag_end_source.lease
    and ended.due_at > clock_timestamp();
  return found;
end;
$$;

comment on function public.rag_end_source is
  'End the time slice of a source. resume_after: the item after which the next one continues; null: the listing has '
  'ended. counts: those of this time slice; refused, if its only item asked to wait. retry_seconds: until the next one; null: the source''s interval. False for a '
  'worker whose lease has ended, which changes nothing.';

create function rag.lock_source()
returns rag.sources
language plpgsql volatile security invoker set search_path = ''
as $$
declare
  source rag.sources;
begin
  select sources.* into source
  from rag.sources
  where sources.org_id = any (array(select rag.current_org_ids())) and sources.lease = (select rag.lease_of_token())
    and sources.due_at > clock_timestamp()
  for update;
  if not found then
    raise exception 'The lease has ended. Claim the item again.' using errcode = 'PT409', detail = 'lease_lost';
  end if;
  return source;
end;
$$;

comment on function rag.lock_source is 'The source of the token''s lease, locked; PT409 when the lease has ended.';

create function public.rag_list_source_items(items jsonb, lease_seconds integer default 300)
returns table (item text, version text)
language plpgsql volatile security invoker set search_path = ''
as $$
#variable_conflict use_column
declare
  is_admitted constant boolean := rag.begin_call();
  source constant rag.sources := rag.lock_source();
begin
  perform rag.check_json('items', items, 10000000);
  update rag.sources set due_at = clock_timestamp() + make_interval(secs => lease_seconds)
  where sources.org_id = source.org_id and sources.id = source.id;
  return query
  with listed as materialized (
    select * from jsonb_to_recordset(items) as fields (item text, version text)
  ), seen as (
    update rag.source_items
    set run_number = source.run_number
    from listed
    where source_items.org_id = source.org_id and source_items.source_id = source.id and source_items.item = listed.item
    returning source_items.item, source_items.version
  )
  select listed.item, seen.version
  from listed
  left join seen on seen.item = listed.item
  where listed.version is null or seen.version is distinct from listed.version;
end;
$$;

comment on function public.rag_list_source_items is
  'Note items of the source as listed, and return those to fetch, with the stored version: new items, and items '
  'without a version or with another version than the stored one. items: objects with item and version. It extends '
  'the lease.';

create function public.rag_put_source_item(
  item text, version text default null, document jsonb default null, lease_seconds integer default 300
)
returns text
language plpgsql volatile security invoker set search_path = ''
set statement_timeout = '60s'
as $$
#variable_conflict use_column
declare
  is_admitted constant boolean := rag.begin_write();
  source constant rag.sources := rag.lock_source();
  present rag.source_items;
  code text;
  twin text;
  stored uuid;
  result text := 'unchanged';
begin
  select * into present
  from rag.source_items
  where source_items.org_id = source.org_id and source_items.source_id = source.id
    and source_items.item = rag_put_source_item.item;
  if rag_put_source_item.document is null then
    update rag.source_items
    set run_number = source.run_number - 1
    where source_items.org_id = source.org_id and source_items.source_id = source.id
      and source_items.item = rag_put_source_item.item;
    return 'missing';
  end if;
  select originals.document_id into stored
  from rag.originals
  where originals.org_id = source.org_id and originals.document_id = present.document_id
    and originals.content_hash = encode(sha256(decode(rag_put_source_item.document ->> 'bytes', 'base64')), 'hex');
  if stored is null then
    begin
      stored := (
        select added.id
        from public.rag_add_document(source.collection_id, rag_put_source_item.document || jsonb_build_object(
          'external_id', case when length(rag_put_source_item.item) <= 500 then rag_put_source_item.item
            else encode(sha256(convert_to(rag_put_source_item.item, 'UTF8')), 'hex') end)) as added);
      result := 'stored';
    exception when sqlstate 'PT409' then
      get stacked diagnostics code = pg_exception_detail, twin = pg_exception_hint;
      if code <> 'duplicate_document' or coalesce(twin, '') = '' then
        raise;
      end if;
      stored := twin::uuid;
      result := 'duplicate';
      -- The content that the item had before.
      delete from rag.documents
      where documents.org_id = source.org_id and documents.id = present.document_id and not present.is_duplicate;
    end;
  end if;
  insert into rag.source_items as renewed (org_id, source_id, owner_id, item, version, document_id, is_duplicate,
    run_number)
  values (source.org_id, source.id, source.owner_id, rag_put_source_item.item, rag_put_source_item.version, stored,
    result = 'duplicate', source.run_number)
  on conflict (org_id, source_id, item) do update
  set version = excluded.version, document_id = excluded.document_id, run_number = excluded.run_number,
    is_duplicate = case result when 'unchanged' then renewed.is_duplicate else excluded.is_duplicate end;
  update rag.sources set due_at = clock_timestamp() + make_interval(secs => lease_seconds)
  where sources.org_id = source.org_id and sources.id = source.id;
  return result;
end;
$$;

comment on function public.rag_put_source_item is
  'Store an item of the source: as rag_add_document, unless its document has this content already (unchanged) or '
  'another document of the collection has it (duplicate). A null document: the item is listed and has no content '
  '(missing); rag_delete_missing_items deletes its document. It extends the lease.';

create function public.rag_delete_missing_items(max_items integer, lease_seconds integer default 300)
returns table (deleted bigint, orphaned bigint)
language plpgsql volatile security invoker set search_path = ''
set statement_timeout = '60s'
as $$
#variable_conflict use_column
declare
  is_admitted constant boolean := rag.begin_write();
  source constant rag.sources := rag.lock_source();
begin
  perform rag.check_claim(max_items, lease_seconds);
  update rag.sources set due_at = clock_timestamp() + make_interval(secs => lease_seconds)
  where sources.org_id = source.org_id and sources.id = source.id;
  return query
  with missing as materialized (
    select source_items.item, source_items.document_id, source_items.is_duplicate
    from rag.source_items
    where source_items.org_id = source.org_id and source_items.source_id = source.id
      and source_items.run_number < source.run_number
    limit max_items
  ), orphans as materialized (
    select source_items.item
    from missing
    join rag.source_items on source_items.org_id = source.org_id and source_items.source_id = source.id
      and source_items.document_id = missing.document_id and source_items.run_number = source.run_number
    where not missing.is_duplicate
  ), removed as (
    delete from rag.source_items
    using missing
    where source_items.org_id = source.org_id and source_items.source_id = source.id and source_items.item = missing.item
    returning 1
  ), gone as (
    delete from rag.documents
    using missing
    where documents.org_id = source.org_id and documents.id = missing.document_id and not missing.is_duplicate
    returning 1
  )
  select (select count(*) from removed), (select count(*) from orphans) from (select count(*) from gone) as counted;
end;
$$;

comment on function public.rag_delete_missing_items is
  'Delete documents of items that the running listing, which must be complete, did not have: at most max_items. '
  'orphaned: listed items of the same content, which have no document now and need another listing.';

-- Calibration of confidence by embedding model, or by embedding model and reranker (rag.settings). The deployer writes
-- it, or else the worker, fitted to the questions that the product ships; the functions read it once a minute.

create function public.rag_get_calibration(model text)
returns jsonb
language plpgsql stable security invoker set search_path = ''
as $$
begin
  perform rag.begin_call(), rag.require_scope('retrievals:read', 'chat:read');
  return (
    select jsonb_build_object('slope', fit -> 'slope', 'intercept', fit -> 'intercept', 'high', fit -> 'high',
      'medium', fit -> 'medium', 'ceiling_high', fit -> 'ceiling_high', 'ceiling_medium', fit -> 'ceiling_medium',
      'relevance', fit -> 'relevance', 'coverage_weight', fit -> 'coverage_weight', 'source', fit -> 'source',
      'other_languages', fit -> 'other_languages')
    from rag.settings
    cross join lateral (select settings.calibrations -> rag_get_calibration.model) as calibration (fit)
    where fit is not null);
end;
$$;

comment on function public.rag_get_calibration is
  'The deployment''s calibration of confidence for an embedding model, or "MODEL + RERANKER", or null.';

create policy "the worker writes calibrations" on rag.settings
  for update to rag_worker using (true) with check (true);

create function rag.needs_calibration(settings rag.settings, model text, question_set text)
returns boolean
language sql immutable security invoker set search_path = ''
as $$
  select model = any (settings.embedding_model || settings.other_embedding_models)
    and (not settings.calibrations ? model or coalesce(
      settings.calibrations -> model ->> 'source' = 'shipped_questions'
        and settings.calibrations -> model ->> 'question_set' <> question_set, false))
$$;

comment on function rag.needs_calibration is
  'Whether the model is one of the deployment''s and has no calibration, or one that is fitted to another set of shipped '
  'questions. The deployer''s own calibrations stay.';

create function public.rag_claim_calibration(model text, question_set text, lease_seconds integer default 1800)
returns boolean
language plpgsql volatile security invoker set search_path = ''
as $$
begin
  perform rag.check_claim(1, lease_seconds);
  update rag.settings
  set calibration_claims = calibration_claims || jsonb_build_object(rag_claim_calibration.model, jsonb_build_object(
    'question_set', question_set, 'until', clock_timestamp() + interval '1 second' * lease_seconds))
  where rag.needs_calibration(settings, rag_claim_calibration.model, question_set)
    and not coalesce(
      calibration_claims -> rag_claim_calibration.model ->> 'question_set' = question_set
        and (calibration_claims -> rag_claim_calibration.model ->> 'until')::timestamptz >= clock_timestamp(), false);
  return found;
end;
$$;

comment on function public.rag_claim_calibration is
  'For the worker: whether the caller is the one that fits a calibration of the model to the shipped questions. No other caller '
  'is, for as long as the lease.';

create function public.rag_store_calibration(model text, question_set text, calibration jsonb)
returns boolean
language plpgsql volatile security invoker set search_path = ''
as $$
begin
  perform rag.current_user_id();
  if (octet_length(question_set) <= 100 and (calibration is null or octet_length(calibration::text) <= 10000
    and rag.is_calibrations(jsonb_build_object(coalesce(rag_store_calibration.model, ''), calibration)))) is not true
  then
    raise exception 'calibration must be that of shipped questions' using errcode = 'PT400', detail = 'invalid_calibration';
  end if;
  if calibration is null then
    update rag.settings
    set calibration_claims = calibration_claims || jsonb_build_object(rag_store_calibration.model,
      jsonb_build_object('question_set', question_set, 'until', clock_timestamp() + interval '7 days'))
    where rag.needs_calibration(settings, rag_store_calibration.model, question_set);
  else
    update rag.settings
    set calibrations = calibrations || jsonb_build_object(rag_store_calibration.model, calibration
        || jsonb_build_object('source', 'shipped_questions', 'question_set', question_set)),
      calibration_claims = calibration_claims - rag_store_calibration.model
    where rag.needs_calibration(settings, rag_store_calibration.model, question_set);
  end if;
  return found;
end;
$$;

comment on function public.rag_store_calibration is
  'For the worker: store a calibration of the model, fitted to the shipped questions; null, if none fits, so that no worker tries '
  'again with these questions for a week. Returns whether it was stored.';

-- Filters of metadata: for each key the value that the document's must equal, or operators, as in
-- {"year": {"$gte": 2020}}. The names are MongoDB's, which Pinecone, Chroma, vecs and LangChain use too; the dollar
-- sign tells operators from a value that is an object. Each operator becomes look-ups in an index of rag.facets.

create type rag.facet_condition as (
  number integer, excludes boolean, facet uuid, metadata_key uuid, lowest text, below text
);

comment on type rag.facet_condition is
  'A facet, or a key of the metadata with the range of its sort key, from `lowest` to before `below`. A document needs '
  'one of each number, and none that excludes.';

create function rag.metadata_operations(metadata jsonb)
returns table (key text, operator text, operand jsonb)
language plpgsql immutable security invoker set search_path = ''
as $$
declare
  operators integer := 0;
  fault text;
  entry record;
begin
  for entry in select each.key, each.value from jsonb_each(metadata) as each loop
    key := entry.key;
    -- Strict: an array is not searched for objects. Silent: null for another type.
    if jsonb_path_exists(entry.value, 'strict $.keyvalue() ? (@.key starts with "$")', '{}', true) is not true then
      if starts_with(key, '$') then
        raise exception 'filters.metadata: % stands where a key of the metadata is expected', left(key, 100)
          using errcode = 'PT400', detail = 'invalid_filters';
      end if;
      operator := '$eq';
      operand := entry.value;
      return next;
      continue;
    end if;
    for operator, operand in select each.key, each.value from jsonb_each(entry.value) as each loop
      operators := operators + 1;
      fault := case when operators > 100 then 'a filter must have at most 100 operators' else
        -- Null without a fault.
        left(key, 100) || ' ' || left(operator, 100) || ' ' || case
          when operator not in ('$eq', '$ne', '$in', '$nin', '$gt', '$gte', '$lt', '$lte', '$exists')
            then 'is no operator: use $eq, $ne, $in, $nin, $gt, $gte, $lt, $lte or $exists'
          when operator = '$ne' and jsonb_typeof(operand) in ('array', 'object')
            then 'takes a string, a number, true, false or null'
          when operator in ('$in', '$nin') and case jsonb_typeof(operand)
              when 'array' then jsonb_array_length(operand) not between 1 and 100
                or jsonb_path_exists(operand, 'strict $[*] ? (@.type() == "array" || @.type() == "object")')
              else true
            end
            then 'takes a list of 1 to 100 strings, numbers, true, false or null'
          when operator in ('$gt', '$gte', '$lt', '$lte') and case jsonb_typeof(operand)
              when 'number' then false
              when 'string' then length(operand #>> '{}') > 200
              else true
            end
            then 'takes a number, or a string of at most 200 characters'
          when operator = '$exists' and jsonb_typeof(operand) <> 'boolean' then 'takes true or false'
        end
      end;
      if fault is not null then
        raise exception 'filters.metadata: %', fault using errcode = 'PT400', detail = 'invalid_filters';
      end if;
      return next;
    end loop;
  end loop;
end;
$$;

comment on function rag.metadata_operations is
  'The filter as operators, of which all must hold; a plain value is $eq. An object of which a key begins with $ holds '
  'operators: $eq (any value), $ne, $in, $nin (strings, numbers, true, false, null), $gt, $gte, $lt, $lte (a string or '
  'a number, compared with the same type alone), $exists (true or false). $ne, $nin and $exists false also find '
  'documents without the key. Raises PT400 for an unknown operator, a wrong operand, more than 100 operators, and a '
  'plain value of a key that begins with $ ($and, $or).';

create function rag.metadata_conditions(metadata jsonb)
returns setof rag.facet_condition
language sql immutable security invoker set search_path = ''
as $$
  with operation as (
    select row_number() over () as number, operations.*, rag.facet_hash('metadata key', to_jsonb(key)) as metadata_key,
      rag.sort_key(operand) as bound
    from rag.metadata_operations(metadata) as operations
  )
  select number, operator in ('$ne', '$nin'), rag.facet_hash('metadata.' || key, value), null::uuid, null, null
  from operation
  cross join jsonb_array_elements(
    case when operator in ('$in', '$nin') then operand else jsonb_build_array(operand) end) as value
  where operator in ('$eq', '$ne', '$in', '$nin')
  union all
  select number, true, null, metadata_key, '', '~'
  from operation
  where operator = '$exists' and operand = 'false'
  union all
  -- The operators of a key are one range. No sort key lies between a bound and the bound with the lowest character.
  select min(number), false, null, metadata_key,
    max(case operator when '$gte' then bound when '$gt' then bound || E'\x01' when '$exists' then ''
      else left(bound, 1) end collate "C"),
    min(case operator when '$lt' then bound when '$lte' then bound || E'\x01' when '$exists' then '~'
      else chr(ascii(bound) + 1) end collate "C")
  from operation
  where operator in ('$gt', '$gte', '$lt', '$lte') or operator = '$exists' and operand = 'true'
  group by metadata_key;
$$;

comment on function rag.metadata_conditions is
  'The conditions of a filter. Raises the errors of rag.metadata_operations.';

-- Filters of a search as the caller sends them, and their unknown keys.

create type rag.filters as (
  source_type text, lang text, org_id uuid, date_from timestamptz, date_to timestamptz, model text,
  source_types text[], collection_id uuid, collection_ids uuid[], origins text[], authors text[],
  states text[], labels text[], metadata jsonb, collection text, document_type text
);

comment on type rag.filters is
  'The filters of a request. Dates are inclusive and mean the document''s own date. lang "fr" finds fr-CA too. A '
  'document needs one value of a list; an empty list is no filter. metadata: values that the document''s must '
  'equal, or operators (rag.metadata_operations), of which all must hold. collection is the name of one of the '
  'caller''s collections. model is the deployment''s by default. document_type is the type that the uploader gave, '
  'or that was detected.';

create function rag.ignored_filters(filters jsonb, known jsonb)
returns text[]
language plpgsql stable security invoker set search_path = ''
as $$
declare
  ignored constant text[] := array(
    select regexp_replace(left(key, 100), '[^A-Za-z0-9_.-]', '?', 'g')
    from jsonb_object_keys(filters) as key
    where not known ? key
    order by key
    limit 20);
begin
  if ignored = '{}' then
    return null;
  end if;
  perform set_config('response.headers', jsonb_build_array(
    jsonb_build_object('X-Rag-Ignored-Filters', array_to_string(ignored, ', ')),
    jsonb_build_object('Access-Control-Expose-Headers', 'X-Rag-Ignored-Filters'))::text, true);
  return ignored;
end;
$$;

comment on function rag.ignored_filters is
  'The unknown keys of the filters; null if there are none. A response names them, because a misspelt key widens a '
  'search. At most twenty, with ? for each character that a header may not have: they are in a header as well, '
  'since an empty result has no row.';

create function rag.find_by_facets(org_ids uuid[], filters rag.filters,
  out document_ids uuid[], out excluded_document_ids uuid[])
language plpgsql stable security invoker set search_path = ''
as $$
declare
  conditions rag.facet_condition[];
  required integer;
begin
  if num_nonnulls(filters.origins, filters.authors, filters.states, filters.labels, filters.metadata,
    filters.document_type) = 0 then
    return;
  end if;
  -- A null in a list is no document's.
  conditions := array(
    select (requested.number, false, rag.facet_hash(requested.kind, coalesce(requested.value, 'null')), null, null,
      null)::rag.facet_condition
    from (
      select -1, 'origin', to_jsonb(value) from unnest(filters.origins) as value
      union all select -2, 'author', to_jsonb(value) from unnest(filters.authors) as value
      union all select -3, 'state', to_jsonb(value) from unnest(filters.states) as value
      union all select -4, 'label', to_jsonb(value) from unnest(filters.labels) as value
      union all select -5, 'document_type', to_jsonb(filters.document_type) where filters.document_type is not null
    ) as requested (number, kind, value)
    union all
    select condition from rag.metadata_conditions(nullif(filters.metadata, 'null')) as condition);
  if conditions = '{}' then
    return;
  end if;
  required := (select count(distinct number) filter (where not excludes) from unnest(conditions));

  select array_agg(document_id) filter (where satisfied = required and not is_excluded),
      array_agg(document_id) filter (where is_excluded)
    into document_ids, excluded_document_ids
  from (
    select match.document_id, bool_or(condition.excludes) as is_excluded, count(distinct condition.number) as satisfied
    from unnest(conditions) as condition
    cross join unnest(org_ids) as org (id)
    -- One look-up each, which the planner cannot turn into a walk through the org.
    cross join lateral (
      select facets.document_id
      from rag.facets
      where facets.org_id = org.id and facets.facet = condition.facet
      union all
      select facets.document_id
      from rag.facets
      where facets.org_id = org.id and facets.metadata_key = condition.metadata_key
        and facets.sort_key >= condition.lowest collate "C" and facets.sort_key < condition.below collate "C"
      offset 0
    ) as match
    group by org.id, match.document_id
  ) as documents;
  if required > 0 then
    document_ids := coalesce(document_ids, '{}');
    excluded_document_ids := null;
  else
    document_ids := null;
  end if;
end;
$$;

comment on function rag.find_by_facets is
  'document_ids: the documents that satisfy the filters of facets; null if no filter requires a facet. In that case '
  'excluded_document_ids are the documents with a facet that a filter excludes.';

-- Scope of a search: its filters, resolved once and used by every kind of search. Conditions are text that the match
-- functions execute with the scope as a parameter: the planner then knows the filters, and each condition can use an
-- index under row security.

create type rag.search_scope as (
  org_ids uuid[], model text, collection_ids uuid[], source_types text[], lang text,
  date_from timestamptz, date_to timestamptz, document_ids uuid[], excluded_document_ids uuid[],
  without_document uuid, without_chunk uuid, ignored_filters text[]
);

comment on type rag.search_scope is
  'Resolved filters; null fields do not filter. document_ids, excluded_document_ids: as rag.find_by_facets '
  'returns them.';

create function rag.resolve_filters(filters jsonb, model text default null)
returns rag.search_scope
language plpgsql stable security invoker set search_path = ''
as $$
declare
  requested rag.filters;
  scope rag.search_scope;
  settings rag.settings;
begin
  perform rag.require_scope('retrievals:read', 'chat:read');
  -- Somewhat more than the largest body of a search.
  perform rag.check_json('filters', filters, 300000);
  if jsonb_typeof(coalesce(filters, '{}')) <> 'object'
    or jsonb_typeof(coalesce(nullif(filters -> 'metadata', 'null'), '{}')) <> 'object' then
    raise exception 'filters must be an object' using errcode = 'PT400', detail = 'invalid_filters';
  end if;
  requested := jsonb_populate_record(null::rag.filters, coalesce(filters, '{}'));
  if greatest(cardinality(requested.source_types), cardinality(requested.collection_ids), cardinality(requested.origins),
    cardinality(requested.authors), cardinality(requested.states), cardinality(requested.labels)) > 100
  then
    raise exception 'A list in filters must have at most 100 values' using errcode = 'PT400', detail = 'invalid_filters';
  end if;
  scope.ignored_filters := rag.ignored_filters(filters, to_jsonb(requested));

  scope.org_ids := array(
    select ids.id from rag.current_org_ids() as ids (id)
    where requested.org_id is null or ids.id = requested.org_id);
  select * into settings from rag.settings;
  scope.model := coalesce(resolve_filters.model, requested.model, settings.embedding_model);
  -- While the deployment changes its model, the functions search once with each model.
  if settings.next_embedding_model is not null then
    scope.org_ids := array(
      select org.id from unnest(scope.org_ids) as org (id)
      where exists (
        select from rag.chunks where chunks.org_id = org.id and chunks.embedding_model = scope.model));
  end if;
  scope.collection_ids := nullif(requested.collection_ids, '{}');
  if requested.collection_id is not null then
    scope.collection_ids := array[requested.collection_id];
  end if;
  if requested.collection is not null then
    scope.collection_ids := array[(rag.require_collection(requested.collection)).id];
  end if;
  -- Row security would keep a bound key in its collection, but not find that by an index.
  if rag.bound_collection() is not null then
    scope.collection_ids := array(
      select rag.bound_collection()
      where scope.collection_ids is null or rag.bound_collection() = any (scope.collection_ids));
  end if;
  scope.source_types := nullif(requested.source_types, '{}');
  if requested.source_type is not null then
    scope.source_types := array[requested.source_type];
  end if;
  scope.lang := lower(requested.lang);
  scope.date_from := requested.date_from;
  scope.date_to := requested.date_to;
  select found.document_ids, found.excluded_document_ids into scope.document_ids, scope.excluded_document_ids
  from rag.find_by_facets(scope.org_ids, requested) as found;
  return scope;
end;
$$;

comment on function rag.resolve_filters is
  'The scope of a search. model: in place of that of the filters. Raises PT400 for filters that are no object '
  'and for lists of more than 100 values, PT403 for a key without a scope that reads, and for a collection by '
  'name what rag.require_collection raises.';

create function rag.has_no_filters(scope rag.search_scope)
returns boolean
language sql immutable security invoker set search_path = ''
as $$
  select (scope.collection_ids, scope.source_types, scope.lang, scope.date_from, scope.date_to,
    scope.document_ids, scope.excluded_document_ids, scope.without_document, scope.without_chunk) is null;
$$;

comment on function rag.has_no_filters is 'Whether a scope has nothing but orgs and a model.';

create function rag.has_one_source_type(scope rag.search_scope)
returns boolean
language sql immutable security invoker set search_path = ''
as $$
  select cardinality(scope.source_types) = 1
    and (scope.collection_ids, scope.lang, scope.date_from, scope.date_to, scope.document_ids,
      scope.excluded_document_ids, scope.without_document, scope.without_chunk) is null;
$$;

comment on function rag.has_one_source_type is 'Whether a scope filters by one source type and nothing else.';

create function rag.filters_documents(scope rag.search_scope)
returns boolean
language sql immutable security invoker set search_path = ''
as $$
  select not (scope.source_types, scope.lang, scope.date_from, scope.date_to, scope.document_ids,
    scope.excluded_document_ids, scope.without_document) is null;
$$;

comment on function rag.filters_documents is
  'Whether a scope filters by fields that documents and chunks have, and segments of the keyword index do not.';

create function rag.where_clause(scope rag.search_scope, document_id text)
returns text
language sql immutable security invoker set search_path = ''
as $$
  select concat_ws(' and ',
    'org_id = any (($1).org_ids)',
    case when scope.collection_ids is not null then 'collection_id = any (($1).collection_ids)' end,
    case when scope.source_types is not null then 'source_type = any (($1).source_types)' end,
    case when scope.lang is not null
      then '(lower(lang) = ($1).lang or starts_with(lower(lang), ($1).lang || ''-''))' end,
    case when scope.date_from is not null then 'occurred_at >= ($1).date_from' end,
    case when scope.date_to is not null then 'occurred_at <= ($1).date_to' end,
    case when scope.document_ids is not null then format('%I = any (($1).document_ids)', document_id) end,
    case when scope.excluded_document_ids is not null
      then format('%I <> all (($1).excluded_document_ids)', document_id) end,
    case when scope.without_document is not null then format('%I <> ($1).without_document', document_id) end);
$$;

comment on function rag.where_clause is
  'The conditions of a scope, $1, on documents or on their chunks; document_id is the column with the document''s '
  'id.';

create function rag.chunk_where_clause(scope rag.search_scope)
returns text
language sql immutable security invoker set search_path = ''
as $$
  select concat_ws(' and ', rag.where_clause(scope, 'document_id'), 'embedding_model = ($1).model',
    case when scope.without_chunk is not null then 'id <> ($1).without_chunk' end);
$$;

comment on function rag.chunk_where_clause is 'The conditions of a scope, $1, on chunks.';

-- Arguments that all searches share: the query vector, the number of results and the preferred source types.

create function rag.check_top_k(top_k integer)
returns void
language plpgsql immutable security invoker set search_path = ''
as $$
begin
  if top_k is null or top_k not between 1 and 300 then
    raise exception 'top_k must be between 1 and 300' using errcode = 'PT400', detail = 'invalid_top_k';
  end if;
end;
$$;

comment on function rag.check_top_k is 'Raises PT400 for an invalid top_k.';

create function rag.check_prefer(prefer text[])
returns void
language plpgsql immutable security invoker set search_path = ''
as $$
begin
  if cardinality(prefer) > 100 then
    raise exception 'prefer must have at most 100 source types' using errcode = 'PT400', detail = 'invalid_prefer';
  end if;
end;
$$;

comment on function rag.check_prefer is
  'Raises PT400 for too many preferred source types: each candidate is compared with each.';

create function rag.to_halfvec(query_vector extensions.vector, model text)
returns extensions.halfvec
language plpgsql stable security invoker set search_path = ''
as $$
declare
  query_embedding constant extensions.halfvec := rag.fit_dimensions(
    query_vector::extensions.halfvec, rag.dimensions_of(model), 'query_vector');
begin
  -- The half-precision vector is tested, since a tiny vector may have become zero.
  if extensions.l2_norm(query_embedding) = 0 then
    raise exception 'query_vector must not be all zeros' using errcode = 'PT400', detail = 'zero_vector';
  end if;
  return query_embedding;
end;
$$;

comment on function rag.to_halfvec is
  'The query vector in half precision and with the model''s dimensions, as it is compared. Raises PT400 for a wrong '
  'number of dimensions and for a zero vector.';

-- Candidates and result rows that all searches share: chunks with their documents' fields, best first.

create type rag.candidate as (
  org_id uuid, document_id uuid, ordinal integer, chunk_id uuid, content text, span_start integer,
  span_end integer, similarity double precision, word_score double precision, score double precision
);

comment on type rag.candidate is
  'A chunk during a search, with its text, so that it is read once. Scores are 0 to 1; null if not computed.';

create function rag.candidate(
  org_id uuid, document_id uuid, ordinal integer, chunk_id uuid default null, content text default null,
  span_start integer default null, span_end integer default null, similarity double precision default null,
  word_score double precision default null, score double precision default null
)
returns rag.candidate
language plpgsql immutable security invoker set search_path = ''
as $$
begin
  return (org_id, document_id, ordinal, chunk_id, content, span_start, span_end, similarity, word_score, score);
end;
$$;

comment on function rag.candidate is
  'A candidate from named fields. In PL/pgSQL, because Postgres inlines no SQL function that sets a search_path.';

create type rag.result_row as (
  chunk_id uuid, document_id uuid, org_id uuid, ordinal integer, content text,
  span_start integer, span_end integer, similarity double precision, word_score double precision,
  score double precision, collection_id uuid, source_type text, title text, uri text, lang text,
  occurred_at timestamptz, origin text, author text, state text, labels text[], metadata jsonb,
  exact boolean, considered bigint, external_id text, location jsonb, vector_ms real, lexical_ms real,
  filename text, owner_id uuid, created_by uuid, ignored_filters text[], collection_name text
);

comment on type rag.result_row is
  'A chunk as searches return it. external_id: the caller''s name of the document; filename: the name of its file. '
  'location: the chunk''s location in the document, as far as known (page_number, page_end, section). exact: whether '
  'all vectors of the scope were compared; null if none were, in a search by keywords alone. considered: the number '
  'of compared vectors; with the index, the number that it returned. vector_ms, lexical_ms: the duration of vector '
  'search, and of keyword search with fusion; null if it did not run. ignored_filters: the unknown keys of the '
  'filters, the same in each row; null if there are none.';

create function rag.to_rows(candidates rag.candidate[], exact boolean, considered bigint, vector_ms real,
  lexical_ms real, ignored_filters text[] default null)
returns setof rag.result_row
language plpgsql stable security invoker set search_path = ''
as $$
begin
  return query
  select candidate.chunk_id, candidate.document_id, candidate.org_id, candidate.ordinal, candidate.content,
    candidate.span_start, candidate.span_end, candidate.similarity, candidate.word_score, candidate.score,
    documents.collection_id, documents.source_type, documents.title, documents.uri, documents.lang,
    documents.occurred_at, documents.origin, documents.author, documents.state, documents.labels, documents.metadata, to_rows.exact, to_rows.considered,
    documents.external_id, located.location, to_rows.vector_ms, to_rows.lexical_ms, documents.filename,
    documents.owner_id, documents.created_by, to_rows.ignored_filters, (
      select collections.name from rag.collections
      where collections.org_id = documents.org_id and collections.id = documents.collection_id)
  from unnest(candidates) with ordinality as candidate (org_id, document_id, ordinal, chunk_id, content, span_start,
    span_end, similarity, word_score, score, position)
  join rag.documents on documents.org_id = candidate.org_id and documents.id = candidate.document_id
  -- With offset 0 the planner reads each chunk by its key.
  cross join lateral (
    select chunks.metadata as location
    from rag.chunks
    where chunks.org_id = candidate.org_id and chunks.id = candidate.chunk_id
    offset 0
  ) as located
  order by candidate.position;
end;
$$;

comment on function rag.to_rows is 'Candidates as result rows, in their order.';

create function rag.milliseconds_since(started timestamptz)
returns real
language sql volatile security invoker set search_path = ''
as $$
  select (1000 * extract(epoch from clock_timestamp() - started))::real;
$$;

comment on function rag.milliseconds_since is 'Milliseconds since a time, for the durations in results.';

-- Vector search: the chunks nearest to a query vector, among those that the caller may see.
--
-- An HNSW index with a row-security filter behind it returns too few rows to a small org: the index returns the nearest
-- candidates of all orgs, and the filter removes those of others. So the search first estimates how many rows the
-- caller's orgs and filters leave. It compares few rows exactly. For many rows it scans the index iteratively, fetches
-- more rows than required and orders them exactly. If the index returns too few, it compares all rows. In each case
-- the caller gets min(top_k, visible rows) rows.
--
-- Row security applies in every branch. The org ids are resolved first and named in each query, so that each scan reads
-- the rows of these orgs only.

create function rag.count_chunks(scope rag.search_scope)
returns bigint
language plpgsql stable security invoker set search_path = ''
as $$
begin
  return (
    select coalesce(sum(totals.chunks), 0)
    from rag.index_totals(scope.org_ids, scope.collection_ids) as totals
    where totals.embedding_model = scope.model);
end;
$$;

comment on function rag.count_chunks is
  'The number of chunks of its model in a scope that filters by org and collection only, by the keyword index.';

create function rag.exact_scan(query_embedding extensions.halfvec, scope rag.search_scope, row_limit integer)
returns rag.candidate[]
language plpgsql stable security invoker set search_path = ''
-- A cached plan ignores the org: with few orgs it expects a large part of the table, and would read all of it.
set enable_seqscan = off
as $$
begin
  return (
    select array_agg(rag.candidate(org_id => org_id, document_id => document_id, ordinal => ordinal, chunk_id => id,
      content => content, span_start => span_start, span_end => span_end,
      similarity => greatest(0, least(1, 1 - distance)), score => greatest(0, least(1, 1 - distance)))
      order by distance, id)
    from (
      -- Org by org: the plan for one id reads the org's rows faster than that for an array.
      select found.*
      from unnest(scope.org_ids) as orgs (one_org)
      cross join lateral (
        -- "+ 0" keeps the HNSW index out of the scan.
        select org_id, document_id, ordinal, id, content, span_start, span_end,
          (embedding operator(extensions.<=>) query_embedding) + 0 as distance
        from rag.chunks
        where org_id = one_org and embedding_model = scope.model
        offset 0
      ) as found
      order by distance, id
      limit row_limit
    ) as nearest);
end;
$$;

comment on function rag.exact_scan is
  'The nearest chunks of a scope without filters, by comparing all. Planning takes longer than scanning a small '
  'tenant, so this plan is cached.';

create function rag.filtered_scan(query_embedding extensions.halfvec, scope rag.search_scope, row_limit integer,
  bound bigint, out candidates rag.candidate[], out considered bigint)
language plpgsql stable security invoker set search_path = ''
-- As above: a cached plan ignores org and source type.
set enable_seqscan = off
as $$
declare
  one_type constant text := scope.source_types[1];
begin
  if rag.has_one_source_type(scope) then
    with visible as materialized (
      select found.*
      from unnest(scope.org_ids) as orgs (one_org)
      cross join lateral (
        select org_id, id, (embedding operator(extensions.<=>) query_embedding) + 0 as distance
        from rag.chunks
        where org_id = one_org and embedding_model = scope.model and source_type = one_type
        offset 0
      ) as found
      limit bound + 1
    )
    select array_agg(rag.candidate(org_id => org_id, document_id => document_id, ordinal => ordinal, chunk_id => id,
      content => content, span_start => span_start, span_end => span_end,
      similarity => greatest(0, least(1, 1 - distance)), score => greatest(0, least(1, 1 - distance)))
        order by distance, id), (select count(*) from visible)
      into candidates, considered
    from (select * from visible order by distance, id limit row_limit) as nearest
    cross join lateral (
      select document_id, ordinal, content, span_start, span_end
      from rag.chunks
      where chunks.org_id = nearest.org_id and chunks.id = nearest.id
      offset 0
    ) as text;
    return;
  end if;

  execute format($query$
    with visible as materialized (
      select org_id, id, (embedding operator(extensions.<=>) $2) + 0 as distance
      from rag.chunks
      where %s
      limit $4 + 1
    )
    select array_agg(rag.candidate(org_id => org_id, document_id => document_id, ordinal => ordinal, chunk_id => id,
      content => content, span_start => span_start, span_end => span_end,
      similarity => greatest(0, least(1, 1 - distance)), score => greatest(0, least(1, 1 - distance)))
        order by distance, id), (select count(*) from visible)
    from (select * from visible order by distance, id limit $3) as nearest
    cross join lateral (
      select document_id, ordinal, content, span_start, span_end
      from rag.chunks
      where chunks.org_id = nearest.org_id and chunks.id = nearest.id
      offset 0
    ) as text
  $query$, rag.chunk_where_clause(scope))
    into candidates, considered using scope, query_embedding, row_limit, bound;
end;
$$;

comment on function rag.filtered_scan is
  'The same with filters, if they leave at most `bound` chunks; considered: how many they leave, counted up to '
  'that bound. The most frequent filter, one source type, has a cached plan; others are planned for their values. '
  'Only the returned chunks'' texts are read, since the texts of all of them would not fit into memory.';

create function rag.hnsw_scan(query_embedding extensions.halfvec, scope rag.search_scope, row_limit integer,
  fetched integer, ef_search integer, out candidates rag.candidate[], out considered bigint, out complete boolean)
language plpgsql stable security invoker set search_path = ''
as $$
declare
  sorting constant text := current_setting('enable_sort');
  dimensions constant integer := extensions.vector_dims(query_embedding);
  distances double precision[];
  -- How many of the candidates came from the index.
  indexed bigint;
begin
  -- Because of row security the planner expects few rows, and prefers to sort them. "+ 0": in relaxed order the rows
  -- come only nearly sorted, and the planner must not rely on their order.
  perform set_config('enable_sort', 'off', true), set_config('hnsw.iterative_scan', 'relaxed_order', true),
    -- 1000 is the largest value; an iterative scan returns more rows if required.
    set_config('hnsw.ef_search', least(1000, greatest(ef_search, 3 * fetched))::text, true);
  -- The most frequent number of dimensions has a cached plan; others are planned for their index.
  if rag.has_no_filters(scope) and dimensions = 1536 then
    select array_agg(rag.candidate(org_id => org_id, document_id => document_id, ordinal => ordinal, chunk_id => id,
      content => content, span_start => span_start, span_end => span_end,
      similarity => greatest(0, least(1, 1 - distance)), score => greatest(0, least(1, 1 - distance)))
        order by distance, id), array_agg(distance order by distance), count(*) filter (where in_hnsw)
      into candidates, distances, indexed
    from (
      (select org_id, document_id, ordinal, id, content, span_start, span_end, in_hnsw,
        (embedding operator(extensions.<=>) query_embedding) + 0 as distance
      from rag.chunks
      where org_id = any (scope.org_ids) and embedding_model = scope.model and in_hnsw
        and extensions.vector_dims(embedding) = 1536
      order by embedding::extensions.halfvec(1536) operator(extensions.<=>) query_embedding
      limit fetched)
      union all
      (select org_id, document_id, ordinal, id, content, span_start, span_end, in_hnsw,
        (embedding operator(extensions.<=>) query_embedding) + 0 as distance
      from rag.chunks
      where org_id = any (scope.org_ids) and embedding_model = scope.model and not in_hnsw
      order by distance, id
      limit row_limit)
    ) as nearest;
  else
    execute format($query$
      select array_agg(rag.candidate(org_id => org_id, document_id => document_id, ordinal => ordinal, chunk_id => id,
        content => content, span_start => span_start, span_end => span_end,
        similarity => greatest(0, least(1, 1 - distance)), score => greatest(0, least(1, 1 - distance)))
          order by distance, id), array_agg(distance order by distance), count(*) filter (where in_hnsw)
      from (
        (select org_id, document_id, ordinal, id, content, span_start, span_end, in_hnsw,
          (embedding operator(extensions.<=>) $2) + 0 as distance
        from rag.chunks
        where %1$s and in_hnsw and extensions.vector_dims(embedding) = %2$s
        order by embedding::extensions.halfvec(%2$s) operator(extensions.<=>) $2
        limit $3)
        union all
        (select org_id, document_id, ordinal, id, content, span_start, span_end, in_hnsw,
          (embedding operator(extensions.<=>) $2) + 0 as distance
        from rag.chunks
        where %1$s and not in_hnsw
        order by distance, id
        limit $4)
      ) as nearest
    $query$, rag.chunk_where_clause(scope), dimensions)
      into candidates, distances, indexed using scope, query_embedding, fetched, row_limit;
  end if;
  perform set_config('enable_sort', sorting, true);
  considered := coalesce(cardinality(candidates), 0);
  complete := indexed = fetched and distances[row_limit] < distances[fetched];
  candidates := candidates[:row_limit];
end;
$$;

comment on function rag.hnsw_scan is
  'The nearest `row_limit` chunks of a scope, from `fetched` candidates of the HNSW index and from the chunks outside '
  'the index, which are compared exactly. complete: whether no nearer chunk can be missing. It is false if the index '
  'stopped early, and if the last returned chunk is as near as the last candidate, because the order of the index must '
  'not decide between equally near chunks.';

create function rag.indexed_rows(dimensions integer)
returns real
language sql stable security invoker set search_path = ''
as $$
  select coalesce((
    select pg_class.reltuples from pg_catalog.pg_class
    where pg_class.relname = rag.hnsw_index(dimensions) and pg_class.relnamespace = 'rag'::regnamespace), 0);
$$;

comment on function rag.indexed_rows is
  'The number of rows of the HNSW index for these dimensions when it was analyzed last; 0 without an index.';

create function rag.ef_search_for(scope rag.search_scope, candidates bigint, ef_search integer, indexed_rows real)
returns integer
language plpgsql stable security invoker set search_path = ''
as $$
declare
  scattered constant integer := case when cardinality(scope.org_ids) > 1 then 4 else 1 end;
begin
  return least(1000, ef_search * scattered * greatest(1, sqrt(greatest(indexed_rows, 0) / 50000),
    indexed_rows / (2 * candidates)));
end;
$$;

comment on function rag.ef_search_for is
  'The candidates that the HNSW index has to consider to find the nearest of so many rows: more for a smaller '
  'share of the table, and for a large table with the root of its rows; four times as many if the rows are scattered '
  'over several orgs, since few of their neighbours are in the scope (docs/benchmarks.md)';

create function rag.exact_threshold(scope rag.search_scope, candidates bigint, exact_rows integer, indexed_rows real)
returns bigint
language plpgsql stable security invoker set search_path = ''
as $$
begin
  return case when cardinality(scope.org_ids) > 1 then 2 else 1 end
    * case when indexed_rows > 0 and candidates > indexed_rows / 2 then least(exact_rows, 4000) else exact_rows end;
end;
$$;

comment on function rag.exact_threshold is
  'The largest number of rows that are compared exactly: `exact_rows`; twice as many for rows of several orgs, which '
  'the index finds badly; at most 4,000 if the rows are most of the table, since the index then returns nearly all.';

create function rag.nearest_chunks(query_embedding extensions.halfvec, scope rag.search_scope, row_limit integer,
  out candidates rag.candidate[], out exact boolean, out considered bigint)
language plpgsql stable security invoker set search_path = ''
as $$
declare
  settings rag.settings;
  filtered constant boolean := not rag.has_no_filters(scope);
  every_row constant bigint := 9223372036854775806;
  indexed_rows constant real := rag.indexed_rows(extensions.vector_dims(query_embedding));
  bound bigint;
  ef_search integer;
  more integer;
  complete boolean;
begin
  select * into settings from rag.settings;
  -- The keyword index has the number of rows of orgs and collections. A wrong number costs time, but no rows. With
  -- other filters the scan itself counts, up to the bound.
  if not rag.filters_documents(scope) and scope.without_chunk is null then
    considered := rag.count_chunks(scope);
  end if;
  bound := rag.exact_threshold(scope, considered, settings.exact_rows, indexed_rows);
  if filtered and coalesce(considered <= bound, true) then
    select * into candidates, considered from rag.filtered_scan(query_embedding, scope, row_limit, bound);
  end if;
  exact := considered <= bound;
  if exact then
    if not filtered then
      candidates := rag.exact_scan(query_embedding, scope, row_limit);
    end if;
    return;
  end if;

  ef_search := rag.ef_search_for(scope, considered, settings.ef_search, indexed_rows);
  -- One row more than row_limit shows whether the last returned row is nearer than the first omitted one. A hundred
  -- more are needed if many passages have the same text, e.g., footers.
  foreach more in array array[1, 100] loop
    select * into candidates, considered, complete
    from rag.hnsw_scan(query_embedding, scope, row_limit, row_limit + more, ef_search);
    exit when complete or considered < row_limit + more;
  end loop;
  if not complete then
    exact := true;
    select * into candidates, considered from rag.filtered_scan(query_embedding, scope, row_limit, every_row);
  end if;
end;
$$;

comment on function rag.nearest_chunks is
  'The nearest chunks of a scope, best first; equally near ones by id. exact: whether all that the scope leaves '
  'were compared; considered: how many were.';

create function public.rag_match(
  query_vector extensions.vector,
  top_k integer default 8,
  filters jsonb default '{}'
)
returns setof rag.result_row
language plpgsql stable security invoker set search_path = ''
-- Planning under row security takes longer than most of these statements run.
set plan_cache_mode = force_generic_plan
as $$
declare
  scope rag.search_scope;
  near record;
  started timestamptz;
  vector_ms real;
begin
  perform rag.limit_direct_call();
  perform rag.check_top_k(top_k);
  scope := rag.resolve_filters(filters);
  started := clock_timestamp();
  near := rag.nearest_chunks(rag.to_halfvec(query_vector, scope.model), scope, top_k);
  vector_ms := rag.milliseconds_since(started);
  return query select * from rag.to_rows(near.candidates, near.exact, near.considered, vector_ms, null,
    scope.ignored_filters);
end;
$$;

comment on function public.rag_match is
  'Vector search: the chunks nearest to a vector, best first. filters: the fields of rag.filters; other keys are '
  'ignored and listed in the result (rag.ignored_filters).';

-- Parsed keyword queries: the terms of a query, how much each weighs, and which of them are adjacent.

create type rag.query_term as (
  term text, key bigint, slot integer, config oid, position integer, weight double precision, documents bigint
);

comment on type rag.query_term is
  'A term of a query. key: its key in the index. slot: the same for all terms of one word, which each language stems in '
  'its own way. config: '
  'the OID of the text search configuration; not a regconfig, which pg_upgrade does not support in stored types. '
  'position: the first position of the term in the query, null for identifiers. weight: the IDF of the term times its '
  'frequency in the query. documents: the number of documents that contain the term.';

create type rag.word_pair as (
  config oid, first text, second text, gap integer, weight double precision
);

comment on type rag.word_pair is 'Two consecutive words of a query. gap: the distance of their positions.';

create type rag.keyword_query as (
  terms rag.query_term[], pairs rag.word_pair[], weight_sum double precision,
  chunk_length double precision, document_length double precision, lists rag.term_list[]
);

comment on type rag.keyword_query is
  'A parsed query. terms: those of the 100 words with the largest weights among the words that count, in that order. pairs: '
  'the consecutive words. weight_sum: the sum of the weights of all words. chunk_length, document_length: the mean lengths for '
  'BM25, in terms. lists: the lists of all its terms in the segments and tails of the scope.';

create function rag.parse_keyword_query(query_text text, scope rag.search_scope)
returns rag.keyword_query
language plpgsql stable security invoker set search_path = '' set enable_seqscan = off
as $$
declare
  keywords rag.keyword_query;
  configs regconfig[];
  chunk_count bigint;
  index_parts rag.term_segments[];
  places bigint;
begin
  select array_agg(distinct ('pg_catalog.' || total.config)::regconfig), sum(total.chunks),
    sum(total.length)::double precision / nullif(sum(total.chunks), 0),
    sum(total.length)::double precision / nullif(sum(total.documents), 0),
    array_agg(total),
    count(distinct total.segment) + coalesce(sum(total.documents) filter (where total.segment is null), 0)
    into configs, chunk_count, keywords.chunk_length, keywords.document_length, index_parts, places
  from rag.index_totals(scope.org_ids, scope.collection_ids) as total;

  with word as (
    select languages.config, word.lexeme as term, position,
      count(*) over (partition by position) = cardinality(configs) as counts_everywhere
    from unnest(configs) as languages (config), unnest(rag.words(languages.config, query_text)) as word,
      unnest(word.positions) as position
  ), identifier as (
    select found.term, -min(found.place) as slot, count(distinct found.place) as occurrences
    from unnest(configs) as languages (config), rag.identifier_terms(languages.config, query_text) as found
    group by 1
  ), neighbour as (
    -- Two words of the query may be one in a document, with a number up to five: PPR 9087 is PPR-9087 or PPR9087, soft logout
    -- softLogout. Each is a look-up in each segment, so in a longer query only those with a number count, from its first fifty
    -- words on.
    select word.lexeme as term, -2000000 - min(position) as slot
    from (
      select string_agg(joined, ' ')
      from (
        select array(select parts[1] from regexp_matches(lower(rag.tokenized_text(query_text)), '[[:alnum:]]+', 'g') as parts)
      ) as line (words)
      cross join generate_series(1, least(cardinality(line.words), 50)) as first
      cross join generate_series(first + 1, least(first + 4, cardinality(line.words))) as last
      cross join array_to_string(line.words[first : last], '') as joined
      where length(joined) <= 40 and joined ~ '[[:alpha:]]'
        and (joined ~ '[0-9]' or cardinality(line.words) <= 12 and last = first + 1)
    ) as joined (words)
    cross join unnest(configs) as languages (config)
    cross join unnest(to_tsvector(languages.config, joined.words)) as word
    cross join unnest(word.positions) as position
    group by 1
  ), part as (
    -- The parts of identifiers. Parts of abbreviations (e.g., U.S.) are repeated, so that their frequency becomes 0.
    select languages.config, word.lexeme as term, cardinality(word.positions) as occurrences
    from (
      select string_agg(repeat(name || ' ', case when name ~ '^[[:alpha:]](\.[[:alpha:]])+$' then 2 else 1 end), '')
      from rag.identifiers(query_text) as name
    ) as joined (content)
    cross join unnest(configs) as languages (config), unnest(rag.words(languages.config, joined.content)) as word
  ), term as (
    select word.term, min(word.position)::integer as slot, word.config, min(word.position)::integer as position,
      count(*) - coalesce(min(part.occurrences), 0) / 2.0 as frequency
    from word
    left join part on part.config = word.config and part.term = word.term
    where word.counts_everywhere or not exists (select from word where word.counts_everywhere)
    group by word.term, word.config
    union all
    select identifier.term, identifier.slot, null, null, identifier.occurrences / 2.0
    from identifier
    union all
    -- A document with MPXV5010DP has no part of it, so the whole weighs more than a part; one with softLogout has all.
    select neighbour.term, neighbour.slot, null, null, case when neighbour.term ~ '[0-9]' then 1.5 else 0.25 end
    from neighbour
    where neighbour.term not in (select word.term from word union select identifier.term from identifier)
  ), keyed as (
    -- Counting a term takes a look-up in each segment and in each document of a tail: the first words count, for 20,000
    -- look-ups, but at least 200, and as many names.
    select early.*, rag.term_key(early.term) as key, max(early.frequency) over (partition by early.term) as times
    from (
      select term.*, dense_rank() over (partition by term.slot < 0 order by abs(term.slot)) as occurrence
      from term
    ) as early
    where early.occurrence <= greatest(200, 20000 / greatest(1, places))
  ), list as materialized (
    select whole
    from rag.term_lists(index_parts, array(select distinct keyed.key from keyed where keyed.frequency > 0), scope.model)
      as whole
  ), known as (
    select counts.*, ln(1 + (chunk_count - counts.chunks + 0.5) / (counts.chunks + 0.5)) as idf
    from (
      select (list.whole).key, sum((list.whole).documents)::bigint as documents, sum((list.whole).chunks)::bigint as chunks
      from list
      group by 1
    ) as counts
  )
  select array_agg((found.term, found.key, found.slot, found.config, found.position, found.weight, found.documents)::rag.query_term
      order by found.weight desc, found.term),
    (select array_agg(list.whole) from list)
    into keywords.terms, keywords.lists
  from (
    select slots.*, dense_rank() over (order by slots.slot_weight desc, slots.slot) as turn
    from (
      select weighted.*, max(weighted.weight) over (partition by weighted.slot) as slot_weight
      from (
        select keyed.*, known.documents, known.idf * keyed.times as weight
        from keyed join known on known.key = keyed.key
      ) as weighted
    ) as slots
  ) as found
  where found.turn <= 100;

  select sum(slots.weight) into keywords.weight_sum
  from (
    select max(query_term.weight) from unnest(keywords.terms) as query_term group by query_term.slot
  ) as slots (weight);

  select array_agg((neighbours.config, neighbours.term, neighbours.next_term,
      neighbours.next_position - neighbours.position, neighbours.weight)::rag.word_pair)
    into keywords.pairs
  from (
    select query_term.config, query_term.term, query_term.position,
      lead(query_term.term) over in_order as next_term, lead(query_term.position) over in_order as next_position,
      least(query_term.weight, lead(query_term.weight) over in_order) as weight
    from unnest(keywords.terms) as query_term
    where query_term.position is not null
    window in_order as (partition by query_term.config order by query_term.position)
  ) as neighbours
  where neighbours.next_term <> neighbours.term;
  return keywords;
end;
$$;

comment on function rag.parse_keyword_query is
  'Parses a query for the documents of a scope and omits terms that no visible chunk contains. Each language of the '
  'documents stems the query in its own way. A stop word of one language ("the", "der") is omitted in all languages. '
  'The weight of a word is its IDF times its frequency in the query, as in BM25. An identifier and its parts count '
  'half each, because they are one word. The letters of an abbreviation (e.g., U.S.) do not count. Neighbouring words are also '
  'tried as one name. Of a long question the first words and names count: at least 200 of each, and more where the index has less than 100 segments and '
  'documents in tails.';

create function rag.phrase_proximity(keywords rag.keyword_query, ids uuid[], configs oid[], contents text[])
returns table (id uuid, closeness double precision)
language plpgsql stable security invoker set search_path = ''
as $$
#variable_conflict use_column
declare
  terms constant text[] := array(select distinct query_term.term from unnest(keywords.terms) as query_term);
begin
  return query
  with word as materialized (
    select text.id, text.config, word.lexeme, word.positions::integer[]
    from unnest(ids, configs, contents) as text (id, config, content)
    cross join unnest(rag.words(text.config::regconfig, text.content)) as word
    where word.lexeme = any (terms)
  )
  select one.id, sum(pair.weight / (1 + (
      -- Positions ascend: the nearest of the other word are found by binary search.
      select min(least(abs(a + pair.gap - other.positions[before]), abs(a + pair.gap - other.positions[before + 1])))
      from unnest(one.positions) as a
      cross join lateral width_bucket(a + pair.gap, other.positions) as before
    ))) / keywords.weight_sum
  from unnest(keywords.pairs) as pair
  join word as one on one.config = pair.config and one.lexeme = pair.first
  join word as other on other.id = one.id and other.lexeme = pair.second
  group by one.id;
end;
$$;

comment on function rag.phrase_proximity is
  'The share of the query''s adjacent words that are adjacent in each text, 0 to 1. More and rarer pairs increase the '
  'share; words between the two words of a pair decrease it. Texts without a pair are omitted.';

-- BM25 (Robertson and Zaragoza, 2009) over the keyword index, in two steps: the documents that match the query best by
-- impacts; then the exact scores of those documents' chunks.

create type rag.document_key as (org_id uuid, document_id uuid);

comment on type rag.document_key is 'The key of a document.';

create function rag.rank_documents(keywords rag.keyword_query, documents rag.document_key[], model text, wanted integer)
returns rag.document_key[]
language plpgsql stable security invoker set search_path = '' set enable_seqscan = off set join_collapse_limit = 1
as $$
begin
  return (
    select array_agg((ranked.org_id, ranked.document_id)::rag.document_key)
    from (
      select document.org_id, document.document_id
      from (select distinct org_id, document_id from unnest(documents)) as document
      cross join lateral (
        -- The concatenation reads a long array from TOAST once.
        select stored.terms || '{}' as terms, stored.places || '{}' as places
        from rag.document_terms as stored
        where stored.org_id = document.org_id and stored.document_id = document.document_id
          and stored.embedding_model = model
        offset 0
      ) as present
      cross join (select distinct key, weight from unnest(keywords.terms)) as query_term
      cross join lateral (select width_bucket(query_term.key, present.terms) as i offset 0) as place
      where present.terms[place.i] = query_term.key
      group by 1, 2
      order by sum(query_term.weight * (present.places[place.i] >> 54)) desc, 2
      limit wanted
    ) as ranked);
end;
$$;

comment on function rag.rank_documents is
  'The `wanted` documents of the model that match the query best, by the impacts of all their terms.';

-- A document's score for choosing candidates is the sum of weight * impact of its terms. The impacts of frequent terms are
-- summed as vectors of all the documents of a segment; the sums of entries are added to them.
create function rag.best_by_impact(keywords rag.keyword_query, scope rag.search_scope, allowed uuid[], wanted integer)
returns rag.document_key[]
language plpgsql stable security invoker set search_path = '' set enable_seqscan = off set join_collapse_limit = 1
as $$
declare
  most_entries constant integer := 50000;
  most integer := case when allowed is null then 4 * wanted end;
  seen bigint;
  best rag.document_key[];
begin
  loop
    with term_list as materialized (
      select lists.*, query_term.weight / 511 as weight,
        sum(cardinality(lists.entries)) over (order by query_term.weight desc, lists.key) as read
      from unnest(keywords.lists) as lists
      join (select distinct key, weight from unnest(keywords.terms)) as query_term on query_term.key = lists.key
      where lists.entries <> '{}' or lists.impacts is not null
    ), list as materialized (
      select * from term_list where term_list.segment is not null and (term_list.read <= most_entries or term_list.entries = '{}')
    ), frequent as materialized (
      select list.part, extensions.sum(list.impacts::extensions.vector operator(extensions.*)
        array_fill(list.weight::real, array[extensions.vector_dims(list.impacts)])::extensions.vector)::real[] as scores
      from list
      where list.impacts is not null
      group by 1
    ), scored as (
      select either.place >> 32 as part, either.place & 65535 as number, max(either.score) as score
      from (
        (select each.part::bigint << 32 | each.number as place, each.score
        from (
          select frequent.part, unnest(frequent.scores) as score, generate_subscripts(frequent.scores, 1) as number
          from frequent
        ) as each
        where each.score > 0
        order by each.score desc
        limit most)
        union all
        (select summed.place, summed.score + coalesce(frequent.scores[summed.place & 65535], 0)
        from (
          select (each.part::bigint << 32) | (each.entry & 65535) as place, sum(each.weight * (each.entry >> 16)) as score
          from (select list.part, list.weight, unnest(list.entries) as entry from list) as each
          group by 1
        ) as summed
        left join frequent on frequent.part = summed.place >> 32
        order by 2 desc
        limit most)
      ) as either
      group by either.place
    ), tail_score as (
      select term_list.org_id, term_list.document_id, sum(term_list.weight * (term_list.entries[1] >> 16)) as score
      from term_list
      where term_list.segment is null and (allowed is null or term_list.document_id in (select unnest(allowed)))
      group by 1, 2
    )
    select array_agg((found.org_id, found.document_id)::rag.document_key), (select count(*) from scored) into best, seen
    from (
      select * from (
        -- Documents are looked up in this order, until there are enough.
        (select ranked.org_id, stored.document_id, ranked.score
        from (
          select home.*, scored.number, scored.score
          from scored
          join (select distinct list.part, list.org_id, list.class, list.segment from list) as home using (part)
          order by scored.score desc, scored.part, scored.number
          offset 0
        ) as ranked
        cross join lateral (
          select document_terms.document_id
          from rag.document_terms
          where document_terms.org_id = ranked.org_id and document_terms.class = ranked.class
            and document_terms.segment = ranked.segment and document_terms.number = ranked.number
            and document_terms.embedding_model = scope.model
          offset 0
        ) as stored
        where allowed is null or stored.document_id in (select unnest(allowed))
        order by ranked.score desc, ranked.part, ranked.number
        limit wanted)
        union all
        (select * from tail_score order by score desc, document_id limit wanted)
      ) as both_parts
      order by score desc, document_id
      limit wanted
    ) as found;
    -- While the embedding model changes, the first may all be documents of the other one.
    exit when most is null or seen < most or cardinality(best) = wanted;
    most := null;
  end loop;
  return best;
end;
$$;

comment on function rag.best_by_impact is
  'The `wanted` allowed documents (null: all) that match the query best, by the impacts of their terms. Of the terms with '
  'entries, those with the largest weights count, up to 50,000 entries.';

create function rag.candidate_documents(keywords rag.keyword_query, scope rag.search_scope, wanted integer)
returns rag.document_key[]
language plpgsql stable security invoker set search_path = '' set enable_seqscan = off
as $$
declare
  left_over rag.document_key[];
begin
  if not rag.filters_documents(scope) then
    return rag.best_by_impact(keywords, scope, null, wanted);
  end if;
  execute format('select array(select (org_id, id)::rag.document_key from rag.documents where %s)',
    rag.where_clause(scope, 'id')) into left_over using scope;
  -- A few documents are looked up one by one.
  if cardinality(left_over) <= 1000 then
    return rag.rank_documents(keywords, left_over, scope.model, wanted);
  end if;
  return rag.best_by_impact(keywords, scope, array(select document_id from unnest(left_over)), wanted);
end;
$$;

comment on function rag.candidate_documents is
  'The documents of a scope that match the query best: all that contain a term, or about the best `wanted`.';

create function rag.bm25_scores(keywords rag.keyword_query, documents rag.document_key[])
returns table (org_id uuid, document_id uuid, ordinal integer, score double precision)
language plpgsql stable security invoker set search_path = '' set enable_seqscan = off set join_collapse_limit = 1
as $$
#variable_conflict use_column
declare
  k1 double precision;
  own_share double precision;
  -- k1 * (1 - b) and k1 * b / mean length, of chunks and of documents.
  fixed double precision;
  by_chunk double precision;
  by_document double precision;
begin
  -- The mean length is 0 if no text has a term.
  select bm25_k1, 1 - document_share, bm25_k1 * (1 - bm25_b),
    bm25_k1 * bm25_b / nullif(keywords.chunk_length, 0), bm25_k1 * bm25_b / nullif(keywords.document_length, 0)
    into k1, own_share, fixed, by_chunk, by_document
  from rag.settings;

  -- Window functions instead of joins: the planner estimates few rows and would choose nested loops.
  return query
  with posting as materialized (
    select wanted.org_id, wanted.document_id,
      found.places[width_bucket(query_term.key - 1, found.terms) + 1 : place.last] as places,
      query_term.weight / keywords.weight_sum as weight, fixed + by_document * found.length as holds_back
    from (select distinct org_id, document_id from unnest(documents)) as wanted
    cross join lateral (
      select stored.length, stored.terms || '{}' as terms, stored.places || '{}' as places
      from rag.document_terms as stored
      where stored.org_id = wanted.org_id and stored.document_id = wanted.document_id
      offset 0
    ) as found
    cross join (select distinct key, weight from unnest(keywords.terms)) as query_term
    cross join lateral (select width_bucket(query_term.key, found.terms) as last offset 0) as place
    where found.terms[place.last] = query_term.key
  ), whole as (
    select posting.*, sum(posting.weight * counted.occurrences / (counted.occurrences + posting.holds_back))
      over (partition by posting.org_id, posting.document_id) as score
    from posting
    cross join lateral (
      select sum(place & 65535)::double precision as occurrences from unnest(posting.places) as place
    ) as counted
  ), part as (
    select whole.org_id, whole.document_id, (place >> 32)::integer & 4194303 as ordinal, whole.score as whole_score,
      sum(whole.weight * (place & 65535) / ((place & 65535) + fixed + by_chunk * ((place >> 16) & 65535))) as score
    from whole, unnest(whole.places) as place
    group by 1, 2, 3, 4
  )
  -- The factor k1 + 1 is in a term's score and in the highest possible score, so it cancels out. Rounding may make a
  -- sum slightly greater than 1.
  select part.org_id, part.document_id, part.ordinal,
    least(1, own_share * part.score + (1 - own_share) * part.whole_score)
  from part;
end;
$$;

comment on function rag.bm25_scores is
  'The scores, 0 to 1, of the documents'' chunks that contain a term of the query. 1 is the limit for infinitely many '
  'occurrences of all terms. The score of the whole document is part of a chunk''s score, because a short passage may '
  'lack its context. The score of a term that occurs n times in a text of length l, before the division by the highest '
  'possible score: weight * n * (k1 + 1) / (n + k1 * (1 - b + b * l / mean length)).';

-- Fusion of vector and keyword scores.
--
-- Each leg returns its best candidates. Every candidate then gets both scores, and their weighted mean sorts the list.
-- Both scores are 0 to 1: the cosine similarity, and BM25 divided by the highest possible score. So their mean is 0 to
-- 1 too, and has the same meaning for every query and page (docs/decisions/search.md).

create function rag.load_candidates(keywords rag.keyword_query, documents rag.document_key[], near rag.candidate[],
  query_embedding extensions.halfvec, scope rag.search_scope, row_limit integer, whole_documents boolean)
returns table (id uuid, org_id uuid, document_id uuid, ordinal integer, content text, span_start integer,
  span_end integer, lang text, similarity double precision, word_score double precision)
language plpgsql stable security invoker set search_path = ''
as $$
#variable_conflict use_column
begin
  return query
  with candidate as (
    -- Group by instead of a join: the planner would compare each candidate with every scored chunk.
    select brought.org_id, brought.document_id, brought.ordinal, max(brought.score) as word_score
    from (
      select scores.*, row_number() over (order by score desc, document_id, ordinal) <= row_limit as is_candidate
      from rag.bm25_scores(keywords, documents) as scores
      union all
      select near.org_id, near.document_id, near.ordinal, null, true from unnest(near) as near
      union all
      select nearest.org_id, nearest.document_id, nearest.ordinal, null, true
      from unnest(documents) as document
      cross join lateral (
        select chunks.org_id, chunks.document_id, chunks.ordinal
        from rag.chunks
        where chunks.org_id = document.org_id and chunks.document_id = document.document_id
        order by (chunks.embedding operator(extensions.<=>) query_embedding) + 0, chunks.ordinal
        limit row_limit
      ) as nearest
      where whole_documents
    ) as brought
    group by 1, 2, 3
    having bool_or(brought.is_candidate)
  )
  select chunk.*, coalesce(candidate.word_score, 0)
  from candidate
  -- With offset 0 the planner looks each row up.
  cross join lateral (
    select chunks.id, chunks.org_id, chunks.document_id, chunks.ordinal, chunks.content, chunks.span_start,
      chunks.span_end, chunks.lang,
      case when query_embedding is not null
        then greatest(0, least(1, 1 - (chunks.embedding operator(extensions.<=>) query_embedding))) end
    from rag.chunks
    where chunks.org_id = candidate.org_id and chunks.document_id = candidate.document_id
      and chunks.ordinal = candidate.ordinal and chunks.embedding_model = scope.model
      and (scope.without_chunk is null or chunks.id <> scope.without_chunk)
    offset 0
  ) as chunk;
end;
$$;

comment on function rag.load_candidates is
  'The candidates of both legs with their text, similarity and keyword score. row_limit: the number of candidates of '
  'the keyword leg. whole_documents: whether the nearest chunks of each document are candidates too.';

create function rag.score_candidates(keywords rag.keyword_query, documents rag.document_key[], near rag.candidate[],
  query_embedding extensions.halfvec, scope rag.search_scope, mode text, row_limit integer,
  phrase_limit integer, whole_documents boolean)
returns rag.candidate[]
language plpgsql stable security invoker set search_path = ''
as $$
declare
  settings constant rag.settings := (select deployment from rag.settings as deployment);
  -- If no document has a word of the query, the similarity is the whole score.
  similarity_share constant double precision := case
    when mode = 'keyword' then 0 when keywords.terms is null then 1 else settings.similarity_share end;
  candidates rag.candidate[];
begin
  with candidate as (
    select loaded.*, row_number() over (order by loaded.word_score desc, loaded.id) as word_position
    from rag.load_candidates(
      keywords, documents, near, query_embedding, scope, row_limit, whole_documents) as loaded
  ), close as (
    -- Parsing texts is slow, so only the best candidates are compared.
    select closeness.*
    from (
      select array_agg(candidate.id) as ids, array_agg(candidate.content) as contents,
        array_agg(rag.text_config(coalesce(candidate.lang, settings.language))::oid) as configs
      from candidate
      where keywords.pairs is not null and settings.phrase_share > 0 and candidate.word_score > 0
        and candidate.word_position <= phrase_limit
    ) as best
    cross join rag.phrase_proximity(keywords, best.ids, best.configs, best.contents) as closeness
  ), phrased as (
    select candidate.*, case when keywords.pairs is null then candidate.word_score
      else (1 - settings.phrase_share) * candidate.word_score
        + settings.phrase_share * coalesce(close.closeness, 0) end as words
    from candidate
    left join close on close.id = candidate.id
  ), scored as (
    select phrased.*,
      similarity_share * coalesce(phrased.similarity, 0) + (1 - similarity_share) * phrased.words as score
    from phrased
    where mode <> 'keyword' or phrased.word_score > 0
  )
  select array_agg(rag.candidate(org_id => scored.org_id, document_id => scored.document_id,
    ordinal => scored.ordinal, chunk_id => scored.id, content => scored.content, span_start => scored.span_start,
    span_end => scored.span_end, similarity => scored.similarity, word_score => scored.words, score => scored.score)
    order by scored.score desc, scored.id)
    into candidates
  from scored;
  return candidates;
end;
$$;

comment on function rag.score_candidates is
  'The candidates of both legs with their scores, best first. row_limit, whole_documents: as in rag.load_candidates. '
  'phrase_limit: the number of candidates, by keyword score, whose phrases are compared.';

-- Candidates by document: the best documents of a hierarchical search, and the best chunk of each document.

create function rag.best_documents(candidates rag.candidate[], chunks_wanted integer)
returns rag.document_key[]
language sql stable security invoker set search_path = ''
as $$
  with placed as (
    select candidate.org_id, candidate.document_id, candidate.score,
      row_number() over (partition by candidate.org_id, candidate.document_id order by candidate.score desc) as position
    from unnest(candidates) as candidate
  ), valued as (
    select placed.org_id, placed.document_id, count(*) as chunks,
      sum(placed.score * 0.5 ^ least(placed.position, 50)) as value
    from placed
    group by 1, 2
  ), counted as (
    select valued.*, row_number() over in_order as position,
      sum(valued.chunks) over in_order - valued.chunks as chunks_before
    from valued
    window in_order as (order by valued.value desc, valued.document_id)
  )
  select array_agg((counted.org_id, counted.document_id)::rag.document_key)
  from counted
  where counted.position <= 5 or counted.chunks_before < chunks_wanted;
$$;

comment on function rag.best_documents is
  'The best documents among the hits, as many as are needed for so many chunks, and at least five. The score of a '
  'document is its best hit''s, half its second best''s, a quarter of the next, and so on.';

create function rag.best_per_document(candidates rag.candidate[])
returns rag.candidate[]
language sql stable security invoker set search_path = ''
as $$
  select array_agg(best.candidate order by (best.candidate).score desc, (best.candidate).chunk_id)
  from (
    select distinct on (candidate.org_id, candidate.document_id) candidate
    from unnest(candidates) as candidate
    order by candidate.org_id, candidate.document_id, candidate.score desc, candidate.chunk_id
  ) as best;
$$;

comment on function rag.best_per_document is 'The best candidate of each document, best first.';

-- Changes of a fused score by the document's age and by preferred source types, before the page is cut.

create function rag.apply_recency(candidates rag.candidate[], half_life_days double precision)
returns rag.candidate[]
language sql stable security invoker set search_path = ''
as $$
  with faded as (
    select candidate.*, candidate.score * (0.5 + 0.5 * 0.5 ^ (least(1000 * half_life_days, greatest(0, extract(epoch
      from now() - coalesce(documents.occurred_at, documents.created_at))::double precision
      / 86400)) / half_life_days)) as faded_score
    from unnest(candidates) as candidate
    join rag.documents on documents.org_id = candidate.org_id and documents.id = candidate.document_id
  )
  select array_agg(rag.candidate(org_id => faded.org_id, document_id => faded.document_id, ordinal => faded.ordinal,
    chunk_id => faded.chunk_id, content => faded.content, span_start => faded.span_start, span_end => faded.span_end,
    similarity => faded.similarity, word_score => faded.word_score, score => faded.faded_score)
    order by faded.faded_score desc, faded.chunk_id)
  from faded;
$$;

comment on function rag.apply_recency is
  'The hits, with lower scores for older documents: at one half-life three quarters of the score remain, at two '
  'five eighths, and never less than half. A document without a date is as old as its row.';

create function rag.boost_source_types(candidates rag.candidate[], source_types text[])
returns rag.candidate[]
language sql stable security invoker set search_path = ''
as $$
  with weighed as (
    select candidate.*, candidate.score * case when documents.source_type = any (source_types) then 1 else 0.85 end
      as weighed_score
    from unnest(candidates) as candidate
    join rag.documents on documents.org_id = candidate.org_id and documents.id = candidate.document_id
  )
  select array_agg(rag.candidate(org_id => weighed.org_id, document_id => weighed.document_id,
    ordinal => weighed.ordinal, chunk_id => weighed.chunk_id, content => weighed.content,
    span_start => weighed.span_start, span_end => weighed.span_end, similarity => weighed.similarity,
    word_score => weighed.word_score, score => weighed.weighed_score)
    order by weighed.weighed_score desc, weighed.chunk_id)
  from weighed;
$$;

comment on function rag.boost_source_types is
  'The hits, with lower scores for other source types: of equal hits the preferred types come first.';

create function rag.to_page(candidates rag.candidate[], half_life_days double precision, source_types text[],
  top_k integer, expand_context integer)
returns rag.candidate[]
language plpgsql stable security invoker set search_path = ''
as $$
begin
  if half_life_days is not null then
    candidates := rag.apply_recency(candidates, half_life_days);
  end if;
  if source_types <> '{}' then
    candidates := rag.boost_source_types(candidates, source_types);
  end if;
  candidates := candidates[:top_k];
  if expand_context > 0 then
    candidates := rag.expand_neighbours(candidates, expand_context);
  end if;
  return candidates;
end;
$$;

comment on function rag.to_page is
  'The best candidates of a search, after recency and preferred source types, with their neighbours. The parameters '
  'are those of rag_search; source_types is its prefer.';

-- Vector search, keyword search, or both: the two legs that rag_search, rag_similar and rag_graph_search share.

create function rag.add_keyword_leg(near rag.candidate[], query_embedding extensions.halfvec, query_text text,
  scope rag.search_scope, mode text, row_limit integer, shown integer)
returns rag.candidate[]
language plpgsql stable security invoker set search_path = ''
as $$
declare
  -- The keyword leg also returns the subject of a similarity search, so it gets a larger limit.
  spare constant integer := num_nonnulls(scope.without_document, scope.without_chunk);
  by_words rag.search_scope := scope;
  keywords constant rag.keyword_query := rag.parse_keyword_query(query_text, scope);
  documents rag.document_key[];
  candidates rag.candidate[];
begin
  -- The subject is removed afterwards: with this filter, rag.candidate_documents would read all the org's documents.
  by_words.without_document := null;
  documents := array(
    select (document.org_id, document.document_id)::rag.document_key
    from unnest(rag.candidate_documents(keywords, by_words, 4 * row_limit + spare)) as document
    where document.document_id is distinct from scope.without_document);
  candidates := rag.score_candidates(keywords,
    documents || array(
      select (candidate.org_id, candidate.document_id)::rag.document_key
      from unnest(near) as candidate),
    near, query_embedding, scope, mode, row_limit + spare, shown, false);
  if mode = 'hierarchical' then
    candidates := rag.score_candidates(keywords, rag.best_documents(candidates, shown), null, query_embedding, scope,
      mode, row_limit, shown, true);
  end if;
  return candidates;
end;
$$;

comment on function rag.add_keyword_leg is
  'The candidates of both legs, best first: those of vector search, `near`, and the `row_limit` with the highest '
  'keyword scores. mode: as in rag_search. shown: the number of results that the caller returns.';

create function rag.two_leg_search(query_embedding extensions.halfvec, query_text text, scope rag.search_scope,
  mode text, row_limit integer, shown integer, judged_text text default null, judged_top_k integer default null,
  out candidates rag.candidate[], out exact boolean, out considered bigint, out complete boolean, out vector_ms real,
  out lexical_ms real, out judged rag.candidate[], out judged_vector_ms real, out judged_lexical_ms real)
language plpgsql stable security invoker set search_path = ''
as $$
declare
  -- What each leg brings for the judged matches: as in rag_search.
  judged_pool constant integer := greatest(20, 2 * least(judged_top_k, 300));
  started timestamptz := clock_timestamp();
  nearest record;
  near rag.candidate[];
begin
  considered := 0;
  if mode <> 'keyword' or judged_top_k is not null then
    nearest := rag.nearest_chunks(query_embedding, scope,
      case when judged_top_k is null then row_limit else greatest(row_limit, judged_pool) end);
    exact := nearest.exact;
    considered := nearest.considered;
    judged_vector_ms := rag.milliseconds_since(started);
  end if;
  if mode <> 'keyword' then
    vector_ms := judged_vector_ms;
    near := (nearest.candidates)[:row_limit];
    candidates := near;
  end if;
  started := clock_timestamp();
  if mode <> 'semantic' then
    candidates := rag.add_keyword_leg(near,
      case when mode <> 'keyword' or judged_top_k is null then query_embedding end, query_text, scope, mode, row_limit,
      shown);
    lexical_ms := rag.milliseconds_since(started);
  end if;
  complete := coalesce(cardinality(case when mode = 'keyword' then candidates else near end), 0) < row_limit;
  if judged_top_k is not null then
    judged := (nearest.candidates)[:judged_pool];
    if rag.uses_keywords(scope) then
      started := clock_timestamp();
      judged := rag.add_keyword_leg(judged, query_embedding, judged_text, scope, 'hybrid', judged_pool, judged_top_k);
      judged_lexical_ms := rag.milliseconds_since(started);
    end if;
    judged := rag.to_page(judged, null, null, judged_top_k, 0);
  end if;
end;
$$;

comment on function rag.two_leg_search is
  'The `row_limit` nearest candidates, and with rag.add_keyword_leg those of both legs. complete: whether a larger '
  'row_limit would return no further candidates. judged: the first judged_top_k of a hybrid search for judged_text, '
  'with the same vectors; null without judged_top_k. vector_ms, lexical_ms: the duration of each leg, null for an unused one; the '
  'keyword leg includes the fusion. judged_vector_ms, judged_lexical_ms: those of the judged matches; vector search runs '
  'once for both.';

create function rag.uses_keywords(scope rag.search_scope)
returns boolean
language plpgsql stable security invoker set search_path = ''
as $$
begin
  return scope.collection_ids is null or exists (
    select from rag.collections
    where collections.org_id = any (scope.org_ids) and collections.id = any (scope.collection_ids)
      and collections.config -> 'enable_hybrid_search' is distinct from 'false'::jsonb);
end;
$$;

comment on function rag.uses_keywords is
  'Whether a search of these collections uses keywords: not if all of them have hybrid search disabled.';

-- Search by meaning, by word, or by both, in one call.

create function public.rag_search(
  query_text text default null,
  query_vector extensions.vector default null,
  mode text default 'hybrid',
  top_k integer default 10,
  filters jsonb default '{}',
  expand_context integer default 0,
  half_life_days double precision default null,
  prefer text[] default null
)
returns setof rag.result_row
language plpgsql stable security invoker set search_path = ''
-- Planning under row security takes longer than most of these statements run.
set plan_cache_mode = force_generic_plan
as $$
declare
  -- What each leg brings, where the order in which it does is not the last.
  pool constant integer := greatest(20, 2 * least(top_k, 300));
  query_embedding extensions.halfvec;
  scope rag.search_scope;
  search record;
begin
  perform rag.limit_direct_call();
  if query_vector is null and mode in ('hybrid', 'hierarchical') then
    mode := 'keyword';
  end if;
  perform rag.check_search(query_text, query_vector, mode, expand_context, half_life_days);
  perform rag.check_top_k(top_k), rag.check_prefer(prefer);
  scope := rag.resolve_filters(filters);
  prefer := nullif(prefer, '{}');
  if mode in ('hybrid', 'hierarchical') and not rag.uses_keywords(scope) then
    mode := 'semantic';
  end if;
  if query_vector is not null then
    query_embedding := rag.to_halfvec(query_vector, scope.model);
  end if;

  search := rag.two_leg_search(query_embedding, query_text, scope, mode,
    case when mode = 'semantic' and half_life_days is null and prefer is null then top_k else pool end, top_k);
  return query
  select * from rag.to_rows(rag.to_page(search.candidates, half_life_days, prefer, top_k, expand_context),
    search.exact, search.considered, search.vector_ms, search.lexical_ms, scope.ignored_filters);
end;
$$;

comment on function public.rag_search is
  'Search by vector, by keywords, or by both. mode: semantic (needs query_vector), keyword (query_text), hybrid '
  '(both) or hierarchical (both: the best documents first, then their best chunks). Without query_vector, hybrid '
  'and hierarchical become keyword. filters: the fields of rag.filters. expand_context: the number of neighbouring '
  'chunks added to each text, on both sides. half_life_days: lowers the scores of older documents, unless it is '
  'null. prefer: source types whose scores are not lowered.';

create function rag.check_search(query_text text, query_vector extensions.vector, mode text,
  expand_context integer, half_life_days double precision)
returns void
language plpgsql immutable security invoker set search_path = ''
as $$
declare
  fault constant text[] := case
    when mode is null or mode not in ('semantic', 'keyword', 'hybrid', 'hierarchical')
      then array['invalid_mode', 'mode must be semantic, keyword, hybrid or hierarchical']
    when mode <> 'keyword' and query_vector is null
      then array['missing_vector', format('mode %s needs query_vector', mode)]
    when mode <> 'semantic' and coalesce(query_text, '') = ''
      then array['missing_text', format('mode %s needs query_text', mode)]
    when length(query_text) > 10000
      then array['text_too_long', 'query_text must have at most 10,000 characters']
    when expand_context is null or expand_context not between 0 and 10
      then array['invalid_expand_context', 'expand_context must be between 0 and 10']
    when half_life_days <= 0 or half_life_days > 100000 or half_life_days = 'NaN'
      then array['invalid_half_life', 'half_life_days must be above 0 and at most 100,000']
  end;
begin
  if fault is not null then
    raise exception '%', fault[2] using errcode = 'PT400', detail = fault[1];
  end if;
end;
$$;

comment on function rag.check_search is 'Raises PT400 for invalid arguments of a search; detail names the argument.';

-- A search with the matches by which the confidence of its answer is judged, in one call.
--
-- Confidence is judged by the ten best matches of a hybrid search, whatever the mode of the caller's own search is. Both
-- searches compare the question with the same vectors, so vector search runs once. rag_graph_search returns the same
-- matches where the caller's search uses the graph.

create function public.rag_judged_search(
  query_text text,
  query_vector extensions.vector,
  mode text default 'semantic',
  top_k integer default 10,
  filters jsonb default '{}',
  expand_context integer default 0,
  half_life_days double precision default null,
  prefer text[] default null,
  judged_text text default null,
  judged_top_k integer default 10
)
returns json
language plpgsql stable security invoker set search_path = ''
-- Planning under row security takes longer than most of these statements run.
set plan_cache_mode = force_generic_plan
as $$
declare
  is_guarded constant boolean := rag.begin_call();
  pool constant integer := greatest(20, 2 * least(top_k, 300));
  scope rag.search_scope;
  search record;
begin
  judged_text := coalesce(judged_text, query_text);
  perform rag.check_search(query_text, query_vector, mode, expand_context, half_life_days);
  perform rag.check_judged(judged_text, query_vector, judged_top_k);
  perform rag.check_top_k(top_k), rag.check_prefer(prefer);
  scope := rag.resolve_filters(filters);
  prefer := nullif(prefer, '{}');
  if mode in ('hybrid', 'hierarchical') and not rag.uses_keywords(scope) then
    mode := 'semantic';
  end if;

  search := rag.two_leg_search(rag.to_halfvec(query_vector, scope.model), query_text, scope, mode,
    case when mode = 'semantic' and half_life_days is null and prefer is null then top_k else pool end, top_k,
    judged_text, judged_top_k);
  return json_build_object(
    'matches', (
      select coalesce(json_agg(hit), '[]')
      from rag.to_rows(rag.to_page(search.candidates, half_life_days, prefer, top_k, expand_context), search.exact,
        search.considered, search.vector_ms, search.lexical_ms, scope.ignored_filters) as hit),
    'judged', (
      select coalesce(json_agg(hit), '[]')
      from rag.to_rows(search.judged, search.exact, search.considered, search.judged_vector_ms,
        search.judged_lexical_ms) as hit));
end;
$$;

comment on function public.rag_judged_search is
  'A search with the matches by which the confidence of an answer is judged. Arguments: those of rag_search; '
  'query_vector is always needed. Returns matches: the rows of rag_search; judged: the first judged_top_k of a hybrid '
  'search for judged_text, by default query_text, with the same vector and filters.';

create function rag.check_judged(judged_text text, query_vector extensions.vector, judged_top_k integer)
returns void
language plpgsql immutable security invoker set search_path = ''
as $$
begin
  perform rag.check_search(judged_text, query_vector, 'hybrid', 0, null), rag.check_top_k(judged_top_k);
end;
$$;

comment on function rag.check_judged is
  'Raises PT400 for invalid arguments of the judged matches, which need text and vector whatever the mode.';

-- Texts of chunks extended by their neighbours: in a search (expand_context of rag_search), or for a caller that
-- reorders its results before it extends them (rag_widen).

create function rag.expand_neighbours(candidates rag.candidate[], neighbours integer)
returns rag.candidate[]
language plpgsql stable security invoker set search_path = ''
as $$
begin
  return (
    with candidate as (
      select candidate.*,
        lag(candidate.ordinal) over of_document as before,
        lead(candidate.ordinal) over of_document as after
      from unnest(candidates) with ordinality as candidate (org_id, document_id, ordinal, chunk_id, content, span_start,
        span_end, similarity, word_score, score, position)
      window of_document as (partition by candidate.org_id, candidate.document_id order by candidate.ordinal)
    ), wide as (
      select candidate.*, around.span_end as wide_end, greatest(around.span_start,
        least(coalesce(lag(around.span_end) over of_document, 0), around.span_end - 1)) as wide_start
      from candidate
      cross join lateral (
        select min(chunks.span_start), max(chunks.span_end)
        from rag.chunks
        where chunks.org_id = candidate.org_id and chunks.document_id = candidate.document_id
          and chunks.ordinal
            between greatest(candidate.ordinal - neighbours, (candidate.before + candidate.ordinal) / 2 + 1)
            and least(candidate.ordinal + neighbours, (candidate.ordinal + candidate.after) / 2)
      ) as around (span_start, span_end)
      window of_document as (partition by candidate.org_id, candidate.document_id order by candidate.ordinal)
    )
    select array_agg(rag.candidate(org_id => wide.org_id, document_id => wide.document_id, ordinal => wide.ordinal,
      chunk_id => wide.chunk_id,
      content => substr(documents.content, wide.wide_start + 1, wide.wide_end - wide.wide_start),
      span_start => wide.wide_start, span_end => wide.wide_end, similarity => wide.similarity,
      word_score => wide.word_score, score => wide.score) order by wide.position)
    from wide
    join rag.documents on documents.org_id = wide.org_id and documents.id = wide.document_id);
end;
$$;

comment on function rag.expand_neighbours is
  'The hits, each text extended by so many chunks on both sides, within its document and at most half-way to the '
  'document''s next hit. Where chunks overlap, a text begins after the previous hit, so that no text is repeated.';

create function public.rag_widen(chunk_ids uuid[], neighbours integer)
returns table (chunk_id uuid, content text, span_start integer, span_end integer)
language plpgsql stable security invoker set search_path = ''
as $$
#variable_conflict use_column
declare
  is_admitted constant boolean := rag.limit_direct_call();
  org_ids constant uuid[] := array(select rag.current_org_ids());
begin
  if chunk_ids is null or cardinality(chunk_ids) > 100 then
    raise exception 'chunk_ids must have at most 100 ids' using errcode = 'PT400', detail = 'too_many_chunks';
  elsif neighbours is null or neighbours not between 0 and 10 then
    raise exception 'neighbours must be between 0 and 10' using errcode = 'PT400', detail = 'invalid_neighbours';
  end if;
  return query
  select candidate.chunk_id, candidate.content, candidate.span_start, candidate.span_end
  from unnest(rag.expand_neighbours(array(
    select rag.candidate(org_id => chunks.org_id, document_id => chunks.document_id, ordinal => chunks.ordinal,
      chunk_id => chunks.id, content => chunks.content, span_start => chunks.span_start, span_end => chunks.span_end)
    from rag.chunks
    where chunks.org_id = any (org_ids) and chunks.id = any (chunk_ids)
  ), neighbours)) as candidate;
end;
$$;

comment on function public.rag_widen is
  'The texts of chunks with their neighbours, for a search that reorders its candidates before it returns them '
  '(expand_context of rag_search extends texts at once). At most 100 chunks.';

-- Chunks or documents similar to a text, or to a stored chunk or document.

create type rag.similarity_query as (embedding extensions.halfvec, words text, model text);

comment on type rag.similarity_query is
  'The vector, text and embedding model that a search for similar chunks compares with.';

create function rag.load_similarity_query(
  chunk_id uuid, document_id uuid, query_text text, query_vector extensions.vector, model text,
  with_embedding boolean
)
returns rag.similarity_query
language plpgsql stable security invoker set search_path = ''
as $$
#variable_conflict use_variable
declare
  org_ids constant uuid[] := array(select rag.current_org_ids());
  subject rag.similarity_query;
begin
  subject.words := query_text;
  if num_nonnulls(chunk_id, document_id) = 1 then
    select extensions.avg(chunks.embedding::extensions.vector), min(chunks.embedding_model)
      into query_vector, subject.model
    from rag.chunks
    where chunks.org_id = any (org_ids) and (chunks.id = chunk_id or chunks.document_id = document_id);
    if query_vector is null then
      raise exception 'There is no such subject. Check its id.' using errcode = 'PT404', detail = 'subject_not_found';
    end if;
    subject.words := left(case when chunk_id is not null
      then (select chunks.content from rag.chunks where chunks.org_id = any (org_ids) and chunks.id = chunk_id)
      else (
        select documents.content from rag.documents
        where documents.org_id = any (org_ids) and documents.id = document_id)
    end, 10000);
  end if;
  if with_embedding then
    subject.embedding := rag.to_halfvec(query_vector, coalesce(subject.model, model));
  end if;
  return subject;
end;
$$;

comment on function rag.load_similarity_query is
  'The vector and the text of the query or chunk; for a document, the mean of its vectors and the beginning of its '
  'text. The filters do not apply to the subject. PT404 for a subject that the caller may not read.';

create function public.rag_similar(
  chunk_id uuid default null,
  document_id uuid default null,
  result text default 'chunks',
  top_k integer default 10,
  filters jsonb default '{}',
  query_text text default null,
  query_vector extensions.vector default null,
  mode text default 'semantic',
  prefer text[] default null
)
returns setof rag.result_row
language plpgsql stable security invoker set search_path = ''
-- Planning under row security takes longer than most of these statements run.
set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_variable
declare
  -- The candidates of each leg: more than top_k if fusion or `prefer` changes their order.
  row_limit integer := case when mode = 'semantic' and coalesce(prefer, '{}') = '{}' then top_k
    else greatest(20, 2 * top_k) end;
  scope rag.search_scope;
  subject rag.similarity_query;
  search record;
  candidates rag.candidate[];
  vector_ms real;
  lexical_ms real;
begin
  perform rag.limit_direct_call();
  perform rag.check_similarity_query(chunk_id, document_id, query_text, query_vector, result, mode),
    rag.check_top_k(top_k), rag.check_prefer(prefer);
  scope := rag.resolve_filters(filters);
  subject := rag.load_similarity_query(
    chunk_id, document_id, query_text, query_vector, scope.model, mode <> 'keyword' or query_vector is not null);
  if subject.model <> scope.model then
    scope := rag.resolve_filters(filters, subject.model);
  end if;
  scope.without_chunk := chunk_id;
  scope.without_document := document_id;
  if mode = 'hybrid' and not rag.uses_keywords(scope) then
    mode := 'semantic';
  end if;
  loop
    search := rag.two_leg_search(subject.embedding, subject.words, scope, mode, row_limit, top_k);
    candidates := search.candidates;
    -- The sum of all rounds; null for a leg that the search does not have.
    vector_ms := coalesce(vector_ms, 0) + search.vector_ms;
    lexical_ms := coalesce(lexical_ms, 0) + search.lexical_ms;
    if prefer <> '{}' then
      candidates := rag.boost_source_types(candidates, prefer);
    end if;
    exit when result = 'chunks';
    candidates := rag.best_per_document(candidates);
    -- Until there are enough documents or no further candidates.
    exit when cardinality(candidates) >= top_k or search.complete;
    row_limit := row_limit * 4;
  end loop;
  return query select * from rag.to_rows(candidates[:top_k], search.exact, search.considered, vector_ms, lexical_ms,
    scope.ignored_filters);
end;
$$;

comment on function public.rag_similar is
  'Chunks or documents similar to a text, or to a stored chunk or document. The subject: chunk_id, document_id, or '
  'a text as query_text, query_vector or both, as the mode requires. The result contains neither the subject nor the '
  'chunks of a document that is the subject. mode: semantic, keyword or hybrid. result: chunks, or documents, each '
  'with its best chunk. prefer: as in rag_search.';

create function rag.check_similarity_query(chunk_id uuid, document_id uuid, query_text text,
  query_vector extensions.vector, result text, mode text)
returns void
language plpgsql immutable security invoker set search_path = ''
as $$
begin
  if num_nonnulls(chunk_id, document_id, coalesce(query_text, query_vector::text)) <> 1 then
    raise exception 'exactly one of chunk_id, document_id and a text must be given'
      using errcode = 'PT400', detail = 'invalid_subject';
  elsif result is null or result not in ('chunks', 'documents') then
    raise exception 'result must be chunks or documents' using errcode = 'PT400', detail = 'invalid_result';
  elsif mode is null or mode not in ('semantic', 'keyword', 'hybrid') then
    raise exception 'mode must be semantic, keyword or hybrid' using errcode = 'PT400', detail = 'invalid_mode';
  elsif num_nonnulls(chunk_id, document_id) = 0 then
    perform rag.check_search(query_text, query_vector, mode, 0, null);
  end if;
end;
$$;

comment on function rag.check_similarity_query is
  'Raises PT400 for invalid arguments of rag_similar; detail names the argument.';

-- Normalization of entity names. An entity is a normalized name within an org and has no table of its own: it exists
-- for a caller who sees a row with its name, of a title (15_title_entities.sql) or a chunk (20_mentions.sql). So other
-- users do not see the entities of a private document, and a name in two orgs does not connect them.

create function rag.fold_text(content text)
returns text
language plpgsql immutable security invoker set search_path = ''
as $$
declare
  -- Complete for a text in ASCII, as most are.
  plain text := lower(content collate "C");
begin
  if octet_length(content) <> length(content) then
    plain := translate(replace(replace(replace(
      regexp_replace(lower(normalize(replace(content, '´', ''''), nfkd)),
        -- Accents; Hebrew and Arabic points; joiners, direction marks, variation selectors.
        '[\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f'
        '\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670\u06d6-\u06dc'
        '\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff]',
        '', 'g'),
      'ß', 'ss'), 'æ', 'ae'), 'œ', 'oe'), 'øłđðıς', 'olddiσ');
  end if;
  return normalize(btrim(regexp_replace(regexp_replace(plain, '[''’‘`ʼ](?:s\M)?', '', 'g'),
    -- Punctuation and symbols: ASCII, Latin-1, other alphabets, general, East Asian; emoji.
    '[\u0001-"$-*,-/:-@[-`{-¿×÷\u055a-\u055f\u0589\u058a\u05be\u05c0\u05c3\u05c6\u05f3\u05f4\u0609-\u060d'
    '\u061b-\u061f\u066a-\u066d\u06d4\u0964\u0965\u0970\u0df4\u0e3f\u0e4f\u0e5a\u0e5b\u0f04-\u0f14\u0f3a-\u0f3d'
    '\u104a-\u104f\u10fb\u1360-\u1368\u17d4-\u17d6\u17d8-\u17db\u1800-\u180a\u2000-\u20cf\u2190-\u2bff'
    '\u2e00-\u2e7f\u3000-\u3004\u3008-\u3020\u3030\u303d-\u303f\u30a0\u30fb\ufe30-\ufe4f'
    '\U0001f000-\U0001faff]+', ' ', 'g')), nfc);
end;
$$;

comment on function rag.fold_text is
  'The text in lower case, without accents and invisible characters, with one blank between words. Apostrophes '
  '(O''Brien) and English genitives (Boritzer''s) are removed. + and # stay, for C++ and C#, and so do marks that '
  'belong to letters, as in Devanagari and Thai. Punctuation is listed by character, because the character classes of '
  'Postgres versions differ.';

create function rag.entity_key(name text)
returns text
language plpgsql immutable security invoker set search_path = ''
as $$
begin
  return rtrim(left(regexp_replace(
    coalesce(nullif(rag.fold_text(regexp_replace(name, '\s*[(（][^()（）]*[)）]\s*$', '')), ''),
      rag.fold_text(name)),
    '^(?:the )+(?=.)', ''), 200));
end;
$$;

comment on function rag.entity_key is
  'The key of a name: the folded name without a leading article and without trailing parentheses, unless the rest '
  'would be empty. The key of a key is the same key.';

create function rag.phonetic_key(entity text)
returns text
language sql immutable security invoker set search_path = ''
as $$
  select regexp_replace(regexp_replace(translate(regexp_replace(
      translate(replace(replace(entity, 'ph', 'f'), 'x', 'ks'), 'cqzwyj', 'kksvii'),
      '\Y[aeiouhαεηιουωаеиоуыэюяьъ]', '', 'g'), 'eiouαεηιουωаеиоуыэюя', repeat('a', 20)),
    -- Runs of up to nine equal letters: (.)\1+ takes seven times as long.
    '(.)\1\1?', '\1', 'g'), '(.)\1\1?', '\1', 'g');
$$;

comment on function rag.phonetic_key is
  'A rough phonetic key of a folded name: most misspelled words have the key of the correct word. Vowels are kept only '
  'at the beginning of a word, and all vowels are equal, also Greek and Cyrillic ones. c, k and q are equal, and so '
  'are s and z, v and w.';

create function rag.bigram_similarity(name text, others text[])
returns table (entity text, likeness double precision)
language plpgsql immutable security invoker set search_path = ''
as $$
#variable_conflict use_column
begin
  return query
  with mine as (
    select substr(' ' || name || ' ', position, 2) as letters, count(*) as times
    from generate_series(1, length(name) + 1) as position
    group by 1
  ), theirs as (
    select other.entity, substr(' ' || other.entity || ' ', position, 2) as letters, count(*) as times
    from (select distinct unnest(others) as entity) as other
    cross join generate_series(1, length(other.entity) + 1) as position
    where length(other.entity) between 0.75 * length(name) and 1.34 * length(name)
    group by 1, 2
  )
  select theirs.entity,
    (2.0 * sum(least(mine.times, theirs.times)) / (length(name) + length(theirs.entity) + 2))::double precision
  from theirs
  join mine on mine.letters = theirs.letters
  group by theirs.entity;
end;
$$;

comment on function rag.bigram_similarity is
  'The similarity, 0 to 1, of a folded name to each of others: the share of common letter bigrams (Dice, 1945). Names '
  'whose length differs by more than a third are omitted.';

create function rag.title_names(title text)
returns table (entity text, name text, weight real)
language sql immutable security invoker set search_path = ''
as $$
  select found.entity, (array_agg(found.name order by found.weight desc, found.position))[1], max(found.weight)
  from (
    select rag.entity_key(title), title, 1.0::real, 0
    union all
    select rtrim(left(regexp_replace(rag.fold_text(title), '^(?:the )+(?=.)', ''), 200)), title, 1.0, 0
    where title ~ '[)）]\s*$'
    union all
    -- A file name without its extension.
    select rag.entity_key(named.base), named.base, 0.9, 0
    from (select regexp_replace(title, '^(.*/)?([^/]+)\.[A-Za-z][A-Za-z0-9]{0,4}$', '\2') as base) as named
    where named.base <> title
    union all
    select rag.entity_key(part), btrim(part), 0.6, position::integer
    from regexp_split_to_table(title, '\s*[:;|–—·•»>()（）《》「」『』]\s*|\s+[-/]\s+|,\s+|，|、')
      with ordinality as parts (part, position)
    where position <= 8 and part <> title
  ) as found (entity, name, weight, position)
  where length(found.entity) > 1
  group by found.entity;
$$;

comment on function rag.title_names is
  'The names in a title, each with its probability: the title with and without parentheses, and parts of the title. '
  '"Incident 42: Billing outage" has the parts "Incident 42" and "Billing outage".';

create function rag.path_name(path text)
returns text
language sql immutable security invoker set search_path = ''
as $$
  select case when length(part.name) between 2 and 80 and part.name !~ '^[0-9A-Fa-f-]{16,}$|[\n\t]'
    and rag.is_visible_text(part.name) and rag.fold_text(part.name) ~ '[[:alpha:]].*[[:alpha:]]' then part.name end
  from (select regexp_replace(regexp_replace(left(path, 2000), '^https?://[^/]*|[?#].*$', '', 'g'), '/+$', ''))
    as address (path)
  cross join lateral (
    -- The file name; the folder name for common files such as README.
    select regexp_replace(address.path, '(?:^|/)(?:readme|index|codeowners|main|default)(?:\.[a-z]{1,5})?$', '', 'i')
  ) as file (path)
  cross join lateral (
    -- The extension and a leading date are removed.
    select btrim(regexp_replace(regexp_replace(translate(regexp_replace(file.path, '^.*/', ''), '_+', '  '),
      '\.[A-Za-z][A-Za-z0-9]{0,4}$', ''), '^[0-9]{4}-?[0-9]{2}(?:-?[0-9]{2})?[- ]+', '')) as name
  ) as part;
$$;

comment on function rag.path_name is
  'The last name in a path or URL, without date and extension: marram for notes/2025-03-04-marram.md, inkwell for '
  'inkwell/README.md. Null for a number or a hash.';

-- Subjects: the entities that a document's title, file name, external_id and URL name. Triggers on documents write the
-- rows. A graph search goes from an entity to the documents about it, and from the entities in these documents to
-- further documents.

create table rag.title_entities (
  org_id uuid not null,
  document_id uuid not null,
  entity text collate "C" not null check (length(entity) between 1 and 200),
  collection_id uuid not null,
  owner_id uuid,
  name text not null,
  weight real not null check (weight between 0 and 1),
  sound text collate "C" not null,
  ending text collate "C" not null,
  primary key (org_id, document_id, entity),
  foreign key (org_id, document_id) references rag.documents (org_id, id) on delete cascade
);

comment on table rag.title_entities is 'Entities that documents'' titles, file names, external_ids and URLs name.';
comment on column rag.title_entities.weight is '0 to 1; the whole title has 1.';

-- rag.link_entities and rag.expand_graph: the documents about an entity.
create index title_entities_by_entity on rag.title_entities (org_id, entity, weight desc)
  include (document_id, collection_id, owner_id);

-- The same within a collection, which may be a small part of its org.
create index title_entities_by_collection on rag.title_entities (org_id, collection_id, entity, weight desc)
  include (document_id, owner_id);

-- rag.link_entities: names with the same phonetic key, or a key with the same beginning or end (the key reversed).
create index title_entities_by_sound on rag.title_entities (org_id, sound) include (entity, collection_id, owner_id);
create index title_entities_by_ending on rag.title_entities (org_id, ending) include (entity, collection_id, owner_id);

call rag.admit_members('title_entities');
call rag.restrict_keys('title_entities', 'documents:read', 'documents:write', 'retrievals:read', 'chat:read');
call rag.bind_keys('title_entities');
call rag.require_edit('title_entities');

create function rag.is_in_graph(org_id uuid, collection_id uuid)
returns boolean
language sql stable security invoker set search_path = ''
as $$
  select collections.config -> 'enable_knowledge_graph' is distinct from 'false'::jsonb
  from rag.collections
  where collections.org_id = is_in_graph.org_id and collections.id = is_in_graph.collection_id;
$$;

comment on function rag.is_in_graph is
  'Whether the documents of a collection are in the graph. The collection''s config may exclude them.';

create function rag.subject_names(document rag.documents)
returns table (entity text, name text, weight real)
language sql immutable security invoker set search_path = ''
as $$
  select found.entity, (array_agg(found.name order by found.weight desc, found.position))[1], max(found.weight)
  from (
    select titled.entity, titled.name, titled.weight, 0 as position
    from rag.title_names(document.title) as titled
    union all
    select rag.entity_key(named.name), named.name, 0.9::real, path.position
    from (values (document.filename, 1), (document.external_id, 2), (document.uri, 3)) as path (path, position)
    -- Without "offset 0", each reference to the name would call the function. (The same holds below.)
    cross join lateral (select rag.path_name(path.path) where path.path is not null offset 0) as named (name)
    where named.name is not null
  ) as found
  group by found.entity;
$$;

comment on function rag.subject_names is 'The names of a document by its title, file name, external_id and URL.';

create function rag.title_rows(document rag.documents)
returns setof rag.title_entities
language sql immutable security invoker set search_path = ''
as $$
  select document.org_id, document.id, found.entity, document.collection_id, document.owner_id, found.name,
    found.weight, heard.sound, reverse(heard.sound)
  from rag.subject_names(document) as found
  cross join lateral (select rag.phonetic_key(found.entity) offset 0) as heard (sound);
$$;

comment on function rag.title_rows is 'The rows of a document''s subjects.';

create function rag.add_title_entities(document rag.documents)
returns void
language sql volatile security invoker set search_path = ''
as $$
  insert into rag.title_entities
  select titled.*
  from rag.title_rows(document) as titled
  where rag.is_in_graph(document.org_id, document.collection_id)
  on conflict do nothing;
$$;

comment on function rag.add_title_entities is 'Insert the subjects of a document.';

create function rag.index_new_titles()
returns trigger
language plpgsql volatile security invoker set search_path = ''
as $$
begin
  insert into rag.title_entities
  select titled.*
  from (select distinct added.org_id, added.collection_id from added offset 0) as home
  join added on added.org_id = home.org_id and added.collection_id = home.collection_id
  cross join lateral rag.title_rows(added) as titled
  where rag.is_in_graph(home.org_id, home.collection_id)
  on conflict do nothing;
  return null;
end;
$$;

comment on function rag.index_new_titles is
  'Trigger that writes the title entities of inserted documents, once per statement.';

create trigger index_title_entities_of_new_documents after insert on rag.documents
  referencing new table as added
  for each statement execute function rag.index_new_titles();

create function rag.index_changed_title()
returns trigger
language plpgsql volatile security invoker set search_path = ''
as $$
begin
  delete from rag.title_entities where title_entities.org_id = new.org_id and title_entities.document_id = new.id;
  perform rag.add_title_entities(new);
  if (old.title, old.collection_id, old.owner_id) is distinct from (new.title, new.collection_id, new.owner_id) then
    perform rag.requeue_extraction(new.org_id, new.id);
  end if;
  return null;
end;
$$;

comment on function rag.index_changed_title is 'Trigger that replaces the title entities of a document.';

create trigger index_title_entities_of_changed_documents
  after update of title, collection_id, owner_id, external_id, filename, uri on rag.documents
  for each row
  when ((old.title, old.collection_id, old.owner_id, old.external_id, old.filename, old.uri)
    is distinct from (new.title, new.collection_id, new.owner_id, new.external_id, new.filename, new.uri))
  execute function rag.index_changed_title();

-- Mentions: the entities that a chunk names, which are the evidence that an entity exists. The rows are written with
-- the chunks (53_write_chunks.sql), or later by the worker (30_extractions.sql).

create table rag.mentions (
  org_id uuid not null,
  document_id uuid not null,
  ordinal integer not null,
  entity text collate "C" not null check (length(entity) between 1 and 200),
  collection_id uuid not null,
  owner_id uuid,
  name text not null check (length(name) between 1 and 200 and rag.is_visible_text(name)),
  kind text not null check (kind ~ '^[a-z][a-z_]{0,39}$'),
  surfaces text[] not null check (cardinality(surfaces) <= 20 and rag.is_visible_text(array_to_string(surfaces, ' '))),
  weight real not null check (weight between 0 and 1),
  sound text collate "C" not null,
  ending text collate "C" not null,
  primary key (org_id, document_id, ordinal, entity),
  foreign key (org_id, document_id, ordinal) references rag.chunks (org_id, document_id, ordinal) on delete cascade
);

comment on table rag.mentions is 'Entities that chunks name.';
comment on column rag.mentions.kind is
  'person, organization, team, place, service, work, identifier, email, date, or name if the kind is unknown.';
comment on column rag.mentions.surfaces is
  'Other spellings of the name in the chunk, e.g., a surname alone or an abbreviation.';
comment on column rag.mentions.weight is 'The prominence of the entity in the chunk, 0 to 1.';

-- rag.link_entities and rag.expand_graph: the chunks that name an entity, highest weight first.
create index mentions_by_entity on rag.mentions (org_id, entity, weight desc)
  include (document_id, ordinal, collection_id, owner_id);

-- The same within a collection, which may be a small part of an org that names the entity everywhere.
create index mentions_by_collection on rag.mentions (org_id, collection_id, entity, weight desc)
  include (document_id, ordinal, owner_id);

-- rag.link_entities: names with the same phonetic key, or a key with the same beginning or end (the key reversed).
create index mentions_by_sound on rag.mentions (org_id, sound) include (entity, collection_id, owner_id);
create index mentions_by_ending on rag.mentions (org_id, ending) include (entity, collection_id, owner_id);

call rag.admit_members('mentions');
call rag.restrict_keys('mentions', 'documents:read', 'documents:write', 'retrievals:read', 'chat:read');
call rag.bind_keys('mentions');
call rag.require_edit('mentions');

-- Relations that chunks state between entities: one row for each edge and chunk, so that an edge exists as long as its
-- evidence. Co-occurrence is not stored: rag.mentions has it.

create table rag.relations (
  org_id uuid not null,
  document_id uuid not null,
  ordinal integer not null,
  subject text collate "C" not null check (length(subject) between 1 and 200),
  type text collate "C" not null check (type ~ '^[A-Z][A-Z_]{1,49}$'),
  object text collate "C" not null check (length(object) between 1 and 200),
  collection_id uuid not null,
  owner_id uuid,
  confidence real not null check (confidence > 0 and confidence <= 1),
  primary key (org_id, document_id, ordinal, subject, type, object),
  foreign key (org_id, document_id, ordinal) references rag.chunks (org_id, document_id, ordinal) on delete cascade,
  check (subject <> object)
);

comment on table rag.relations is 'Relations between entities that chunks state.';
comment on column rag.relations.type is 'Read forwards: subject OWNED_BY object.';

-- rag.edges_among, in both directions; highest confidence first.
create index relations_by_subject on rag.relations (org_id, subject, confidence desc)
  include (type, object, document_id, ordinal, collection_id, owner_id);
create index relations_by_object on rag.relations (org_id, object, confidence desc)
  include (type, subject, document_id, ordinal, collection_id, owner_id);

-- rag.link_entities: other names of an entity, which may have any number of other edges.
create index relations_aliases_by_subject on rag.relations (org_id, subject, confidence desc)
  include (object, collection_id, owner_id) where type = 'ALIAS_OF';
create index relations_aliases_by_object on rag.relations (org_id, object, confidence desc)
  include (subject, collection_id, owner_id) where type = 'ALIAS_OF';

call rag.admit_members('relations');
call rag.restrict_keys('relations', 'documents:read', 'documents:write', 'retrievals:read', 'chat:read');
call rag.bind_keys('relations');
call rag.require_edit('relations');

create function rag.move_graph_of_document()
returns trigger
language plpgsql volatile security invoker set search_path = ''
as $$
begin
  update rag.mentions set collection_id = new.collection_id, owner_id = new.owner_id
  where mentions.org_id = new.org_id and mentions.document_id = new.id;
  update rag.relations set collection_id = new.collection_id, owner_id = new.owner_id
  where relations.org_id = new.org_id and relations.document_id = new.id;
  update rag.jobs set collection_id = new.collection_id, owner_id = new.owner_id
  where jobs.org_id = new.org_id and jobs.id = new.id and jobs.kind = 'extraction';
  return null;
end;
$$;

comment on function rag.move_graph_of_document is
  'Trigger that moves the mentions, relations and extraction of a document to its new collection or owner. '
  'rag.index_changed_title has enqueued the extraction again.';

create trigger move_names_of_changed_documents after update of collection_id, owner_id on rag.documents
  for each row
  when ((old.collection_id, old.owner_id) is distinct from (new.collection_id, new.owner_id))
  execute function rag.move_graph_of_document();

create function rag.names_of_document(org_id uuid, document_id uuid)
returns jsonb
language plpgsql stable security invoker set search_path = ''
as $$
begin
  return (
    select coalesce(jsonb_object_agg(name.entity, true), '{}')
    from (
      select mentions.entity
      from rag.mentions
      where mentions.org_id = names_of_document.org_id and mentions.document_id = names_of_document.document_id
      union
      select title_entities.entity
      from rag.title_entities
      where title_entities.org_id = names_of_document.org_id
        and title_entities.document_id = names_of_document.document_id
    ) as name);
end;
$$;

comment on function rag.names_of_document is
  'The keys of the names in a document''s text and title, as the keys of an object. Computed once for each '
  'document, however many relations it states.';

create function rag.delete_dangling_relations(org_id uuid, document_id uuid)
returns void
language plpgsql volatile security invoker set search_path = ''
as $$
#variable_conflict use_variable
declare
  names constant jsonb := rag.names_of_document(org_id, document_id);
begin
  delete from rag.relations
  where relations.org_id = delete_dangling_relations.org_id
    and relations.document_id = delete_dangling_relations.document_id
    and not (names ? relations.subject and names ? relations.object);
end;
$$;

comment on function rag.delete_dangling_relations is
  'Delete a document''s relations if the document no longer names the subject or the object.';

-- Mentions and relations of chunks, written from the JSON that the functions or the worker send. Invalid entries are
-- omitted, so that no document fails because of its entities.

create function rag.list_entries(body jsonb, list text)
returns table (entry jsonb, number bigint)
language sql immutable security invoker set search_path = ''
as $$
  select listed.entry, listed.number
  from jsonb_array_elements(case jsonb_typeof(body -> list) when 'array' then body -> list else '[]' end)
    with ordinality as listed (entry, number)
  where listed.number <= 200 and jsonb_typeof(listed.entry) = 'object';
$$;

comment on function rag.list_entries is
  'The objects among the first 200 entries of a list in a chunk''s JSON, with their numbers.';

create function rag.name_value(value jsonb)
returns text
language sql immutable security invoker set search_path = ''
as $$
  select text.surface
  from (select case jsonb_typeof(value) when 'string' then value #>> '{}' end) as text (surface)
  where length(text.surface) between 1 and 200 and rag.is_visible_text(text.surface);
$$;

comment on function rag.name_value is
  'A text in a list''s entry, if it is printable and no longer than a name; otherwise null.';

create function rag.weight_value(value jsonb)
returns real
language sql immutable security invoker set search_path = ''
as $$
  select case jsonb_typeof(value) when 'number' then round(least(1, greatest(0, value::numeric)), 6)::real end;
$$;

comment on function rag.weight_value is
  'A number in a list''s entry, no more than 1 and no less than 0; null for other values.';

create function rag.insert_mentions(org_id uuid, documents rag.document_chunks[], first integer)
returns void
language plpgsql volatile security invoker set search_path = ''
as $$
#variable_conflict use_column
begin
  -- Materialized, so that expensive functions are called once for each name.
  insert into rag.mentions (org_id, document_id, ordinal, entity, collection_id, owner_id, name, kind, surfaces, weight,
    sound, ending)
  with listed as materialized (
    select chunked.document_id, item.position::integer as position, listed.number, listed.entry,
      rag.name_value(listed.entry -> 'name') as name
    from unnest(insert_mentions.documents) as chunked
    cross join lateral jsonb_array_elements(chunked.chunks) with ordinality as item (body, position)
    cross join lateral rag.list_entries(item.body, 'names') as listed
  ), named as materialized (
    select listed.*, rag.entity_key(listed.name) as entity,
      case when listed.entry ->> 'kind' ~ '^[a-z][a-z_]{0,39}$' then listed.entry ->> 'kind' else 'name' end as kind,
      coalesce(rag.weight_value(listed.entry -> 'weight'), 0.5) as weight
    from listed
    where listed.name is not null
  ), folded as materialized (
    select named.document_id, named.position, named.entity, max(named.weight) as weight,
      (array_agg(named.name order by named.weight desc, named.number))[1] as name,
      (array_agg(named.kind order by named.kind = 'name', named.weight desc, named.number))[1] as kind,
      coalesce((array_agg(distinct surface.name) filter (where surface.name is not null))[:20], '{}') as surfaces
    from named
    left join lateral (
      select case when listed.entry = to_jsonb(named.name) then named.name else rag.name_value(listed.entry) end as name
      from jsonb_array_elements(case jsonb_typeof(named.entry -> 'surfaces') when 'array' then named.entry -> 'surfaces'
        else jsonb_build_array(named.name) end) with ordinality as listed (entry, number)
      where listed.number <= 20
      offset 0
    ) as surface on true
    group by named.document_id, named.position, named.entity
  ), heard as materialized (
    select folded.*, rag.phonetic_key(folded.entity) as sound from folded where length(folded.entity) between 1 and 200
  )
  select stored.org_id, stored.id, insert_mentions."first" + heard.position - 1, heard.entity, stored.collection_id,
    stored.owner_id, heard.name, heard.kind, heard.surfaces, heard.weight, heard.sound, reverse(heard.sound)
  from heard
  join rag.documents as stored on stored.org_id = insert_mentions.org_id and stored.id = heard.document_id
  on conflict do nothing;
end;
$$;

comment on function rag.insert_mentions is
  'Store the entities that each chunk names. The parameters are those of rag.insert_names.';

create function rag.insert_relations(org_id uuid, documents rag.document_chunks[], first integer)
returns void
language plpgsql volatile security invoker set search_path = ''
as $$
#variable_conflict use_column
begin
  insert into rag.relations (org_id, document_id, ordinal, subject, type, object, collection_id, owner_id, confidence)
  with listed as materialized (
    select chunked.document_id, item.position::integer as position, listed.entry ->> 'type' as type,
      rag.entity_key(rag.name_value(listed.entry -> 'subject')) as subject,
      rag.entity_key(rag.name_value(listed.entry -> 'object')) as object,
      rag.weight_value(listed.entry -> 'confidence') as confidence
    from unnest(insert_relations.documents) as chunked
    cross join lateral jsonb_array_elements(chunked.chunks) with ordinality as item (body, position)
    cross join lateral rag.list_entries(item.body, 'relations') as listed
  ), named as materialized (
    select related.document_id, rag.names_of_document(insert_relations.org_id, related.document_id) as names
    from (select distinct listed.document_id from listed offset 0) as related
  ), stated as (
    select listed.document_id, listed.position, listed.subject, listed.type, listed.object,
      max(listed.confidence) as confidence
    from listed
    join named on named.document_id = listed.document_id
    where listed.subject <> listed.object and listed.type ~ '^[A-Z][A-Z_]{1,49}$' and listed.confidence > 0
      and named.names ? listed.subject and named.names ? listed.object
    group by 1, 2, 3, 4, 5
  )
  select stored.org_id, stored.id, insert_relations."first" + stated.position - 1, stated.subject, stated.type,
    stated.object, stored.collection_id, stored.owner_id, stated.confidence
  from stated
  join rag.documents as stored on stored.org_id = insert_relations.org_id and stored.id = stated.document_id
  on conflict do nothing;
end;
$$;

comment on function rag.insert_relations is
  'Store the relations that each chunk states between entities that its document names.';

create function rag.insert_names(org_id uuid, documents rag.document_chunks[], first integer)
returns void
language plpgsql volatile security invoker set search_path = ''
as $$
begin
  perform rag.insert_mentions(org_id, documents, "first");
  perform rag.insert_relations(org_id, documents, "first");
end;
$$;

comment on function rag.insert_names is
  'Store the names and relations of the chunks of documents; each document has the ordinal of its first chunk. '
  'Malformed names are omitted, so that they do not prevent the storing of the document. One row for each entity '
  'and chunk; a relation needs both of its names in the document. At most 200 names and 200 relations for each '
  'chunk.';

-- Extractions of entities: jobs (20_documents/40_jobs.sql), one for each document with chunks in a collection of the
-- graph. Most documents come with their entities; the worker extracts those of the others, as the user who added the
-- document, some chunks at a time. Each part is stored at once, so after a crash the next attempt continues behind the
-- last part. Replacing, retitling or deleting the document revokes the lease.

create function rag.enqueue_extractions(org_id uuid, documents rag.document_chunks[], later boolean)
returns void
language sql volatile security invoker set search_path = ''
as $$
  insert into rag.jobs (org_id, id, kind, document_id, collection_id, owner_id, user_id, state)
  select stored.org_id, stored.id, 'extraction', stored.id, stored.collection_id, stored.owner_id, rag.current_user_id(),
    case when exists (
      select from jsonb_array_elements(chunked.chunks) as item (body)
      where jsonb_typeof(item.body -> 'names') is distinct from 'array') then 'waiting' else 'done' end
  from unnest(enqueue_extractions.documents) as chunked
  join rag.documents as stored on stored.org_id = enqueue_extractions.org_id and stored.id = chunked.document_id
  on conflict (org_id, id) do update
  set state = case when jobs.state = 'done' or not enqueue_extractions.later then excluded.state else 'waiting' end,
    user_id = excluded.user_id, next_ordinal = 0, attempts = 0, due_at = now(), lease = null, error_code = null,
    error_message = null, finished_at = null;
$$;

comment on function rag.enqueue_extractions is
  'Record that documents have new chunks, which are extracted unless they come with names. `later`: chunks that are '
  'added to a document''s earlier ones.';

create function rag.requeue_extraction(org_id uuid, document_id uuid)
returns void
language plpgsql volatile security invoker set search_path = ''
as $$
begin
  perform rag.delete_dangling_relations(requeue_extraction.org_id, requeue_extraction.document_id);
  update rag.jobs
  set state = 'waiting', next_ordinal = 0, attempts = 0, due_at = now(), lease = null, finished_at = null,
    user_id = coalesce(rag.current_user_id(), user_id)
  where jobs.org_id = requeue_extraction.org_id and jobs.id = requeue_extraction.document_id
    and jobs.kind = 'extraction';
end;
$$;

comment on function rag.requeue_extraction is
  'Enqueue the extraction of a document whose title changed, and delete relations of the old title''s entities.';

create function public.rag_open_extraction(max_chunks integer default 100)
returns table (document_id uuid, title text, first integer, chunks text[])
language plpgsql volatile security invoker set search_path = ''
set statement_timeout = '60s'
as $$
#variable_conflict use_column
declare
  is_admitted constant boolean := rag.begin_write();
  job constant rag.jobs := rag.lock_job('extraction');
begin
  if max_chunks is null or max_chunks not between 1 and 1000 then
    raise exception 'max_chunks must be between 1 and 1000' using errcode = 'PT400', detail = 'invalid_max_chunks';
  elsif not rag.is_in_graph(job.org_id, job.collection_id) then
    perform rag.delete_graph_of_document(job.org_id, job.document_id);
    return;
  end if;
  if job.next_ordinal = 0 then
    perform rag.add_title_entities(documents)
    from rag.documents
    where documents.org_id = job.org_id and documents.id = job.document_id;
  end if;
  return query
  select job.document_id, documents.title, job.next_ordinal, array(
    select stored.content
    from rag.chunks as stored
    where stored.org_id = job.org_id and stored.document_id = job.document_id
      and stored.ordinal >= job.next_ordinal and stored.ordinal < job.next_ordinal + max_chunks
    order by stored.ordinal)
  from rag.documents
  where documents.org_id = job.org_id and documents.id = job.document_id;
end;
$$;

comment on function public.rag_open_extraction is
  'The next part of an extraction: the title, and the texts of the chunks from `first` on, max_chunks of them. No row '
  'for a document whose collection left the graph: the call deletes its extracted rows.';

create function public.rag_store_extraction(
  first integer, chunks jsonb, lease_seconds integer default 300
)
returns boolean
language plpgsql volatile security invoker set search_path = ''
set statement_timeout = '60s'
as $$
#variable_conflict use_variable
declare
  is_admitted constant boolean := rag.begin_write();
  job constant rag.jobs := rag.lock_job('extraction');
  behind constant integer := first + jsonb_array_length(chunks);
  is_more constant boolean := exists (
    select from rag.chunks as stored
    where stored.org_id = job.org_id and stored.document_id = job.document_id and stored.ordinal >= behind);
begin
  perform rag.check_json('chunks', chunks);
  if first is distinct from job.next_ordinal then
    raise exception 'The chunks must continue at the next chunk of the lease. Claim the item again.'
      using errcode = 'PT409', detail = 'out_of_turn';
  end if;
  delete from rag.relations
  where relations.org_id = job.org_id and relations.document_id = job.document_id
    and relations.ordinal >= first and relations.ordinal < behind;
  delete from rag.mentions
  where mentions.org_id = job.org_id and mentions.document_id = job.document_id
    and mentions.ordinal >= first and mentions.ordinal < behind;
  perform rag.insert_names(job.org_id, array[rag.document_chunks(
    document_id => job.document_id, chunks => chunks, embedding_model => null)], first);
  if not is_more then
    perform rag.delete_dangling_relations(job.org_id, job.document_id);
  end if;
  update rag.jobs
  set state = case when is_more then 'running' else 'done' end, next_ordinal = case when is_more then behind else 0 end,
    lease = case when is_more then job.lease end,
    due_at = case when is_more then clock_timestamp() + make_interval(secs => lease_seconds) else clock_timestamp() end,
    -- A stored part resets the count of attempts.
    attempts = 0, error_code = null, error_message = null,
    finished_at = case when not is_more then clock_timestamp() end
  where jobs.org_id = job.org_id and jobs.id = job.id;
  return is_more;
end;
$$;

comment on function public.rag_store_extraction is
  'Replace the names and relations of the chunks from the ordinal `first` on (format: rag_put_documents). Returns '
  'whether further chunks follow. If so, the lease is extended; otherwise it ends.';

-- Addition of a collection's documents to the graph and their removal: on request, or after a change of its config.
-- The worker extracts the documents, and deletes the extracted rows of a removed collection.

create function public.rag_build_graph(collection_id uuid, again boolean default false)
returns bigint
language plpgsql volatile security invoker set search_path = ''
set statement_timeout = '60s'
as $$
#variable_conflict use_variable
declare
  is_admitted constant boolean := rag.begin_write();
  home constant rag.collections := rag.get_collection(collection_id);
begin
  perform rag.require_scope('documents:write');
  if not rag.is_in_graph(home.org_id, home.id) then
    raise exception 'The collection has no graph. Set enable_knowledge_graph in its config first.'
      using errcode = 'PT409', detail = 'graph_off';
  end if;
  return rag.enqueue_collection(home, coalesce(again, false));
end;
$$;

comment on function public.rag_build_graph is
  'Enqueue the extraction, as the caller, of the collection''s documents that the caller sees and that have no '
  'extraction or one that failed. `again`: all documents, from the beginning. Returns their number. '
  'PT409 for a collection that is not in the graph.';

create function rag.enqueue_collection(home rag.collections, again boolean)
returns bigint
language plpgsql volatile security invoker set search_path = ''
as $$
#variable_conflict use_variable
declare
  enqueued bigint;
begin
  -- Documents are locked first and by id, as other writers do.
  perform from rag.documents
  where documents.org_id = home.org_id and documents.collection_id = home.id
  order by documents.id
  for no key update;
  insert into rag.jobs (org_id, id, kind, document_id, collection_id, owner_id, user_id)
  select documents.org_id, documents.id, 'extraction', documents.id, documents.collection_id, documents.owner_id,
    rag.current_user_id()
  from rag.documents
  where documents.org_id = home.org_id and documents.collection_id = home.id
  -- Sorted, so that two calls for the same documents do not deadlock.
  order by documents.id
  on conflict (org_id, id) do update
  set state = 'waiting', next_ordinal = case when again then 0 else jobs.next_ordinal end,
    user_id = excluded.user_id, attempts = 0, due_at = now(), lease = null, error_code = null, error_message = null,
    finished_at = null
  where again or jobs.state = 'failed';
  get diagnostics enqueued = row_count;
  return enqueued;
end;
$$;

comment on function rag.enqueue_collection is
  'Enqueue the extraction of a collection''s documents that the caller sees (rag_build_graph). Returns their number.';

create function rag.on_graph_setting_changed(home rag.collections, was_graphed boolean)
returns void
language plpgsql volatile security invoker set search_path = ''
as $$
declare
  at_once constant integer := 200;
  is_graphed constant boolean := rag.is_in_graph(home.org_id, home.id);
begin
  if not rag.has_scope('documents:write') then
    if is_graphed is distinct from was_graphed then
      raise exception 'The API key may not change documents. Check its scopes.'
        using errcode = 'PT403', detail = 'missing_scope';
    end if;
    return;
  end if;
  perform rag.enqueue_collection(home, not is_graphed);
  if not is_graphed then
    perform rag.delete_graph_of_document(document.org_id, document.id)
    from (
      select documents.org_id, documents.id
      from rag.documents
      join rag.jobs on jobs.org_id = documents.org_id and jobs.id = documents.id and jobs.kind = 'extraction'
      where documents.org_id = home.org_id and documents.collection_id = home.id
      limit at_once
    ) as document;
  end if;
end;
$$;

comment on function rag.on_graph_setting_changed is
  'Enqueue the extraction of the documents that the caller sees, after their collection was added to the graph or '
  'removed from it. The worker extracts their entities or deletes them; up to 200 documents'' are deleted at once.';

create function rag.delete_graph_of_document(org_id uuid, document_id uuid)
returns void
language sql volatile security invoker set search_path = ''
as $$
  delete from rag.relations
  where relations.org_id = delete_graph_of_document.org_id
    and relations.document_id = delete_graph_of_document.document_id;
  delete from rag.mentions
  where mentions.org_id = delete_graph_of_document.org_id
    and mentions.document_id = delete_graph_of_document.document_id;
  delete from rag.title_entities
  where title_entities.org_id = delete_graph_of_document.org_id
    and title_entities.document_id = delete_graph_of_document.document_id;
  delete from rag.jobs
  where jobs.org_id = delete_graph_of_document.org_id and jobs.id = delete_graph_of_document.document_id
    and jobs.kind = 'extraction';
$$;

comment on function rag.delete_graph_of_document is 'Take a document out of the graph.';

-- Weights of names in a question, by the rarity of their words in the documents. A name of frequent words has weight 0.

create function rag.name_rarity(name text, config regconfig, org_id uuid, scope rag.search_scope,
  out rarity double precision, out documents_of_rarest_word bigint)
language plpgsql stable security invoker set search_path = '' set enable_seqscan = off
as $$
#variable_conflict use_column
declare
  words constant text[] := tsvector_to_array(rag.words(config, name));
  parts constant rag.term_segments[] := array(select part from rag.index_totals(array[org_id], scope.collection_ids) as part);
begin
  with counts as (
    select counted.key, counted.documents
    from rag.term_counts(parts, array(select rag.term_key(word) from unnest(words) as word)) as counted
  ), total as (
    -- Smoothing by a hundred documents without the words: a few documents do not show how rare a word is.
    select 100 + coalesce(sum(part.documents), 0) as documents from unnest(parts) as part
  )
  select coalesce(least(1, sum(ln((total.documents + 1) / (coalesce(counts.documents, 0) + 1)))
      / ln(min(total.documents) + 1)), 0)::double precision,
    coalesce(min(coalesce(counts.documents, 0)), 0)::bigint
    into rarity, documents_of_rarest_word
  from unnest(words) as word (term)
  cross join total
  left join counts on counts.key = rag.term_key(word.term);
end;
$$;

comment on function rag.name_rarity is
  'The rarity of a name''s words in the documents of an org: the sum of their inverse document frequencies, as if the '
  'words were independent, divided by that of a word in one document. It is near 0 for stop words and, in an org of '
  'thousands of documents, for words of every document. It is 1 if by chance no document would have all the words. '
  'Also returns the number of documents that have the rarest word.';

create function rag.places_of_name(entity text, org_id uuid, scope rag.search_scope, row_limit integer)
returns bigint
language plpgsql stable security invoker set search_path = ''
-- The function reads an org, or the scope's collections one by one: only one of the two look-ups runs.
set enable_sort = off set enable_seqscan = off
as $$
begin
  return (select count(*)
  from (
    (select from rag.title_entities
    where scope.collection_ids is null and title_entities.org_id = places_of_name.org_id
      and title_entities.entity = places_of_name.entity
    limit row_limit)
    union all
    (select from rag.mentions
    where scope.collection_ids is null and mentions.org_id = places_of_name.org_id
      and mentions.entity = places_of_name.entity
    limit row_limit)
    union all
    (select from unnest(scope.collection_ids) as home (id)
    cross join lateral (
      select from rag.title_entities
      where title_entities.org_id = places_of_name.org_id and title_entities.collection_id = home.id
        and title_entities.entity = places_of_name.entity
      limit row_limit
    ) as inside
    limit row_limit)
    union all
    (select from unnest(scope.collection_ids) as home (id)
    cross join lateral (
      select from rag.mentions
      where mentions.org_id = places_of_name.org_id and mentions.collection_id = home.id
        and mentions.entity = places_of_name.entity
      limit row_limit
    ) as inside
    limit row_limit)
    limit row_limit
  ) as counted);
end;
$$;

comment on function rag.places_of_name is 'How many titles and chunks name an entity, counted up to row_limit.';

create function rag.name_weight(entity text, query_name text, config regconfig, org_id uuid, scope rag.search_scope)
returns double precision
language plpgsql stable security invoker set search_path = ''
as $$
#variable_conflict use_variable
declare
  query_rarity constant record := rag.name_rarity(query_name, config, org_id, scope);
  documents bigint := query_rarity.documents_of_rarest_word;
  -- A name in so many places has its weight, however common its words are.
  places_needed integer;
begin
  if entity <> query_name then
    documents := (rag.name_rarity(entity, config, org_id, scope)).documents_of_rarest_word;
  end if;
  places_needed := least(20, ceil(greatest(1, documents) / 10.0));
  return query_rarity.rarity
    * rag.places_of_name(entity, org_id, scope, places_needed)::double precision / places_needed;
end;
$$;

comment on function rag.name_weight is
  'The probability, 0 to 1, that these words of a question mean the entity: the rarity of the words, reduced if '
  'the entity has fewer places (titles and chunks, of which at most 20 count) than a tenth of the documents with '
  'its rarest word. In a library with the title "Information retrieval" in which the two words are frequent, the words '
  'of a question rarely mean the title.';

-- Entity linking: the entities that a query names. Longer names have priority over shorter ones inside them, exact
-- names over similar ones. Each look-up is an equality or a range in an index, and reads a bounded number of rows.

create type rag.seed_entity as (org_id uuid, entity text, weight double precision, start integer, finish integer);

comment on type rag.seed_entity is
  'A name in a question: the entity, the probability (0 to 1) that the question means the entity, and the positions of '
  'the words in the question.';

create function rag.seed_entity(
  org_id uuid, entity text, weight double precision, start integer default null, finish integer default null
)
returns rag.seed_entity
language plpgsql immutable security invoker set search_path = ''
as $$
begin
  return (org_id, entity, weight, start, finish);
end;
$$;

comment on function rag.seed_entity is 'A seed entity from named fields.';

create function rag.capitalized_words(query_text text)
returns text[]
language sql immutable security invoker set search_path = ''
as $$
  select array(
    select distinct word
    from regexp_matches(left(query_text, 2000), '[^\s]*[[:upper:][:digit:]][^\s]*', 'g') as found (parts)
    cross join lateral unnest(string_to_array(rag.fold_text(found.parts[1]), ' ')) as word
    where word <> '');
$$;

comment on function rag.capitalized_words is
  'The words with a capital or a digit in the beginning of a question, folded.';

create function rag.query_words(folded text)
returns text[]
language sql immutable security invoker set search_path = ''
as $$
  select coalesce((array_agg(found.parts[1]))[:64], '{}')
  from regexp_matches(folded, '((?:[^ \u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3005\u3040-\u30ff'
    '\u3400-\u9fff\uac00-\ud7af\U00020000-\U0003ffff]+|[^ ]) ?)', 'g') as found (parts);
$$;

comment on function rag.query_words is
  'The words of a folded question, at most 64, each with the following blank: the runs between blanks, and single '
  'characters in scripts without blanks or with endings (Thai to Burmese, Khmer, kana, Han, Hangul).';

create function rag.known_names(words text[], capitals text[], scope rag.search_scope)
returns table (org_id uuid, start integer, size integer, entity text, weight double precision)
language plpgsql stable security invoker set search_path = ''
as $$
#variable_conflict use_column
declare
  config constant regconfig := (select rag.text_config(settings.language) from rag.settings);
begin
  return query
  -- On Postgres 15, an inlined expression would reach no index under row security: its functions are not leakproof.
  with gram as materialized (
    select start, size, rtrim(array_to_string(words[start:start + size - 1], '')) as entity
    from generate_series(1, cardinality(words)) as start
    cross join lateral generate_series(1, least(16, cardinality(words) - start + 1)) as size
  )
  select org.id as org_id, gram.start, gram.size, gram.entity,
    case when capitals && string_to_array(gram.entity, ' ') or lower(gram.entity) = upper(gram.entity) then 1
      else 0.5 end::double precision
  from gram
  cross join unnest(scope.org_ids) as org (id)
  -- With offset 0 the planner looks each name up; otherwise it would read all names into a hash table.
  -- By its order it uses the index of the names; otherwise it would scan a table for a row that it takes for frequent.
  cross join lateral (
    (select from rag.title_entities
    where scope.collection_ids is null and title_entities.org_id = org.id and title_entities.entity = gram.entity
    order by title_entities.weight desc limit 1)
    union all
    (select from unnest(scope.collection_ids) as home (id)
    cross join lateral (
      select from rag.title_entities
      where title_entities.org_id = org.id and title_entities.collection_id = home.id
        and title_entities.entity = gram.entity
      order by title_entities.weight desc limit 1
    ) as inside
    limit 1)
    union all
    (select from rag.mentions
    where scope.collection_ids is null and mentions.org_id = org.id and mentions.entity = gram.entity
    order by mentions.weight desc limit 1)
    union all
    (select from unnest(scope.collection_ids) as home (id)
    cross join lateral (
      select from rag.mentions
      where mentions.org_id = org.id and mentions.collection_id = home.id and mentions.entity = gram.entity
      order by mentions.weight desc limit 1
    ) as inside
    limit 1)
    limit 1 offset 0
  ) as known
  where length(gram.entity) between 2 and 200
    and (gram.size > 1 or gram.entity ~ '\D' and rag.words(config, gram.entity) <> '')
  order by org.id, gram.size desc, gram.start;
end;
$$;

comment on function rag.known_names is
  'The runs of words of a question that are names in documents, longest first, each with the probability, by its '
  'capitals, that the question means the name. The parameters are those of rag.link_exact.';

create function rag.link_exact(words text[], capitals text[], scope rag.search_scope)
returns rag.seed_entity[]
language plpgsql stable security invoker set search_path = ''
as $$
declare
  config constant regconfig := (select rag.text_config(settings.language) from rag.settings);
  seeds rag.seed_entity[] := '{}';
  taken boolean[];
  at_org uuid;
  named record;
begin
  for named in select * from rag.known_names(words, capitals, scope)
  loop
    if named.org_id is distinct from at_org then
      at_org := named.org_id;
      taken := array_fill(false, array[cardinality(words)]);
    end if;
    continue when true = any (taken[named.start:named.start + named.size - 1]);
    for position in named.start..named.start + named.size - 1 loop
      taken[position] := true;
    end loop;
    seeds := seeds || rag.seed_entity(org_id => named.org_id, entity => named.entity, weight => named.weight,
      start => named.start, finish => named.start + named.size - 1);
  end loop;
  return array(
    select rag.seed_entity(org_id => seed.org_id, entity => seed.entity, start => seed.start, finish => seed.finish,
      weight => seed.weight * known.weight)
    from (
      select each.org_id, each.entity, rag.name_weight(each.entity, each.entity, config, each.org_id, scope) as weight
      from (select distinct seed.org_id, seed.entity from unnest(seeds) as seed) as each
      offset 0
    ) as known
    join unnest(seeds) as seed on seed.org_id = known.org_id and seed.entity = known.entity);
end;
$$;

comment on function rag.link_exact is
  'The names in the question that documents spell in the same way; of overlapping names, the longest. words: the words '
  'of the folded question (rag.query_words). capitals: the words that have the form of a name. Words without that form '
  'are less probably a name, unless their script has no capitals.';

create function rag.link_entities(query_text text, scope rag.search_scope)
returns rag.seed_entity[]
language plpgsql stable security invoker set search_path = ''
-- With sorting disabled, the planner reads the indexes in their order instead of sorting all rows of a name.
set enable_sort = off
as $$
declare
  words constant text[] := rag.query_words(rag.fold_text(query_text));
  capitals constant text[] := rag.capitalized_words(query_text);
  unfiltered constant boolean := not rag.filters_documents(scope);
  seeds rag.seed_entity[];
begin
  if cardinality(words) = 0 then
    return '{}';
  end if;
  seeds := rag.link_exact(words, capitals, scope);
  seeds := seeds || rag.link_fuzzy(words, capitals, seeds, scope);
  return array(
    select rag.seed_entity(org_id => found.org_id, entity => found.entity, weight => max(found.weight),
      start => (array_agg(found.start order by found.weight desc, found.start))[1],
      finish => (array_agg(found.finish order by found.weight desc, found.start))[1])
    from (
      select seed.* from unnest(seeds) as seed
      union all
      select seed.org_id, same.entity, 0.9 * seed.weight * same.confidence, seed.start, seed.finish
      from unnest(seeds) as seed
      cross join lateral (
        (select relations.object as entity, relations.confidence
        from rag.relations
        where relations.org_id = seed.org_id and relations.subject = seed.entity and relations.type = 'ALIAS_OF'
          and (scope.collection_ids is null or relations.collection_id = any (scope.collection_ids))
          and (unfiltered or rag.is_document_in_scope(relations.org_id, relations.document_id, scope))
        order by relations.confidence desc
        limit 8)
        union all
        (select relations.subject, relations.confidence
        from rag.relations
        where relations.org_id = seed.org_id and relations.object = seed.entity and relations.type = 'ALIAS_OF'
          and (scope.collection_ids is null or relations.collection_id = any (scope.collection_ids))
          and (unfiltered or rag.is_document_in_scope(relations.org_id, relations.document_id, scope))
        order by relations.confidence desc
        limit 8)
        offset 0
      ) as same
    ) as found
    group by found.org_id, found.entity
    -- Words with a lower weight are not linked.
    having max(found.weight) >= 0.2
    order by max(found.weight) desc, min(found.start), found.org_id, found.entity
    limit 32);
end;
$$;

comment on function rag.link_entities is
  'The entities that the question names, and their aliases; at most 32, highest probability first.';

-- Entity linking of names that no document spells as the query does: misspelled names and parts of names.

create function rag.similar_names(org_id uuid, name text, scope rag.search_scope, row_limit integer)
returns table (entity text, likeness double precision)
language plpgsql stable security invoker set search_path = ''
as $$
#variable_conflict use_variable
declare
  heard constant text := rag.phonetic_key(name);
  tail constant text := reverse(heard);
  -- The last character of Unicode: behind a prefix it gives the upper bound of the texts with that prefix.
  beyond constant text := chr(1114111);
  -- The length of the other end that a mistake at one end leaves.
  kept constant integer := greatest(2, (2 * length(heard) + 2) / 3);
  near text[];
begin
  if length(heard) < 2 then
    return;
  end if;
  near := array(
    (select named.entity from rag.title_entities as named
    where named.org_id = similar_names.org_id and named.sound >= left(heard, kept)
      and named.sound < left(heard, kept) || beyond
      and (scope.collection_ids is null or named.collection_id = any (scope.collection_ids))
    limit 100)
    union
    (select named.entity from rag.mentions as named
    where named.org_id = similar_names.org_id and named.sound >= left(heard, kept)
      and named.sound < left(heard, kept) || beyond
      and (scope.collection_ids is null or named.collection_id = any (scope.collection_ids))
    limit 200)
    union
    (select named.entity from rag.title_entities as named
    where named.org_id = similar_names.org_id and named.ending >= left(tail, kept)
      and named.ending < left(tail, kept) || beyond
      and (scope.collection_ids is null or named.collection_id = any (scope.collection_ids))
    limit 100)
    union
    (select named.entity from rag.mentions as named
    where named.org_id = similar_names.org_id and named.ending >= left(tail, kept)
      and named.ending < left(tail, kept) || beyond
      and (scope.collection_ids is null or named.collection_id = any (scope.collection_ids))
    limit 200));
  return query
  select found.entity, max(found.likeness)
  from (
    select found.entity, found.likeness
    from rag.bigram_similarity(similar_names.name, near) as found
    -- Digits must be equal: INC-4822 and INC-4821 are two entities.
    where regexp_replace(found.entity, '[^0-9]', '', 'g') = regexp_replace(similar_names.name, '[^0-9]', '', 'g')
    union all
    -- A part of a name that consists of whole words, e.g., a surname or a first name.
    select whole, 0.75
    from unnest(near) as whole
    where (starts_with(whole, similar_names.name || ' ')
        or right(whole, length(similar_names.name) + 1) = ' ' || similar_names.name)
      -- A single word does not match a name that differs from it by digits alone: February, 27 February.
      and (similar_names.name ~ ' '
        or regexp_replace(whole, '[0-9 ]', '', 'g') <> regexp_replace(similar_names.name, '[0-9]', '', 'g'))
  ) as found
  group by found.entity
  order by 2 desc, 1
  limit row_limit;
end;
$$;

comment on function rag.similar_names is
  'Up to `row_limit` entities of an org that sound like a name, or begin or end with it, most similar first.';

create function rag.link_fuzzy(words text[], capitals text[], known rag.seed_entity[], scope rag.search_scope)
returns rag.seed_entity[]
language plpgsql stable security invoker set search_path = ''
as $$
declare
  config constant regconfig := (select rag.text_config(settings.language) from rag.settings);
  seeds rag.seed_entity[] := '{}';
  open boolean[];
  at_org uuid;
  tried integer;
  best record;
  name text;
begin
  foreach at_org in array scope.org_ids loop
    open := array(
      select rtrim(words[position]) = any (capitals) and rag.words(config, words[position]) <> ''
        and not exists (
          select from unnest(known) as seed
          where seed.org_id = at_org and position between seed.start and seed.finish)
      from generate_series(1, cardinality(words)) as position
      order by position);
    for size in reverse least(5, cardinality(words))..1 loop
      tried := 0;
      for start in 1..cardinality(words) - size + 1 loop
        continue when false = any (open[start:start + size - 1]);
        name := rtrim(array_to_string(words[start:start + size - 1], ''));
        -- Numbers are not corrected, and a year is a part of many names.
        continue when length(name) < 4 or name !~ '[^0-9 ]';
        tried := tried + 1;
        exit when tried > 4;
        select alike.entity, alike.likeness into best from rag.similar_names(at_org, name, scope, 1) as alike;
        continue when not found or best.likeness < 0.6;
        for position in start..start + size - 1 loop
          open[position] := false;
        end loop;
        seeds := seeds || rag.seed_entity(org_id => at_org, entity => best.entity,
          weight => 0.8 * best.likeness * rag.name_weight(best.entity, name, config, at_org, scope),
          start => start, finish => start + size - 1);
      end loop;
    end loop;
  end loop;
  return seeds;
end;
$$;

comment on function rag.link_fuzzy is
  'The names in the question that no document spells in the same way: misspelled names and parts of names. The '
  'function examines runs of at most five words that have the form of a name and that link_exact did not link, '
  'longest first.';

-- The scope of a search (15_search_scope.sql) applied to the graph: its entities and the chunks that it reaches.

create type rag.graph_candidate as (
  org_id uuid, document_id uuid, ordinal integer, weight double precision, entity text
);

comment on type rag.graph_candidate is
  'A chunk (or a whole document if ordinal is null), its weight, and the entity that reaches it with the highest '
  'probability.';

create function rag.is_in_scope(document_id uuid, source_type text, lang text, occurred_at timestamptz,
  scope rag.search_scope)
returns boolean
language sql immutable security invoker set search_path = ''
as $$
  select (scope.source_types is null or source_type = any (scope.source_types))
    and (scope.lang is null or lower(lang) = scope.lang or starts_with(lower(lang), scope.lang || '-'))
    and (scope.date_from is null or occurred_at >= scope.date_from)
    and (scope.date_to is null or occurred_at <= scope.date_to)
    and (scope.document_ids is null or document_id = any (scope.document_ids))
    and (scope.excluded_document_ids is null or document_id <> all (scope.excluded_document_ids))
    and (scope.without_document is null or document_id <> scope.without_document);
$$;

comment on function rag.is_in_scope is
  'Whether a document, or a chunk with these fields, is in a scope: the conditions of rag.where_clause on given '
  'values.';

create function rag.is_document_in_scope(org_id uuid, document_id uuid, scope rag.search_scope)
returns boolean
language sql stable security invoker set search_path = ''
as $$
  select exists (
    select from rag.documents
    where documents.org_id = is_document_in_scope.org_id and documents.id = is_document_in_scope.document_id
      and rag.is_in_scope(documents.id, documents.source_type, documents.lang, documents.occurred_at, scope));
$$;

comment on function rag.is_document_in_scope is 'Whether a document is in a scope, by its id.';

create function rag.seeds_in_scope(seeds rag.seed_entity[], scope rag.search_scope, titles_each integer,
  mentions_each integer)
returns rag.seed_entity[]
language plpgsql stable security invoker set search_path = ''
set enable_sort = off
as $$
begin
  if not rag.filters_documents(scope) then
    return seeds;
  end if;
  return array(
    select seed
    from unnest(seeds) as seed
    where exists (
      select from (
        (select titles.document_id, titles.weight
        from rag.title_entities as titles
        where scope.collection_ids is null and titles.org_id = seed.org_id and titles.entity = seed.entity
        order by titles.weight desc
        limit titles_each)
        union all
        (select inside.document_id, inside.weight
        from unnest(scope.collection_ids) as home (id)
        cross join lateral (
          select titles.document_id, titles.weight
          from rag.title_entities as titles
          where titles.org_id = seed.org_id and titles.collection_id = home.id and titles.entity = seed.entity
          order by titles.weight desc
          limit titles_each
        ) as inside
        order by inside.weight desc
        limit titles_each)
        union all
        (select mentions.document_id, mentions.weight
        from rag.mentions
        where scope.collection_ids is null and mentions.org_id = seed.org_id and mentions.entity = seed.entity
        order by mentions.weight desc
        limit mentions_each)
        union all
        (select inside.document_id, inside.weight
        from unnest(scope.collection_ids) as home (id)
        cross join lateral (
          select mentions.document_id, mentions.weight
          from rag.mentions
          where mentions.org_id = seed.org_id and mentions.collection_id = home.id and mentions.entity = seed.entity
          order by mentions.weight desc
          limit mentions_each
        ) as inside
        order by inside.weight desc
        limit mentions_each)
      ) as named
      cross join lateral (
        select from rag.documents
        where documents.org_id = seed.org_id and documents.id = named.document_id
          and rag.is_in_scope(documents.id, documents.source_type, documents.lang, documents.occurred_at, scope)
        offset 0
      ) as meant));
end;
$$;

comment on function rag.seeds_in_scope is
  'The seeds that a document of the scope names. For each seed a bounded number of titles and chunks is examined.';

create function rag.apply_scope(candidates rag.graph_candidate[], scope rag.search_scope)
returns rag.graph_candidate[]
language plpgsql stable security invoker set search_path = ''
as $$
begin
  if not rag.filters_documents(scope) then
    return candidates;
  end if;
  return array(
    select candidate
    from unnest(candidates) as candidate
    -- With offset 0 the planner looks each row up.
    cross join lateral (
      select from rag.documents
      where documents.org_id = candidate.org_id and documents.id = candidate.document_id
        and rag.is_in_scope(documents.id, documents.source_type, documents.lang, documents.occurred_at, scope)
      offset 0
    ) as meant);
end;
$$;

comment on function rag.apply_scope is 'The graph candidates that are in a scope which filters documents.';

-- Graph expansion: from the linked entities of a query to the chunks that may answer it. Documents about an entity
-- have the highest weight, then the chunks that name the entity, then, one hop further, the documents about entities in
-- these chunks. A stated relation has a higher weight than co-occurrence. Each step reads a bounded number of rows, and
-- starts only within the time limit.

create type rag.neighbour as (
  org_id uuid, entity text, weight double precision, seed text, document_id uuid, ordinal integer
);

comment on type rag.neighbour is
  'An entity that co-occurs with a seed entity: its weight, and the chunk that is the evidence.';

create function rag.neighbour(
  org_id uuid, entity text, weight double precision, seed text default null, document_id uuid default null,
  ordinal integer default null
)
returns rag.neighbour
language plpgsql immutable security invoker set search_path = ''
as $$
begin
  return (org_id, entity, weight, seed, document_id, ordinal);
end;
$$;

comment on function rag.neighbour is 'A neighbour from named fields.';

create function rag.documents_about(seeds rag.seed_entity[], scope rag.search_scope, titles_each integer)
returns table (org_id uuid, document_id uuid, entity text, weight double precision)
language plpgsql stable security invoker set search_path = ''
-- Under row security the planner estimates very few rows, and would read all rows of a name to sort them.
set enable_sort = off
as $$
#variable_conflict use_column
begin
  return query
  select seed.org_id, about.document_id, seed.entity,
    -- If several documents have the title, each has a lower probability of being meant.
    seed.weight * about.weight / (1 + 0.3 * (count(*) over (partition by seed.org_id, seed.entity) - 1))
  from unnest(seeds) as seed
  cross join lateral (
    (select title_entities.document_id, title_entities.weight
    from rag.title_entities
    where scope.collection_ids is null and title_entities.org_id = seed.org_id and title_entities.entity = seed.entity
    order by title_entities.weight desc
    limit titles_each)
    union all
    (select inside.document_id, inside.weight
    from unnest(scope.collection_ids) as home (id)
    cross join lateral (
      select title_entities.document_id, title_entities.weight
      from rag.title_entities
      where title_entities.org_id = seed.org_id and title_entities.collection_id = home.id
        and title_entities.entity = seed.entity
      order by title_entities.weight desc
      limit titles_each
    ) as inside
    order by inside.weight desc
    limit titles_each)
  ) as about;
end;
$$;

comment on function rag.documents_about is
  'The documents whose titles name the entities, up to titles_each for each entity. It reads an org, or the scope''s '
  'collections one by one: only one of the two look-ups runs.';

create function rag.chunks_mentioning(seeds rag.seed_entity[], scope rag.search_scope, mentions_each integer,
  mention_share double precision, rare_share double precision)
returns table (org_id uuid, document_id uuid, ordinal integer, entity text, weight double precision)
language plpgsql stable security invoker set search_path = ''
set enable_sort = off
as $$
#variable_conflict use_column
begin
  return query
  select seed.org_id, mention.document_id, mention.ordinal, seed.entity,
    seed.weight * case when mention.ordinal = 0 and mention.weight = 1
      -- The subject of the document: its title, or the name that its first words define.
      then 0.8 / (0.7 + 0.3 * count(*) filter (where mention.ordinal = 0 and mention.weight = 1)
        over (partition by seed.org_id, seed.entity))
      else (mention_share + rare_share / count(*) over (partition by seed.org_id, seed.entity))
        * (0.5 + 0.5 * mention.weight) / sqrt(1 + count(*) over (partition by seed.org_id, seed.entity) / 24.0) end
  from unnest(seeds) as seed
  cross join lateral (
    (select mentions.document_id, mentions.ordinal, mentions.weight
    from rag.mentions
    where scope.collection_ids is null and mentions.org_id = seed.org_id and mentions.entity = seed.entity
    order by mentions.weight desc
    limit mentions_each)
    union all
    (select inside.document_id, inside.ordinal, inside.weight
    from unnest(scope.collection_ids) as home (id)
    cross join lateral (
      select mentions.document_id, mentions.ordinal, mentions.weight
      from rag.mentions
      where mentions.org_id = seed.org_id and mentions.collection_id = home.id and mentions.entity = seed.entity
      order by mentions.weight desc
      limit mentions_each
    ) as inside
    order by inside.weight desc
    limit mentions_each)
  ) as mention;
end;
$$;

comment on function rag.chunks_mentioning is
  'The chunks that name the entities, up to mentions_each for each entity, read as in rag.documents_about. An entity '
  'that more chunks name has less weight; only the chunks that are read count. A rare name connects its few chunks: '
  'each of n chunks gets rare_share / n in addition to its mention_share.';

create function rag.chunks_naming(seeds rag.seed_entity[], scope rag.search_scope, titles_each integer,
  mentions_each integer, mention_share double precision, rare_share double precision)
returns rag.graph_candidate[]
language plpgsql stable security invoker set search_path = ''
as $$
begin
  return array(
    -- By position: a constructor would be called for thousands of rows.
    select (found.org_id, found.document_id, found.ordinal,
      -- Several paths to an entity raise its weight, as independent probabilities.
      1 - exp(sum(ln(1 - least(0.98, found.weight)))),
      (array_agg(found.entity order by found.weight desc, found.entity))[1])::rag.graph_candidate
    from (
      select about.org_id, about.document_id, null::integer as ordinal, about.entity, about.weight
      from rag.documents_about(seeds, scope, titles_each) as about
      union all
      select named.org_id, named.document_id, named.ordinal, named.entity, named.weight
      from rag.chunks_mentioning(seeds, scope, mentions_each, mention_share, rare_share) as named
    ) as found
    group by found.org_id, found.document_id, found.ordinal);
end;
$$;

comment on function rag.chunks_naming is
  'The documents about the entities, and the chunks that name them, with the shares of a mention in the weight.';

create function rag.strongest_candidates(candidates rag.graph_candidate[], scope rag.search_scope)
returns table (
  org_id uuid, document_id uuid, ordinal integer, weight double precision, entity text, from_ordinal integer,
  to_ordinal integer
)
language plpgsql stable security invoker set search_path = ''
as $$
#variable_conflict use_column
begin
  return query
  select strongest.org_id, strongest.document_id, strongest.ordinal, strongest.weight, strongest.entity,
    coalesce(strongest.ordinal, 0), coalesce(strongest.ordinal, 3)
  from (
    select best.*, row_number() over (partition by best.ordinal is null
      order by best.weight desc, best.document_id, best.ordinal) as turn
    from unnest(candidates) as best
  ) as strongest
  where strongest.turn <= 16 and exists (
    select from rag.chunks
    where chunks.org_id = strongest.org_id and chunks.document_id = strongest.document_id
      and chunks.ordinal = coalesce(strongest.ordinal, 0) and chunks.embedding_model = scope.model);
end;
$$;

comment on function rag.strongest_candidates is
  'The sixteen documents and the sixteen chunks with the highest weights, with the range of ordinals to read in each: '
  'the first four chunks of a document. The bounds are columns, because under row security an index scan cannot use a '
  'bound that is computed in the condition.';

create function rag.co_occurring_entities(candidates rag.graph_candidate[], seeds rag.seed_entity[],
  scope rag.search_scope)
returns rag.neighbour[]
language plpgsql stable security invoker set search_path = ''
as $$
#variable_conflict use_column
begin
  return array(
    with candidate as materialized (
      select * from rag.strongest_candidates(candidates, scope)
    ), named as materialized (
      select candidate.org_id, candidate.document_id, found.ordinal, found.entity, candidate.weight as candidate_weight,
        candidate.entity as seed,
        0.35 + 0.35 * found.weight as strength
      from candidate
      cross join lateral (
        select mentions.ordinal, mentions.entity, mentions.weight
        from rag.mentions
        where mentions.org_id = candidate.org_id and mentions.document_id = candidate.document_id
          and mentions.ordinal between candidate.from_ordinal and candidate.to_ordinal
        order by mentions.ordinal, mentions.weight desc
        limit 60
      ) as found
    ), related as materialized (
      select candidate.org_id, candidate.document_id, found.ordinal, found.entity, candidate.weight as candidate_weight,
        candidate.entity as seed,
        0.75 + 0.25 * found.confidence as strength
      from candidate
      cross join lateral (
        select relations.ordinal, ends.entity, relations.confidence
        from rag.relations
        cross join lateral (values (relations.object, relations.subject), (relations.subject, relations.object))
          as ends (entity, other)
        where relations.org_id = candidate.org_id and relations.document_id = candidate.document_id
          and relations.ordinal between candidate.from_ordinal and candidate.to_ordinal
          and exists (
            select from unnest(seeds) as seed
            where seed.org_id = relations.org_id and seed.entity = ends.other)
        limit 60
      ) as found
    ), way as (
      select distinct on (ways.org_id, ways.entity) ways.org_id, ways.entity,
        ways.candidate_weight * ways.strength as weight, ways.seed, ways.document_id, ways.ordinal
      from (select * from named union all select * from related) as ways
      where not exists (
        select from unnest(seeds) as seed where seed.org_id = ways.org_id and seed.entity = ways.entity)
      order by ways.org_id, ways.entity, ways.candidate_weight * ways.strength desc, ways.document_id, ways.ordinal
    )
    select rag.neighbour(org_id => way.org_id, entity => way.entity, weight => way.weight, seed => way.seed,
      document_id => way.document_id, ordinal => way.ordinal)
    from (select * from way order by way.weight desc, way.entity limit 48) as way
    order by way.weight desc, way.entity);
end;
$$;

comment on function rag.co_occurring_entities is
  'The entities that occur together with the seeds in the strongest of these candidates: the 48 with the highest '
  'weight, each by its best path.';

create function rag.load_chunks(candidates rag.graph_candidate[], query_embedding extensions.halfvec,
  scope rag.search_scope, row_limit integer)
returns rag.graph_candidate[]
language plpgsql stable security invoker set search_path = ''
as $$
begin
  return array(
    with candidate as materialized (
      select best.*
      from unnest(candidates) as best
      order by best.weight desc, best.document_id, best.ordinal
      limit least(2 * row_limit, 200)
    ), chunk as (
      select candidate.org_id, candidate.document_id, found.ordinal, candidate.weight * found.share as weight
      from candidate
      cross join lateral (
        select near.ordinal, case row_number() over (order by near.distance, near.ordinal)
          when 1 then 1.0 else 0.85 end as share
        from (
          select chunks.ordinal, case when query_embedding is null then 0
            else (chunks.embedding operator(extensions.<=>) query_embedding) + 0 end as distance
          from rag.chunks
          where chunks.org_id = candidate.org_id and chunks.document_id = candidate.document_id
            and chunks.ordinal < 32 and chunks.embedding_model = scope.model
        ) as near
        order by near.distance, near.ordinal
        limit 2
      ) as found
      where candidate.ordinal is null
      union all
      select candidate.org_id, candidate.document_id, candidate.ordinal, candidate.weight
      from candidate
      where candidate.ordinal is not null
    )
    select (found.org_id, found.document_id, found.ordinal, 1 - exp(sum(ln(1 - least(0.98, found.weight)))),
      null)::rag.graph_candidate
    from chunk as found
    group by found.org_id, found.document_id, found.ordinal
    order by sum(found.weight) desc, found.document_id, found.ordinal
    limit row_limit);
end;
$$;

comment on function rag.load_chunks is
  'The chunks of the candidates, highest weight first, at most `row_limit`. For a whole document: the two of its first 32 '
  'chunks that are nearest to the question.';

create function rag.next_seeds(neighbours rag.neighbour[], names_of_hit rag.neighbour[], scope rag.search_scope)
returns rag.seed_entity[]
language plpgsql stable security invoker set search_path = ''
as $$
declare
  config constant regconfig := (select rag.text_config(settings.language) from rag.settings);
begin
  return array(
    select rag.seed_entity(org_id => found.org_id, entity => found.entity, weight => max(found.weight))
    from (
      select near.org_id, near.entity, near.weight from unnest(neighbours) as near
      union all
      select near.org_id, near.entity,
        near.weight * rag.name_weight(near.entity, near.entity, config, near.org_id, scope)
      from unnest(names_of_hit[:12]) as near
    ) as found
    group by found.org_id, found.entity);
end;
$$;

comment on function rag.next_seeds is
  'The seeds of the second hop, each once: the neighbours of the question''s names, and the twelve strongest names of '
  'the best hit by the weight of the name.';

create function rag.expand_graph(seeds rag.seed_entity[], best_hit rag.graph_candidate[], scope rag.search_scope,
  query_embedding extensions.halfvec, hops integer, row_limit integer, started timestamptz,
  out chunks rag.graph_candidate[], out neighbours rag.neighbour[], out complete boolean)
language plpgsql stable security invoker set search_path = ''
as $$
declare
  settings rag.settings;
  first rag.graph_candidate[];
  second rag.graph_candidate[];
  -- Seeds of the second hop that the response omits, because the question does not name them.
  names_of_hit rag.neighbour[] := '{}';
  next_seeds rag.seed_entity[];
begin
  select * into settings from rag.settings;
  complete := true;
  neighbours := '{}';
  first := rag.apply_scope(rag.chunks_naming(seeds, scope, 24, settings.mentions_read, 0.35, 0), scope);
  if hops > 1 then
    complete := rag.milliseconds_since(started) < settings.graph_milliseconds;
    if complete then
      neighbours := rag.co_occurring_entities(first, seeds, scope);
      if cardinality(best_hit) > 0 then
        names_of_hit := rag.co_occurring_entities(best_hit, seeds, scope);
      end if;
      next_seeds := rag.next_seeds(neighbours, names_of_hit, scope);
      complete := rag.milliseconds_since(started) < settings.graph_milliseconds;
    end if;
    if complete then
      second := rag.apply_scope(rag.chunks_naming(next_seeds, scope, 4, 12, 0.2, 1.2), scope);
    end if;
  end if;
  chunks := rag.load_chunks(first || second, query_embedding, scope, row_limit);
end;
$$;

comment on function rag.expand_graph is
  'The chunks that the names of the question reach in `hops` hops. 1: the chunks with these names. 2: also the chunks '
  'with names that co-occur with these or are in the best hit. best_hit: an array of at most one candidate. started: the start of '
  'the time limit. complete: whether all steps ran within the time limit.';

-- Entities, edges and evidence in the response of a graph search, read under row security from documents that the
-- caller sees.

create function rag.names_in_text(entities rag.seed_entity[], scope rag.search_scope)
returns table (org_id uuid, entity text, name text, kind text, surfaces text[])
language plpgsql stable security invoker set search_path = ''
set enable_sort = off
as $$
#variable_conflict use_column
declare
  unfiltered constant boolean := not rag.filters_documents(scope);
  -- With filters, more are read than are returned.
  row_limit constant integer := case when unfiltered then 16 else 100 end;
begin
  return query
  select entity.org_id, entity.entity,
    (array_agg(mention.name order by mention.weight desc, mention.name))[1],
    (array_agg(mention.kind order by mention.kind = 'name', mention.weight desc, mention.kind))[1],
    array_agg(surface)
  from unnest(entities) as entity
  cross join lateral (
    select found.*
    from (
      (select mentions.document_id, mentions.name, mentions.kind, mentions.surfaces, mentions.weight
      from rag.mentions
      where scope.collection_ids is null and mentions.org_id = entity.org_id and mentions.entity = entity.entity
      order by mentions.weight desc
      limit row_limit)
      union all
      (select inside.document_id, inside.name, inside.kind, inside.surfaces, inside.weight
      from unnest(scope.collection_ids) as home (id)
      cross join lateral (
        select mentions.document_id, mentions.name, mentions.kind, mentions.surfaces, mentions.weight
        from rag.mentions
        where mentions.org_id = entity.org_id and mentions.collection_id = home.id
          and mentions.entity = entity.entity
        order by mentions.weight desc
        limit row_limit
      ) as inside
      order by inside.weight desc
      limit row_limit)
    ) as found
    where unfiltered or rag.is_document_in_scope(entity.org_id, found.document_id, scope)
    order by found.weight desc
    limit 16
  ) as mention
  left join lateral unnest(mention.surfaces || mention.name) as surface on true
  group by entity.org_id, entity.entity;
end;
$$;

comment on function rag.names_in_text is
  'The names of entities in the text of documents: the most prominent name, its kind, and all spellings.';

create function rag.names_in_titles(entities rag.seed_entity[], scope rag.search_scope)
returns table (org_id uuid, entity text, name text)
language plpgsql stable security invoker set search_path = ''
set enable_sort = off
as $$
#variable_conflict use_column
declare
  unfiltered constant boolean := not rag.filters_documents(scope);
  row_limit constant integer := case when unfiltered then 16 else 100 end;
begin
  return query
  select entity.org_id, entity.entity, (array_agg(title.name order by title.weight desc, title.name))[1]
  from unnest(entities) as entity
  cross join lateral (
    (select title_entities.document_id, title_entities.name, title_entities.weight
    from rag.title_entities
    where scope.collection_ids is null and title_entities.org_id = entity.org_id
      and title_entities.entity = entity.entity
    order by title_entities.weight desc
    limit row_limit)
    union all
    (select inside.document_id, inside.name, inside.weight
    from unnest(scope.collection_ids) as home (id)
    cross join lateral (
      select title_entities.document_id, title_entities.name, title_entities.weight
      from rag.title_entities
      where title_entities.org_id = entity.org_id and title_entities.collection_id = home.id
        and title_entities.entity = entity.entity
      order by title_entities.weight desc
      limit row_limit
    ) as inside
    order by inside.weight desc
    limit row_limit)
  ) as title
  where unfiltered or rag.is_document_in_scope(entity.org_id, title.document_id, scope)
  group by entity.org_id, entity.entity;
end;
$$;

comment on function rag.names_in_titles is 'The most prominent name of each entity in the titles of documents.';

create function rag.render_entities(seeds rag.seed_entity[], neighbours rag.neighbour[], scope rag.search_scope)
returns jsonb
language plpgsql stable security invoker set search_path = ''
as $$
declare
  entities constant rag.seed_entity[] := seeds || array(
    select rag.seed_entity(org_id => near.org_id, entity => near.entity, weight => near.weight)
    from unnest(neighbours) as near);
begin
  return (
    select coalesce(jsonb_agg(jsonb_build_object('id', replace(shown.entity, ' ', '_'), 'org_id', shown.org_id,
      'name', shown.name, 'kind', shown.kind, 'aliases', shown.aliases, 'seed', shown.is_seed,
      'weight', round(shown.weight::numeric, 4)) order by shown.is_seed desc, shown.weight desc, shown.entity), '[]')
    from (
      select entity.org_id, entity.entity, entity.weight, entity.position <= cardinality(seeds) as is_seed,
        coalesce(text.name, title.name) as name, coalesce(text.kind, 'name') as kind,
        array(
          select distinct surface
          from unnest(text.surfaces || title.name) as surface
          where surface is not null and surface <> coalesce(text.name, title.name)
          order by surface
          limit 10) as aliases
      from unnest(entities) with ordinality as entity (org_id, entity, weight, start, finish, position)
      left join rag.names_in_text(entities, scope) as text
        on text.org_id = entity.org_id and text.entity = entity.entity
      left join rag.names_in_titles(entities, scope) as title
        on title.org_id = entity.org_id and title.entity = entity.entity
      where coalesce(text.name, title.name) is not null
    ) as shown);
end;
$$;

comment on function rag.render_entities is
  'The entities, by their names as documents write them most prominently, with other spellings as aliases.';

create function rag.edges_among(org_id uuid, entities text[], scope rag.search_scope, row_limit integer)
returns jsonb[]
language plpgsql stable security invoker set search_path = ''
set enable_sort = off
as $$
#variable_conflict use_column
declare
  unfiltered constant boolean := not rag.filters_documents(scope);
begin
  return array(
    select jsonb_build_object('type', stated.type, 'from', replace(stated.subject, ' ', '_'),
      'to', replace(stated.object, ' ', '_'), 'org_id', edges_among.org_id,
      'confidence', round(stated.confidence::numeric, 4), 'evidence', stated.evidence)
    from (
      select statement.subject, statement.type, statement.object,
        max(statement.confidence) as confidence,
        (array_agg(chunks.id order by statement.confidence desc, chunks.id))[:5] as evidence
      from (select distinct entity from unnest(edges_among.entities) as entity) as ends
      cross join lateral (
        select relations.subject, relations.type, relations.object, relations.confidence, relations.document_id,
          relations.ordinal
        from rag.relations
        where relations.org_id = edges_among.org_id and relations.subject = ends.entity
          and (scope.collection_ids is null or relations.collection_id = any (scope.collection_ids))
        order by relations.confidence desc
        limit 50
      ) as statement
      join rag.chunks on chunks.org_id = edges_among.org_id and chunks.document_id = statement.document_id
        and chunks.ordinal = statement.ordinal and chunks.embedding_model = scope.model
        and (unfiltered
          or rag.is_in_scope(chunks.document_id, chunks.source_type, chunks.lang, chunks.occurred_at, scope))
      where statement.object = any (edges_among.entities)
      group by statement.subject, statement.type, statement.object
      order by 4 desc, 1, 2, 3
      limit row_limit
    ) as stated);
end;
$$;

comment on function rag.edges_among is
  'The edges between the entities that documents state, highest confidence first, at most `row_limit`. The confidence '
  'of an edge is the highest of its statements.';

create function rag.is_about(org_id uuid, document_id uuid, entity text)
returns boolean
language sql stable security invoker set search_path = ''
as $$
  select exists (
    select from rag.title_entities
    where title_entities.org_id = is_about.org_id and title_entities.document_id = is_about.document_id
      and title_entities.entity = is_about.entity);
$$;

comment on function rag.is_about is 'Whether a document''s title names an entity.';

create function rag.co_occurrence_edges(neighbours rag.neighbour[], stated jsonb[])
returns jsonb[]
language plpgsql stable security invoker set search_path = ''
as $$
begin
  return array(
    select jsonb_build_object('type', 'RELATED_TO',
      'from', replace(case when turned then near.entity else near.seed end, ' ', '_'),
      'to', replace(case when turned then near.seed else near.entity end, ' ', '_'), 'org_id', near.org_id,
      'confidence', round((0.5 * near.weight)::numeric, 4), 'evidence', array[chunks.id])
    from unnest(neighbours) as near
    cross join lateral (
      select rag.is_about(near.org_id, near.document_id, near.entity)
        and not rag.is_about(near.org_id, near.document_id, near.seed)
    ) as direction (turned)
    join rag.chunks on chunks.org_id = near.org_id and chunks.document_id = near.document_id
      and chunks.ordinal = near.ordinal
    where near.seed is not null and near.seed <> near.entity and not exists (
      select from unnest(stated) as edge
      where edge ->> 'org_id' = near.org_id::text
        and (edge ->> 'from', edge ->> 'to') in (
          (replace(near.seed, ' ', '_'), replace(near.entity, ' ', '_')),
          (replace(near.entity, ' ', '_'), replace(near.seed, ' ', '_'))))
    order by near.weight desc, near.entity);
end;
$$;

comment on function rag.co_occurrence_edges is
  'The edges of entities that occur together without a stated relation: from the subject of the document to the '
  'entities that the document names, otherwise from the seed to the co-occurring entities.';

create function rag.edges_between(edges jsonb[], entities jsonb)
returns jsonb[]
language plpgsql immutable security invoker set search_path = ''
as $$
declare
  shown constant jsonb := (
    select coalesce(jsonb_object_agg((entity ->> 'org_id') || ' ' || (entity ->> 'id'), true), '{}')
    from jsonb_array_elements(entities) as entity);
begin
  return array(
    select edge
    from unnest(edges) with ordinality as listed (edge, position)
    where shown ? ((edge ->> 'org_id') || ' ' || (edge ->> 'from'))
      and shown ? ((edge ->> 'org_id') || ' ' || (edge ->> 'to'))
    order by position);
end;
$$;

comment on function rag.edges_between is 'The edges whose two ends are both in the response.';

create function rag.render_graph(seeds rag.seed_entity[], neighbours rag.neighbour[], scope rag.search_scope)
returns jsonb
language plpgsql stable security invoker set search_path = ''
as $$
declare
  near constant rag.neighbour[] := neighbours[:16];
  stated jsonb[] := '{}';
  edges jsonb[];
  entities jsonb;
  at_org uuid;
begin
  for at_org in select distinct seed.org_id from unnest(seeds) as seed order by 1 loop
    stated := stated || rag.edges_among(at_org, array(
      select seed.entity from unnest(seeds) as seed where seed.org_id = at_org
      union
      select other.entity from unnest(near) as other where other.org_id = at_org), scope, 32);
  end loop;
  entities := rag.render_entities(seeds, near, scope);
  edges := rag.edges_between(stated || rag.co_occurrence_edges(near, stated), entities);
  return jsonb_build_object('entities', entities, 'edges', to_jsonb(edges),
    'evidence', coalesce((
      select jsonb_agg(statement.id order by statement.position)
      from (
        select id, min(position) as position
        from unnest(edges) with ordinality as edge (body, position)
        cross join lateral jsonb_array_elements_text(edge.body -> 'evidence') as id
        group by id
        order by 2, 1
        limit 50
      ) as statement), '[]')
    -- Also evidence for a name of the question without an edge.
    || coalesce((
      select jsonb_agg(distinct named.id)
      from unnest(seeds) as seed
      cross join lateral (
        select chunks.id
        from (
          select mentions.document_id, mentions.ordinal
          from rag.mentions
          where mentions.org_id = seed.org_id and mentions.entity = seed.entity
            and (scope.collection_ids is null or mentions.collection_id = any (scope.collection_ids))
          order by mentions.weight desc
          limit 1
        ) as best
        join rag.chunks on chunks.org_id = seed.org_id and chunks.document_id = best.document_id
          and chunks.ordinal = best.ordinal and chunks.embedding_model = scope.model
        where rag.is_in_scope(chunks.document_id, chunks.source_type, chunks.lang, chunks.occurred_at, scope)
      ) as named
      where not exists (
        select from unnest(edges) as edge
        where edge ->> 'org_id' = seed.org_id::text
          and replace(seed.entity, ' ', '_') in (edge ->> 'from', edge ->> 'to'))), '[]'));
end;
$$;

comment on function rag.render_graph is
  'Entities, edges and evidence of a search: all seeds, and the sixteen neighbours with the highest weights.';

-- The graph's share in the score of a candidate. Candidates that only the graph reached get the score that the legs
-- would have given to them.

create function rag.fuse_graph_scores(candidates rag.candidate[], graph_candidates rag.graph_candidate[],
  first_hit uuid, share double precision, row_limit integer)
returns rag.candidate[]
language plpgsql stable security invoker set search_path = ''
as $$
begin
  return (
    with weighed as (
      select candidate.*, (1 - share) * coalesce(candidate.score, 0)
        -- An S-curve: a chunk that one good path reached counts nearly as much as one that many paths reached.
        + share * graph.weight ^ 2 / (graph.weight ^ 2 + 0.06) as joined_score
      from unnest(candidates) as candidate
      cross join (select max(reached.weight) from unnest(graph_candidates) as reached) as highest (weight)
      left join unnest(graph_candidates) as reached on reached.org_id = candidate.org_id
        and reached.document_id = candidate.document_id and reached.ordinal = candidate.ordinal
      cross join lateral (
        select coalesce(case when candidate.chunk_id = first_hit then highest.weight end, reached.weight, 0)
      ) as graph (weight)
    ), best as (
      select *, row_number() over (order by joined_score desc, chunk_id is not distinct from first_hit desc, chunk_id)
        as rank
      from weighed
      order by rank
      limit row_limit
    )
    select array_agg(rag.candidate(org_id => best.org_id, document_id => best.document_id, ordinal => best.ordinal,
      chunk_id => best.chunk_id, content => best.content, span_start => best.span_start, span_end => best.span_end,
      similarity => best.similarity, word_score => best.word_score, score => least(1, best.joined_score))
      order by best.rank)
    from best);
end;
$$;

comment on function rag.fuse_graph_scores is
  'At most `row_limit` candidates of the search and of the graph, by the fused score: the score of the '
  'search, and an S-curve of the probability with which the graph reached the chunk, both 0 to 1. The first hit of '
  'the search counts as reached with the highest probability, so that no hit of the search takes its place.';

create function rag.score_graph_candidates(graph_candidates rag.graph_candidate[], known rag.candidate[],
  query_text text, query_embedding extensions.halfvec, scope rag.search_scope, mode text)
returns rag.candidate[]
language plpgsql stable security invoker set search_path = ''
as $$
declare
  candidates rag.candidate[];
  scored rag.candidate[];
begin
  candidates := array(
    select rag.candidate(org_id => found.org_id, document_id => found.document_id, ordinal => found.ordinal,
      chunk_id => found.id, content => found.content, span_start => found.span_start, span_end => found.span_end,
      similarity => case when query_embedding is not null
        then greatest(0, least(1, 1 - (found.embedding operator(extensions.<=>) query_embedding))) end)
    from unnest(graph_candidates) as reached
    cross join lateral (
      select chunks.*
      from rag.chunks
      where chunks.org_id = reached.org_id and chunks.document_id = reached.document_id
        and chunks.ordinal = reached.ordinal and chunks.embedding_model = scope.model
      offset 0
    ) as found
    where not exists (select from unnest(known) as candidate where candidate.chunk_id = found.id));
  if cardinality(candidates) = 0 then
    return candidates;
  elsif mode = 'semantic' then
    -- The keyword score is not part of this score.
    return array(
      select rag.candidate(org_id => candidate.org_id, document_id => candidate.document_id,
        ordinal => candidate.ordinal, chunk_id => candidate.chunk_id, content => candidate.content,
        span_start => candidate.span_start, span_end => candidate.span_end, similarity => candidate.similarity,
        score => candidate.similarity)
      from unnest(candidates) as candidate);
  end if;
  scored := rag.score_candidates(rag.parse_keyword_query(query_text, scope),
    array(
      select distinct (candidate.org_id, candidate.document_id)::rag.document_key
      from unnest(candidates) as candidate),
    candidates, query_embedding, scope, mode, 0, 0, false);
  return scored || array(
    select candidate from unnest(candidates) as candidate
    where not exists (select from unnest(scored) as other where other.chunk_id = candidate.chunk_id));
end;
$$;

comment on function rag.score_graph_candidates is
  'The chunks that only the graph reached, with the score that the search would have given to them without phrase '
  'proximity. In a keyword search, a chunk without a word of the query has the score null.';

create function rag.share_of_names(query_text text, seeds rag.seed_entity[])
returns double precision
language sql stable security invoker set search_path = ''
as $$
  with word as (
    select position
    from rag.settings
    cross join unnest(rag.query_words(rag.fold_text(query_text))) with ordinality as words (word, position)
    where rag.words(rag.text_config(settings.language), word) <> ''
  )
  select least(1, 3 * coalesce(sum(named.weight), 0) / greatest(1, count(*)))
  from word
  left join lateral (
    select max(seed.weight) as weight from unnest(seeds) as seed where word.position between seed.start and seed.finish
  ) as named on true;
$$;

comment on function rag.share_of_names is
  'How much a question is about names: 0 without names, 1 if at least a third of its words, without stop words, are '
  'names. A word of a name counts by the weight of the name.';

create function rag.lead_of_best_hit(candidates rag.candidate[])
returns double precision
language sql immutable security invoker set search_path = ''
as $$
  select case when max(document.score) > 0 then least(1, 2 - 2 / max(document.score)
    * coalesce((array_agg(document.score order by document.score desc))[5], 0)) else 0 end
  from (
    select max(candidate.score) as score
    from unnest(candidates) as candidate
    where candidate.score is not null
    group by candidate.org_id, candidate.document_id
  ) as document;
$$;

comment on function rag.lead_of_best_hit is
  'How much better the best hit is than the fifth document, 0 to 1: 1 if its score is at least twice as high. If many '
  'documents match a question equally well, the names in the best one are rarely relevant to the question.';

create function rag.add_graph_candidates(candidates rag.candidate[], graph_candidates rag.graph_candidate[],
  query_text text, query_embedding extensions.halfvec, scope rag.search_scope, legs text,
  certainty double precision, row_limit integer)
returns rag.candidate[]
language plpgsql stable security invoker set search_path = ''
as $$
declare
  share constant double precision := (select settings.graph_share from rag.settings) * certainty;
begin
  if cardinality(graph_candidates) = 0 then
    return candidates;
  end if;
  return rag.fuse_graph_scores(
    candidates || rag.score_graph_candidates(graph_candidates, candidates, query_text, query_embedding, scope, legs),
    graph_candidates, (candidates[1]).chunk_id, share, row_limit);
end;
$$;

comment on function rag.add_graph_candidates is
  'The candidates of the legs together with those of the graph, up to row_limit, by the fused score. certainty: '
  'rag.share_of_names or rag.lead_of_best_hit, which multiplies the graph''s share of the score.';

-- Graph search: the legs of rag_search and the expanded graph, fused in one call. The graph starts at the names of the
-- question and, if less than a third of the question is names, also at the names in the best hit.

create function rag.render_matches(shown rag.candidate[], by_legs rag.candidate[],
  graph_candidates rag.graph_candidate[], exact boolean, considered bigint, vector_ms real, lexical_ms real,
  ignored_filters text[])
returns jsonb
language plpgsql stable security invoker set search_path = ''
as $$
begin
  return (
    select coalesce(jsonb_agg(to_jsonb(row_shown) || jsonb_build_object('graph_score', coalesce(graph.weight, 0),
      'graph_sourced', coalesce(graph.weight, 0) > 0 and not exists (
        select from unnest(by_legs) as candidate where candidate.chunk_id = row_shown.chunk_id))), '[]')
    from rag.to_rows(shown, exact, considered, vector_ms, lexical_ms, ignored_filters) as row_shown
    left join lateral (
      select max(found.weight)
      from unnest(graph_candidates) as found
      where found.org_id = row_shown.org_id and found.document_id = row_shown.document_id
        and found.ordinal = row_shown.ordinal
    ) as graph (weight) on true);
end;
$$;

comment on function rag.render_matches is
  'The hits as JSON, each with the probability with which the graph reached it, and whether the search without the '
  'graph would have omitted it.';

create function public.rag_graph_search(
  query_text text,
  query_vector extensions.vector default null,
  mode text default 'graph',
  top_k integer default 10,
  filters jsonb default '{}',
  expand_context integer default 0,
  half_life_days double precision default null,
  prefer text[] default null,
  hops integer default 2,
  judged_text text default null,
  judged_top_k integer default null
)
returns jsonb
language plpgsql stable security invoker set search_path = ''
-- Planning under row security takes longer than most of these statements run.
set plan_cache_mode = force_generic_plan
as $$
declare
  pool constant integer := greatest(20, 2 * least(top_k, 300));
  legs text := case mode when 'graph' then 'hybrid' else mode end;
  query_embedding extensions.halfvec;
  scope rag.search_scope;
  search record;
  seeds rag.seed_entity[];
  names_share double precision;
  lead double precision;
  expansion record;
  candidates rag.candidate[];
  started timestamptz;
  graph_ms real;
begin
  perform rag.limit_direct_call();
  perform rag.check_search(query_text, query_vector, legs, expand_context, half_life_days);
  perform rag.check_graph(query_text, top_k, hops), rag.check_prefer(prefer);
  judged_text := coalesce(judged_text, query_text);
  if judged_top_k is not null then
    perform rag.check_judged(judged_text, query_vector, judged_top_k);
  end if;
  scope := rag.resolve_filters(filters);
  if legs in ('hybrid', 'hierarchical') and not rag.uses_keywords(scope) then
    legs := 'semantic';
  end if;
  if query_vector is not null then
    query_embedding := rag.to_halfvec(query_vector, scope.model);
  end if;

  search := rag.two_leg_search(query_embedding, query_text, scope, legs, pool, top_k, judged_text, judged_top_k);
  if legs = 'keyword' and judged_top_k is not null then
    -- The vector is that of the judged matches alone.
    query_embedding := null;
  end if;
  started := clock_timestamp();
  seeds := rag.seeds_in_scope(
    rag.link_entities(query_text, scope), scope, 24, (select settings.mentions_read from rag.settings));
  names_share := rag.share_of_names(query_text, seeds);
  lead := rag.lead_of_best_hit(search.candidates);
  -- The weight of the names in the best hit rises with its lead, and falls with the share of names in the question.
  expansion := rag.expand_graph(seeds, array(
    select (hit.org_id, hit.document_id, hit.ordinal, lead * (1 - names_share), null)::rag.graph_candidate
    from unnest((search.candidates)[:1]) as hit
    where names_share < 1), scope, query_embedding, hops, pool, started);
  graph_ms := rag.milliseconds_since(started);
  candidates := rag.to_page(
    rag.add_graph_candidates(search.candidates, expansion.chunks, query_text, query_embedding, scope, legs,
      greatest(names_share, lead), pool),
    half_life_days, prefer, top_k, expand_context);
  return rag.render_graph(seeds, expansion.neighbours, scope) || jsonb_build_object('complete', expansion.complete,
    'graph_ms', graph_ms, 'matches', rag.render_matches(candidates, (search.candidates)[:top_k], expansion.chunks,
      search.exact, search.considered, search.vector_ms, search.lexical_ms, scope.ignored_filters))
    || case when scope.ignored_filters is null then '{}'
      else jsonb_build_object('ignored_filters', scope.ignored_filters) end
    || case when judged_top_k is null then '{}'
      else jsonb_build_object('judged', (
        select coalesce(jsonb_agg(hit), '[]')
        from rag.to_rows(search.judged, search.exact, search.considered, search.judged_vector_ms,
          search.judged_lexical_ms) as hit))
      end;
end;
$$;

comment on function public.rag_graph_search is
  'Search by vector and keywords together with the graph of the query''s entities. query_text, query_vector, '
  'filters, expand_context, half_life_days, prefer: as in rag_search. mode: graph (the legs of hybrid), or a mode of '
  'rag_search, whose legs the graph then supplements. hops: the hops of the expansion, 1 or 2. Returns {matches, '
  'entities, edges, evidence, complete, graph_ms}, and ignored_filters if there are any; with judged_top_k also judged '
  'as in rag_judged_search.';

create function rag.check_graph(query_text text, top_k integer, hops integer)
returns void
language plpgsql immutable security invoker set search_path = ''
as $$
begin
  perform rag.check_top_k(top_k);
  if coalesce(query_text, '') = '' then
    raise exception 'a graph search needs query_text' using errcode = 'PT400', detail = 'missing_text';
  elsif hops is null or hops not between 1 and 2 then
    raise exception 'hops must be 1 or 2' using errcode = 'PT400', detail = 'invalid_hops';
  end if;
end;
$$;

comment on function rag.check_graph is
  'Raises PT400 for invalid arguments of a graph search; detail names the argument.';

-- Graph of given documents, for /v1/contents: their entities and relations, and the relations of these entities that
-- other visible documents state.

create function rag.document_entities(org_id uuid, document_id uuid, row_limit integer)
returns rag.seed_entity[]
language plpgsql stable security invoker set search_path = ''
as $$
begin
  return array(
    select rag.seed_entity(
      org_id => document_entities.org_id, entity => named.entity, weight => max(named.weight))
    from (
      (select title_entities.entity, title_entities.weight
      from rag.title_entities
      where title_entities.org_id = document_entities.org_id
        and title_entities.document_id = document_entities.document_id
        and title_entities.weight >= 0.9)
      union all
      (select mentions.entity, 0.8 * mentions.weight
      from rag.mentions
      where mentions.org_id = document_entities.org_id and mentions.document_id = document_entities.document_id
      order by mentions.ordinal, mentions.weight desc
      limit 1000)
    ) as named
    group by named.entity
    order by max(named.weight) desc, named.entity
    limit row_limit);
end;
$$;

comment on function rag.document_entities is
  'At most `row_limit` entities of a document, those with the highest weights: the entities of its title first, then '
  'the entities that its chunks name.';

create function rag.edges_touching(org_id uuid, entities text[], scope rag.search_scope, document_id uuid,
  row_limit integer)
returns jsonb[]
language plpgsql stable security invoker set search_path = ''
set enable_sort = off
as $$
#variable_conflict use_column
begin
  return array(
    select jsonb_build_object('type', stated.type, 'from', replace(stated.subject, ' ', '_'),
      'to', replace(stated.object, ' ', '_'), 'org_id', edges_touching.org_id,
      'confidence', round(stated.confidence::numeric, 4), 'evidence', stated.evidence)
    from (
      select statement.subject, statement.type, statement.object,
        max(statement.confidence) as confidence,
        (array_agg(chunks.id order by statement.confidence desc, chunks.id))[:5] as evidence
      from (
        (select relations.subject, relations.type, relations.object, relations.confidence, relations.document_id,
          relations.ordinal
        from rag.relations
        where relations.org_id = edges_touching.org_id and relations.document_id = edges_touching.document_id
          and (relations.subject = any (edges_touching.entities) or relations.object = any (edges_touching.entities))
        order by relations.ordinal
        limit 1000)
        union all
        -- An edge between two of the entities is read from both ends.
        select distinct found.*
        from (
          select distinct entity from unnest(edges_touching.entities) as entity where edges_touching.document_id is null
        ) as ends
        cross join lateral (
          (select relations.subject, relations.type, relations.object, relations.confidence, relations.document_id,
            relations.ordinal
          from rag.relations
          where relations.org_id = edges_touching.org_id and relations.subject = ends.entity
            and (scope.collection_ids is null or relations.collection_id = any (scope.collection_ids))
          order by relations.confidence desc
          limit 50)
          union all
          (select relations.subject, relations.type, relations.object, relations.confidence, relations.document_id,
            relations.ordinal
          from rag.relations
          where relations.org_id = edges_touching.org_id and relations.object = ends.entity
            and (scope.collection_ids is null or relations.collection_id = any (scope.collection_ids))
          order by relations.confidence desc
          limit 50)
          offset 0
        ) as found
      ) as statement
      join rag.chunks on chunks.org_id = edges_touching.org_id and chunks.document_id = statement.document_id
        and chunks.ordinal = statement.ordinal
      group by statement.subject, statement.type, statement.object
      order by 4 desc, 1, 2, 3
      limit row_limit
    ) as stated);
end;
$$;

comment on function rag.edges_touching is
  'The edges that chunks state and that begin or end at one of the entities, from at most a thousand statements; only '
  'the edges of one document, unless document_id is null.';

create function rag.graph_of_document(org_id uuid, document_id uuid, scope rag.search_scope, hops integer)
returns jsonb
language plpgsql stable security invoker set search_path = ''
as $$
#variable_conflict use_variable
declare
  seeds rag.seed_entity[] := rag.document_entities(org_id, document_id, 32);
  reached text[] := array(select seed.entity from unnest(seeds) as seed);
  edges jsonb[] := rag.edges_touching(org_id, reached, scope, case when hops = 0 then document_id end, 64);
  further rag.neighbour[] := '{}';
  entities jsonb;
begin
  for hop in 1..greatest(1, hops) loop
    reached := reached || array(
      select distinct ends.entity
      from unnest(edges) as edge
      cross join lateral (values (edge ->> 'from'), (edge ->> 'to')) as named (id)
      cross join lateral (select replace(named.id, '_', ' ')) as ends (entity)
      where ends.entity <> all (reached));
    exit when hop >= hops;
    edges := rag.edges_touching(org_id, reached[:128], scope, null, 128);
  end loop;
  further := array(
    select rag.neighbour(org_id => org_id, entity => ends.entity, weight => 0.1)
    from unnest(reached) as ends (entity)
    where not exists (select from unnest(seeds) as seed where seed.entity = ends.entity));
  entities := rag.render_entities(seeds, further, scope);
  edges := rag.edges_between(edges, entities);
  return jsonb_build_object('entities', entities, 'edges', to_jsonb(edges),
    'evidence', coalesce((
      select jsonb_agg(distinct id)
      from unnest(edges) as edge
      cross join lateral jsonb_array_elements_text(edge -> 'evidence') as id), '[]'));
end;
$$;

comment on function rag.graph_of_document is
  'Entities of a document and the relations stated about these entities, without co-occurrences.';

create function public.rag_graph_of(org_id uuid, document_ids uuid[], collection_id uuid default null,
  hops integer default 1)
returns jsonb
language plpgsql stable security invoker set search_path = ''
set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_variable
declare
  scope rag.search_scope;
begin
  perform rag.limit_direct_call(), rag.require_scope('documents:read', 'retrievals:read', 'chat:read');
  if document_ids is null or cardinality(document_ids) > 20 then
    raise exception 'document_ids must have at most 20 ids' using errcode = 'PT400', detail = 'invalid_ids';
  elsif hops is null or hops not between 0 and 2 then
    raise exception 'hops must be 0, 1 or 2' using errcode = 'PT400', detail = 'invalid_hops';
  end if;
  scope.org_ids := array[org_id];
  scope.collection_ids := case when collection_id is not null then array[collection_id] end;
  return coalesce((
    select jsonb_object_agg(present.id, rag.graph_of_document(org_id, present.id, scope, hops))
    from rag.documents as present
    where present.org_id = rag_graph_of.org_id and present.id = any (document_ids)
      and (collection_id is null or present.collection_id = rag_graph_of.collection_id)), '{}');
end;
$$;

comment on function public.rag_graph_of is
  'The graph of each of the documents that the caller sees in that org, or in that collection of it: {document id: '
  '{entities, edges, evidence}}. hops: 0, the relations that the document states; 1, also the relations of its '
  'entities in other documents; 2, also the relations of the entities at their ends. At most twenty documents.';

-- Chat sessions and their messages. A session belongs to its user alone: the org's admins do not read it. It is about
-- one collection, or about everything that its user sees. A turn (a question and its answer) is stored when it is
-- complete, as its user (rag_save_turn); the next turn reads it (rag_open_session).

create table rag.sessions (
  org_id uuid not null references rag.orgs (id) on delete cascade,
  id uuid not null default gen_random_uuid(),
  owner_id uuid not null,
  collection_id uuid,
  title text not null check (length(title) <= 200 and rag.is_visible_text(title)),
  message_count integer not null default 0 check (message_count >= 0),
  created_at timestamptz not null default clock_timestamp(),
  last_message_at timestamptz not null default clock_timestamp(),
  auth_user_id uuid generated always as (rag.auth_user_id(owner_id)) stored references auth.users (id) on delete cascade,
  primary key (org_id, id),
  -- The key of messages, which belong to the session's user alone.
  constraint sessions_owner unique (org_id, id, owner_id),
  foreign key (org_id, collection_id) references rag.collections (org_id, id) on delete set null (collection_id)
);

comment on table rag.sessions is 'Chat sessions, each of one user.';
comment on column rag.sessions.collection_id is
  'Null: the session is about no single collection, or its collection was deleted; the next turn in a collection '
  'sets that one.';
comment on column rag.sessions.title is 'From the first question; empty before it.';
comment on column rag.sessions.message_count is 'Also the ordinal of the message that comes next.';

-- rag_list_sessions.
create index sessions_by_owner on rag.sessions (owner_id, last_message_at desc, id);
-- Deleting a user.
create index sessions_by_auth_user on rag.sessions (auth_user_id);
-- Deleting a collection.
create index sessions_by_collection on rag.sessions (org_id, collection_id);

create table rag.messages (
  org_id uuid not null,
  session_id uuid not null,
  ordinal integer not null check (ordinal >= 0),
  id uuid not null default gen_random_uuid(),
  owner_id uuid not null,
  collection_id uuid,
  role text not null check (role in ('user', 'assistant', 'system')),
  content text not null check (length(content) <= 100000),
  details jsonb not null default '{}' check (rag.is_metadata(details)),
  created_at timestamptz not null default clock_timestamp(),
  -- A session has one owner: the ordinal is unique in it.
  primary key (org_id, session_id, owner_id, ordinal),
  foreign key (org_id, session_id, owner_id) references rag.sessions (org_id, id, owner_id) on delete cascade,
  foreign key (org_id, collection_id) references rag.collections (org_id, id) on delete set null (collection_id)
);

comment on table rag.messages is 'Messages of chat sessions, in order.';
comment on column rag.messages.collection_id is
  'The session''s collection at the time of the message. It stays null when the session gets a collection later.';
comment on column rag.messages.details is 'Of an answer: its citations and its usage.';

-- Deleting a collection.
create index messages_by_collection on rag.messages (org_id, collection_id);

call rag.admit_members('sessions');
call rag.bind_keys('sessions');
call rag.admit_members('messages');
call rag.bind_keys('messages');

create policy "a session is its user's alone" on rag.sessions
  as restrictive for all to authenticated
  using (owner_id = (select rag.current_user_id()))
  with check (owner_id = (select rag.current_user_id()));

create policy "a session is its user's alone" on rag.messages
  as restrictive for all to authenticated
  using (owner_id = (select rag.current_user_id()))
  with check (owner_id = (select rag.current_user_id()));

-- Answers repeat texts of the collection.
create policy "a session needs the view of its collection" on rag.sessions
  as restrictive for all to authenticated
  using (collection_id is null or collection_id not in (select rag.closed_collections('view')))
  with check (collection_id is null or collection_id not in (select rag.closed_collections('view')));

create policy "a message needs the view of its collection" on rag.messages
  as restrictive for all to authenticated
  using (collection_id is null or collection_id not in (select rag.closed_collections('view')))
  with check (collection_id is null or collection_id not in (select rag.closed_collections('view')));

create policy "a key chats with chat:read" on rag.sessions
  as restrictive for all to authenticated
  using ((select rag.has_scope('chat:read')))
  with check ((select rag.has_scope('chat:read')));

create policy "a key chats with chat:read" on rag.messages
  as restrictive for all to authenticated
  using ((select rag.has_scope('chat:read')))
  with check ((select rag.has_scope('chat:read')));

create function rag.require_chat_scope()
returns void
language plpgsql stable security invoker set search_path = ''
as $$
begin
  if not rag.has_scope('chat:read') then
    raise exception 'The API key lacks the scope chat:read. Use a key that has it.'
      using errcode = 'PT403', detail = 'missing_scope';
  end if;
end;
$$;

comment on function rag.require_chat_scope is 'Raises PT403 for a key without the scope chat:read.';

create function rag.get_session(session_id uuid)
returns rag.sessions
language plpgsql stable security invoker set search_path = ''
as $$
declare
  found_session rag.sessions;
begin
  perform rag.require_chat_scope();
  select * into found_session
  from rag.sessions
  where org_id = any (array(select rag.current_org_ids())) and id = get_session.session_id;
  if not found then
    raise exception 'There is no such session. Check its id.' using errcode = 'PT404', detail = 'session_not_found';
  end if;
  return found_session;
end;
$$;

comment on function rag.get_session is 'The session of that id; PT404 for one that is not the caller''s.';

-- Turns of a chat: the session and its latest messages are read before a turn, and the turn is stored after it.

create function rag.check_messages(messages jsonb)
returns void
language plpgsql immutable security invoker set search_path = ''
as $$
begin
  if coalesce(jsonb_typeof(messages), 'null') <> 'array' or jsonb_array_length(messages) not between 1 and 1000 then
    raise exception 'messages must be a list of 1 to 1000 messages'
      using errcode = 'PT400', detail = 'invalid_messages';
  elsif exists (
    select from jsonb_array_elements(messages) as item (body)
    where coalesce(item.body ->> 'role', '') not in ('user', 'assistant', 'system')
      or coalesce(jsonb_typeof(item.body -> 'content'), '') <> 'string'
      or not rag.is_metadata(coalesce(nullif(item.body -> 'details', 'null'), '{}')))
  then
    raise exception 'each message must have a role (user, assistant or system), a content, and details of at most 64 KB'
      using errcode = 'PT400', detail = 'invalid_messages';
  elsif exists (
    select from jsonb_array_elements(messages) as item (body) where length(item.body ->> 'content') > 100000)
  then
    raise exception 'each message must have at most 100,000 characters'
      using errcode = 'PT400', detail = 'message_too_long';
  end if;
end;
$$;

comment on function rag.check_messages is
  'Raises PT400 unless the messages are [{role, content, details}] with valid roles; details may be absent.';

create function public.rag_open_session(
  session_id uuid default null, collection_id uuid default null, history integer default 100
)
returns jsonb
language plpgsql stable security invoker set search_path = ''
as $$
#variable_conflict use_variable
declare
  present rag.sessions;
  collection rag.collections;
begin
  perform rag.begin_call();
  if history is null or history not between 0 and 1000 then
    raise exception 'history must be between 0 and 1000' using errcode = 'PT400', detail = 'invalid_history';
  end if;
  perform rag.require_chat_scope();
  if session_id is not null then
    present := rag.get_session(session_id);
  else
    collection_id := coalesce(collection_id, rag.bound_collection());
  end if;
  if collection_id <> present.collection_id then
    raise exception 'The session belongs to another collection. Begin another session.'
      using errcode = 'PT409', detail = 'session_of_another_collection';
  elsif present.collection_id is null then
    collection := rag.collection_in(present.org_id, collection_id);
  end if;
  return jsonb_build_object(
    'session_id', present.id,
    'org_id', coalesce(present.org_id, collection.org_id, rag.resolve_org(null)),
    'collection_id', coalesce(present.collection_id, collection.id),
    'title', present.title,
    'message_count', coalesce(present.message_count, 0),
    'messages', (
      select coalesce(jsonb_agg(jsonb_build_object('role', latest.role, 'content', latest.content)
        order by latest.ordinal), '[]')
      from (
        -- octet_length reads only the size of a long text, not the text, so older texts beyond the limit are not read.
        select newest.*, sum(octet_length(newest.content)) over (order by newest.ordinal desc) as bytes
        from (
          select messages.role, messages.content, messages.ordinal
          from rag.messages
          where messages.org_id = present.org_id and messages.session_id = present.id
            and messages.owner_id = present.owner_id
          order by messages.ordinal desc
          limit history
        ) as newest
      ) as latest
      -- More bytes than the request to a model has, and enough for the longest message.
      where latest.bytes <= 400000));
end;
$$;

comment on function public.rag_open_session is
  'The session for a new turn: {"session_id", "org_id", "collection_id", "title", "message_count", "messages"}. '
  'messages: the last `history` messages in their order, as {"role", "content"}, at most 400,000 bytes in total. If '
  'the session has no collection, collection_id restricts this turn to one. Without session_id the function returns '
  'the org and collection of a new session, by default the caller''s only org, and stores nothing. PT404 for a '
  'session or collection that the caller may not read; PT409 if the session belongs to another collection.';

create function rag.collection_in(org_id uuid, collection_id uuid)
returns rag.collections
language plpgsql stable security invoker set search_path = ''
as $$
#variable_conflict use_variable
declare
  collection rag.collections;
begin
  if collection_id is null then
    return null;
  end if;
  collection := rag.get_collection(collection_id);
  if collection.org_id <> org_id then
    raise exception 'There is no such collection. Check its id or name.'
      using errcode = 'PT404', detail = 'collection_not_found';
  end if;
  return collection;
end;
$$;

comment on function rag.collection_in is
  'The collection of that id, in the given org if org_id is set; null without an id. PT404 for a collection that the '
  'caller may not read.';

create function public.rag_save_turn(session_id uuid, org_id uuid, collection_id uuid, title text, messages jsonb)
returns jsonb
language plpgsql volatile security invoker set search_path = ''
as $$
#variable_conflict use_variable
declare
  home rag.sessions;
  collection rag.collections;
  added integer;
begin
  perform rag.begin_write();
  perform rag.require_chat_scope();
  perform rag.check_json('messages', messages), rag.check_messages(messages);
  added := jsonb_array_length(messages);
  if session_id is null then
    home.org_id := rag.resolve_org(org_id);
    collection := rag.collection_in(home.org_id, collection_id);
    insert into rag.sessions (org_id, owner_id, collection_id, title, message_count)
    values (home.org_id, rag.current_user_id(), collection.id, coalesce(title, ''), added)
    returning * into home;
  else
    home := rag.get_session(session_id);
    -- The update locks the session's row, so that a concurrent turn gets the ordinals behind this one's.
    update rag.sessions as grown
    set title = coalesce(nullif(grown.title, ''), title, ''),
      message_count = grown.message_count + added,
      last_message_at = greatest(grown.last_message_at, clock_timestamp())
    where grown.org_id = home.org_id and grown.id = home.id
    returning grown.* into home;
    if not found then
      raise exception 'There is no such session. Check its id.' using errcode = 'PT404', detail = 'session_not_found';
    end if;
  end if;
  insert into rag.messages (org_id, session_id, ordinal, owner_id, collection_id, role, content, details)
  select home.org_id, home.id, home.message_count - added + item.position::integer - 1, home.owner_id, home.collection_id,
    item.body ->> 'role', item.body ->> 'content', coalesce(nullif(item.body -> 'details', 'null'), '{}')
  from jsonb_array_elements(messages) with ordinality as item (body, position);
  return jsonb_build_object('session_id', home.id, 'message_count', home.message_count);
end;
$$;

comment on function public.rag_save_turn is
  'Store the messages of a turn, in order, at the end of the session, or in a new session with that org, collection '
  'and title if session_id is null. Returns {"session_id", "message_count"}. A session whose title is empty gets the '
  'given title. A session without a collection never gets one: a key that is bound to the collection would read '
  'messages about other collections. Two concurrent turns of a session are stored one after the other. PT404 for a '
  'session or a collection that was deleted meanwhile.';

-- Functions to list sessions and their messages, and to delete a session. They run as their caller.

create type rag.session as (
  id uuid, org_id uuid, owner_id uuid, collection_id uuid, title text, message_count integer, created_at timestamptz,
  last_message_at timestamptz
);

comment on type rag.session is 'A session as a list returns it.';
create type rag.message as (
  id uuid, session_id uuid, ordinal integer, role text, content text, details jsonb, created_at timestamptz
);

comment on type rag.message is 'A message as a list returns it.';

create function public.rag_list_sessions("limit" integer default 20, "offset" integer default 0)
returns setof rag.session
language plpgsql stable security invoker set search_path = ''
as $$
begin
  perform rag.begin_call();
  perform rag.require_chat_scope();
  perform rag.check_page("limit", "offset", 'desc', 'last_message_at', array['last_message_at']);
  return query
    select sessions.id, sessions.org_id, sessions.owner_id, sessions.collection_id, sessions.title,
      sessions.message_count, sessions.created_at, sessions.last_message_at
    from rag.sessions
    where sessions.org_id = any (array(select rag.current_org_ids())) and sessions.owner_id = (select rag.current_user_id())
    order by sessions.last_message_at desc, sessions.id
    limit "limit" offset "offset";
end;
$$;

comment on function public.rag_list_sessions is 'The caller''s sessions, the latest message first.';

create function public.rag_list_session_messages(
  session_id uuid, "limit" integer default 1000, "offset" integer default 0
)
returns setof rag.message
language plpgsql stable security invoker set search_path = ''
as $$
#variable_conflict use_variable
declare
  is_admitted constant boolean := rag.begin_call();
  home constant rag.sessions := rag.get_session(session_id);
begin
  if "limit" is null or "limit" not between 1 and 1000 then
    raise exception 'limit must be between 1 and 1000' using errcode = 'PT400', detail = 'invalid_limit';
  elsif "offset" is null or "offset" < 0 then
    raise exception 'offset must be at least 0' using errcode = 'PT400', detail = 'invalid_offset';
  end if;
  return query
    select messages.id, messages.session_id, messages.ordinal, messages.role, messages.content, messages.details,
      messages.created_at
    from rag.messages
    where messages.org_id = home.org_id and messages.session_id = home.id and messages.owner_id = home.owner_id
    order by messages.ordinal
    limit "limit" offset "offset";
end;
$$;

comment on function public.rag_list_session_messages is
  'The messages of a session, in order; PT404 for an unknown session.';

create function public.rag_delete_session(session_id uuid)
returns void
language plpgsql volatile security invoker set search_path = ''
as $$
declare
  is_admitted constant boolean := rag.begin_call();
  gone constant rag.sessions := rag.get_session(session_id);
begin
  delete from rag.sessions where sessions.org_id = gone.org_id and sessions.id = gone.id;
end;
$$;

comment on function public.rag_delete_session is 'Delete a session with its messages; PT404 for an unknown session.';

-- Export of a collection to a snapshot, a page at a time. Every member of the org may load a snapshot, so it contains
-- only documents that the whole org sees.

create function rag.snapshot_collection(collection_id uuid)
returns rag.collections
language plpgsql stable security invoker set search_path = ''
as $$
declare
  home constant rag.collections := rag.get_collection(snapshot_collection.collection_id);
begin
  if not rag.has_scope('documents:read', 'documents:write') then
    raise exception 'The API key may not read documents. Check its scopes.'
      using errcode = 'PT403', detail = 'missing_scope';
  elsif home.owner_id is not null then
    raise exception 'A private index cannot be persisted, since all members could load the snapshot. Choose another.'
      using errcode = 'PT400', detail = 'private_collection';
  elsif home.loading_name is not null or home.deleted_at is not null then
    raise exception 'There is no such collection. Check its id or name.'
      using errcode = 'PT404', detail = 'collection_not_found';
  end if;
  return home;
end;
$$;

comment on function rag.snapshot_collection is
  'The collection of that id; PT400 for a private collection, which cannot be exported.';

create function public.rag_begin_snapshot(name text)
returns jsonb
language plpgsql stable security invoker set search_path = ''
as $$
begin
  perform rag.begin_call();
  return (
    select jsonb_build_object('org_id', home.org_id, 'collection_id', home.id, 'description', home.description,
      'metadata', home.metadata, 'config', home.config)
    from rag.snapshot_collection((rag.require_collection(rag_begin_snapshot.name)).id) as home);
end;
$$;

comment on function public.rag_begin_snapshot is
  'The collection of that name, to export it; PT400 for a private collection.';

create function public.rag_snapshot_documents(
  collection_id uuid, after_created_at timestamptz default null, after_id uuid default null
)
returns jsonb
language plpgsql stable security invoker set search_path = ''
set statement_timeout = '60s'
as $$
declare
  is_admitted constant boolean := rag.begin_write();
  home constant rag.collections := rag.snapshot_collection(rag_snapshot_documents.collection_id);
begin
  return (
    select coalesce(jsonb_agg(jsonb_build_object('id', page.id, 'created_at', page.created_at)
      order by page.created_at, page.id), '[]')
    from (
      select documents.id, documents.created_at
      from rag.documents
      where documents.org_id = home.org_id and documents.collection_id = home.id and documents.owner_id is null
        and (after_id is null or (documents.created_at, documents.id) > (after_created_at, after_id))
        and (documents.status = 'completed' or exists (
          select from rag.chunks where chunks.org_id = home.org_id and chunks.document_id = documents.id))
      order by documents.created_at, documents.id
      limit 2000
    ) as page);
end;
$$;

comment on function public.rag_snapshot_documents is
  '[{id, created_at}]: up to 2,000 documents that the whole org sees, oldest first, after the given created_at and id. '
  'Documents that are not completed and have no chunks are omitted.';

create function rag.snapshot_chunk(chunk rag.chunks)
returns jsonb
language sql stable security invoker set search_path = ''
as $$
  select jsonb_build_object('span_start', chunk.span_start, 'span_end', chunk.span_end, 'token_count', chunk.token_count,
    'metadata', chunk.metadata, 'embedding', translate(encode(
      case extensions.vector_dims(chunk.embedding) when 1536 then rtrim(vector.bytes, '\x00') else vector.bytes end,
      'base64'), E'\n', ''))
  from (select substring(extensions.halfvec_send(chunk.embedding) from 5) as bytes) as vector;
$$;

comment on function rag.snapshot_chunk is
  'A chunk in the format of a snapshot, at most 12,288 bytes. The text of the chunk is a part of the document''s text. '
  'embedding: the values in half precision, high byte first, as base64, without the zeros '
  'at the end of 1,536 values.';

create function rag.snapshot_chunks(org_id uuid, document_id uuid, first integer, most integer)
returns jsonb
language sql stable security invoker set search_path = ''
as $$
  select coalesce(jsonb_agg(rag.snapshot_chunk(page.chunk) order by page.ordinal), '[]')
  from (
    select stored as chunk, stored.ordinal
    from rag.chunks as stored
    where stored.org_id = snapshot_chunks.org_id and stored.document_id = snapshot_chunks.document_id
      and stored.ordinal >= snapshot_chunks.first
    order by stored.ordinal
    limit least(snapshot_chunks.most, 512)
  ) as page;
$$;

comment on function rag.snapshot_chunks is
  'A document''s chunks from the ordinal `first` on: at most `most` and at most 512, which are four megabytes.';

create function rag.snapshot_document(home rag.collections, document_id uuid, first_character integer)
returns jsonb
language sql stable security invoker set search_path = ''
as $$
  select jsonb_build_object('id', documents.id,
    -- The name is the external_id, or else the id, unless the id is another document's external_id.
    'name', case when documents.external_id is not null or not exists (
        select from rag.documents as other
        where other.org_id = home.org_id and other.collection_id = home.id and other.owner_id is null
          and other.external_id = documents.id::text)
      then rag.external_name(documents) end,
    'source_type', documents.source_type, 'title', documents.title, 'uri', documents.uri, 'lang', documents.lang,
    'occurred_at', documents.occurred_at, 'origin', documents.origin, 'author', documents.author,
    'state', documents.state, 'labels', documents.labels, 'metadata', documents.metadata,
    'content', substr(documents.content, first_character + 1, 1000000), 'length', length(documents.content),
    'filename', documents.filename,
    'content_type', documents.content_type, 'size_bytes', documents.size_bytes,
    'processing_info', documents.processing_info, 'created_at', documents.created_at,
    'updated_at', documents.updated_at, 'embedding_model', counted.model, 'chunk_count', counted.chunks,
    'chunks', case when first_character = 0
      then rag.snapshot_chunks(home.org_id, documents.id, 0, 256) else '[]' end)
  from rag.documents
  cross join lateral (
    select count(*) as chunks, min(chunks.embedding_model) as model
    from rag.chunks
    where chunks.org_id = home.org_id and chunks.document_id = documents.id
  ) as counted
  where documents.org_id = home.org_id and documents.id = snapshot_document.document_id;
$$;

comment on function rag.snapshot_document is
  'One document: a million characters of its text from first_character on, the length of the text, and the number of '
  'chunks. The first part of the text comes with the first chunks.';

create function public.rag_read_snapshot_documents(
  collection_id uuid, document_ids uuid[], first_character integer default 0
)
returns jsonb
language plpgsql stable security invoker set search_path = ''
set statement_timeout = '60s'
as $$
declare
  is_admitted constant boolean := rag.begin_write();
  home constant rag.collections := rag.snapshot_collection(rag_read_snapshot_documents.collection_id);
  listed_id uuid;
  document jsonb;
  page jsonb[] := '{}';
  bytes bigint := 0;
begin
  if first_character is null or first_character < 0 then
    raise exception 'first_character must be at least 0' using errcode = 'PT400', detail = 'invalid_first_character';
  end if;
  for listed_id in
    select documents.id
    from rag.documents
    where documents.org_id = home.org_id and documents.collection_id = home.id and documents.owner_id is null
      and documents.id = any (rag_read_snapshot_documents.document_ids)
    order by documents.created_at, documents.id
  loop
    document := rag.snapshot_document(home, listed_id, first_character);
    page := array_append(page, document);
    bytes := bytes + pg_column_size(document);
    exit when bytes > 4 << 20;
  end loop;
  return to_jsonb(page);
end;
$$;

comment on function public.rag_read_snapshot_documents is
  'The documents that still exist, oldest first, each as rag.snapshot_document returns it. A response ends after four '
  'megabytes; the caller requests the rest with another call.';

create function public.rag_read_snapshot_chunks(
  collection_id uuid, document_id uuid, updated_at timestamptz, first integer
)
returns jsonb
language plpgsql stable security invoker set search_path = ''
set statement_timeout = '60s'
as $$
declare
  is_admitted constant boolean := rag.begin_write();
  home constant rag.collections := rag.snapshot_collection(rag_read_snapshot_chunks.collection_id);
begin
  if not exists (
    select from rag.documents
    where documents.org_id = home.org_id and documents.collection_id = home.id and documents.owner_id is null
      and documents.id = rag_read_snapshot_chunks.document_id
      and documents.updated_at = rag_read_snapshot_chunks.updated_at
  ) then
    raise exception 'A document changed while it was persisted. Please try again.'
      using errcode = 'PT409', detail = 'document_changed';
  end if;
  return rag.snapshot_chunks(home.org_id, rag_read_snapshot_chunks.document_id, "first", 1000);
end;
$$;

comment on function public.rag_read_snapshot_chunks is
  'A document''s chunks from the ordinal `first` on (rag.snapshot_chunks); PT409 if the document has changed.';

-- Import of a snapshot into a collection, a page at a time. The collection has no name (collections.loading_name) until
-- the end of the import, which names it in one transaction.

create function rag.check_load(name text, overwrite boolean)
returns uuid
language plpgsql stable security invoker set search_path = ''
as $$
declare
  org_id constant uuid := rag.resolve_org(null);
  present rag.collections;
begin
  if rag.bound_collection() is not null
    or not (rag.has_scope('documents:write') and rag.has_scope('collections:manage')) then
    raise exception 'The API key may not create collections. Check its scopes and its collection.'
      using errcode = 'PT403', detail = 'missing_scope';
  elsif coalesce(length(check_load.name), 0) not between 1 and 255 then
    raise exception 'a name must have 1 to 255 characters' using errcode = 'PT400', detail = 'invalid_name';
  end if;
  perform rag.check_name(check_load.name), rag.check_owner_in_name(org_id, check_load.name);
  select * into present from rag.collection_by_name(org_id, check_load.name);
  if found and not coalesce(check_load.overwrite, false) then
    raise exception 'A collection of this name already exists. Choose another name.'
      using errcode = 'PT409', detail = 'duplicate_collection';
  elsif present.owner_id is not null or check_load.name ~ ':u:[^:]*$' then
    raise exception 'A snapshot belongs to the whole org and cannot become a private index. Choose another name.'
      using errcode = 'PT400', detail = 'private_collection';
  end if;
  return org_id;
end;
$$;

comment on function rag.check_load is
  'The caller''s org, if a snapshot may be loaded into a collection of that name. PT409 if the name is taken and '
  'overwrite is false; PT400 for the name of a private collection.';

create function public.rag_check_load(name text, overwrite boolean default false)
returns jsonb
language plpgsql stable security invoker set search_path = ''
as $$
begin
  perform rag.begin_call();
  return (
    select jsonb_build_object('org_id', checked.org_id, 'left_behind', array(
      select collections.id
      from rag.collections
      where collections.org_id = checked.org_id and collections.loading_name is not null
        and collections.deleted_at is null
        and collections.updated_at < now() - interval '1 hour'))
    from (select rag.check_load(rag_check_load.name, rag_check_load.overwrite) as org_id offset 0) as checked);
end;
$$;

comment on function public.rag_check_load is
  '{"org_id", "left_behind"}: the org whose snapshots the caller may load under that name, and the unnamed collections '
  'of loads that stopped more than an hour ago.';

create function public.rag_begin_load(name text, overwrite boolean, documents integer, collection jsonb)
returns uuid
language plpgsql volatile security invoker set search_path = ''
as $$
declare
  is_admitted constant boolean := rag.begin_call();
  home_id constant uuid := rag.check_load(rag_begin_load.name, rag_begin_load.overwrite);
  tier constant rag.tiers := rag.org_tier(home_id);
  fields record;
  made uuid;
begin
  perform rag.check_json('collection', rag_begin_load.collection, 100000);
  select * into fields
  from jsonb_to_record(rag_begin_load.collection) as given (description text, metadata jsonb, config jsonb);
  perform rag.check_config(coalesce(fields.config, '{}'), coalesce(fields.config, '{}'));
  if rag_begin_load.documents > tier.documents_per_collection then
    raise exception 'The tier of your org allows % documents in a collection. Delete some, or ask for a larger tier.',
      tier.documents_per_collection
      using errcode = 'PT429', detail = 'document_limit_reached';
  elsif not exists (select from rag.collection_by_name(home_id, rag_begin_load.name))
    or tier.collections < (
      select count(*) from rag.collections where collections.org_id = home_id and collections.deleted_at is null)
  then
    perform rag.check_collection_quota(home_id);
  end if;
  insert into rag.collections (org_id, name, loading_name, description, metadata, config)
  values (home_id, 'loading ' || gen_random_uuid(), rag_begin_load.name, fields.description,
    coalesce(fields.metadata, '{}'), coalesce(fields.config, '{}'))
  returning id into made;
  return made;
end;
$$;

comment on function public.rag_begin_load is
  'Create an unnamed collection for a load and return its id. PT429 if the tier of the org does not allow another '
  'collection or that many documents. The collection that the load will replace does not count, so the org may exceed '
  'its tier by one collection until the load ends.';

create function rag.running_load(collection_id uuid)
returns rag.collections
language plpgsql volatile security invoker set search_path = ''
as $$
declare
  home rag.collections;
begin
  update rag.collections
  set updated_at = clock_timestamp()
  where collections.org_id = any (array(select rag.current_org_ids())) and collections.id = running_load.collection_id
    and collections.loading_name is not null and collections.deleted_at is null and collections.owner_id is null
  returning collections.* into home;
  if not found then
    raise exception 'No load into this collection is running. Begin the load again.'
      using errcode = 'PT404', detail = 'collection_not_found';
  end if;
  return home;
end;
$$;

comment on function rag.running_load is
  'The collection of a running load, locked until the end of the transaction, so that no other call ends the load. '
  'PT404 if no load into the collection is running.';

create function rag.id_of_number(number bigint)
returns uuid
language sql volatile security invoker set search_path = ''
as $$
  select (lpad(to_hex(id_of_number.number), 12, '0') || right(replace(gen_random_uuid()::text, '-', ''), 20))::uuid;
$$;

comment on function rag.id_of_number is
  'The id of a document from its number in the load, so that documents with the same created_at keep their order.';

create function public.rag_load_documents(collection_id uuid, documents jsonb, first bigint)
returns setof rag.stored_document
language plpgsql volatile security invoker set search_path = ''
set statement_timeout = '60s'
as $$
declare
  is_admitted constant boolean := rag.begin_write();
  home constant rag.collections := rag.running_load(rag_load_documents.collection_id);
  new rag.new_document[];
  stored rag.stored_document[];
begin
  perform rag.check_json('documents', rag_load_documents.documents);
  new := rag.new_documents(home, rag_load_documents.documents);
  for number in 1..coalesce(cardinality(new), 0) loop
    new[number].id := rag.id_of_number("first" + number - 1);
    new[number].owner_id := null;
  end loop;
  select array_agg(kept order by kept.number) into stored from rag.put_documents(home, new) as kept;
  if exists (select from unnest(stored) as kept where kept.replaced) then
    raise exception 'Two documents of the snapshot have the same name. Persist the index again.'
      using errcode = 'PT400', detail = 'duplicate_document';
  end if;
  update rag.documents as loaded
  set filename = fields.filename, content_type = fields.content_type, size_bytes = fields.size_bytes,
    processing_info = coalesce(fields.processing_info, '{}'),
    created_at = least(greatest(fields.created_at, 'epoch'), now()),
    updated_at = least(greatest(fields.updated_at, 'epoch'), now())
  from unnest(stored) as kept
  join jsonb_array_elements(rag_load_documents.documents) with ordinality as item (body, number)
    on item.number = kept.number
  cross join jsonb_to_record(item.body) as fields (filename text, content_type text, size_bytes bigint,
    processing_info jsonb, created_at timestamptz, updated_at timestamptz)
  where loaded.org_id = home.org_id and loaded.id = kept.document_id;
  return query select kept.* from unnest(stored) as kept;
end;
$$;

comment on function public.rag_load_documents is
  'Store documents in the format of rag_read_snapshot_documents. first: the position of the first one in the load. '
  'PT400 if two documents have the same name.';

create function public.rag_load_chunks(
  collection_id uuid, document_id uuid, chunks jsonb, embedding_model text, last boolean
)
returns void
language plpgsql volatile security invoker set search_path = ''
set statement_timeout = '60s'
as $$
declare
  is_admitted constant boolean := rag.begin_write();
  home constant rag.collections := rag.running_load(rag_load_chunks.collection_id);
  present integer;
begin
  perform rag.check_json('chunks', rag_load_chunks.chunks);
  if not exists (
    select from rag.documents
    where documents.org_id = home.org_id and documents.collection_id = home.id
      and documents.id = rag_load_chunks.document_id
  ) then
    raise exception 'There is no such document. Check its id.' using errcode = 'PT404', detail = 'document_not_found';
  end if;
  select count(*) into present
  from rag.chunks as stored
  where stored.org_id = home.org_id and stored.document_id = rag_load_chunks.document_id;
  perform set_config('rag.words_later', 'true', true);
  perform rag.insert_chunks(home.org_id, array[rag.document_chunks(
    document_id => rag_load_chunks.document_id, chunks => rag_load_chunks.chunks,
    embedding_model => rag_load_chunks.embedding_model)], present);
  perform set_config('rag.words_later', '', true);
  if rag_load_chunks.last then
    perform set_config('rag.loads_words', 'true', true);
    perform rag.index_words(home.org_id, array[rag_load_chunks.document_id]);
    perform set_config('rag.loads_words', '', true);
  end if;
end;
$$;

comment on function public.rag_load_chunks is
  'Store further chunks of a document, in the format of rag_load_documents. The words of the document are counted with '
  'its last chunks: counting them again at each call would take hours for a long document.';

create function public.rag_finish_load(collection_id uuid, overwrite boolean default false)
returns void
language plpgsql volatile security invoker set search_path = ''
set statement_timeout = '60s'
as $$
declare
  is_admitted constant boolean := rag.begin_write();
  home constant rag.collections := rag.running_load(rag_finish_load.collection_id);
  older rag.collections;
begin
  perform pg_advisory_xact_lock(hashtextextended('rag.load ' || home.org_id || ' ' || home.loading_name, 0));
  perform rag.check_load(home.loading_name, rag_finish_load.overwrite);
  select * into older from rag.collection_by_name(home.org_id, home.loading_name);
  if found then
    perform rag.require_access(older.id, 'manage');
    perform rag.copy_access(older, home);
    delete from rag.collections where collections.org_id = home.org_id and collections.id = older.id;
  end if;
  update rag.collections
  set name = home.loading_name, loading_name = null
  where collections.org_id = home.org_id and collections.id = home.id;
exception when unique_violation then
  -- Another call has created a collection of the name.
  raise exception 'A collection of this name already exists. Choose another name.'
    using errcode = 'PT409', detail = 'duplicate_collection';
end;
$$;

comment on function public.rag_finish_load is
  'End the load and name the collection. With overwrite, the earlier collection of that name is deleted as by '
  'rag_delete_collection, and its grants are those of the new one. Of two loads under one name, the second waits, and without overwrite gets PT409.';

create function public.rag_cancel_load(collection_id uuid)
returns boolean
language plpgsql volatile security invoker set search_path = ''
set statement_timeout = '60s'
as $$
declare
  is_admitted constant boolean := rag.begin_write();
  home constant rag.collections := rag.running_load(rag_cancel_load.collection_id);
begin
  delete from rag.documents
  where documents.org_id = home.org_id and documents.id = any (array(
    select loaded.id
    from rag.documents as loaded
    where loaded.org_id = home.org_id and loaded.collection_id = home.id
    limit 100));
  if found then
    return true;
  end if;
  delete from rag.collections where collections.org_id = home.org_id and collections.id = home.id;
  return false;
end;
$$;

comment on function public.rag_cancel_load is
  'Delete an incompletely loaded collection, a hundred documents per call. Returns whether more remain.';

-- Metrics of the index and knowledge APIs, counted in the database for all instances; /metrics sums them over all
-- users. Each user has separate rows, so that users neither wait for each other nor write each other's rows.

create function rag.histogram_bounds(measure text)
returns double precision[]
language sql immutable security invoker set search_path = ''
as $$
  select case
    when histogram_bounds.measure ~ '^rag_(query|retrieve|chat|index|indexes|indexes_document|indexes_update_document|indexes_delete_document|persist|load|delete_index)_(requests_total|latency_seconds)$'
      then case when histogram_bounds.measure like '%seconds'
        then '{0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 30, 60}' else '{}' end
    when histogram_bounds.measure = 'gateway_knowledge_retrieval_score'
      then '{0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1}'
    when histogram_bounds.measure ~ '^gateway_knowledge_(chunks_retrieved|documents_ingested|documents_deleted|query_tokens)_total$'
      then '{}'
  end::double precision[];
$$;

comment on function rag.histogram_bounds is
  'The upper bounds of a histogram''s buckets; empty for a counter, null for an unknown metric.';

create table rag.api_metrics (
  user_id uuid not null,
  name text not null check (rag.histogram_bounds(name) is not null),
  label text not null default '' check (label in ('', 'success', 'failure', 'prompt', 'completion')),
  sum double precision not null check (sum >= 0 and sum < 1e15),
  total bigint not null check (total > 0),
  buckets bigint[] not null,
  primary key (user_id, name, label)
);

comment on table rag.api_metrics is 'Counters and histograms of the index and knowledge APIs, by user.';
comment on column rag.api_metrics.label is 'For requests: success or failure. For tokens: prompt or completion.';
comment on column rag.api_metrics.sum is 'The value of a counter; the sum of all values of a histogram.';
comment on column rag.api_metrics.total is 'The number of values; in buckets, the number of values up to each bound.';

alter table rag.api_metrics enable row level security;
alter table rag.api_metrics force row level security;

create policy "callers measure their own requests, metrics read all" on rag.api_metrics
  for all to authenticated
  using (user_id = (select rag.current_user_id()) or (select rag.reads_metrics()))
  with check (user_id = (select rag.current_user_id()));

create function public.rag_record_metrics(measures jsonb)
returns void
language plpgsql volatile security invoker set search_path = ''
as $$
#variable_conflict use_column
begin
  perform rag.begin_call();
  perform rag.check_json('measures', rag_record_metrics.measures, 10000);
  with measured as (
    select fields.name, coalesce(fields.label, '') as label,
      case when fields.value between 0 and 1000000 then fields.value end as value
    from (select item from jsonb_array_elements(rag_record_metrics.measures) as item limit 20) as items
    cross join jsonb_to_record(items.item) as fields (name text, label text, value double precision)
  )
  insert into rag.api_metrics as present (user_id, name, label, sum, total, buckets)
  select rag.current_user_id(), measured.name, measured.label, 
    -- An invalid value makes the sum null, which the table refuses.
    case when bool_and(measured.value is not null) then sum(measured.value) end, count(*), array(
      select (select count(*) from unnest(array_agg(measured.value)) as value where value <= bound)
      from unnest(rag.histogram_bounds(measured.name)) as bound)
  from measured
  group by measured.name, measured.label
  order by measured.name, measured.label
  on conflict on constraint api_metrics_pkey do update set
    sum = present.sum + excluded.sum,
    total = present.total + excluded.total,
    buckets = array(
      select had + added
      from unnest(present.buckets, excluded.buckets) with ordinality as counted (had, added, position)
      order by position);
end;
$$;

comment on function public.rag_record_metrics is
  'Add up to twenty values to the caller''s metrics: [{name, label, value}]. A value is at most a million, so that '
  'no user can dominate the sums.';

-- Rate limits, counted in the database for all instances. A row is one caller's current window in one bucket; the
-- window starts with the first request, and an expired row is reused, so the table has at most callers x buckets x
-- windows rows. The caller is taken from the token, never from an argument. A caller cannot decrease a count. (The few
-- rows of a deleted user remain.) A download link has buckets of its own, by its document and the user who created it:
-- every holder of the link spends them, and no limit of that user.

create table rag.rate_limits (
  caller_id uuid not null,
  bucket text not null check (bucket ~ '^(rag|api|day|ingest|upload|(day )?link [0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})$'),
  window_seconds integer not null check (window_seconds in (1, 60, 3600, 86400)),
  started_at timestamptz not null,
  hits bigint not null check (hits >= 0),
  primary key (caller_id, bucket, window_seconds)
);

comment on table rag.rate_limits is 'Windows of rate limits, by caller and bucket.';
comment on column rag.rate_limits.caller_id is 'A user, or an API key: rag.caller_id().';
comment on column rag.rate_limits.bucket is
  'rag: rag-search and rag-answer; api: all other functions; day: all functions, for a user and all keys of the user, '
  'by the tier. ingest: kilobytes of text that a user and the user''s keys sent to functions that store it before '
  'they respond. upload: kilobytes of files and texts for the worker, by the tier. link and day link, each with the id of a document: its downloads by links that the user created.';

alter table rag.rate_limits enable row level security;
alter table rag.rate_limits force row level security;

create policy "callers spend their own budget" on rag.rate_limits
  for all to authenticated
  using (caller_id = any (array[(select rag.current_user_id()), (select rag.caller_id())]))
  with check (caller_id = any (array[(select rag.current_user_id()), (select rag.caller_id())]));

-- A link has windows for each document. Those of users are reused.
create policy "the worker sees ended windows of links" on rag.rate_limits
  for select to rag_worker using (bucket like '%link %' and started_at < now() - interval '1 day');

create policy "the worker removes ended windows of links" on rag.rate_limits
  for delete to rag_worker using (bucket like '%link %' and started_at < now() - interval '1 day');

create table rag.request_counts (
  user_id uuid not null,
  function text not null check (function ~ '^[a-z][a-z0-9-]{0,39}$'),
  outcome text not null check (outcome in ('admitted', 'limited')),
  total bigint not null check (total > 0),
  primary key (user_id, function, outcome)
);

comment on table rag.request_counts is
  'All requests by user, function and outcome. /metrics sums them over all users, so its counters cover all instances. '
  'Each user has separate rows, so that no request waits for another user.';
comment on column rag.request_counts.function is
  'The function''s name. A user has at most 64 names, because a direct caller may send any name (rag.count_request).';

alter table rag.request_counts enable row level security;
alter table rag.request_counts force row level security;

create policy "callers count their own requests, metrics read all" on rag.request_counts
  for all to authenticated
  using (user_id = (select rag.current_user_id()) or (select rag.reads_metrics()))
  with check (user_id = (select rag.current_user_id()));

create function rag.caller_limits(org_ids uuid[], bucket text, requests integer, window_seconds integer)
returns table (caller_id uuid, bucket text, requests integer, window_seconds integer)
language sql stable security invoker set search_path = ''
as $$
  with tiers_of_caller as (
    select tiers.requests_per_day, case caller_limits.bucket
      when 'rag' then tiers.rag_requests_per_minute else tiers.api_requests_per_minute end as per_minute
    from rag.orgs
    join rag.tiers on tiers.name = orgs.tier
    where orgs.id = any (caller_limits.org_ids)
  ), own as (
    select (rag.token_claim() ->> 'requests_per_minute')::integer as per_minute
  ), rates (requests, window_seconds, precedence) as (
    select coalesce(per_minute, caller_limits.requests),
      case when per_minute is null then caller_limits.window_seconds else 60 end, 1
    from tiers_of_caller
    union all
    select caller_limits.requests, caller_limits.window_seconds, 2
  ), shared as (
    select rates.requests, rates.window_seconds
    from rates
    order by rates.precedence, rates.requests::numeric / rates.window_seconds desc
    limit 1
  )
  select rag.caller_id(), caller_limits.bucket, own.per_minute, 60 from own where own.per_minute is not null
  union all
  (
    select rag.current_user_id(), caller_limits.bucket, higher.requests, higher.window_seconds
    from (
      select shared.requests, shared.window_seconds from shared
      union all
      select own.per_minute, 60 from own where own.per_minute is not null
    ) as higher
    order by higher.requests::numeric / higher.window_seconds desc
    limit 1
  )
  union all
  select rag.current_user_id(), case when caller_limits.bucket like 'link %' then 'day ' || caller_limits.bucket else 'day' end,
    max(requests_per_day), 86400
  from tiers_of_caller
  having bool_and(requests_per_day is not null);
$$;

comment on function rag.caller_limits is
  'The limits of the caller, a member of these orgs: one for the bucket and, if the tier has one, a daily limit. The limit for the bucket is '
  'the tier''s, else `requests` in `window_seconds`, and counts for the user, whatever API key is used. A user in several '
  'orgs has the highest limit of their tiers. A key with a limit of its own has a window of its own besides, and a higher '
  'limit replaces the user''s for requests of this key. (The daily count of a user covers all orgs, so requests in other orgs may '
  'exhaust the daily limit of a key.) A download link has the same limits as its user, in windows of its own.';

create function rag.count_hits(caller_id uuid, bucket text, requests integer, window_seconds integer, amount integer)
returns table (hits bigint, resets_at timestamptz, admitted boolean)
language plpgsql volatile security invoker set search_path = ''
as $$
#variable_conflict use_variable
declare
  length constant interval := make_interval(secs => window_seconds);
begin
  insert into rag.rate_limits as spent (caller_id, bucket, window_seconds, started_at, hits)
  select caller_id, bucket, window_seconds, clock_timestamp(), amount
  where amount <= requests
  on conflict on constraint rate_limits_pkey do update set
    hits = case when spent.started_at + length > excluded.started_at
      then spent.hits + excluded.hits else excluded.hits end,
    started_at = case when spent.started_at + length > excluded.started_at
      then spent.started_at else excluded.started_at end
  where spent.hits + excluded.hits <= requests or spent.started_at + length <= excluded.started_at
  returning spent.hits, spent.started_at + length, true into hits, resets_at, admitted;
  if not found then
    select spent.hits, spent.started_at + length into hits, resets_at
    from rag.rate_limits as spent
    where spent.caller_id = count_hits.caller_id and spent.bucket = count_hits.bucket
      and spent.window_seconds = count_hits.window_seconds and spent.started_at + length > clock_timestamp();
    hits := coalesce(hits, 0);
    resets_at := coalesce(resets_at, clock_timestamp() + length);
    admitted := false;
  end if;
  return next;
end;
$$;

comment on function rag.count_hits is
  'Count `amount` requests in one window, if the limit permits them; returns the state of the window. Atomic for '
  'any number of callers: the row is locked before it is compared, until the caller commits.';

create function rag.count_upload(org_id uuid, size_bytes bigint, is_counted boolean default true)
returns void
language plpgsql volatile security invoker set search_path = ''
as $$
declare
  kilobytes constant integer := (rag.org_tier(org_id)).upload_bytes_per_minute / 1024;
  amount constant integer := least(ceil(size_bytes / 1024.0), kilobytes);
  counted record;
begin
  -- The worker fetches a source at its own pace, and a database session is not limited.
  if kilobytes is null or coalesce(size_bytes, 0) = 0 or rag.lease_of_token() is not null
    or coalesce(current_setting('request.headers', true), '') = ''
  then
    return;
  end if;
  if is_counted then
    select * into counted from rag.count_hits(rag.current_user_id(), 'upload', kilobytes, 60, amount);
  else
    select spent.hits + amount <= kilobytes as admitted, spent.started_at + interval '60 seconds' as resets_at
    into counted
    from rag.rate_limits as spent
    where spent.caller_id = rag.current_user_id() and spent.bucket = 'upload' and spent.window_seconds = 60
      and spent.started_at + interval '60 seconds' > clock_timestamp();
  end if;
  if not counted.admitted then
    raise exception 'You sent more than % MB of files and texts in a minute. Please wait, or send less at once.',
      round(kilobytes / 1024.0, 1)
      using errcode = 'PT429', detail = 'upload_limit_reached',
        hint = ceil(extract(epoch from counted.resets_at - clock_timestamp()))::text;
  end if;
end;
$$;

comment on function rag.count_upload is
  'Count an upload against the bytes a minute of the user, which the tier of the org limits; PT429 above the limit, with the '
  'seconds until the end of the minute in hint. A larger file than the limit takes a whole minute. Not is_counted: '
  'only refuse what the limit does not permit now.';

create function rag.count_request(function text, outcome text)
returns void
language plpgsql volatile security invoker set search_path = ''
as $$
#variable_conflict use_variable
begin
  update rag.request_counts as present set total = present.total + 1
  where present.user_id = rag.current_user_id() and present.function = count_request.function
    and present.outcome = count_request.outcome;
  if not found then
    insert into rag.request_counts as present (user_id, function, outcome, total)
    select rag.current_user_id(), function, outcome, 1
    where (
      select count(distinct named.function) from rag.request_counts as named
      where named.user_id = rag.current_user_id() and named.function <> count_request.function) < 64
    on conflict on constraint request_counts_pkey do update set total = present.total + excluded.total;
  end if;
end;
$$;

comment on function rag.count_request is
  'Count a request of the caller by function and outcome. After 64 names of one user, requests with further names are '
  'not counted, so that a direct caller cannot create an unlimited number of rows.';

create function public.rag_check_rate_limit(
  function text, bucket text, requests integer, window_seconds integer, amount integer default 1
)
returns table (
  allowed integer, seconds integer, hits bigint, resets_at timestamptz, admitted boolean, exceeded_quotas text[],
  has_org boolean
)
language plpgsql volatile security invoker set search_path = ''
as $$
#variable_conflict use_variable
declare
  link constant text := 'link ' || (rag.token_claim() ->> 'document');
  org_ids constant uuid[] := array(select rag.current_org_ids());
  per record;
  paid rag.rate_limits[] := '{}';
begin
  perform rag.begin_call(needs_org => false);
  if rag.current_user_id() is null or coalesce(requests, 0) < 1
    or coalesce(amount, 0) not between 1 and (case bucket when 'ingest' then 10000 else 1000 end) then
    return;
  elsif (link is null and bucket not in ('rag', 'api', 'ingest')) or bucket is distinct from coalesce(link, bucket)
    or window_seconds not in (1, 60, 3600, 86400) then
    raise exception
      'bucket must be rag, api or ingest, for a download link its own, and window_seconds 1, 60, 3600 or 86400'
      using errcode = 'PT400', detail = 'invalid_limit';
  elsif bucket = 'ingest' then
    -- The request of this call is counted already.
    return query
    select requests, window_seconds, counted.*, '{}'::text[], null::boolean
    from rag.count_hits(rag.current_user_id(), bucket, requests, window_seconds, amount) as counted;
    return;
  end if;

  -- The commit does not wait for the disk, with the rows locked: a crash of the server may lose the last counts.
  perform set_config('synchronous_commit', 'off', true);
  -- The org's quotas are not for the recipient of a link.
  exceeded_quotas := case when link is null then rag.exceeded_quotas() else '{}' end;
  has_org := cardinality(org_ids) > 0;
  -- The key's window is first and the daily window last, so that concurrent requests lock their rows in the same order.
  for per in
    select named.* from rag.caller_limits(org_ids, bucket, requests, window_seconds) as named
    order by named.bucket like 'day%', named.caller_id = rag.current_user_id()
  loop
    select per.requests, per.window_seconds, counted.*
    into allowed, seconds, hits, resets_at, admitted
    from rag.count_hits(per.caller_id, per.bucket, per.requests, per.window_seconds, amount) as counted;
    return next;
    exit when not admitted;
    paid := paid || row(per.caller_id, per.bucket, per.window_seconds, resets_at, hits)::rag.rate_limits;
  end loop;

  if not admitted then
    -- A later limit is reached, so the count of this request in the earlier windows is undone.
    update rag.rate_limits as spent set hits = spent.hits - amount
    from unnest(paid) as earlier
    where spent.caller_id = earlier.caller_id and spent.bucket = earlier.bucket
      and spent.window_seconds = earlier.window_seconds;
  end if;

  perform rag.count_request(function, case when admitted then 'admitted' else 'limited' end);
  if admitted then
    perform rag.count_org_call(org_ids);
  end if;
end;
$$;

comment on function public.rag_check_rate_limit is
  'Count `amount` requests of a function, or `amount` kilobytes of the bucket ingest. Returns a row for each limit of '
  'the caller, with the state of its window. A call is admitted if no limit is exceeded; otherwise it is counted in no '
  'window. The function does not raise for an exceeded limit, because an error would roll the counts back. '
  'exceeded_quotas: the quotas of tokens that the caller''s org has used up today (rag.exceeded_quotas). has_org: false for '
  'a user who belongs to no org, whose requests count too; null in the bucket ingest.';

-- value: the value of a counter, or the sum of a histogram's values; total: the number of values; buckets: the number
-- of values up to each bound.
create function public.rag_metrics()
returns table (
  name text, labels jsonb, value double precision, total bigint, bounds double precision[], buckets bigint[]
)
language plpgsql stable security invoker set search_path = ''
as $$
#variable_conflict use_column
begin
  perform rag.begin_call();
  return query
    select 'rag_requests_total', jsonb_build_object('function', counted.function, 'outcome', counted.outcome),
      sum(counted.total)::double precision, sum(counted.total)::bigint, '{}'::double precision[], '{}'::bigint[]
    from (
      select case when ranked.position <= 64 then request_counts.function else 'other' end as function,
        request_counts.outcome, request_counts.total
      from rag.request_counts
      join (
        select request_counts.function, row_number() over (order by sum(request_counts.total) desc,
          request_counts.function) as position
        from rag.request_counts
        group by request_counts.function
      ) as ranked on ranked.function = request_counts.function
      where (select rag.reads_metrics())
    ) as counted
    group by counted.function, counted.outcome
    union all
    select api_metrics.name, jsonb_build_object('label', api_metrics.label), sum(api_metrics.sum),
      sum(api_metrics.total)::bigint, rag.histogram_bounds(api_metrics.name), array(
        select sum(all_of.buckets[position])::bigint
        from generate_subscripts(rag.histogram_bounds(api_metrics.name), 1) as position
        cross join rag.api_metrics as all_of
        where all_of.name = api_metrics.name and all_of.label = api_metrics.label
        group by position
        order by position)
    from rag.api_metrics
    where (select rag.reads_metrics())
    group by api_metrics.name, api_metrics.label
    union all
    select quotas.* from rag.quota_metrics() as quotas
    union all
    select 'rag_confidence_calibrated', jsonb_build_object('label', settings.embedding_model),
      (settings.calibrations ? settings.embedding_model)::integer::double precision, 1::bigint, '{}'::double precision[],
      '{}'::bigint[]
    from rag.settings
    where (select rag.reads_metrics());
end;
$$;

comment on function public.rag_metrics is
  'Metrics of /metrics, summed over all users. The 64 functions with the most requests have their names; all others '
  'are summed as "other". Only the functions'' own token, which has no user and a claim for metrics, gets rows.';

-- Calls of each user in an org by day, for the org's admins. rag_check_rate_limit writes a row for each user and day,
-- rag_list_usage, rag_list_members and rag_stats read them. The worker deletes them after 90 days.

create table rag.org_calls (
  org_id uuid not null references rag.orgs (id) on delete cascade,
  owner_id uuid not null,
  day date not null,
  total bigint not null check (total > 0),
  primary key (org_id, owner_id, day)
);

comment on table rag.org_calls is 'Calls of each user in an org, by day.';
comment on column rag.org_calls.owner_id is 'The user who calls.';
comment on column rag.org_calls.day is 'In UTC, as is the midnight that starts it.';
comment on column rag.org_calls.total is
  'Requests that the rate limit admitted, whatever their result. Health checks and direct calls are not counted.';

-- rag_list_usage, rag_stats
create index org_calls_by_day on rag.org_calls (org_id, day);

-- rag_remove_old_calls
create index org_calls_old on rag.org_calls (day);

alter table rag.org_calls enable row level security;
alter table rag.org_calls force row level security;

create policy "callers see their own calls, admins their org's" on rag.org_calls
  for all to authenticated
  using (org_id = any (array(select rag.current_org_ids()))
    and (owner_id is null or owner_id = (select rag.current_user_id())
      or org_id = any (array(select rag.admin_org_ids()))))
  with check (org_id = any (array(select rag.current_org_ids()))
    and (owner_id is null or owner_id = (select rag.current_user_id())
      or org_id = any (array(select rag.admin_org_ids()))));

create policy "calls are of oneself" on rag.org_calls
  as restrictive for insert to authenticated
  with check (owner_id = (select rag.current_user_id()));

create policy "users count their own calls" on rag.org_calls
  as restrictive for update to authenticated
  using (owner_id = (select rag.current_user_id())) with check (owner_id = (select rag.current_user_id()));

create function rag.first_counted_day()
returns date
language sql stable security invoker set search_path = ''
as $$
  select (now() at time zone 'UTC')::date - 89;
$$;

comment on function rag.first_counted_day is 'The earliest day whose calls are kept: with today, 90 days.';

create policy "the worker sees old calls" on rag.org_calls
  for select to rag_worker using (day < (select rag.first_counted_day()));

create policy "the worker removes old calls" on rag.org_calls
  for delete to rag_worker using (day < (select rag.first_counted_day()));

create function public.rag_remove_old_calls()
returns bigint
language sql volatile security invoker set search_path = ''
as $$
  -- Raises PT401 for a token of another issuer.
  select rag.current_user_id();
  with removed as (
    delete from rag.org_calls
    where day = (select min(old.day) from rag.org_calls as old where old.day < rag.first_counted_day())
    returning 1
  ), ended as (
    delete from rag.rate_limits
    where bucket like '%link %' and started_at < now() - interval '1 day'
    returning 1
  )
  select (select count(*) from removed) + (select count(*) from ended);
$$;

comment on function public.rag_remove_old_calls is
  'For the worker: remove the counts of the oldest day that is more than 90 days ago, and the windows of download links '
  'that have ended, and return the number of both. More days need more calls.';

create function rag.count_org_call(org_ids uuid[])
returns void
language plpgsql volatile security invoker set search_path = ''
as $$
declare
  today constant date := (clock_timestamp() at time zone 'UTC')::date;
begin
  if cardinality(org_ids) <> 1 then
    return;
  end if;
  -- Row security reads the memberships for an update half as often as for an insert.
  update rag.org_calls as present set total = present.total + 1
  where present.org_id = org_ids[1] and present.owner_id = rag.current_user_id() and present.day = today;
  if not found then
    insert into rag.org_calls as present (org_id, owner_id, day, total)
    values (org_ids[1], rag.current_user_id(), today, 1)
    on conflict on constraint org_calls_pkey do update set total = present.total + 1;
  end if;
end;
$$;

comment on function rag.count_org_call is
  'Count a call of a token that is for one of these orgs alone. For several orgs it is unknown which one the call concerns, '
  'and no other may learn of it.';

create function public.rag_list_usage(days integer default 30)
returns table (day date, calls bigint, users bigint, model_tokens bigint, embedding_tokens bigint)
language plpgsql stable security invoker set search_path = ''
as $$
#variable_conflict use_column
declare
  is_admitted constant boolean := rag.begin_call();
  own constant uuid[] := rag.require_admin_org();
  today constant date := (now() at time zone 'UTC')::date;
begin
  perform rag.require_whole_org();
  if rag_list_usage.days is null or rag_list_usage.days not between 1 and 90 then
    raise exception 'days must be between 1 and 90' using errcode = 'PT400', detail = 'invalid_days';
  end if;
  return query
    select dates.day, coalesce(sum(org_calls.total), 0)::bigint, count(distinct org_calls.owner_id),
      (select coalesce(sum(spent.tokens), 0)::bigint from rag.token_usage as spent
      where spent.org_id = any (own) and spent.day = dates.day and spent.quota = 'model'),
      (select coalesce(sum(spent.tokens), 0)::bigint from rag.token_usage as spent
      where spent.org_id = any (own) and spent.day = dates.day and spent.quota = 'embedding')
    from (
      select today - ago as day from generate_series(0, rag_list_usage.days - 1) as ago
    ) as dates
    left join rag.org_calls on org_calls.day = dates.day and org_calls.org_id = any (own)
      and org_calls.day > today - rag_list_usage.days
    group by dates.day
    order by dates.day;
end;
$$;

comment on function public.rag_list_usage is
  'The calls of the last days, today included, in the orgs that the caller administers: by day in UTC, their number, '
  'that of the users who called, and the tokens of models. Days without calls are included. PT403 for a caller who '
  'administers no org, and for a key that is bound to a collection.';

-- The members of the orgs that an admin administers, with their calls, and the open invitations.

create function public.rag_list_members(
  "limit" integer default 20, "offset" integer default 0, invited boolean default false
)
returns jsonb
language plpgsql stable security invoker set search_path = ''
as $$
declare
  is_admitted constant boolean := rag.begin_call();
  own constant uuid[] := rag.require_admin_org();
begin
  perform rag.require_whole_org();
  perform rag.check_page("limit", "offset", 'desc', 'created_at', array['created_at']);
  -- For the policy of rag.members (rag.listed_org_ids), in this transaction.
  perform set_config('rag.lists_members', 'true', true);
  return (
    with listed as materialized (
      -- An adopter's replacement may return more.
      select members.* from rag.org_members(own) as members where members.org_id = any (own) and invited is not true
      union all
      select members.org_id, members.user_id, members.role, members.name, members.created_at
      from rag.members
      where members.org_id = any (own) and members.accepted_at is null and invited
    ), page as (
      select listed.*, row_number() over (order by listed.name, listed.user_id, listed.org_id) as position
      from listed
      order by position
      limit "limit" offset "offset"
    )
    select jsonb_build_object(
      'total', (select count(*) from listed),
      'members', coalesce(jsonb_agg(to_jsonb(page) - 'position' || to_jsonb(called) order by page.position), '[]'))
    from page
    cross join lateral (
      select coalesce(sum(org_calls.total), 0) as calls, max(org_calls.day) as last_called_on
      from rag.org_calls
      where org_calls.org_id = page.org_id and org_calls.owner_id = page.user_id
    ) as called);
end;
$$;

comment on function public.rag_list_members is
  '{"total", "members": [...]}: a page of the members of the orgs that the caller administers, by name, each with the '
  'calls of the last 90 days and the day of the last one; with `invited` the open invitations instead. PT403 for a caller who administers no org, and for a key that '
  'is bound to a collection.';

-- Quotas of tokens by org and day (UTC). The functions add the tokens of their calls of models; rag_check_rate_limit
-- returns which quotas are exceeded, and rag_open_job refuses a document. A tier sets two numbers for each quota: at
-- the first the org's admins get a webhook event and an audit event, at the second calls of the model stop until
-- midnight. Requests that run when the limit is reached end normally.
--
-- There are two quotas. model: prompts and replies of chat models, and texts of rerankers. embedding: embedded texts.
-- Local models cost no tokens.

create table rag.token_usage (
  org_id uuid not null references rag.orgs (id) on delete cascade,
  owner_id uuid check (owner_id is null),
  day date not null,
  quota text not null check (quota in ('model', 'embedding')),
  tokens bigint not null check (tokens >= 0),
  calls bigint not null check (calls > 0),
  alerted_at timestamptz,
  exceeded_at timestamptz,
  primary key (org_id, day, quota)
) with (fillfactor = 50);

comment on table rag.token_usage is 'Tokens of models and embeddings, by org and day.';
comment on column rag.token_usage.owner_id is 'Always null: the quotas belong to the org.';
comment on column rag.token_usage.day is 'In UTC, as is the midnight that starts it.';
comment on column rag.token_usage.calls is 'Calls of models.';
comment on column rag.token_usage.alerted_at is
  'When the tokens reached the alert of the tier; null again after the alert was raised above them.';
comment on column rag.token_usage.exceeded_at is
  'When the tokens reached the limit of the tier; null again after the limit was raised above them.';

-- rag_metrics: today's rows of all orgs
create index token_usage_by_day on rag.token_usage (day);

alter table rag.token_usage enable row level security;
alter table rag.token_usage force row level security;

create policy "members use their org's token_usage, metrics read all" on rag.token_usage
  for all to authenticated
  using (org_id = any (array(select rag.current_org_ids()))
    and (owner_id is null or owner_id = (select rag.current_user_id())
      or org_id = any (array(select rag.admin_org_ids())))
    or (select rag.reads_metrics()))
  with check (org_id = any (array(select rag.current_org_ids()))
    and (owner_id is null or owner_id = (select rag.current_user_id())
      or org_id = any (array(select rag.admin_org_ids()))));

create policy "calls of the functions add tokens" on rag.token_usage
  as restrictive for insert to authenticated
  with check ((select not rag.is_direct_call()));

create policy "calls of the functions add more tokens" on rag.token_usage
  as restrictive for update to authenticated
  using ((select not rag.is_direct_call())) with check ((select not rag.is_direct_call()));

create function rag.org_quotas()
returns table (org_id uuid, quota text, tokens bigint, alert bigint, per_day bigint)
language sql stable security invoker set search_path = ''
as $$
  select orgs.id, limits.quota, coalesce(token_usage.tokens, 0), limits.alert, limits.per_day
  from rag.orgs
  join rag.tiers on tiers.name = orgs.tier
  cross join lateral (values
    ('model', tiers.model_tokens_alert, tiers.model_tokens_per_day),
    ('embedding', tiers.embedding_tokens_alert, tiers.embedding_tokens_per_day)) as limits (quota, alert, per_day)
  left join rag.token_usage on token_usage.org_id = orgs.id and token_usage.quota = limits.quota
    and token_usage.day = (clock_timestamp() at time zone 'UTC')::date
  where orgs.id = any (array(select rag.current_org_ids()));
$$;

comment on function rag.org_quotas is
  'The quotas of the caller''s orgs: the tokens of today, and the tier''s alert and limit (null: none).';

create function rag.exceeded_quotas()
returns text[]
language plpgsql stable security invoker set search_path = ''
as $$
begin
  if not exists (
    select from rag.tiers where num_nonnulls(tiers.model_tokens_per_day, tiers.embedding_tokens_per_day) > 0)
  then
    return '{}';
  end if;
  return array(
    select quotas.quota
    from rag.org_quotas() as quotas
    group by quotas.quota
    having bool_and(coalesce(quotas.tokens >= quotas.per_day, false))
    order by quotas.quota);
end;
$$;

comment on function rag.exceeded_quotas is
  'The quotas that the caller''s org has used up today; of a caller in several orgs, those that all of them have.';

create function rag.enqueue_quota_events(usage rag.token_usage, event text, tokens_allowed bigint)
returns void
language plpgsql volatile security invoker set search_path = ''
as $$
begin
  insert into rag.audit_events (org_id, user_id, event, namespace, document_count, chunk_count)
  values (usage.org_id, rag.current_user_id(), enqueue_quota_events.event, usage.quota, 0, 0);
  if rag.has_subscriber(usage.org_id, null, enqueue_quota_events.event) then
    perform rag.enqueue_event(usage.org_id, null, null, enqueue_quota_events.event, jsonb_build_object(
      'quota', usage.quota, 'day', usage.day, 'tokens', usage.tokens, 'limit', tokens_allowed));
  end if;
end;
$$;

comment on function rag.enqueue_quota_events is 'The audit event and the webhook event of a quota.';

create function rag.add_tokens(quota text, tokens bigint, calls integer)
returns void
language plpgsql volatile security invoker set search_path = ''
as $$
#variable_conflict use_variable
declare
  today constant date := (clock_timestamp() at time zone 'UTC')::date;
  counted record;
  used rag.token_usage;
  is_alerted boolean;
  is_exceeded boolean;
begin
  select * into counted
  from rag.org_quotas() as own
  where own.quota = add_tokens.quota
  order by own.per_day is not null, own.per_day - own.tokens desc, own.org_id
  limit 1;
  if not found then
    return;
  end if;
  -- The row is locked from here on, until the caller commits.
  update rag.token_usage as present
  set tokens = present.tokens + add_tokens.tokens, calls = present.calls + add_tokens.calls
  where present.org_id = counted.org_id and present.day = today and present.quota = add_tokens.quota
  returning present.* into used;
  if not found then
    insert into rag.token_usage as present (org_id, day, quota, tokens, calls)
    values (counted.org_id, today, quota, tokens, calls)
    on conflict on constraint token_usage_pkey do update
    set tokens = present.tokens + excluded.tokens, calls = present.calls + excluded.calls
    returning present.* into used;
  end if;
  is_alerted := coalesce(used.tokens >= counted.alert, false);
  is_exceeded := coalesce(used.tokens >= counted.per_day, false);
  if (is_alerted, is_exceeded) is distinct from (used.alerted_at is not null, used.exceeded_at is not null) then
    -- A number that the deployer raised meanwhile may be reached again.
    update rag.token_usage as present
    set alerted_at = case when is_alerted then coalesce(used.alerted_at, clock_timestamp()) end,
      exceeded_at = case when is_exceeded then coalesce(used.exceeded_at, clock_timestamp()) end
    where present.org_id = used.org_id and present.day = used.day and present.quota = used.quota;
  end if;
  if is_alerted and used.alerted_at is null then
    perform rag.enqueue_quota_events(used, 'quota.alert', counted.alert);
  end if;
  if is_exceeded and used.exceeded_at is null then
    perform rag.enqueue_quota_events(used, 'quota.exceeded', counted.per_day);
  end if;
end;
$$;

comment on function rag.add_tokens is
  'Add tokens to the usage of the caller''s org, with the events of an alert and of a limit that they reach. Of several '
  'orgs, they count for the one with the most tokens left, an org without a limit first.';

create function public.rag_record_tokens(
  model_tokens bigint default 0, model_calls integer default 0, embedding_tokens bigint default 0,
  embedding_calls integer default 0
)
returns void
language plpgsql volatile security invoker set search_path = ''
as $$
begin
  perform rag.begin_call();
  if rag.is_direct_call() then
    raise exception 'Only this project''s functions may call this. Call the HTTP API instead.'
      using errcode = 'PT403', detail = 'functions_secret_required';
  elsif coalesce(least(model_tokens, model_calls, embedding_tokens, embedding_calls), -1) < 0
    or num_nulls(model_tokens, model_calls, embedding_tokens, embedding_calls) > 0
    or greatest(model_tokens, model_calls, embedding_tokens, embedding_calls) > 1000000000
  then
    raise exception 'Tokens and calls must be between 0 and 1,000,000,000.'
      using errcode = 'PT400', detail = 'invalid_tokens';
  end if;
  -- As in rag_check_rate_limit, the commit does not wait for the disk.
  perform set_config('synchronous_commit', 'off', true);
  -- In one order, in which concurrent calls lock the rows.
  if embedding_calls > 0 then
    perform rag.add_tokens('embedding', embedding_tokens, embedding_calls);
  end if;
  if model_calls > 0 then
    perform rag.add_tokens('model', model_tokens, model_calls);
  end if;
end;
$$;

comment on function public.rag_record_tokens is
  'Add the tokens of a request''s calls of models to the usage of the caller''s org.';

create function rag.require_embedding_quota()
returns void
language plpgsql stable security invoker set search_path = ''
as $$
begin
  if 'embedding' = any (rag.exceeded_quotas()) then
    raise exception 'The org has used up its tokens for embeddings today. The document is processed after midnight UTC.'
      using errcode = 'PT429', detail = 'embedding_quota_exceeded';
  end if;
end;
$$;

comment on function rag.require_embedding_quota is
  'Raises PT429 if the caller''s org has used up its tokens for embeddings today.';

create function rag.quota_metrics()
returns table (
  name text, labels jsonb, value double precision, total bigint, bounds double precision[], buckets bigint[]
)
language sql stable security invoker set search_path = ''
as $$
  select counted.name, jsonb_build_object('label', quotas.quota), counted.value, 1::bigint, '{}'::double precision[],
    '{}'::bigint[]
  from (values ('model'), ('embedding')) as quotas (quota)
  cross join lateral (
    select coalesce(sum(token_usage.tokens), 0)::double precision as tokens, count(token_usage.alerted_at) as alerted,
      count(token_usage.exceeded_at) as exceeded
    from rag.token_usage
    where token_usage.day = (clock_timestamp() at time zone 'UTC')::date and token_usage.quota = quotas.quota
  ) as today
  cross join lateral (values
    ('rag_quota_tokens_today', today.tokens), ('rag_quota_orgs_alerted', today.alerted::double precision),
    ('rag_quota_orgs_exceeded', today.exceeded::double precision)) as counted (name, value)
  where (select rag.reads_metrics());
$$;

comment on function rag.quota_metrics is
  'The rows of rag_metrics about quotas: the tokens of today, and the orgs that reached their alert or limit today.';

-- Idempotency keys: stored responses, so that a repeated request costs nothing twice, creates nothing twice and returns
-- the same. A response is claimed before the work, stored after it and replayed for 24 hours. The key and the body are
-- stored as hashes. The functions write and read as the caller: no other user, admin or API key sees a response, nor
-- does the caller after leaving the org.

create table rag.stored_responses (
  org_id uuid not null references rag.orgs (id) on delete cascade,
  owner_id uuid not null,
  caller_id uuid not null,
  key_hash text not null check (key_hash ~ '^[0-9a-f]{64}$'),
  body_hash text not null check (body_hash ~ '^[0-9a-f]{64}$'),
  collection_id uuid,
  claim uuid,
  due_at timestamptz,
  status integer check (status between 200 and 599),
  body json check (octet_length(body::text) <= 250000),
  request_id text check (length(request_id) between 1 and 200),
  chunk_ids uuid[] not null default '{}',
  created_at timestamptz not null,
  scope text not null default 'chat:read' check (scope in ('chat:read', 'documents:write', 'collections:manage')),
  primary key (org_id, owner_id, caller_id, key_hash),
  constraint stored_responses_state check (
    num_nonnulls(claim, due_at) = 2 and num_nonnulls(status, body, request_id) = 0
    or num_nonnulls(claim, due_at) = 0 and num_nonnulls(status, body, request_id) = 3)
);

comment on table rag.stored_responses is 'Stored responses of requests with an Idempotency-Key.';
comment on column rag.stored_responses.caller_id is
  'The API key that sent the request, else the user: rag.caller_id().';
comment on column rag.stored_responses.key_hash is 'SHA-256 of the key and the request.';
comment on column rag.stored_responses.collection_id is 'The collection that the API key of the request is bound to.';
comment on column rag.stored_responses.claim is
  'The claim of the request that computes the response, until due_at. Both are null in a finished response.';
comment on column rag.stored_responses.body is 'The body as it was sent, with the order of its keys.';
comment on column rag.stored_responses.chunk_ids is
  'The chunks that the response shows. It is replayed only if the caller still sees all of them.';
comment on column rag.stored_responses.scope is
  'The scope that an API key needs for the request, and for the stored response.';

-- rag_claim_response: the caller's expired responses.
create index stored_responses_by_age on rag.stored_responses (org_id, owner_id, caller_id, created_at);

call rag.admit_members('stored_responses');
call rag.bind_keys('stored_responses');

create policy "a response belongs to its caller" on rag.stored_responses
  as restrictive for all to authenticated
  using (owner_id = (select rag.current_user_id()) and caller_id = (select rag.caller_id()))
  with check (owner_id = (select rag.current_user_id()) and caller_id = (select rag.caller_id()));

create policy "a key has replies of its scopes" on rag.stored_responses
  as restrictive for all to authenticated
  using (scope = 'chat:read' and (select rag.has_scope('chat:read'))
    or scope = 'documents:write' and (select rag.has_scope('documents:write'))
    or scope = 'collections:manage' and (select rag.has_scope('collections:manage')))
  with check (scope = 'chat:read' and (select rag.has_scope('chat:read'))
    or scope = 'documents:write' and (select rag.has_scope('documents:write'))
    or scope = 'collections:manage' and (select rag.has_scope('collections:manage')));

create type rag.response_claim as (
  outcome text, claim uuid, status integer, body json, request_id text, retry_after integer, org_id uuid
);

comment on type rag.response_claim is
  'The decision on a request: go (with a claim that ends it), replay (the stored response), busy (an equal request '
  'is running; retry after so many seconds), or differs (the key was used for another request). org_id: the org '
  'that stores the response.';

create function rag.has_too_many_responses(org_id uuid)
returns boolean
language sql stable security invoker set search_path = ''
as $$
  select exists (
    select from rag.stored_responses as present
    where present.org_id = has_too_many_responses.org_id and present.owner_id = (select rag.current_user_id())
      and present.caller_id = (select rag.caller_id()) and present.created_at > now() - interval '24 hours'
    order by present.created_at
    offset 9999 limit 1);
$$;

comment on function rag.has_too_many_responses is 'Whether the caller has the maximum number of stored responses.';

create function rag.can_see_chunks(org_id uuid, ids uuid[])
returns boolean
language sql stable security invoker set search_path = ''
as $$
  select not exists (
    select from unnest(ids) as chunk (id)
    where not exists (
      select from rag.chunks where chunks.org_id = can_see_chunks.org_id and chunks.id = chunk.id));
$$;

comment on function rag.can_see_chunks is 'Whether the caller sees all of these chunks.';

create function rag.check_response_claim(home uuid, key_hash text, scope text, lease_seconds integer)
returns void
language plpgsql stable security invoker set search_path = ''
as $$
begin
  if scope is null or scope not in ('chat:read', 'documents:write', 'collections:manage') then
    raise exception 'scope must be chat:read, documents:write or collections:manage'
      using errcode = 'PT400', detail = 'invalid_scope';
  elsif not rag.has_scope(scope) then
    raise exception 'The API key lacks the scope %. Use a key that has it.', scope
      using errcode = 'PT403', detail = 'missing_scope';
  elsif lease_seconds is null or lease_seconds not between 1 and 3600 then
    raise exception 'lease_seconds must be between 1 and 3600' using errcode = 'PT400', detail = 'invalid_lease';
  elsif rag.has_too_many_responses(home) and not exists (
    select from rag.stored_responses as present
    where present.org_id = home and present.owner_id = rag.current_user_id() and present.caller_id = rag.caller_id()
      and present.key_hash = check_response_claim.key_hash
  ) then
    -- Stored responses are still replayed: none is deleted before its time.
    raise exception 'Too many responses are stored. Send fewer requests with an Idempotency-Key.'
      using errcode = 'PT429', detail = 'too_many_replies';
  end if;
end;
$$;

comment on function rag.check_response_claim is
  'Raises PT400 for invalid arguments of rag_claim_response, PT403 for a key without the scope, and PT429 for a new '
  'key of a caller with too many stored responses.';

create function rag.try_claim_response(home uuid, key_hash text, body_hash text, scope text, lease_seconds integer)
returns uuid
language plpgsql volatile security invoker set search_path = ''
as $$
#variable_conflict use_variable
declare
  -- The clock, not the transaction's time: one may have waited for another.
  moment constant timestamptz := clock_timestamp();
  claim uuid;
begin
  insert into rag.stored_responses as present (
    org_id, owner_id, caller_id, key_hash, body_hash, collection_id, claim, due_at, created_at, scope)
  values (home, rag.current_user_id(), rag.caller_id(), key_hash, body_hash, rag.bound_collection(), gen_random_uuid(),
    moment + make_interval(secs => lease_seconds), moment, scope)
  on conflict on constraint stored_responses_pkey do update
  set body_hash = excluded.body_hash, claim = excluded.claim, due_at = excluded.due_at, status = null, body = null,
    request_id = null, chunk_ids = '{}', created_at = excluded.created_at, scope = excluded.scope
  where present.created_at <= clock_timestamp() - interval '24 hours'
    or present.due_at <= clock_timestamp() and present.body_hash = excluded.body_hash
    or present.status is not null and present.body_hash = excluded.body_hash
      and not rag.can_see_chunks(home, present.chunk_ids)
  returning present.claim into claim;
  return claim;
end;
$$;

comment on function rag.try_claim_response is
  'Claim a key that is new or expired, whose earlier claim ended without a response, or whose response shows chunks '
  'that the caller no longer sees: the claim; null if the key is in use.';

create function public.rag_claim_response(
  org_id uuid, key_hash text, body_hash text, lease_seconds integer, collection_id uuid default null,
  scope text default 'chat:read'
)
returns setof rag.response_claim
language plpgsql volatile security invoker set search_path = ''
as $$
#variable_conflict use_variable
declare
  is_admitted constant boolean := rag.begin_call();
  home constant uuid := case
    when collection_id is null then rag.resolve_org(org_id) else (rag.get_collection(collection_id)).org_id end;
  known rag.stored_responses;
  answer rag.response_claim;
begin
  perform rag.check_response_claim(home, key_hash, scope, lease_seconds);
  answer.org_id := home;
  -- Retry, in case the conflicting claim was released before this call read it.
  for attempt in 1..5 loop
    answer.claim := rag.try_claim_response(home, key_hash, body_hash, scope, lease_seconds);
    if answer.claim is not null then
      answer.outcome := 'go';
      perform rag.delete_expired_responses(home);
      return next answer;
      return;
    end if;

    select * into known
    from rag.stored_responses as present
    where present.org_id = home and present.owner_id = rag.current_user_id() and present.caller_id = rag.caller_id()
      and present.key_hash = rag_claim_response.key_hash;
    exit when found;
  end loop;
  if known.body_hash <> body_hash then
    answer.outcome := 'differs';
  elsif known.status is not null then
    answer.outcome := 'replay';
    answer.status := known.status;
    answer.body := known.body;
    answer.request_id := known.request_id;
  else
    -- As long again as it has been worked on, but no longer than the claim lasts.
    answer.outcome := 'busy';
    answer.retry_after := greatest(1, ceil(extract(epoch from
      least(known.due_at - clock_timestamp(), clock_timestamp() - known.created_at))));
  end if;
  return next answer;
end;
$$;

comment on function public.rag_claim_response is
  'Claim a request for so many seconds; meanwhile equal requests are busy. Of concurrent equal requests one gets '
  'the claim. The next equal request gets an expired claim; claims older than 24 hours do not exist. The response '
  'is stored in the org of the request''s collection, if there is one (PT404 for a collection that the caller does '
  'not see), else in the given org. scope: the scope that a key needs for the request.';

create function rag.delete_expired_responses(org_id uuid)
returns void
language sql volatile security invoker set search_path = ''
as $$
  with old as (
    select present.org_id, present.owner_id, present.caller_id, present.key_hash
    from rag.stored_responses as present
    where present.org_id = delete_expired_responses.org_id and present.owner_id = (select rag.current_user_id())
      and present.caller_id = (select rag.caller_id()) and present.created_at <= now() - interval '24 hours'
    order by present.created_at
    limit 100
    for update skip locked
  )
  delete from rag.stored_responses as present
  using old
  where present.org_id = old.org_id and present.owner_id = old.owner_id and present.caller_id = old.caller_id
    and present.key_hash = old.key_hash;
$$;

comment on function rag.delete_expired_responses is
  'Delete the caller''s expired responses, a hundred at a time. It skips locked rows, so it waits for no other '
  'call.';

create function public.rag_store_response(
  org_id uuid, key_hash text, claim uuid, status integer, body text, request_id text,
  chunk_ids uuid[] default '{}'
)
returns boolean
language plpgsql volatile security invoker set search_path = ''
as $$
#variable_conflict use_variable
begin
  perform rag.begin_call();
  if octet_length(body) > 250000 then
    perform public.rag_release_response(org_id, key_hash, claim);
    return false;
  end if;
  update rag.stored_responses as present
  set claim = null, due_at = null, status = rag_store_response.status, body = rag_store_response.body::json,
    request_id = rag_store_response.request_id, chunk_ids = coalesce(rag_store_response.chunk_ids, '{}')
  where present.org_id = rag.resolve_org(rag_store_response.org_id) and present.owner_id = rag.current_user_id()
    and present.caller_id = rag.caller_id() and present.key_hash = rag_store_response.key_hash
    and present.claim = rag_store_response.claim;
  return found;
end;
$$;

comment on function public.rag_store_response is
  'Store the response, under the claim of its request only; returns whether it is stored. A body above 250 kB is '
  'not, and releases the claim. chunk_ids: what it shows, without which it is not replayed. body: as JSON, in a '
  'text: an argument that is JSON itself is refused for a null character.';

create function public.rag_release_response(org_id uuid, key_hash text, claim uuid)
returns boolean
language plpgsql volatile security invoker set search_path = ''
as $$
#variable_conflict use_variable
begin
  perform rag.begin_call();
  delete from rag.stored_responses as present
  where present.org_id = rag.resolve_org(rag_release_response.org_id) and present.owner_id = rag.current_user_id()
    and present.caller_id = rag.caller_id() and present.key_hash = rag_release_response.key_hash
    and present.claim = rag_release_response.claim;
  return found;
end;
$$;

comment on function public.rag_release_response is
  'Release a claim, so that the next equal request is processed; returns whether the claim was valid.';

-- Records of answered requests: question, passages, judgement, prompt and answer, for explanation, replay and
-- evaluation. Off by default; an org turns them on with the days after which they expire (rag.orgs.record_days). The
-- functions write one record for each answered request, as its caller. Its user and the org's admins read it.
--
-- A record contains no text of a passage: it names chunks, whose texts are read under the reader's row security. The
-- answer, the reasons, the queries and the prompt may repeat such texts, so they are shown only to a reader who sees
-- all of the record's chunks (rag_get_record). They may also repeat texts that no chunk of the record has: earlier
-- answers of a conversation, descriptions in the graph, and passages beyond 100. Of the prompt, passages and earlier
-- messages are not stored.

create table rag.request_records (
  org_id uuid not null references rag.orgs (id) on delete cascade,
  id uuid not null default gen_random_uuid(),
  owner_id uuid not null,
  key_id uuid,
  collection_id uuid,
  request_id text not null check (length(request_id) between 1 and 200),
  function text not null check (function ~ '^[a-z][a-z0-9-]{0,39}$'),
  question text not null check (length(question) between 1 and 10000),
  queries jsonb not null check (jsonb_typeof(queries) = 'array' and jsonb_array_length(queries) between 1 and 20
    and not jsonb_path_exists(queries, '$[*] ? (!(@.text.type() == "string"))')),
  passages jsonb not null check (jsonb_typeof(passages) = 'array' and jsonb_array_length(passages) <= 100),
  confidence text not null check (confidence in ('high', 'medium', 'low')),
  score double precision not null check (score between 0 and 1),
  because text[] not null check (cardinality(because) <= 20),
  answer text check (length(answer) between 1 and 100000),
  model text check (length(model) <= 200),
  prompt jsonb check (jsonb_typeof(prompt) = 'array'),
  prompt_tokens integer not null check (prompt_tokens >= 0),
  completion_tokens integer not null check (completion_tokens >= 0),
  milliseconds integer not null check (milliseconds >= 0),
  created_at timestamptz not null default now(),
  expires_at timestamptz not null,
  rating text check (rating in ('up', 'down')),
  reason text check (length(reason) <= 2000),
  verdict text check (verdict in ('right', 'wrong')),
  document_ids uuid[] not null default '{}' check (cardinality(document_ids) <= 20),
  auth_user_id uuid generated always as (rag.auth_user_id(owner_id)) stored references auth.users (id) on delete cascade,
  primary key (org_id, id)
);

comment on table rag.request_records is 'Answered requests of orgs that record them.';
comment on column rag.request_records.owner_id is 'The user who asked.';
comment on column rag.request_records.key_id is 'The API key of the request; null for the user''s own token.';
comment on column rag.request_records.collection_id is
  'The one collection whose id was searched; null for several, and for one that was searched by its name with a key '
  'that is not bound. A key that is bound to a collection sees its records alone.';
comment on column rag.request_records.request_id is 'X-Request-Id of the response. Clients choose it, so several records may have the same.';
comment on column rag.request_records.queries is
  'The searches: the interpreted question with its mode, filters and number of passages.';
comment on column rag.request_records.passages is
  'The chunks that could answer, best first, with the score of each leg that found them.';
comment on column rag.request_records.answer is 'Null for a question that was not answered.';
comment on column rag.request_records.prompt is
  'The messages to the model, with a mark in the place of each passage and earlier message; null without a model.';
comment on column rag.request_records.expires_at is 'The end of the retention, from which on no caller sees the row.';
comment on column rag.request_records.rating is 'By the user who asked: up or down, and optionally a reason.';
comment on column rag.request_records.verdict is
  'By an admin: whether the answer, or the refusal, was right; the next column: the documents that answer.';

-- rag_list_records.
create index request_records_by_time on rag.request_records (org_id, created_at desc, id);
-- rag.get_record.
create index request_records_by_request on rag.request_records (org_id, request_id);
-- Deleting a user.
create index request_records_by_auth_user on rag.request_records (auth_user_id);
-- rag_remove_expired_records.
create index request_records_by_expiry on rag.request_records (expires_at);

call rag.admit_members('request_records');
call rag.bind_keys('request_records');

create policy "records are of oneself" on rag.request_records
  as restrictive for insert to authenticated
  with check (owner_id = (select rag.current_user_id())
    and key_id is not distinct from (select nullif(rag.caller_id(), rag.current_user_id())));

create policy "expired records are invisible" on rag.request_records
  as restrictive for select to authenticated
  using (expires_at > now());

create policy "a key records and reads answers with a scope that asks" on rag.request_records
  as restrictive for all to authenticated
  using ((select rag.has_scope('chat:read', 'retrievals:read')))
  with check ((select rag.has_scope('chat:read', 'retrievals:read')));

create policy "the worker sees expired records" on rag.request_records
  for select to rag_worker using (expires_at <= now());

create policy "the worker removes expired records" on rag.request_records
  for delete to rag_worker using (expires_at <= now());

create function rag.shorten_retention()
returns trigger
language plpgsql volatile security invoker set search_path = ''
as $$
begin
  -- rag_record_request has the lock until the end of its transaction, so that this deletes its record, too.
  perform pg_advisory_xact_lock(hashtextextended('rag.record_days ' || new.id, 0));
  delete from rag.request_records
  where org_id = new.id
    and (new.record_days is null or created_at + make_interval(days => new.record_days) <= now());
  update rag.request_records set expires_at = created_at + make_interval(days => new.record_days)
  where org_id = new.id and expires_at > created_at + make_interval(days => new.record_days);
  return null;
end;
$$;

comment on function rag.shorten_retention is 'Applies a shorter retention, or none, to the org''s earlier records.';

create trigger shorten_retention after update of record_days on rag.orgs
  for each row
  when (old.record_days is distinct from new.record_days)
  execute function rag.shorten_retention();

create function rag.org_of_record(orgs jsonb)
returns uuid
language sql stable security invoker set search_path = ''
as $$
  select candidate.ids[1]
  from (
    select case when coalesce(orgs, '[]') = '[]' then array(select rag.current_org_ids())
      else array(select distinct named.id::uuid from jsonb_array_elements_text(orgs) as named (id)) end as ids
  ) as candidate
  where cardinality(candidate.ids) = 1 and candidate.ids[1] in (select rag.current_org_ids());
$$;

comment on function rag.org_of_record is
  'The org that a request concerned: the one of its filters and passages, else the caller''s only org. Null for a '
  'request over several orgs: no admin may learn of another org''s passages.';

create function public.rag_record_request(record jsonb)
returns boolean
language plpgsql volatile security invoker set search_path = ''
as $$
declare
  is_admitted constant boolean := rag.begin_call() and rag.require_scope('chat:read', 'retrievals:read');
  org uuid;
  days integer;
begin
  perform rag.check_json('record', record, 1000000);
  if coalesce(jsonb_typeof(record -> 'org_ids'), 'null') not in ('null', 'array') then
    raise exception 'org_ids must be a list of ids' using errcode = 'PT400', detail = 'invalid_record';
  end if;
  org := rag.org_of_record(nullif(record -> 'org_ids', 'null'));
  -- While the retention changes, nothing is recorded.
  if org is null or not pg_try_advisory_xact_lock_shared(hashtextextended('rag.record_days ' || org, 0)) then
    return null;
  end if;
  select orgs.record_days into days from rag.orgs where orgs.id = org;
  if days is null then
    return false;
  end if;
  -- The anonymous caller of the index API has the token of a member, who did not ask.
  if rag.creator_id() <> rag.current_user_id() then
    return null;
  end if;
  insert into rag.request_records (org_id, owner_id, key_id, collection_id, request_id, function, question, queries,
    passages, confidence, score, because, answer, model, prompt, prompt_tokens, completion_tokens, milliseconds, expires_at)
  select org, rag.current_user_id(), nullif(rag.caller_id(), rag.current_user_id()),
    -- Not of a collection that the caller may not view, whose records others read.
    coalesce(rag.bound_collection(), case
      when request.collection_id not in (select rag.closed_collections('view')) then request.collection_id end),
    request.request_id, request.function,
    request.question, request.queries, (
      select coalesce(jsonb_agg(jsonb_strip_nulls(to_jsonb(passage)) order by item.position), '[]')
      from jsonb_array_elements(request.passages) with ordinality as item (body, position)
      cross join lateral jsonb_to_record(item.body) as passage (chunk_id uuid, document_id uuid,
        score double precision, similarity double precision, word_score double precision,
        relevance double precision, graph_sourced boolean)),
    request.confidence, request.score, request.because, request.answer, request.model, nullif(request.prompt, 'null'),
    request.prompt_tokens, request.completion_tokens, request.milliseconds, now() + make_interval(days => days)
  from jsonb_to_record(record) as request (collection_id uuid, request_id text, function text, question text,
    queries jsonb, passages jsonb, confidence text, score double precision, because text[], answer text, model text,
    prompt jsonb, prompt_tokens integer, completion_tokens integer, milliseconds integer);
  return true;
end;
$$;

comment on function public.rag_record_request is
  'Store a record of the caller''s answered request: true; false if the org records no requests. Null if this request '
  'is not recorded: over several orgs, of the anonymous caller of the index API, or while the retention changes. '
  'record: the columns of rag.request_records, and org_ids: the orgs of the request''s filters and passages.';

create function public.rag_remove_expired_records()
returns integer
language plpgsql volatile security invoker set search_path = ''
as $$
declare
  removed integer;
begin
  -- Raises PT401 for a token of another issuer.
  perform rag.current_user_id();
  delete from rag.request_records
  where (org_id, id) in (
    select expired.org_id, expired.id from rag.request_records as expired where expired.expires_at <= now() limit 10000);
  get diagnostics removed = row_count;
  return removed;
end;
$$;

comment on function public.rag_remove_expired_records is
  'Delete up to 10,000 expired records of all orgs; their number. For the worker.';

-- Reading and erasing records of requests: the explanation of an answer, the org's setting, deletion.

create function rag.get_record(record_id text)
returns rag.request_records
language plpgsql stable security invoker set search_path = ''
as $$
declare
  own constant uuid[] := array(select rag.current_org_ids());
  ids uuid[];
  found_record rag.request_records;
begin
  perform rag.require_scope('chat:read', 'retrievals:read');
  if record_id ~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' then
    select * into found_record from rag.request_records where org_id = any (own) and id = record_id::uuid;
  end if;
  if found_record.id is null then
    ids := array(
      select id from rag.request_records where org_id = any (own) and request_id = record_id
      order by created_at desc limit 10);
    -- Clients choose request ids: none of these requests may take the place of another.
    if cardinality(ids) > 1 then
      raise exception 'Several requests have this id. Use the id of a record, the latest first: %', array_to_string(ids, ', ')
        using errcode = 'PT409', detail = 'request_id_repeated';
    end if;
    select * into found_record from rag.request_records where org_id = any (own) and id = ids[1];
  end if;
  if found_record.id is null then
    raise exception 'There is no record of such a request. Check its id, and that your organization records requests.'
      using errcode = 'PT404', detail = 'record_not_found';
  end if;
  return found_record;
end;
$$;

comment on function rag.get_record is
  'The record of that id, or the only one with that request id. PT404 for a record that the caller may not read, PT409 '
  'with the ids of the records if the caller may read several with that request id.';

create function rag.passages_of_record(record rag.request_records)
returns jsonb
language sql stable security invoker set search_path = ''
as $$
  select coalesce(jsonb_agg(jsonb_build_object(
    'rank', position, 'chunk_id', chunk_id, 'document_id', document_id, 'score', score,
    'title', title, 'text', content, 'is_visible', content is not null,
    'legs', array_remove(array[
      case when similarity is not null
        then jsonb_build_object('leg', 'semantic', 'rank', similarity_rank, 'score', similarity) end,
      case when word_score > 0 then jsonb_build_object('leg', 'keyword', 'rank', word_rank, 'score', word_score) end,
      case when graph_sourced then jsonb_build_object('leg', 'graph', 'rank', graph_rank, 'score', score) end,
      case when relevance is not null
        then jsonb_build_object('leg', 'reranker', 'rank', relevance_rank, 'score', relevance) end
    ], null)) order by position), '[]')
  from (
    select item.position, passage.*, documents.title, chunks.content,
      rank() over (order by passage.similarity desc nulls last) as similarity_rank,
      rank() over (order by passage.word_score desc nulls last) as word_rank,
      rank() over (order by passage.graph_sourced desc nulls last, passage.score desc) as graph_rank,
      rank() over (order by passage.relevance desc nulls last) as relevance_rank
    from jsonb_array_elements(record.passages) with ordinality as item (body, position)
    cross join lateral jsonb_to_record(item.body) as passage (chunk_id uuid, document_id uuid,
      score double precision, similarity double precision, word_score double precision, relevance double precision,
      graph_sourced boolean)
    left join rag.chunks on chunks.org_id = record.org_id and chunks.id = passage.chunk_id
    left join rag.documents on documents.org_id = record.org_id and documents.id = chunks.document_id
  ) as ranked;
$$;

comment on function rag.passages_of_record is
  'The record''s passages with the title and text that the caller sees today, and their rank among the passages in '
  'each leg of the search that scored them.';

create function rag.key_name(org_id uuid, key_id uuid)
returns text
language sql stable security invoker set search_path = ''
as $$
  select api_keys.name from rag.api_keys where api_keys.org_id = key_name.org_id and api_keys.id = key_name.key_id;
$$;

comment on function rag.key_name is 'The name of an API key; null for a key that the caller may not list.';

create function public.rag_get_record(record_id text)
returns jsonb
language plpgsql stable security invoker set search_path = ''
as $$
declare
  is_admitted constant boolean := rag.begin_call() and rag.require_scope('chat:read');
  present constant rag.request_records := rag.get_record(rag_get_record.record_id);
  passages constant jsonb := rag.passages_of_record(present);
  is_complete constant boolean := not jsonb_path_exists(passages, '$[*] ? (@.is_visible == false)');
begin
  return to_jsonb(present) || jsonb_build_object(
    'passages', passages, 'key_name', rag.key_name(present.org_id, present.key_id), 'is_complete', is_complete, 'is_answered', present.answer is not null,
    'document_ids', array(
      select documents.id from rag.documents
      where documents.org_id = present.org_id and documents.id = any (present.document_ids) order by documents.id))
    || case when is_complete then '{}' else jsonb_build_object('answer', null, 'prompt', null, 'because', '[]'::jsonb,
      'queries', (
        -- A model may have rewritten the others from passages or earlier answers.
        select jsonb_agg(case when item.query ->> 'text' = present.question then item.query
          else item.query - 'words' || '{"text": null}' end order by item.position)
        from jsonb_array_elements(present.queries) with ordinality as item (query, position))) end;
end;
$$;

comment on function public.rag_get_record is
  'A record by its id or its request id, with the passages as the caller sees them today. If the caller does not see '
  'one of them, because it was deleted, replaced or made private, is_complete is false, and what may repeat its text is '
  'left out: answer, prompt, because, and the text of each query that is not the question itself. document_ids: those '
  'that the caller sees. PT404 for a record of another user, unless the caller administers the org. A key needs the '
  'scope chat:read.';

create function public.rag_delete_records(user_id uuid default null)
returns integer
language plpgsql volatile security invoker set search_path = ''
set statement_timeout = '60s'
as $$
declare
  removed integer;
begin
  perform rag.begin_call(), rag.require_scope('admin');
  delete from rag.request_records
  where org_id = any (array(select rag.current_org_ids())) and owner_id = coalesce(user_id, rag.current_user_id());
  get diagnostics removed = row_count;
  return removed;
end;
$$;

comment on function public.rag_delete_records is
  'Delete the records of a user, by default the caller, in the caller''s orgs; their number. Admins delete those of any '
  'user of their orgs, others delete only their own. A key needs the scope admin.';

create function public.rag_get_record_settings(org_id uuid default null)
returns jsonb
language plpgsql stable security invoker set search_path = ''
as $$
declare
  is_admitted constant boolean := rag.begin_call() and rag.require_scope('chat:read', 'retrievals:read');
  org constant uuid := rag.resolve_org(rag_get_record_settings.org_id);
begin
  return jsonb_build_object('org_id', org,
    'retention_days', (select orgs.record_days from rag.orgs where orgs.id = org));
end;
$$;

comment on function public.rag_get_record_settings is
  '{"org_id", "retention_days"}: the days for which the org records requests, null if it records none. Every member '
  'may know. PT400 and PT404 as rag.resolve_org.';

create function public.rag_update_record_settings(retention_days integer, org_id uuid default null)
returns jsonb
language plpgsql volatile security invoker set search_path = ''
set statement_timeout = '60s'
as $$
#variable_conflict use_column
declare
  is_admitted constant boolean := rag.begin_call();
  org constant uuid := rag.resolve_org(rag_update_record_settings.org_id);
  days constant integer := rag_update_record_settings.retention_days;
begin
  perform rag.require_admin(org);
  if days not between 1 and 3650 then
    raise exception 'retention_days must be between 1 and 3650, or null for no records'
      using errcode = 'PT400', detail = 'invalid_retention';
  end if;
  update rag.orgs set record_days = days where id = org;
  return jsonb_build_object('org_id', org, 'retention_days', days);
end;
$$;

comment on function public.rag_update_record_settings is
  'Record the org''s requests for that many days from now on; null stops it and deletes the org''s records. A shorter '
  'retention also applies to earlier records, a longer one does not. PT403 for a caller who is no admin.';

-- Review of recorded requests: their users rate the answers; the org's admins list, summarize and label them.

create function public.rag_rate_record(record_id text, rating text default null, reason text default null)
returns void
language plpgsql volatile security invoker set search_path = ''
as $$
#variable_conflict use_variable
declare
  is_admitted constant boolean := rag.begin_call();
  present constant rag.request_records := rag.get_record(record_id);
begin
  if present.owner_id <> rag.current_user_id() then
    raise exception 'Only the user who asked may rate an answer.' using errcode = 'PT403', detail = 'asker_required';
  elsif rating not in ('up', 'down') then
    raise exception 'rating must be up, down or null' using errcode = 'PT400', detail = 'invalid_rating';
  elsif length(reason) > 2000 then
    raise exception 'reason must have at most 2,000 characters' using errcode = 'PT400', detail = 'invalid_reason';
  end if;
  update rag.request_records as record
  set rating = rag_rate_record.rating,
    reason = case when rag_rate_record.rating is not null then rag_rate_record.reason end
  where record.org_id = present.org_id and record.id = present.id;
end;
$$;

comment on function public.rag_rate_record is
  'Rate the answer of one''s own request up or down, with an optional reason; null removes the rating. PT403 for the '
  'request of another user.';

create function public.rag_label_record(record_id text, verdict text default null, document_ids uuid[] default '{}')
returns void
language plpgsql volatile security invoker set search_path = ''
as $$
#variable_conflict use_variable
declare
  is_admitted constant boolean := rag.begin_call();
  present constant rag.request_records := rag.get_record(record_id);
begin
  if present.org_id not in (select rag.admin_org_ids()) then
    raise exception 'Only admins of the org may label a record. An API key also needs the scope admin.'
      using errcode = 'PT403', detail = 'admin_required';
  elsif verdict not in ('right', 'wrong') then
    raise exception 'verdict must be right, wrong or null' using errcode = 'PT400', detail = 'invalid_verdict';
  elsif document_ids is null or cardinality(document_ids) > 20 or (verdict is null and document_ids <> '{}') then
    raise exception 'document_ids must be at most 20 ids, and none without a verdict'
      using errcode = 'PT400', detail = 'invalid_ids';
  elsif exists (
    select from unnest(document_ids) as named (id)
    where not exists (
      select from rag.documents where documents.org_id = present.org_id and documents.id = named.id))
  then
    raise exception 'There is no such document. Check its id.' using errcode = 'PT404', detail = 'document_not_found';
  end if;
  update rag.request_records as record
  set verdict = rag_label_record.verdict, document_ids = rag_label_record.document_ids
  where record.org_id = present.org_id and record.id = present.id;
end;
$$;

comment on function public.rag_label_record is
  'Label a record as an admin of its org: whether the answer, or the refusal, was right, and the documents that answer '
  'the question; null removes the label. PT403 for others; PT404 for a document that the caller does not see.';

create function public.rag_list_records(
  "limit" integer default 20, "offset" integer default 0, sort_by text default 'created_at',
  answered boolean default null, rating text default null, labelled boolean default null
)
returns jsonb
language plpgsql stable security invoker set search_path = ''
as $$
#variable_conflict use_column
declare
  is_admitted constant boolean := rag.begin_call();
  own constant uuid[] := rag.require_admin_org();
begin
  perform rag.check_page("limit", "offset", 'desc', sort_by, array['created_at', 'milliseconds']);
  return (
    with listed as not materialized (
      select present.id, present.request_id, present.org_id, present.owner_id, present.key_id, present.function,
        present.question, present.confidence, present.answer is not null as is_answered, present.rating, present.reason,
        present.verdict, present.document_ids, present.milliseconds, present.prompt_tokens,
        present.completion_tokens, present.created_at
      from rag.request_records as present
      where present.org_id = any (own)
        and (rag_list_records.answered is null or (present.answer is not null) = rag_list_records.answered)
        and (rag_list_records.rating is null or present.rating = rag_list_records.rating)
        and (rag_list_records.labelled is null or (present.verdict is not null) = rag_list_records.labelled)
    ), page as (
      select listed.*, row_number() over (
        order by case when rag_list_records.sort_by = 'milliseconds' then listed.milliseconds end desc,
          listed.created_at desc, listed.id) as position
      from listed
      order by position
      limit "limit" offset "offset"
    )
    select jsonb_build_object(
      'total', (select count(*) from listed),
      'records', coalesce(jsonb_agg(to_jsonb(page) - 'position'
        || jsonb_build_object('key_name', rag.key_name(page.org_id, page.key_id)) order by page.position), '[]'))
    from page);
end;
$$;

comment on function public.rag_list_records is
  '{"total", "records": [...]}: a page of the records of the orgs that the caller administers, the latest or, by '
  'milliseconds, the slowest first, without answers, prompts and passages. answered, rating and labelled filter them. '
  'PT403 for a caller who administers no org.';

create function public.rag_summarize_records(days integer default 30)
returns jsonb
language plpgsql stable security invoker set search_path = ''
as $$
declare
  is_admitted constant boolean := rag.begin_call();
  own constant uuid[] := rag.require_admin_org();
begin
  if days is null or days not between 1 and 3650 then
    raise exception 'days must be between 1 and 3650' using errcode = 'PT400', detail = 'invalid_days';
  end if;
  return (
    with recent as materialized (
      select present.answer is not null as is_answered, present.confidence, present.rating, present.verdict,
        present.milliseconds, present.prompt_tokens, present.completion_tokens,
        left(regexp_replace(lower(btrim(present.question)), '\s+', ' ', 'g'), 500) as question
      from rag.request_records as present
      where present.org_id = any (own) and present.created_at > now() - make_interval(days => days)
      order by present.created_at desc
      limit 100000
    ), unanswered as (
      select recent.question, count(*) as requests
      from recent
      where not recent.is_answered
      group by recent.question
      order by requests desc, recent.question
      limit 20
    )
    select jsonb_build_object(
      'requests', count(*),
      'answered', count(*) filter (where recent.is_answered),
      'withheld', count(*) filter (where not recent.is_answered),
      'confidence', jsonb_build_object('high', count(*) filter (where recent.confidence = 'high'),
        'medium', count(*) filter (where recent.confidence = 'medium'),
        'low', count(*) filter (where recent.confidence = 'low')),
      'rated_up', count(*) filter (where recent.rating = 'up'),
      'rated_down', count(*) filter (where recent.rating = 'down'),
      'labelled_right', count(*) filter (where recent.verdict = 'right'),
      'labelled_wrong', count(*) filter (where recent.verdict = 'wrong'),
      'p50_ms', percentile_disc(0.5) within group (order by recent.milliseconds),
      'p95_ms', percentile_disc(0.95) within group (order by recent.milliseconds),
      'prompt_tokens', coalesce(sum(recent.prompt_tokens), 0),
      'completion_tokens', coalesce(sum(recent.completion_tokens), 0),
      'unanswered', (select coalesce(jsonb_agg(to_jsonb(unanswered) order by unanswered.requests desc,
        unanswered.question), '[]') from unanswered))
    from recent);
end;
$$;

comment on function public.rag_summarize_records is
  'Counts of the records of the last days in the orgs that the caller administers, at most the latest 100,000: answered, '
  'withheld, by confidence, ratings, labels, milliseconds, tokens; unanswered: the 20 most frequent questions without an '
  'answer, in lower case. PT403 for a caller who administers no org.';

-- Audit events of the knowledge API, of quotas of tokens (28_token_quotas.sql) and of members
-- (../10_identity/45_manage_members.sql): counts and a score, never a text or
-- a query. The functions write each event as the caller of the request. The org's admins read the events; members do
-- not, because the counts include private documents. No user changes or deletes an event: the deployer prunes them in
-- SQL.

create table rag.audit_events (
  org_id uuid not null references rag.orgs (id) on delete cascade,
  id uuid not null default gen_random_uuid(),
  owner_id uuid,
  user_id uuid not null,
  event text not null check (event in ('knowledge.ingest', 'knowledge.retrieve', 'knowledge.query', 'knowledge.delete',
    'quota.alert', 'quota.exceeded', 'member.put', 'member.remove')),
  namespace text not null check (length(namespace) between 1 and 255),
  collection_id uuid,
  document_count integer not null check (document_count >= 0),
  chunk_count integer not null check (chunk_count >= 0),
  top_score double precision check (top_score between 0 and 1),
  created_at timestamptz not null default now(),
  primary key (org_id, id)
);

comment on table rag.audit_events is 'Audit events of the knowledge API, of quotas of tokens and of changes of members.';
comment on column rag.audit_events.namespace is 'For events of a quota: the quota; of a member: the id of the user.';
comment on column rag.audit_events.owner_id is 'The owner of a private namespace; null for a shared one.';
comment on column rag.audit_events.user_id is 'The user who sent the request.';
comment on column rag.audit_events.collection_id is
  'Null where there was none of that name. The event remains when the collection is deleted.';
comment on column rag.audit_events.top_score is 'The score of the best chunk; null without a chunk.';

-- rag_list_events; and pruning, org by org.
create index audit_events_by_time on rag.audit_events (org_id, created_at desc, id);

call rag.admit_members('audit_events');

create policy "events are of oneself" on rag.audit_events
  as restrictive for insert to authenticated
  with check (user_id = (select rag.current_user_id()));

create policy "a key notes what its scopes let it do" on rag.audit_events
  as restrictive for insert to authenticated
  with check (case when event in ('knowledge.ingest', 'knowledge.delete')
    then (select rag.has_scope('documents:write'))
    when event in ('quota.alert', 'quota.exceeded') then true
    when event in ('member.put', 'member.remove') then (select rag.caller_id()) = (select rag.current_user_id())
    else (select rag.has_scope('retrievals:read', 'chat:read')) end);

create policy "admins read events" on rag.audit_events
  as restrictive for select to authenticated
  using (org_id = any (array(select rag.admin_org_ids())));

-- A request of a bound key outside its collection has no collection.
create policy "a bound key stays in its collection" on rag.audit_events
  as restrictive for all to authenticated
  using ((select rag.bound_collection()) is null or collection_id = (select rag.bound_collection()))
  with check ((select rag.bound_collection()) is null or collection_id is null
    or collection_id = (select rag.bound_collection()));

create function public.rag_record_event(
  event text, namespace text, documents integer default 0, chunks integer default 0,
  top_score double precision default null, measures jsonb default '[]'
)
returns void
language plpgsql volatile security invoker set search_path = ''
as $$
declare
  is_admitted constant boolean := rag.begin_call();
  org_id constant uuid := rag.resolve_org(null);
  home rag.collections;
begin
  perform rag.check_owner_in_name(org_id, rag_record_event.namespace);
  select * into home from rag.collection_by_name(org_id, rag_record_event.namespace, or_deleted => true);
  insert into rag.audit_events (
    org_id, owner_id, user_id, event, namespace, collection_id, document_count, chunk_count, top_score)
  values (
    org_id, coalesce(home.owner_id, rag.owner_in_name(rag_record_event.namespace)), rag.current_user_id(), rag_record_event.event,
    rag_record_event.namespace, home.id, rag_record_event.documents, rag_record_event.chunks,
    rag_record_event.top_score);
  perform public.rag_record_metrics(rag_record_event.measures);
end;
$$;

comment on function public.rag_record_event is
  'Record a request of the caller in a namespace, and add its metrics; measures: as rag_record_metrics takes them.';

create function public.rag_list_events(
  "limit" integer default 20, "offset" integer default 0, namespace text default null, event text default null
)
returns jsonb
language plpgsql stable security invoker set search_path = ''
as $$
begin
  perform rag.begin_call();
  perform rag.check_page("limit", "offset", 'desc', 'created_at', array['created_at']);
  perform rag.require_admin_org();
  return (
    with listed as (
      select audit_events.*
      from rag.audit_events
      where audit_events.org_id = any (array(select rag.admin_org_ids()))
        and (rag_list_events.namespace is null or audit_events.namespace = rag_list_events.namespace)
        and (rag_list_events.event is null or audit_events.event = rag_list_events.event)
    ), page as (
      select listed.*
      from listed
      order by listed.created_at desc, listed.id
      limit "limit" offset "offset"
    )
    select jsonb_build_object(
      'total', (select count(*) from listed),
      'events', coalesce(jsonb_agg(to_jsonb(page) order by page.created_at desc, page.id), '[]'))
    from page);
end;
$$;

comment on function public.rag_list_events is
  '{"total", "events": [...]}: a page of the events of the orgs that the caller administers, the latest first, and '
  'their number; namespace and event filter them. PT403 for a caller who administers no org.';

-- Statistics of the orgs that an admin administers.

create function rag.count_graph(org_ids uuid[], row_limit integer, out counted bigint[], out entities bigint,
  out relationships bigint)
language plpgsql stable security invoker set search_path = ''
as $$
#variable_conflict use_column
begin
  with named as materialized (
    select mentions.org_id, mentions.entity from rag.mentions where mentions.org_id = any (org_ids) limit row_limit
  ), titled as materialized (
    select title_entities.org_id, title_entities.entity
    from rag.title_entities where title_entities.org_id = any (org_ids) limit row_limit
  )
  select array[(select count(*) from named), (select count(*) from titled)],
    (select count(*) from (select * from named union select * from titled) as either)
  into counted, entities;

  with stated as materialized (
    select relations.org_id, relations.subject, relations.type, relations.object
    from rag.relations where relations.org_id = any (org_ids) limit row_limit
  )
  select count_graph.counted || (select count(*) from stated),
    (select count(*) from (select distinct * from stated) as one)
  into counted, relationships;
end;
$$;

comment on function rag.count_graph is
  'The distinct entities and relationships in the first rows of each table of the graph, and the number of these rows '
  'by table.';

create function public.rag_stats(max_rows integer default 500000)
returns table (
  total_users bigint, total_collections bigint, total_documents bigint, total_chunks bigint, total_entities bigint,
  total_relationships bigint, storage_used_bytes bigint, api_calls_today bigint, is_complete boolean
)
language plpgsql stable security invoker set search_path = ''
as $$
#variable_conflict use_variable
declare
  is_admitted constant boolean := rag.begin_call();
  own constant uuid[] := rag.require_admin_org();
  fewer constant integer := least(max_rows, 200000);
  counted bigint[];
  days_of_users bigint;
begin
  if coalesce(max_rows, 0) not between 1 and 500000 then
    raise exception 'max_rows must be between 1 and 500000' using errcode = 'PT400', detail = 'invalid_max_rows';
  end if;

  select array[count(*)], coalesce(sum(found.total), 0) into counted, api_calls_today
  from (
    select org_calls.total
    from rag.org_calls
    where org_calls.org_id = any (own) and org_calls.day = (now() at time zone 'UTC')::date
      and (select rag.bound_collection()) is null
    limit fewer
  ) as found;

  -- A user of several of these orgs is one, and has a row for each day.
  select count(*), count(distinct found.owner_id) into days_of_users, total_users
  from (
    select org_calls.owner_id
    from rag.org_calls
    where org_calls.org_id = any (own) and (select rag.bound_collection()) is null
    limit max_rows
  ) as found;

  select count(*) into total_collections
  from (select from rag.collections where collections.org_id = any (own) limit max_rows) as found;

  select count(*) into total_documents
  from (select from rag.documents where documents.org_id = any (own) limit max_rows) as found;

  -- Sizes are read from where values begin, and not the values.
  select counted || count(*), coalesce(sum(found.bytes), 0) into counted, storage_used_bytes
  from (
    select octet_length(documents.content) + coalesce(octet_length(originals.bytes),
      case when originals.path is not null then documents.size_bytes end, 0)::bigint as bytes
    from rag.documents
    left join rag.originals on originals.org_id = documents.org_id and originals.document_id = documents.id
    where documents.org_id = any (own)
    limit fewer
  ) as found;

  select count(*) into total_chunks
  from (select from rag.chunks where chunks.org_id = any (own) limit max_rows) as found;

  select counted || graph.counted, graph.entities, graph.relationships
  into counted, total_entities, total_relationships
  from rag.count_graph(own, fewer) as graph;

  is_complete := fewer > all (counted)
    and max_rows > all (array[days_of_users, total_collections, total_documents, total_chunks]);
  return next;
end;
$$;

comment on function public.rag_stats is
  'Totals of the orgs that the caller administers. Of each table at most max_rows rows are counted, and fewer where '
  'rows must be read, because the call must end within eight seconds; is_complete says whether that was enough. '
  'total_users: the users who called within 90 days. Entities are distinct names by org, relationships distinct '
  'relations. A key that is bound to a collection gets the totals of the collection, without users and calls. PT403 '
  'for a caller who administers no org.';

-- The schema's version, the state of the worker's queues and the length of the keyword index's tails, for health checks.

create function rag.version()
returns text
language sql immutable security invoker set search_path = ''
as $$
  select '20261124000000';
$$;

comment on function rag.version is
  'The newest migration of this database; the functions'' code states which one it needs.';

create function rag.queues(own uuid[])
returns jsonb
language sql stable security invoker set search_path = ''
as $$
  select jsonb_object_agg(counted.kind, to_jsonb(counted) - 'kind')
  from (
    select queue.kind, count(*) filter (where not item.is_running) as waiting,
      count(*) filter (where item.is_running) as running,
      extract(epoch from now() - min(item.due_at) filter (where item.due_at <= now())) as oldest_seconds
    from unnest(array['documents', 'extractions', 'deliveries', 'removals', 'sources']) as queue (kind)
    left join (
      (select 'documents' as kind, jobs.state = 'running' as is_running, jobs.due_at
      from rag.jobs
      where jobs.kind = 'ingestion' and jobs.state in ('waiting', 'running') and (own is null or jobs.org_id = any (own))
        and jobs.org_id <> all (array(select rag.paused_org_ids()))
      limit 100000)
      union all
      (select 'extractions', jobs.state = 'running', jobs.due_at
      from rag.jobs
      where jobs.kind = 'extraction' and jobs.state in ('waiting', 'running') and (own is null or jobs.org_id = any (own))
        and jobs.org_id <> all (array(select rag.paused_org_ids()))
      limit 100000)
      union all
      (select 'deliveries', deliveries.state = 'running',
        case when webhooks.enabled and endpoints.failing_since is null then deliveries.due_at end
      from rag.deliveries
      join rag.webhooks on webhooks.org_id = deliveries.org_id and webhooks.id = deliveries.webhook_id
      join rag.endpoints
        on endpoints.org_id = deliveries.org_id and endpoints.webhook_id = deliveries.webhook_id
      where deliveries.state in ('waiting', 'running') and (own is null or deliveries.org_id = any (own))
        and deliveries.org_id <> all (array(select rag.paused_org_ids()))
      limit 100000)
      union all
      -- An upload under way is not due yet.
      (select 'removals', false, object_removals.due_at
      from rag.object_removals
      where object_removals.due_at <= now() and (own is null or object_removals.org_id = any (own))
        and object_removals.org_id <> all (array(select rag.paused_org_ids()))
      limit 100000)
      union all
      (select 'sources', sources.state = 'running', sources.due_at
      from rag.sources
      where sources.enabled and (sources.state = 'running' or sources.due_at <= now())
        and (own is null or sources.org_id = any (own))
        and sources.org_id <> all (array(select rag.paused_org_ids()))
      limit 100000)
    ) as item on item.kind = queue.kind
    group by queue.kind
  ) as counted;
$$;

comment on function rag.queues is
  'The queues of the worker, for these orgs, or for all orgs if own is null, without paused orgs: the number of waiting '
  'and of running items, and oldest_seconds: how long the oldest item has been due, which includes an item with an '
  'expired lease. At most 100,000 rows of a queue are counted, so that the function returns within the time-out of a health check. '
  'documents: to be ingested. extractions: documents whose names are not extracted yet. deliveries: of webhooks; '
  'those to a URL that does not respond are not due. removals: objects to be removed from Storage. sources: those '
  'that are due.';

create function rag.keyword_tails(own uuid[])
returns jsonb
language sql stable security invoker set search_path = ''
as $$
  select jsonb_build_object('documents', coalesce(sum(tail.documents), 0), 'chunks', coalesce(sum(tail.chunks), 0),
    'longest_documents', coalesce(max(tail.documents), 0), 'longest_chunks', coalesce(max(tail.chunks), 0))
  from (
    select count(*) as documents, sum(waiting.chunks) as chunks
    from (
      select document_terms.org_id, document_terms.class, document_terms.chunks
      from rag.document_terms
      where document_terms.segment is null and document_terms.org_id = any (own)
      limit 100000
    ) as waiting
    group by waiting.org_id, waiting.class
  ) as tail;
$$;

comment on function rag.keyword_tails is
  'The tails of the keyword index of these orgs: the numbers of documents and chunks in all of them and in the longest. At most '
  '100,000 documents are counted, as in rag.queues.';

create function public.rag_health()
returns table (
  version text, pgvector text, postgres text, is_admin boolean, queues jsonb, functions_secret text, orgs integer,
  writes text, newest_function jsonb, keyword_tails jsonb
)
language plpgsql stable security invoker set search_path = ''
as $$
declare
  -- The worker's role belongs to no user and to no org.
  is_worker constant boolean := current_user = 'rag_worker';
  own uuid[] := '{}';
begin
  if not is_worker then
    own := array(select rag.admin_org_ids());
    orgs := (select count(distinct current_org_ids) from rag.current_org_ids());
  else
    -- PT401 for an issuer that is not trusted.
    perform rag.current_user_id();
  end if;
  is_admin := cardinality(own) > 0;
  writes := case when pg_is_in_recovery() then 'standby'
    when current_setting('default_transaction_read_only')::boolean then 'off_by_default' else 'ok' end;
  functions_secret := (
    select case when open_to_direct_callers then 'ok' else rag.functions_secret_status() end from rag.settings);
  newest_function := (
    select jsonb_build_object('name', proname, 'arguments', coalesce(proargnames[:pronargs], '{}'))
    from pg_catalog.pg_proc
    where pronamespace = 'public'::regnamespace and proname like 'rag\_%'
      -- PostgREST's cache has no procedures, trigger functions or functions with unnamed arguments. Outputs come last in
      -- each function of this schema.
      and prokind = 'f' and prorettype <> 'trigger'::regtype
      and (pronargs = 0 or '' <> all (proargnames[:pronargs])
        and coalesce(proargmodes[:pronargs] <@ '{i,b,v}'::"char"[], true))
    order by oid desc limit 1);
  if is_admin or is_worker then
    version := rag.version();
    pgvector := (select extversion from pg_catalog.pg_extension where extname = 'vector');
    postgres := current_setting('server_version');
    -- Counting takes seconds, which a browser could use to occupy connections.
    if not rag.is_direct_call() then
      queues := rag.queues(case when not is_worker then own end);
      if is_admin then
        keyword_tails := rag.keyword_tails(own);
      end if;
    end if;
  end if;
  return next;
end;
$$;

comment on function public.rag_health is
  'State of the database, and the worker''s queues: of the orgs that the caller administers, or, for the worker, of '
  'all orgs. keyword_tails: the keyword index''s tails, of the orgs that the caller administers. functions_secret, for every '
  'caller: whether the guarded functions accept this call (ok), or why not (unset, wrong). orgs: the number of the caller''s orgs. writes, for every caller: ok; standby: the database takes none; '
  'off_by_default: only in transactions that ask for them, as PostgREST''s do. newest_function, for every caller: the exposed function '
  'that was created last, which an older schema cache of PostgREST lacks. This function is not guarded, so that it can report the secret.';

-- Change of the embedding model, org by org. The command change-model (local/operations/change_model.py), which the operator runs
-- with the database's own URL, embeds every chunk again and writes the embeddings beside the present ones. When no chunk
-- of an org lacks one, it exchanges both in one transaction: each search sees either the former embeddings of the org or
-- the new ones. The former ones stay, so that the way back needs no new embeddings, until the operator deletes them.

create table rag.other_embeddings (
  org_id uuid not null,
  chunk_id uuid not null,
  embedding_model text not null check (length(embedding_model) between 1 and 100),
  embedding extensions.halfvec not null
    check (extensions.l2_norm(embedding) > 0 and extensions.vector_dims(embedding) between 256 and 3072),
  primary key (org_id, chunk_id),
  foreign key (org_id, chunk_id) references rag.chunks (org_id, id) on delete cascade
);

comment on table rag.other_embeddings is
  'Embeddings of chunks by another model than that of rag.chunks: the next one, or, after an org''s change, the former '
  'one. Only the database''s owner reads and writes them.';

alter table rag.other_embeddings enable row level security;
alter table rag.other_embeddings force row level security;

create policy "no user reads other embeddings" on rag.other_embeddings
  for all to authenticated using (false);

create function rag.chunks_to_embed(org_id uuid, model text, after uuid, max_items integer)
returns table (chunk_id uuid, title text, header text, content text, section text)
language plpgsql stable security invoker set search_path = ''
as $$
begin
  return query
  select chunks.id, documents.title, chunks.metadata ->> 'header', chunks.content, chunks.metadata ->> 'section'
  from rag.chunks
  join rag.documents on documents.org_id = chunks.org_id and documents.id = chunks.document_id
  where chunks.org_id = chunks_to_embed.org_id and chunks.id > chunks_to_embed.after
    and chunks.embedding_model <> chunks_to_embed.model
    and not exists (
      select from rag.other_embeddings as other
      where other.org_id = chunks.org_id and other.chunk_id = chunks.id
        and other.embedding_model = chunks_to_embed.model)
  order by chunks.id
  limit max_items;
end;
$$;

comment on function rag.chunks_to_embed is
  'The chunks of an org, by id, that have no embedding of the model, with what the embedder reads: the document''s '
  'title, the chunk''s header, its text, its section.';

create function rag.put_other_embeddings(org_id uuid, model text, embeddings jsonb)
returns void
language sql volatile security invoker set search_path = ''
as $$
  insert into rag.other_embeddings as present (org_id, chunk_id, embedding_model, embedding)
  select chunks.org_id, chunks.id, model,
    rag.fit_dimensions(item.embedding, (select rag.dimensions_of(model)), 'embedding')
  from jsonb_to_recordset(embeddings) as item (chunk_id uuid, embedding extensions.halfvec)
  join rag.chunks on chunks.org_id = put_other_embeddings.org_id and chunks.id = item.chunk_id
  -- A chunk that is deleted meanwhile is left out.
  for key share of chunks
  on conflict on constraint other_embeddings_pkey
  do update set embedding_model = excluded.embedding_model, embedding = excluded.embedding;
$$;

comment on function rag.put_other_embeddings is
  'Store embeddings of the model, [{chunk_id, embedding}], in the place of other ones of these chunks.';

create function rag.exchange_embeddings(org_id uuid, model text)
returns bigint
language plpgsql volatile security invoker set search_path = ''
as $$
#variable_conflict use_variable
declare
  -- A long tail outside of the HNSW index slows the org's searches until the worker has inserted it. Inserting more
  -- chunks in this transaction would make the org's writers wait longer. (57_chunks_outside_hnsw.sql)
  longest_tail constant bigint := 50000;
  to_exchange bigint;
  documents uuid[];
  segments uuid[];
begin
  if exists (
    select from rag.chunks_to_embed(org_id, model, '00000000-0000-0000-0000-000000000000', 1))
  then
    return null;
  end if;
  -- First, as each writer does: a writer that has begun ends before.
  perform from rag.documents where documents.org_id = org_id order by documents.id for no key update;
  select count(*) into to_exchange
  from rag.chunks where chunks.org_id = org_id and chunks.embedding_model <> model;
  -- A transaction that deletes chunks by itself has locked them, and waits for their document in a trigger.
  begin
    perform from rag.chunks
    where chunks.org_id = org_id and chunks.embedding_model <> model
    for no key update nowait;
  exception when lock_not_available then
    return -1;
  end;

  -- Below, the keyword index changes its model alone.
  perform set_config('rag.words_later', 'true', true);
  with former as materialized (
    select chunks.id, chunks.document_id, chunks.embedding_model, chunks.embedding
    from rag.chunks
    where chunks.org_id = org_id and chunks.embedding_model <> model
  ), changed as (
    update rag.chunks
    set embedding_model = model, embedding = other.embedding,
      in_hnsw = chunks.in_hnsw and to_exchange > longest_tail
    from former
    join rag.other_embeddings as other on other.org_id = org_id and other.chunk_id = former.id
      and other.embedding_model = model
    where chunks.org_id = org_id and chunks.id = former.id
    returning chunks.id, chunks.document_id
  ), kept as (
    update rag.other_embeddings as other
    set embedding_model = former.embedding_model, embedding = former.embedding
    from former
    join changed on changed.id = former.id
    where other.org_id = org_id and other.chunk_id = former.id
  )
  select array_agg(distinct changed.document_id), count(*) into documents, to_exchange
  from changed;
  perform set_config('rag.words_later', '', true);

  -- Documents with chunks of both models.
  perform rag.index_words(org_id, array(
    select terms.document_id
    from rag.document_terms as terms
    where terms.org_id = org_id and terms.document_id = any (documents)
    group by 1
    having count(*) > 1));
  update rag.document_terms set embedding_model = model
  where document_terms.org_id = org_id and document_terms.document_id = any (documents);
  -- Folding can no longer change the segments of these documents.
  segments := array(
    select distinct terms.segment
    from rag.document_terms as terms
    where terms.org_id = org_id and terms.document_id = any (documents) and terms.segment is not null);
  delete from rag.term_segments
  where term_segments.org_id = org_id and term_segments.segment = any (segments);
  insert into rag.term_segments (org_id, collection_id, owner_id, segment, config, embedding_model, documents, chunks, length)
  select org_id, terms.collection_id, terms.owner_id, terms.segment, terms.config, terms.embedding_model, count(*),
    sum(terms.chunks), sum(terms.length)
  from rag.document_terms as terms
  where terms.org_id = org_id and terms.segment = any (segments)
  group by 2, 3, 4, 5, 6;

  update rag.orgs set embedding_model = model where orgs.id = org_id;
  return to_exchange;
end;
$$;

comment on function rag.exchange_embeddings is
  'Replace all embeddings of an org by those of the model, and keep the former ones. Returns the number of chunks; '
  'without a change null if a chunk has no embedding of the model, and -1 while another transaction changes or deletes a chunk. '
  'Searches go on; a write that replaces or deletes the org''s documents waits.';

create function rag.embedding_progress(model text)
returns table (orgs bigint, changed_orgs bigint, chunks bigint, embedded_chunks bigint, tokens_to_embed bigint)
language sql stable security invoker set search_path = ''
as $$
  with counted as (
    select chunk.org_id, count(*) as chunks,
      count(*) filter (where chunk.embedding_model = embedding_progress.model) as changed,
      count(*) filter (where chunk.embedding_model <> embedding_progress.model and other.chunk_id is not null) as ready,
      sum(chunk.token_count) filter (
        where chunk.embedding_model <> embedding_progress.model and other.chunk_id is null) as tokens
    from rag.chunks as chunk
    left join rag.other_embeddings as other on other.org_id = chunk.org_id and other.chunk_id = chunk.id
      and other.embedding_model = embedding_progress.model
    group by chunk.org_id
  )
  select count(*), count(*) filter (where counted.changed = counted.chunks), coalesce(sum(counted.chunks), 0)::bigint,
    coalesce(sum(counted.changed + counted.ready), 0)::bigint, coalesce(sum(counted.tokens), 0)::bigint
  from counted;
$$;

comment on function rag.embedding_progress is
  'The progress of a change to the model: the orgs with chunks, and those that have changed; the chunks, and those '
  'with an embedding of the model; the tokens of the other chunks, as their documents'' embedder counted them, without '
  'titles and headers.';

-- Changes of documents and jobs as messages of Supabase Realtime, where the project has it. A trigger sends them in the
-- transaction of the change, on private channels: rag:<org id> for documents of the whole org, rag:<org id>:<user id> for
-- private ones, rag:<org id>:<collection id> for those of a restricted collection. A message has ids and states, and no text. Row security of realtime.messages decides who receives, also
-- where other policies of the project are wider; no client sends on these channels.

create function rag.may_receive(topic text)
returns boolean
language sql stable security invoker set search_path = ''
as $$
  select case when topic ~ '^rag(:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}){1,2}$' then
    split_part(topic, ':', 2)::uuid in (select rag.current_org_ids())
      and (split_part(topic, ':', 3) in ('', (select rag.current_user_id())::text)
        or split_part(topic, ':', 2)::uuid in (select rag.admin_org_ids())
        or exists (select from rag.collections where collections.org_id = split_part(topic, ':', 2)::uuid
          and collections.id = nullif(split_part(topic, ':', 3), '')::uuid))
      and rag.has_scope('documents:read', 'documents:write') and rag.bound_collection() is null
    else false end;
$$;

comment on function rag.may_receive is
  'Whether the caller may receive messages of that channel of Realtime: the caller sees the documents of the channel. A key '
  'that is bound to a collection receives none.';

create function rag.restricted_channel(org_id uuid, collection_id uuid)
returns uuid
language sql stable security invoker set search_path = ''
as $$
  select restricted_channel.collection_id
  where not exists (
    select from rag.collections
    where collections.org_id = restricted_channel.org_id and collections.id = restricted_channel.collection_id
      and collections.restricted_by is null);
$$;

comment on function rag.restricted_channel is
  'The collection''s id, the last part of its channel; null for a collection that is not restricted. rag.broadcast_change calls '
  'it as its owner, who sees all collections.';

create function rag.broadcast_change()
returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
declare
  place record := coalesce(new, old);
  change jsonb;
begin
  -- Not for each document of a deleted collection, which a trigger deletes.
  if to_regnamespace('realtime') is null or pg_trigger_depth() > 1 then
    return null;
  end if;
  if tg_table_name = 'jobs' then
    change := jsonb_build_object('id', new.id, 'document_id', new.document_id, 'collection_id', new.collection_id,
      'kind', new.kind, 'state', new.state, 'step', new.step);
  elsif tg_op = 'DELETE' then
    change := jsonb_build_object('id', old.id, 'collection_id', old.collection_id, 'status', 'deleted');
  else
    change := jsonb_build_object('id', new.id, 'collection_id', new.collection_id, 'status', new.status,
      'error_code', new.error_code);
  end if;
  begin
    perform realtime.send(change, rtrim(tg_table_name, 's'), concat_ws(':', 'rag', place.org_id,
      coalesce(place.owner_id, rag.restricted_channel(place.org_id, place.collection_id))), true);
  exception when others then
    -- A message that Realtime does not take ends no change.
    raise warning 'rag: a change was not broadcast: %', sqlerrm;
  end;
  return null;
end;
$$;

comment on function rag.broadcast_change is
  'Trigger that sends a changed document or job to Supabase Realtime, if the project has it. It runs as its owner: no user and '
  'not the worker may send on these channels.';

create trigger broadcast_changed_document after update of status on rag.documents
  for each row when (new.status <> old.status) execute function rag.broadcast_change();

create trigger broadcast_deleted_document after delete on rag.documents
  for each row execute function rag.broadcast_change();

create trigger broadcast_new_job after insert on rag.jobs
  for each row when (new.kind = 'ingestion') execute function rag.broadcast_change();

create trigger broadcast_changed_job after update of state, step on rag.jobs
  for each row when (new.kind = 'ingestion' and (new.state <> old.state or new.step is distinct from old.step))
  execute function rag.broadcast_change();

do $$
begin
  if to_regclass('realtime.messages') is null then
    return;
  end if;
  create policy "rag: members receive changes" on realtime.messages
    for select to authenticated using (topic like 'rag:%' and rag.may_receive(topic));

  -- Channels of the project itself may begin with "rag:", too.
  create policy "rag: other policies admit no receivers of changes" on realtime.messages
    as restrictive for select to authenticated using (topic !~ '^rag:[0-9a-f-]{36}' or rag.may_receive(topic));

  create policy "rag: anon receives no changes" on realtime.messages
    as restrictive for select to anon using (topic !~ '^rag:[0-9a-f-]{36}');

  create policy "rag: no client sends changes" on realtime.messages
    as restrictive for insert to anon, authenticated with check (topic !~ '^rag:[0-9a-f-]{36}');
exception when insufficient_privilege then
  raise warning 'rag: for Realtime, run the end of sql/90_operations/70_realtime.sql as the owner of realtime.messages';
end;
$$;

-- Privileges of all roles on tables and functions. anon and service_role only execute PostgREST's pre-request function.

-- Tables: what the policies then restrict. Columns are listed where a role may write or read only these.
grant select on rag.settings to authenticated;
grant select on rag.tiers to authenticated;
grant select on rag.orgs, rag.members to authenticated;
grant update (record_days, restricts_collections) on rag.orgs to authenticated;
-- The trigger rag.check_consent restricts updates further.
grant insert (org_id, user_id, role, name, accepted_at), update (role, name, accepted_at), delete
  on rag.members to authenticated;
grant select on rag.oauth_clients to authenticated;
grant select, insert, delete on rag.groups, rag.group_members to authenticated;
grant update (description) on rag.groups to authenticated;
grant select, insert, update (access, original), delete on rag.collection_grants to authenticated;
grant select, insert, delete on rag.collections to authenticated;
-- All columns but created_by.
grant update (org_id, id, owner_id, name, description, metadata, config, loading_name, restricted_by, deleted_at,
  created_at, updated_at) on rag.collections to authenticated;
grant select, delete on rag.documents to authenticated;
-- All columns but created_by, which has its default.
grant insert (org_id, id, collection_id, owner_id, external_id, source_type, title, uri, lang, occurred_at, origin, author,
  state, labels, metadata, content, content_hash, status, error_code, error_message, filename, content_type,
  size_bytes, processing_info, created_at, updated_at),
  update (org_id, id, collection_id, owner_id, external_id, source_type, title, uri, lang, occurred_at, origin, author,
  state, labels, metadata, content, content_hash, status, error_code, error_message, filename, content_type,
  size_bytes, processing_info, created_at, updated_at)
  on rag.documents to authenticated;
grant select, insert, update, delete on rag.chunks to authenticated;
grant select, insert, update, delete on rag.originals to authenticated;
grant select, insert, update, delete on rag.facets to authenticated;
grant select, insert, delete on rag.jobs to authenticated;
grant update (collection_id, owner_id, user_id, next_ordinal, state, attempts, due_at, lease, step, error_code,
  error_message, passages_hash, embeddings, finished_at)
  on rag.jobs to authenticated;
grant select on rag.api_keys to authenticated;
grant insert (org_id, owner_id, name, prefix, hash, scopes, collection_id, expires_at, requests_per_minute)
  on rag.api_keys to authenticated;
grant update (last_used_at, expires_at, revoked_at, replaced_at) on rag.api_keys to authenticated;
grant select, insert, update, delete on rag.document_terms, rag.term_segments, rag.term_blocks,
  rag.stored_bytes to authenticated;
grant select, insert, delete on rag.object_removals to authenticated;
grant select, insert, delete on rag.webhooks to authenticated;
grant update (events, enabled, updated_at) on rag.webhooks to authenticated;
grant select (org_id, webhook_id, owner_id, url, description, failing_since, paused_until)
  on rag.endpoints to authenticated;
grant insert (org_id, webhook_id, url, description, secret) on rag.endpoints to authenticated;
grant update (url, description, secret, old_secret_until, failing_since, paused_until)
  on rag.endpoints to authenticated;
grant select on rag.deliveries to authenticated;
grant insert (org_id, webhook_id, collection_id, owner_id, event_id, event, object)
  on rag.deliveries to authenticated;
grant update (state, attempts, due_at, response_status, error, finished_at) on rag.deliveries to authenticated;
grant select, delete on rag.sources to authenticated;
grant insert (org_id, collection_id, owner_id, kind, address, endpoint, region, interval_seconds, max_items,
  include_noindex), update (user_id, interval_seconds, max_items, include_noindex, enabled, due_at,
  updated_at)
  on rag.sources to authenticated;
-- Without the credentials: no user reads them.
grant select (org_id, source_id, owner_id), insert (org_id, source_id, owner_id, credentials), update (credentials)
  on rag.source_credentials to authenticated;
grant select, insert, update, delete on rag.source_items to authenticated;
grant select, insert, update, delete on rag.title_entities to authenticated;
grant select, insert, update, delete on rag.mentions to authenticated;
grant select, insert, update, delete on rag.relations to authenticated;
grant select, insert, update on rag.org_calls to authenticated;
grant select, insert (org_id, day, quota, tokens, calls), update (tokens, calls, alerted_at, exceeded_at)
  on rag.token_usage to authenticated;
grant select, insert, update, delete on rag.sessions to authenticated;
-- No update: a stored message does not change.
grant select, insert, delete on rag.messages to authenticated;
grant select, insert, update on rag.api_metrics to authenticated;
grant select, insert, update on rag.rate_limits to authenticated;
grant select, insert, update on rag.request_counts to authenticated;
grant select, insert, update, delete on rag.stored_responses to authenticated;
grant select, insert (org_id, owner_id, user_id, event, namespace, collection_id, document_count, chunk_count, top_score)
  on rag.audit_events to authenticated;
grant select, insert, delete on rag.request_records to authenticated;
grant update (expires_at, rating, reason, verdict, document_ids) on rag.request_records to authenticated;

-- The same for the worker's role, which is no member of an org.
grant select (org_id, id, deleted_at), delete on rag.collections to rag_worker;
grant select (org_id, id, in_hnsw), update (in_hnsw) on rag.chunks to rag_worker;
grant select (org_id, id, kind, document_id, collection_id, owner_id, user_id, state, attempts, due_at, lease, error_code,
  error_message, created_at, started_at, finished_at) on rag.jobs to rag_worker;
grant update (state, attempts, due_at, lease, started_at, finished_at, step, error_code, error_message,
  passages_hash, embeddings) on rag.jobs to rag_worker;
grant select (org_id, id, collection_id, status), update (status, error_code, error_message) on rag.documents to rag_worker;
grant select, delete on rag.object_removals to rag_worker;
grant update (due_at, attempts) on rag.object_removals to rag_worker;
grant select (org_id, path) on rag.originals to rag_worker;
grant select on rag.webhooks, rag.endpoints to rag_worker;
grant update (enabled, updated_at) on rag.webhooks to rag_worker;
grant update (old_secret, old_secret_id, failing_since, paused_until) on rag.endpoints to rag_worker;
grant select, delete on rag.deliveries to rag_worker;
grant insert (org_id, webhook_id, collection_id, owner_id, event_id, event, object) on rag.deliveries to rag_worker;
grant update (state, attempts, due_at, lease, response_status, error, finished_at)
  on rag.deliveries to rag_worker;
grant select on rag.sources, rag.source_credentials to rag_worker;
grant update (state, lease, attempts, due_at, run_number, resume_after, started_at, finished_at, listed, stored,
  deleted, failed, gone, left_out, error_code, error_message) on rag.sources to rag_worker;
grant select (day), delete on rag.org_calls to rag_worker;
grant select (bucket, started_at), delete on rag.rate_limits to rag_worker;
grant select, update (calibrations, calibration_claims) on rag.settings to rag_worker;
grant select (id, tier, served), update (served) on rag.orgs to rag_worker;
grant select (name, is_paused) on rag.tiers to rag_worker;
grant select (org_id, id, expires_at), delete on rag.request_records to rag_worker;

-- Functions of schema rag. PostgREST does not expose the schema. Exposed functions run as their caller, who therefore
-- executes the internal functions too.
revoke all on all functions in schema rag from public, anon, authenticated, service_role;
grant execute on all functions in schema rag to authenticated;
-- PostgREST's pre-request function runs as every role.
grant execute on function rag.check_request(), rag.check_direct_size() to public;
revoke execute on function rag.fail_exhausted_jobs(), rag.due_jobs(text, integer, uuid[]), rag.clear_deliveries(),
  rag.due_deliveries(integer), rag.secret_in_vault(uuid), rag.store_in_vault(), rag.erase_from_vault(),
  rag.broadcast_change() from authenticated;
grant execute on function rag.fail_exhausted_jobs(), rag.due_jobs(text, integer, uuid[]), rag.clear_deliveries(),
  rag.due_deliveries(integer), rag.secret_in_vault(uuid) to rag_worker;
-- The functions that the worker's statements call in checks, triggers and rag_health.
grant execute on function rag.is_visible_text(text), rag.is_metadata(jsonb), rag.is_readable(jsonb),
  rag.paused_org_ids(), rag.has_subscriber(uuid, uuid, text), rag.enqueue_event(uuid, uuid, uuid, text, jsonb),
  rag.version(), rag.queues(uuid[]), rag.add_stored_bytes(uuid, bigint),
  rag.is_direct_call(), rag.functions_secret_status(),
  rag.current_user_id(), rag.token_claim(), rag.is_issuers(jsonb), rag.check_claim(integer, integer), rag.max_attempts(),
  rag.is_chunk_location(jsonb), rag.is_whole(jsonb, integer, integer), rag.first_counted_day(),
  rag.is_calibrations(jsonb), rag.is_dimensions(jsonb), rag.needs_calibration(rag.settings, text, text)
  to rag_worker;

-- Exposed functions: schema public, by kind of caller. Supabase grants new functions of schema public to its API roles,
-- so each grant begins with a revoke. Tests and verify/ read this list.
do $$
declare
  exposed record;
begin
  for exposed in
    select * from (values
      -- Browsers may call these with the user's token alone (rag.limit_direct_call).
      ('direct', 'rag_graph_of(uuid,uuid[],uuid,integer)'),
      ('direct', 'rag_graph_search(text,extensions.vector,text,integer,jsonb,integer,double precision,text[],integer,text,integer)'),
      ('direct', 'rag_match(extensions.vector,integer,jsonb)'),
      ('direct', 'rag_search(text,extensions.vector,text,integer,jsonb,integer,double precision,text[])'),
      ('direct', 'rag_similar(uuid,uuid,text,integer,jsonb,text,extensions.vector,text,text[])'),
      ('direct', 'rag_widen(uuid[],integer)'),
      -- Policies call the first, health checks the second. Neither returns documents.
      ('unguarded', 'is_org_member(uuid)'),
      ('unguarded', 'rag_health()'),
      -- Only the worker's role calls these.
      ('worker', 'rag_claim_calibration(text,text,integer)'),
      ('worker', 'rag_claim_deliveries(integer,integer)'),
      ('worker', 'rag_claim_jobs(text,integer,integer,uuid[])'),
      ('worker', 'rag_claim_removals(integer)'),
      ('worker', 'rag_claim_sources(integer,integer)'),
      ('worker', 'rag_end_delivery(uuid,uuid,uuid,integer,text,integer)'),
      ('worker', 'rag_end_removal(uuid,text)'),
      ('worker', 'rag_end_source(uuid,uuid,uuid,jsonb,text,text,text,integer)'),
      ('worker', 'rag_extend_hnsw(integer)'),
      ('worker', 'rag_remove_deleted_collections()'),
      ('worker', 'rag_remove_expired_records()'),
      ('worker', 'rag_remove_old_calls()'),
      ('worker', 'rag_store_calibration(text,text,jsonb)'),
      -- These also require the functions' secret (rag.begin_call, rag.begin_write).
      ('guarded', 'rag_add_document(uuid,jsonb)'),
      ('guarded', 'rag_answer_invitation(uuid,boolean)'),
      ('guarded', 'rag_begin_load(text,boolean,integer,jsonb)'),
      ('guarded', 'rag_begin_snapshot(text)'),
      ('guarded', 'rag_begin_upload(uuid,text,bigint)'),
      ('guarded', 'rag_build_graph(uuid,boolean)'),
      ('guarded', 'rag_cancel_load(uuid)'),
      ('guarded', 'rag_check_load(text,boolean)'),
      ('guarded', 'rag_check_rate_limit(text,text,integer,integer,integer)'),
      ('guarded', 'rag_check_upload(uuid,bigint)'),
      ('guarded', 'rag_claim_response(uuid,text,text,integer,uuid,text)'),
      ('guarded', 'rag_complete_job(jsonb,jsonb)'),
      ('guarded', 'rag_create_collection(text,text,jsonb,jsonb,uuid,boolean)'),
      ('guarded', 'rag_create_key(text,text,text,text[],uuid,text,timestamp with time zone)'),
      ('guarded', 'rag_create_source(uuid,text,text,integer,integer,text,text,jsonb,boolean)'),
      ('guarded', 'rag_create_webhook(text,text,text[],uuid,text,uuid)'),
      ('guarded', 'rag_delete_collection(uuid,boolean)'),
      ('guarded', 'rag_delete_document(uuid)'),
      ('guarded', 'rag_delete_documents(uuid[])'),
      ('guarded', 'rag_delete_group(text,uuid)'),
      ('guarded', 'rag_delete_missing_items(integer,integer)'),
      ('guarded', 'rag_delete_named(text,text[])'),
      ('guarded', 'rag_delete_records(uuid)'),
      ('guarded', 'rag_delete_session(uuid)'),
      ('guarded', 'rag_delete_source(uuid,boolean)'),
      ('guarded', 'rag_delete_webhook(uuid)'),
      ('guarded', 'rag_extend_job(text,integer,text,extensions.halfvec[])'),
      ('guarded', 'rag_fail_job(text,text,integer,boolean,boolean)'),
      ('guarded', 'rag_find_collection(text)'),
      ('guarded', 'rag_find_documents(text,text[])'),
      ('guarded', 'rag_finish_load(uuid,boolean)'),
      ('guarded', 'rag_get_access(uuid)'),
      ('guarded', 'rag_get_calibration(text)'),
      ('guarded', 'rag_get_collection(uuid)'),
      ('guarded', 'rag_get_contents(uuid,text[],uuid[],uuid,boolean,boolean)'),
      ('guarded', 'rag_get_document(uuid)'),
      ('guarded', 'rag_get_original(uuid)'),
      ('guarded', 'rag_get_record(text)'),
      ('guarded', 'rag_get_record_settings(uuid)'),
      ('guarded', 'rag_label_record(text,text,uuid[])'),
      ('guarded', 'rag_judged_search(text,extensions.vector,text,integer,jsonb,integer,double precision,text[],text,integer)'),
      ('guarded', 'rag_list_collections(integer,integer,text,text)'),
      ('guarded', 'rag_list_deliveries(uuid,integer,integer)'),
      ('guarded', 'rag_list_documents(uuid,integer,integer,text,text,text,text)'),
      ('guarded', 'rag_list_events(integer,integer,text,text)'),
      ('guarded', 'rag_list_groups(uuid)'),
      ('guarded', 'rag_list_invitations()'),
      ('guarded', 'rag_list_jobs(text,integer,integer)'),
      ('guarded', 'rag_list_keys(uuid)'),
      ('guarded', 'rag_list_members(integer,integer,boolean)'),
      ('guarded', 'rag_list_named(text,integer,integer,integer,jsonb)'),
      ('guarded', 'rag_list_names()'),
      ('guarded', 'rag_list_orgs()'),
      ('guarded', 'rag_list_records(integer,integer,text,boolean,text,boolean)'),
      ('guarded', 'rag_list_session_messages(uuid,integer,integer)'),
      ('guarded', 'rag_list_sessions(integer,integer)'),
      ('guarded', 'rag_list_usage(integer)'),
      ('guarded', 'rag_list_source_items(jsonb,integer)'),
      ('guarded', 'rag_list_sources(uuid)'),
      ('guarded', 'rag_list_webhooks(uuid)'),
      ('guarded', 'rag_load_chunks(uuid,uuid,jsonb,text,boolean)'),
      ('guarded', 'rag_load_documents(uuid,jsonb,bigint)'),
      ('guarded', 'rag_metrics()'),
      ('guarded', 'rag_open_extraction(integer)'),
      ('guarded', 'rag_open_job(integer)'),
      ('guarded', 'rag_open_key()'),
      ('guarded', 'rag_open_session(uuid,uuid,integer)'),
      ('guarded', 'rag_put_access(uuid,boolean,jsonb)'),
      ('guarded', 'rag_put_documents(text,jsonb,boolean,uuid)'),
      ('guarded', 'rag_put_group(text,uuid[],text,uuid)'),
      ('guarded', 'rag_put_member(uuid,uuid,text,text)'),
      ('guarded', 'rag_rate_record(text,text,text)'),
      ('guarded', 'rag_put_source_item(text,text,jsonb,integer)'),
      ('guarded', 'rag_read_document(uuid,integer,integer)'),
      ('guarded', 'rag_read_snapshot_chunks(uuid,uuid,timestamp with time zone,integer)'),
      ('guarded', 'rag_read_snapshot_documents(uuid,uuid[],integer)'),
      ('guarded', 'rag_record_event(text,text,integer,integer,double precision,jsonb)'),
      ('guarded', 'rag_record_metrics(jsonb)'),
      ('guarded', 'rag_record_request(jsonb)'),
      ('guarded', 'rag_record_tokens(bigint,integer,bigint,integer)'),
      ('guarded', 'rag_release_response(uuid,text,uuid)'),
      ('guarded', 'rag_remove_member(uuid,uuid)'),
      ('guarded', 'rag_repeat_delivery(uuid,uuid)'),
      ('guarded', 'rag_resolve_workspace(uuid,uuid)'),
      ('guarded', 'rag_restrict_new_collections(boolean,uuid)'),
      ('guarded', 'rag_retry_jobs(uuid[])'),
      ('guarded', 'rag_revoke_key(uuid)'),
      ('guarded', 'rag_rotate_key(uuid,text,text,integer)'),
      ('guarded', 'rag_rotate_webhook(uuid,text,integer)'),
      ('guarded', 'rag_run_source(uuid)'),
      ('guarded', 'rag_save_turn(uuid,uuid,uuid,text,jsonb)'),
      ('guarded', 'rag_snapshot_documents(uuid,timestamp with time zone,uuid)'),
      ('guarded', 'rag_stats(integer)'),
      ('guarded', 'rag_store_content(text,bigint,integer)'),
      ('guarded', 'rag_store_extraction(integer,jsonb,integer)'),
      ('guarded', 'rag_store_response(uuid,text,uuid,integer,text,text,uuid[])'),
      ('guarded', 'rag_summarize_records(integer)'),
      ('guarded', 'rag_update_collection(uuid,text,text,jsonb,jsonb)'),
      ('guarded', 'rag_update_document(uuid,jsonb)'),
      ('guarded', 'rag_update_record_settings(integer,uuid)'),
      ('guarded', 'rag_update_source(uuid,integer,integer,boolean,jsonb,boolean)'),
      ('guarded', 'rag_update_webhook(uuid,text,text[],text,boolean)')
    ) as listed (caller, signature)
  loop
    execute format('revoke all on function public.%s from public, anon, authenticated, service_role',
      exposed.signature);
    execute format('grant execute on function public.%s to %s', exposed.signature,
      case exposed.caller when 'worker' then 'rag_worker' else 'authenticated' end);
  end loop;
end;
$$;

-- The public /health has no user: the worker's role calls it.
grant execute on function public.rag_health() to rag_worker;

-- PostgREST serves the functions at once, also where no event trigger tells it of a change of the schema.
notify pgrst, 'reload schema';

-- Of the migration (10_identity/50_tenant_policies.sql).
drop procedure rag.admit_members(text, text), rag.bind_keys(text), rag.require_edit(text), rag.restrict_keys(text, text[]);
