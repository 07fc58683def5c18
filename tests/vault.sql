-- Stands in for the extension supabase_vault 0.3 with its grants on a hosted project, since no package has the extension:
-- its table, its view and its two functions, with base64 in place of encryption.
create schema vault;
create table vault.secrets (
  id uuid primary key default gen_random_uuid(), name text unique, description text not null default '', secret text not null,
  key_id uuid, nonce bytea, created_at timestamptz not null default now(), updated_at timestamptz not null default now());
create view vault.decrypted_secrets as
  select *, convert_from(decode(secret, 'base64'), 'utf8') as decrypted_secret from vault.secrets;
create function vault.create_secret(
  new_secret text, new_name text = null, new_description text = '', new_key_id uuid = null
) returns uuid language sql security definer set search_path = '' as $$
  insert into vault.secrets (secret, name, description)
  values (encode(convert_to(new_secret, 'utf8'), 'base64'), new_name, new_description) returning id
$$;
create function vault.update_secret(
  secret_id uuid, new_secret text = null, new_name text = null, new_description text = null, new_key_id uuid = null
) returns void language sql security definer set search_path = '' as $$
  update vault.secrets
  set secret = coalesce(encode(convert_to(new_secret, 'utf8'), 'base64'), secret), name = coalesce(new_name, name),
    description = coalesce(new_description, description)
  where id = secret_id
$$;
revoke all on function vault.create_secret, vault.update_secret from public;
grant usage on schema vault to postgres;
grant select, delete on vault.secrets, vault.decrypted_secrets to postgres;
grant execute on function vault.create_secret, vault.update_secret to postgres;
