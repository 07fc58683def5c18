"""The Supabase stack without Docker, for laptops, demos and tests. Nothing here is deployed."""

from pathlib import Path

ROOT = Path(__file__).parent.parent
