-- A search that counts its request: one call of the database, in place of one for the rate limit, one for the search and
-- one for the tokens of its embedding.

create function public.rag_counted_search(
  function text,
  bucket text,
  requests integer,
  window_seconds integer,
  query_text text default null,
  query_vector extensions.vector default null,
  mode text default null,
  top_k integer default 10,
  filters jsonb default '{}',
  expand_context integer default 0,
  half_life_days double precision default null,
  prefer text[] default null,
  embedding_tokens bigint default 0,
  embedding_calls integer default 0
)
returns json
language plpgsql volatile security invoker set search_path = ''
as $$
#variable_conflict use_variable
declare
  matches json;
  windows json;
  is_admitted boolean;
begin
  perform rag.begin_call();
  if mode is null then
    matches := (select json_agg(hit) from public.rag_match(query_vector, top_k, filters) as hit);
  else
    matches := (
      select json_agg(hit)
      from public.rag_search(query_text, query_vector, mode, top_k, filters, expand_context, half_life_days,
        prefer => prefer) as hit);
  end if;
  -- The counts come last: their rows are locked until the call ends, and concurrent calls wait for them.
  select json_agg(counted), coalesce(bool_and(counted.admitted), false) into windows, is_admitted
  from public.rag_check_rate_limit(function, bucket, requests, window_seconds) as counted;
  -- rag_record_tokens refuses null and negative numbers.
  if embedding_calls is distinct from 0 then
    perform public.rag_record_tokens(embedding_tokens => embedding_tokens, embedding_calls => embedding_calls);
  end if;
  return json_build_object('matches', case when is_admitted then coalesce(matches, '[]') end, 'windows', windows,
    'exceeded_quotas', rag.exceeded_quotas());
end;
$$;

comment on function public.rag_counted_search is
  'A search, rag_check_rate_limit for its request, and rag_record_tokens for the embedding of its query, in one call. '
  'mode: that of rag_search; null for rag_match, which takes query_vector, top_k and filters alone. Returns matches: the '
  'rows of the search, null if a limit refuses the request; windows: the state of each limit, with the quotas that '
  'were exceeded before this call; exceeded_quotas: those that are exceeded after it. A search that raises counts '
  'nothing: the functions then count its request with rag_check_rate_limit.';
