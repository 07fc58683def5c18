-- Chunks that are not in the HNSW index yet: the tail. Inserting a chunk into that index takes longer than inserting it
-- into all other indexes. So a write leaves the insertion to the worker, up to a number of chunks of an org. A search
-- that uses the index compares the tail exactly (rag.hnsw_scan). A short tail stays: a search of a small org compares
-- all its chunks.

create function rag.is_hnsw_tail_full(org_id uuid)
returns boolean
language sql stable security invoker set search_path = ''
as $$
  select exists (
    select from rag.chunks
    where chunks.org_id = is_hnsw_tail_full.org_id and not chunks.in_hnsw
    offset (select least(3000, settings.exact_rows) from rag.settings));
$$;

comment on function rag.is_hnsw_tail_full is
  'Whether more than 3,000 chunks of the org that the caller sees are not in the HNSW index (more than exact_rows of '
  'the settings, if that is less). Further chunks are then inserted into it at once.';

create policy "the worker sees which chunks are in the HNSW index" on rag.chunks
  for select to rag_worker using (true);

create policy "the worker adds chunks to the HNSW index" on rag.chunks
  for update to rag_worker using (not in_hnsw) with check (in_hnsw);

create function public.rag_extend_hnsw(max_items integer default 100)
returns bigint
language plpgsql volatile security invoker set search_path = ''
set statement_timeout = '60s'
as $$
declare
  tail_org_id uuid := gen_random_uuid();
  added bigint;
begin
  perform rag.check_claim(max_items);
  -- The keyword index does not change.
  perform set_config('rag.words_later', 'true', true);
  -- The tails of a few orgs, from a random one on: the duration of a call does not depend on the number of orgs.
  for step in 1..50 loop
    select chunks.org_id into tail_org_id
    from rag.chunks
    where not chunks.in_hnsw and chunks.org_id > tail_org_id
    order by chunks.org_id
    limit 1;
    if not found then
      tail_org_id := '00000000-0000-0000-0000-000000000000';
    elsif exists (
      select from rag.chunks where chunks.org_id = tail_org_id and not chunks.in_hnsw offset 1000)
    then
      with tail as materialized (
        select chunks.org_id, chunks.id
        from rag.chunks
        where chunks.org_id = tail_org_id and not chunks.in_hnsw
        limit max_items
        for update skip locked
      )
      update rag.chunks
      set in_hnsw = true
      from tail
      where chunks.org_id = tail.org_id and chunks.id = tail.id and not chunks.in_hnsw;
      get diagnostics added = row_count;
      return added;
    end if;
  end loop;
  return 0;
end;
$$;

comment on function public.rag_extend_hnsw is
  'For the worker: add chunks of one org with a tail of more than 1,000 chunks to the HNSW index. Returns the number '
  'of chunks. A call examines the tails of 50 orgs at most, so 0 does not mean that no org has a longer tail.';
