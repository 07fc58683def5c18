-- Arguments that all searches share: the query vector, the number of results and the preferred source types.

create function rag.check_top_k(top_k integer)
returns void
language plpgsql immutable security invoker set search_path = ''
as $$
begin
  if top_k is null or top_k not between 1 and 300 then
    raise exception 'top_k must be between 1 and 300' using errcode = 'PT400', detail = 'invalid_top_k';
  end if;
end;
$$;

comment on function rag.check_top_k is 'Raises PT400 for an invalid top_k.';

create function rag.check_prefer(prefer text[])
returns void
language plpgsql immutable security invoker set search_path = ''
as $$
begin
  if cardinality(prefer) > 100 then
    raise exception 'prefer must have at most 100 source types' using errcode = 'PT400', detail = 'invalid_prefer';
  end if;
end;
$$;

comment on function rag.check_prefer is
  'Raises PT400 for too many preferred source types: each candidate is compared with each.';

create function rag.to_halfvec(query_vector extensions.vector, model text)
returns extensions.halfvec
language plpgsql stable security invoker set search_path = ''
as $$
declare
  query_embedding constant extensions.halfvec := rag.fit_dimensions(
    query_vector::extensions.halfvec, rag.dimensions_of(model), 'query_vector');
begin
  -- The half-precision vector is tested, since a tiny vector may have become zero.
  if extensions.l2_norm(query_embedding) = 0 then
    raise exception 'query_vector must not be all zeros' using errcode = 'PT400', detail = 'zero_vector';
  end if;
  return query_embedding;
end;
$$;

comment on function rag.to_halfvec is
  'The query vector in half precision and with the model''s dimensions, as it is compared. Raises PT400 for a wrong '
  'number of dimensions and for a zero vector.';
