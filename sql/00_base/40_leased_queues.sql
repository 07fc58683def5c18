-- The parts that the queues of the worker share. The queues are jobs (20_documents: ingestion and extraction), deliveries
-- (50_webhooks), object removals (40_storage) and sources (55_sources). A claim leases due items, the same number for
-- every org. An item whose lease has expired is due again, and after rag.max_attempts() without a result it fails. A
-- removal has no lease and never fails. The claims themselves differ by table (docs/decisions/storage.md).

create function rag.check_claim(max_items integer, lease_seconds integer default 60)
returns void
language plpgsql stable security invoker set search_path = ''
as $$
begin
  -- Raises PT401 for a worker's token of another issuer, also without PostgREST's pre-request function.
  perform rag.current_user_id();
  if max_items is null or max_items not between 1 and 100
    or lease_seconds is null or lease_seconds not between 5 and 3600
  then
    raise exception 'max_items must be between 1 and 100, and lease_seconds between 5 and 3600'
      using errcode = 'PT400', detail = 'invalid_claim';
  end if;
end;
$$;

comment on function rag.check_claim is 'Raises PT400 for invalid arguments of a claim, PT401 for a token of an issuer that is not trusted.';

create function rag.max_attempts()
returns integer
language sql immutable security invoker set search_path = ''
as $$
  select 16;
$$;

comment on function rag.max_attempts is 'The number of claims after which an item without a result fails: 16.';
