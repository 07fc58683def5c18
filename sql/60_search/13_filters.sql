-- Filters of a search as the caller sends them, and the keys among them that no search knows.

create type rag.filters as (
  source_type text, lang text, org_id uuid, date_from timestamptz, date_to timestamptz, model text,
  source_types text[], collection_id uuid, collection_ids uuid[], origins text[], authors text[],
  states text[], labels text[], metadata jsonb, collection text, document_type text
);

comment on type rag.filters is
  'The filters as they come. Dates are inclusive and mean the document''s own date; lang "fr" finds fr-CA too; of a '
  'list one suffices, an empty one is none; metadata are equalities that all must hold. collection is the name of '
  'one of the caller''s. model is the deployment''s by default. document_type is what somebody calls the document, '
  'or what it was read as.';

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
