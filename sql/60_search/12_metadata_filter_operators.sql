-- Filters of metadata: for each key the value that the document's must equal, or operators, as in
-- {"year": {"$gte": 2020}}. The names are MongoDB's, which Pinecone, Chroma, vecs and LangChain use too; the dollar
-- sign tells operators from a value that is an object. Each operator becomes look-ups in an index of rag.facets.

create type rag.facet_condition as (
  number integer, excludes boolean, facet uuid, metadata_key uuid, lowest text, below text
);

comment on type rag.facet_condition is
  'A facet, or a key of the metadata with the range of its sort key, from `lowest` to before `below`. A document needs '
  'one of each number, and none that excludes.';

create function rag.metadata_operations(metadata jsonb)
returns table (key text, operator text, operand jsonb)
language plpgsql immutable security invoker set search_path = ''
as $$
declare
  operators integer := 0;
  fault text;
  entry record;
begin
  for entry in select each.key, each.value from jsonb_each(metadata) as each loop
    key := entry.key;
    -- Strict: an array is not searched for objects. Silent: null for another type.
    if jsonb_path_exists(entry.value, 'strict $.keyvalue() ? (@.key starts with "$")', '{}', true) is not true then
      if starts_with(key, '$') then
        raise exception 'filters.metadata: % stands where a key of the metadata is expected', left(key, 100)
          using errcode = 'PT400', detail = 'invalid_filters';
      end if;
      operator := '$eq';
      operand := entry.value;
      return next;
      continue;
    end if;
    for operator, operand in select each.key, each.value from jsonb_each(entry.value) as each loop
      operators := operators + 1;
      fault := case when operators > 100 then 'a filter must have at most 100 operators' else
        -- Null without a fault.
        left(key, 100) || ' ' || left(operator, 100) || ' ' || case
          when operator not in ('$eq', '$ne', '$in', '$nin', '$gt', '$gte', '$lt', '$lte', '$exists')
            then 'is no operator: use $eq, $ne, $in, $nin, $gt, $gte, $lt, $lte or $exists'
          when operator = '$ne' and jsonb_typeof(operand) in ('array', 'object')
            then 'takes a string, a number, true, false or null'
          when operator in ('$in', '$nin') and case jsonb_typeof(operand)
              when 'array' then jsonb_array_length(operand) not between 1 and 100
                or jsonb_path_exists(operand, 'strict $[*] ? (@.type() == "array" || @.type() == "object")')
              else true
            end
            then 'takes a list of 1 to 100 strings, numbers, true, false or null'
          when operator in ('$gt', '$gte', '$lt', '$lte') and case jsonb_typeof(operand)
              when 'number' then false
              when 'string' then length(operand #>> '{}') > 200
              else true
            end
            then 'takes a number, or a string of at most 200 characters'
          when operator = '$exists' and jsonb_typeof(operand) <> 'boolean' then 'takes true or false'
        end
      end;
      if fault is not null then
        raise exception 'filters.metadata: %', fault using errcode = 'PT400', detail = 'invalid_filters';
      end if;
      return next;
    end loop;
  end loop;
end;
$$;

comment on function rag.metadata_operations is
  'The filter as operators, of which all must hold; a plain value is $eq. An object of which a key begins with $ holds '
  'operators: $eq (any value), $ne, $in, $nin (strings, numbers, true, false, null), $gt, $gte, $lt, $lte (a string or '
  'a number, compared with the same type alone), $exists (true or false). $ne, $nin and $exists false also find '
  'documents without the key. Raises PT400 for an unknown operator, a wrong operand, more than 100 operators, and a '
  'plain value of a key that begins with $ ($and, $or).';

create function rag.metadata_conditions(metadata jsonb)
returns setof rag.facet_condition
language sql immutable security invoker set search_path = ''
as $$
  with operation as (
    select row_number() over () as number, operations.*, rag.facet_hash('metadata key', to_jsonb(key)) as metadata_key,
      rag.sort_key(operand) as bound
    from rag.metadata_operations(metadata) as operations
  )
  select number, operator in ('$ne', '$nin'), rag.facet_hash('metadata.' || key, value), null::uuid, null, null
  from operation
  cross join jsonb_array_elements(
    case when operator in ('$in', '$nin') then operand else jsonb_build_array(operand) end) as value
  where operator in ('$eq', '$ne', '$in', '$nin')
  union all
  select number, true, null, metadata_key, '', '~'
  from operation
  where operator = '$exists' and operand = 'false'
  union all
  -- The operators of a key are one range. No sort key lies between a bound and the bound with the lowest character.
  select min(number), false, null, metadata_key,
    max(case operator when '$gte' then bound when '$gt' then bound || E'\x01' when '$exists' then ''
      else left(bound, 1) end collate "C"),
    min(case operator when '$lt' then bound when '$lte' then bound || E'\x01' when '$exists' then '~'
      else chr(ascii(bound) + 1) end collate "C")
  from operation
  where operator in ('$gt', '$gte', '$lt', '$lte') or operator = '$exists' and operand = 'true'
  group by metadata_key;
$$;

comment on function rag.metadata_conditions is
  'The conditions of a filter. Raises the errors of rag.metadata_operations.';
