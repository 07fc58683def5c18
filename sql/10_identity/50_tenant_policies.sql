-- Policies that tenant tables share: one wording, so that an overlay can exchange it in all tables. Each table calls
-- these procedures where it is created. They exist during the migration only (99_grants.sql drops them);
-- tests/sql/test_catalogue.py checks which tables have the policies.

create procedure rag.admit_members(table_name text, label text default null)
language plpgsql security invoker set search_path = ''
as $$
begin
  execute format('alter table rag.%I enable row level security', table_name);
  execute format('alter table rag.%I force row level security', table_name);
  -- Rows of the org, and of the private ones those that the user owns; admins of the org use all.
  execute format('create policy %1$I on rag.%2$I for all to authenticated using (%3$s) with check (%3$s)',
    'members use their org''s ' || coalesce(label, table_name), table_name,
    'org_id = any (array(select rag.current_org_ids())) and (owner_id is null or owner_id = (select rag.current_user_id()) '
      'or org_id = any (array(select rag.admin_org_ids())))');
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
