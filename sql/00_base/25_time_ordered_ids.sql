-- Ids of documents and chunks. An id begins with the time, as version 7 of RFC 9562 does. The keys of most tables of an
-- org begin with such an id, so new rows go to the end of the org's part of an index: the index pages are full, and
-- few of the pages change.

create function rag.time_ordered_id()
returns uuid
language sql volatile security invoker set search_path = ''
as $$
  select (lpad(to_hex((extract(epoch from clock_timestamp()) * 1000)::bigint), 12, '0') || '7'
    || right(replace(gen_random_uuid()::text, '-', ''), 19))::uuid;
$$;

comment on function rag.time_ordered_id is
  'A new UUID of version 7: milliseconds since 1970 in 48 bits, then random bits.';
