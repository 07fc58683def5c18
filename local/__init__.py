"""The Supabase stack without Docker, for laptops, demos and tests. Nothing here is deployed."""
