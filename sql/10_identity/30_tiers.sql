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
