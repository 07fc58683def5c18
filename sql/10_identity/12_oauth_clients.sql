-- Tokens of OAuth clients. A client that signed in through the project's OAuth server, such as an MCP client, has a token of
-- its user with the claim client_id. The scopes of OAuth do not limit the database, so each client has scopes here, those of
-- API keys. A client without a row reads. The deployer writes the rows.

create table rag.oauth_clients (
  client_id text primary key check (length(client_id) between 1 and 255),
  scopes text[] not null check (array_ndims(scopes) = 1 and cardinality(scopes) between 1 and 6
    and scopes <@ array['documents:read', 'documents:write', 'retrievals:read', 'chat:read',
      'collections:manage', 'admin']),
  created_at timestamptz not null default now()
);

comment on table rag.oauth_clients is
  'What OAuth clients may do with the tokens of their users: the scopes of API keys. A client without a row reads.';

alter table rag.oauth_clients enable row level security;
alter table rag.oauth_clients force row level security;

create policy "a client reads its scopes" on rag.oauth_clients
  for select to authenticated using (client_id = (select auth.jwt()) ->> 'client_id');

create function rag.client_scopes()
returns text[]
language sql stable security invoker set search_path = ''
as $$
  select coalesce(
    (select oauth_clients.scopes from rag.oauth_clients where oauth_clients.client_id = token.claims ->> 'client_id'),
    array['documents:read', 'retrievals:read', 'chat:read'])
  from (select auth.jwt() as claims) as token
  cross join rag.settings
  where token.claims ? 'client_id' and not settings.third_party_issuers ? coalesce(token.claims ->> 'iss', '');
$$;

comment on function rag.client_scopes is
  'The scopes of the OAuth client of the token; null for a token without the claim client_id, and for one of a third-party '
  'issuer, whose claim has another meaning.';
