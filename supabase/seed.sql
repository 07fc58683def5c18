-- The local demo's two orgs: a company and its customer, with an admin and a member each, one consultant
-- who works for both, and a stranger who belongs to none. Safe to apply again.

insert into auth.users (id, email) values
  ('00000000-0000-4000-8000-000000000101', 'ines@halden.example'),
  ('00000000-0000-4000-8000-000000000102', 'tomas@halden.example'),
  ('00000000-0000-4000-8000-000000000201', 'rosa@brightwater.example'),
  ('00000000-0000-4000-8000-000000000202', 'emil@brightwater.example'),
  ('00000000-0000-4000-8000-000000000301', 'kofi@consulting.example'),
  ('00000000-0000-4000-8000-000000000401', 'sam@nowhere.example')
on conflict do nothing;

insert into rag.orgs (id, name) values
  ('00000000-0000-4000-8000-00000000000a', 'Halden Instruments'),
  ('00000000-0000-4000-8000-00000000000b', 'Brightwater Dairy Cooperative')
on conflict do nothing;

insert into rag.members (org_id, user_id, role, name) values
  ('00000000-0000-4000-8000-00000000000a', '00000000-0000-4000-8000-000000000101', 'admin', 'ines@halden.example'),
  ('00000000-0000-4000-8000-00000000000a', '00000000-0000-4000-8000-000000000102', 'member', 'tomas@halden.example'),
  ('00000000-0000-4000-8000-00000000000a', '00000000-0000-4000-8000-000000000301', 'member', 'kofi@consulting.example'),
  ('00000000-0000-4000-8000-00000000000b', '00000000-0000-4000-8000-000000000201', 'admin', 'rosa@brightwater.example'),
  ('00000000-0000-4000-8000-00000000000b', '00000000-0000-4000-8000-000000000202', 'member', 'emil@brightwater.example'),
  ('00000000-0000-4000-8000-00000000000b', '00000000-0000-4000-8000-000000000301', 'member', 'kofi@consulting.example')
on conflict do nothing;
