-- Arguments that all searches share: the query vector and the number of results.

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

create function rag.to_halfvec(query_vector extensions.vector)
returns extensions.halfvec
language plpgsql immutable security invoker set search_path = ''
as $$
declare
  dimensions constant integer := extensions.vector_dims(query_vector);
  query_embedding extensions.halfvec(1536);
begin
  if dimensions is distinct from 1536 then
    raise exception 'query_vector must have 1536 dimensions, not %', dimensions
      using errcode = 'PT400', detail = 'wrong_dimensions', hint = 'pad shorter embeddings with zeros';
  end if;
  query_embedding := query_vector::extensions.halfvec(1536);
  -- The half-precision vector is tested, since a tiny vector may have become zero.
  if extensions.l2_norm(query_embedding) = 0 then
    raise exception 'query_vector must not be all zeros' using errcode = 'PT400', detail = 'zero_vector';
  end if;
  return query_embedding;
end;
$$;

comment on function rag.to_halfvec is
  'The query vector in half precision, as it is compared. Raises PT400 for a wrong number of dimensions and for a '
  'zero vector.';
