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
