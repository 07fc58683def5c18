-- The tail of the HNSW index: chunks that are not in it yet. An insert into the index takes longer than all others of a
-- chunk together, so a write leaves it to the worker, up to a number of chunks an org. A search by the index compares
-- the tail exactly (rag.hnsw_scan). A short tail stays: a small org needs no index.

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
  added bigint;
begin
  perform rag.check_claim(max_items);
  -- Their words do not change.
  perform set_config('rag.words_later', 'true', true);
  update rag.chunks
  set in_hnsw = true
  where not chunks.in_hnsw and (chunks.org_id, chunks.id) in (
    select outside.org_id, outside.id
    from (
      select tail.org_id
      from rag.chunks as tail
      where not tail.in_hnsw
      group by tail.org_id
      having count(*) > 1000
      limit 1
    ) as org
    cross join lateral (
      select tail.org_id, tail.id
      from rag.chunks as tail
      where tail.org_id = org.org_id and not tail.in_hnsw
      limit max_items
      for update skip locked
    ) as outside);
  get diagnostics added = row_count;
  return added;
end;
$$;

comment on function public.rag_extend_hnsw is
  'For the worker: add chunks of an org to the HNSW index, as long as more than 1,000 of it are outside. Returns their '
  'number.';
