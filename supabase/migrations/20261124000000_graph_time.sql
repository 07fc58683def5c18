-- The graph's time is counted from its first look-up on; names are stored with a third of the work; what reading a
-- document cost stays counted when it is brought anew; a page that is far too large is refused as any other.

-- Store what each chunk of a document names and relates: chunks as rag_put_document takes them, the first of them
-- with that ordinal. What is no name is left out, whatever stands in its place: a document is worth more than its
-- names. Of one entity there is one row a chunk, and relations need both ends named in the document. At most 200 names
-- and 200 relations a chunk.
create or replace function rag.insert_names(org_id uuid, document_id uuid, chunks jsonb, first integer)
returns void
language plpgsql volatile security invoker set search_path = ''
as $$
#variable_conflict use_column
declare
  names jsonb;
begin
  -- Materialized, so that what costs is done once for each name.
  insert into rag.mentions (org_id, document_id, ordinal, entity, collection_id, owner_id, name, kind, said, weight,
    sound, ending)
  with listed as materialized (
    select item.place::integer as place, listed.number, listed.entry, rag.said_in(listed.entry -> 'name') as name
    from jsonb_array_elements(insert_names.chunks) with ordinality as item (body, place)
    cross join lateral rag.entries_of(item.body, 'names') as listed
  ), named as materialized (
    select listed.*, rag.entity(listed.name) as entity,
      case when listed.entry ->> 'kind' ~ '^[a-z][a-z_]{0,39}$' then listed.entry ->> 'kind' else 'name' end as kind,
      coalesce(rag.share_in(listed.entry -> 'weight'), 0.5) as weight
    from listed
    where listed.name is not null
  ), folded as materialized (
    select named.place, named.entity, max(named.weight) as weight,
      (array_agg(named.name order by named.weight desc, named.number))[1] as name,
      (array_agg(named.kind order by named.kind = 'name', named.weight desc, named.number))[1] as kind,
      coalesce((array_agg(distinct surface.said) filter (where surface.said is not null))[:20], '{}') as said
    from named
    left join lateral (
      select case when listed.entry = to_jsonb(named.name) then named.name else rag.said_in(listed.entry) end as said
      from jsonb_array_elements(case jsonb_typeof(named.entry -> 'said') when 'array' then named.entry -> 'said'
        else jsonb_build_array(named.name) end) with ordinality as listed (entry, number)
      where listed.number <= 20
      offset 0
    ) as surface on true
    group by named.place, named.entity
  ), heard as materialized (
    select folded.*, rag.sound(folded.entity) as sound from folded where length(folded.entity) between 1 and 200
  )
  select stored.org_id, stored.id, insert_names."first" + heard.place - 1, heard.entity, stored.collection_id,
    stored.owner_id, heard.name, heard.kind, heard.said, heard.weight, heard.sound, reverse(heard.sound)
  from rag.documents as stored
  cross join heard
  where stored.org_id = insert_names.org_id and stored.id = insert_names.document_id
  on conflict do nothing;

  names := rag.names_in(insert_names.org_id, insert_names.document_id);
  insert into rag.relations (org_id, document_id, ordinal, subject, type, object, collection_id, owner_id, confidence)
  with listed as materialized (
    select item.place::integer as place, listed.entry ->> 'type' as type,
      rag.entity(rag.said_in(listed.entry -> 'subject')) as subject,
      rag.entity(rag.said_in(listed.entry -> 'object')) as object,
      rag.share_in(listed.entry -> 'confidence') as confidence
    from jsonb_array_elements(insert_names.chunks) with ordinality as item (body, place)
    cross join lateral rag.entries_of(item.body, 'relations') as listed
  ), said as (
    select listed.place, listed.subject, listed.type, listed.object, max(listed.confidence) as confidence
    from listed
    where listed.subject <> listed.object and listed.type ~ '^[A-Z][A-Z_]{1,49}$' and listed.confidence > 0
      and names ? listed.subject and names ? listed.object
    group by 1, 2, 3, 4
  )
  select stored.org_id, stored.id, insert_names."first" + said.place - 1, said.subject, said.type, said.object,
    stored.collection_id, stored.owner_id, said.confidence
  from rag.documents as stored
  cross join said
  where stored.org_id = insert_names.org_id and stored.id = insert_names.document_id
  on conflict do nothing;
