-- Checks of values that tables and exposed functions share: texts, metadata, numbers and the size of JSON.

create function rag.is_visible_text(content text)
returns boolean
language sql immutable security invoker set search_path = ''
as $$
  select content !~ ('[\u0001-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b\u200e\u200f\u202a-\u202e'
    || '\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e0fff]');
$$;

comment on function rag.is_visible_text is
  'Whether a text holds only what its reader sees, besides tab and line feed: no control characters, no zero-width '
  'or bidirectional controls, no tags. The functions clean texts before they store them; tables check, because a '
  'member may also call the exposed functions directly.';

create function rag.is_readable(value jsonb)
returns boolean
language sql immutable security invoker set search_path = ''
as $$
  select not jsonb_path_exists(value, '$.**{36}') and not exists (
    -- As an array: the time of jsonb_path_query grows with the square of the number of its results.
    select from jsonb_array_elements(
      jsonb_path_query_array(value, 'strict $.** ? (@.type() == "number")')) as found (number)
    where abs(found.number::numeric) >= 1e300 or scale(found.number::numeric) > 300);
$$;

comment on function rag.is_readable is
  'Whether clients in other programming languages can parse the value: at most 36 levels (metadata: 32), and numbers '
  'with at most 300 digits on either side of the point. Numbers are compared, never rendered as text: 1e131071 takes '
  'eight bytes here and 131,072 as text.';

create function rag.is_metadata(value jsonb)
returns boolean
language sql immutable security invoker set search_path = ''
as $$
  select case
    when jsonb_typeof(value) <> 'object' or pg_column_size(value) > 65536 or jsonb_path_exists(value, '$.**{32}')
      then false
    else rag.is_readable(value)
  end;
$$;

comment on function rag.is_metadata is
  'Whether the value may be metadata: an object of at most 64 KB and 32 levels, with readable numbers.';

create function rag.is_whole(value jsonb, lowest integer, highest integer)
returns boolean
language sql immutable security invoker set search_path = ''
as $$
  select case coalesce(jsonb_typeof(value), '')
    when '' then true
    when 'number' then scale(value::numeric) = 0 and value::numeric between lowest and highest
    else false
  end;
$$;

comment on function rag.is_whole is
  'Whether the value is a whole number within these bounds. Null, the value of an absent key, is accepted.';

create function rag.check_json(name text, value jsonb, bytes integer default null)
returns void
language plpgsql immutable security invoker set search_path = ''
as $$
begin
  if pg_column_size(value) > bytes then
    raise exception '% must have at most % bytes', name, bytes using errcode = 'PT400', detail = 'json_too_large';
  elsif not rag.is_readable(value) then
    raise exception '% must have at most 36 levels, and numbers of at most 300 digits on each side of the point', name
      using errcode = 'PT400', detail = 'unreadable_json';
  end if;
end;
$$;

comment on function rag.check_json is
  'Raises PT400 for JSON with more than `bytes` bytes (null: no limit), or that is not rag.is_readable. Each exposed '
  'function that takes JSON calls it before it converts the JSON, because every conversion renders numbers.';

create function rag.check_ids(name text, ids uuid[])
returns void
language plpgsql immutable security invoker set search_path = ''
as $$
begin
  if coalesce(cardinality(ids), 0) not between 1 and 100 or array_position(ids, null) is not null then
    raise exception '% must have 1 to 100 ids', name using errcode = 'PT400', detail = 'invalid_ids';
  end if;
end;
$$;

comment on function rag.check_ids is 'Raises PT400 unless there are 1 to 100 ids, none of them null.';
