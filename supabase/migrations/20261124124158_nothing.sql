SET local check_function_bodies = off;

CREATE OR REPLACE FUNCTION rag.texts_of (
  content text,
  chunks  jsonb
)
  RETURNS text[]
  LANGUAGE plpgsql
  STABLE
  SET search_path TO ''
  AS $function$
declare
  bytes constant bytea := convert_to(content, 'UTF8');
  size constant integer := length(bytes);
  -- The first byte and the first character of each block, both counted from 0; last, the end of the text.
  first_bytes integer[] := array[0];
  first_characters integer[] := array[0];
  next_byte integer := 0;
  characters integer := 0;
  starts integer[];
  ends integer[];
begin
  for block in 1..(size + 4095) / 4096 loop
    next_byte := least(block * 4096, size);
    -- A character's bytes after its first begin with the bits 10.
    while next_byte < size and get_byte(bytes, next_byte) & 192 = 128 loop
      next_byte := next_byte + 1;
    end loop;
    characters := characters + length(convert_from(
      substring(bytes from first_bytes[block] + 1 for next_byte - first_bytes[block]), 'UTF8'));
    first_bytes[block + 1] := next_byte;
    first_characters[block + 1] := characters;
  end loop;
  select array_agg((item.body ->> 'span_start')::integer order by item.place),
    array_agg((item.body ->> 'span_end')::integer order by item.place)
  into starts, ends
  from jsonb_array_elements(chunks) with ordinality as item (body, place);
  if exists (
    select from unnest(starts, ends) as span (first, last)
    where (span.first >= 0 and span.last > span.first and span.last <= characters) is not true)
  then
    raise exception 'a chunk''s span is not within its document' using errcode = 'PT400', detail = 'span_outside';
  elsif (select sum(span.last - span.first) from unnest(starts, ends) as span (first, last))
    > greatest(8::bigint * characters, 1000000)
  then
    raise exception 'the chunks repeat the document''s text more than eight times'
      using errcode = 'PT400', detail = 'spans_too_long';
  end if;
  return array(
    select substr(
      convert_from(substring(bytes from first_bytes[held.first] + 1
        for first_bytes[held.last + 1] - first_bytes[held.first]), 'UTF8'),
      span.first - first_characters[held.first] + 1, span.last - span.first)
    from unnest(starts, ends) with ordinality as span (first, last, place)
    cross join lateral (
      select width_bucket(span.first, first_characters) as first,
        width_bucket(span.last - 1, first_characters) as last
      offset 0
    ) as held
    order by span.place);
end;
$function$;