end;
$$;

-- Documents have new chunks: who has read them, if they come with names, is who brought them. `later` chunks of a
-- document add to what came before. What earlier readings cost stays counted.
create or replace function rag.note_extraction(org_id uuid, document_id uuid, chunks jsonb, later boolean)
returns void
language sql volatile security invoker set search_path = ''
as $$
  insert into rag.extractions as known (org_id, document_id, collection_id, owner_id, user_id, level)
  select stored.org_id, stored.id, stored.collection_id, stored.owner_id, auth.uid(),
    case when exists (
        select from jsonb_array_elements(note_extraction.chunks) as item (body)
        where jsonb_typeof(item.body -> 'names') is distinct from 'array')
      then 0 else 1 end
  from rag.documents as stored
  where stored.org_id = note_extraction.org_id and stored.id = note_extraction.document_id
  on conflict (org_id, document_id) do update
  set level = case when note_extraction.later then least(known.level, excluded.level) else excluded.level end,
    user_id = excluded.user_id, model = null, next_ordinal = 0, attempts = 0, due_at = now(), lease = null,
    error_code = null, error_message = null, updated_at = now();
$$;

-- mode: semantic (needs query_vector), keyword (query_text), hybrid (both) or hierarchical (both: the best
-- documents first, then their best chunks). filters: the fields of rag.filters. expand_context: so many
-- neighbouring chunks join each text, on both sides. half_life_days: older documents are held back; null: not.
-- fusion: mean or rrf. prefer: source types that come first where all else is equal.
create or replace function public.rag_search(
  query_text text default null,
  query_vector extensions.vector default null,
  mode text default 'hybrid',
  top_k integer default 10,
  filters jsonb default '{}',
  expand_context integer default 0,
  half_life_days double precision default null,
  fusion text default 'mean',
  prefer text[] default null
)
returns setof rag.found
language plpgsql stable security invoker set search_path = ''
-- Planning under row security takes longer than most of these statements run.
set plan_cache_mode = force_generic_plan
as $$
declare
  -- What each leg brings, where the order in which it does is not the last.
  pool constant integer := greatest(20, 2 * least(top_k, 300));
  needle extensions.halfvec(1536);
  scope rag.scope;
  found record;
  hits rag.hit[];
begin
  perform rag.check_search(query_text, query_vector, mode, expand_context, half_life_days, fusion);
  perform rag.check_top_k(top_k);
  scope := rag.scope_of(filters);
  prefer := nullif(prefer, '{}');
  if mode in ('hybrid', 'hierarchical') and not rag.are_words_wanted(scope) then
    mode := 'semantic';
  end if;
  if query_vector is not null then
    needle := rag.needle(query_vector);
  end if;

  found := rag.find(needle, query_text, scope, mode, fusion,
    case when mode = 'semantic' and half_life_days is null and prefer is null then top_k else pool end, top_k);
  hits := found.hits;
  if half_life_days is not null then
    hits := rag.fade(hits, half_life_days);
  end if;
  if prefer is not null then
    hits := rag.prefer(hits, prefer);
  end if;
  hits := hits[:top_k];
  if expand_context > 0 then
    hits := rag.widen(hits, expand_context);
  end if;
  return query
  select * from rag.show(hits, found.exact, found.considered, found.vector_ms, found.lexical_ms);
end;
$$;

drop function rag.reach(rag.seed[], rag.scope, extensions.halfvec, integer, text[], integer);

-- What is reached from the seeds in so many hops: 1 is where they are named, 2 where those are that stand with them.
-- started: since when the graph's time runs. complete: whether there was enough of it.
create function rag.reach(seeds rag.seed[], scope rag.scope, needle extensions.halfvec, hops integer,
  relation_types text[], wanted integer, started timestamptz, out chunks rag.reached[], out neighbours rag.neighbour[],
  out complete boolean)
language plpgsql stable security invoker set search_path = ''
as $$
declare
  settings rag.settings;
  first rag.reached[];
  second rag.reached[];
