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
