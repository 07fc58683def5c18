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
