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
