-- What one deployment decides once, as data: which embedding model its vectors come from, and up to how
-- many rows a match is computed exactly. Written by the deployer in SQL, read by every signed-in caller
-- inside rag_match. One row, the same for all orgs: the one table that has no org.

create table rag.settings (
  singleton boolean primary key default true check (singleton),
  -- The model that rag_match assumes when filters.model does not say.
  embedding_model text not null default 'text-embedding-3-small'
    check (length(embedding_model) between 1 and 100),
  -- Below this many candidate rows a match scans them all; above, it asks the HNSW index.
  exact_rows integer not null default 10000 check (exact_rows >= 0)
);

alter table rag.settings enable row level security;
alter table rag.settings force row level security;

create policy "signed-in callers read the settings" on rag.settings
  for select to authenticated using (true);

grant select on rag.settings to authenticated;

insert into rag.settings default values;
