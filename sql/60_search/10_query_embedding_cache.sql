-- Cache of query embeddings: a repeated query (a search and then an answer, the pages of a list) needs no second call
-- of the embedding model. The functions write and read it as their user.
--
-- Each user has a cache of their own. A shared one would reveal by its speed that another user asked the same, and
-- would let one member store a wrong vector for the questions of all others. An API key shares its owner's,
-- whatever it is narrowed to: an embedding follows from a text and a model, and from nothing in the database.

create table rag.query_embeddings (
  user_id uuid not null,
  hash text not null check (hash ~ '^[0-9a-f]{64}$'),
  embedding extensions.halfvec not null
    check (extensions.l2_norm(embedding) > 0 and extensions.vector_dims(embedding) between 256 and 3072),
  created_at timestamptz not null,
  primary key (user_id, hash)
);

comment on table rag.query_embeddings is
  'At most 64 rows, of 5 kB with 1,536 dimensions, for each user, besides rows that wait for a vacuum. The vector is in '
  'TOAST, unlike a chunk''s, so that surplus rows are found without reading vectors. Rows of a user who does not '
  'return stay unused; a role that sees all rows may delete the expired ones.';
comment on column rag.query_embeddings.hash is
  'SHA-256 of the user, the model and the text, made by the functions. The text is stored nowhere.';
comment on column rag.query_embeddings.embedding is
  'In the precision that rag_match compares, so that a cached query finds the same chunks as the first time.';

alter table rag.query_embeddings enable row level security;
alter table rag.query_embeddings force row level security;

create policy "users remember their own questions" on rag.query_embeddings
  for all to authenticated
  using (user_id = (select rag.current_user_id()))
  with check (user_id = (select rag.current_user_id()));

create function public.rag_get_query_embedding(hash text, max_age_seconds integer)
returns real[]
language plpgsql stable security invoker set search_path = ''
as $$
begin
  perform rag.begin_call(), rag.require_scope('retrievals:read', 'chat:read');
  return (
    select remembered.embedding::real[]
    from rag.query_embeddings as remembered
    where remembered.user_id = (select rag.current_user_id()) and remembered.hash = rag_get_query_embedding.hash
      and remembered.created_at > now() - make_interval(secs => max_age_seconds));
end;
$$;

comment on function public.rag_get_query_embedding is
  'The vector that the caller had remembered within the last `max_age_seconds`, or null.';

create function public.rag_put_query_embedding(
  hash text, embedding extensions.vector, max_age_seconds integer
)
returns void
language plpgsql volatile security invoker set search_path = ''
as $$
#variable_conflict use_variable
declare
  is_admitted constant boolean := rag.begin_call() and rag.require_scope('retrievals:read', 'chat:read');
  caller constant uuid := rag.current_user_id();
  dimensions constant integer := extensions.vector_dims(embedding);
  needle extensions.halfvec;
begin
  if caller is null then
    raise exception 'The cache of query embeddings needs the token of a user.'
      using errcode = 'PT403', detail = 'user_required';
  elsif hash is null or hash !~ '^[0-9a-f]{64}$' then
    raise exception 'hash must be 64 hexadecimal digits' using errcode = 'PT400', detail = 'invalid_hash';
  elsif max_age_seconds is null or max_age_seconds not between 1 and 86400 then
    raise exception 'max_age_seconds must be between 1 and 86400'
      using errcode = 'PT400', detail = 'invalid_max_age';
  elsif (dimensions between 256 and 3072) is not true then
    raise exception 'embedding must have 256 to 3072 dimensions, not %', dimensions
      using errcode = 'PT400', detail = 'wrong_dimensions', hint = 'pad shorter embeddings with zeros';
  end if;
  needle := embedding::extensions.halfvec;
  if extensions.l2_norm(needle) = 0 then
    raise exception 'embedding must not be all zeros' using errcode = 'PT400', detail = 'zero_vector';
  end if;

  -- One at a time for each user: two at once would lock the same rows in different orders, and neither
  -- would count the other's.
  perform pg_advisory_xact_lock(hashtextextended('rag.query_embeddings ' || caller::text, 0));

  insert into rag.query_embeddings as present (user_id, hash, embedding, created_at)
  values (caller, hash, needle, clock_timestamp())
  on conflict on constraint query_embeddings_pkey
  do update set embedding = excluded.embedding, created_at = excluded.created_at;

  delete from rag.query_embeddings as present
  where present.user_id = caller and present.hash not in (
    select newest.hash
    from rag.query_embeddings as newest
    where newest.user_id = caller
      and newest.created_at > now() - make_interval(secs => max_age_seconds)
    order by newest.created_at desc
    limit 64);
end;
$$;

comment on function public.rag_put_query_embedding is
  'Store a vector in the caller''s cache, in the place of an older one of that hash, and delete the caller''s '
  'expired vectors and the oldest above 64.';