begin
  select * into settings from rag.settings;
  complete := true;
  neighbours := '{}';
  chunks := '{}';
  if cardinality(seeds) = 0 then
    return;
  end if;
  first := rag.within(rag.places_of(seeds, scope, 24, settings.mentions_read, 0.35), scope);
  if hops > 1 then
    complete := rag.milliseconds_since(started) < settings.graph_milliseconds;
    if complete then
      neighbours := rag.neighbours_in(first, seeds, scope, relation_types);
      complete := rag.milliseconds_since(started) < settings.graph_milliseconds;
    end if;
    if complete then
      second := rag.within(rag.places_of(array(
        select (near.org_id, near.entity, near.weight, null, null)::rag.seed from unnest(neighbours) as near),
        scope, 4, 12, 0.3), scope);
    end if;
  end if;
  chunks := rag.chunks_of(first || second, needle, scope, wanted);
end;
$$;

revoke all on function
  rag.reach(rag.seed[], rag.scope, extensions.halfvec, integer, text[], integer, timestamptz)
  from public, anon, service_role;
grant execute on function
  rag.reach(rag.seed[], rag.scope, extensions.halfvec, integer, text[], integer, timestamptz) to authenticated;

-- query_text, query_vector, filters, expand_context, half_life_days and prefer as rag_search takes them. mode: graph
-- (hybrid's legs), or one of rag_search's, which the graph then enhances. hops: how far it goes, 1 or 2.
-- relation_types: the edges that the question asks for, which lead on most surely. Returns {matches, entities, edges,
-- evidence, complete, graph_ms}.
create or replace function public.rag_graph_search(
  query_text text,
  query_vector extensions.vector default null,
  mode text default 'graph',
  top_k integer default 10,
  filters jsonb default '{}',
  expand_context integer default 0,
  half_life_days double precision default null,
  prefer text[] default null,
  hops integer default 2,
  relation_types text[] default null
)
returns jsonb
language plpgsql stable security invoker set search_path = ''
-- Planning under row security takes longer than most of these statements run.
set plan_cache_mode = force_generic_plan
as $$
declare
  pool constant integer := greatest(20, 2 * least(top_k, 300));
  legs text := case mode when 'graph' then 'hybrid' else mode end;
  needle extensions.halfvec(1536);
  scope rag.scope;
  settings rag.settings;
  found record;
  seeds rag.seed[];
  reach record;
  hits rag.hit[];
  started timestamptz;
  graph_ms real;
begin
  perform rag.check_search(query_text, query_vector, legs, expand_context, half_life_days, 'mean');
  perform rag.check_graph(query_text, top_k, hops, relation_types);
  scope := rag.scope_of(filters);
  select * into settings from rag.settings;
  prefer := nullif(prefer, '{}');
  if legs in ('hybrid', 'hierarchical') and not rag.are_words_wanted(scope) then
    legs := 'semantic';
  end if;
  if query_vector is not null then
    needle := rag.needle(query_vector);
  end if;

  started := clock_timestamp();
  seeds := rag.seeds_within(rag.link(query_text, scope), scope, 24, settings.mentions_read);
  reach := rag.reach(seeds, scope, needle, hops, relation_types, pool, started);
  graph_ms := rag.milliseconds_since(started);
  -- Both legs score what was reached among their own candidates, as if they had brought it.
  found := rag.find(needle, query_text, scope, legs, 'mean', pool, top_k, array(
    select (place.org_id, place.document_id, place.ordinal, null, null, null, null, null, null, null)::rag.hit
    from unnest(reach.chunks) as place
    where legs = 'hybrid'));
  hits := found.hits;
  if legs <> 'hybrid' and cardinality(reach.chunks) > 0 then
    hits := hits || rag.hits_reached(reach.chunks, hits, query_text, needle, scope, legs);
  end if;
  if cardinality(reach.chunks) > 0 then
    hits := rag.join_graph(hits, reach.chunks, settings.graph_share, pool);
  end if;
  if half_life_days is not null then
    hits := rag.fade(hits, half_life_days);
  end if;
  if prefer is not null then
    hits := rag.prefer(hits, prefer);
  end if;
  hits := hits[:top_k];
  if expand_context > 0 then
    hits := rag.widen(hits, expand_context);
  end if;
  return rag.show_graph(seeds, reach.neighbours, scope) || jsonb_build_object('complete', reach.complete,
    'graph_ms', graph_ms, 'matches', rag.show_joined(hits, (found.hits)[:top_k], reach.chunks, found.exact,
      found.considered, found.vector_ms, found.lexical_ms));
end;
$$;
