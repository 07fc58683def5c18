-- What there is to find, by meaning, by word or by both, for all who look: rag_search has a question, rag_similar
-- a subject.

-- The hits of both legs, best first: of the nearest, and of those with most of the words, `wanted` each. mode and
-- fusion: as rag_search takes them. shown: how many somebody will see, whose order matters most. complete: whether
-- asking for more would bring no more. reached: chunks that somebody else brings, to be scored by both legs. vector_ms,
-- lexical_ms: how long each leg took; the words' one orders both.
create function rag.find(needle extensions.halfvec, query_text text, scope rag.scope, mode text, fusion text,
  wanted integer, shown integer, reached rag.hit[] default '{}', out hits rag.hit[], out exact boolean,
  out considered integer, out complete boolean, out vector_ms real, out lexical_ms real)
language plpgsql stable security invoker set search_path = ''
as $$
declare
  started timestamptz := clock_timestamp();
  -- The words find a subject too, which then takes the place of something else.
  spare constant integer := num_nonnulls(scope.without_document, scope.without_chunk);
  by_words rag.scope := scope;
  near rag.hit[];
  asked rag.question;
  documents rag.reference[];
begin
  considered := 0;
  if mode <> 'keyword' then
    select nearest.hits, nearest.exact, nearest.considered into near, exact, considered
    from rag.nearest(needle, scope, wanted) as nearest;
    vector_ms := rag.milliseconds_since(started);
    hits := near;
  end if;
  if mode <> 'semantic' then
    started := clock_timestamp();
    asked := rag.question(query_text, scope);
    -- Left out afterwards: as a condition it would have every document of the org looked at.
    by_words.without_document := null;
    documents := array(
      select (document.org_id, document.document_id)::rag.reference
      from unnest(rag.documents_with(asked, by_words, 4 * wanted + spare)) as document
      where document.document_id is distinct from scope.without_document);
    hits := rag.score(asked,
      documents || array(select (hit.org_id, hit.document_id)::rag.reference from unnest(near || reached) as hit),
      near || reached, needle, scope, mode, fusion, wanted + spare, shown, false);
    if mode = 'hierarchical' then
      hits := rag.score(asked, rag.best_documents(hits, shown), null, needle, scope, mode, fusion, wanted, shown,
        true);
    end if;
    lexical_ms := rag.milliseconds_since(started);
  end if;
  complete := coalesce(cardinality(case when mode = 'keyword' then hits else near end), 0) < wanted;
end;
$$;

-- Whether words have a part in a search of these collections: not where all of them have gone without hybrid search.
create function rag.are_words_wanted(scope rag.scope)
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
